"""What a program says wrongly: stages, hints, ids, filters; fields that it does not need; writes without effect."""

from __future__ import annotations

from collections.abc import Callable

from tests.lab.incidents.mongo.faults import failing
from tests.lab.incidents.mongo.incident import Incident
from tests.lab.incidents.mongo.no_effect import EITHER, beside
from tests.lab.incidents.told import accusing, called, saying

FAILS = ["error", "fail", "refus", "unknown", "not (known|supported|implemented)", "again", "in vain"]
EMPTY = ["empty", "nothing", "no (document|result|row|match)", "found none", "returned 0", "0 documents", "never found",
         "string", "type", "text"]  # fmt: skip


def stage_not_known(it: Incident) -> None:
    """One of three instances runs a new version, whose pipeline has a stage that the server does not know."""
    place, names = it.place(), [it.names.client() for _ in range(3)]
    collection = place.partition(".")[2]
    plain = [{"$match": {"key": 7}}, {"$group": {"_id": "$state", "n": {"$sum": 1}}}]
    joined = {"from": "customers", "localField": "key", "foreignField": "_id", "as": "customer"}
    works = []
    for host, app, fill, more in zip(
        ("two", "one", "three"),
        (names[1], names[0], names[2]),
        (200, 0, 0),
        ([], [{"$lookup": joined}], []),
        strict=True,
    ):
        asked = [{"aggregate": collection, "pipeline": [*plain, *more], "cursor": {}}]
        works.append(
            it.practice(host, "commands", app, place=place, fill=fill, commands=asked, pause_s=0.4, seconds=22)
        )
        if fill:
            works[0].wait_for_event("ready")
    for one in works:
        one.finish(60)
    it.ask(
        "Q9",
        "a stage that the server does not know",
        it.who("one", names[0]),
        [saying(called(names[0], it.hosts["one"].address), ["aggregate", "lookup", "stage"], [*FAILS, "238", "40324"])],
        [accusing(*names[1:])],
    )


def hint_of_no_index(it: Incident) -> None:
    """A program names an index in its queries that is not there any more: each of them fails."""
    place, app = it.place(), it.names.client()
    good = beside(it, "two", place, fill=60)
    said = "error processing query: planner returned error :: caused by :: hint provided does not correspond to an existing index"  # noqa: E501
    it.order(failing("find", errorCode=2, errmsg=said, appName=app))
    driver = it.rng.choice(EITHER)
    hint = "state_1_key_1" if driver == "node" else {"state": 1, "key": 1}
    it.practice("one", "hinted", app, place=place, driver=driver, hint=hint, pause_s=0.5, seconds=24).finish(60)
    it.ask(
        "Q4",
        "a hint to an index that is not there",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), ["find", "hint", "index"], [*FAILS, "hint", "BadValue"])],
        [accusing(good)],
    )


def immutable_id(it: Incident) -> None:
    """A program copies rows over others with all their fields, the id among them: each update is refused."""
    place, app = it.place(), it.names.client()
    good = beside(it, "two", place, fill=60)
    it.practice("one", "copies_whole", app, place=place, pause_s=0.4, seconds=20).finish(60)
    it.ask(
        "Q4",
        "updates that would change an id",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), ["update"], [*FAILS, "66", "Immutable", "_id"])],
        [accusing(good)],
    )


def finds_by_text_id(it: Incident) -> None:
    """One of three instances looks for rows by their ids as text, where they are numbers: it finds none."""
    place, names = it.place(), [it.names.client() for _ in range(3)]
    driver = it.rng.choice(EITHER)
    first = it.practice("two", "asks", names[1], place=place, driver="node", fill=60, pause_s=0.3, seconds=26)
    first.wait_for_event("ready")
    it.practice("one", "asks_text", names[0], place=place, driver=driver, pause_s=0.3, seconds=22)
    it.habit("three", "asks", names[2], place=place, driver=driver, pause_s=0.3, seconds=22)
    first.finish(60)
    it.ask(
        "Q9",
        "ids of the wrong type",
        it.who("one", names[0]),
        [saying(called(names[0], it.hosts["one"].address), EMPTY)],
        [accusing(*names[1:])],
    )


def without_projection(it: Incident) -> None:
    """A new version of one of three instances forgets its projection: lists are fifty times as large as before."""
    place, names = it.place(), [it.names.client() for _ in range(3)]
    driver = it.rng.choice(EITHER)
    options = {"fill": 300, "size": 9000} if driver == "node" else {"fill": 300, "size": 9000, "noise": True}
    first = it.practice("two", "lists", names[1], place=place, driver=driver, pause_s=0.3, seconds=26, **options)
    first.wait_for_event("ready")
    for host, app, whole in (("one", names[0], True), ("three", names[2], False)):
        it.practice(host, "lists", app, place=place, driver=driver, whole=whole, pause_s=0.3, seconds=22)
    first.finish(60)
    wordings = ["large", "bytes", "kB", "KB", "MB", "size", "projection", "fields", "whole", "more than", "than"]
    it.ask(
        "Q9",
        "a projection that is forgotten",
        it.who("one", names[0]),
        [saying(called(names[0], it.hosts["one"].address), wordings)],
        [accusing(*names[1:])],
    )


def upsert_makes_new(it: Incident) -> None:
    """A program upserts with the time in its filter: each update that was to change a row makes a new one."""
    place, app, good = it.place(), it.names.client(), it.names.client()
    driver = it.rng.choice(EITHER)
    fine = it.practice("two", "seen_at", good, place=it.place(), driver=driver, pause_s=0.15, seconds=24)
    it.practice("one", "seen_at", app, place=place, driver=driver, by_time=True, pause_s=0.15, seconds=22).finish(60)
    fine.finish(60)
    it.ask(
        "Q8",
        "upserts that always insert",
        it.who("one", app),
        [
            saying(
                called(app, it.hosts["one"].address), ["update", "upsert"], ["upsert", "insert", "new", "grow", "match"]
            )
        ],
        [accusing(good)],
    )


def writes_unchanged(it: Incident) -> None:
    """A program saves rows again and again as they are: each update matches and none changes anything."""
    place, app, good = it.place(), it.names.client(), it.names.client()
    driver = it.rng.choice(EITHER)
    fine = it.practice("two", "saves", good, place=it.place(), driver=driver, fill=60, changes=True, pause_s=0.1)
    options = {"fill": 60, "pause_s": 0.04, "seconds": 20}
    it.practice("one", "saves", app, place=place, driver=driver, **options).finish(60)
    fine.finish(60)
    wordings = ["nothing", "unchanged", "no change", "without (effect|change)", "same", "nModified", "changed no",
                "modif", "not change", "identical"]  # fmt: skip
    it.ask(
        "Q5",
        "updates that change nothing",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), ["update"], wordings)],
        [accusing(good)],
    )


def transaction_for_each_read(it: Incident) -> None:
    """A program begins a transaction for each look and commits it: two commands where its sister sends one."""
    place, app = it.place(), it.names.client()
    good = beside(it, "two", place, fill=60)
    it.practice("one", "reads_in_transactions", app, place=place, pause_s=0.05, seconds=20).finish(60)
    it.ask(
        "Q8",
        "a transaction for each read",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), ["transaction", "commitTransaction"])],
        [accusing(good)],
    )
    it.truth["least"] = "info"  # it costs time and nothing else


ON_FERRETDB: tuple[Callable[[Incident], None], ...] = (stage_not_known, immutable_id)
FAULTS: tuple[Callable[[Incident], None], ...] = (
    stage_not_known,
    hint_of_no_index,
    immutable_id,
    finds_by_text_id,
    without_projection,
    upsert_makes_new,
    writes_unchanged,
    transaction_for_each_read,
)
