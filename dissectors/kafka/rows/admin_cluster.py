"""Admin APIs about settings, groups and the cluster itself: request and answer in, changes out.

Code numbers: ConfigResource.Type, AlterConfigOp.OpType and FeatureUpdate.UpgradeType of the Java client 4.2.
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.dissectors.kafka.rows.admin_change import Change, Error, error_of, errors_by, listed, partition_errors
from wirewitness.dissectors.kafka.schema.primitives import Value
from wirewitness.dissectors.kafka.schema.secret_settings import shown

_NO_ERROR: Error = (None, None)
_RESOURCES = {2: "topic", 4: "broker", 8: "broker_logger", 16: "client_metrics", 32: "group"}
_OPERATIONS = {0: "set", 1: "delete", 2: "append", 3: "subtract"}
_UPGRADES = {1: "upgrade", 2: "safe downgrade", 3: "unsafe downgrade"}


def alter_configs(asked: Value, answer: Value | None) -> Iterator[Change]:
    """AlterConfigs replaces all settings of a resource, IncrementalAlterConfigs changes single ones."""
    errors = errors_by((answer or {}).get("responses"), "resource_type", "resource_name")
    for resource in asked["resources"]:
        kind, name = resource["resource_type"], resource["resource_name"]
        change = ", ".join(map(_setting, resource["configs"])) or "replace by none"
        yield Change(_RESOURCES.get(kind, str(kind)), name, change, *errors.get((kind, name), _NO_ERROR))


def _setting(config: Value) -> str:
    operation = config.get("config_operation")
    verb = "replace" if operation is None else _OPERATIONS.get(operation, str(operation))
    if verb == "delete":
        return f"{verb} {config['name']}"
    return f"{verb} {config['name']}={shown(config['name'], config['value'])}"


def delete_groups(asked: Value, answer: Value | None) -> Iterator[Change]:
    errors = errors_by((answer or {}).get("results"), "group_id")
    for group in asked["groups_names"]:
        yield Change("group", group, "delete", *errors.get(group, _NO_ERROR))


def delete_offsets(asked: Value, answer: Value | None) -> Iterator[Change]:
    """The stored offsets of a group are removed; one row for each topic."""
    errors = partition_errors((answer or {}).get("topics"), "name")
    whole = error_of(answer)
    for topic in asked["topics"]:
        parts = listed(one["partition_index"] for one in topic["partitions"])
        error = whole if whole[0] else errors.get(topic["name"], whole)
        yield Change("group", asked["group_id"], f"delete offsets of {topic['name']} {parts}", *error)


def alter_share_offsets(asked: Value, answer: Value | None) -> Iterator[Change]:
    errors = partition_errors((answer or {}).get("responses"), "topic_name")
    whole = error_of(answer)
    for topic in asked["topics"]:
        starts = " ".join(f"{one['partition_index']}:{one['start_offset']}" for one in topic["partitions"])
        error = whole if whole[0] else errors.get(topic["topic_name"], whole)
        yield Change("group", asked["group_id"], f"start offsets of {topic['topic_name']} {starts}", *error)


def delete_share_offsets(asked: Value, answer: Value | None) -> Iterator[Change]:
    errors = errors_by((answer or {}).get("responses"), "topic_name")
    whole = error_of(answer)
    for topic in asked["topics"]:
        name = topic["topic_name"]
        error = whole if whole[0] else errors.get(name, whole)
        yield Change("group", asked["group_id"], f"delete start offsets of {name}", *error)


def update_features(asked: Value, answer: Value | None) -> Iterator[Change]:
    """Level 0 removes a feature."""
    errors = errors_by((answer or {}).get("results"), "feature")
    whole = error_of(answer)
    for one in asked["feature_updates"]:
        if "upgrade_type" in one:
            kind = _UPGRADES.get(one["upgrade_type"], str(one["upgrade_type"]))
        else:
            kind = "downgrade allowed" if one["allow_downgrade"] else "upgrade"
        error = whole if whole[0] else errors.get(one["feature"], whole)
        yield Change("feature", one["feature"], f"max_version_level={one['max_version_level']} ({kind})", *error)


def unregister_broker(asked: Value, answer: Value | None) -> Iterator[Change]:
    yield Change("broker", str(asked["broker_id"]), "unregister", *error_of(answer))


def unregister_controller(asked: Value, answer: Value | None) -> Iterator[Change]:
    yield Change("controller", str(asked["controller_id"]), "unregister", *error_of(answer))


def add_voter(asked: Value, answer: Value | None) -> Iterator[Change]:
    places = listed(f"{one['name']}://{one['host']}:{one['port']}" for one in asked["listeners"])
    yield Change("raft_voter", str(asked["voter_id"]), f"add {places}", *error_of(answer))


def remove_voter(asked: Value, answer: Value | None) -> Iterator[Change]:
    yield Change("raft_voter", str(asked["voter_id"]), "remove", *error_of(answer))
