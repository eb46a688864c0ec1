"""What producers write otherwise than others of their topic: partitions, formats, keys, sizes, ages, amounts."""

from __future__ import annotations

from tests.lab.incidents import told
from tests.lab.incidents.catalogue import fault
from tests.lab.incidents.faults import programs
from tests.lab.incidents.faults.ended import Other
from tests.lab.incidents.faults.nodes import CHECKED_EACH_SECOND, LOST
from tests.lab.incidents.incident import Incident


@fault(libraries=("librdkafka",))
def keys_in_two_partitioners(it: Incident) -> None:
    """Two services write the same keys, one with murmur2, one with CRC32: a key's records lie in two partitions."""
    (topic,) = it.topics(6)
    it.begin()
    first = it.add(programs.chore(it, "writes", f"topic={topic}", "rate=25", "partitioner=murmur2_random"),
                   "librdkafka", topics=(topic,))  # fmt: skip
    member = it.member(it.world.names.group(), [topic])
    it.seconds(5, 6)
    it.from_now()
    second = it.add(programs.chore(it, "writes", f"topic={topic}", "rate=25", "partitioner=consistent_random"),
                    "librdkafka", topics=(topic,))  # fmt: skip
    second.process.wait_for_event("session")
    it.seconds(24, 28)
    it.is_told(
        "two producers spread the same keys over the partitions in different ways", {"topic": topic},
        [told.any_of(told.name(topic), told.client(first), told.client(second))],
        r"partitioner|same keys?|keys? (?:\S+ ){0,6}(?:partitions|in two|different)|hash|murmur|crc|ordering"
        r"|out of order|different partitions|more than one partition|two partitions|several partitions",
        affected=[first, second, member], any=[first.identity(), second.identity()],
    )  # fmt: skip


@fault(libraries=("librdkafka",))
def plain_json_among_framed(it: Incident) -> None:
    """One of three producers is deployed without the serialiser of schemas: JSON among Avro with an id."""
    (topic,) = it.topics(3)
    it.begin()
    good = [
        it.add(programs.chore(it, "writes", f"topic={topic}", "rate=20", "form=framed"), "librdkafka", topics=(topic,))
        for _ in range(2)
    ]
    before = it.add(programs.chore(it, "writes", f"topic={topic}", "rate=20", "form=framed"), "librdkafka",
                    topics=(topic,))  # fmt: skip
    member = it.member(it.world.names.group(), [topic], "franz")
    it.seconds(9, 11)
    before.process.terminate()
    it.from_now()
    bad = it.add(programs.chore(it, "writes", f"topic={topic}", "rate=20", "form=json"), "librdkafka",
                 topics=(topic,), host=before.host, client_id=before.client_id)  # fmt: skip
    it.seconds(18, 22)
    it.is_told(
        "a producer writes JSON to a topic of records with a schema's id", bad, [told.client(bad)],
        r"format|schema|JSON|Avro|magic|serial|shape|content|different|unlike|other than|looks like|encod|payload"
        r"|begins? with|first byte",
        affected=[bad, member], never=[told.accusing(*(one.client_id for one in good))], topic=topic,
    )  # fmt: skip


@fault(libraries=("librdkafka",))
def keys_lost_by_deployment(it: Incident) -> None:
    """A producer is deployed, and its records have no keys any more: what belongs together is spread."""
    (topic,) = it.topics(6)
    it.begin()
    member = it.member(it.world.names.group(), [topic], it.library("franz", "java", "librdkafka"))
    good = it.add(programs.chore(it, "writes", f"topic={topic}", "rate=15"), "librdkafka", topics=(topic,))
    bad = it.add(programs.chore(it, "writes", f"topic={topic}", "rate=30", "keys_for_s=14"), "librdkafka",
                 topics=(topic,))  # fmt: skip
    bad.process.wait_for_event("turned", timeout_s=40)
    it.from_now()
    it.seconds(20, 24)
    it.is_told(
        "a producer writes without the keys that it wrote with before", bad, [told.client(bad)],
        r"\bkeys?\b|keyless|unkeyed", affected=[bad, member], never=[told.accusing(good.client_id)], topic=topic,
    )  # fmt: skip


@fault(libraries=("librdkafka",))
def records_grow(it: Incident) -> None:
    """A service writes its whole session with each record, and the session never ends: records grow to 200 KB."""
    (topic,) = it.topics(2)
    it.begin()
    good = it.add(programs.chore(it, "writes", f"topic={topic}", "rate=10", "size=300"), "librdkafka", topics=(topic,))
    bad = it.add(
        programs.chore(it, "writes", f"topic={topic}", "rate=2", "size=300", "grows=2500", "grows_after_s=4",
                       "message.max.bytes=2000000"),
        "librdkafka", topics=(topic,),
    )  # fmt: skip
    member = it.member(it.world.names.group(), [topic], "librdkafka", protocol="classic")
    bad.process.wait_for_event("turned", timeout_s=40)
    it.from_now()
    it.seconds(42, 46)
    it.is_told(
        "a producer's records grow without end", bad, [told.client(bad)],
        r"grow|grew|larger|large|size|bytes|[kKM]i?B\b|bigger", affected=[bad, member],
        never=[told.accusing(good.client_id)], topic=topic,
    )  # fmt: skip


@fault(libraries=("librdkafka",))
def linger_of_seconds(it: Incident) -> None:
    """linger.ms=6000 where 6 was meant: records of a quiet producer reach the broker seconds after their time."""
    (topic,) = it.topics(2)
    it.begin()
    good = it.add(programs.chore(it, "writes", f"topic={topic}", "rate=6"), "librdkafka", topics=(topic,))
    member = it.member(it.world.names.group(), [topic])
    it.seconds(2, 3)
    it.from_now()
    bad = it.add(programs.chore(it, "writes", f"topic={topic}", "rate=6", "linger.ms=6000"), "librdkafka",
                 topics=(topic,))  # fmt: skip
    it.seconds(36, 40)
    it.is_told(
        "a producer keeps its records for six seconds before it sends them", bad, [told.client(bad)],
        r"linger|late|after (?:their|its) time|delay|old|wait|held|holds|keeps|behind|age|seconds before|clock",
        affected=[bad, member], never=[told.accusing(good.client_id)], least="info", topic=topic,
    )  # fmt: skip


@fault(libraries=("kafka_python",))
def load_test_in_production(it: Incident) -> None:
    """A load test is set to production: it writes thirty times as much as all others, and the readers fall behind."""
    (topic,) = it.topics(3)
    group = it.world.names.group()
    it.begin()
    feeds = [it.sender(topic, "rate=10") for _ in range(2)]
    member = it.member(group, [topic], "kafka_python", handle_ms=15)
    it.seconds(12, 14)
    it.from_now()
    bad = it.sender(topic, "rate=700", "linger.ms=20")
    it.seconds(24, 28)
    it.is_told(
        "a new producer writes thirty times as much as all others to a topic", bad, [told.client(bad)],
        r"a second|/s\b|per second|rate|most of|times (?:as|more|the)|flood|share|burst|%|per cent"
        r"|more than|volume|load",
        affected=[bad, member], topic=topic, never=[told.accusing(*(one.client_id for one in feeds))],
    )  # fmt: skip


@fault(libraries=("kafka_python",))
def history_deleted_at_once(it: Incident) -> None:
    """An import writes records with their times of last month to a topic that keeps an hour: deleted unread."""
    other, group = Other(it, *CHECKED_EACH_SECOND, topic_settings="retention.ms:3600000"), it.world.names.group()
    other.begin()
    member = it.member(group, [other.topic], "kafka_python", handle_ms=120, fetch_bytes=3000,
                       settings=("max_poll_records=5",), broker=other.broker)  # fmt: skip
    it.seconds(2, 3)
    it.from_now()
    bad = it.add(
        programs.librdkafka(it, "stamp", f"topic={other.topic}", "rate=90", f"shift_s={-30 * 86400}", "size=200",
                            broker=other.broker),
        "librdkafka", topics=(other.topic,),
    )  # fmt: skip
    it.seconds(26, 30)
    it.is_told(
        "records with times of last month are deleted before their reader comes to them", bad,
        [told.any_of(told.client(bad), told.name(other.topic), told.name(group), told.client(member))],
        rf"{LOST}|\bold|timestamp|record times?|days|month|clock|years", affected=[bad, member], topic=other.topic,
        never=[r"(?i)an operator"],
    )  # fmt: skip
