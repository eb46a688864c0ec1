"""An operator's work that librdkafka's admin client does: rights, placed topics, leaders, settings of topics.

In: a work and NAME=VALUE words; a name with a dot is a librdkafka setting. Out: a JSON line on standard output.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from confluent_kafka import ElectionType, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

WAIT_S = 30


def settings_of(words: dict[str, str]) -> dict[str, Any]:
    """Return the words that are librdkafka settings."""
    return {name: value for name, value in words.items() if "." in name}


def deny(admin: AdminClient, words: dict[str, str]) -> object:
    """Deny user=U all on resource=group|topic|transactional_id name=N."""
    kind = {"group": ResourceType.GROUP, "topic": ResourceType.TOPIC,
            "transactional_id": ResourceType.TRANSACTIONAL_ID}[words["resource"]]  # fmt: skip
    entry = AclBinding(kind, words["name"], ResourcePatternType.LITERAL, f"User:{words['user']}", "*",
                       AclOperation.ALL, AclPermissionType.DENY)  # fmt: skip
    for future in admin.create_acls([entry]).values():
        future.result(WAIT_S)
    return None


def place(admin: AdminClient, words: dict[str, str]) -> object:
    """Make topic=T whose partitions have the replicas=1:2,2:1 (the first of each leads); settings=NAME:VALUE,..."""
    replicas = [[int(one) for one in each.split(":")] for each in words["replicas"].split(",")]
    config = dict(one.split(":") for one in words["settings"].split(",")) if "settings" in words else {}
    made = NewTopic(words["topic"], len(replicas), replica_assignment=replicas, config=config)
    for future in admin.create_topics([made]).values():
        future.result(WAIT_S)
    return None


def leaders(admin: AdminClient, words: dict[str, str]) -> object:
    """Say who leads each partition of topic=T."""
    found = admin.list_topics(words["topic"], timeout=WAIT_S).topics[words["topic"]]
    return {number: one.leader for number, one in found.partitions.items()}


def alter(admin: AdminClient, words: dict[str, str]) -> object:
    """Set set=NAME:VALUE of topic=T."""
    name, _, value = words["set"].partition(":")
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    place = ConfigResource(ResourceType.TOPIC, words["topic"], incremental_configs=[entry])
    for future in admin.incremental_alter_configs([place]).values():
        future.result(WAIT_S)
    return None


def throttle(admin: AdminClient, words: dict[str, str]) -> object:
    """Let the broker number=N copy rate=N bytes a second at most while it is behind, in topic=T."""
    for kind, who, name, value in (
        (ResourceType.BROKER, words["number"], "follower.replication.throttled.rate", words["rate"]),
        (ResourceType.TOPIC, words["topic"], "follower.replication.throttled.replicas", "*"),
    ):
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for future in admin.incremental_alter_configs(
            [ConfigResource(kind, who, incremental_configs=[entry])]
        ).values():
            future.result(WAIT_S)
    return None


def elect(admin: AdminClient, words: dict[str, str]) -> object:
    """Let the preferred replicas of topic=T lead again, with its partitions=N; say how it went for each."""
    places = [TopicPartition(words["topic"], number) for number in range(int(words["partitions"]))]
    found = admin.elect_leaders(ElectionType.PREFERRED, places).result(WAIT_S)
    return {one.partition: str(error) for one, error in found.items()}


WORKS = {"deny": deny, "place": place, "leaders": leaders, "alter": alter, "elect": elect, "throttle": throttle}


def main() -> None:
    """Do the work of the first word."""
    words = dict(word.split("=", 1) for word in sys.argv[2:])
    answer = WORKS[sys.argv[1]](AdminClient(settings_of(words)), words)
    print(json.dumps({"event": "done", "answer": answer}), flush=True)


if __name__ == "__main__":
    main()
