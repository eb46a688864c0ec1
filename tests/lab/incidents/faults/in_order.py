"""Changes that are made in order: replicas moved, a topic retired, clients at another listener, pages read back."""

from __future__ import annotations

from tests.lab import clients
from tests.lab.clients import python_command
from tests.lab.incidents.catalogue import fault
from tests.lab.incidents.faults import programs
from tests.lab.incidents.incident import Incident
from tests.lab.incidents.world import PASSWORD, SASL_PORT, USER


@fault(world="cluster", backdrop_restart=False)
def replicas_moved_in_order(it: Incident) -> None:
    """An operator moves a partition from broker 1 to the two others and lets the preferred replicas lead."""
    topic = it.world.names.topic()
    it.start("place", "ops", python_command(
        "librdkafka_admin", "place", f"bootstrap.servers={it.world.endpoint}", "client.id=setup", f"topic={topic}",
        "replicas=1:2,2:3,3:1")).finish(60)  # fmt: skip
    it.begin()
    it.sender(topic, "rate=40", "acks=all")
    it.member(it.world.names.group(), [topic], it.library("librdkafka", "franz"), protocol="classic", session_ms=20_000)
    it.seconds(8, 10)
    move = it.start("move", it.new_host(), clients.java_command(
        "administer", f"bootstrap.servers={it.world.endpoint}", "client.id=kafka-reassign", "parts=leaders",
        f"topic={topic}", "brokers=3,2"))  # fmt: skip
    move.finish(60)
    it.notes.append(f"moved: {move.events()}")
    it.seconds(14, 17)
    it.healthy("an operator moves a partition's replicas in order")


@fault(backdrop_restart=False)
def topic_retired_in_order(it: Incident) -> None:
    """A service is taken out of use: its producer ends, its group reads the rest, group and topic are removed."""
    topic, stays = it.topics(3, 2)
    group = it.world.names.group()
    it.begin()
    it.sender(stays, "rate=20")
    it.member(it.world.names.group(), [stays], "franz")
    feed = it.sender(topic, "rate=30")
    members = [it.member(group, [topic], "librdkafka", protocol="classic") for _ in range(2)]
    it.seconds(9, 11)
    feed.process.terminate()
    it.seconds(5, 6)
    for one in members:
        one.process.terminate()
        it.seconds(1, 2)
    operator = {"client_id": "terraform", "host": it.new_host()}
    it.seconds(3, 4)
    it.operate("delete_group", f"group={group}", **operator)
    it.seconds(1, 2)
    it.operate("delete", f"topic={topic}", **operator)
    it.seconds(10, 12)
    it.healthy("a topic and its group are taken out of use in order")


@fault(backdrop_restart=False)
def moved_to_other_listener(it: Incident) -> None:
    """Clients are restarted one after the other with a user and password, at the port that asks for them."""
    (topic,) = it.topics(4)
    group = it.world.names.group()
    secure = f"{it.world.hosts['broker'].address}:{SASL_PORT}"
    words = ("security.protocol=SASL_PLAINTEXT", "sasl.mechanism=PLAIN", f"sasl.username={USER}",
             f"sasl.password={PASSWORD}")  # fmt: skip
    it.begin()
    feeds = [it.sender(topic, "rate=20") for _ in range(2)]
    how = {"protocol": "classic", "session_ms": 10_000}
    members = [it.member(group, [topic], "librdkafka", **how) for _ in range(2)]  # type: ignore[arg-type]
    it.seconds(5, 6)
    for one in members:
        one.process.terminate()
        it.seconds(1, 1.5)
        it.member(group, [topic], "librdkafka", broker=secure, host=one.host, client_id=one.client_id, settings=words,
                  **how)  # type: ignore[arg-type]  # fmt: skip
        it.seconds(4, 5)
    for one in feeds:
        one.process.terminate()
        it.seconds(0.5, 1)
        it.sender(topic, "rate=20", *words, broker=secure, host=one.host, client_id=one.client_id)
        it.seconds(3, 4)
    it.seconds(6, 8)
    it.healthy("clients are moved to the listener with passwords, one after the other")


@fault()
def pages_read_back(it: Incident) -> None:
    """A person looks through a topic in a browser: its last page, then the pages before, each read on its own."""
    (topic,) = it.topics(3)
    fill = it.sender(topic, "rate=100", "size=120")
    it.seconds(8, 9)
    fill.process.terminate()
    it.begin()
    it.sender(topic, "rate=20")
    it.member(it.world.names.group(), [topic], "sarama")
    it.seconds(2, 3)
    it.add(programs.mistake(it, "pages", f"topic={topic}", "partitions=3", "page=25", "every_s=3"), "kafka_python",
           topics=(topic,))  # fmt: skip
    it.seconds(30, 34)
    it.healthy("a topic browser reads the pages of a topic from its end backwards")


@fault()
def users_forgotten_on_request(it: Incident) -> None:
    """A table of profiles gets a null for one record of twelve, as users ask to be forgotten; caches follow it."""
    (topic,) = it.topics(3, settings="cleanup.policy:compact")
    it.begin()
    it.add(programs.chore(it, "forgets_some", f"topic={topic}", "rate=25", "each=12"), "librdkafka", topics=(topic,))
    for _ in range(2):
        it.add(programs.aiokafka(it, "table", f"topics={topic}"), "aiokafka", topics=(topic,))
    it.member(it.world.names.group(), [topic], "franz")
    it.seconds(36, 42)
    it.healthy("a compacted topic gets a null for those who ask to be forgotten")
