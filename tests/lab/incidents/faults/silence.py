"""What stops, slows down or goes elsewhere without an error: feeds, groups, handlers, misspelt topics."""

from __future__ import annotations

import time

from tests.lab.incidents import told
from tests.lab.incidents.catalogue import fault
from tests.lab.incidents.faults import programs
from tests.lab.incidents.faults.ended import Other
from tests.lab.incidents.incident import Incident

NOT_READ = (
    r"not read|never|nobody|no member|no one|reads? none|unread|without (?:a )?(?:reader|member)|not (?:been )?"
    r"(?:fetched|consumed|assigned)|empty|behind|lag|left|no longer|stopped|skipped|missed|gap"
)
STOPPED = (
    r"stopped|silent|no (?:more|new|further|records)|nothing|wrote|last|since|ceased|quiet|pause|stood|frozen|idle"
)


@fault(libraries=("librdkafka",))
def feed_goes_silent(it: Incident) -> None:
    """One of three feeds hangs: its process is there, its connections are open, and nothing comes any more."""
    topics = it.topics(2, 2, 2)
    it.begin()
    feeds = [it.sender(topic, "rate=25") for topic in topics]
    member = it.member(it.world.names.group(), topics, "librdkafka", protocol="classic")
    it.seconds(18, 22)
    it.from_now()
    feeds[1].process.freeze()
    it.later(feeds[1].process.thaw)
    it.seconds(44, 50)
    it.is_told(
        "a producer that wrote all the time is silent", feeds[1],
        [told.any_of(told.client(feeds[1]), told.name(topics[1]))],
        STOPPED, affected=[feeds[1], member], topic=topics[1],
        never=[told.accusing(feeds[0].client_id, feeds[2].client_id)],
    )  # fmt: skip


@fault(libraries=("franz", "java", "librdkafka"))
def group_scaled_to_none(it: Incident) -> None:
    """The members of a group are all stopped in order and none is started; its topic is written on."""
    (topic,) = it.topics(3)
    group, library = it.world.names.group(), it.library("franz", "java", "librdkafka")
    it.begin()
    feed = it.sender(topic, "rate=60")
    other = it.member(it.world.names.group(), [topic], "sarama")
    members = [it.member(group, [topic], library, protocol="classic", session_ms=10_000) for _ in range(2)]
    it.seconds(8, 10)
    it.from_now()
    for one in members:
        one.process.terminate()
        it.seconds(0.5, 1)
    it.seconds(34, 40)
    it.is_told(
        "all members of a group have left, its topic is written on", {"group": group},
        [told.any_of(told.name(group), *(told.client(one) for one in members))], NOT_READ, affected=[feed, *members],
        never=[told.client(other)], group=group,
    )  # fmt: skip


@fault(libraries=("librdkafka", "java", "franz"))
def group_renamed_with_latest(it: Incident) -> None:
    """A deployment renames a group; the new one has no offsets and auto.offset.reset=latest: a gap is never read."""
    (topic,) = it.topics(2)
    old, library = it.world.names.group(), it.library("librdkafka", "java", "franz")
    it.begin()
    feed = it.sender(topic, "rate=60")
    before = it.member(old, [topic], library, protocol="classic", reset="latest", session_ms=10_000)
    it.seconds(9, 11)
    it.from_now()
    before.process.terminate()
    it.seconds(8, 10)
    new = f"{old}-v2"
    after = it.member(new, [topic], library, protocol="classic", reset="latest", session_ms=10_000, host=before.host,
                      client_id=before.client_id)  # fmt: skip
    it.seconds(12, 14)
    it.is_told(
        "a renamed group begins at the end: what was written in between is never read", after,
        [told.any_of(told.client(after), rf"(?<![\w.-]){old}")],
        rf"{NOT_READ}|latest|log end|no (?:stored|committed) offset|new group|reset|begins|starts",
        affected=[feed, before, after],
        never=[r"(?i)an operator"],
    )  # fmt: skip


@fault(libraries=("librdkafka",))
def typing_error_makes_topic(it: Incident) -> None:
    """auto.create.topics.enable=true: a new producer writes to a misspelt topic, which is made; nobody reads it."""
    other = Other(it, "auto.create.topics.enable=true")
    other.begin()
    good = other.around()
    it.seconds(4, 5)
    it.from_now()
    wrong = f"{other.topic}s"
    bad = it.sender(wrong, "rate=20", broker=other.broker)
    it.seconds(22, 26)
    it.is_told(
        "a producer's misspelt topic was made by itself: nobody reads it", bad, [told.name(wrong)],
        rf"{NOT_READ}|UNKNOWN_TOPIC|not exist|creat|made|typ|misspel|auto|no consumer|does not know", affected=[bad],
        never=[told.accusing(*(one.client_id for one in good))], topic=wrong, least="info",
    )  # fmt: skip


@fault(libraries=("librdkafka",))
def downstream_slow_for_all(it: Incident) -> None:
    """The database behind a group slows down: from one moment on all three members take thirty times as long."""
    (topic,) = it.topics(6)
    group = it.world.names.group()
    it.begin()
    feed = it.sender(topic, "rate=90")
    other = it.member(it.world.names.group(), [topic], "librdkafka", protocol="classic")
    members = [
        it.add(programs.aiokafka(it, "work", f"topics={topic}", f"group={group}", "handle_ms=2", "slow_after_s=14",
                                 "slow_ms=90"),
               "aiokafka", group=group, topics=(topic,))
        for _ in range(3)
    ]  # fmt: skip
    for one in members:
        one.process.wait_for_event("session", timeout_s=40)
    members[0].process.wait_for_event("slow", timeout_s=30)
    it.from_now()
    it.seconds(36, 42)
    it.is_told(
        "all members of a group became slow at once: it falls behind", {"group": group},
        [told.any_of(told.name(group), *(told.client(one) for one in members))],
        r"behind|lag|slow|longer|late|keep(?:s)? up|handl", affected=[feed, *members], never=[told.client(other)],
        group=group, any=[one.identity() for one in members],
    )  # fmt: skip


@fault(libraries=("java", "librdkafka"))
def pauses_of_a_member(it: Incident) -> None:
    """A member's process stands still for four seconds, again and again: shorter than its session."""
    (topic,) = it.topics(4)
    group, library = it.world.names.group(), it.library("java", "librdkafka")
    it.begin()
    feed = it.sender(topic, "rate=60")
    how = {"protocol": "classic", "session_ms": 15_000}
    bad, good = [it.member(group, [topic], library, **how) for _ in range(2)]  # type: ignore[arg-type]
    it.seconds(5, 6)
    it.from_now()
    for _ in range(6):
        bad.process.freeze()
        time.sleep(4)
        bad.process.thaw()
        it.seconds(2, 3)
    it.is_told(
        "a member stands still for four seconds again and again", bad, [told.client(bad)],
        r"stood still|stands still|froze|paus|stall|silent|no (?:request|fetch|heartbeat)|gap|late|behind|busy|again",
        affected=[feed, bad], never=[told.accusing(good.client_id)],
    )  # fmt: skip


@fault(libraries=("kafka_python",))
def thread_too_busy_to_read(it: Incident) -> None:
    """A reader without a group works for seven seconds between polls: what the broker sent stays in its socket."""
    (topic,) = it.topics(2)
    feed = it.sender(topic, "rate=200", "size=4000")
    it.seconds(8, 9)
    it.begin()
    good = it.member(it.world.names.group(), [topic], "librdkafka", protocol="classic")
    it.from_now()
    bad = it.add(
        programs.kafka_python_habit(it, "busy_thread", f"topic={topic}", "partitions=0,1", "busy_s=7",
                                    "max_partition_fetch_bytes=2000000", "fetch_max_bytes=4000000",
                                    "receive_buffer_bytes=65536"),
        "kafka_python", topics=(topic,),
    )  # fmt: skip
    bad.process.wait_for_event("session")
    it.seconds(30, 34)
    it.is_told(
        "a reader takes nothing out of its socket for seconds", bad, [told.client(bad)],
        r"window|does not read|socket|buffer|slow|stood still|stall|behind|busy|late|seconds", affected=[feed, bad],
        never=[told.client(good)],
    )  # fmt: skip


@fault(world="cluster", libraries=("librdkafka",), backdrop_restart=False)
def bootstrap_at_controller(it: Incident) -> None:
    """bootstrap.servers has the port of the controllers, 9093: the client never gets an answer that it can use."""
    (topic,) = it.topics(3, copies=3)
    it.begin()
    feed = it.sender(topic, "rate=20")
    good = it.member(it.world.names.group(), [topic], "franz", session_ms=20_000)
    it.seconds(2, 3)
    it.from_now()
    place = it.world.server.nodes[1]
    group = it.world.names.group()
    wrong = f"{place.host.address}:9093"
    bad = it.member(group, [topic], "librdkafka", protocol="classic", broker=wrong, wait=False)
    it.seconds(22, 26)
    it.is_told(
        "a client is set to the port of the controllers", bad, [told.any_of(told.client(bad), wrong, r"\b9093\b")],
        r"controller|9093|version|UNSUPPORTED|not (?:support|know)|clos|no answer|without|refus|again|wrong|Metadata",
        affected=[bad], never=[told.client(feed), told.client(good)],
    )  # fmt: skip


@fault(libraries=("librdkafka",))
def thirty_start_at_once(it: Incident) -> None:
    """max.connection.creation.rate=4, and 26 producers start at once: the broker is slow to let them in."""
    other = Other(it, "max.connection.creation.rate=4")
    other.begin()
    good = other.around()
    it.seconds(8, 9)
    it.from_now()
    hosts = [it.new_host() for _ in range(2)]
    herd = [
        it.add(programs.librdkafka(it, "many", f"topic={other.topic}", "producers=13", broker=other.broker),
               "librdkafka", topics=(other.topic,), host=host)
        for host in hosts
    ]  # fmt: skip
    it.seconds(24, 28)
    it.is_told(
        "many connections at once: the broker lets them in slowly", herd[0].identity(),
        [told.any_of(*(told.client(one) for one in herd), told.name(other.node.host.address)), "connect|SYN|accept"],
        r"at once|many|slow|wait|late|rate|limit|throttl|s for|took|herd|storm|short|second|\d+ connections",
        affected=[*herd, *good], any=[one.identity() for one in herd], least="info",
    )  # fmt: skip
    it.truth["cluster_wide"] = True
