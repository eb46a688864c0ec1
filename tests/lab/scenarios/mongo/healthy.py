"""Ordinary work of two drivers against FerretDB, authenticated with SCRAM-SHA-256; nothing is wrong.

Indexes, reads and writes, aggregates, cursors that are read to their end or closed. The passwords are of the lab only.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.lab import clients
from tests.lab.clients import mongo
from tests.lab.command_log import CommandRecord
from tests.lab.mongo_servers import FerretDB, Login
from tests.lab.processes import LabError
from tests.lab.runs import Run
from tests.lab.scenarios.mongo.command_facts import facts_of, slowest_us

SHOWS = "ordinary work of pymongo and the Node driver, authenticated with SCRAM-SHA-256"
HOSTS = ("pymongo", "node")
CLIENTS = (clients.python_pin("pymongo"), mongo.node_pin("mongodb"))
EXPECTED: tuple[str, ...] = ()
LOGIN = Login("ada", "lab-mongo-4Tq8")
SERVER = FerretDB(LOGIN)
# FerretDB does not know endSessions, with which pymongo says goodbye.
EVERYDAY = {("endSessions", 59)}
SLOW_US = 100_000  # a healthy run has nothing that is slow


def prepare() -> None:
    """Install the drivers."""
    mongo.prepare()


def drive(run: Run) -> None:
    """Let both work at the same time."""
    uri = f"mongodb://{LOGIN.user}:{LOGIN.password}@{run.endpoint}/?authMechanism=SCRAM-SHA-256"
    started = [mongo.python(run, "pymongo", "everyday", uri), mongo.node(run, "node", "everyday", uri)]
    for process in started:
        process.finish()


def facts(records: list[CommandRecord], directory: Path) -> dict[str, Any]:
    """Return the commands; LabError if anything is wrong or slow."""
    asked = [record for record in records if record.acknowledged and (record.command, record.code) not in EVERYDAY]
    wrong = [record for record in asked if not record.ok or record.write_errors]
    if wrong or slowest_us(records) > SLOW_US:
        raise LabError(f"slowest {slowest_us(records)} us, wrong: {wrong}")
    found = {host: mongo.last_event(directory, host, "done")["found"] for host in HOSTS}
    if found != {"pymongo": 15, "node": 8}:
        raise LabError(f"found: {found}")
    everyday = [{"command": command, "code": code} for command, code in sorted(EVERYDAY)]
    return {**facts_of(records), "everyday_errors": everyday, "user_name": LOGIN.user}
