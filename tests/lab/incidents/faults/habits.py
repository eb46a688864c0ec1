"""Members with bad habits: heartbeats that do not come, consumers that are forgotten, patterns that take too much."""

from __future__ import annotations

import re

from tests.lab.incidents import told
from tests.lab.incidents.catalogue import fault
from tests.lab.incidents.faults import programs
from tests.lab.incidents.faults.silence import NOT_READ
from tests.lab.incidents.incident import Incident

THROWN_OUT = (
    r"session|heartbeat|thrown out|expel|expire|evict|remov|kick|lost its|time-?out|rejoin|joins? again|again|rebalanc"
    r"|UNKNOWN_MEMBER|unknown member|\b25\b|fenced|stood still|silent|blocked|busy"
)


@fault()
def blocked_event_loop(it: Incident) -> None:
    """A handler blocks the event loop for nine seconds now and then: heartbeats of a six seconds' session stop."""
    (topic,) = it.topics(4)
    group = it.world.names.group()
    it.begin()
    feed = it.sender(topic, "rate=60")
    good = it.add(programs.aiokafka(it, "work", f"topics={topic}", f"group={group}", "session_ms=6000"), "aiokafka",
                  group=group, topics=(topic,))  # fmt: skip
    good.process.wait_for_event("session", timeout_s=40)
    bad = it.add(
        programs.aiokafka_habit(it, "blocks", f"topics={topic}", f"group={group}", "session_ms=6000",
                                "block_after=250", "block_s=9"),
        "aiokafka", group=group, topics=(topic,),
    )  # fmt: skip
    bad.process.wait_for_event("blocks", timeout_s=60)
    it.from_now()
    bad.process.wait_for_event("blocks", 4, timeout_s=120)
    it.seconds(3, 4)
    it.is_told(
        "a member's handler blocks its heartbeats for longer than its session timeout", bad, [told.client(bad)],
        THROWN_OUT, affected=[feed, bad, good], never=[told.accusing(good.client_id)],
    )  # fmt: skip


@fault(libraries=("librdkafka",))
def heartbeats_rarer_than_session(it: Incident) -> None:
    """heartbeat.interval.ms=9000 and session.timeout.ms=6000: a member is thrown out before its next heartbeat."""
    (topic,) = it.topics(4)
    group = it.world.names.group()
    it.begin()
    feed = it.sender(topic, "rate=40")
    good = it.member(group, [topic], "librdkafka", protocol="classic")
    it.seconds(2, 3)
    it.from_now()
    bad = it.member(group, [topic], "librdkafka", protocol="classic", settings=("heartbeat.interval.ms=9000",))
    it.seconds(48, 54)
    it.is_told(
        "a member's heartbeats are rarer than its session timeout", bad, [told.client(bad)], THROWN_OUT,
        affected=[feed, bad, good], never=[told.accusing(good.client_id)],
    )  # fmt: skip


@fault()
def forgotten_consumers(it: Incident) -> None:
    """A service makes a new consumer at each change of its settings and forgets the old: they stay members."""
    (topic,) = it.topics(12)
    group = it.world.names.group()
    it.begin()
    feed = it.sender(topic, "rate=60")
    other = it.member(it.world.names.group(), [topic], "librdkafka", protocol="classic")
    it.from_now()
    bad = it.add(
        programs.aiokafka_habit(it, "forgets", f"topics={topic}", f"group={group}", "every_s=7", "most=4"),
        "aiokafka", group=group, topics=(topic,),
    )  # fmt: skip
    bad.process.wait_for_event("new", 4, timeout_s=60)
    it.seconds(22, 26)
    it.is_told(
        "consumers that a service has forgotten keep partitions that nobody reads", bad,
        [told.any_of(told.client(bad), told.name(group))],
        rf"{NOT_READ}|members?|consumers|leak|grow|no fetch|fetch|stuck|stalled|stood|idle|paused|forgot",
        affected=[feed, bad], never=[told.client(other)],
    )  # fmt: skip


@fault(libraries=("librdkafka",))
def no_offsets_and_reset_none(it: Incident) -> None:
    """auto.offset.reset=error and a group without offsets: the application fails in order, and is started again."""
    (topic,) = it.topics(3)
    group = it.world.names.group()
    it.begin()
    feed = it.sender(topic, "rate=40")
    good = it.member(it.world.names.group(), [topic], "sarama")
    it.seconds(3, 4)
    it.from_now()
    bad = it.add(
        programs.chore(it, "starts_again", f"topics={topic}", f"group.id={group}", "auto.offset.reset=error",
                       "pause_s=3", "session.timeout.ms=6000"),
        "librdkafka", group=group, topics=(topic,),
    )  # fmt: skip
    bad.process.wait_for_event("fails", 6, timeout_s=90)
    it.seconds(2, 3)
    it.is_told(
        "a group has no offsets and may not begin anywhere: its member ends and starts again", bad,
        [told.any_of(told.client(bad), told.name(group))],
        r"offset|reset|start|restart|join|leav|left|again|crash|short|dies|ends|loop", affected=[feed, bad],
        never=[told.client(good)],
    )  # fmt: skip


@fault(libraries=("librdkafka",))
def pattern_takes_new_topic(it: Incident) -> None:
    """A group subscribes to a pattern; a loud topic for tests fits it, and the group falls behind on all."""
    base = it.world.names.topic()
    own, loud, group = f"{base}-events", f"{base}-debug", it.world.names.group()
    it.operate("create", f"topics={own}:3", "copies=1")
    it.begin()
    feed = it.sender(own, "rate=40")
    member = it.add(
        programs.chore(it, "reads_pattern", f"pattern=^{re.escape(base)}-.*", f"group.id={group}", "handle_ms=12",
                       "topic.metadata.refresh.interval.ms=2000", "session.timeout.ms=10000"),
        "librdkafka", group=group, topics=(own, loud),
    )  # fmt: skip
    member.process.wait_for_event("session", timeout_s=40)
    it.seconds(10, 12)
    it.from_now()
    it.operate("create", f"topics={loud}:3", "copies=1", client_id="debug-setup")
    it.seconds(1, 2)
    test = it.sender(loud, "rate=300")
    member.process.wait_for_event("session", 2, timeout_s=40)
    it.seconds(26, 30)
    it.is_told(
        "a pattern takes in a loud new topic: the group falls behind on its own", member,
        [told.any_of(told.client(member), told.name(group), told.name(loud))],
        r"subscri|pattern|new topic|debug|behind|lag|slow|creat|assign|late", affected=[feed, test, member],
        topic=[own, loud],
    )  # fmt: skip
    operator = {"client_id": "debug-setup", "address": it.world.hosts["ops"].address}
    it.truth["affected"]["clients"].append(operator)  # it made the topic: to say so is true


@fault(libraries=("librdkafka",))
def reads_uncommitted(it: Incident) -> None:
    """Half of a topic's transactions are aborted; one group reads with isolation.level=read_uncommitted: those, too."""
    (topic,) = it.topics(3)
    it.begin()
    writer = it.add(
        programs.chore(it, "half_aborted", f"topic={topic}", f"transactional.id={it.world.names.client()}-tx"),
        "librdkafka", topics=(topic,),
    )  # fmt: skip
    writer.process.wait_for_event("session", timeout_s=40)
    good = it.member(it.world.names.group(), [topic], "librdkafka", protocol="classic", read_committed=True)
    it.seconds(3, 4)
    it.from_now()
    group = it.world.names.group()
    bad = it.member(group, [topic], "librdkafka", protocol="classic", settings=("isolation.level=read_uncommitted",))
    it.seconds(22, 26)
    it.is_told(
        "a group reads records of aborted transactions", bad, [told.any_of(told.client(bad), told.name(group))],
        r"uncommitted|isolation|abort|not committed|transaction", affected=[writer, bad], topic=topic,
        never=[told.accusing(good.client_id)],
    )  # fmt: skip


@fault(libraries=("librdkafka",))
def cleanup_of_live_group(it: Incident) -> None:
    """A job removes groups that seem unused, and tries a live one again and again: NON_EMPTY_GROUP (68)."""
    (topic,) = it.topics(3)
    group = it.world.names.group()
    it.begin()
    feed = it.sender(topic, "rate=30")
    member = it.member(group, [topic], it.library("franz", "java", "sarama"), protocol="classic", session_ms=10_000)
    it.seconds(4, 5)
    it.from_now()
    bad = it.add(programs.chore(it, "deletes_group", f"group={group}", "every_s=3"), "librdkafka")
    bad.process.wait_for_event("refused", 7, timeout_s=60)
    it.is_told(
        "a job tries to delete a group that is in use", bad, [told.any_of(told.client(bad), told.name(group))],
        r"delet|remov|NON_EMPTY|not empty|\b68\b|refus|reject", affected=[bad, member],
        never=[told.client(feed), told.accusing(member.client_id)], group=group,
    )  # fmt: skip
