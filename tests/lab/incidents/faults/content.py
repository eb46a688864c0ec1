"""Whose content differs: clocks, clusters, batches stored twice, values that come back where they began."""

from __future__ import annotations

from tests.lab import firewall, kafka
from tests.lab.incidents import told
from tests.lab.incidents.catalogue import fault
from tests.lab.incidents.faults import programs
from tests.lab.incidents.faults.ended import Other
from tests.lab.incidents.incident import Incident

THIRD_CLUSTER_ID = "d2lyZXdpdG5lc3MtbGFiMw"
ROUND = (
    r"loop|round|circle|circul|comes? back|came back|where (?:it|they) began|reads (?:back )?what it writes|again"
    r"|writes what it reads|own (?:records|output)|same (?:records|values|content)"
)


@fault(libraries=("librdkafka",))
def clock_behind(it: Incident) -> None:
    """One of two writers has a clock three hours behind."""
    (topic,) = it.topics(2)
    it.begin()
    good = it.sender(topic, "rate=20")
    member = it.member(it.world.names.group(), [topic])
    it.from_now()
    bad = it.add(programs.librdkafka(it, "stamp", f"topic={topic}", "rate=10", "shift_s=-10800"), "librdkafka",
                 topics=(topic,))  # fmt: skip
    it.seconds(20, 23)
    it.is_told("one writer's record times are three hours behind", bad, [told.client(bad)],
               r"clock|record times?|timestamp|hours?|behind packet|10[78]\d\d", affected=[bad, member],
               never=[told.client(good)], topic=topic)  # fmt: skip


@fault(libraries=("librdkafka",), backdrop_restart=False)
def other_cluster_at_address(it: Incident) -> None:
    """A broker is replaced by one of another cluster at the same address: clients go on with it."""
    other = Other(it)
    other.begin()
    both = other.around()
    it.seconds(6, 8)
    it.from_now()
    other.node.stop()
    _, new = it.other_broker(host=other.host, cluster_id=THIRD_CLUSTER_ID)
    it.operate("create", f"topics={other.topic}:2", "copies=1", broker=new.endpoint)
    it.until_now()
    it.seconds(14, 17)
    it.is_told(
        "one address has two cluster ids, one after the other", {"server": new.endpoint, "node": new.number},
        [told.any_of(told.name(new.host.address), "cluster")],
        rf"cluster id|two clusters|another cluster|other cluster|{THIRD_CLUSTER_ID}", affected=both,
    )  # fmt: skip
    it.truth["cluster_wide"] = True


@fault(libraries=("librdkafka",))
def stored_twice(it: Incident) -> None:
    """Answers to a producer without idempotence are lost: it sends its batches again, and the log has them twice."""
    (topic,) = it.topics(1)
    it.begin()
    member = it.member(it.world.names.group(), [topic])
    bad = it.sender(topic, "rate=20", "enable.idempotence=false", "request.timeout.ms=2000", "socket.timeout.ms=2000",
                    "message.timeout.ms=60000", "socket.connection.setup.timeout.ms=2000")  # fmt: skip
    it.seconds(6, 7)
    it.from_now()
    for _ in range(2):
        ports = firewall.local_ports(it.world.hosts[bad.host], kafka.PORT)
        broker = it.world.hosts["broker"]
        with firewall.dropping(broker, bad.address, ports=ports, directions=("egress",)):
            it.seconds(4, 5)
        it.seconds(6, 7)
    it.until_now()
    it.is_told(
        "batches are stored twice: their answers were lost and the producer has no producer id", bad,
        [told.any_of(told.client(bad), told.partition(topic, 0))],
        r"twice|stored again|duplicat|same (?:batch|records)|identical|again", affected=[bad, member],
        topic=topic, partition=0,
    )  # fmt: skip
    it.truth["sides"] = ["network", "client"]


@fault()
def writes_what_it_reads(it: Incident) -> None:
    """An enricher writes to the topic that it reads from: each record comes back to it."""
    (topic,) = it.topics(2)
    group = it.world.names.group()
    it.begin()
    feed = it.sender(topic, "rate=5", "rounds=1")
    it.from_now()
    bad = it.add(
        programs.aiokafka(it, "work", f"topics={topic}", f"group={group}", f"target={topic}", "handle_ms=15"),
        "aiokafka", group=group, topics=(topic,),
    )  # fmt: skip
    bad.process.wait_for_event("session", timeout_s=40)
    it.seconds(24, 27)
    it.is_told("a client writes to the topic that it reads", bad,
               [told.any_of(told.client(bad), told.name(group)), told.name(topic)], ROUND,
               affected=[feed, bad], never=[rf"{told.client(feed)}[^.]*(?:loop|round)"], topic=topic)  # fmt: skip


@fault()
def copiers_in_a_circle(it: Incident) -> None:
    """One application copies A to B, another B to A: each record goes round for ever."""
    one, other = it.topics(2, 2)
    groups = [it.world.names.group(), it.world.names.group()]
    it.begin()
    feed = it.sender(one, "rate=5", "rounds=1")
    it.from_now()
    there = it.add(
        programs.kafkajs(it, "work", f"topic={one}", f"group={groups[0]}", f"target={other}", "handle_ms=10"),
        "kafkajs", group=groups[0], topics=(one, other),
    )  # fmt: skip
    back = it.add(
        programs.aiokafka(it, "work", f"topics={other}", f"group={groups[1]}", f"target={one}", "handle_ms=10"),
        "aiokafka", group=groups[1], topics=(one, other),
    )  # fmt: skip
    back.process.wait_for_event("session", timeout_s=40)
    it.seconds(26, 29)
    it.is_told(
        "two copiers write into each other's source: records go round", {"topics": [one, other]},
        [told.any_of(told.client(there), told.client(back), told.name(groups[0]), told.name(groups[1])),
         told.any_of(told.name(one), told.name(other))], ROUND, affected=[feed, there, back],
        clients=[there.identity(), back.identity()],
    )  # fmt: skip


@fault()
def one_partition_of_eight(it: Incident) -> None:
    """A producer's partitioner gives the same partition always: one of eight gets all, one member has all the work."""
    (topic,) = it.topics(8)
    group = it.world.names.group()
    it.begin()
    members = [it.member(group, [topic], "franz", protocol="classic") for _ in range(2)]
    it.from_now()
    bad = it.add(programs.kafkajs(it, "send", f"topic={topic}", "partition=3", "rate=60"), "kafkajs", topics=(topic,))
    bad.process.wait_for_event("session", timeout_s=40)
    it.seconds(22, 25)
    it.is_told(
        "a producer writes to one of eight partitions alone", bad,
        [told.any_of(told.partition(topic, 3), rf"{told.name(topic)}.*(?:partition )?\b3\b", told.client(bad))],
        r"one partition|all (?:records|its records|of its records)|most|hot|skew|uneven|alone|only|share|others get|%",
        affected=[bad, *members], topic=topic, partition=3,
    )  # fmt: skip
