"""What stands between clients and brokers: proxies, balancers, paths that lose large packets, certificates."""

from __future__ import annotations

from tests.lab import clients, kafka
from tests.lab.incidents import told
from tests.lab.incidents.catalogue import fault
from tests.lab.incidents.faults import programs
from tests.lab.incidents.faults.ended import Other
from tests.lab.incidents.incident import Client, Incident
from tests.lab.incidents.world import CLOSED_PORT, KEYSTORE_PASSWORD, TLS_PORT
from tests.lab.large_lost import losing_large
from tests.lab.processes import Process, run

CLOSED = r"clos|FIN|RST|reset|end(?:s|ed)|dropp|disconnect|short|lived|after (?:about )?\d+(?:\.\d+)? s"


@fault(libraries=("librdkafka",))
def large_packets_lost(it: Incident) -> None:
    """A tunnel on a client's path takes smaller packets than its ends know: large requests never arrive."""
    (topic,) = it.topics(2)
    it.begin()
    feed = it.sender(topic, "rate=20")
    bad = it.sender(topic, "rate=60", "size=400", "socket.timeout.ms=10000", "request.timeout.ms=8000", "linger.ms=100")
    good = it.member(it.world.names.group(), [topic], "librdkafka")
    it.seconds(6, 8)
    it.from_now()
    with losing_large(it.world.hosts["broker"], bad.address):
        it.seconds(32, 38)
    it.until_now()
    it.is_told(
        "large packets of a client are lost, small ones arrive", {"address": bad.address}, [told.client(bad)],
        r"large|MTU|retransm|lost|not acknowledged|never acknowledged|unacknowledged|segment|size|bytes|black",
        affected=[bad], never=[told.client(feed), told.client(good)],
    )  # fmt: skip
    it.truth["sides"] = ["network"]


class Behind:
    """A broker that is reached over a proxy alone; the capture is where all traffic passes."""

    def __init__(self, it: Incident, lifetime_s: float) -> None:
        self.it, self.proxy_host, self.lifetime_s = it, it.new_host(), lifetime_s
        self.front, host = it.world.hosts[self.proxy_host], it.new_host()
        self.broker, self.behind = f"{self.front.address}:{kafka.PORT}", it.world.hosts[host].address
        self.proxy = self.started(f"{self.behind}:{kafka.PORT}")
        _, self.node = it.other_broker(f"advertised.listeners=PLAINTEXT://{self.broker}", host=host)
        self.topic = it.world.names.topic()

    def started(self, *targets: str) -> Process:
        """Start the proxy with these targets."""
        command = clients.python_command("proxy", self.broker, ",".join(targets), str(self.lifetime_s))
        made = self.it.start(f"proxy-{len(targets)}", self.proxy_host, command)
        made.wait_for_event("listening")
        return made

    def loses_a_target(self) -> None:
        """Start the proxy anew; every other connection is for a target that refuses."""
        self.proxy.kill()
        self.proxy = self.started(f"{self.behind}:{kafka.PORT}", f"{self.behind}:{CLOSED_PORT}")

    def begin(self) -> list[Client]:
        """Make the topic, start the capture, a producer and two groups."""
        self.it.operate("create", f"topics={self.topic}:2", "copies=1", broker=self.broker)
        self.it.begin(everywhere=True)
        return [
            self.it.sender(self.topic, "rate=20", broker=self.broker),
            *(self.it.member(self.it.world.names.group(), [self.topic], library, broker=self.broker,
                             protocol="classic", session_ms=10_000)
              for library in ("franz", "librdkafka")),
        ]  # fmt: skip


@fault(libraries=("librdkafka",), backdrop_restart=False)
def proxy_ends_connections(it: Incident) -> None:
    """A proxy before a broker ends each connection after nine seconds, whatever is said on it."""
    behind = Behind(it, 9)
    behind_it = behind.begin()
    it.from_now()
    it.seconds(40, 45)
    it.is_told(
        "a proxy ends each connection after nine seconds", {"server": behind.broker},
        [told.any_of(told.name(behind.front.address), *(told.client(one) for one in behind_it)), "connection"], CLOSED,
        affected=behind_it,
    )  # fmt: skip
    it.truth["cluster_wide"] = True
    it.truth["sides"] = ["network", "server"]


@fault(libraries=("librdkafka",), backdrop_restart=False)
def proxy_with_a_dead_target(it: Incident) -> None:
    """One of two targets of a proxy is dead: it takes a connection and closes it before a byte is answered."""
    behind = Behind(it, 0)
    good = behind.begin()
    it.seconds(2, 3)
    it.from_now()
    behind.loses_a_target()
    bad = it.add(programs.kafkajs(it, "looks", f"topic={behind.topic}", "pause_ms=400", broker=behind.broker),
                 "kafkajs", topics=(behind.topic,))  # fmt: skip
    bad.process.wait_for_event("session", timeout_s=40)
    it.seconds(28, 32)
    it.is_told(
        "a proxy closes every other connection at once: one of its targets is dead", {"server": behind.broker},
        [told.any_of(told.name(behind.front.address), told.client(bad))],
        rf"{CLOSED}|refus|without (?:an )?answer|unanswered|no answer|at once|before|accept", affected=[bad, *good],
    )  # fmt: skip
    it.truth["cluster_wide"] = True


@fault(libraries=("librdkafka", "franz"), backdrop_restart=False)
def balancer_before_brokers(it: Incident) -> None:
    """Both brokers advertise a balancer's address: half of the requests reach the wrong one."""
    front = it.new_host()
    place = f"{it.world.hosts[front].address}:{kafka.PORT}"
    inside = 9091
    _, nodes = it.brokers(
        2,
        f"listeners=PLAINTEXT://$address:{kafka.PORT},INSIDE://$address:{inside},CONTROLLER://$controller:9093",
        f"advertised.listeners=PLAINTEXT://{place},INSIDE://$address:{inside}",
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name=INSIDE",
        "offsets.topic.replication.factor=2",
    )
    targets = ",".join(node.endpoint for node in nodes)
    it.start("balancer", front, clients.python_command("proxy", place, targets, "0")).wait_for_event("listening")
    topic = it.world.names.topic()
    it.operate("create", f"topics={topic}:6", "copies=1", broker=f"{nodes[0].host.address}:{inside}")
    it.begin(everywhere=True)
    it.from_now()
    feed = it.sender(topic, "rate=30", broker=place)
    members = [
        it.member(it.world.names.group(), [topic], library, broker=place, protocol="classic", session_ms=10_000,
                  wait=False)
        for library in ("librdkafka", "franz")
    ]  # fmt: skip
    it.seconds(34, 38)
    it.is_told(
        "all brokers advertise the address of a balancer: requests reach the wrong one", {"server": place},
        [told.any_of(told.name(it.world.hosts[front].address), told.name(topic),
                     *(told.client(one) for one in (feed, *members)))],
        r"NOT_LEADER|not the leader|leader|NOT_COORDINATOR|coordinator|balanc|wrong broker|same address|one address"
        r"|advertis|several brokers|two brokers",
        affected=[feed, *members], topic=topic,
    )  # fmt: skip
    it.truth["cluster_wide"] = True


@fault(backdrop_restart=False)
def reconnects_without_backoff(it: Incident) -> None:
    """A broker is away for a while; one client of three knocks again without a pause."""
    other = Other(it)
    other.begin()
    good = [
        it.sender(other.topic, "rate=20", broker=other.broker),
        it.member(it.world.names.group(), [other.topic], "franz", broker=other.broker),
    ]
    bad = it.add(programs.raw_habit("keeps_leader", other.broker, f"topic={other.topic}", "pause_s=0.01"), "our own",
                 topics=(other.topic,))  # fmt: skip
    bad.process.wait_for_event("session", timeout_s=30)
    it.seconds(7, 8)
    it.from_now()
    other.node.stop()
    it.seconds(13, 15)
    other.node.start()
    it.until_now()
    it.seconds(6, 8)
    it.is_told(
        "a client connects again without a pause while its broker is away", bad, [told.client(bad)],
        r"connect|SYN|refus|RST|backoff|attempts|tries|times", affected=[bad, *good],
        never=[rf"{told.client(one)}[^.]*(?:without|backoff)" for one in good],
    )  # fmt: skip
    it.truth["cluster_wide"] = True


@fault(libraries=("librdkafka",))
def certificate_expired(it: Incident) -> None:
    """The certificate of a broker expired yesterday: clients that check it end each handshake with an alert."""
    key, trusted = it.logs / "expired.p12", it.logs / "expired.pem"
    where = ["-alias", "broker", "-storetype", "PKCS12", "-keystore", str(key), "-storepass", KEYSTORE_PASSWORD]
    run(["keytool", "-genkeypair", "-keyalg", "EC", "-dname", "CN=broker", "-startdate", "-30d", "-validity", "29",
         *where])  # fmt: skip
    run(["keytool", "-exportcert", "-rfc", "-file", str(trusted), *where])
    other = Other(
        it,
        f"listeners=PLAINTEXT://$address:{kafka.PORT},TLS://$address:{TLS_PORT},CONTROLLER://$controller:9093",
        f"advertised.listeners=PLAINTEXT://$address:{kafka.PORT},TLS://$address:{TLS_PORT}",
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,TLS:SSL,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name=PLAINTEXT", f"ssl.keystore.location={key}", "ssl.enabled.protocols=TLSv1.2",
        f"ssl.keystore.password={KEYSTORE_PASSWORD}", "ssl.keystore.type=PKCS12",
    )  # fmt: skip
    other.begin()
    good = other.around()
    it.seconds(3, 4)
    it.from_now()
    place = f"{other.node.host.address}:{TLS_PORT}"
    bad = [
        it.sender(other.topic, "rate=10", "security.protocol=ssl", f"ssl.ca.location={trusted}",
                  "ssl.endpoint.identification.algorithm=none", broker=place, wait=False)
        for _ in range(2)
    ]  # fmt: skip
    it.seconds(18, 22)
    it.is_told(
        "the certificate of a broker has expired", {"server": place, "node": 1},
        [told.any_of(told.name(other.node.host.address), *(told.client(one) for one in bad))],
        r"certificate|expired|TLS|SSL|handshake|alert", affected=bad, never=[told.client(one) for one in good],
    )  # fmt: skip
