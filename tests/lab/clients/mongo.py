"""Clients of MongoDB: pymongo, the Node driver and mongosh.

In: works that the client programs know, scripts for mongosh. Out: running clients, each on a host of its own, whose
commands command_log reads. npm installs the Node programs into .work as package-lock.json pins them.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.lab import clients, command_log
from tests.lab.clients.node import fetched, pin
from tests.lab.processes import LabError, Process, read_events
from tests.lab.runs import Run

NODE = "node_mongo"
# pymongo compresses with these; it finds them by itself.
PYTHON_CLIENTS = ("pymongo", "python-snappy", "backports.zstd")
# The Node driver, also the one in mongosh, then logs every command on standard error, with whole documents.
DRIVER_LOG = {"MONGODB_LOG_COMMAND": "debug", "MONGODB_LOG_PATH": "stderr", "MONGODB_LOG_MAX_DOCUMENT_LENGTH": "100000"}


def node_pin(package: str) -> str:
    """Return "NAME VERSION" of a Node package as package.json pins it."""
    return pin(NODE, package)


def prepare(node: bool = True) -> None:
    """Check pymongo and install the Node programs, unless these very versions are there."""
    for distribution in PYTHON_CLIENTS:
        clients.check_python_client(distribution)
    if node:
        fetched(NODE)


def python(run: Run, host: str, work: str, uri: str) -> Process:
    """Start pymongo at a work."""
    return _start(run, host, clients.python_command("mongo_client", work, uri), {})


def node(run: Run, host: str, work: str, uri: str) -> Process:
    """Start the Node driver at a work."""
    return _start(run, host, ["node", str(fetched(NODE) / "client.js"), work, uri], {})


def mongosh_command(home: Path, uri: str, script: str) -> tuple[list[str], dict[str, str]]:
    """Return the command and variables of a mongosh that gets the lines of SCRIPT; it sends its makers nothing."""
    settings = home / ".mongodb" / "mongosh"
    settings.mkdir(parents=True)
    (settings / "config").write_text(json.dumps({"enableTelemetry": False}))
    typed = home / "typed"
    typed.write_text(script)
    program = fetched(NODE) / "node_modules" / ".bin" / "mongosh"
    return ["sh", "-c", f"exec {program} --quiet --norc '{uri}' < {typed}"], {"HOME": str(home)}


def mongosh(run: Run, host: str, uri: str, script: str) -> Process:
    """Start mongosh and type the lines of SCRIPT; its home is in the run's directory."""
    command, env = mongosh_command(run.directory / f"{host}-home", uri, script)
    return _start(run, host, command, {**env, **DRIVER_LOG})


def _start(run: Run, host: str, command: list[str], env: dict[str, str]) -> Process:
    # One client per host: request ids begin alike in every process, addresses tell the clients apart.
    if (run.directory / f"{host}{command_log.CARD_SUFFIX}").exists():
        raise LabError(f"a second client on {host}")
    command_log.write_card(run.directory, host, run.hosts[host].address)
    return run.start(host, host, *command, env=env)


def last_event(directory: Path, host: str, name: str) -> dict[str, object]:
    """Return the last event of this name that a client printed; LabError if there is none."""
    found = [event for event in read_events(directory / f"{host}.out") if event.get("event") == name]
    if not found:
        raise LabError(f"{host} has not said {name!r}")
    return found[-1]
