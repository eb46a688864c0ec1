"""Connections that end by a pattern: how many there are, how old they are, how long they are idle, what they carry."""

from __future__ import annotations

from tests.lab import firewall, kafka
from tests.lab.incidents import told
from tests.lab.incidents.catalogue import fault
from tests.lab.incidents.faults import programs
from tests.lab.incidents.incident import Client, Incident
from tests.lab.incidents.world import PASSWORD, SASL_PORT, USER
from tests.lab.slow_link import sends_slowly

_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
WITH_SASL = (
    f"listeners=PLAINTEXT://$address:{kafka.PORT},SASL://$address:{SASL_PORT},CONTROLLER://$controller:9093",
    f"advertised.listeners=PLAINTEXT://$address:{kafka.PORT},SASL://$address:{SASL_PORT}",
    "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name=PLAINTEXT",
    "sasl.enabled.mechanisms=PLAIN",
    f'listener.name.sasl.plain.sasl.jaas.config={_PLAIN} user_{USER}="{PASSWORD}";',
)
NEARLY_ALL = 0.99999


class Other:
    """A broker of the incident's own with one topic; the capture is at its host."""

    def __init__(self, it: Incident, *settings: str, partitions: int = 2, topic_settings: str = "") -> None:
        self.it = it
        self.host, self.node = it.other_broker(*settings)
        self.broker = self.node.endpoint
        self.sasl = f"{self.node.host.address}:{SASL_PORT}"
        self.topic = it.world.names.topic()
        words = [f"settings={topic_settings}"] if topic_settings else []
        it.operate("create", f"topics={self.topic}:{partitions}", "copies=1", *words, broker=self.broker)

    def begin(self) -> None:
        """Start the capture."""
        self.it.begin(at=self.host)

    def around(self, library: str = "librdkafka") -> list[Client]:
        """Start a producer and a member that do nothing wrong."""
        return [
            self.it.sender(self.topic, "rate=20", broker=self.broker),
            self.it.member(self.it.world.names.group(), [self.topic], library, broker=self.broker, protocol="classic"),
        ]


@fault(libraries=("librdkafka",), backdrop_restart=False)
def too_many_connections(it: Incident) -> None:
    """max.connections.per.ip=10, and one host holds fourteen producers: the broker closes what is above."""
    other = Other(it, "max.connections.per.ip=10")
    other.begin()
    good = other.around()
    it.seconds(2, 3)
    it.from_now()
    bad = it.add(
        programs.librdkafka(it, "many", f"topic={other.topic}", "producers=14", broker=other.broker),
        "librdkafka", topics=(other.topic,),
    )  # fmt: skip
    it.seconds(22, 25)
    it.is_told(
        "one address has more connections than max.connections.per.ip allows", bad,
        [told.name(bad.address)],
        r"max\.connections|(?:number|count) of (?:open )?connections|connections? (?:open|at once|of one address)"
        r"|too many|more than \d+|at most \d+|limit",
        affected=[bad], never=[told.client(one) for one in good],
    )  # fmt: skip


@fault()
def older_than_authentication(it: Incident) -> None:
    """connections.max.reauth.ms=6000, and a client that never authenticates again: each connection ends at that age."""
    other = Other(it, *WITH_SASL, "listener.name.sasl.plain.connections.max.reauth.ms=6000")
    other.begin()
    good = other.around()
    it.from_now()
    bad = it.add(
        programs.aiokafka(it, "send", f"topic={other.topic}", "rate=15", f"user={USER}", f"password={PASSWORD}",
                          broker=other.sasl),
        "aiokafka", topics=(other.topic,),
    )  # fmt: skip
    bad.process.wait_for_event("session")
    it.seconds(32, 36)
    it.is_told(
        "the broker ends each connection six seconds after it was authenticated", bad, [told.client(bad)],
        r"re-?auth|\bage\b|after (?:about )?\d+(?:\.\d+)? s|lived|session lifetime|login",
        affected=[bad], never=[told.client(one) for one in good],
    )  # fmt: skip


@fault()
def idle_too_long(it: Incident) -> None:
    """connections.max.idle.ms=4000, and a producer that writes every seven seconds: it connects again each time."""
    other = Other(it, "connections.max.idle.ms=4000")
    other.begin()
    good = other.around("franz")
    it.from_now()
    bad = it.add(programs.aiokafka(it, "send", f"topic={other.topic}", "rate=0.14", broker=other.broker), "aiokafka",
                 topics=(other.topic,))  # fmt: skip
    bad.process.wait_for_event("session")
    it.seconds(40, 44)
    it.is_told(
        "the broker ends a producer's connections after four idle seconds", bad, [told.client(bad)],
        r"idle|max\.idle|silent for|after (?:about )?\d+(?:\.\d+)? s|quiet", affected=[bad], least="info",
        never=[told.client(one) for one in good],
    )  # fmt: skip


@fault(libraries=("kafka_python",))
def larger_than_socket_takes(it: Incident) -> None:
    """socket.request.max.bytes=300000, and a producer's large requests: the broker ends the connection each time."""
    other = Other(it, "socket.request.max.bytes=300000", topic_settings="max.message.bytes:5000000")
    other.begin()
    good = other.around()
    it.from_now()
    bad = it.add(
        programs.kafka_python(it, "writes_large", f"topic={other.topic}", "large=420000", "every_s=5",
                              "retry_backoff_ms=400", broker=other.broker),
        "kafka_python", topics=(other.topic,),
    )  # fmt: skip
    bad.process.wait_for_event("session")
    it.seconds(26, 30)
    it.is_told(
        "a request is larger than socket.request.max.bytes: the broker ends the connection", bad, [told.client(bad)],
        r"socket\.request\.max|too large|size of|largest|large request|bytes",
        affected=[bad], never=[told.client(good[0]), r"(?i)did not answer|frozen|stood still"],
    )  # fmt: skip


@fault(libraries=("kafka_python",))
def gives_up_on_slow_link(it: Incident) -> None:
    """Batches take longer over a slow link than the client waits: it gives up and sends again; all is stored twice."""
    (topic,) = it.topics(1)
    it.begin()
    feed = it.sender(topic, "rate=10")
    it.from_now()
    host = it.new_host()
    with sends_slowly(it.world.hosts, host, 256):
        bad = it.add(
            programs.kafka_python(it, "writes_large", f"topic={topic}", "large=150000", "every_s=12",
                                  "request_timeout_ms=3000", "enable_idempotence=false", "retries=4", "acks=1",
                                  "delivery_timeout_ms=60000", "connections_max_idle_ms=600000"),
            "kafka_python", host=host, topics=(topic,),
        )  # fmt: skip
        bad.process.wait_for_event("session")
        it.seconds(42, 46)
    it.is_told(
        "a client's timeout is shorter than its batch takes over the link", bad, [told.client(bad)],
        r"gave up|gives up|time-?out|slow (?:link|path|network)|again|twice|stored|before the answer|retransm",
        affected=[bad],
        never=[told.client(feed), r"(?i)(?:broker|server|process) (?:was frozen|stood still|did not answer)"],
    )  # fmt: skip
    it.truth["sides"] = ["client", "network"]


@fault()
def dead_bootstrap(it: Incident) -> None:
    """One of two bootstrap addresses answers no more: a check that starts anew each time often tries it first."""
    (topic,) = it.topics(2)
    gone, host = it.new_host(), it.new_host()
    place = it.world.hosts[gone]
    it.begin(everywhere=True)
    feed = it.sender(topic, "rate=20")
    it.from_now()
    with firewall.dropping(place, it.world.hosts[host].address, share=NEARLY_ALL, directions=("ingress",)):
        bad = it.add(
            programs.kafkajs(it, "looks", f"topic={topic}", "pause_ms=1500",
                             broker=f"{place.address}:{kafka.PORT},{it.world.endpoint}"),
            "kafkajs", host=host, topics=(topic,),
        )  # fmt: skip
        it.seconds(30, 34)
    it.is_told(
        "one of the bootstrap addresses of a client answers no more", bad.identity(), [told.name(place.address)],
        r"answer|reach|refus|connect|SYN|nobody|unreachable", affected=[bad], never=[told.client(feed)],
    )  # fmt: skip
