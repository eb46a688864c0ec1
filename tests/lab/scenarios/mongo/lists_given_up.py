"""Two applications that give lists up in the middle: one with MongoDB's Go driver 1.10.4, whose Cursor.All leaves the
cursor open when the context of its caller is cancelled, and one with 1.11.0, the next release, which kills it. It is no
sample: a test holds both to the contract `mongo-driver`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.lab import clients
from tests.lab.command_log import CommandRecord
from tests.lab.mongo_servers import FerretDB
from tests.lab.processes import LabError, Process, read_events
from tests.lab.runs import Run

SHOWS = "cursors that the Go driver 1.10.4 leaves open, beside 1.11.0, which kills them"
OLD, NEW = "shop-old", "shop-new"  # applications and hosts
HOSTS = (OLD, NEW)
CLIENTS = ("mongo-driver v1.10.4", "mongo-driver v1.11.0")
EXPECTED = ("MON104",)
SERVER = FerretDB()
PROGRAM, MODULE, FIXED = "go_mongo_old", "go.mongodb.org/mongo-driver", "v1.11.0"
# So many, and so long a rest, that they are told as cursors that grow in number.
LISTS, REST_S = 24, 12


def prepare() -> None:
    """Build the clients."""
    _programs()


def _programs() -> dict[str, str]:
    return {OLD: clients.go_program(PROGRAM), NEW: clients.go_program_with(PROGRAM, MODULE, FIXED)}


def drive(run: Run) -> None:
    """Let both work at the same time."""
    processes: list[Process] = [
        run.start(name, name, program, f"mongodb://{run.endpoint}/", name, str(LISTS), str(REST_S))
        for name, program in _programs().items()
    ]
    for process in processes:
        process.finish(120)


def facts(records: list[CommandRecord], directory: Path) -> dict[str, Any]:
    """How many lists each gave up; LabError where one was read to its end."""
    del records
    found = {}
    for name in (OLD, NEW):
        errors = [one["error"] for one in read_events(directory / f"{name}.out") if one["event"] == "left"]
        if len(errors) != LISTS or not all("canceled" in one for one in errors):
            raise LabError(f"{name}: {errors}")
        found[name] = len(errors)
    return {"given_up": found}
