"""Records that come twice, are taken back, or come out as nothing: copies of a job, aborts, nulls, dead letters."""

from __future__ import annotations

from tests.lab.incidents import told
from tests.lab.incidents.catalogue import fault
from tests.lab.incidents.faults import programs
from tests.lab.incidents.incident import Incident

TWICE = r"twice|again|duplicat|same (?:records|values|content|batch)|identical|both|copies|second time|repeat"


@fault(libraries=("librdkafka",))
def blue_and_green_at_once(it: Incident) -> None:
    """The old and the new deployment of a copier run at once, each in a group of its own: all is written twice."""
    source, target = it.topics(3, 3)
    base = it.world.names.group()
    it.begin()
    feed = it.sender(source, "rate=25")
    blue = it.add(programs.librdkafka(it, "copy", f"group.id={base}-blue", f"topics={source}", f"target={target}"),
                  "librdkafka", group=f"{base}-blue", topics=(source, target))  # fmt: skip
    reader = it.member(it.world.names.group(), [target], "franz")
    it.seconds(10, 12)
    it.from_now()
    green = it.add(
        programs.librdkafka(it, "copy", f"group.id={base}-green", f"topics={source}", f"target={target}",
                            "auto.offset.reset=latest"),
        "librdkafka", group=f"{base}-green", topics=(source, target),
    )  # fmt: skip
    it.seconds(24, 28)
    it.is_told(
        "two copies of a service write the same records to a topic", {"topic": target},
        [told.name(target), told.any_of(told.client(green), told.client(blue), rf"{base}-(?:blue|green)")], TWICE,
        affected=[feed, blue, green, reader], topic=target, any=[blue.identity(), green.identity()],
    )  # fmt: skip


@fault(libraries=("librdkafka",))
def import_run_twice(it: Incident) -> None:
    """An import is run a second time from its first line on: each of its records is in the log twice."""
    (topic,) = it.topics(3)
    it.begin()
    feed = it.sender(topic, "rate=10")
    member = it.member(it.world.names.group(), [topic])
    it.seconds(2, 3)
    bad = it.add(programs.habit(it, "imports", f"topic={topic}", "lines=900", "runs=2", "pause_s=12"), "librdkafka",
                 topics=(topic,))  # fmt: skip
    bad.process.wait_for_event("run", 2, timeout_s=60)
    it.from_now()
    bad.process.wait_for_event("done", timeout_s=60)
    it.is_told(
        "an import wrote all its records a second time", bad, [told.any_of(told.client(bad), told.name(topic))], TWICE,
        affected=[bad, member], never=[told.client(feed)], topic=topic,
    )  # fmt: skip


@fault(libraries=("librdkafka",))
def nulls_for_all_keys(it: Incident) -> None:
    """A clean-up with a wrong filter writes a null for each key of a compacted topic: the table becomes empty."""
    (topic,) = it.topics(2, settings="cleanup.policy:compact")
    it.begin()
    member = it.member(it.world.names.group(), [topic])
    bad = it.add(programs.habit(it, "tombstones", f"topic={topic}", "keys=300", "rate=60", "after_s=12"), "librdkafka",
                 topics=(topic,))  # fmt: skip
    bad.process.wait_for_event("nulls", timeout_s=40)
    it.from_now()
    it.seconds(14, 17)
    it.is_told(
        "a producer writes nulls for all keys of a compacted topic", bad,
        [told.any_of(told.client(bad), told.name(topic))],
        r"null|tombstone|delet|empty value|without a value|no value", affected=[bad, member], topic=topic,
    )  # fmt: skip


@fault(libraries=("librdkafka",))
def all_to_dead_letters(it: Incident) -> None:
    """After a change of the format an application reads as before, and writes each record to its dead letters."""
    source, dead = it.topics(3)[0], ""
    dead = f"{source}.dlq"
    it.operate("create", f"topics={dead}:3", "copies=1")
    group = it.world.names.group()
    it.begin()
    feed = it.sender(source, "rate=30")
    other = it.member(it.world.names.group(), [source], "librdkafka", protocol="classic")
    bad = it.add(programs.habit(it, "sorts_out", f"topics={source}", f"target={dead}", f"group.id={group}",
                                "fails_after=300"), "librdkafka", group=group, topics=(source, dead))  # fmt: skip
    bad.process.wait_for_event("fails", timeout_s=40)
    it.from_now()
    it.seconds(20, 24)
    it.is_told(
        "an application writes all it reads to its dead letters", bad,
        [told.any_of(told.client(bad), told.name(dead), told.name(group))],
        r"dead|dlq|fail|exception|error|copies|copied|all (?:records|it reads)|same records|each record",
        affected=[feed, bad], never=[told.client(other)], topic=dead,
    )  # fmt: skip


@fault(libraries=("kafka_python",), backdrop_restart=False)
def one_record_kills_all(it: Incident) -> None:
    """Three members of a group die one after the other, each at the record that killed the one before."""
    (topic,) = it.topics(3)
    group = it.world.names.group()
    it.begin()
    feed = it.sender(topic, "rate=30", f"poison_at={it.rng.randrange(280, 360)}")
    members = [
        it.add(
            programs.kafka_python_habit(it, "dies_at", f"group={group}", f"topics={topic}", "session_timeout_ms=6000",
                                        "heartbeat_interval_ms=1000"),
            "kafka_python", group=group, topics=(topic,),
        )
        for _ in range(3)
    ]  # fmt: skip
    for one in members:
        one.process.wait_for_event("session", timeout_s=40)
    it.from_now()
    it.seconds(42, 46)
    first = next(event for one in members for event in one.process.named_events("poison"))
    it.is_told(
        "members die one after the other at the same record", {"group": group},
        [told.any_of(told.name(group), told.partition(topic, first["partition"]))],
        r"die[sd]?|dead|gone|ended|crash|kill|same (?:record|offset)|poison|one after|without a goodbye|session"
        r"|vanish|disappear|closed|no longer|nobody|no member|stuck|again",
        affected=[feed, *members], topic=topic, partition=first["partition"], offset=first["offset"],
    )  # fmt: skip


@fault(libraries=("librdkafka",))
def every_transaction_aborted(it: Incident) -> None:
    """The last step of each transaction fails since a deployment: it is aborted, readers get nothing."""
    (topic,) = it.topics(2)
    name = f"{it.world.names.client()}-tx"
    it.begin()
    member = it.member(it.world.names.group(), [topic], "java", read_committed=True)
    bad = it.add(programs.habit(it, "aborts", f"transactional.id={name}", f"topic={topic}", "good=12"), "librdkafka",
                 topics=(topic,))  # fmt: skip
    bad.process.wait_for_event("session", timeout_s=40)
    it.seconds(7, 8)
    it.from_now()
    it.seconds(22, 26)
    it.is_told(
        "each transaction is aborted", bad, [told.any_of(told.client(bad), told.name(name), told.name(topic))],
        r"abort|rolled back", affected=[bad, member], topic=topic, transactional_id=name,
    )  # fmt: skip


@fault(libraries=("librdkafka",))
def work_longer_than_transaction(it: Incident) -> None:
    """transaction.timeout.ms=3000, and the work in a transaction takes nine seconds: the broker ends it."""
    (topic,) = it.topics(1)
    name = f"{it.world.names.client()}-tx"
    it.begin()
    feed = it.sender(topic, "rate=10")
    member = it.member(it.world.names.group(), [topic], "librdkafka", read_committed=True)
    it.from_now()
    bad = it.add(programs.habit(it, "too_slow", f"transactional.id={name}", f"topic={topic}",
                                "transaction.timeout.ms=3000", "work_s=9"), "librdkafka", topics=(topic,))  # fmt: skip
    bad.process.wait_for_event("session", timeout_s=40)
    it.seconds(40, 44)
    it.is_told(
        "the work in a transaction takes longer than transaction.timeout.ms", bad,
        [told.any_of(told.client(bad), told.name(name))],
        r"time-?out|too long|longer|aborted by the|fenc|INVALID_PRODUCER_EPOCH|INVALID_TXN_STATE|FENCED|expired"
        r"|\b(?:47|48|90)\b",
        affected=[bad, member, feed], topic=topic, transactional_id=name,
        never=[r"(?i)two (?:clients|hosts|producers)"],
    )  # fmt: skip
