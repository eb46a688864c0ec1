"""Settings that a broker refuses, or that it takes although they are wrong."""

from __future__ import annotations

from tests.lab import clients
from tests.lab.incidents import told
from tests.lab.incidents.catalogue import fault
from tests.lab.incidents.faults import programs
from tests.lab.incidents.faults.ended import Other
from tests.lab.incidents.incident import Incident


@fault(libraries=("franz", "kafka_python"))
def session_timeout_below_minimum(it: Incident) -> None:
    """session.timeout.ms=2000 is below what the broker takes: INVALID_SESSION_TIMEOUT (26), again and again."""
    (topic,) = it.topics(2)
    group, library = it.world.names.group(), it.library("franz", "kafka_python")
    it.begin()
    feed = it.sender(topic, "rate=20")
    good = it.member(it.world.names.group(), [topic], "librdkafka")
    it.seconds(2, 3)
    it.from_now()
    more = {"settings": ("heartbeat_interval_ms=500",)} if library == "kafka_python" else {}
    bad = it.member(group, [topic], library, session_ms=2000, protocol="classic", wait=False, **more)  # type: ignore[arg-type]
    it.seconds(16, 19)
    it.is_told(
        "a session timeout is shorter than the broker takes: the member never joins", bad,
        [told.any_of(told.client(bad), told.name(group))],
        r"session[._ ]time-?out|INVALID_SESSION_TIMEOUT|\b26\b|refus|reject", affected=[feed, bad],
        never=[told.client(good)],
    )  # fmt: skip


@fault(libraries=("librdkafka",))
def assignor_not_on_server(it: Incident) -> None:
    """group.remote.assignor names one that the broker does not have: UNSUPPORTED_ASSIGNOR (112)."""
    (topic,) = it.topics(3)
    group = it.world.names.group()
    it.begin()
    feed = it.sender(topic, "rate=20")
    good = it.member(it.world.names.group(), [topic], "librdkafka", protocol="consumer")
    it.from_now()
    bad = it.member(group, [topic], "librdkafka", protocol="consumer", wait=False,
                    settings=("group.remote.assignor=cooperative-sticky",))  # fmt: skip
    it.seconds(15, 18)
    it.is_told(
        "a member wants an assignor that the broker does not have", bad,
        [told.any_of(told.client(bad), told.name(group))], r"assignor|UNSUPPORTED_ASSIGNOR|\b112\b|refus|reject",
        affected=[feed, bad], never=[told.client(good)],
    )  # fmt: skip


@fault(libraries=("librdkafka", "java"))
def protocols_mixed_in_group(it: Incident) -> None:
    """group.consumer.migration.policy=disabled, and one member of a classic group comes with the consumer protocol."""
    other = Other(it, "group.consumer.migration.policy=disabled", partitions=4)
    group, library = it.world.names.group(), it.library("java", "librdkafka")
    other.begin()
    feed = it.sender(other.topic, "rate=20", broker=other.broker)
    how = {"broker": other.broker, "session_ms": 10_000}
    good = [it.member(group, [other.topic], library, protocol="classic", **how) for _ in range(2)]  # type: ignore[arg-type]
    it.seconds(3, 5)
    it.from_now()
    bad = it.member(group, [other.topic], library, protocol="consumer", wait=False, **how)  # type: ignore[arg-type]
    it.seconds(18, 22)
    it.is_told(
        "a member with the consumer protocol cannot join a classic group", bad, [told.client(bad)],
        r"protocol|classic|GROUP_ID_NOT_FOUND|INCONSISTENT|\b69\b|\b23\b|refus|reject|not (?:let|allow|join)",
        affected=[bad, *good], never=[told.client(feed)], group=group,
    )  # fmt: skip


@fault(libraries=("librdkafka",))
def more_copies_than_brokers(it: Incident) -> None:
    """A deployment makes its topic with three replicas where there is one broker: refused (38) every two seconds."""
    (topic,) = it.topics(2)
    it.begin()
    feed = it.sender(topic, "rate=20")
    it.from_now()
    name = it.world.names.topic()
    bad = it.add(programs.habit(it, "makes_again", f"topic={name}", "copies=3", "every_s=2"), "librdkafka")
    it.seconds(22, 26)
    it.is_told(
        "a topic with three replicas cannot be made on one broker", bad,
        [told.any_of(told.client(bad), told.name(name))],
        r"INVALID_REPLICATION_FACTOR|replication|replicas|\b38\b|refus|reject|CreateTopics", affected=[bad],
        never=[told.client(feed)], topic=name,
    )  # fmt: skip


@fault(libraries=("kafka_python",))
def note_of_commit_too_long(it: Incident) -> None:
    """A member keeps its state in the note of its commits until it is too long: OFFSET_METADATA_TOO_LARGE (12)."""
    (topic,) = it.topics(2)
    group = it.world.names.group()
    it.begin()
    feed = it.sender(topic, "rate=30")
    good = it.member(it.world.names.group(), [topic], "kafka_python")
    it.from_now()
    bad = it.add(
        programs.kafka_python_habit(it, "notes_with_commits", f"group={group}", f"topics={topic}", "note=6000",
                                    "heartbeat_interval_ms=1000"),
        "kafka_python", group=group, topics=(topic,),
    )  # fmt: skip
    bad.process.wait_for_event("session")
    it.seconds(22, 25)
    it.is_told(
        "commits carry a note that is too long and are refused", bad, [told.any_of(told.client(bad), told.name(group))],
        r"metadata|OFFSET_METADATA_TOO_LARGE|\b12\b|refus|reject|commit", affected=[feed, bad],
        never=[told.client(good)],
    )  # fmt: skip


@fault(libraries=("librdkafka",))
def seconds_for_milliseconds(it: Incident) -> None:
    """A new service gives record times in seconds where Kafka wants milliseconds: its records are of January 1970."""
    (topic,) = it.topics(3)
    it.begin()
    good = it.sender(topic, "rate=20")
    member = it.member(it.world.names.group(), [topic])
    it.seconds(5, 7)
    it.from_now()
    bad = it.add(programs.habit(it, "seconds_for_ms", f"topic={topic}", "rate=12"), "librdkafka", topics=(topic,))
    bad.process.wait_for_event("session")
    it.seconds(18, 22)
    it.is_told(
        "record times are in seconds instead of milliseconds", bad, [told.client(bad)],
        r"1970|timestamp|record times?|clock|years|seconds instead|unit|behind", affected=[bad, member],
        never=[told.client(good)], topic=topic,
    )  # fmt: skip


@fault(libraries=("librdkafka",))
def reader_throttled(it: Incident) -> None:
    """A quota of consumer_byte_rate is far below what a topic gets: its reader is throttled and falls behind."""
    (topic,) = it.topics(2)
    client_id, group = it.world.names.client(), it.world.names.group()
    quota = clients.java_command("quota", f"bootstrap.servers={it.world.endpoint}", "client.id=setup",
                                 f"entity={client_id}", "limit=consumer_byte_rate", "rate=15000")  # fmt: skip
    it.start("quota", "ops", quota).finish(60)
    it.begin()
    feed = it.sender(topic, "rate=100", "size=600")
    good = it.member(it.world.names.group(), [topic], "franz")
    it.from_now()
    bad = it.member(group, [topic], "librdkafka", client_id=client_id, protocol="classic", session_ms=20_000)
    it.seconds(26, 30)
    it.is_told(
        "a quota throttles a reader: it falls behind", bad, [told.any_of(told.client(bad), told.name(group))],
        r"throttl|quota", affected=[feed, bad], never=[told.client(good)],
    )  # fmt: skip


@fault(libraries=("java",))
def fetch_waits_longer_than_client(it: Incident) -> None:
    """fetch.max.wait.ms=6000 and request.timeout.ms=2000 on a quiet topic: the reader hangs up on each fetch."""
    (topic,) = it.topics(2)
    group = it.world.names.group()
    it.begin()
    feed = it.add(programs.habit(it, "bursts", f"topic={topic}", "lines=1", "every_s=11"), "librdkafka",
                  topics=(topic,))  # fmt: skip
    good = it.member(it.world.names.group(), [topic], "java", protocol="classic", session_ms=10_000)
    it.from_now()
    bad = it.member(group, [topic], "java", protocol="classic", session_ms=10_000,
                    settings=("fetch.max.wait.ms=6000", "request.timeout.ms=2000"))  # fmt: skip
    it.seconds(36, 42)
    it.is_told(
        "a reader's request timeout is shorter than its own fetch.max.wait.ms", bad,
        [told.any_of(told.client(bad), told.name(group))],
        r"time-?out|gave up|gives up|fetch|connect|clos|hang|unanswered|without an answer"
        r"|after (?:about )?\d+(?:\.\d+)? s",
        affected=[bad],
        never=[told.client(good), told.client(feed), r"(?i)(?:broker|server) (?:was frozen|stood still)"],
    )  # fmt: skip
