"""What newer servers and drivers do with each other: compression, exhaust replies, transactions, retried writes.

Three pymongo applications, one for each compressor, authenticate within the handshake (speculativeAuthenticate) and
work with exhaust cursors, transactions and retryable writes; some of their commands fail on request. Their monitors
use the streaming protocol. Others meet a primary that steps down, follow a tailable cursor, write in bulk and crash in
a transaction, are refused compression, have a wrong password; the Node driver compresses with zlib.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from tests.lab import clients
from tests.lab.clients import mongo
from tests.lab.command_log import CommandRecord
from tests.lab.mongo_servers import SECOND_PORT, Login, TestServer
from tests.lab.processes import LabError, read_events
from tests.lab.runs import Run
from tests.lab.scenarios.mongo.command_facts import facts_of

SHOWS = "OP_COMPRESSED with snappy, zlib, zstd; exhaust, streaming hello, transactions, retried writes, SCRAM"
COMPRESSORS = ("snappy", "zlib", "zstd")
HOSTS = (*COMPRESSORS, "moved", "follower", "refused", "wrong", "node")
CLIENTS = (*map(clients.python_pin, mongo.PYTHON_CLIENTS), mongo.node_pin("mongodb"))
# What is ordered: errors, a connection that is closed, a cursor without time-out. Three slow commands are no warning.
EXPECTED = ("MON102", "MON103", "MON104")
LOGIN, WRONG_PASSWORD = Login("ada", "lab-mongo-6Wz3"), "lab-mongo-wrong-9Hd1"
SERVER = TestServer(COMPRESSORS, LOGIN)
CODES = {"write conflict": 112, "retried insert": "none", "cut update": "none", "late find": 50, "same _id": 11000}


def prepare() -> None:
    """Install the drivers."""
    mongo.prepare()


def drive(run: Run) -> None:
    """Let the applications work one after the other, as each orders its failures from the same server."""
    login = f"{LOGIN.user}:{LOGIN.password}@"
    uri = f"mongodb://{login}{run.endpoint}/?replicaSet=lab"
    for compressor in COMPRESSORS:
        mongo.python(run, compressor, "modern", f"{uri}&compressors={compressor}").finish()
    mongo.python(run, "moved", "step_down", f"{uri}&compressors=snappy").finish()
    mongo.python(run, "follower", "follow", f"{uri}&compressors=zstd").finish()
    second = f"mongodb://{run.endpoint.partition(':')[0]}:{SECOND_PORT}/?replicaSet=lab&compressors=snappy,zlib"
    mongo.python(run, "refused", "everyday", second).finish()
    mongo.python(run, "wrong", "look", uri.replace(LOGIN.password, WRONG_PASSWORD)).finish()
    mongo.node(run, "node", "everyday", f"{uri}&compressors=zlib").finish()


def facts(records: list[CommandRecord], directory: Path) -> dict[str, Any]:
    """Return what each application met; LabError where that is not what the sample is to show."""
    for compressor in COMPRESSORS:
        done = mongo.last_event(directory, compressor, "done")
        if (done["codes"], done["found"], done["streamed"]) != (CODES, 40, 36):
            raise LabError(f"{compressor}: {done}")
    if mongo.last_event(directory, "wrong", "done")["code"] != 18:
        raise LabError("the wrong password was taken")
    left: Any = mongo.last_event(directory, "follower", "left")
    return {
        **facts_of(records),
        "compressors": [{"client": name, "compressor": name} for name in COMPRESSORS]
        + [{"client": "moved", "compressor": "snappy"}, {"client": "follower", "compressor": "zstd"}]
        + [{"client": "node", "compressor": "zlib"}],
        "left_open": [{"client": "follower", "cursor_id": number} for number in left["cursor_ids"]],
        "open_transactions": [{"client": "follower", "lsid": left["lsid"]}],
        "uncompressed": ["refused", "wrong"],
        "user_name": LOGIN.user,
        "transactions": [transactions_of(records, host) for host in COMPRESSORS],
        "retried_writes": [retried_of(records, host) for host in (*COMPRESSORS, "moved")],
        "exhaust_replies": {host: sum(one.request_id == 0 for one in records if one.client == host)
                            for host in COMPRESSORS},
        "awaited_hellos": {host: awaited(directory, host) for host in (*COMPRESSORS, "moved", "follower")},
    }  # fmt: skip


def transactions_of(records: list[CommandRecord], host: str) -> dict[str, Any]:
    """Return how many transactions a client committed and aborted."""
    mine = [record.command for record in records if record.client == host and record.ok]
    return {"client": host, "committed": mine.count("commitTransaction"), "aborted": mine.count("abortTransaction")}


def retried_of(records: list[CommandRecord], host: str) -> dict[str, Any]:
    """Return how often a client sent a write again with the same session and number."""
    mine = [one for one in records if one.client == host and one.command in ("insert", "update")]
    sent = Counter((one.command, one.lsid, one.txn_number) for one in mine if one.txn_number is not None)
    return {"client": host, "retries": sum(count - 1 for count in sent.values())}


def awaited(directory: Path, host: str) -> int:
    """Return how many hellos of the streaming protocol were answered."""
    events = read_events(directory / f"{host}.out")
    return sum(1 for event in events if event.get("event") == "heartbeat" and event["awaited"] and event["ok"])
