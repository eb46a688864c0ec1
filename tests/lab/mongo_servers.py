"""Servers that speak MongoDB's protocol: FerretDB with its embedded SQLite, and this project's own test server.

In: hosts, a directory and what a scenario wants. Out: a running server. Neither logs what crossed the wire: the log of
a run is what the drivers say of their commands (command_log).
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.conftest import IMPORT_PATH
from tests.lab import command_log
from tests.lab.go_toolchain import go_command
from tests.lab.net import Host
from tests.lab.places import LAB_DIR, WORK_DIR
from tests.lab.processes import LabError, Process, run, wait_until

FERRETDB_MODULE = LAB_DIR / "ferretdb"
PORT = 27017
SECOND_PORT = 27018  # of a test server that compresses nothing
START_S = 20
ROOT = LAB_DIR.parents[1]


class Login(NamedTuple):
    """A user and the password."""

    user: str
    password: str


class RunningServer(NamedTuple):
    """A server that runs, and where its clients leave what they print."""

    endpoint: str
    directory: Path

    @property
    def log_files(self) -> tuple[Path, ...]:
        """The notes of the clients that ran; command_log reads their output through them."""
        return command_log.cards(self.directory)


def ferretdb_version() -> str:
    """Return the pinned version of go.mod, without the v."""
    found = re.search(r"FerretDB/FerretDB v(\S+)", (FERRETDB_MODULE / "go.mod").read_text())
    if found is None:
        raise LabError("ferretdb/go.mod names no version")
    return found.group(1)


def build_ferretdb() -> Path:
    """Build the pinned FerretDB unless that is done, and return the binary.

    Its main package asks for a file version.txt that releases do not hold, so that it is built from a copy.
    """
    version = ferretdb_version()
    folder = WORK_DIR / f"ferretdb-{version}"
    binary = folder / "ferretdb"
    if binary.exists():
        return binary
    env = {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local"}
    words = [go_command(), "mod", "download", "-json", "github.com/FerretDB/FerretDB"]
    source = folder / "source"
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(json.loads(run(words, cwd=FERRETDB_MODULE, env=env))["Dir"], source)
    for one in (source, *source.rglob("*")):
        one.chmod(0o755 if one.is_dir() else 0o644)  # the module cache is read-only
    (source / "build" / "version" / "version.txt").write_text(f"v{version}\n")
    tags = "ferretdb_no_postgresql"
    run([go_command(), "build", "-trimpath", "-buildvcs=false", "-tags", tags, "-o", str(binary), "./cmd/ferretdb"],
        cwd=source, env=env)  # fmt: skip
    return binary


class FerretDB(NamedTuple):
    """What a scenario wants of FerretDB (a servers.Server); with a login, clients must authenticate."""

    login: Login | None = None

    @property
    def protocol(self) -> str:
        """The protocol, for names of samples."""
        return "mongo"

    @property
    def name(self) -> str:
        """The product."""
        return "FerretDB"

    @property
    def version(self) -> str:
        """The pinned version."""
        return ferretdb_version()

    @property
    def host_names(self) -> tuple[str, ...]:
        """One host."""
        return ("server",)

    def prepare(self) -> None:
        """Build it."""
        build_ferretdb()

    @contextlib.contextmanager
    def running(self, hosts: Sequence[Host], directory: Path) -> Iterator[RunningServer]:
        """Hold a fresh server; its SQLite files are in DIRECTORY. It sends nothing to its makers."""
        data = directory / "data"
        data.mkdir()
        endpoint = f"{hosts[0].address}:{PORT}"
        command = [str(build_ferretdb()), "--handler=sqlite", f"--sqlite-url=file:{data}/", f"--listen-addr={endpoint}",
                   "--telemetry=disable", "--debug-addr=-", f"--state-dir={directory}"]  # fmt: skip
        if self.login is not None:
            command += ["--test-enable-new-auth", "--setup-database=admin", f"--setup-username={self.login.user}",
                        f"--setup-password={self.login.password}"]  # fmt: skip
        process = Process("server", hosts[0].command(*command), directory)
        with stopped(process):
            wait_for_words(process, process.stderr_path, "Listening on TCP")
            yield RunningServer(endpoint, directory)

    def read_logs(self, paths: Iterable[Path]) -> list[command_log.CommandRecord]:
        """Return the commands that clients told of."""
        return command_log.load_all(paths)

    def save_log(self, records: Iterable[command_log.CommandRecord], path: Path) -> None:
        """Store records as gzipped JSON lines."""
        command_log.save(records, path)


class TestServer(NamedTuple):
    """What a scenario wants of the project's own server (a servers.Server), tests/support/mongo_server.

    A second one on SECOND_PORT compresses nothing and asks for no login.
    """

    compressors: tuple[str, ...] = ("snappy", "zlib", "zstd")
    login: Login | None = None

    @property
    def protocol(self) -> str:
        """The protocol, for names of samples."""
        return "mongo"

    @property
    def name(self) -> str:
        """What it is: no product."""
        return "test server of this project (tests/support/mongo_server)"

    @property
    def version(self) -> str:
        """It says that it is of this version of MongoDB."""
        return "8.0.0"

    @property
    def host_names(self) -> tuple[str, ...]:
        """One host."""
        return ("server",)

    def prepare(self) -> None:
        """Nothing is to be built."""

    @contextlib.contextmanager
    def running(self, hosts: Sequence[Host], directory: Path) -> Iterator[RunningServer]:
        """Hold both servers."""
        address = hosts[0].address
        users = [] if self.login is None else [f"--user={self.login.user}:{self.login.password}"]
        words = {"server": [f"--port={PORT}", f"--compressors={','.join(self.compressors)}", *users],
                 "server2": [f"--port={SECOND_PORT}"]}  # fmt: skip
        with contextlib.ExitStack() as stack:
            for name, more in words.items():
                program = [sys.executable, "-m", "tests.support.mongo_server", f"--address={address}", *more]
                process = Process(name, hosts[0].command(*program), directory, {"PYTHONPATH": IMPORT_PATH})
                stack.enter_context(stopped(process))
                wait_for_words(process, process.stdout_path, "listening")
            yield RunningServer(f"{address}:{PORT}", directory)

    def read_logs(self, paths: Iterable[Path]) -> list[command_log.CommandRecord]:
        """Return the commands that clients told of."""
        return command_log.load_all(paths)

    def save_log(self, records: Iterable[command_log.CommandRecord], path: Path) -> None:
        """Store records as gzipped JSON lines."""
        command_log.save(records, path)


@contextlib.contextmanager
def stopped(process: Process) -> Iterator[None]:
    """Stop a server at the block's end, by force if need be."""
    try:
        yield
    finally:
        process.stop(timeout_s=5)


def wait_for_words(process: Process, path: Path, words: str) -> None:
    """Wait until the server has written these words."""

    def ready() -> bool:
        process.check_alive("it was ready")
        return words in path.read_text(errors="replace")

    wait_until(ready, f"{process.name} is ready, see {path}", START_S)
