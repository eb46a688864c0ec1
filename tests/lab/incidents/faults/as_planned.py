"""What looks like a fault and is as planned: calls over Kafka, delays, equal records, preset names, near replicas."""

from __future__ import annotations

from tests.lab.incidents.catalogue import fault
from tests.lab.incidents.faults import programs
from tests.lab.incidents.incident import Incident


@fault()
def called_over_kafka(it: Incident) -> None:
    """One service writes requests to A and reads answers from B, another reads A and writes B: no circle, but calls."""
    requests, answers = it.topics(3, 3)
    it.begin()
    server = it.add(
        programs.aiokafka_habit(it, "replies", f"topics={requests}", f"target={answers}",
                                f"group={it.world.names.group()}"),
        "aiokafka", topics=(requests, answers),
    )  # fmt: skip
    server.process.wait_for_event("session", timeout_s=40)
    for _ in range(2):
        it.add(
            programs.aiokafka_habit(it, "calls", f"topics={answers}", f"target={requests}",
                                    f"group={it.world.names.group()}", "reset=latest"),
            "aiokafka", topics=(requests, answers),
        ).process.wait_for_event("session", timeout_s=40)  # fmt: skip
    it.seconds(34, 38)
    it.healthy("services call each other over Kafka")


@fault()
def handed_on_after_a_delay(it: Incident) -> None:
    """A queue of retries hands each record on when it is ten seconds old: its partitions are paused until then."""
    (topic,) = it.topics(3)
    it.begin()
    it.sender(topic, "rate=10", "rounds=2")
    group = it.world.names.group()
    reader = it.add(
        programs.aiokafka_habit(it, "delays", f"topics={topic}", f"group={group}", "delay_s=10",
                                "most=40"),
        "aiokafka", group=group, topics=(topic,),
    )  # fmt: skip
    reader.process.wait_for_event("session", timeout_s=40)
    it.seconds(52, 58)
    it.healthy("a group hands records on ten seconds after they were written, as it is to")


@fault()
def same_record_each_second(it: Incident) -> None:
    """Five machines write that they are well each second: the same key and value again and again, for a watcher."""
    (topic,) = it.topics(1, settings="cleanup.policy:compact")
    it.begin()
    it.member(it.world.names.group(), [topic], it.library("franz", "librdkafka", "sarama"))
    for _ in range(5):
        it.add(programs.chore(it, "lives", f"topic={topic}", "every_s=1"), "librdkafka", topics=(topic,))
    it.seconds(28, 32)
    it.healthy("machines write the same sign of life each second")


@fault(libraries=("librdkafka",))
def preset_client_id(it: Incident) -> None:
    """Eight services of five teams leave client.id as librdkafka presets it: "rdkafka" is in many groups at once."""
    topics = it.topics(3, 2, 4)
    it.begin()
    for topic in topics:
        it.sender(topic, "rate=20", client_id="rdkafka")
    for number in range(5):
        it.member(it.world.names.group(), [topics[number % 3]], "librdkafka", client_id="rdkafka",
                  protocol="classic", session_ms=10_000)  # fmt: skip
    it.seconds(24, 28)
    it.healthy("services of several teams have the preset client id")


@fault(libraries=("java",), backdrop_restart=False)
def reads_from_near_replica(it: Incident) -> None:
    """client.rack and a rack-aware replica selector: a reader fetches from the follower in its own zone."""
    hosts, nodes = it.brokers(
        2, "broker.rack=zone-$node", "offsets.topic.replication.factor=2",
        "replica.selector.class=org.apache.kafka.common.replica.RackAwareReplicaSelector",
    )  # fmt: skip
    topic, place = it.world.names.topic(), nodes[0].endpoint
    it.operate("create", f"topics={topic}:4", "copies=2", broker=place)
    it.begin(everywhere=True)
    servers = ",".join(node.endpoint for node in nodes)
    it.sender(topic, "rate=40", "acks=all", broker=servers)
    for zone in (1, 2):
        it.member(it.world.names.group(), [topic], "java", broker=servers, protocol="classic", session_ms=10_000,
                  settings=(f"client.rack=zone-{zone}", "metadata.max.age.ms=10000"))  # fmt: skip
    it.seconds(30, 34)
    it.notes.append(f"brokers at {hosts}")
    it.healthy("readers fetch from the replica in their zone")
