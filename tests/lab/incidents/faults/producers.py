"""Producers that are fenced, refused, throttled or wasteful."""

from __future__ import annotations

from tests.lab import clients, firewall, kafka
from tests.lab.incidents.catalogue import fault
from tests.lab.incidents.faults.members import BEHIND, REBALANCED
from tests.lab.incidents.faults.network import TCP
from tests.lab.incidents.incident import Client, Incident

BOTH = ("java", "librdkafka")


def reader(it: Incident, topic: str, **work: object) -> Client:
    """Start a member that reads TOPIC."""
    return it.member(it.world.names.group(), [topic], **work)  # type: ignore[arg-type]


@fault(libraries=("java",))
def transactional_id_twice(it: Incident) -> None:
    """Two hosts produce with one transactional id: each fences the other."""
    (topic,) = it.topics(2)
    it.begin()
    name = f"{it.world.names.client()}-tx"
    other = reader(it, topic)
    first = it.sender(topic, f"transactional.id={name}", "rate=30", library="java")
    it.seconds(4, 6)
    it.from_now()
    second = it.sender(topic, f"transactional.id={name}", "rate=30", library="java", wait=False)
    it.seconds(16, 20)
    it.is_about(
        "one transactional id is used by two producers",
        second,
        ["KAF206"],
        ("KAF201", "KAF205", "KAF203"),
        [first, second, other],
        transactional_id=name,
        topic=topic,
        clients=[first.identity(), second.identity()],
    )


@fault(libraries=BOTH)
def hanging_transaction(it: Incident) -> None:
    """A transaction stays open: groups that read committed records stand."""
    (topic,) = it.topics(1)
    it.begin()
    stands = reader(it, topic, library=it.library(*BOTH), read_committed=True)
    others = it.sender(topic, "rate=20")
    name = f"{it.world.names.client()}-tx"
    hangs = it.sender(
        topic,
        f"transactional.id={name}",
        "rate=30",
        "hang_after=15",
        "transaction.timeout.ms=120000",
        library=it.library(*BOTH),
    )
    hangs.process.wait_for_event("hanging")
    it.from_now()
    it.seconds(28, 34)
    it.is_about(
        "a transaction stays open and readers of committed records stand",
        hangs,
        ["KAF203"],
        (*BEHIND, "KAF122"),
        [hangs, stands, others],
        transactional_id=name,
        topic=topic,
    )


@fault(libraries=BOTH)
def message_too_large(it: Incident) -> None:
    """Records are larger than the topic takes."""
    (topic,) = it.topics(2, settings="max.message.bytes:3000")
    it.begin()
    it.seconds(1, 2)
    it.from_now()
    sender = it.sender(topic, "rate=10", "size=6000", library=it.library(*BOTH))
    it.seconds(12, 16)
    it.is_about("records are larger than the topic's max.message.bytes", sender, ["KAF205"], (), [sender], topic=topic)


@fault(world="cluster", libraries=BOTH)
def not_enough_replicas(it: Incident) -> None:
    """A broker is gone and fewer replicas are in sync than min.insync.replicas asks for."""
    (topic,) = it.topics(3, copies=3, settings="min.insync.replicas:3")
    it.begin()
    feed = it.sender(topic, "rate=30", "acks=all", library=it.library(*BOTH))
    other = reader(it, topic, session_ms=20_000)
    it.seconds(5, 7)
    it.from_now()
    node = it.world.server.nodes[it.rng.choice((1, 2))]
    node.stop(timeout_s=it.rng.choice((0, 20)))
    it.seconds(20, 24)
    node.start()
    it.until_now()
    it.seconds(6, 8)
    it.is_about(
        "a broker is gone and too few replicas are in sync",
        {"server": node.endpoint, "node": node.number},
        ["KAF205"],
        (
            *REBALANCED,
            *BEHIND,
            "KAF301",
            "KAF308",
            "TCP103",
            "TCP104",
            "NET103",
            "KAF303",
            "KAF306",
            "KAF105",
            "KAF118",
        ),
        [feed, other],
        topic=topic,
        clients=[feed.identity()],
    )
    it.truth["cluster_wide"] = True  # all clients of the cluster feel it


@fault(libraries=BOTH)
def quota_throttled(it: Incident) -> None:
    """A quota slows a producer down."""
    (topic,) = it.topics(2)
    name = it.world.names.client()
    it.start(
        "quota",
        "ops",
        clients.java_command(
            "quota", f"bootstrap.servers={it.world.endpoint}", "client.id=setup", f"entity={name}", "rate=20000"
        ),
    ).finish(60)
    it.begin()
    it.from_now()
    sender = it.sender(topic, "rate=100", "size=2000", library=it.library(*BOTH), client_id=name)
    it.seconds(14, 18)
    it.is_about(
        "a quota throttles a producer", sender, ["KAF304"], ("KAF302", "KAF303", "TCP102"), [sender], topic=topic
    )


@fault(libraries=BOTH)
def one_record_batches(it: Incident) -> None:
    """Each record travels in a batch and a request of its own."""
    (topic,) = it.topics(1)
    it.begin()
    library = it.library(*BOTH)
    words = ("linger.ms=0", "batch.num.messages=1") if library == "librdkafka" else ("linger.ms=0", "batch.size=0")
    it.from_now()
    sender = it.sender(topic, "rate=400", *words, library=library)
    it.seconds(16, 20)
    it.is_about("batches of one record", sender, ["KAF202"], (), [sender], topic=topic)


@fault()
def out_of_sequence(it: Incident) -> None:
    """A producer leaves a sequence number out: all that follows is refused (45)."""
    (topic,) = it.topics(1)
    it.begin()
    sender = it.add(
        lambda name: clients.python_command(
            "raw_client", "sequence", f"broker={it.world.endpoint}", f"client_id={name}", f"topic={topic}"
        ),
        "our own",
        topics=(topic,),
    )
    sender.process.wait_for_event("refused", timeout_s=40)
    it.from_now()
    it.seconds(8, 12)
    it.is_about("a producer leaves a sequence number out", sender, ["KAF201"], ("KAF205",), [sender], topic=topic)


@fault(libraries=("librdkafka",))
def hot_partition(it: Incident) -> None:
    """Nine of ten records have one key, and the reader of its partition falls behind."""
    (topic,) = it.topics(6)
    it.begin()
    it.from_now()
    sender = it.sender(topic, "rate=150", "hot=18")
    group, library = it.world.names.group(), it.library()
    members = [it.member(group, [topic], library, protocol="classic", handle_ms=12) for _ in range(2)]
    it.seconds(30, 35)
    # The first reader has the hot partition when the second joins: the rebalance may wait for it.
    may_follow = (*BEHIND, *REBALANCED)
    it.is_about("most records go to one partition", sender, ["KAF209"], may_follow, [sender, *members], topic=topic)


@fault(libraries=BOTH)
def acks_zero(it: Incident) -> None:
    """A producer does not ask whether its records arrived."""
    (topic,) = it.topics(2)
    it.begin()
    it.from_now()
    library = it.library(*BOTH)
    words = ("acks=0", "enable.idempotence=false")
    sender = it.sender(
        topic, "rate=30", *(words if library == "java" else ("request.required.acks=0",)), library=library
    )
    it.seconds(10, 14)
    it.is_about("acks=0: a loss would not be seen", sender, ["KAF204"], (), [sender], topic=topic)


@fault(world="cluster", libraries=BOTH)
def isr_flapping(it: Incident) -> None:
    """A broker stands still again and again: it leaves the in-sync replicas and comes back."""
    (topic,) = it.topics(4, copies=3)
    it.begin()
    feed = it.sender(topic, "rate=30", "acks=all", library=it.library(*BOTH))
    other = reader(it, topic, session_ms=20_000)
    it.seconds(3, 5)
    it.from_now()
    node = it.world.server.nodes[it.rng.choice((1, 2))]
    for _ in range(3):
        node.freeze()
        it.seconds(9, 10)
        node.thaw()
        it.seconds(6, 7)
    it.until_now()
    it.is_about(
        "a broker stands still again and again, and the in-sync replicas shrink and grow",
        {"server": node.endpoint, "node": node.number},
        ["KAF308", "KAF302", "KAF301", "KAF303"],
        (
            *REBALANCED,
            *BEHIND,
            "KAF205",
            "KAF302",
            "KAF306",
            "KAF105",
            "KAF118",
            "TCP102",
            "TCP103",
            "TCP104",
            "NET103",
        ),
        [feed, other],
        topic=topic,
    )
    it.truth["cluster_wide"] = True


@fault()
def late_end_of_transaction(it: Incident) -> None:
    """The end of a transaction is sent again, on another connection, and ends the next one."""
    (topic,) = it.topics(1)
    it.begin()
    name = f"{it.world.names.client()}-tx"
    reader(it, topic)
    sender = it.add(
        lambda client_id: clients.python_command(
            "raw_client", "late_end", f"broker={it.world.endpoint}", f"client_id={client_id}", f"topic={topic}",
            f"transactional_id={name}",
        ),
        "our own", topics=(topic,),
    )  # fmt: skip
    it.from_now()
    sender.process.wait_for_event("late", 2, timeout_s=40)
    it.seconds(4, 6)
    it.is_about("the end of a transaction ends the next one", sender, ["KAF207"], ("KAF201", "KAF203", "KAF205"),
                it.clients, transactional_id=name, topic=topic)  # fmt: skip


def raw_producer(it: Incident, work: str, topic: str) -> Client:
    """Start a producer of our own that does WORK."""
    return it.add(
        lambda name: clients.python_command(
            "raw_client", work, f"broker={it.world.endpoint}", f"client_id={name}", f"topic={topic}"
        ),
        "our own",
        topics=(topic,),
    )


@fault()
def corrupt_batch(it: Incident) -> None:
    """Some batches of a producer change behind their checksum: the broker refuses them (2)."""
    (topic,) = it.topics(1)
    it.begin()
    other = reader(it, topic)
    it.from_now()
    sender = raw_producer(it, "corrupt", topic)
    said = sender.process.wait_for_event("corrupt", 3, timeout_s=40)
    it.seconds(10, 14)
    it.notes.append(f"answered to the first of them: {said['error']}")
    it.is_about("batches change behind their checksum", sender, ["KAF307"], ("KAF205",), [sender, other], topic=topic)


@fault()
def epoch_bump_duplicates(it: Incident) -> None:
    """The broker's answers to an idempotent producer are lost: it raises its epoch and sends what was stored again."""
    (topic,) = it.topics(1)
    it.begin()
    other = reader(it, topic)
    sender = raw_producer(it, "bump", topic)
    it.seconds(6, 9)
    it.from_now()
    for number in (1, 2):
        ports = firewall.local_ports(it.world.hosts[sender.host], kafka.PORT)
        broker = it.world.hosts["broker"]
        with firewall.dropping(broker, sender.address, ports=ports, directions=("egress",)):
            sender.process.wait_for_event("bumped", number, timeout_s=40)
            it.seconds(0, 4)
        it.seconds(5, 8)
    it.until_now()
    it.is_about(
        "answers are lost, and records stand in the log twice under two producer epochs",
        sender, ["KAF208"], (*TCP, "KAF201", "KAF205"), [sender, other], topic=topic,
    )  # fmt: skip
