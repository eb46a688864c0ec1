"""Admin APIs about topics and their partitions: request and answer in, changes out."""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.dissectors.kafka.rows.admin_change import Change, Error, error_of, errors_by, listed, partition_errors
from wirewitness.dissectors.kafka.schema.primitives import NO_TOPIC_ID, Value, uuid_text
from wirewitness.dissectors.kafka.schema.secret_settings import shown

_NO_ERROR: Error = (None, None)
_ELECTIONS = {0: "preferred", 1: "unclean"}


def create_topics(asked: Value, answer: Value | None) -> Iterator[Change]:
    errors = errors_by((answer or {}).get("topics"), "name")
    for topic in asked["topics"]:
        words = []
        if topic["num_partitions"] >= 0:
            words.append(f"partitions={topic['num_partitions']}")
        if topic["replication_factor"] >= 0:
            words.append(f"replication_factor={topic['replication_factor']}")
        words += [f"replicas[{one['partition_index']}]={listed(one['broker_ids'])}" for one in topic["assignments"]]
        words += [f"{config['name']}={shown(config['name'], config['value'])}" for config in topic["configs"]]
        change = "create " + " ".join(words) if words else "create"
        yield Change("topic", topic["name"], change, *errors.get(topic["name"], _NO_ERROR))


def delete_topics(asked: Value, answer: Value | None) -> Iterator[Change]:
    """By name, from version 6 also by topic id; then the answer tells the name."""
    answers = (answer or {}).get("responses") or []
    by_name = errors_by(answers, "name")
    by_id = {one["topic_id"]: one for one in answers if one.get("topic_id")}
    for name in asked.get("topic_names", ()):
        yield Change("topic", name, "delete", *by_name.get(name, _NO_ERROR))
    for topic in asked.get("topics", ()):
        name, topic_id = topic["name"], topic["topic_id"]
        if name is not None or topic_id == NO_TOPIC_ID:
            yield Change("topic", name, "delete", *by_name.get(name, _NO_ERROR))
        else:
            found = by_id.get(topic_id)
            resource = (found or {}).get("name") or uuid_text(topic_id)
            yield Change("topic", resource, f"delete topic_id={uuid_text(topic_id)}", *error_of(found))


def create_partitions(asked: Value, answer: Value | None) -> Iterator[Change]:
    errors = errors_by((answer or {}).get("results"), "name")
    for topic in asked["topics"]:
        replicas = [f"replicas={listed(one['broker_ids'])}" for one in topic["assignments"] or ()]
        change = " ".join((f"partitions={topic['count']}", *replicas))
        yield Change("topic", topic["name"], change, *errors.get(topic["name"], _NO_ERROR))


def delete_records(asked: Value, answer: Value | None) -> Iterator[Change]:
    """Offset -1 stands for the end of the partition."""
    errors = partition_errors((answer or {}).get("topics"), "name")
    for topic in asked["topics"]:
        cuts = [f"{one['partition_index']}<{one['offset']}" for one in topic["partitions"]]
        yield Change("topic", topic["name"], f"delete records {listed(cuts)}", *errors.get(topic["name"], _NO_ERROR))


def elect_leaders(asked: Value, answer: Value | None) -> Iterator[Change]:
    errors = partition_errors((answer or {}).get("replica_election_results"), "topic", "partition_result")
    whole = error_of(answer) if answer and answer.get("error_code") else _NO_ERROR
    kind = asked.get("election_type", 0)
    verb = f"elect {_ELECTIONS.get(kind, kind)} leaders"
    if asked["topic_partitions"] is None:
        code = None if answer is None else answer.get("error_code", 0)
        yield Change("cluster", None, f"{verb} of all partitions", code, None)
    for topic in asked["topic_partitions"] or ():
        error = whole if whole[0] else errors.get(topic["topic"], _NO_ERROR)
        yield Change("topic", topic["topic"], f"{verb} of {listed(topic['partitions'])}", *error)


def reassign(asked: Value, answer: Value | None) -> Iterator[Change]:
    """Replicas null: a reassignment that is under way is cancelled."""
    errors = partition_errors((answer or {}).get("responses"), "name")
    whole = error_of(answer)
    for topic in asked["topics"]:
        moves = [
            f"{one['partition_index']}:cancel"
            if one["replicas"] is None
            else f"{one['partition_index']}:[{listed(one['replicas'])}]"
            for one in topic["partitions"]
        ]
        error = whole if whole[0] else errors.get(topic["name"], whole)
        yield Change("topic", topic["name"], f"replicas {' '.join(moves)}", *error)


def alter_replica_log_dirs(asked: Value, answer: Value | None) -> Iterator[Change]:
    errors = partition_errors((answer or {}).get("results"), "topic_name")
    for folder in asked["dirs"]:
        for topic in folder["topics"]:
            change = f"move partitions {listed(topic['partitions'])} to {folder['path']}"
            yield Change("topic", topic["name"], change, *errors.get(topic["name"], _NO_ERROR))
