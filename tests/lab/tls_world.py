"""Real servers with TLS on one lab host: Kafka, Mosquitto, and a front before the MongoDB test server.

In: a directory. Out: a World, in which clients run and are captured one after the other.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.lab import capture, kafka, net
from tests.lab.go_toolchain import go_command
from tests.lab.mosquitto import Mosquitto
from tests.lab.places import LAB_DIR, WORK_DIR
from tests.lab.processes import Process, run
from tests.support.tls_certificates import Authority, Paths

ADDRESS, NAME = f"{net.SUBNET}.2", "broker1.lab"
SSL_PORT, MUTUAL_PORT, EXPIRED_PORT, SASL_PORT = 9094, 9095, 19092, 29092
MQTT_TLS, MQTT_MUTUAL, MQTT_WSS = 8883, 8884, 8443
MONGO_CLEAR, MONGO_TLS, MONGO_MUTUAL, MONGO_SLOW, MONGO_FORGETS = 27017, 27018, 27019, 27020, 27021
SLOW_S = 1.5
USER, PASSWORD = "meter-app", "lab-plain-7Qx2"
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_LISTENERS = (
    ("PLAINTEXT", kafka.PORT, "PLAINTEXT"), ("SSL", SSL_PORT, "SSL"), ("MUTUAL", MUTUAL_PORT, "SSL"),
    ("EXPIRED", EXPIRED_PORT, "SSL"), ("SASL", SASL_PORT, "SASL_SSL"),
)  # fmt: skip


class Certificates(NamedTuple):
    """Of the servers and of clients; other, stranger: of an authority that nobody trusts."""

    authority: Authority
    other: Authority
    server: Paths
    expired: Paths
    client: Paths
    late: Paths
    stranger: Paths


def certificates(directory: Path) -> Certificates:
    """Make them."""
    ours, other = Authority("Lab CA", directory / "ours"), Authority("Other CA", directory / "other")
    names = [NAME, ADDRESS]
    return Certificates(
        ours, other, ours.issue(NAME, names), ours.issue(NAME, names, expires_days=-1), ours.issue("billing"),
        ours.issue("billing", expires_days=-1), other.issue("billing"),
    )  # fmt: skip


def java_agent() -> Path:
    """Return the agent that logs the keys of Java's TLS, fetched by Maven."""
    folder = WORK_DIR / "java-agent"
    kafka.copy_jars(LAB_DIR / "clients" / "java_agent" / "pom.xml", folder)
    return next(folder.glob("extract-tls-secrets-*.jar"))


def go_client() -> Path:
    """Return the client in Go, built."""
    source, target = LAB_DIR / "clients" / "go_tls", WORK_DIR / "go-tls"
    run([go_command(), "build", "-o", str(target), "."], cwd=source)
    return target


def both(paths: Paths) -> str:
    """Return one PEM file with key and certificate, as Java and MongoDB's drivers want it."""
    path = Path(paths.key).with_suffix(".both.pem")
    path.write_text(Path(paths.key).read_text() + Path(paths.certificate).read_text())
    return str(path)


def broker(made: Certificates) -> kafka.Kafka:
    """Return what the broker is to have: listeners in clear text, with TLS, mutual TLS, an old certificate, SASL."""
    places = [f"{name}://$address:{port}" for name, port, _ in _LISTENERS]
    names = ",".join(f"{name}:{protocol}" for name, _, protocol in _LISTENERS)
    return kafka.Kafka(settings=(
        f"listeners={','.join(places)},CONTROLLER://$controller:9093",
        f"advertised.listeners={','.join(places)}",
        f"listener.security.protocol.map={names},CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name=PLAINTEXT",
        "auto.create.topics.enable=true",
        "sasl.enabled.mechanisms=PLAIN",
        f'listener.name.sasl.plain.sasl.jaas.config={_PLAIN} user_{USER}="{PASSWORD}";',
        "ssl.keystore.type=PEM", f"ssl.keystore.location={both(made.server)}",
        "ssl.truststore.type=PEM", f"ssl.truststore.location={made.authority.path}",
        "listener.name.mutual.ssl.client.auth=required",
        f"listener.name.expired.ssl.keystore.location={both(made.expired)}",
    ))  # fmt: skip


def mosquitto(made: Certificates) -> Mosquitto:
    """Return the broker with listeners of TLS besides that of clear text."""
    keys = (f"certfile {made.server.certificate}", f"keyfile {made.server.key}", f"cafile {made.authority.path}")
    return Mosquitto(settings=(
        f"listener {MQTT_TLS}", *keys, f"listener {MQTT_MUTUAL}", *keys, "require_certificate true",
        f"listener {MQTT_WSS}", "socket_domain ipv4", "protocol websockets", *keys,
    ))  # fmt: skip


class World:
    """Servers that run, a host of clients, and what is captured of them."""

    def __init__(self, hosts: dict[str, net.Host], made: Certificates, directory: Path) -> None:
        self.hosts, self.made, self.directory = hosts, made, directory
        self.front_keys = directory / "front.keys"
        self._number = 0

    def python(self, library: str, port: int, **words: str) -> list[str]:
        """Return the command of a client in Python."""
        script = LAB_DIR / "clients" / "python" / "tls_client.py"
        given = {"endpoint": f"{ADDRESS}:{port}", **words}
        return [sys.executable, str(script), library, *(f"{name}={value}" for name, value in given.items())]

    def java(self, port: int, *options: str, **settings: str) -> list[str]:
        """Return the command that lists topics with Kafka's own Java client. Words of settings: `_` for `.`.

        options: of Java.
        """
        self._number += 1
        path = self.directory / f"java-{self._number}.properties"
        limits = {"request_timeout_ms": "3000", "default_api_timeout_ms": "4000"}
        lines = [f"{name.replace('_', '.')}={value}\n" for name, value in (limits | settings).items()]
        path.write_text("".join(lines))
        words = ["--list", "--bootstrap-server", f"{ADDRESS}:{port}", "--command-config", str(path)]
        return kafka.java(kafka.LIBRARIES, "org.apache.kafka.tools.TopicCommand", *words, options=options)

    def captured(self, *commands: list[str]) -> tuple[Path, list[Process]]:
        """Run clients one after the other, to their ends, however these are; return the capture."""
        self._number += 1
        folder = self.directory / f"case-{self._number}"
        folder.mkdir()
        path, ran = folder / "capture.pcapng", []
        with capture.capturing(self.hosts["broker"], path, folder):
            for number, command in enumerate(commands):
                process = Process(f"client-{number}", self.hosts["client"].command(*command), folder)
                with contextlib.suppress(Exception):
                    process.finish(90)
                process.stop()
                ran.append(process)
        return path, ran


@contextlib.contextmanager
def running(directory: Path) -> Iterator[World]:
    """Hold all servers."""
    made = certificates(directory / "keys")
    kind, mqtt = broker(made), mosquitto(made)
    kind.prepare()
    mqtt.prepare()
    with net.network(("broker",), ("client",)) as hosts, contextlib.ExitStack() as stack:
        for name in ("kafka", "mqtt", "mongo"):
            (directory / name).mkdir()
        stack.enter_context(kind.running([hosts["broker"]], directory / "kafka"))
        stack.enter_context(mqtt.running([hosts["broker"]], directory / "mqtt"))
        program = [sys.executable, "-m", "tests.support.mongo_server", f"--address={ADDRESS}", f"--port={MONGO_CLEAR}"]
        world = World(hosts, made, directory)
        own = [f"cert={made.server.certificate}", f"key={made.server.key}"]
        words = {
            MONGO_TLS: f"keylog={world.front_keys}", MONGO_MUTUAL: f"ca={made.authority.path}",
            MONGO_SLOW: f"delay_s={SLOW_S}", MONGO_FORGETS: "forgets=1",
        }  # fmt: skip
        fronts = [
            [sys.executable, "-m", "tests.lab.tls_front", f"{ADDRESS}:{port}", f"{ADDRESS}:{MONGO_CLEAR}", *own, word]
            for port, word in words.items()
        ]
        for number, command in enumerate([program, *fronts]):
            process = Process(f"server-{number}", hosts["broker"].command(*command), directory / "mongo")
            stack.callback(process.stop)
            process.wait_for_event("listening")
        yield world
