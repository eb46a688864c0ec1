"""Everyday work that looks like a fault and is none."""

from __future__ import annotations

from tests.lab import clients
from tests.lab.clients import old
from tests.lab.incidents.catalogue import fault
from tests.lab.incidents.faults import programs
from tests.lab.incidents.incident import Client, Incident


def reader(it: Incident, topic: str, group: str, **more: object) -> Client:
    """Start a member on aiokafka."""
    made = it.add(
        programs.aiokafka(it, "work", f"topics={topic}", f"group={group}"), "aiokafka", group=group, topics=(topic,),
        **more,  # type: ignore[arg-type]
    )  # fmt: skip
    made.process.wait_for_event("session", timeout_s=40)
    return made


@fault()
def deployed_under_one_client_id(it: Incident) -> None:
    """Four members of one client id at two addresses are restarted one after the other."""
    (topic,) = it.topics(8)
    group, client_id = it.world.names.group(), it.world.names.client()
    hosts = [it.new_host(), it.new_host()]
    it.begin()
    it.sender(topic, "rate=60")
    members = [reader(it, topic, group, host=hosts[number % 2], client_id=client_id) for number in range(4)]
    it.seconds(2, 3)
    for one in members:
        one.process.terminate()
        it.seconds(0.5, 1)
        reader(it, topic, group, host=one.host, client_id=client_id)
        it.seconds(3, 4)
    it.healthy("four members of one client id are restarted one after the other")


@fault()
def caught_up_after_pause(it: Incident) -> None:
    """A group is stopped for a planned pause, comes back, and catches up."""
    (topic,) = it.topics(3)
    group, library = it.world.names.group(), it.library("franz", "java", "librdkafka")
    it.begin()
    it.sender(topic, "rate=80")
    before = it.member(group, [topic], library, protocol="classic")
    it.seconds(6, 7)
    before.process.terminate()
    it.seconds(12, 13)
    it.member(group, [topic], library, protocol="classic", host=before.host, client_id=before.client_id)
    it.seconds(10, 12)
    it.healthy("a group pauses for twelve seconds and catches up")


@fault()
def everything_listed(it: Incident) -> None:
    """A dashboard lists topics, groups, offsets and the cluster every three seconds; an operator looks, too."""
    (topic,) = it.topics(4)
    group = it.world.names.group()
    it.begin()
    it.sender(topic, "rate=30")
    it.member(group, [topic], "librdkafka")
    it.add(programs.kafkajs(it, "lists"), "kafkajs").process.wait_for_event("session")
    for _ in range(3):
        it.operate("describe", f"groups={group}", f"topics={topic}")
        it.seconds(5, 6)
    it.healthy("a dashboard and an operator list everything")


@fault()
def streams_application(it: Incident) -> None:
    """A Kafka Streams application counts records: repartition topic, changelog, transactions aside."""
    source, target = it.topics(2, 2)
    name = it.world.names.group()
    it.begin()
    it.sender(source, "rate=20")
    made = it.add(
        lambda client_id: old.streams_command(
            f"bootstrap.servers={it.world.endpoint}", f"client.id={client_id}", f"application.id={name}",
            "replication.factor=1", "commit.interval.ms=2000", f"topic={source}", f"target={target}",
            f"state.dir={it.logs}/streams", "auto.offset.reset=earliest",
        ),
        "java", group=name, topics=(source, target),
    )  # fmt: skip
    made.process.wait_for_event("session", timeout_s=90)
    it.seconds(22, 25)
    it.healthy("a Streams application counts records")


@fault()
def compacted_table(it: Incident) -> None:
    """A cache loads a compacted topic from its beginning without a group, twice, as it is restarted in order."""
    (topic,) = it.topics(2, settings="cleanup.policy:compact")
    it.sender(topic, "rate=60")
    it.seconds(5, 6)
    it.begin()
    command = programs.aiokafka(it, "table", f"topics={topic}")
    first = it.add(command, "aiokafka", topics=(topic,))
    first.process.wait_for_event("session")
    it.seconds(8, 10)
    first.process.terminate()
    it.seconds(1, 2)
    it.add(command, "aiokafka", topics=(topic,), host=first.host, client_id=first.client_id)
    it.seconds(12, 14)
    it.healthy("a cache loads a compacted topic from its beginning")


@fault()
def slow_batch_job(it: Incident) -> None:
    """A job takes what came every six seconds, works on it, commits: its lag goes up and down."""
    (topic,) = it.topics(2)
    group = it.world.names.group()
    it.begin()
    it.sender(topic, "rate=30")
    job = it.add(programs.aiokafka(it, "batch_job", f"topics={topic}", f"group={group}", "every_s=6"), "aiokafka",
                 group=group, topics=(topic,))  # fmt: skip
    job.process.wait_for_event("session", timeout_s=40)
    it.seconds(38, 42)
    it.healthy("a job takes what came every six seconds and keeps up")


@fault()
def standby_members(it: Incident) -> None:
    """A group has more members than partitions and its topic rests: heartbeats only."""
    (topic,) = it.topics(2)
    group, library = it.world.names.group(), it.library("franz", "kafka_python")
    it.begin()
    for _ in range(4):
        it.member(group, [topic], library, protocol="classic", wait=False)
    it.seconds(28, 32)
    it.healthy("members stand by, their topic rests")


@fault()
def copied_one_way(it: Incident) -> None:
    """An application copies records as they are into another topic, which others read."""
    source, target = it.topics(3, 3)
    group = it.world.names.group()
    it.begin()
    it.sender(source, "rate=30")
    copier = it.add(programs.kafkajs(it, "work", f"topic={source}", f"group={group}", f"target={target}"), "kafkajs",
                    group=group, topics=(source, target))  # fmt: skip
    copier.process.wait_for_event("session", timeout_s=40)
    it.member(it.world.names.group(), [target], "franz")
    it.member(it.world.names.group(), [source], "librdkafka")
    it.seconds(22, 25)
    it.healthy("records are copied one way into another topic")


@fault()
def scaled_down_and_up(it: Incident) -> None:
    """Three members become one and then three again."""
    (topic,) = it.topics(6)
    group, library = it.world.names.group(), it.library("librdkafka", "java", "sarama")
    it.begin()
    it.sender(topic, "rate=50")
    members = [it.member(group, [topic], library, protocol="classic", session_ms=10_000) for _ in range(3)]
    it.seconds(3, 4)
    for one in members[1:]:
        one.process.terminate()
        it.seconds(3, 4)
    for one in members[1:]:
        it.member(group, [topic], library, protocol="classic", session_ms=10_000, host=one.host)
        it.seconds(3, 4)
    it.healthy("three members become one and three again")


@fault(world="cluster", backdrop_restart=False)
def brokers_upgraded(it: Incident) -> None:
    """Each of three brokers is restarted in order under kafkajs, aiokafka and sarama clients."""
    (topic,) = it.topics(6, copies=3, settings="min.insync.replicas:2")
    group, other = it.world.names.group(), it.world.names.group()
    it.begin()
    it.sender(topic, "rate=30", "acks=all", library="java")
    js = it.add(programs.kafkajs(it, "work", f"topic={topic}", f"group={group}"), "kafkajs", group=group,
                topics=(topic,))  # fmt: skip
    reader(it, topic, other)
    js.process.wait_for_event("session", timeout_s=40)
    it.seconds(3, 4)
    for node in it.world.server.nodes:
        node.stop()
        it.seconds(1, 2)
        node.start()
        it.seconds(6, 7)
    it.healthy("three brokers are restarted in order under other libraries")


@fault()
def backfill(it: Incident) -> None:
    """A new group reads a topic from its beginning at full speed while another goes on."""
    (topic,) = it.topics(3)
    it.sender(topic, "rate=300", "rounds=5")
    it.member(it.world.names.group(), [topic], "librdkafka", protocol="classic")
    it.seconds(9, 10)
    it.begin()
    it.seconds(3, 4)
    it.member(it.world.names.group(), [topic], "java", protocol="classic", commit="sync")
    it.seconds(16, 18)
    it.healthy("a new group reads from the beginning while another goes on")


@fault()
def transactions_restarted(it: Incident) -> None:
    """An application that works in transactions is restarted in order: its transactional id gets a new epoch."""
    topics = it.topics(2, 2)
    it.begin()
    it.sender(topics[0], "rate=20")
    group, client_id, host = it.world.names.group(), it.world.names.client(), it.new_host()
    for _ in range(2):
        made = it.add(
            lambda name: clients.java_command(
                "transact", f"bootstrap.servers={it.world.endpoint}", f"client.id={name}", f"group.id={group}",
                f"transactional.id={name}-1", f"topic={topics[0]}", f"target={topics[1]}",
            ),
            "java", group=group, topics=topics, client_id=client_id, host=host,
        )  # fmt: skip
        made.process.wait_for_event("session", timeout_s=40)
        it.seconds(9, 11)
        made.process.terminate()
    it.healthy("an application with transactions is restarted in order")


@fault()
def peak_of_five_seconds(it: Incident) -> None:
    """Ten times as many records come for five seconds; their reader falls behind a little and catches up."""
    (topic,) = it.topics(3)
    group = it.world.names.group()
    it.begin()
    it.sender(topic, "rate=20")
    it.member(group, [topic], "librdkafka", handle_ms=8, protocol="classic")
    it.seconds(8, 9)
    peak = it.sender(topic, "rate=250")
    it.seconds(5, 5)
    peak.process.terminate()
    it.seconds(18, 20)
    it.healthy("a peak of five seconds is caught up with")
