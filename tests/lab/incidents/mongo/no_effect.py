"""Q5, what is repeated without effect: updates of nothing, empty answers, indexes and sessions each time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.lab.incidents.mongo.incident import Incident
from tests.lab.incidents.told import accusing, called, saying
from tests.lab.mongo_servers import SECOND_PORT

EITHER = ("pymongo", "node")


def beside(it: Incident, host: str, place: str, **options: Any) -> str:
    """Start an application that works as it should on a collection; return its name."""
    other = it.names.client()
    more = {"pause_s": 0.2, **options}
    works = it.habit(host, "asks", other, place=place, driver=it.rng.choice(EITHER), seconds=60, **more)
    works.wait_for_event("ready")
    return other


def updates_nothing(it: Incident) -> None:
    """An application updates by a key of the wrong type: each command succeeds and changes nothing."""
    app, place = it.names.client(), it.place()
    good = beside(it, "two", place, fill=60)
    it.habit("one", "updates_nothing", app, place=place, driver=it.rng.choice(EITHER), pause_s=0.15).finish(60)
    wordings = [
        "match(es|ed)? (nothing|no|none|0)",
        "changed? (nothing|no)",
        "n = ?0",
        "without effect",
        "no (document|effect)",
        "found no",
        "0 documents",
        "updated? nothing",
    ]
    it.ask(
        "Q5",
        "updates that match nothing",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), ["update"], wordings)],
        [accusing(good)],
    )


def ordered_stops(it: Incident) -> None:
    """Ordered batches stop at their third row, which is there already: the 38 behind it are never tried."""
    app = it.names.client()
    it.habit("one", "ordered_stop", app, fill=20, pause_s=1.0, seconds=18).finish(60)
    wordings = ["never tried", "not (tried|inserted|attempted|written|sent|stored)", "ordered", "stop", "rest"]
    it.ask(
        "Q5",
        "ordered batches that stop at a duplicate",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), ["insert"], wordings)],
    )


def unacknowledged(it: Incident) -> None:
    """An application inserts with w: 0 into a secondary: all of it is lost, and nobody tells it."""
    app = it.names.client()
    # pymongo itself refuses it, with its eye on what the server said in hello.
    it.habit("one", "unacknowledged", app, to=f"{it.address}:{SECOND_PORT}", driver="node", pause_s=0.2).finish(60)
    wordings = ["secondary", "w: ?0", "unacknowledged", "not acknowledged", "fire.and.forget"]
    it.ask(
        "Q5",
        "unacknowledged writes that are lost",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address, f"{it.address}:{SECOND_PORT}"), ["insert", "write"], wordings)],
    )


def empty_finds(it: Incident) -> None:
    """A worker asks for new work without a pause; there is none."""
    app, place = it.names.client(), it.place()
    good = beside(it, "two", place, fill=60)
    it.habit("one", "polls", app, place=place, driver=it.rng.choice(EITHER), pause_s=0.015, seconds=15).finish(60)
    wordings = ["empty", "nothing", "no (document|result|row)", "found none", "returned 0", "0 documents"]
    it.ask(
        "Q5",
        "empty finds in a tight loop",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), wordings)],
        [accusing(good)],
    )


def same_answer(it: Incident) -> None:
    """A program reads its settings before each step, and gets the same answer each time."""
    app = it.names.client()
    it.habit("one", "config", app, pause_s=0.012, seconds=15).finish(60)
    wordings = [
        "same (answer|document|repl|result|response|find|filter|query)",
        "identical",
        "unchanged",
        "again",
        "repeat",
    ]
    it.ask(
        "Q5",
        "the same answer again and again",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), wordings)],
    )


def indexes_each_time(it: Incident) -> None:
    """A program creates its indexes before each look."""
    app, place = it.names.client(), it.place()
    good = beside(it, "two", place, fill=60)
    it.habit("one", "indexes_each", app, place=place, driver=it.rng.choice(EITHER), pause_s=0.3).finish(60)
    it.ask(
        "Q5",
        "createIndexes for each request",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), ["createIndexes"])],
        [accusing(good)],
    )


def session_each_time(it: Incident) -> None:
    """A program begins a session for each look and ends none."""
    app, place = it.names.client(), it.place()
    good = beside(it, "two", place, fill=60)
    it.habit("one", "session_each", app, place=place, driver=it.rng.choice(EITHER), pause_s=0.05, seconds=18).finish(60)
    it.ask(
        "Q8",
        "a session for each command",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), ["session"])],
        [accusing(good)],
    )


def inserted_alone(it: Incident) -> None:
    """An import inserts its rows one by one, hundreds of them, instead of in batches."""
    app = it.names.client()
    it.habit("one", "inserts_alone", app, driver=it.rng.choice(EITHER), pause_s=0.004, seconds=10).finish(60)
    wordings = [
        "one by one",
        "single",
        "one (document|row)",
        "each (document|row|insert)",
        "batch",
        "bulk",
        "insertMany",
    ]
    it.ask(
        "Q8",
        "single inserts instead of batches",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), ["insert"], wordings)],
    )


def batch_of_one(it: Incident) -> None:
    """A program reads its rows with a getMore for each."""
    app, place = it.names.client(), it.place()
    good = beside(it, "two", place, fill=600)
    it.habit("one", "walks", app, place=place, driver=it.rng.choice(EITHER), pause_s=0.8, seconds=18).finish(60)
    wordings = ["batch", "getMore", "round trip", "one (document|row)"]
    it.ask(
        "Q8",
        "a batch size of one",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), wordings)],
        [accusing(good)],
    )


def idle_too_short(it: Incident) -> None:
    """A pool closes connections that were idle for 100 ms, and its program asks twice a second: each time a new one."""
    app, place = it.names.client(), it.place()
    good = beside(it, "two", place, fill=60)
    it.habit("one", "asks", app, place=place, pause_s=0.5, client={"maxIdleTimeMS": 100}).finish(60)
    it.ask(
        "Q5",
        "a connection for each command, as idle ones are closed at once",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), ["connection"])],
        [accusing(good), "makes a client for each request"],
    )


FAULTS: tuple[Callable[[Incident], None], ...] = (
    updates_nothing,
    ordered_stops,
    unacknowledged,
    empty_finds,
    same_answer,
    indexes_each_time,
    session_each_time,
    inserted_alone,
    batch_of_one,
    idle_too_short,
)
