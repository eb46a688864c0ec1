"""Q8, what grows or is wasted."""

from __future__ import annotations

from collections.abc import Callable

from tests.lab.incidents.mongo.incident import Incident
from tests.lab.incidents.mongo.no_effect import beside
from tests.lab.incidents.told import accusing, called, saying

GROWS = ["grow", "increas", "rise", "more and more", "larger", "longer", "slower", "from .* to "]


def skips(it: Incident) -> None:
    """A program reads page after page with skip: each page takes longer than the one before."""
    app = it.names.client()
    it.habit("one", "pages", app, fill=12_000, size=4, page=250, pause_s=0.1, seconds=20).finish(90)
    it.ask(
        "Q8",
        "latency that grows with skip",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), ["skip"])],
    )


def scan_grows(it: Incident) -> None:
    """A program looks for rows by a field without an index, in a collection that it fills: each look takes longer."""
    app = it.names.client()
    it.habit("one", "scans", app, pause_s=0.1, seconds=24).finish(90)
    it.ask(
        "Q8",
        "latency that grows with the collection",
        it.who("one", app),
        [
            saying(
                called(app, it.hosts["one"].address),
                ["find"],
                ["grow", "index", "rise", "increas", "slower", "inserts so far"],
            )
        ],
    )


def row_grows(it: Incident) -> None:
    """A program keeps its history in one row without end, and reads that row each time."""
    app = it.names.client()
    it.habit("one", "appends", app, pause_s=0.06, seconds=20).finish(90)
    it.ask(
        "Q8",
        "a row that grows without end",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), ["repl", "answer", "document", "response", "bytes"], GROWS)],
    )


def list_grows(it: Incident) -> None:
    """A program looks for all ids that it has ever seen: its $in lists grow."""
    app, place = it.names.client(), it.place()
    good = beside(it, "two", place, fill=100)
    it.habit("one", "long_lists", app, place=place, pause_s=0.3).finish(60)
    it.ask(
        "Q8",
        "$in lists that grow",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), ["\\$in", "request", "filter"], GROWS)],
        [accusing(good)],
    )


def overfetch(it: Incident) -> None:
    """A program asks for a whole collection, takes the first row and closes the cursor, again and again."""
    app, place = it.names.client(), it.place()
    good = beside(it, "two", place, fill=150, size=200)
    it.habit("one", "overfetch", app, place=place, pause_s=0.4).finish(60)
    wordings = [
        "limit",
        "kill",
        "never read",
        "first batch",
        "returned",
        "not used",
        "unused",
        "101",
        "closed",
        "usual",
    ]
    it.ask(
        "Q8",
        "more rows fetched than used",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), ["find", "cursor"], wordings)],
        [accusing(good)],
    )


FAULTS: tuple[Callable[[Incident], None], ...] = (skips, scan_grows, row_grows, list_grows, overfetch)
