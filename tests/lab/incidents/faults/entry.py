"""Clients that never get in: wrong addresses, ports, protocols, passwords and names."""

from __future__ import annotations

import time
from itertools import count

from tests.lab import clients, kafka
from tests.lab.incidents import world
from tests.lab.incidents.catalogue import fault
from tests.lab.incidents.incident import Client, Incident

MAY_FOLLOW = ("TLS106", "NET103", "TCP103", "TCP104", "KAF303", "KAF306", "KAF314", "KAF301", "KAF117")
LIBRARIES = ("java", "librdkafka", "sarama", "franz", "kafka_python")
SECURE = ("java", "librdkafka")
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


def outsider(it: Incident, port: int, *libraries: str, settings: tuple[str, ...] = ()) -> Client:
    """Start a consumer or a producer that asks at PORT and gets no further."""
    (topic,) = it.topics(2)
    it.begin()
    it.seconds(1, 3)
    it.from_now()
    library = it.library(*libraries)
    broker = f"{it.world.hosts['broker'].address}:{port}"
    if library in SECURE and it.rng.random() < 0.4:
        made = it.sender(topic, *settings, library=library, broker=broker, wait=False)
    else:
        made = it.member(it.world.names.group(), [topic], library, broker=broker, wait=False, settings=settings)
    it.seconds(22, 27)
    return made


def advertised(it: Incident, port: int, words: str, place: str) -> None:
    """One way to advertise a wrong address."""
    made = outsider(it, port, *LIBRARIES)
    it.is_about(f"the advertised address is {words}", made.identity(), ["KAF310"], MAY_FOLLOW, [made], advertised=place)


@fault(libraries=LIBRARIES)
def advertised_unreachable(it: Incident) -> None:
    """Metadata names an address that nobody answers at."""
    advertised(it, world.UNREACHABLE_PORT, "unreachable", f"{world.NOBODY}:9092")


@fault(libraries=LIBRARIES)
def advertised_refused(it: Incident) -> None:
    """Metadata names a port that refuses connections."""
    advertised(it, world.REFUSED_PORT, "refused", f"{it.world.hosts['broker'].address}:{world.CLOSED_PORT}")


@fault(libraries=LIBRARIES)
def advertised_loopback(it: Incident) -> None:
    """Metadata names 127.0.0.1 to a client elsewhere."""
    advertised(it, world.LOOPBACK_PORT, "loopback", "127.0.0.1:9092")


@fault(libraries=LIBRARIES)
def advertised_unknown_name(it: Incident) -> None:
    """Metadata names a host that the client cannot resolve."""
    advertised(it, world.UNKNOWN_NAME_PORT, "a name that does not resolve", f"{world.UNKNOWN_NAME}:9092")


@fault(libraries=LIBRARIES)
def wrong_bootstrap_port(it: Incident) -> None:
    """A client asks at a port where nobody listens."""
    made = outsider(it, world.CLOSED_PORT, *LIBRARIES)
    it.is_about(
        "the bootstrap port is wrong: nobody listens there",
        made.identity(),
        ["NET103", "TCP104", "KAF310"],
        MAY_FOLLOW,
        [made],
    )


def wrong_protocol(it: Incident, port: int, words: str, settings: dict[str, tuple[str, ...]]) -> None:
    """One way to speak another protocol than the port."""
    library = it.library(*settings)
    it.wanted_library = library
    made = outsider(it, port, library, settings=settings[library])
    it.is_about(words, made.identity(), ["KAF311"], MAY_FOLLOW, [made], port=port)


TLS = dict.fromkeys(SECURE, ("security.protocol=SSL",))
SASL = {
    "java": (
        "security.protocol=SASL_PLAINTEXT",
        "sasl.mechanism=PLAIN",
        f'sasl.jaas.config={_PLAIN} username="{world.USER}" password="{world.PASSWORD}";',
    ),
    "librdkafka": (
        "security.protocol=SASL_PLAINTEXT",
        "sasl.mechanism=PLAIN",
        f"sasl.username={world.USER}",
        f"sasl.password={world.PASSWORD}",
    ),
}


@fault(libraries=SECURE)
def tls_to_plain(it: Incident) -> None:
    """TLS to a port that speaks clear text."""
    wrong_protocol(it, kafka.PORT, "TLS to a clear-text port", TLS)


@fault(libraries=LIBRARIES)
def plain_to_tls(it: Incident) -> None:
    """Clear text to a port that speaks TLS."""
    wrong_protocol(it, world.TLS_PORT, "clear text to a TLS port", dict.fromkeys(LIBRARIES, ()))


@fault(libraries=SECURE)
def sasl_to_plain(it: Incident) -> None:
    """SASL to a port that knows none."""
    wrong_protocol(it, kafka.PORT, "SASL to a port without it", SASL)


@fault(libraries=LIBRARIES)
def plain_to_sasl(it: Incident) -> None:
    """No SASL to a port that asks for it."""
    wrong_protocol(it, world.SASL_PORT, "no SASL to a SASL port", dict.fromkeys(LIBRARIES, ()))


@fault(libraries=SECURE)
def wrong_password(it: Incident) -> None:
    """A wrong password, again and again."""
    library = it.library(*SECURE)
    settings = tuple(one.replace(world.PASSWORD, world.WRONG_PASSWORD) for one in SASL[library])
    it.wanted_library = library
    made = outsider(it, world.SASL_PORT, library, settings=settings)
    it.is_about("a wrong password again and again", made.identity(), ["KAF312"], MAY_FOLLOW, [made], user=world.USER)


@fault()
def http_to_kafka(it: Incident) -> None:
    """A health check speaks HTTP to a Kafka port."""
    it.begin()
    it.from_now()
    host = it.new_host()
    place = f"http://{it.world.hosts['broker'].address}:{kafka.PORT}/health"
    made = it.add(lambda _: clients.python_command("http_probe", place), "http", host=host, client_id="http-probe")
    it.seconds(15, 20)
    it.is_about("HTTP to a Kafka port", {"address": made.address}, ["KAF311"], MAY_FOLLOW, [made])


@fault(libraries=LIBRARIES)
def unknown_topic(it: Incident) -> None:
    """A name with a typing error: the topic does not exist, and it is asked for again and again."""
    (topic,) = it.topics(2)
    wrong = topic[:-2] + topic[-1]
    library = it.library()
    it.begin()
    it.seconds(1, 2)
    it.from_now()
    if library in SECURE and it.rng.random() < 0.5:
        made = it.sender(wrong, library=library, wait=False)
    else:
        made = it.member(it.world.names.group(), [wrong], library, wait=False)
    it.seconds(26, 32)
    it.is_about(
        "a topic that does not exist is asked for again and again",
        made.identity(),
        ["KAF313"],
        (*MAY_FOLLOW, "KAF315"),
        [made],
        topic=wrong,
        nearest=topic,
    )


@fault()
def connection_per_message(it: Incident) -> None:
    """A connection is made for each message."""
    (topic,) = it.topics(2)
    it.begin()
    it.from_now()
    made = it.add(
        lambda name: clients.python_command(
            "librdkafka_worker", "once", f"bootstrap.servers={it.world.endpoint}", f"client.id={name}", f"topic={topic}"
        ),
        "librdkafka",
        topics=(topic,),
    )
    it.seconds(26, 30)
    it.is_about(
        "a connection for each message", made.identity(), ["KAF314", "KAF306"], ("KAF301",), [made], topic=topic
    )


@fault()
def connection_churn(it: Incident) -> None:
    """A service that kept its connections for minutes crashes after each start, three processes of it at a time."""
    (topic,) = it.topics(2)
    it.begin()
    well = it.sender(topic, "rate=20")
    it.seconds(246, 249)  # a minute is many only beside others
    well.process.kill()
    it.from_now()
    command = clients.python_command(
        "librdkafka_worker", "send", f"bootstrap.servers={it.world.endpoint}", f"client.id={well.client_id}",
        f"topic={topic}", "rate=50", "rounds=50",
    )  # fmt: skip
    ends = time.monotonic() + it.rng.uniform(44, 48)
    for number in count(1):
        lives = [it.start(f"life-{number}-{one}", well.host, command) for one in range(3)]
        for life in lives:
            life.wait_for_event("session")
        it.seconds(0.7, 1.2)
        for life in lives:
            life.kill()
        if time.monotonic() > ends:
            break
    it.notes.append(f"{3 * number} processes were started")
    # Each process sends 50 records a second, one by one: KAF202 is true of it.
    may_follow = ("KAF314", "KAF301", "KAF303", "TCP103", "TCP104", "KAF202")
    it.is_about("processes of a service crash after each start", well.identity(), ["KAF306"], may_follow, [well],
                topic=topic)  # fmt: skip


@fault()
def request_spin(it: Incident) -> None:
    """A client sends one request again and again although it is refused each time."""
    group = it.world.names.group()
    it.begin()
    it.from_now()
    made = it.add(
        lambda name: clients.python_command(
            "raw_client", "spin", f"broker={it.world.endpoint}", f"client_id={name}", f"group={group}"
        ),
        "our own",
        group=group,
    )
    it.seconds(14, 18)
    it.is_about("one request is repeated at once after each refusal", made.identity(), ["KAF315"], (), [made])


# What makes each library ask for metadata several times a second: its own name for how old metadata may grow, in ms.
ASKS_OFTEN = {"java": "metadata.max.age.ms=150", "librdkafka": "topic.metadata.refresh.interval.ms=150"}


@fault(libraries=tuple(ASKS_OFTEN))
def metadata_churn(it: Incident) -> None:
    """A producer is set to ask for metadata several times a second."""
    (topic,) = it.topics(2)
    library = it.library(*ASKS_OFTEN)
    it.begin()
    it.seconds(1, 2)
    it.from_now()
    made = it.sender(topic, "rate=20", ASKS_OFTEN[library], library=library)
    it.seconds(40, 46)
    # No leader moves: KAF301 says it as info. KAF323 names the same client where it asks as often as it writes.
    name = "a producer asks for metadata several times a second"
    it.is_about(name, made.identity(), ["KAF301"], ("KAF323",), [made], topic=topic)


@fault(libraries=("sarama",))
def old_client(it: Incident) -> None:
    """A client speaks versions that the broker does not know any more."""
    (topic,) = it.topics(2)
    group = it.world.names.group()
    it.begin()
    it.seconds(1, 2)
    it.from_now()
    level = it.rng.choice(("0.9.0.1", "0.10.0.1", "0.10.1.0"))
    made = it.add(
        lambda name: [
            clients.go_program("go_sarama"), "consume", "-broker", it.world.endpoint, "-client-id", name,
            "-group", group, "-topic", topic, "-protocol", level,
        ],
        "sarama", group=group, topics=[topic],
    )  # fmt: skip
    it.seconds(14, 18)
    it.is_about(f"a client of the level of Kafka {level}", made.identity(), ["KAF305"], (*MAY_FOLLOW, "KAF311"), [made])
