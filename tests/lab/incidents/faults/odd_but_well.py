"""Unusual work that is as it should be."""

from __future__ import annotations

from tests.lab import clients
from tests.lab.clients import python_command
from tests.lab.incidents.catalogue import fault
from tests.lab.incidents.faults import programs
from tests.lab.incidents.incident import Incident


@fault(libraries=("librdkafka",))
def migrated_to_consumer_protocol(it: Incident) -> None:
    """The members of a classic group are restarted with the consumer protocol one after the other, as is documented."""
    (topic,) = it.topics(6)
    group = it.world.names.group()
    it.begin()
    it.sender(topic, "rate=40")
    members = [
        it.member(group, [topic], "java", protocol="classic", session_ms=10_000, assignor="cooperative-sticky")
        for _ in range(2)
    ]
    it.seconds(4, 5)
    for one in members:
        one.process.terminate()
        it.seconds(0.5, 1)
        it.member(group, [topic], "java", protocol="consumer", host=one.host, client_id=one.client_id)
        it.seconds(6, 7)
    it.healthy("a group is moved to the consumer protocol, member by member")


@fault()
def balancer_checks_port(it: Incident) -> None:
    """Two balancers check the broker's port: they connect and close again every second, without a byte."""
    (topic,) = it.topics(2)
    it.begin()
    it.sender(topic, "rate=20")
    it.member(it.world.names.group(), [topic], "librdkafka")
    for _ in range(2):
        it.add(programs.raw_habit("knocks", it.world.endpoint, "every_s=1"), "our own")
    it.seconds(26, 30)
    it.healthy("balancers check the port every second")


@fault()
def bursts_on_a_schedule(it: Incident) -> None:
    """Meters are read every fourteen seconds: 600 records at once, then nothing; the reader has them in a second."""
    (topic,) = it.topics(3)
    it.begin()
    it.member(it.world.names.group(), [topic], it.library("franz", "sarama", "librdkafka"))
    it.add(programs.habit(it, "bursts", f"topic={topic}", "lines=600", "every_s=14"), "librdkafka", topics=(topic,))
    it.seconds(62, 68)
    it.healthy("records come in bursts on a schedule, and are read at once")


@fault(world="cluster", backdrop_restart=False)
def leaders_moved_by_operator(it: Incident) -> None:
    """A broker is restarted in order, and an operator lets the preferred replicas lead again a moment later."""
    (topic,) = it.topics(6, copies=3, settings="min.insync.replicas:2")
    it.begin()
    it.sender(topic, "rate=40", "acks=all", library="librdkafka")
    it.member(it.world.names.group(), [topic], it.library("librdkafka", "franz"), protocol="classic", session_ms=25_000)
    it.seconds(4, 5)
    node = it.world.server.nodes[0]
    node.stop()
    it.seconds(1, 2)
    node.start()
    it.seconds(7, 8)
    it.start("elect", it.new_host(), python_command(
        "librdkafka_admin", "elect", f"bootstrap.servers={it.world.endpoint}", "client.id=kafka-ops",
        f"topic={topic}", "partitions=6")).finish(60)  # fmt: skip
    it.seconds(10, 12)
    it.healthy("preferred replicas lead again after a restart")


@fault()
def console_looks_now_and_then(it: Incident) -> None:
    """A developer looks at the end of a topic with a console consumer, three times, each with a group of its own."""
    (topic,) = it.topics(3)
    it.begin()
    it.sender(topic, "rate=30")
    it.member(it.world.names.group(), [topic], "sarama")
    host = it.new_host()
    for number in range(3):
        it.seconds(3, 4)
        one = it.member(f"console-consumer-{it.rng.randrange(10_000, 99_999)}", [topic], "java", protocol="classic",
                        reset="latest", client_id="console-consumer", host=host, commit="auto")  # fmt: skip
        it.seconds(4, 6)
        one.process.terminate()
        it.notes.append(f"look {number + 1}")
    it.healthy("a developer looks at a topic with a console consumer")


@fault()
def offsets_topic_watched(it: Incident) -> None:
    """A monitor of lag reads __consumer_offsets from its beginning, without a group, and follows it."""
    (topic,) = it.topics(3)
    it.begin()
    it.sender(topic, "rate=30")
    it.member(it.world.names.group(), [topic], "librdkafka")
    it.seconds(3, 4)
    it.add(programs.aiokafka(it, "table", "topics=__consumer_offsets"), "aiokafka", topics=("__consumer_offsets",))
    it.seconds(24, 28)
    it.healthy("a monitor reads __consumer_offsets")


@fault()
def each_pod_makes_topic(it: Incident) -> None:
    """Six pods of a deployment start, and each makes the topic that it needs: it is there already (36), once each."""
    (topic,) = it.topics(3)
    it.begin()
    it.sender(topic, "rate=30")
    it.member(it.world.names.group(), [topic], "franz")
    hosts = [it.new_host() for _ in range(3)]
    for number in range(6):
        it.add(programs.habit(it, "makes_again", f"topic={topic}", "copies=1", "times=1"), "librdkafka",
               host=hosts[number % 3], topics=(topic,))  # fmt: skip
        it.seconds(0.5, 1.5)
    it.seconds(10, 12)
    it.healthy("each pod of a deployment makes a topic that is there")


@fault(backdrop_restart=False)
def reader_far_away(it: Incident) -> None:
    """A reader and a producer are 140 ms away, each way, and are set for it: nothing is late but by that."""
    (topic,) = it.topics(3)
    it.begin()
    it.sender(topic, "rate=40")
    far = it.new_host()
    it.start("far", far, clients.python_command("far_link", "140")).wait_for_event("ready")
    it.sender(topic, "rate=40", "linger.ms=50", host=far)
    it.member(it.world.names.group(), [topic], "librdkafka", host=far, protocol="classic", session_ms=20_000)
    it.member(it.world.names.group(), [topic], "franz")
    it.seconds(26, 30)
    it.healthy("a reader and a producer are far away and set for it")


@fault()
def codec_changed_under_old_reader(it: Incident) -> None:
    """A producer is deployed with zstd instead of lz4; a reader set to Kafka 1.0 asks as before and reads all of it."""
    (topic,) = it.topics(2)
    group, program = it.world.names.group(), clients.go_program("go_sarama")
    it.begin()
    before = it.sender(topic, "rate=30", "compression.codec=lz4", "linger.ms=20")
    it.member(it.world.names.group(), [topic], "librdkafka")
    old = it.add(
        lambda name: [program, "consume", "-broker", it.world.endpoint, "-client-id", name, "-group", group, "-topic",
                      topic, "-protocol", "1.0.0"],
        "sarama", group=group, topics=(topic,),
    )  # fmt: skip
    old.process.wait_for_event("session", timeout_s=40)
    it.seconds(8, 9)
    before.process.terminate()
    it.sender(topic, "rate=30", "compression.codec=zstd", "linger.ms=20", host=before.host, client_id=before.client_id)
    it.seconds(16, 19)
    it.healthy("a producer changes from lz4 to zstd under an old reader")


@fault()
def settings_read_by_all(it: Incident) -> None:
    """Twenty-four services follow a topic of settings without a group; it changes now and then."""
    (topic,) = it.topics(1, settings="cleanup.policy:compact")
    it.begin()
    it.add(programs.habit(it, "bursts", f"topic={topic}", "lines=3", "every_s=12"), "librdkafka", topics=(topic,))
    for _ in range(4):
        it.add(programs.habit(it, "follows", f"topic={topic}", "readers=6"), "librdkafka", topics=(topic,))
    it.seconds(55, 62)
    it.healthy("many services follow a topic of settings without a group")
