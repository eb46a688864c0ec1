"""What goes wrong inside brokers: the topic of offsets, a disk, a wait that is set, transactional ids that expire."""

from __future__ import annotations

from tests.lab.incidents import told
from tests.lab.incidents.catalogue import fault
from tests.lab.incidents.faults import programs
from tests.lab.incidents.faults.ended import Other
from tests.lab.incidents.incident import SECOND_CLUSTER_ID, Incident


@fault(libraries=("franz", "java", "librdkafka"), backdrop_restart=False)
def offsets_topic_needs_three(it: Incident) -> None:
    """One broker with offsets.topic.replication.factor=3, as it is preset: no group ever finds a coordinator."""
    other = Other(it, "offsets.topic.replication.factor=3")
    other.begin()
    feed = it.sender(other.topic, "rate=20", broker=other.broker)
    it.seconds(2, 3)
    it.from_now()
    members = [
        it.member(it.world.names.group(), [other.topic], library, broker=other.broker, protocol="classic",
                  session_ms=10_000, wait=False)
        for library in (it.library("franz", "java"), "librdkafka")
    ]  # fmt: skip
    it.seconds(28, 32)
    it.is_told(
        "a broker cannot make the topic of offsets: groups have no coordinator",
        {"server": other.broker, "groups": [one.group for one in members]},
        [told.any_of(told.name(other.node.host.address), *(told.name(one.group or "") for one in members),
                     *(told.client(one) for one in members))],
        r"coordinator|COORDINATOR_NOT_AVAILABLE|\b15\b|__consumer_offsets|never join|not join|replication",
        affected=[feed, *members], never=[told.accusing(feed.client_id)],
    )  # fmt: skip
    it.truth["cluster_wide"] = True


@fault(libraries=("franz", "java", "librdkafka"), backdrop_restart=False)
def initial_delay_of_seconds(it: Incident) -> None:
    """group.initial.rebalance.delay.ms=12000: whoever starts a group waits twelve seconds for its first record."""
    other = Other(it, "group.initial.rebalance.delay.ms=12000")
    other.begin()
    feed = it.sender(other.topic, "rate=40", broker=other.broker)
    it.seconds(2, 3)
    it.from_now()
    members = []
    for library in ("franz", "librdkafka", "sarama"):
        members.append(
            it.member(it.world.names.group(), [other.topic], library, broker=other.broker, protocol="classic",
                      session_ms=20_000)
        )  # fmt: skip
        it.seconds(3, 5)
    it.is_told(
        "the broker waits twelve seconds before a new group begins", {"server": other.broker},
        [told.any_of(told.name(other.node.host.address), *(told.name(one.group or "") for one in members),
                     *(told.client(one) for one in members)),
         r"join|rebalanc|group"],
        r"initial|delay|wait|late|long|slow|took|takes|\d+(?:\.\d+)? ?s(?:econds)?\b", affected=[feed, *members],
        any=[one.identity() for one in members], least="info",
    )  # fmt: skip
    it.truth["cluster_wide"] = True


@fault(world="cluster", libraries=("franz", "librdkafka"), backdrop_restart=False)
def commits_refused_offsets_topic(it: Incident) -> None:
    """min.insync.replicas=3 of __consumer_offsets and one broker of three is gone: records come, no commit is taken."""
    (topic,) = it.topics(6, copies=3)
    group, dead = it.world.names.group(), it.world.server.nodes[2]

    def needs(copies: int) -> None:
        command = programs.admin(it, "alter", "topic=__consumer_offsets", f"set=min.insync.replicas:{copies}")
        it.start(f"needs-{copies}", "ops", command("setup")).finish(60)

    needs(3)
    it.later(lambda: needs(1))
    it.begin()
    feed = it.sender(topic, "rate=40", "acks=all", "message.timeout.ms=120000")
    member = it.member(group, [topic], it.library("franz", "librdkafka"), protocol="classic", session_ms=25_000)
    it.seconds(7, 8)
    it.later(dead.start)
    dead.stop()
    it.from_now()
    it.seconds(30, 34)
    it.is_told(
        "the topic of offsets has too few replicas in sync: commits are refused, records are read", {"group": group},
        [told.any_of(told.name(group), told.client(member), told.name(dead.host.address), "__consumer_offsets",
                     f"(?:broker|node|server) {dead.number}")],
        r"commit|COORDINATOR|in[- ]sync|not enough|NOT_ENOUGH|__consumer_offsets|\b15\b",
        affected=[feed, member], server=dead.endpoint,
    )  # fmt: skip
    it.truth["cluster_wide"] = True


@fault(libraries=("librdkafka",), backdrop_restart=False)
def disk_fails(it: Incident) -> None:
    """One of a broker's two disks is gone: half of a topic's partitions have no leader, the others go on."""
    other = Other(it, "log.dirs=$run_dir/data,$run_dir/data2", partitions=6)
    disk = it.world.directory / f"{it.name}-{SECOND_CLUSTER_ID[-3:]}" / "data2"
    it.notes.append(f"on the disk that fails: {sorted(one.name for one in disk.iterdir() if one.is_dir())}")
    other.begin()
    feed = it.sender(other.topic, "rate=40", broker=other.broker)
    member = it.member(it.world.names.group(), [other.topic], "franz", broker=other.broker)
    it.seconds(8, 9)
    it.from_now()
    disk.rename(disk.with_name("data2.gone"))
    it.seconds(34, 38)
    it.is_told(
        "a disk of a broker is gone: its partitions are offline", {"server": other.broker},
        [told.any_of(told.name(other.node.host.address), told.name(other.topic), r"(?:broker|node|server) 1")],
        r"storage|KAFKA_STORAGE|disk|log dir|\b56\b|lead|offline|refus|NOT_LEADER|unavailable|not available|no answer",
        affected=[feed, member], topic=other.topic,
    )  # fmt: skip
    it.truth["cluster_wide"] = True


@fault(backdrop_restart=False)
def offsets_topic_deleted(it: Incident) -> None:
    """An operator deletes __consumer_offsets, to make room: all groups lose what they had committed."""
    other = Other(it)
    operator = {"client_id": it.world.names.client(), "host": it.new_host()}
    other.begin()
    feed = it.sender(other.topic, "rate=40", broker=other.broker)
    members = [
        it.member(it.world.names.group(), [other.topic], library, broker=other.broker, protocol="classic",
                  session_ms=10_000)
        for library in ("franz", "librdkafka")
    ]  # fmt: skip
    it.seconds(8, 10)
    it.from_now()
    command = programs.chore(it, "deletes_topic", "topic=__consumer_offsets", broker=other.broker)
    work = it.start("delete", operator["host"], command(operator["client_id"]))
    work.finish(60)
    it.notes.append(f"delete: {work.events()}")
    it.seconds(26, 30)
    who = {"client_id": operator["client_id"], "address": it.world.hosts[operator["host"]].address}
    it.is_told(
        "the topic of offsets was deleted", who,
        [told.any_of(told.name(who["client_id"]), told.name(who["address"]), "__consumer_offsets")],
        r"delet|DeleteTopics|gone|lost|remov|coordinator|commit", affected=[feed, *members], topic="__consumer_offsets",
    )  # fmt: skip
    it.truth["cluster_wide"] = True


@fault(libraries=("librdkafka",), backdrop_restart=False)
def transactional_id_expired(it: Incident) -> None:
    """transactional.id.expiration.ms=6000, and a producer that rests for sixteen: its id is gone (49)."""
    other = Other(
        it, "transactional.id.expiration.ms=6000", "transaction.remove.expired.transaction.cleanup.interval.ms=1500"
    )
    other.begin()
    good = other.around()
    it.from_now()
    name = f"{it.world.names.client()}-tx"
    bad = it.add(
        programs.chore(it, "rests", f"topic={other.topic}", f"transactional.id={name}", "work_s=5", "rest_s=16",
                       broker=other.broker),
        "librdkafka", topics=(other.topic,),
    )  # fmt: skip
    bad.process.wait_for_event("refused", 2, timeout_s=90)
    it.seconds(5, 6)
    it.is_told(
        "a producer's transactional id expires while it rests", bad, [told.any_of(told.client(bad), told.name(name))],
        r"expir|INVALID_PRODUCER_ID_MAPPING|\b49\b|idle|rest|refus|reject|producer id|fenced|does not know|unknown",
        affected=[bad], never=[told.client(one) for one in good], transactional_id=name,
    )  # fmt: skip
