"""Mochi MQTT, a broker in Go: it does what Mosquitto 2.0 does not, aliases of its own and a DISCONNECT at take-overs.

In: a host, a directory and what a scenario wants (Mochi). Out: a running broker that logs every packet it reads and
sends, with packet identifiers, aliases and reason codes (mochi_server/main.go). The log's entries are those of
mosquitto_log; filters of a SUBSCRIBE are names, a SUBACK has codes.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.lab import clients, mosquitto_log
from tests.lab.mosquitto_log import Endpoint, LogEntry
from tests.lab.net import Host
from tests.lab.places import LAB_DIR
from tests.lab.processes import Process

PORT = 1883
LOG = "mochi.log"
MODULE = "github.com/mochi-mqtt/server/v2"


def entry_from_line(line: str) -> LogEntry:
    """Read one line of the broker's log."""
    told = json.loads(line)
    host, _, port = told.pop("client").rpartition(":")
    return LogEntry(**{**told, "client_id": told["client_id"] or None}, client=Endpoint(host, int(port)))


class Broker(NamedTuple):
    """A broker that runs."""

    host: Host
    directory: Path
    process: Process

    @property
    def endpoint(self) -> str:
        """Where clients find it."""
        return f"{self.host.address}:{PORT}"

    @property
    def log_files(self) -> tuple[Path, ...]:
        """Its log."""
        return (self.directory / LOG,)


class Mochi(NamedTuple):
    """What a scenario wants of its broker (a servers.Server)."""

    receive_maximum: int = 8
    topic_alias_maximum: int = 5
    challenge: bool = False  # of clients that name an authentication method

    @property
    def protocol(self) -> str:
        """The protocol, for names of samples."""
        return "mqtt"

    @property
    def name(self) -> str:
        """The product."""
        return "Mochi MQTT"

    @property
    def version(self) -> str:
        """The version that go.mod pins."""
        return clients.go_pin("mochi_server", MODULE, LAB_DIR).rpartition(" v")[2]

    @property
    def host_names(self) -> tuple[str, ...]:
        """The broker's host."""
        return ("broker",)

    def prepare(self) -> None:
        """Build the broker."""
        clients.go_program("mochi_server", LAB_DIR)

    @contextlib.contextmanager
    def running(self, hosts: Sequence[Host], directory: Path) -> Iterator[Broker]:
        """Hold a fresh broker; its log is in DIRECTORY."""
        log = directory / LOG
        command = [clients.go_program("mochi_server", LAB_DIR), "-log", str(log), "-listen", f":{PORT}",
                   "-receive-maximum", str(self.receive_maximum),
                   "-topic-alias-maximum", str(self.topic_alias_maximum),
                   *(["-challenge"] if self.challenge else [])]  # fmt: skip
        process = Process("mochi", hosts[0].command(*command), directory)
        try:
            process.wait_for_event("running")
            yield Broker(hosts[0], directory, process)
            process.terminate()
        finally:
            process.stop()

    def read_logs(self, paths: Iterable[Path]) -> list[LogEntry]:
        """Return the packets and events of the log."""
        return [entry_from_line(line) for path in paths for line in path.read_text().splitlines()]

    def save_log(self, records: Iterable[LogEntry], path: Path) -> None:
        """Store entries as gzipped JSON lines."""
        mosquitto_log.save(records, path)
