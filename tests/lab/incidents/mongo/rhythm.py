"""What is asked too often, and connections that are too many."""

from __future__ import annotations

from collections.abc import Callable

from tests.lab.incidents.mongo.incident import Incident
from tests.lab.incidents.mongo.no_effect import EITHER, beside
from tests.lab.incidents.told import accusing, called, saying

OFTEN = ["per second", "/s\\b", "times", "often", "each", "every", "again", "repeat", "poll", "\\d{3}", "same", "half"]


def ping_before_each(it: Incident) -> None:
    """A pool of an application sends a ping before each of its queries."""
    app, place = it.names.client(), it.place()
    good = beside(it, "two", place, fill=60)
    options = {"how": "ping", "pause_s": 0.05, "seconds": 22, "driver": it.rng.choice(EITHER)}
    it.practice("one", "checks", app, place=place, **options).finish(60)
    it.ask(
        "Q5",
        "a ping before each query",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), ["ping"])],
        [accusing(good)],
    )


def lists_before_each(it: Incident) -> None:
    """A program lists all collections before each query, to see whether its own is there."""
    app, place = it.names.client(), it.place()
    good = beside(it, "two", place, fill=60)
    options = {"how": "list", "pause_s": 0.1, "seconds": 22, "driver": it.rng.choice(EITHER)}
    it.practice("one", "checks", app, place=place, **options).finish(60)
    it.ask(
        "Q5",
        "listCollections before each query",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), ["listCollections"])],
        [accusing(good)],
    )


def watched_too_often(it: Incident) -> None:
    """Three copies of a monitoring agent ask for the server's statistics, ten times a second each."""
    app, place = it.names.client(), it.place()
    good = beside(it, "two", place, fill=60)
    asked = [{"serverStatus": 1}, {"dbStats": 1}, {"collStats": place.partition(".")[2]}]
    agents = [
        it.practice("one", "commands", app, place=place, commands=asked, pause_s=0.1, seconds=20) for _ in range(3)
    ]
    for one in agents:
        one.finish(60)
    it.ask(
        "Q5",
        "statistics asked for all the time",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), ["serverStatus", "dbStats", "collStats", "statistics"], OFTEN)],
        [accusing(good)],
    )


def tail_of_nothing(it: Incident) -> None:
    """A program waits at the end of a collection that is empty: the cursor is dead at once and it opens another."""
    app = it.names.client()
    beside(it, "two", it.place(), fill=60)
    it.practice("one", "tails_empty", app, pause_s=0.03, seconds=20).finish(60)
    it.ask(
        "Q5",
        "a tailable cursor on an empty collection, opened again and again",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), ["tailable", "find", "cursor"], ["empty", "nothing", *OFTEN])],
    )


def tail_without_wait(it: Incident) -> None:
    """A program lets the server wait 1 ms for events: a getMore follows the other, nearly all of them empty."""
    app, place = it.names.client(), it.place()
    it.habit("two", "events", it.names.client(), place=place, pause_s=2.5, seconds=60).wait_for_event("ready")
    it.seconds(0.5, 1)
    it.practice("one", "tails_quickly", app, place=place, wait_ms=1, seconds=16).finish(60)
    it.ask(
        "Q5",
        "getMores that do not wait",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), ["getMore", "cursor"])],
    )


def clients_leak(it: Incident) -> None:
    """A program makes a client for each task and closes none: its connections grow by three with each."""
    app, place = it.names.client(), it.place()
    good = beside(it, "two", place, fill=60)
    it.practice("one", "leaks", app, place=place, pause_s=0.5, seconds=26).finish(60)
    it.ask(
        "Q8",
        "clients that are never closed",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), ["connection", "client"])],
        [accusing(good)],
    )


def all_at_once(it: Incident) -> None:
    """After a deploy six instances start in the same second; thirty threads of each want a connection at once."""
    app, place = it.names.client(), it.place()
    good = beside(it, "two", place, fill=60)
    it.seconds(8, 12)
    herd = [
        it.practice(
            host, "crowd", app, place=place, threads=30, pause_s=4.0, seconds=14,
            client={"maxPoolSize": 100, "maxConnecting": 30},
        )
        for host in ("one", "three") * 3
    ]  # fmt: skip
    for one in herd:
        one.finish(150)
    it.ask(
        "Q8",
        "connections of all instances at once",
        {"clients": [it.who("one", app), it.who("three", app)]},
        [saying(called(app, it.hosts["one"].address, it.hosts["three"].address), ["connection"])],
        [accusing(good)],
    )


ON_FERRETDB: tuple[Callable[[Incident], None], ...] = (watched_too_often,)
FAULTS: tuple[Callable[[Incident], None], ...] = (
    ping_before_each,
    lists_before_each,
    watched_too_often,
    tail_of_nothing,
    tail_without_wait,
    clients_leak,
    all_at_once,
)
