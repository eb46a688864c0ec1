"""One lab run: network, servers, capture and the scenario's clients, held together and taken down together.

In: a scenario's name and an empty directory. Out: an Outcome: capture, server logs, facts. sample_pcaps is not touched.
"""

from __future__ import annotations

import importlib
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from tests.lab import capture, net
from tests.lab.processes import LabError, Process
from tests.lab.servers import Running, Server

# In the order in which they are made; each is a module of tests.lab.scenarios.PROTOCOL.
KAFKA = ("stale_commit", "fenced_commit", "healthy", "admin", "cluster", "old_clients", "share_streams", "sasl")
MONGO = ("show_databases", "shapes_and_errors", "compressed", "healthy")
MQTT = ("takeover_loop", "qos2_stuck", "v5_features", "websocket", "healthy", "faults", "other_broker", "resumed",
        "no_answer", "enhanced_auth")  # fmt: skip
OF_PROTOCOLS = {"kafka": KAFKA, "mongo": MONGO, "mqtt": MQTT}
# PROTOCOL_NAME, which is also the name of the sample.
SCENARIOS = tuple(f"{protocol}_{name}" for protocol, names in OF_PROTOCOLS.items() for name in names)

# A race can go the other way on a busy machine: a run that did not show what it should is made again.
ATTEMPTS = 3


class Scenario(Protocol):
    """What a scenario's module offers; `before_capture(run)`, if it is there, does what the capture shall not see."""

    SERVER: Server
    SHOWS: str
    HOSTS: tuple[str, ...]  # client hosts
    CLIENTS: tuple[str, ...]  # client programs and their versions, for the manifest
    EXPECTED: tuple[str, ...]  # rule codes that must fire above info

    def prepare(self) -> None:
        """Build the clients, before any network exists."""

    def drive(self, run: Run) -> None:
        """Run the clients to their end; raise LabError when the thing to show did not happen."""

    def facts(self, records: list[Any], directory: Path) -> dict[str, Any]:
        """Return what is known of the run (server's log, clients' output) as TOML values; LabError if it is no good."""


class Outcome(NamedTuple):
    """What a run leaves behind."""

    pcap: Path
    server_logs: tuple[Path, ...]  # one of each process of the server
    facts: dict[str, Any]


class Run:
    """The world of a scenario while it runs: hosts, the server and its endpoint, child processes."""

    def __init__(
        self, directory: Path, hosts: dict[str, net.Host], server: Running, kind: Server, stack: ExitStack
    ) -> None:
        self.directory = directory
        self.hosts = hosts
        self.server: Any = server  # a Running; scenarios know their own kind's other parts
        self.endpoint = server.endpoint
        self.processes: dict[str, Process] = {}  # all that were started, by name
        self._kind = kind
        self._stack = stack

    def start(self, name: str, host: str, *command: str, env: dict[str, str] | None = None) -> Process:
        """Start a client program on a host; it is ended with the run at the latest."""
        process = self.processes[name] = Process(name, self.hosts[host].command(*command), self.directory, env)
        self._stack.callback(process.stop)
        return process

    def ends_with(self, stack: ExitStack) -> None:
        """Let STACK end the programs that are started from now on."""
        self._stack = stack

    def records(self) -> list[Any]:
        """Return what crossed the wire so far, from the server's log."""
        return self._kind.read_logs(self.server.log_files)

    def call(self, name: str, host: str, *command: str, timeout_s: float = 60) -> Process:
        """Run a client program on a host to its end."""
        process = self.start(name, host, *command)
        process.finish(timeout_s)
        return process


def load_scenario(name: str) -> Scenario:
    """Import a scenario by its full name."""
    protocol, _, short = name.partition("_")
    module: Any = importlib.import_module(f"tests.lab.scenarios.{protocol}.{short}")
    return module  # type: ignore[no-any-return]


def names_meant(word: str) -> list[str]:
    """Return the scenarios that a word names: one by its full name, or those of a protocol or a short name."""
    return [name for name in SCENARIOS if word in (name, *name.split("_", 1))]


def run_scenario(name: str, directory: Path) -> Outcome:
    """Run a scenario in DIRECTORY (made if needed) and return what it left there; raises LabError when it fails."""
    scenario = load_scenario(name)
    kind = scenario.SERVER
    directory.mkdir(parents=True, exist_ok=True)
    pcap = directory / f"{name}.pcapng"
    kind.prepare()
    scenario.prepare()
    with net.network(kind.host_names, scenario.HOSTS) as hosts:
        servers = [hosts[one] for one in kind.host_names]
        point = (servers[0], "eth0") if len(servers) == 1 else (hosts["switch"], "br0")
        with kind.running(servers, directory) as server, ExitStack() as early:
            run = Run(directory, hosts, server, kind, early)
            for begin in [scenario.before_capture] if hasattr(scenario, "before_capture") else []:
                begin(run)
            # The capture outlives the clients: it sees how they leave.
            with capture.capturing(point[0], pcap, directory, point[1]), ExitStack() as stack:
                run.ends_with(stack)
                scenario.drive(run)
    facts = scenario.facts(kind.read_logs(server.log_files), directory)
    return Outcome(pcap, server.log_files, facts)


def run_until_good(name: str, directory: Path, attempts: int = ATTEMPTS) -> Outcome:
    """Run a scenario until it shows what it should; failed attempts are told on standard error, the last one raises."""
    for attempt in range(1, attempts):
        try:
            return run_scenario(name, directory / str(attempt))
        except LabError as error:
            print(f"{name}, attempt {attempt}: {error}", file=sys.stderr)
    return run_scenario(name, directory / str(attempts))
