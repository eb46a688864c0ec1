"""Instances beside each other: numbers, leases, types; a session that is forgotten, a page that comes again."""

from __future__ import annotations

from collections.abc import Callable

from tests.lab.incidents.mongo.incident import Incident
from tests.lab.incidents.mongo.no_effect import beside
from tests.lab.incidents.told import accusing, called, saying
from tests.lab.processes import Process

TURNS = ["\\bturns?\\b", "(takes?|taken|took) over", "overwrit", "\\bundo", "\\bundid", "lease", "flap",
         "changes? hands", "alternat", "each other", "(the|an|one) other", "concurrent", "fight", "conten[dt]",
         "same (row|document|_id|key)", "hot (row|document)"]  # fmt: skip
AGAIN = ["\\bsame\\b", "\\bagain\\b", "repeat", "identical", "over and over", "\\bloop", "advance", "progress",
         "(stands?|stood) still", "unchanged", "never (moves?|changes?|ends?)", "already (read|seen|had)"]  # fmt: skip


def number_from_last(it: Incident) -> None:
    """Six instances look for the highest number and insert a row with the next: often another was quicker."""
    place, people = it.place(), []
    works: list[Process] = []
    drivers = ("go", "node", "pymongo", "node", "go", "pymongo")
    for host, driver in zip(("one", "two", "three") * 2, drivers, strict=True):
        app = it.names.client()
        people.append(it.who(host, app))
        works.append(it.practice(host, "numbers", app, place=place, driver=driver, think_s=it.rng.uniform(0.05, 0.12),
                                 pause_s=it.rng.uniform(0.3, 0.6), seconds=26))  # fmt: skip
    for one in works:
        one.finish(90)
    wordings = ["duplicate", "11000", "there already", "already (there|exist)", "exists", "same", "\\brace", "conflict"]
    it.ask(
        "Q3",
        "the next number is the last one and one more",
        {"any": people},
        [saying(called(*(word for one in people for word in one.values()), place), wordings)],
    )


def lease_too_short(it: Incident) -> None:
    """Each instance renews its lease once a second, and it lasts 200 ms: three lead by turns and do the same work."""
    place, names = it.place(), [it.names.client() for _ in range(3)]
    works: list[Process] = []
    plan = zip(("one", "two", "three"), names, ("pymongo", "node", "node"), (0.9, 1.0, 1.15), strict=True)
    for host, app, driver, pause_s in plan:
        works.append(it.practice(host, "leads", app, place=place, driver=driver, fill=0 if works else 3, lease_s=0.2,
                                 pause_s=pause_s, seconds=52))  # fmt: skip
        works[-1].wait_for_event("ready")
        it.seconds(0.3, 0.6)
    for one in works:
        one.finish(90)
    people = [it.who(host, app) for host, app in zip(("one", "two", "three"), names, strict=True)]
    it.ask(
        "Q8",
        "a lease that is shorter than the time to its renewal",
        {"any": people},
        [saying([*called(*(word for one in people for word in one.values()), place), "leader"], TURNS)],
    )


def counter_made_text(it: Incident) -> None:
    """A new version stores a counter as text, as its form has it; the $inc of the other instances fail from then on."""
    place, names = it.place(), [it.names.client() for _ in range(4)]
    works = [it.practice("two", "counts", names[1], place=place, driver="pymongo", fill=60, pause_s=0.4, seconds=46)]
    works[0].wait_for_event("ready")
    works.append(it.practice("three", "counts", names[2], place=place, driver="go", pause_s=0.5, seconds=45))
    works.append(it.practice("site", "counts", names[3], place=place, driver="node", pause_s=0.6, seconds=45))
    it.seconds(17, 20)
    it.practice("one", "counts_as_text", names[0], place=place, driver="node", pause_s=0.7, seconds=22).finish(60)
    for one in works:
        one.finish(90)
    wordings = ["string", "\\btext\\b", "\\btypes?\\b", "TypeMismatch", "numeric", "numbers\\b", "\\$inc", "code 14\\b"]
    it.ask(
        "Q9",
        "a counter that becomes text",
        it.who("one", names[0]),
        [saying(called(names[0], it.hosts["one"].address), wordings)],
    )


def write_outside_transaction(it: Incident) -> None:
    """An application forgets the session in one write of its transactions: that stays where the rest is taken back."""
    place, app, good = it.place(), it.names.client(), it.names.client()
    fine = it.practice("two", "sells", good, place=place, fill=60, think_s=0.1, pause_s=0.35, seconds=38)
    fine.wait_for_event("ready")
    it.practice("one", "sells_beside", app, place=place, driver="node", think_s=0.12, pause_s=0.3, seconds=34).finish(
        90
    )
    fine.finish(60)
    wordings = ["outside", "without (a |its |the )?(session|transaction)", "not (a )?part", "beside (a|its|the)\\b",
                "not in (a|its|the|that)\\b", "\\bstays?\\b", "remain", "forgot", "no part", "surviv",
                "(an)?other session", "not (undone|taken back|rolled back|aborted)"]  # fmt: skip
    it.ask(
        "Q3",
        "a write that is no part of its transaction",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), ["transaction", "session", "abort"], wordings)],
        [accusing(good)],
    )


def page_stands_still(it: Incident) -> None:
    """A sync asks for all from the last time on, that time included; a page of one time brings it nowhere."""
    place, app, loader = it.place(), it.names.client(), it.names.client()
    it.practice("three", "stamps", loader, place=place, driver="go", pause_s=1, seconds=0.5).finish(30)
    good = beside(it, "two", place)
    it.seconds(3, 5)
    it.practice("one", "syncs", app, place=place, driver="go", pause_s=0.35, seconds=40).finish(90)
    it.ask(
        "Q5",
        "a page that comes again and again",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), ["find", "quer", "ask", "read", "answer", "page"], AGAIN)],
        [accusing(good, loader)],
    )


FAULTS: tuple[Callable[[Incident], None], ...] = (
    number_from_last,
    lease_too_short,
    counter_made_text,
    write_outside_transaction,
    page_stands_still,
)
ON_FERRETDB = (counter_made_text, page_stands_still)
