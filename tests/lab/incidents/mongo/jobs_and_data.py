"""Jobs that wait or come back, locks and files left half done, clocks, counts, ids of two kinds; data that is away."""

from __future__ import annotations

from collections.abc import Callable

from tests.lab.incidents.mongo.incident import Incident
from tests.lab.incidents.mongo.no_effect import beside
from tests.lab.incidents.mongo.slow_parts import SLOW
from tests.lab.incidents.mongo.wrong_words import EMPTY
from tests.lab.incidents.told import accusing, called, saying


def queue_falls_behind(it: Incident) -> None:
    """A second producer joins a queue that two workers just managed: it grows from then on."""
    place, names = it.place(), [it.names.client() for _ in range(4)]
    watch = it.names.client()
    works = [it.practice("two", "adds", names[0], place=place, driver="go", pause_s=0.6, seconds=48)]
    works[0].wait_for_event("ready")
    works += [
        it.practice(host, "takes", app, place=place, work_s=0.5, pause_s=0.05, seconds=46)
        for host, app in (("three", names[1]), ("shop", names[2]))
    ]
    works.append(it.practice("site", "depth", watch, place=place, pause_s=3, seconds=46))
    it.seconds(11, 14)
    works.append(it.practice("one", "adds", names[3], place=place, driver="go", pause_s=0.11, seconds=30))
    for one in works:
        one.finish(90)
    wordings = [
        "behind",
        "backlog",
        "grow",
        "queue",
        "never taken",
        "not taken",
        "untaken",
        "faster",
        "keep up",
        "pile",
        "than (it|they|the|are)",
    ]
    everybody = [it.who(host, app) for host, app in zip(("one", "three", "shop"), (names[3], *names[1:3]), strict=True)]
    it.ask(
        "Q8",
        "a queue that falls behind",
        {"any": everybody},
        [saying(called(*(word for one in everybody for word in one.values()), place), wordings)],
        [accusing(watch)],
    )


def put_back_too_early(it: Incident) -> None:
    """Jobs take 5 s and a reaper gives those of 2 s to the next worker: each is done several times."""
    place, reaper, names = it.place(), it.names.client(), [it.names.client() for _ in range(3)]
    works = [it.practice("site", "adds", it.names.client(), place=place, driver="go", pause_s=3, seconds=44)]
    works[0].wait_for_event("ready")
    works += [
        it.practice(host, "takes", app, place=place, work_s=5, pause_s=0.2, seconds=42)
        for host, app in zip(("two", "three", "shop"), names, strict=True)
    ]
    works.append(it.practice("one", "puts_back_old", reaper, place=place, old_s=2, pause_s=1, seconds=42))
    for one in works:
        one.finish(90)
    everybody = [it.who("one", reaper)]
    everybody += [it.who(host, app) for host, app in zip(("two", "three", "shop"), names, strict=True)]
    wordings = [
        "same (job|row|document|_id)",
        "again",
        "twice",
        "several times",
        "each other",
        "put back",
        "back to",
        "repeat",
        "more than once",
        "undo",
    ]
    it.ask(
        "Q8",
        "jobs that are given away too early",
        {"any": everybody},
        [saying(called(*(word for one in everybody for word in one.values())), wordings)],
    )


def reload_leaves_gap(it: Incident) -> None:
    """A loader drops a collection and fills it again for seconds: its readers find nothing or a part meanwhile."""
    place, loader, names = it.place(), it.names.client(), [it.names.client() for _ in range(2)]
    works = [
        it.practice(host, "lists", app, place=place, driver=driver, fill=300 if driver == "node" else 0, pause_s=0.25,
                    seconds=44)
        for host, app, driver in (("two", names[0], "node"), ("three", names[1], "pymongo"))
    ]  # fmt: skip
    works[0].wait_for_event("ready")
    it.seconds(6, 8)
    it.practice("one", "reloads", loader, place=place, step_s=0.4, pause_s=6, seconds=30).finish(60)
    for one in works:
        one.finish(90)
    wordings = ["drop", "empty", "nothing", "no (document|result|row)", "fewer", "gone", "deleted", "removed"]
    it.ask(
        "Q8",
        "a load that leaves a gap",
        it.who("one", loader),
        [saying(called(loader, it.hosts["one"].address), wordings)],
        [accusing(*names)],
    )


def lock_left(it: Incident) -> None:
    """An instance dies with a lock, which is a row without an end: its two sisters try in vain from then on."""
    place, names = it.place(), [it.names.client() for _ in range(3)]
    works = [it.practice("two", "locks", names[1], place=place, fill=60, pause_s=0.3, seconds=50)]
    works[0].wait_for_event("ready")
    works.append(it.practice("three", "locks", names[2], place=place, pause_s=0.35, seconds=48))
    it.practice("one", "locks", names[0], place=place, pause_s=0.25, dies_at=26, seconds=44)
    for one in works:
        one.finish(90)
    everybody = [it.who(host, app) for host, app in zip(("one", "two", "three"), names, strict=True)]
    wordings = [
        "duplicate",
        "11000",
        "lock",
        "in vain",
        "settlement",
        "died",
        "crash",
        "without ending",
        "left behind",
        "owner",
        "same",
    ]
    it.ask(
        "Q5",
        "a lock that is left behind",
        {"any": everybody},
        [saying(called(*(word for one in everybody for word in one.values())), wordings)],
    )


def chunks_missing(it: Incident) -> None:
    """The last chunks of a file never came: who downloads it fails, and downloads it again, without end."""
    place, names = it.place(), [it.names.client() for _ in range(3)]
    it.practice("three", "uploads", names[2], place=place, broken="b.pdf", seconds=1).finish(60)
    good = it.practice("two", "downloads", names[1], place=place, file="a.pdf", pause_s=2, seconds=30)
    it.seconds(2, 3)
    it.practice("one", "downloads", names[0], place=place, file="b.pdf", pause_s=0.4, seconds=26).finish(60)
    good.finish(60)
    wordings = [
        "chunk",
        "same",
        "again",
        "missing",
        "incomplete",
        "identical",
        "repeat",
        "deletes? (part|the last|what)",
    ]
    it.ask(
        "Q5",
        "a file whose chunks are missing",
        {"any": [it.who("one", names[0]), it.who("three", names[2])]},
        [saying(called(names[0], names[2], it.hosts["one"].address, it.hosts["three"].address), wordings)],
        [accusing(names[1])],
    )


def clock_ahead(it: Incident) -> None:
    """The clock of one of three instances is an hour ahead: the latest value is always one of its own."""
    place, names, reader = it.place(), [it.names.client() for _ in range(3)], it.names.client()
    works = [
        it.practice(host, "stamps", app, place=place, ahead_s=3600 if host == "one" else 0, pause_s=0.6, seconds=32)
        for host, app in zip(("two", "one", "three"), (names[1], names[0], names[2]), strict=True)
    ]
    works[0].wait_for_event("ready")
    works.append(it.practice("site", "latest", reader, place=place, pause_s=0.8, seconds=30))
    for one in works:
        one.finish(60)
    wordings = ["clock", "ahead", "future", "hour", "3[56]\\d\\d", "later than", "time ?stamp", "ObjectId"]
    it.ask(
        "Q9",
        "a clock that is ahead",
        it.who("one", names[0]),
        [saying(called(names[0], it.hosts["one"].address), wordings)],
        [accusing(*names[1:], reader)],
    )


def counted_each_page(it: Incident) -> None:
    """An application counts all rows for each page that it shows: the page is quick, the count is not."""
    place, app = it.place(), it.names.client()
    good = beside(it, "two", place, fill=9000, size=300)
    it.practice("one", "counted", app, place=place, driver="go", pause_s=0.3, seconds=28).finish(90)
    wordings = ["aggregate", "count", *SLOW]
    it.ask(
        "Q7",
        "a count for each page",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), wordings)],
        [accusing(good)],
    )


def uuids_of_two_kinds(it: Incident) -> None:
    """One of two readers writes UUIDs in the new way, the rows have the old one: it finds none of them."""
    place, app, good = it.place(), it.names.client(), it.names.client()
    old, new = {"uuidRepresentation": "javaLegacy"}, {"uuidRepresentation": "standard"}
    first = it.practice("two", "by_uuid", good, place=place, client=old, inserts=True, pause_s=0.25, seconds=34)
    first.wait_for_event("ready")
    it.practice("one", "by_uuid", app, place=place, client=new, pause_s=0.25, seconds=26).finish(60)
    first.finish(60)
    it.ask(
        "Q5",
        "UUIDs of two kinds",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), ["find", "_id", "UUID"], [*EMPTY, "subtype", "UUID", "binary"])],
        [accusing(good)],
    )


def fields_dropped(it: Incident) -> None:
    """An old version reads rows and writes back the fields that it knows: what a newer one has added is gone again."""
    place, names = it.place(), [it.names.client() for _ in range(2)]
    good = beside(it, "three", place, fill=60)
    newer = it.practice("two", "new_field", names[1], place=place, pause_s=0.13, seconds=34)
    it.seconds(6, 8)
    it.practice("one", "old_model", names[0], place=place, pause_s=0.35, seconds=22).finish(60)
    newer.finish(60)
    wordings = ["undo", "undid", "overw", "over each other", "lost", "field", "replac", "whole", "each other", "back"]
    it.ask(
        "Q5",
        "fields that an old version drops",
        it.who("one", names[0]),
        [saying(called(names[0], it.hosts["one"].address), wordings)],
        [accusing(good)],
    )


ON_FERRETDB: tuple[Callable[[Incident], None], ...] = (reload_leaves_gap, chunks_missing, counted_each_page)
FAULTS: tuple[Callable[[Incident], None], ...] = (
    queue_falls_behind,
    put_back_too_early,
    reload_leaves_gap,
    lock_left,
    chunks_missing,
    clock_ahead,
    counted_each_page,
    uuids_of_two_kinds,
    fields_dropped,
)
