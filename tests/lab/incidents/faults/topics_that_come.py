"""Topics that come where none should: brought back by a client, made for each customer, made under a pattern."""

from __future__ import annotations

import re

from tests.lab.incidents import told
from tests.lab.incidents.catalogue import fault
from tests.lab.incidents.faults import programs
from tests.lab.incidents.faults.ended import Other
from tests.lab.incidents.incident import Incident


@fault(libraries=("java", "librdkafka"))
def deleted_topic_comes_back(it: Incident) -> None:
    """An operator deletes a topic that is out of use, twice; a forgotten producer lets the broker make it again."""
    other = Other(it, "auto.create.topics.enable=true", "num.partitions=1", partitions=6)
    old, (library, refresh) = it.world.names.topic(), {
        "java": ("java", "metadata.max.age.ms=3000"),
        "librdkafka": ("librdkafka", "topic.metadata.refresh.interval.ms=3000"),
    }[it.library("java", "librdkafka")]  # fmt: skip
    it.operate("create", f"topics={old}:6", "copies=1", broker=other.broker)
    operator = {"client_id": it.world.names.client(), "host": it.new_host()}
    other.begin()
    good = other.around("sarama")
    bad = it.sender(old, "rate=10", refresh, library=library, broker=other.broker)
    it.seconds(9, 11)
    it.from_now()
    for _ in range(2):
        it.operate("delete", f"topic={old}", **operator, broker=other.broker)
        it.seconds(13, 16)
    it.is_told(
        "a deleted topic is made again by a producer that was forgotten", bad,
        [told.any_of(told.client(bad), told.name(old))],
        r"delet|made again|creat|come|came|back|recreat|auto|UNKNOWN_TOPIC|not exist|no (?:such|longer)|nobody|not read"
        r"|gone|removed|unread|no (?:group|consumer|reader)",
        affected=[bad], topic=old, never=[told.accusing(*(one.client_id for one in good))],
    )  # fmt: skip


@fault(libraries=("kafka_python",))
def topic_for_each_customer(it: Incident) -> None:
    """auto.create.topics.enable=true, and a service that writes to a topic for each customer: they grow without end."""
    other, prefix = Other(it, "auto.create.topics.enable=true"), it.world.names.topic()
    other.begin()
    good = other.around("franz")
    it.seconds(4, 5)
    it.from_now()
    command = programs.deploy(it, "topic_for_each", f"prefix={prefix}", "every_s=0.35",
                              f"seed={it.rng.randrange(10**6)}", broker=other.broker)  # fmt: skip
    bad = it.add(command, "kafka_python")
    it.seconds(42, 48)
    it.is_told(
        "a service makes a topic for each customer: the number of topics grows without end", bad,
        [told.any_of(told.client(bad), rf"(?<![\w.-]){re.escape(prefix)}")],
        r"topics\b|(?:new|each|own) (?:\w+ )?topic|creat|made|grow|metadata|UNKNOWN_TOPIC|LEADER_NOT_AVAILABLE"
        r"|not exist|auto|nobody|not read",
        affected=[bad], never=[told.accusing(*(one.client_id for one in good))],
    )  # fmt: skip


@fault(libraries=("kafka_python",), backdrop_restart=False)
def each_new_topic_stops_group(it: Incident) -> None:
    """A group reads a pattern; a tool makes a topic for each new shop, which fits it: each one is a rebalance."""
    (topic,) = it.topics(4)
    group = it.world.names.group()
    it.begin()
    feed = it.sender(topic, "rate=40")
    steady = it.member(it.world.names.group(), [topic], "sarama")
    members = [
        it.add(programs.deploy(it, "reads_pattern", f"pattern=^{re.escape(topic)}.*", f"group={group}",
                               "metadata_max_age_ms=1500", "session_timeout_ms=10000", "heartbeat_interval_ms=1000",
                               "handle_ms=15", "max_poll_records=100"),
               "kafka_python", group=group, topics=(topic,))
        for _ in range(3)
    ]  # fmt: skip
    for one in members:
        one.process.wait_for_event("session", timeout_s=40)
    it.seconds(9, 10)
    it.from_now()
    maker = {"client_id": it.world.names.client(), "host": it.new_host()}
    for number in range(9):
        it.operate("create", f"topics={topic}.shop-{number}:2", "copies=1", **maker)
        it.seconds(2, 4)
    it.until_now()
    it.seconds(5, 6)
    who = {"client_id": maker["client_id"], "address": it.world.hosts[maker["host"]].address}
    it.is_told(
        "each new topic that fits its pattern lets a group rebalance", {"group": group},
        [told.any_of(told.name(group), *(told.client(one) for one in members), told.name(who["client_id"]))],
        r"rebalanc|join|generation|pattern|new topic|made|creat|subscri|metadata|stood|stops",
        affected=[feed, *members], never=[told.accusing(steady.client_id), told.accusing(feed.client_id)], any=[who],
    )  # fmt: skip
    it.truth["affected"]["clients"].append(who)
