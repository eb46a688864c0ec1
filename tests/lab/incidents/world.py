"""What stays up over many incidents: the network, the brokers, healthy traffic.

In: a kind of brokers. Out: a World whose hosts and endpoint incidents use.
One broker has a listener for each way to advertise a wrong address, one with TLS and one with SASL.
"""

from __future__ import annotations

import contextlib
import random
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from tests.lab import kafka, net
from tests.lab.incidents.names import Names
from tests.lab.processes import Process, run

HOSTS = tuple(f"h{number}" for number in range(1, 15))
OPERATOR = "ops"
NOBODY = f"{net.SUBNET}.250"  # no host has it
SASL_PORT, TLS_PORT, UNREACHABLE_PORT, REFUSED_PORT, LOOPBACK_PORT, UNKNOWN_NAME_PORT = range(9094, 9100)
CLOSED_PORT = 9999
UNKNOWN_NAME = "kafka-0.kafka-headless.prod.internal"
USER, PASSWORD, WRONG_PASSWORD = "meter-app", "lab-plain-7Qx2", "lab-wrong-3Vb8"
KEYSTORE_PASSWORD = "lab-keystore"
# name, port, protocol, what is advertised
LISTENERS = (
    ("PLAINTEXT", kafka.PORT, "PLAINTEXT", f"$address:{kafka.PORT}"),
    ("SASL", SASL_PORT, "SASL_PLAINTEXT", f"$address:{SASL_PORT}"),
    ("TLS", TLS_PORT, "SSL", f"$address:{TLS_PORT}"),
    ("UNREACHABLE", UNREACHABLE_PORT, "PLAINTEXT", f"{NOBODY}:9092"),
    ("REFUSED", REFUSED_PORT, "PLAINTEXT", f"$address:{CLOSED_PORT}"),
    ("LOOPBACK", LOOPBACK_PORT, "PLAINTEXT", "127.0.0.1:9092"),
    ("UNKNOWN", UNKNOWN_NAME_PORT, "PLAINTEXT", f"{UNKNOWN_NAME}:9092"),
)
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SHORT_TIMES = (
    "group.consumer.min.session.timeout.ms=6000",
    "group.consumer.session.timeout.ms=8000",
    "group.share.min.heartbeat.interval.ms=1000",
    "group.share.heartbeat.interval.ms=1000",
    "group.share.min.record.lock.duration.ms=1000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms=2000",
    "quota.window.size.seconds=1",
    "offsets.retention.minutes=1",
    "offsets.retention.check.interval.ms=3000",
)


def single(directory: Path) -> kafka.Kafka:
    """Return one broker with all listeners; its key lies in DIRECTORY."""
    names = ",".join(f"{name}:{protocol}" for name, _, protocol, _ in LISTENERS)
    settings = (
        "listeners=" + ",".join([f"{name}://$address:{port}" for name, port, _, _ in LISTENERS]
                                + ["CONTROLLER://$controller:9093"]),
        "advertised.listeners=" + ",".join(f"{name}://{place}" for name, _, _, place in LISTENERS),
        f"listener.security.protocol.map={names},CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name=PLAINTEXT",
        "sasl.enabled.mechanisms=PLAIN",
        f'listener.name.sasl.plain.sasl.jaas.config={_PLAIN} user_{USER}="{PASSWORD}";',
        f"ssl.keystore.location={directory / 'broker.p12'}",
        f"ssl.keystore.password={KEYSTORE_PASSWORD}",
        "ssl.keystore.type=PKCS12",
        *SHORT_TIMES,
    )  # fmt: skip
    return kafka.Kafka(settings=settings)


def make_key(directory: Path) -> None:
    """Make the broker's key and certificate."""
    run(["keytool", "-genkeypair", "-alias", "broker", "-keyalg", "EC", "-dname", "CN=broker", "-validity", "2",
         "-storetype", "PKCS12", "-keystore", str(directory / "broker.p12"),
         "-storepass", KEYSTORE_PASSWORD])  # fmt: skip


def cluster(_: Path) -> kafka.Kafka:
    """Return three brokers, each with its controller."""
    return kafka.Kafka(
        brokers=3,
        started=0,
        settings=(
            "offsets.topic.replication.factor=3",
            "transaction.state.log.replication.factor=3",
            "num.network.threads=2",
            "num.io.threads=2",
            "broker.heartbeat.interval.ms=1000",
            "broker.session.timeout.ms=6000",
            "replica.lag.time.max.ms=5000",
            *SHORT_TIMES,
        ),
    )


KINDS = {"single": single, "cluster": cluster}


class World:
    """Hosts, brokers, and the processes that stay."""

    def __init__(
        self, kind: str, hosts: dict[str, net.Host], server: kafka.Cluster, directory: Path, seed: int
    ) -> None:
        self.kind = kind
        self.hosts = hosts
        self.server = server
        self.directory = directory
        self.rng = random.Random(seed)
        self.names = Names(self.rng)
        self.endpoint = ",".join(node.endpoint for node in server.nodes)
        self.stack = ExitStack()

    def start(self, name: str, host: str, command: Sequence[str], directory: Path) -> Process:
        """Start a program on a host."""
        return Process(name, self.hosts[host].command(*command), directory)

    def log_sizes(self) -> list[int]:
        """Return how long each broker's request log is now."""
        return [node.request_log.stat().st_size if node.request_log.exists() else 0 for node in self.server.nodes]

    def log_lines(self, since: Sequence[int]) -> list[str]:
        """Return what the request logs got since they were so long."""
        lines: list[str] = []
        for node, place in zip(self.server.nodes, since, strict=True):
            if node.request_log.exists():
                with node.request_log.open("rb") as log:
                    log.seek(place)
                    lines += log.read().decode(errors="replace").splitlines()
        return sorted(lines)


@contextlib.contextmanager
def world(kind: str, directory: Path, seed: int) -> Iterator[World]:
    """Hold a World of a kind in DIRECTORY, which goes with it."""
    directory.mkdir(parents=True, exist_ok=True)
    server = KINDS[kind](directory)
    server.prepare()
    if kind == "single":
        make_key(directory)
    try:
        with net.network(server.host_names, (*HOSTS, OPERATOR)) as hosts:
            servers = [hosts[one] for one in server.host_names]
            # A quorum needs two nodes at once. The threads stay: a child dies with the thread that started it.
            with ThreadPoolExecutor() as pool, server.running(servers, directory / "brokers") as running:
                if kind == "cluster":
                    list(pool.map(lambda node: node.start(), running.nodes))
                made = World(kind, hosts, running, directory, seed)
                with made.stack:
                    yield made
    finally:
        shutil.rmtree(directory, ignore_errors=True)
