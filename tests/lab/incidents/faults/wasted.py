"""Requests and connections without use: polling, connections never closed, topics made to be deleted."""

from __future__ import annotations

from tests.lab.incidents import told
from tests.lab.incidents.catalogue import fault
from tests.lab.incidents.faults import programs
from tests.lab.incidents.incident import Incident

MANY = r"a second|per second|/s\b|many|often|again|repeat|each|every|times|requests|rate|without (?:pause|wait)|\d+ ms"


@fault(libraries=("librdkafka",))
def empty_fetches_without_wait(it: Incident) -> None:
    """fetch.wait.max.ms=0 on a topic that gets a record now and then: more than a hundred empty fetches a second."""
    (topic,) = it.topics(2)
    group = it.world.names.group()
    it.begin()
    feed = it.sender(topic, "rate=1", "rounds=1")
    good = it.member(it.world.names.group(), [topic], "franz")
    it.seconds(2, 3)
    it.from_now()
    no_wait = ("fetch.wait.max.ms=0", "fetch.error.backoff.ms=0", "fetch.queue.backoff.ms=0")
    bad = it.member(group, [topic], "librdkafka", protocol="classic", settings=no_wait)
    it.seconds(16, 18)
    it.is_told(
        "a reader does not let the broker wait: it fetches all the time and gets nothing", bad,
        [told.any_of(told.client(bad), told.name(group)), r"fetch|poll"],
        rf"{MANY}|empty|nothing|no records|max[._]wait|wait\.max|busy", affected=[bad],
        never=[told.client(good), told.client(feed)],
    )  # fmt: skip


@fault(libraries=("kafka_python",))
def heartbeats_far_too_often(it: Incident) -> None:
    """heartbeat_interval_ms=10 where 3000 was meant: the members of a group send dozens of heartbeats a second each."""
    (topic,) = it.topics(6)
    group = it.world.names.group()
    it.begin()
    feed = it.sender(topic, "rate=20")
    other = it.member(it.world.names.group(), [topic], "librdkafka", protocol="classic")
    it.from_now()
    hosts = [it.new_host(), it.new_host()]
    members = [
        it.member(group, [topic], "kafka_python", host=hosts[number % 2], settings=("heartbeat_interval_ms=10",))
        for number in range(3)
    ]
    it.seconds(16, 19)
    it.is_told(
        "members of a group send dozens of heartbeats a second", members[0].identity(),
        [told.any_of(told.name(group), *(told.client(one) for one in members)), "heartbeat"], MANY,
        affected=members, never=[told.client(other), told.client(feed)], group=group,
        any=[one.identity() for one in members],
    )  # fmt: skip


@fault(libraries=("librdkafka",))
def whole_topic_for_each_request(it: Incident) -> None:
    """A service answers each request by reading a whole topic from its beginning, without a group."""
    (topic,) = it.topics(2)
    feed = it.sender(topic, "rate=300", "size=200")
    it.seconds(7, 8)
    it.begin()
    member = it.member(it.world.names.group(), [topic], "franz")
    it.from_now()
    bad = it.add(programs.habit(it, "looks_up", f"topic={topic}", "partitions=2", "every_s=3"), "librdkafka",
                 topics=(topic,))  # fmt: skip
    bad.process.wait_for_event("looked", 6, timeout_s=60)
    it.is_told(
        "a client reads a whole topic from its beginning every three seconds", bad, [told.client(bad)],
        r"again|beginning|whole|same (?:records|offsets|messages)|twice|times|repeat|from offset 0|more than once",
        affected=[feed, bad], never=[told.client(member)], topic=topic,
    )  # fmt: skip


@fault(libraries=("librdkafka",))
def topics_made_and_deleted(it: Incident) -> None:
    """A test suite runs against the shared cluster: it makes a topic and deletes it, four times a second."""
    (topic,) = it.topics(2)
    it.begin()
    feed = it.sender(topic, "rate=20")
    member = it.member(it.world.names.group(), [topic], "java")
    it.from_now()
    prefix = it.world.names.topic()
    bad = it.add(programs.habit(it, "makes_and_deletes", f"prefix={prefix}", "every_s=0.2"), "librdkafka")
    bad.process.wait_for_event("session")
    it.seconds(18, 21)
    it.is_told(
        "a client makes and deletes topics all the time", bad, [told.any_of(told.client(bad), rf"{prefix}")],
        r"creat|made|makes|delet", affected=[bad], never=[told.client(feed), told.client(member)],
    )  # fmt: skip


@fault(libraries=("librdkafka",))
def connections_never_closed(it: Incident) -> None:
    """A service makes a producer for each request and never closes one: its connections grow without end."""
    (topic,) = it.topics(2)
    it.begin()
    feed = it.sender(topic, "rate=20")
    member = it.member(it.world.names.group(), [topic], "sarama")
    it.from_now()
    bad = it.add(programs.habit(it, "leaks", f"topic={topic}", "every_s=0.4"), "librdkafka", topics=(topic,))
    bad.process.wait_for_event("session")
    it.seconds(40, 44)
    it.is_told(
        "connections of a client grow and none is closed", bad, [told.client(bad), r"connection|producer"],
        r"grow|open|leak|more and more|never clos|not clos|new connection|each|every|many|at once|\d+ connections",
        affected=[bad], never=[told.client(feed), told.client(member)],
    )  # fmt: skip


@fault(libraries=("librdkafka",), backdrop_restart=False)
def function_joins_for_each_call(it: Incident) -> None:
    """A function without state joins its group for each call and leaves in order; two members are steady."""
    (topic,) = it.topics(4)
    group = it.world.names.group()
    it.begin()
    feed = it.sender(topic, "rate=30")
    how = {"protocol": "classic", "session_ms": 10_000, "assignor": "range"}
    steady = [it.member(group, [topic], "librdkafka", **how) for _ in range(2)]  # type: ignore[arg-type]
    it.seconds(3, 4)
    it.from_now()
    bad = it.add(
        programs.habit(it, "joins_for_each", f"topics={topic}", f"group.id={group}", "for_s=2.5", "pause_s=0.5",
                       "partition.assignment.strategy=range", "session.timeout.ms=10000"),
        "librdkafka", group=group, topics=(topic,),
    )  # fmt: skip
    it.seconds(32, 36)
    it.is_told(
        "a client joins its group and leaves it for each call", bad, [told.client(bad)],
        r"join|leav|left|rebalanc|short|member", affected=[feed, bad, *steady],
        never=[told.accusing(*(one.client_id for one in steady))], group=group,
    )  # fmt: skip
