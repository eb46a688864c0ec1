"""Changes that look like faults and are none."""

from __future__ import annotations

from tests.lab import clients, kafka
from tests.lab.clients import old
from tests.lab.incidents.catalogue import fault
from tests.lab.incidents.incident import Client, Incident
from tests.lab.incidents.world import SHORT_TIMES
from tests.lab.processes import terminate_all

ASSIGNORS = {
    "java": ("range", "cooperative-sticky"),
    "librdkafka": ("range", "cooperative-sticky"),
    "franz": ("range", "cooperative-sticky"),
    "sarama": ("range", "sticky"),
    "kafka_python": ("range", "sticky"),
}


def group(it: Incident, members: int) -> tuple[list[Client], dict[str, object]]:
    """Start a group of one library and protocol; return it and how to start more members."""
    (topic,) = it.topics(6)
    library = it.library()
    protocol = it.protocol(library)
    assignor = it.rng.choice(ASSIGNORS[library]) if protocol == "classic" else None
    how = {
        "group": it.world.names.group(),
        "topics": [topic],
        "library": library,
        "protocol": protocol,
        "assignor": assignor,
        "session_ms": 10_000,
        "commit": "auto",
    }
    it.sender(topic, "rate=60")
    it.notes.append(f"{library} {protocol} {assignor}")
    return [it.member(**how) for _ in range(members)], how  # type: ignore[arg-type]


@fault()
def rolling_restart(it: Incident) -> None:
    """Each member of a group is restarted in order, one after the other."""
    early = it.rng.random() < 0.5
    if early:
        it.begin()
    members, how = group(it, 3)
    if not early:
        it.seconds(2, 4)
        it.begin()
    it.seconds(3, 5)
    for one in members:
        one.process.terminate()
        it.seconds(0.5, 2)
        it.member(**how, host=one.host, client_id=one.client_id)  # type: ignore[arg-type]
        it.seconds(2, 4)
    it.seconds(2, 4)
    it.healthy(f"rolling restart, {it.notes[-1]}")


@fault()
def autoscaling(it: Incident) -> None:
    """A group grows and shrinks."""
    it.begin()
    members, how = group(it, 1)
    for _ in range(3):
        it.seconds(3, 5)
        members.append(it.member(**how))  # type: ignore[arg-type]
    for one in members[1:3]:
        it.seconds(4, 6)
        one.process.terminate()
    it.seconds(3, 5)
    it.healthy(f"autoscaling, {it.notes[-1]}")


@fault()
def topic_added(it: Incident) -> None:
    """A new topic gets a producer and a group."""
    it.begin()
    group(it, 2)
    it.seconds(4, 6)
    group(it, 1)
    it.seconds(8, 12)
    it.healthy("a topic, a producer and a group are added")


@fault()
def quiet_topics(it: Incident) -> None:
    """Groups whose topics get a record now and then, or none."""
    topics = it.topics(3, 2)
    it.begin()
    it.sender(topics[0], "rate=1")
    for topic in topics:
        it.member(it.world.names.group(), [topic])
    it.seconds(35, 45)
    it.healthy("quiet topics")


@fault()
def admin_beside(it: Incident) -> None:
    """An operator describes groups again and again."""
    it.begin()
    members, how = group(it, 2)
    for _ in range(6):
        it.operate("describe", f"groups={how['group']}", f"topics={members[0].topics[0]}")
        it.seconds(1, 3)
    it.healthy("an operator describes groups")


@fault()
def clean_stop(it: Incident) -> None:
    """All clients of a group and its producer end in order."""
    it.begin()
    group(it, 2)
    it.seconds(8, 12)
    terminate_all(*(one.process for one in it.clients))
    it.seconds(2, 5)
    it.healthy("a clean stop of everything")


@fault(world="cluster")
def brokers_restarted(it: Incident) -> None:
    """Each of three brokers is restarted in order."""
    (topic,) = it.topics(6, copies=3, settings="min.insync.replicas:2")
    it.begin()
    it.sender(topic, "rate=40", library=it.rng.choice(("java", "librdkafka")))
    it.member(it.world.names.group(), [topic], session_ms=20_000)
    it.member(it.world.names.group(), [topic], session_ms=20_000)
    it.seconds(3, 5)
    for node in it.world.server.nodes:
        node.stop()
        it.seconds(1, 2)
        node.start()
        it.seconds(5, 6)
    it.healthy("three brokers are restarted in order, one after the other")


MIRRORING = """\
clusters = west, east
west.bootstrap.servers = {west}
east.bootstrap.servers = {east}
west->east.enabled = true
west->east.topics = {topic}
west->east.groups = {group}
west->east.sync.group.offsets.enabled = true
east->west.enabled = false
replication.factor = 1
offset.storage.replication.factor = 1
status.storage.replication.factor = 1
config.storage.replication.factor = 1
checkpoints.topic.replication.factor = 1
heartbeats.topic.replication.factor = 1
offset-syncs.topic.replication.factor = 1
refresh.topics.interval.seconds = 5
refresh.groups.interval.seconds = 5
emit.heartbeats.interval.seconds = 2
emit.checkpoints.interval.seconds = 3
sync.group.offsets.interval.seconds = 3
offset.flush.interval.ms = 3000
tasks.max = {tasks}
"""


@fault()
def mirror_maker_beside(it: Incident) -> None:
    """MirrorMaker 2 copies a topic, its group's offsets and its heartbeats into a second cluster."""
    _, second = it.second_cluster(*SHORT_TIMES)
    (topic,) = it.topics(3)
    it.operate("create", f"topics=west.{topic}:3", "copies=1", broker=second)
    group, library = it.world.names.group(), it.library()
    settings = it.logs / "mirror.properties"
    tasks = it.rng.choice((1, 2))
    settings.write_text(MIRRORING.format(west=it.world.endpoint, east=second, topic=topic, group=group, tasks=tasks))
    jars = old.jars("connect-mirror", kafka.version())
    command = kafka.java(jars, "org.apache.kafka.connect.mirror.MirrorMaker", str(settings))
    early, host = it.rng.random() < 0.5, it.new_host()
    if early:
        it.begin(everywhere=True)
    it.sender(topic, "rate=60")
    it.member(group, [topic], library, session_ms=10_000)
    mirror = it.start("mirror", host, command)
    copy = it.member(it.world.names.group(), [f"west.{topic}"], broker=second, session_ms=10_000)
    copy.process.wait_for_event("reading", timeout_s=90)
    if not early:
        it.begin(everywhere=True)
    it.seconds(12, 16)
    if it.rng.random() < 0.5:
        mirror.ask_to_end()
        it.seconds(4, 5)
        it.start("mirror-again", host, command)
        it.notes.append("MirrorMaker was restarted in order")
    it.seconds(18, 24)
    it.healthy("MirrorMaker 2 copies a topic into a second cluster")


@fault()
def short_transaction(it: Incident) -> None:
    """A transaction takes three seconds and ends; readers of committed records wait for it."""
    (topic,) = it.topics(2)
    it.begin()
    it.sender(
        topic,
        f"transactional.id={it.world.names.client()}",
        "rate=30",
        "hang_after=25",
        "hang_ms=3000",
        library=it.rng.choice(("java", "librdkafka")),
    )
    it.member(it.world.names.group(), [topic], it.library("java", "librdkafka"), read_committed=True)
    it.seconds(16, 20)
    it.healthy("a transaction takes three seconds and ends")


@fault()
def copies_in_transactions(it: Incident) -> None:
    """An application reads, writes and commits its offsets in transactions."""
    topics = it.topics(2, 2)
    it.begin()
    it.sender(topics[0], "rate=20")
    group = it.world.names.group()
    made = it.add(
        lambda name: clients.java_command(
            "transact", f"bootstrap.servers={it.world.endpoint}", f"client.id={name}", f"group.id={group}",
            f"transactional.id={name}-1", f"topic={topics[0]}", f"target={topics[1]}",
        ),
        "java", group=group, topics=topics,
    )  # fmt: skip
    made.process.wait_for_event("session")
    it.seconds(15, 20)
    it.healthy("an application copies in transactions")


@fault(libraries=("java", "librdkafka", "franz", "sarama"))
def static_restart(it: Incident) -> None:
    """Static members are restarted in order: they keep their partitions, and nobody leaves."""
    (topic,) = it.topics(4)
    group, library = it.world.names.group(), it.library("java", "librdkafka", "franz", "sarama")
    protocol = it.protocol(library)
    it.begin()
    it.sender(topic, "rate=40")
    how = {"protocol": protocol, "session_ms": 12_000}
    members = [it.member(group, [topic], library, instance=f"{group}-{n}", **how) for n in range(2)]  # type: ignore[arg-type]
    it.seconds(3, 5)
    for number, one in enumerate(members):
        one.process.terminate()
        it.member(group, [topic], library, instance=f"{group}-{number}", host=one.host, client_id=one.client_id, **how)  # type: ignore[arg-type]
        it.seconds(4, 6)
    it.healthy(f"static members are restarted, {library} {protocol}")
