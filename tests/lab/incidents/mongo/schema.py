"""What a schema change or a release does: indexes, validators, collections, names of databases."""

from __future__ import annotations

from collections.abc import Callable

from tests.lab.incidents.mongo.incident import Incident
from tests.lab.incidents.mongo.no_effect import EITHER, beside
from tests.lab.incidents.told import accusing, called, saying

SCAN_S = "--scan-s=0.35"
SLOW = ["slow", "longer", "latency", "took", "index", "wait"]


def index_conflict_at_start(it: Incident) -> None:
    """A new version wants an index on the same field by another name: it does not start, again and again."""
    app, place = it.names.client(), it.place()
    good = it.names.client()
    old = {"field": "key", "index": "by_key", "pause_s": 0.3, "seconds": 60}
    it.practice("two", "starts", good, place=place, fill=60, **old).wait_for_event("ready")
    it.seconds(1, 2)
    for _ in range(7):
        it.practice("one", "starts", app, place=place, **{**old, "index": "lookup"}).finish(30)
        it.seconds(1, 2.5)
    wordings = ["createIndexes", "index", "IndexKeySpecsConflict", "IndexOptionsConflict", "\\b8[56]\\b"]
    it.ask(
        "Q4",
        "an index that is there by another name",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), wordings)],
        [accusing(good)],
    )


def index_dropped(it: Incident) -> None:
    """An operator drops an index in mongosh; from then on a query that was quick takes long."""
    place, names = it.place(), [it.names.client() for _ in range(2)]
    first = it.practice("two", "starts", names[0], place=place, fill=60, field="key", index="key_1", seconds=3)
    first.finish(30)
    works = [
        it.practice(host, "field", app, place=place, field="key", pause_s=0.2, seconds=40, driver=driver)
        for host, app, driver in (("two", names[0], "node"), ("three", names[1], "pymongo"))
    ]
    it.seconds(10, 12)
    database, _, collection = place.partition(".")
    it.shell("one", f"use {database}", f"db.getCollection('{collection}').dropIndex('key_1')").finish(60)
    for one in works:
        one.finish(60)
    it.ask(
        "Q7",
        "a dropped index",
        {"address": it.hosts["one"].address},
        [saying([*called(it.hosts["one"].address), "mongosh"], ["dropIndexes"])],
    )


def index_build_blocks(it: Incident) -> None:
    """A migration makes an index on a busy collection; until it is there nobody is answered."""
    place, app = it.place(), it.names.client()
    names = [it.names.client() for _ in range(3)]
    works = [
        it.practice(host, "asks", other, place=place, driver="go", fill=fill, pause_s=0.1, seconds=28)
        for host, other, fill in (("two", names[0], 60), ("three", names[1], 0), ("site", names[2], 0))
    ]
    works[0].wait_for_event("ready")
    it.seconds(7, 9)
    it.practice("one", "starts", app, place=place, field="state", index="state_1", pause_s=1, seconds=10).finish(60)
    for one in works:
        one.finish(60)
    it.ask(
        "Q7",
        "an index build that stops the others",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), ["createIndexes", "index"])],
    )


def scan_of_new_release(it: Incident) -> None:
    """One of three instances runs a new version that looks by a field without an index: its queries take long."""
    place, names = it.place(), [it.names.client() for _ in range(3)]
    driver = it.rng.choice(EITHER)
    it.practice("two", "starts", names[1], place=place, fill=60, field="key", index="key_1", seconds=2).finish(30)
    works = [
        it.practice(host, "field", app, place=place, field=field, pause_s=0.25, seconds=22, driver=driver)
        for host, app, field in zip(("one", "two", "three"), names, ("code", "key", "key"), strict=True)
    ]
    for one in works:
        one.finish(60)
    it.ask(
        "Q9",
        "a query of a new version without an index",
        it.who("one", names[0]),
        [saying(called(names[0], it.hosts["one"].address), SLOW)],
        [accusing(*names[1:])],
    )


def validator_added(it: Incident) -> None:
    """An operator adds a validator for prices; an instance of the old version writes them as text: all are refused."""
    place, old, new = it.place(), it.names.client(), it.names.client()
    works = [
        it.habit(host, "prices", app, place=place, text=text, pause_s=0.4, seconds=30)
        for host, app, text in (("one", old, True), ("two", new, False))
    ]
    it.seconds(8, 10)
    database, _, collection = place.partition(".")
    rule = f"db.runCommand({{collMod: '{collection}', validator: {{price: {{$gte: 0}}}}}})"
    it.shell("three", f"use {database}", rule).finish(60)
    for one in works:
        one.finish(60)
    wordings = ["validat", "\\b121\\b", "insert.*(fail|refus|error)", "(fail|refus|error).*insert"]
    it.ask(
        "Q9",
        "an old version whose rows a new validator refuses",
        {"any": [it.who("one", old), {"address": it.hosts["three"].address}]},
        [saying(called(old, it.hosts["one"].address), wordings)],
        [accusing(new)],
    )


def collection_for_each(it: Incident) -> None:
    """A program makes a collection for each visitor."""
    app, place = it.names.client(), it.place()
    good = beside(it, "two", place, fill=60)
    it.practice("one", "new_collections", app, place=place, pause_s=0.08, seconds=22).finish(60)
    it.ask(
        "Q8",
        "a collection for each visitor",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), ["collection", "namespace"])],
        [accusing(good)],
    )


def wrong_database(it: Incident) -> None:
    """One of three instances has no database in its settings and writes to test; its sisters write to the shop's."""
    place, names = it.place(), [it.names.client() for _ in range(3)]
    wrong = f"test.{place.partition('.')[2]}"
    driver = it.rng.choice(("node", "go"))
    work = {"node": "inserts", "go": "adds"}[driver]
    works = [
        it.practice(host, work, app, place=where, pause_s=0.3, seconds=24, driver=driver)
        for host, app, where in zip(("one", "two", "three"), names, (wrong, place, place), strict=True)
    ]
    for one in works:
        one.finish(60)
    it.ask(
        "Q9",
        "an instance that writes to another database",
        it.who("one", names[0]),
        [saying(called(names[0], it.hosts["one"].address), ["\\btest\\b", "database", "collection", "namespace"])],
        [accusing(*names[1:])],
    )


WORDS: dict[Callable[[Incident], None], tuple[str, ...]] = {
    index_dropped: (SCAN_S,),
    index_build_blocks: ("--build-s=7",),
    scan_of_new_release: (SCAN_S,),
}
ON_FERRETDB: tuple[Callable[[Incident], None], ...] = (index_conflict_at_start,)
FAULTS: tuple[Callable[[Incident], None], ...] = (
    index_conflict_at_start,
    index_dropped,
    index_build_blocks,
    scan_of_new_release,
    validator_added,
    collection_for_each,
    wrong_database,
)
