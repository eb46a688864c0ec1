"""One lab run: network, broker, capture and the scenario's clients, held together and taken down together.

In: a scenario's name and an empty directory. Out: an Outcome (capture, broker log, facts); sample_pcaps is not touched.
"""

from __future__ import annotations

import importlib
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from tests.lab import broker, broker_log, capture, net
from tests.lab.processes import LabError, Process

# In the order in which they are made; each is a module of tests.lab.scenarios.
SCENARIOS = ("stale_commit", "fenced_commit", "healthy", "admin", "cluster", "old_clients", "share_streams", "sasl")


# A race can go the other way on a busy machine: a run that did not show what it should is made again.
ATTEMPTS = 3


class Scenario(Protocol):
    """What a module of tests.lab.scenarios offers."""

    SHOWS: str
    HOSTS: tuple[str, ...]  # client hosts
    CLIENTS: tuple[str, ...]  # client programs and their versions, for the manifest
    EXPECTED: tuple[str, ...]  # detector codes that must fire above info
    # SETUP: broker.Setup, where one broker of the pinned version is not what the scenario needs

    def prepare(self) -> None:
        """Build the clients, before any network exists."""

    def drive(self, run: Run) -> None:
        """Run the clients to their end; raise LabError when the thing to show did not happen."""

    def facts(self, records: list[broker_log.LogRecord], directory: Path) -> dict[str, Any]:
        """Return what is known of the run (broker log, clients' output) as TOML values; LabError when it is no good."""


class Outcome(NamedTuple):
    """What a run leaves behind."""

    pcap: Path
    broker_logs: tuple[Path, ...]  # one of each broker
    facts: dict[str, Any]


class Run:
    """The world of a scenario while it runs: hosts, brokers, the first broker's endpoint, child processes."""

    def __init__(self, directory: Path, hosts: dict[str, net.Host], cluster: broker.Cluster, stack: ExitStack) -> None:
        self.directory = directory
        self.hosts = hosts
        self.nodes = cluster.nodes
        self.endpoint = cluster.endpoint
        self._cluster = cluster
        self._stack = stack

    def start(self, name: str, host: str, *command: str, env: dict[str, str] | None = None) -> Process:
        """Start a client program on a host; it is ended with the run at the latest."""
        process = Process(name, self.hosts[host].command(*command), self.directory, env)
        self._stack.callback(process.stop)
        return process

    def records(self) -> list[broker_log.LogRecord]:
        """Return what clients have asked of the broker so far, from its request log."""
        return broker_log.load_all(self._cluster.request_logs, on_wire=True)

    def call(self, name: str, host: str, *command: str, timeout_s: float = 60) -> Process:
        """Run a client program on a host to its end."""
        process = self.start(name, host, *command)
        process.finish(timeout_s)
        return process


def load_scenario(name: str) -> Scenario:
    """Import a scenario by name."""
    module: Any = importlib.import_module(f"tests.lab.scenarios.{name}")
    return module  # type: ignore[no-any-return]


def setup_of(scenario: Scenario) -> broker.Setup:
    """Return what a scenario's SETUP asks of its brokers; without one it is the default."""
    setup = getattr(scenario, "SETUP", broker.Setup())
    assert isinstance(setup, broker.Setup)
    return setup


def run_scenario(name: str, directory: Path) -> Outcome:
    """Run a scenario in DIRECTORY (made if needed) and return what it left there; raises LabError when it fails."""
    scenario = load_scenario(name)
    setup = setup_of(scenario)
    names = broker.host_names(setup)
    directory.mkdir(parents=True, exist_ok=True)
    pcap = directory / f"kafka_{name}.pcapng"
    scenario.prepare()
    with net.network((*names, *scenario.HOSTS)) as hosts:
        point = (hosts["broker"], "eth0") if len(names) == 1 else (hosts["switch"], "br0")
        with (
            broker.running([hosts[one] for one in names], directory, setup) as cluster,
            capture.capturing(point[0], pcap, directory, point[1]),  # outlives the clients: it sees how they leave
            ExitStack() as stack,
        ):
            scenario.drive(Run(directory, hosts, cluster, stack))
    facts = scenario.facts(broker_log.load_all(cluster.request_logs, on_wire=True), directory)
    return Outcome(pcap, cluster.request_logs, facts)


def run_until_good(name: str, directory: Path, attempts: int = ATTEMPTS) -> Outcome:
    """Run a scenario until it shows what it should; failed attempts are told on standard error, the last one raises."""
    for attempt in range(1, attempts):
        try:
            return run_scenario(name, directory / str(attempt))
        except LabError as error:
            print(f"{name}, attempt {attempt}: {error}", file=sys.stderr)
    return run_scenario(name, directory / str(attempts))
