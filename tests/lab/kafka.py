"""Real Apache Kafka brokers: fetched by Maven, formatted, started on lab hosts, stopped.

In: hosts, a directory and what a scenario wants (Kafka). Out: a running KRaft cluster, most often of one node, and its
request logs.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from string import Template
from typing import NamedTuple

from tests.lab import broker_log
from tests.lab.net import Host
from tests.lab.places import LAB_DIR, WORK_DIR
from tests.lab.processes import LabError, Process, run, wait_until

POM = LAB_DIR / "broker" / "pom.xml"
LIBRARIES = WORK_DIR / "broker-libs"
PORT = 9092
CONTROLLER_PORT = 9093
# Fixed, so that samples that are made again differ only where a run must differ.
CLUSTER_ID = "d2lyZXdpdG5lc3MtbGFiMQ"
START_S = 60


def version() -> str:
    """Return the pinned Kafka version of the pom."""
    found = re.search(r"<kafka.version>([^<]+)<", POM.read_text())
    if found is None:
        raise LabError(f"no kafka.version in {POM}")
    return found.group(1)


def libraries(wanted: str) -> Path:
    """Return the folder of a Kafka version's jars."""
    return LIBRARIES if wanted == version() else LIBRARIES.with_name(f"{LIBRARIES.name}-{wanted}")


def copy_jars(pom: Path, target: Path, *properties: str) -> None:
    """Let Maven copy what a pom names to TARGET, unless this pom's jars are there already."""
    stamp, content = target / "pom.stamp", pom.read_text() + "".join(properties)
    if stamp.exists() and stamp.read_text() == content:
        return
    run(["mvn", "-B", "-q", "-f", str(pom), *properties, "dependency:copy-dependencies",
         f"-DoutputDirectory={target}", "-DincludeScope=runtime"])  # fmt: skip
    stamp.write_text(content)


def fetch(wanted: str | None = None) -> None:
    """Fetch the broker of a version (None: the pinned one) and what it needs."""
    if wanted is None or wanted == version():
        copy_jars(POM, LIBRARIES)
    else:
        copy_jars(POM, libraries(wanted), f"-Dkafka.version={wanted}")


def java(jars: Path, main_class: str, *words: str, options: tuple[str, ...] = ()) -> list[str]:
    """Return the command that runs a main class of the broker's jars."""
    return ["java", "-Xms128m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *options,
            "-cp", f"{jars}/*", main_class, *words]  # fmt: skip


class Node:
    """One broker with its controller: its files and its process, which can be stopped and started again."""

    def __init__(self, number: int, hosts: Sequence[Host], run_dir: Path, setup: Kafka) -> None:
        self.number = number
        self.host = hosts[number - 1]
        self.endpoint = f"{self.host.address}:{PORT}"
        self.request_log = run_dir / "requests.log"
        self._dir = run_dir
        self._setup = setup
        self._process: Process | None = None
        # A single node's controller stays on loopback; several meet on the lab's network.
        self._controllers = [host.address for host in hosts] if len(hosts) > 1 else ["127.0.0.1"]

    def format(self) -> None:
        """Fill the templates of broker/ for this run and format the node's storage."""
        self._dir.mkdir(parents=True, exist_ok=True)
        controllers = [f"{address}:{CONTROLLER_PORT}" for address in self._controllers]
        voters = ",".join(f"{number}@{place}" for number, place in enumerate(controllers, 1))
        values = {"address": self.host.address, "port": str(PORT), "run_dir": str(self._dir),
                  "voters": voters, "controllers": ",".join(controllers), "node": str(self.number),
                  "controller": self._controllers[self.number - 1],
                  "shutdown_hook": "disable" if len(controllers) > 1 else "enable"}  # fmt: skip
        for name in ("server.properties", "log4j2.properties"):
            (self._dir / name).write_text(Template((POM.parent / name).read_text()).substitute(values))
        config = self._dir / "server.properties"
        config.write_text(with_settings(config.read_text(), self._setup.settings, values))
        words = self._setup.format_words[self.number - 1] if self._setup.format_words else ()
        run(self._java("kafka.tools.StorageTool", "format", "-t", self._setup.cluster_id, "-c", str(config), *words))

    def start(self) -> None:
        """Start the node and return when it is ready."""
        began = self._log_text().count("Kafka Server started")
        options = (f"-Dlog4j2.configurationFile={self._dir / 'log4j2.properties'}",)
        command = self._java("kafka.Kafka", str(self._dir / "server.properties"), options=options)
        self._process = process = Process("broker", self.host.command(*command), self._dir)

        def ready() -> bool:
            process.check_alive("the broker was ready")
            return self._log_text().count("Kafka Server started") > began

        wait_until(ready, f"the broker is ready, see {self._dir / 'server.log'}", START_S)

    def stop(self, timeout_s: float = 30) -> None:
        """Stop the node in order, or by force when that takes too long."""
        if self._process is not None:
            self._process.stop(timeout_s)

    def change(self, *settings: str) -> None:
        """Give the node other settings; they hold from its next start on."""
        config = self._dir / "server.properties"
        config.write_text(with_settings(config.read_text(), settings, {}))

    def freeze(self) -> None:
        """Stop the node where it is: its kernel goes on to take what is sent to it."""
        if self._process is not None:
            self._process.freeze()

    def thaw(self) -> None:
        """Let a frozen node go on."""
        if self._process is not None:
            self._process.thaw()

    def _java(self, main_class: str, *words: str, options: tuple[str, ...] = ()) -> list[str]:
        return java(libraries(self._setup.version), main_class, *words, options=options)

    def _log_text(self) -> str:
        path = self._dir / "server.log"
        return path.read_text(errors="replace") if path.exists() else ""


def with_settings(text: str, settings: Sequence[str], values: dict[str, str]) -> str:
    """Return a properties file with SETTINGS, $names filled in, instead of lines of the same names; "name=" drops."""
    lines = [Template(line).substitute(values) for line in settings]
    names = {line.partition("=")[0] for line in lines}
    kept = [line for line in text.splitlines() if line.partition("=")[0] not in names]
    return "\n".join([*kept, *(line for line in lines if line.partition("=")[2])]) + "\n"


class Cluster(NamedTuple):
    """Running brokers."""

    nodes: tuple[Node, ...]

    @property
    def endpoint(self) -> str:
        """Where clients find the first broker."""
        return self.nodes[0].endpoint

    @property
    def log_files(self) -> tuple[Path, ...]:
        """The request log of each node that ever ran."""
        return tuple(node.request_log for node in self.nodes if node.request_log.exists())


class Kafka(NamedTuple):
    """What a scenario wants of its brokers (a servers.Server); nothing said: one broker of the pinned version."""

    version: str = version()
    brokers: int = 1
    settings: tuple[str, ...] = ()  # lines of server.properties that replace the template's
    format_words: tuple[tuple[str, ...], ...] = ()  # of each node, for StorageTool format
    started: int | None = None  # how many nodes run from the beginning; None: all
    cluster_id: str = CLUSTER_ID

    @property
    def protocol(self) -> str:
        """The protocol, for names of samples."""
        return "kafka"

    @property
    def name(self) -> str:
        """The product."""
        return "Apache Kafka"

    @property
    def host_names(self) -> tuple[str, ...]:
        """The brokers' hosts."""
        return ("broker", *(f"broker{number}" for number in range(2, self.brokers + 1)))

    def prepare(self) -> None:
        """Fetch the brokers' jars."""
        fetch(self.version)

    @contextlib.contextmanager
    def running(self, hosts: Sequence[Host], directory: Path) -> Iterator[Cluster]:
        """Hold fresh brokers on HOSTS; each has data, logs and request log in DIRECTORY, several in a folder each."""
        alone = len(hosts) == 1
        numbers = range(1, len(hosts) + 1)
        nodes = tuple(Node(n, hosts, directory if alone else directory / f"broker{n}", self) for n in numbers)
        for node in nodes:
            node.format()
        try:
            for node in nodes[: self.started]:
                node.start()
            yield Cluster(nodes)
            for node in reversed(nodes):
                node.stop()
        finally:
            for node in nodes:
                node.stop(timeout_s=5)

    def read_logs(self, paths: Iterable[Path]) -> list[broker_log.LogRecord]:
        """Return what was asked over the wire."""
        return broker_log.load_all(paths, on_wire=True)

    def save_log(self, records: Iterable[broker_log.LogRecord], path: Path) -> None:
        """Store records as gzipped JSON lines."""
        broker_log.save(records, path)
