"""The classic first capture: mongosh lists the databases, inserts a document and finds it.

mongosh asks the server for more than it is told to: buildInfo, getParameter, atlasVersion. FerretDB does not know the
last one, as no MongoDB outside of Atlas does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.lab.clients import mongo
from tests.lab.command_log import CommandRecord
from tests.lab.mongo_servers import FerretDB
from tests.lab.processes import LabError
from tests.lab.runs import Run
from tests.lab.scenarios.mongo.command_facts import facts_of

SHOWS = "mongosh: show databases, use, insertOne, find"
HOSTS = ("mongosh",)
CLIENTS = (mongo.node_pin("mongosh"), mongo.node_pin("mongodb"))
EXPECTED: tuple[str, ...] = ()
SERVER = FerretDB()
SCRIPT = """\
show databases
use shop
db.orders.insertOne({item: "lamp", price: 12.5})
db.orders.find({price: {$gt: 10}})
show databases
"""


def prepare() -> None:
    """Install mongosh."""
    mongo.prepare()


def drive(run: Run) -> None:
    """Type the script."""
    mongo.mongosh(run, "mongosh", f"mongodb://{run.endpoint}/", SCRIPT).finish()


def facts(records: list[CommandRecord], directory: Path) -> dict[str, Any]:
    """Return the commands; LabError unless those of the script are among them."""
    wanted = {("listDatabases", "admin"), ("insert", "shop"), ("find", "shop")}
    if not wanted <= {(record.command, record.database) for record in records if record.ok}:
        raise LabError(f"mongosh did not do its script: {records}")
    return facts_of(records)
