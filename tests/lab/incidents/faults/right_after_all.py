"""What looks like a fault and is meant so."""

from __future__ import annotations

from tests.lab import clients
from tests.lab.incidents.catalogue import fault
from tests.lab.incidents.faults import programs
from tests.lab.incidents.faults.ended import WITH_SASL, Other
from tests.lab.incidents.incident import Incident
from tests.lab.incidents.world import PASSWORD, USER

AS_USER = (
    "security.protocol=SASL_PLAINTEXT", "sasl.mechanism=PLAIN",
    "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required "
    f'username="{USER}" password="{PASSWORD}";',
)  # fmt: skip


@fault(libraries=("kafka_python",))
def records_taken_off_when_done(it: Incident) -> None:
    """An application uses a topic as a queue: what it has handled and committed it deletes, every five seconds."""
    queue, topic = it.topics(3, 2)
    group = it.world.names.group()
    it.begin()
    it.sender(queue, "rate=40")
    it.sender(topic, "rate=20")
    it.member(it.world.names.group(), [topic], "franz")
    for _ in range(2):
        one = it.add(programs.deploy(it, "takes_off", f"topics={queue}", f"group={group}", "every_s=5",
                                     "session_timeout_ms=10000", "heartbeat_interval_ms=1000"),
                     "kafka_python", group=group, topics=(queue,))  # fmt: skip
    one.process.wait_for_event("session", timeout_s=40)
    it.seconds(44, 50)
    it.healthy("an application deletes the records of its queue when it has handled and committed them")


@fault(libraries=("java",))
def authenticates_again_in_time(it: Incident) -> None:
    """connections.max.reauth.ms=6000, and clients that authenticate again on their connections before that."""
    other = Other(it, *WITH_SASL, "listener.name.sasl.plain.connections.max.reauth.ms=6000")
    other.begin()
    it.sender(other.topic, "rate=25", *AS_USER, library="java", broker=other.sasl)
    for _ in range(2):
        it.member(it.world.names.group(), [other.topic], "java", broker=other.sasl, protocol="classic",
                  settings=AS_USER)  # fmt: skip
    looks = clients.java_command("send", f"bootstrap.servers={other.sasl}", f"topic={other.topic}", "rate=5",
                                 "client.id=canary", *AS_USER)  # fmt: skip
    it.add(lambda _: looks, "java", client_id="canary", topics=(other.topic,))
    it.seconds(50, 56)
    it.healthy("clients authenticate again before their session ends")
