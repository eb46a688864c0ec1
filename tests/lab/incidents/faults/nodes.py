"""One broker among several, logs that are cut by their age, and clients that stay with what was."""

from __future__ import annotations

import time

from tests.lab import clients
from tests.lab.incidents import told
from tests.lab.incidents.catalogue import fault
from tests.lab.incidents.faults import programs
from tests.lab.incidents.faults.ended import Other
from tests.lab.incidents.incident import Client, Incident

LOST = (
    r"delet|retention|log start|out of range|OFFSET_OUT_OF_RANGE|never read|lost|skipped|gone|missed|not read|expired"
    r"|truncat|unread|gap|jump|no longer|keeps?\b|kept|reset"
)
CHECKED_EACH_SECOND = ("log.retention.check.interval.ms=1000", "log.initial.task.delay.ms=1000")


@fault(world="cluster", libraries=("librdkafka",), backdrop_restart=False)
def one_broker_starved(it: Incident) -> None:
    """One of three brokers gets a third of the processor: what it leads takes half a second, the others are quick."""
    (topic,) = it.topics(6, copies=1)
    it.begin()
    feed = it.sender(topic, "rate=40")
    member = it.member(it.world.names.group(), [topic], "librdkafka", protocol="classic", session_ms=20_000)
    it.seconds(7, 9)
    it.from_now()
    slow = it.world.server.nodes[1]
    until = time.monotonic() + it.rng.uniform(28, 32)
    while time.monotonic() < until:
        slow.freeze()
        time.sleep(0.7)
        slow.thaw()
        time.sleep(0.3)
    it.until_now()
    it.seconds(4, 5)
    it.is_told(
        "one of three brokers is slow", {"server": slow.endpoint, "node": slow.number},
        [told.any_of(told.name(slow.host.address), f"(?:broker|node|server) {slow.number}")],
        r"slow|latenc|took|takes|stood still|stall|late|longer|seconds? to|answer|respon|\d+ m?s\b",
        affected=[feed, member],
    )  # fmt: skip
    it.truth["cluster_wide"] = True


@fault(world="cluster", libraries=("librdkafka",), backdrop_restart=False)
def broker_dies_again(it: Incident) -> None:
    """One of three brokers dies without a word soon after each start, three times."""
    (topic,) = it.topics(6, copies=3, settings="min.insync.replicas:2")
    it.begin()
    feed = it.sender(topic, "rate=30", "acks=all", "message.timeout.ms=120000")
    member = it.member(it.world.names.group(), [topic], "franz", session_ms=25_000)
    it.seconds(4, 5)
    it.from_now()
    bad = it.world.server.nodes[2]
    for number in range(3):
        bad.stop(timeout_s=0)
        it.seconds(2, 3)
        bad.start()
        if number < 2:
            it.seconds(4, 5)
    it.until_now()
    it.seconds(5, 6)
    it.is_told(
        "a broker dies and starts again and again", {"server": bad.endpoint, "node": bad.number},
        [told.any_of(told.name(bad.host.address), f"(?:broker|node|server) {bad.number}")],
        r"again|times|restart|died|gone|away|refus|RST|reset|closed|unreachable|not reach|flap|down|left|lost",
        affected=[feed, member],
    )  # fmt: skip
    it.truth["cluster_wide"] = True


@fault(world="cluster", backdrop_restart=False)
def keeps_to_old_leader(it: Incident) -> None:
    """A leader was restarted and another leads now: one producer goes on to write to the old one, refused (6)."""
    topic = it.world.names.topic()
    it.start(
        "place", "ops",
        clients.python_command("librdkafka_admin", "place", f"bootstrap.servers={it.world.endpoint}", "client.id=setup",
                               f"topic={topic}", "replicas=2:3,3:1"),
    ).finish(60)  # fmt: skip
    it.seconds(1, 2)
    node = it.world.server.nodes[1]
    it.begin()
    good = it.sender(topic, "rate=20", "acks=all", "message.timeout.ms=120000")
    bad = it.add(programs.raw_habit("keeps_leader", node.endpoint, f"topic={topic}"), "our own", topics=(topic,))
    bad.process.wait_for_event("session", timeout_s=30)
    it.seconds(6, 7)
    node.stop()
    it.from_now()
    it.seconds(1, 2)
    node.start()
    bad.process.wait_for_event("refused", timeout_s=40)
    it.seconds(18, 22)
    it.is_told(
        "a producer goes on to write to a broker that does not lead any more", bad, [told.client(bad)],
        r"lead|NOT_LEADER|stale|old|metadata|refus|again|\b6\b", affected=[bad, good], topic=topic, partition=0,
    )  # fmt: skip
    it.truth["cluster_wide"] = True


def topic_of_seconds(it: Incident, retention_ms: int) -> Other:
    """Return a broker that looks every second for what is too old, with a topic in short segments."""
    return Other(it, *CHECKED_EACH_SECOND, topic_settings=f"retention.ms:{retention_ms},segment.ms:2000")


@fault(libraries=("librdkafka", "java", "franz"))
def retention_shorter_than_pause(it: Incident) -> None:
    """A topic keeps its records for six seconds, and its group is stopped for twenty: what came first is never read."""
    other, group = topic_of_seconds(it, 6000), it.world.names.group()
    library = it.library("librdkafka", "java", "franz")
    other.begin()
    feed = it.sender(other.topic, "rate=40", broker=other.broker)
    how = {"broker": other.broker, "protocol": "classic", "session_ms": 10_000}
    before = it.member(group, [other.topic], library, **how)  # type: ignore[arg-type]
    it.seconds(8, 10)
    before.process.terminate()
    it.from_now()
    it.seconds(20, 23)
    after = it.member(group, [other.topic], library, host=before.host, client_id=before.client_id, **how)  # type: ignore[arg-type]
    it.seconds(10, 12)
    it.is_told(
        "a group was stopped for longer than its topic keeps records", {"group": group},
        [told.any_of(told.name(group), told.partition(other.topic, 0, 1), told.client(before))], LOST,
        affected=[feed, before, after], topic=other.topic, never=[r"(?i)an operator"],
    )  # fmt: skip


@fault(libraries=("kafka_python",))
def retention_cut_by_operator(it: Incident) -> None:
    """An operator sets retention.ms of a topic to two seconds: a slow reader loses what it had before it."""
    other, group = topic_of_seconds(it, 600_000), it.world.names.group()
    operator = {"client_id": it.world.names.client(), "host": it.new_host()}
    other.begin()
    feed = it.sender(other.topic, "rate=60", "size=200", broker=other.broker)
    member = it.member(group, [other.topic], "kafka_python", handle_ms=150, protocol="classic", fetch_bytes=2000,
                       settings=("max_poll_records=5",), broker=other.broker)  # fmt: skip
    it.seconds(13, 15)
    it.from_now()
    command = programs.admin(it, "alter", f"topic={other.topic}", "set=retention.ms:2000", broker=other.broker)
    it.start("alter", operator["host"], command(operator["client_id"])).finish(60)
    it.seconds(20, 24)
    who = {"client_id": operator["client_id"], "address": it.world.hosts[operator["host"]].address}
    it.is_told(
        "an operator cut retention.ms: records were deleted before a reader came to them", who,
        [told.any_of(told.partition(other.topic, 0, 1), told.name(other.topic), told.name(group), told.client(member),
                     told.name(who["client_id"]))],
        LOST, affected=[feed, member], topic=other.topic, group=group,
    )  # fmt: skip
    it.truth["affected"]["clients"].append(who)


@fault(libraries=("librdkafka", "java"))
def limit_lowered_by_operator(it: Incident) -> None:
    """An operator lowers max.message.bytes of a topic: its producer is refused (10) from then on."""
    (topic,) = it.topics(2)
    operator = {"client_id": it.world.names.client(), "host": it.new_host()}
    it.begin()
    feed = it.sender(topic, "rate=10", "size=3000", library=it.library("librdkafka", "java"))
    good: list[Client] = [it.sender(*it.topics(1), "rate=20")]
    it.seconds(9, 11)
    it.from_now()
    command = programs.admin(it, "alter", f"topic={topic}", "set=max.message.bytes:1500")
    it.start("alter", operator["host"], command(operator["client_id"])).finish(60)
    it.seconds(18, 22)
    who = {"client_id": operator["client_id"], "address": it.world.hosts[operator["host"]].address}
    it.is_told(
        "max.message.bytes of a topic was lowered below what its producer writes", who,
        [told.any_of(told.name(topic), told.client(feed), told.name(who["client_id"]))],
        r"too large|MESSAGE_TOO_LARGE|max\.message\.bytes|larger|\b10\b|refus|reject|size", affected=[feed],
        never=[told.client(one) for one in good], topic=topic,
    )  # fmt: skip
    it.truth["affected"]["clients"].append(who)
