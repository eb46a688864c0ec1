"""What a limit, a version or a change of a topic meets: large answers, TLS, tokens, quotas of topics, keys, codecs."""

from __future__ import annotations

from tests.lab import clients, kafka
from tests.lab.incidents import told
from tests.lab.incidents.catalogue import fault
from tests.lab.incidents.faults import programs
from tests.lab.incidents.faults.doors import HANDSHAKE, made_key, over_tls, with_tls
from tests.lab.incidents.faults.ended import Other
from tests.lab.incidents.incident import Incident
from tests.lab.incidents.world import SASL_PORT, TLS_PORT

_TOKENS = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
WITH_TOKENS = (
    f"listeners=PLAINTEXT://$address:{kafka.PORT},SASL://$address:{SASL_PORT},CONTROLLER://$controller:9093",
    f"advertised.listeners=PLAINTEXT://$address:{kafka.PORT},SASL://$address:{SASL_PORT}",
    "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name=PLAINTEXT",
    "sasl.enabled.mechanisms=OAUTHBEARER",
    f'listener.name.sasl.oauthbearer.sasl.jaas.config={_TOKENS} unsecuredLoginStringClaim_sub="broker";',
    "listener.name.sasl.oauthbearer.connections.max.reauth.ms=60000",
)


@fault(libraries=("librdkafka",))
def answers_larger_than_reader_takes(it: Incident) -> None:
    """receive.message.max.bytes=20000 of a reader, and a record of 40 KB: it hangs up at each answer, for ever."""
    (topic,) = it.topics(1)
    group = it.world.names.group()
    it.begin()
    feed = it.sender(topic, "rate=20")
    good = it.member(it.world.names.group(), [topic], "librdkafka", protocol="classic", session_ms=20_000)
    bad = it.member(
        group, [topic], "librdkafka", protocol="classic", session_ms=20_000,
        settings=("receive.message.max.bytes=20000", "fetch.max.bytes=19000", "message.max.bytes=18000"),
    )  # fmt: skip
    it.seconds(8, 9)
    it.from_now()
    large = it.sender(topic, "rate=1", "rounds=1", "size=40000")
    it.seconds(24, 28)
    it.is_told(
        "a reader hangs up at each answer that is larger than it takes", bad,
        [told.any_of(told.client(bad), told.name(group))],
        r"larg|size|clos|reset|hung up|hangs up|connect|again|same|stuck|stands|behind|lag|ended|receive\.message"
        r"|not read|no progress",
        affected=[bad, feed, large], never=[told.accusing(good.client_id), told.accusing(feed.client_id)],
    )  # fmt: skip


@fault(libraries=("java",))
def tls_version_not_taken(it: Incident) -> None:
    """A broker takes TLS 1.3 alone since its hardening; an old client offers 1.2: protocol_version (70), each time."""
    key, trusted = made_key(it, "broker")
    other = Other(it, *with_tls(key, "ssl.enabled.protocols=TLSv1.3"))
    place = f"{other.node.host.address}:{TLS_PORT}"
    other.begin()
    good = [
        it.sender(other.topic, "rate=20", *over_tls(trusted), broker=place),
        it.member(it.world.names.group(), [other.topic], "librdkafka", broker=place, protocol="classic",
                  settings=over_tls(trusted)),
    ]  # fmt: skip
    it.seconds(3, 4)
    it.from_now()
    bad = it.sender(
        other.topic, "rate=10", "security.protocol=SSL", "ssl.truststore.type=PEM",
        f"ssl.truststore.location={trusted}",
        "ssl.enabled.protocols=TLSv1.2", "ssl.protocol=TLSv1.2", "ssl.endpoint.identification.algorithm=",
        library="java", broker=place, wait=False,
    )  # fmt: skip
    it.seconds(22, 26)
    it.is_told(
        "a client offers TLS 1.2 alone, the broker takes 1.3 alone", bad.identity(), [told.client(bad)],
        rf"{HANDSHAKE}|protocol.?version|version", affected=[bad], never=[told.name(one.address) for one in good],
    )  # fmt: skip


@fault()
def token_never_renewed(it: Incident) -> None:
    """A client got its token of OAUTHBEARER once: when it expires the broker ends its session and takes it no more."""
    other = Other(it, *WITH_TOKENS)
    other.begin()
    feed = it.sender(other.topic, "rate=10", broker=other.broker)
    words = (f"topic={other.topic}", "rate=20", "lives_s=14")
    good = it.add(programs.kafkajs(it, "send", *words, "tokens=fresh", broker=other.sasl), "kafkajs",
                  topics=(other.topic,))  # fmt: skip
    bad = it.add(programs.kafkajs(it, "send", *words, "tokens=kept", broker=other.sasl), "kafkajs",
                 topics=(other.topic,))  # fmt: skip
    bad.process.wait_for_event("session", timeout_s=30)
    it.seconds(12, 13)
    it.from_now()
    it.seconds(23, 27)
    it.is_told(
        "a client goes on with a token that has expired", bad, [told.client(bad)],
        r"token|auth|SASL|login|log(?:ged)? in|credential|expir|\b58\b", affected=[bad],
        never=[told.client(good), told.client(feed)],
    )  # fmt: skip


@fault(libraries=("kafka_python",))
def topics_made_too_fast(it: Incident) -> None:
    """controller_mutation_rate lets a tenant make one partition a second: its set-up of topics is held up (89)."""
    (topic,) = it.topics(2)
    client_id = it.world.names.client()
    quota = clients.java_command("quota", f"bootstrap.servers={it.world.endpoint}", "client.id=setup",
                                 f"entity={client_id}", "limit=controller_mutation_rate", "rate=1")  # fmt: skip
    it.start("quota", "ops", quota).finish(60)
    it.begin()
    good = [it.sender(topic, "rate=20"), it.member(it.world.names.group(), [topic], "sarama")]
    it.seconds(3, 4)
    it.from_now()
    bad = it.add(programs.mistake(it, "makes_many", f"prefix={it.world.names.topic()}", "count=12", "partitions=4"),
                 "kafka_python", client_id=client_id)  # fmt: skip
    it.seconds(34, 38)
    it.is_told(
        "a quota of controller mutations holds up a client that makes topics", bad, [told.client(bad)],
        r"THROTTL|quota|\b89\b|CreateTopics|refus|controller|mutation", affected=[bad],
        never=[told.client(one) for one in good],
    )  # fmt: skip


@fault(libraries=("librdkafka", "java"))
def keys_move_to_new_partitions(it: Incident) -> None:
    """An operator adds partitions to a topic with keys: most keys go to another partition from then on."""
    (topic,) = it.topics(3)
    operator = {"client_id": it.world.names.client(), "host": it.new_host()}
    it.begin()
    library = it.library("librdkafka", "java")
    age = "metadata.max.age.ms=3000" if library == "java" else "topic.metadata.refresh.interval.ms=3000"
    feeds = [it.sender(topic, "rate=40", age, library=library) for _ in range(2)]
    member = it.member(it.world.names.group(), [topic], "librdkafka", protocol="classic", session_ms=10_000,
                       settings=("topic.metadata.refresh.interval.ms=3000",))  # fmt: skip
    it.seconds(12, 14)
    it.from_now()
    it.operate("partitions", f"topic={topic}", "partitions=8", **operator)
    it.seconds(22, 26)
    who = {"client_id": operator["client_id"], "address": it.world.hosts[operator["host"]].address}
    it.is_told(
        "partitions were added to a topic with keys: keys go to other partitions", who,
        [told.any_of(told.name(topic), told.client(feeds[0]), told.client(feeds[1]), told.name(who["client_id"]))],
        r"\bkeys?\b|order|partitions? (?:was|were|are|is) added|added partitions?|more partitions|new partitions?"
        r"|partitions? (?:grew|rose)|CreatePartitions|from \d+ to \d+ partitions",
        affected=[*feeds, member], topic=topic, any=[one.identity() for one in feeds],
    )  # fmt: skip
    it.truth["affected"]["clients"].append(who)


@fault(libraries=("librdkafka",))
def compression_lost_by_deployment(it: Incident) -> None:
    """A producer is deployed with a new image, and its codec is gone: the same records take twenty times the bytes."""
    (topic,) = it.topics(2)
    it.begin()
    good = it.sender(topic, "rate=40", "size=900", "compression.codec=lz4", "linger.ms=40")
    words = ("rate=60", "size=900", "linger.ms=40")
    before = it.sender(topic, *words, "compression.codec=zstd")
    member = it.member(it.world.names.group(), [topic], "franz")
    it.seconds(12, 14)
    before.process.terminate()
    it.seconds(0.5, 1)
    it.from_now()
    bad = it.sender(topic, *words, host=before.host, client_id=before.client_id)
    it.seconds(20, 24)
    it.is_told(
        "a producer writes without the codec that it wrote with before", bad, [told.client(bad)],
        r"compress|codec|zstd|bytes|larger|volume|size|bigger|times as much|KB|kB", affected=[bad],
        never=[told.accusing(good.client_id), told.accusing(member.client_id)],
    )  # fmt: skip


@fault(libraries=("java",), backdrop_restart=False)
def pattern_not_understood(it: Incident) -> None:
    """A member moves to the consumer protocol with its old pattern: the broker knows no (?!...), error 128."""
    (topic,) = it.topics(2)
    group, client_id, host = it.world.names.group(), it.world.names.client(), it.new_host()
    it.begin()
    feed = it.sender(topic, "rate=20")
    good = it.member(it.world.names.group(), [topic], "librdkafka", protocol="consumer")
    it.seconds(3, 4)
    it.from_now()
    started = []
    for _ in range(4):
        started.append(it.add(
            lambda name: clients.java_command(
                "work", f"bootstrap.servers={it.world.endpoint}", f"client.id={name}", f"group.id={group}",
                "group.protocol=consumer", rf"pattern=^(?!debug){topic[:2]}.*", "auto.offset.reset=earliest"),
            "java", group=group, topics=(topic,), client_id=client_id, host=host,
        ))  # fmt: skip
        it.seconds(6, 7)
        started[-1].process.terminate()
    bad = started[0]
    it.is_told(
        "the broker does not understand a member's pattern: it reads nothing", bad,
        [told.any_of(told.client(bad), told.name(group))],
        r"regular|regex|pattern|INVALID_REGULAR|\b128\b|refus|reject|nothing|no partition|not read|error",
        affected=started, never=[told.accusing(good.client_id), told.accusing(feed.client_id)],
    )  # fmt: skip
