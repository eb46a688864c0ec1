"""Rows of classic and KIP-848 groups, as `build.py`: members join, get their part, beat, leave."""

from __future__ import annotations

from typing import Any

from tests.analyser.engine.rules.scenarios.build import CLIENTS, Row, at, flow, group_event


def join(seconds: float, member: str, generation: int, *, waits: float = 0.002, **more: Any) -> Row:
    """An answered JoinGroup. waits: seconds until the answer."""
    told = {"protocol_name": "range", "leader_id": "m1", "topics": "payments", "session_timeout_ms": 6000}
    told |= {"group_protocol": "classic", "protocol_type": "consumer", "protocols_offered": "range"}
    return group_event(seconds, "join", member, generation=generation, ts_response=at(seconds + waits), **(told | more))


def sync(seconds: float, member: str, generation: int, **more: Any) -> Row:
    """An answered SyncGroup."""
    return group_event(seconds, "sync", member, generation=generation, **more)


def beats(member: str, generation: int, *times: float, **more: Any) -> list[Row]:
    """Heartbeats at these seconds."""
    return [group_event(one, "heartbeat", member, generation=generation, **more) for one in times]


def joined(generation: int, *members: str, first: float, last: float, **more: Any) -> list[Row]:
    """All ask to join, the last one later than the others, and get their part."""
    times = [first] * (len(members) - 1) + [last]
    return [
        row
        for member, one in zip(members, times, strict=True)
        for row in (
            join(one, member, generation, waits=last - one + 0.002, **more),
            sync(last + 0.01, member, generation),
        )
    ]


def beat(seconds: float, epoch: int, member: str = "m1", **more: Any) -> Row:
    """An answered ConsumerGroupHeartbeat (KIP-848)."""
    return group_event(seconds, "consumer_heartbeat", member, generation=epoch, group_protocol="consumer", **more)


def flows(last: float = 60, **closed: float) -> list[Row]:
    """The connections of m1, m2 and m3, open until the capture's end at `last`. closed: member -> second it closed."""
    return [
        flow(
            flow_id, client_address=address, ts_last=at(closed.get(member, last)),
            closed_by="client" if member in closed else None,
            ts_closed=at(closed[member]) if member in closed else None,
        )
        for member, (address, _, flow_id) in CLIENTS.items()
    ]  # fmt: skip
