"""What goes wrong between applications and servers: one read per row, a slow report, errors, cursors left open.

pymongo and the Node driver each read a list's rows one by one and each leave a cursor open; one list is fetched in
batches of one; a report takes long for real. FerretDB answers a write that wanted no answer; pymongo takes that for a
broken connection.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.lab import clients
from tests.lab.clients import mongo
from tests.lab.command_log import CommandRecord
from tests.lab.mongo_servers import FerretDB
from tests.lab.processes import LabError
from tests.lab.runs import Run
from tests.lab.scenarios.mongo.command_facts import facts_of

SHOWS = "one find or getMore per row, a slow aggregate, duplicate keys, cursors left open, an unwanted answer"
PYTHON_WORKS = {"shop": "one_by_one", "letters": "small_batches", "report": "report", "mistakes": "mistakes",
                "crashed": "left_open", "clicks": "unacknowledged"}  # fmt: skip
HOSTS = (*PYTHON_WORKS, "node")
CLIENTS = (clients.python_pin("pymongo"), mongo.node_pin("mongodb"))
EXPECTED = ("MON102", "MON105")  # the mistakes; rows one by one; one slow report is no warning
SERVER = FerretDB()
SLOW_US = 100_000
RUN_S = 1.0  # the rows are read within it
MISTAKES = {"same _id": 11000, "same mail": 11000, "unordered batch": 65, "unknown command": 59,
            "stage that is not there": 238, "killed cursor": 43}  # fmt: skip


def prepare() -> None:
    """Install the drivers."""
    mongo.prepare()


def drive(run: Run) -> None:
    """Let one client work after the other."""
    uri = f"mongodb://{run.endpoint}/"
    for host, work in PYTHON_WORKS.items():
        mongo.python(run, host, work, uri).finish()
    mongo.node(run, "node", "leftOpen", uri).finish()


def facts(records: list[CommandRecord], directory: Path) -> dict[str, Any]:
    """Return what each client met; LabError where that is not what the sample is to show."""
    finds = {host: [one for one in records if one.client == host and one.command == "find"] for host in HOSTS}
    for host in ("shop", "node"):
        spent_s = sum(one.duration_us or 0 for one in finds[host]) / 1e6
        if len(finds[host]) < 25 or spent_s > RUN_S:
            raise LabError(f"{host}: {len(finds[host])} finds in {spent_s} s")
    get_mores = sum(one.client == "letters" and one.command == "getMore" for one in records)
    if get_mores < 25:
        raise LabError(f"{get_mores} getMore for the letters")
    [slow] = [one for one in records if one.client == "report" and one.command == "aggregate"]
    if (slow.duration_us or 0) < 2 * SLOW_US:
        raise LabError(f"the report took {slow.duration_us} us only")
    codes = mongo.last_event(directory, "mistakes", "done")["codes"]
    if codes != MISTAKES:
        raise LabError(f"mistakes: {codes}")
    return {
        **facts_of(records),
        "one_by_one": [{"client": host, "finds": len(finds[host])} for host in ("shop", "node")],
        "small_batches": [{"client": "letters", "get_mores": get_mores}],
        "slow": [{"client": slow.client, "command": slow.command, "request_id": slow.request_id}],
        "left_open": [
            {"client": host, "cursor_id": int(str(mongo.last_event(directory, host, "left")["cursor_id"]))}
            for host in ("crashed", "node")
        ],
        "unwanted_answer": "clicks",
    }
