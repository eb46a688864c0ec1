"""Write concerns, change streams and bulk writes that do not get what they ask for; operations that somebody kills."""

from __future__ import annotations

from collections.abc import Callable

from tests.lab.incidents.mongo.faults import failing
from tests.lab.incidents.mongo.incident import Incident
from tests.lab.incidents.mongo.no_effect import beside
from tests.lab.incidents.told import accusing, called, saying

CONCERN = [
    "write ?concern",
    "wtimeout",
    "WriteConcern",
    "replicat",
    "\\b64\\b",
    "\\b100\\b",
    "\\bw: ?[35]\\b",
    "acknowledg",
]


def wtimeout(it: Incident) -> None:
    """An application wants three members to have each write within 300 ms; the set has two, so each waits in vain."""
    app, place = it.names.client(), it.place()
    good = beside(it, "two", place, fill=60)
    said = {"code": 64, "codeName": "WriteConcernFailed", "errmsg": "waiting for replication timed out",
            "errInfo": {"wtimeout": True}}  # fmt: skip
    late = failing("insert", blockConnection=True, blockTimeMS=300, writeConcernError=said, appName=app)
    it.order(late)
    concern = {"w": 3, "wtimeout": 300}
    it.practice("one", "concerned", app, place=place, concern=concern, pause_s=0.5, seconds=22).finish(60)
    it.ask(
        "Q4",
        "a write concern that is never met in time",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), CONCERN)],
        [accusing(good)],
    )


def unsatisfiable(it: Incident) -> None:
    """An application wants five members to have each write; the set has fewer: written, and answered as failed."""
    app, place = it.names.client(), it.place()
    good = beside(it, "two", place, fill=60)
    said = {"code": 100, "codeName": "UnsatisfiableWriteConcern", "errmsg": "Not enough data-bearing nodes"}
    it.order(failing("insert", writeConcernError=said, appName=app))
    it.practice("one", "concerned", app, place=place, concern={"w": 5}, pause_s=0.7, seconds=20).finish(60)
    it.ask(
        "Q4",
        "a write concern that cannot be met",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), [*CONCERN, "data-bearing", "Unsatisfiable"])],
        [accusing(good)],
    )


def stream_history_lost(it: Incident) -> None:
    """A consumer of changes was away for too long: its resume token has left the oplog, and it tries again."""
    app, place = it.names.client(), it.place()
    good = beside(it, "two", place, fill=60)
    said = "Executor error during aggregate command: Resume of change stream was not possible, as the resume point may no longer be in the oplog."  # noqa: E501
    it.order(failing("aggregate", errorCode=286, errmsg=said, appName=app))
    token = "8265C0FFEE000000012B022C0100296E5A1004"
    it.practice("one", "watches", app, place=place, token=token, pause_s=1.0, seconds=26).finish(60)
    wordings = ["286", "ChangeStreamHistoryLost", "resume", "oplog", "change ?stream", "aggregate"]
    it.ask(
        "Q4",
        "a resume token that is too old",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), wordings)],
        [accusing(good)],
    )


def bulk_stops(it: Incident) -> None:
    """The command bulkWrite, in order, meets a row that is there already: what stands behind it is never tried."""
    app, place = it.names.client(), it.place()
    good = beside(it, "two", place, fill=60)
    driver = it.rng.choice(("pymongo", "go"))
    it.practice("one", "bulk", app, place=place, driver=driver, pause_s=1.0, seconds=20).finish(60)
    wordings = [
        "11000",
        "E11000",
        "duplicate",
        "never tried",
        "ordered",
        "stop",
        "not (tried|inserted|written)",
        "error",
    ]
    it.ask(
        "Q5",
        "bulkWrites that stop at a duplicate",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), ["bulkWrite", "bulk", "write"], wordings)],
        [accusing(good)],
    )


def interrupted(it: Incident) -> None:
    """Somebody's script kills each operation of a report: its aggregates end with Interrupted, and it asks again."""
    app, place = it.names.client(), it.place()
    good = beside(it, "two", place, fill=60)
    killed = failing("aggregate", errorCode=11601, errmsg="operation was interrupted", appName=app)
    killed["data"] |= {"blockConnection": True, "blockTimeMS": 900}
    it.order(killed)
    it.habit("one", "totals", app, place=place, pause_s=0.4, seconds=24).finish(60)
    it.ask(
        "Q4",
        "operations that are killed",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), ["11601", "Interrupted", "kill"])],
        [accusing(good)],
    )


FAULTS: tuple[Callable[[Incident], None], ...] = (wtimeout, unsatisfiable, stream_history_lost, bulk_stops, interrupted)
