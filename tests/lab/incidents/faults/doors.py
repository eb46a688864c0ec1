"""Wrong doors, keys and names: other protocols, certificates, placeholders, rights that end, settings nobody takes."""

from __future__ import annotations

from pathlib import Path

from tests.lab import clients, kafka
from tests.lab.incidents import told
from tests.lab.incidents.catalogue import fault
from tests.lab.incidents.faults import programs
from tests.lab.incidents.faults.ended import Other
from tests.lab.incidents.faults.refusals import RIGHTS, WITH_RIGHTS
from tests.lab.incidents.incident import Incident
from tests.lab.incidents.world import KEYSTORE_PASSWORD, PASSWORD, TLS_PORT, USER
from tests.lab.processes import run

REFUSED = r"refus|reject|error|not (?:accepted|allowed|valid|taken)|invalid|fails?\b|failed|denied"
HANDSHAKE = r"certificate|TLS|SSL|handshake|alert|trust|unknown.?ca|authority|\bCA\b"


def made_key(it: Incident, name: str) -> tuple[Path, Path]:
    """Return a new keystore and its certificate, as PEM."""
    key, certificate = it.logs / f"{name}.p12", it.logs / f"{name}.pem"
    where = ["-alias", name, "-storetype", "PKCS12", "-keystore", str(key), "-storepass", KEYSTORE_PASSWORD]
    run(["keytool", "-genkeypair", "-keyalg", "EC", "-dname", f"CN={name}", "-validity", "9", *where])
    run(["keytool", "-exportcert", "-rfc", "-file", str(certificate), *where])
    return key, certificate


def with_tls(key: Path, *more: str) -> tuple[str, ...]:
    """Return the settings of a broker with a listener for TLS, in a version that shows its alerts."""
    return (
        f"listeners=PLAINTEXT://$address:{kafka.PORT},TLS://$address:{TLS_PORT},CONTROLLER://$controller:9093",
        f"advertised.listeners=PLAINTEXT://$address:{kafka.PORT},TLS://$address:{TLS_PORT}",
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,TLS:SSL,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name=PLAINTEXT",
        f"ssl.keystore.location={key}",
        "ssl.enabled.protocols=TLSv1.2",
        f"ssl.keystore.password={KEYSTORE_PASSWORD}",
        "ssl.keystore.type=PKCS12",
        *more,
    )


def over_tls(trusted: Path) -> tuple[str, ...]:
    """Return how a client of librdkafka speaks TLS."""
    return ("security.protocol=ssl", f"ssl.ca.location={trusted}", "ssl.endpoint.identification.algorithm=none")


@fault(libraries=("librdkafka",))
def old_truststore(it: Incident) -> None:
    """A broker has a certificate of a new authority; one of three clients was deployed without it (unknown_ca)."""
    (key, trusted), (_, old) = made_key(it, "broker"), made_key(it, "before")
    other = Other(it, *with_tls(key))
    place = f"{other.node.host.address}:{TLS_PORT}"
    other.begin()
    good = [
        it.sender(other.topic, "rate=20", *over_tls(trusted), broker=place),
        it.member(it.world.names.group(), [other.topic], "librdkafka", broker=place, protocol="classic",
                  settings=over_tls(trusted)),
    ]  # fmt: skip
    it.seconds(4, 5)
    it.from_now()
    bad = it.member(it.world.names.group(), [other.topic], "librdkafka", broker=place, protocol="classic",
                    settings=over_tls(old), wait=False)  # fmt: skip
    it.seconds(22, 26)
    it.is_told(
        "a client does not trust the authority of the broker's certificate", bad.identity(), [told.client(bad)],
        HANDSHAKE, affected=[bad], never=[told.name(one.address) for one in good],
    )  # fmt: skip


@fault(libraries=("librdkafka",))
def no_client_certificate(it: Incident) -> None:
    """ssl.client.auth=required, and a client that has no certificate of its own: the broker ends each handshake."""
    key, trusted = made_key(it, "broker")
    other = Other(it, *with_tls(key, "ssl.client.auth=required"))
    other.begin()
    good = other.around()
    it.seconds(3, 4)
    it.from_now()
    place = f"{other.node.host.address}:{TLS_PORT}"
    bad = it.sender(other.topic, "rate=10", *over_tls(trusted), broker=place, wait=False)
    it.seconds(20, 24)
    it.is_told(
        "a client has no certificate, and the broker asks for one", bad.identity(), [told.client(bad)], HANDSHAKE,
        affected=[bad], never=[told.name(one.address) for one in good],
    )  # fmt: skip


@fault()
def mqtt_to_kafka_port(it: Incident) -> None:
    """A gateway for MQTT is set to the address of Kafka: its CONNECT is a frame of 270 MB to the broker."""
    (topic,) = it.topics(2)
    it.begin()
    good = [it.sender(topic, "rate=20"), it.member(it.world.names.group(), [topic], "librdkafka")]
    it.seconds(3, 4)
    it.from_now()
    bad = it.add(programs.raw_habit("speaks_mqtt", it.world.endpoint, "every_s=2.5"), "our own")
    it.seconds(22, 26)
    it.is_told(
        "a client speaks MQTT to the port of Kafka", bad.identity(), [told.client(bad)],
        r"MQTT|protocol|not Kafka|no Kafka|other than Kafka|garbage|unknown|not (?:a )?valid|invalid|clos|reset|frame"
        r"|length|size|without an answer|refus|again|attempts|unreadable|decode",
        affected=[bad], never=[told.client(one) for one in good],
    )  # fmt: skip


@fault(libraries=("librdkafka", "franz", "sarama"))
def address_taken_by_web_server(it: Incident) -> None:
    """The address of a broker that is gone was given to a web server: a client of Kafka gets HTTP from it."""
    (topic,) = it.topics(2)
    taken = it.new_host()
    address = it.world.hosts[taken].address
    place = f"{address}:{kafka.PORT}"
    it.start("web", taken, clients.python_command("web_answer", place)).wait_for_event("listening")
    it.begin(everywhere=True)
    good = [it.sender(topic, "rate=20"), it.member(it.world.names.group(), [topic], "sarama")]
    it.seconds(3, 4)
    it.from_now()
    bad = it.member(it.world.names.group(), [topic], it.library("librdkafka", "franz", "sarama"), protocol="classic",
                    broker=place, wait=False)  # fmt: skip
    it.seconds(24, 28)
    it.is_told(
        "a client asks at an address where a web server is now", bad.identity(),
        [told.any_of(told.client(bad), told.name(address))],
        r"HTTP|web|protocol|not Kafka|no Kafka|other than Kafka|not (?:a )?valid|invalid|unreadable|decode|clos|garbage"
        r"|without an answer|no answer|unanswered|never answer|again|attempts",
        affected=[bad], never=[told.client(one) for one in good], server=place,
    )  # fmt: skip
    it.truth["sides"] = ["client", "server"]


@fault(libraries=("librdkafka", "java"))
def placeholder_not_filled_in(it: Incident) -> None:
    """A template is deployed as it is: a producer wants to write to the topic "$ENV-orders", INVALID_TOPIC (17)."""
    (topic,) = it.topics(2)
    it.begin()
    good = [it.sender(topic, "rate=20"), it.member(it.world.names.group(), [topic], "franz")]
    it.seconds(3, 4)
    it.from_now()
    wrong = f"$ENV-{it.rng.choice(('orders', 'payments', 'alerts'))}"
    bad = it.sender(wrong, "rate=20", library=it.library("librdkafka", "java"), wait=False)
    it.seconds(22, 26)
    it.is_told(
        "a topic's name has a placeholder that was not filled in", bad,
        [told.any_of(told.client(bad), told.name(wrong))],
        rf"INVALID_TOPIC|\b17\b|{REFUSED}|topic (?:name|.{{0,30}}not exist)|unknown|placeholder|invalid name",
        affected=[bad], never=[told.client(one) for one in good], topic=wrong,
    )  # fmt: skip


@fault(libraries=("librdkafka",))
def topic_settings_refused(it: Incident) -> None:
    """A deployment sets retention.ms=7d, which is no number: INVALID_CONFIG (40), again every two seconds."""
    (topic,) = it.topics(2)
    it.begin()
    good = [it.sender(topic, "rate=20"), it.member(it.world.names.group(), [topic], "kafka_python")]
    it.seconds(3, 4)
    it.from_now()
    bad = it.add(programs.chore(it, "alters_again", f"topic={topic}", "set=retention.ms:7d", "every_s=2"), "librdkafka",
                 topics=(topic,))  # fmt: skip
    bad.process.wait_for_event("refused", 9, timeout_s=60)
    it.is_told(
        "a deployment sets what a topic does not take, again and again", bad, [told.client(bad)],
        rf"INVALID_CONFIG|config|setting|retention|\b40\b|{REFUSED}|AlterConfigs|again", affected=[bad],
        never=[told.client(one) for one in good],
    )  # fmt: skip


@fault(libraries=("librdkafka",))
def rights_taken_by_operator(it: Incident) -> None:
    """An operator denies a user a topic while its member reads: TOPIC_AUTHORIZATION_FAILED (29) from then on."""
    other = Other(it, *WITH_RIGHTS)
    operator = {"client_id": it.world.names.client(), "host": it.new_host()}
    other.begin()
    good = other.around()
    sasl = ("security.protocol=SASL_PLAINTEXT", "sasl.mechanism=PLAIN", f"sasl.username={USER}",
            f"sasl.password={PASSWORD}")  # fmt: skip
    bad = it.member(it.world.names.group(), [other.topic], "librdkafka", broker=other.sasl, protocol="classic",
                    settings=sasl)  # fmt: skip
    it.seconds(8, 10)
    it.from_now()
    it.start(
        "deny", operator["host"],
        clients.python_command("librdkafka_admin", "deny", f"bootstrap.servers={other.broker}",
                               f"client.id={operator['client_id']}", "resource=topic", f"name={other.topic}",
                               f"user={USER}"),
    ).finish(60)  # fmt: skip
    it.seconds(22, 26)
    who = {"client_id": operator["client_id"], "address": it.world.hosts[operator["host"]].address}
    it.is_told(
        "a member has no right to its topic any more", bad,
        [told.any_of(told.client(bad), told.name(who["client_id"]), told.name(who["address"]))], RIGHTS,
        affected=[bad], never=[told.client(one) for one in good], any=[bad.identity(), who],
    )  # fmt: skip
    it.truth["affected"]["clients"].append(who)
