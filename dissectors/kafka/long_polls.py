"""Requests that ask the broker to wait, by what the protocol says: the time to their answer is no latency.

Sources: the protocol guide (max_wait_ms, min_bytes of Fetch); Kafka's ReplicaManager.fetchMessages, which answers at
once where max_wait_ms or min_bytes is 0; KafkaRaftClient.handleFetchRequest, which looks at max_wait_ms alone;
DelayedShareFetch (KIP-932); GroupCoordinator and KIP-62 (JoinGroup waits for the members of the group, SyncGroup for
the leader's plan). What waits for its own work to be done is latency all the same: a Produce for replicas, CreateTopics
and the like up to their timeout. Heartbeats of all kinds are answered at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from wirewitness.dissectors.kafka.schema.primitives import METADATA_TOPIC, METADATA_TOPIC_ID, Value

# A request's value, None where it is not decoded -> does it ask to wait? None: unknown.
Waits = Callable[[Value | None], bool | None]


def never(value: Value | None) -> bool | None:
    """What most requests do."""
    return False


def _for_data(value: Value | None) -> bool | None:
    """Fetch and ShareFetch: until there are min_bytes, for max_wait_ms at most."""
    if value is None:
        return None
    return value["max_wait_ms"] > 0 and (value["min_bytes"] > 0 or _of_raft(value))


def _of_raft(value: Value) -> bool:
    """A controller's or broker's Fetch of the metadata log, which names nothing else."""
    topics = value.get("topics")
    if not topics:
        return False
    first = topics[0]
    return bool(first.get("topic") == METADATA_TOPIC or first.get("topic_id") == METADATA_TOPIC_ID)


def _for_members(value: Value | None) -> bool | None:
    """JoinGroup: until the other members have joined, for the rebalance timeout at most."""
    return True


def _for_the_plan(value: Value | None) -> bool | None:
    """SyncGroup: a member without a plan of its own waits for the leader's."""
    return None if value is None else not value["assignments"]


WAITS: Mapping[int, Waits] = {1: _for_data, 11: _for_members, 14: _for_the_plan, 78: _for_data}
