"""What the lab asks of a kind of server; each kind is a module of its own (kafka, mosquitto, ...).

A scenario's SERVER is a value that fulfils `Server`; its fields are what the scenario wants of it. The lab makes the
hosts, starts the server, captures, and reads the server's own log, which is what our decode is compared with.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from tests.lab.net import Host


class Running(Protocol):
    """A server that runs. A kind may offer more to its own scenarios, such as nodes that can be stopped."""

    @property
    def endpoint(self) -> str:
        """Where clients find it: "10.77.0.2:9092"."""

    @property
    def log_files(self) -> tuple[Path, ...]:
        """The log of each process that ever ran, for `Server.read_logs`."""


class Server(Protocol):
    """One kind of server with what a scenario wants of it."""

    @property
    def protocol(self) -> str:
        """The protocol as it stands in the name of a sample: "kafka"."""

    @property
    def name(self) -> str:
        """The product: "Apache Kafka"."""

    @property
    def version(self) -> str:
        """The version that is pinned here, or that of the installed program."""

    @property
    def host_names(self) -> tuple[str, ...]:
        """Its hosts. The traffic of a single one is captured at its interface, that of several where all passes."""

    def prepare(self) -> None:
        """Fetch, build or check the programs, before any network exists; LabError when they cannot be had."""

    def running(self, hosts: Sequence[Host], directory: Path) -> AbstractContextManager[Running]:
        """Hold fresh processes on HOSTS, ready for clients when the block begins; data and logs are in DIRECTORY."""

    def read_logs(self, paths: Iterable[Path]) -> list[Any]:
        """Return what crossed the wire as the logs tell it, by time; reads what `save_log` wrote, too."""

    def save_log(self, records: Iterable[Any], path: Path) -> None:
        """Store records of `read_logs` as gzipped JSON lines (equal records, equal bytes)."""
