"""Everyday work at which nothing is wrong."""

from __future__ import annotations

from collections.abc import Callable

from tests.lab.incidents.mongo.incident import Incident
from tests.lab.incidents.mongo.no_effect import beside


def import_of_files(it: Incident) -> None:
    """An import of batches, unordered, in some of which a few rows are there already; nothing is wrong."""
    place = it.place()
    beside(it, "two", place, fill=60)
    it.habit("one", "imports", it.names.client(), place=place, pause_s=0.5).finish(60)
    it.healthy("an import with a few duplicates")


def queue_workers(it: Incident) -> None:
    """Three workers ask for work once a second; most of the time there is some; nothing is wrong."""
    place = it.place()
    works = [
        it.habit(host, "queue", it.names.client(), place=place, pause_s=1.0, seconds=24)
        for host in ("one", "two", "three")
    ]
    for one in works:
        one.finish(60)
    it.healthy("workers that poll a queue")


def idle_pools(it: Incident) -> None:
    """Applications warm their pools up and then have little to do; nothing is wrong."""
    place = it.place()
    warm = {"minPoolSize": 10, "maxPoolSize": 20}
    works = [
        it.habit(host, "asks", it.names.client(), place=place, client=warm, pause_s=4.0, seconds=26, fill=fill)
        for host, fill in (("one", 60), ("two", 0))
    ]
    for one in works:
        one.finish(60)
    it.healthy("idle pools")


def tailing(it: Incident) -> None:
    """A program waits for events, of which there is one now and then; nothing is wrong."""
    place = it.place()
    it.habit("two", "events", it.names.client(), place=place, pause_s=2.5, seconds=60).wait_for_event("ready")
    it.seconds(0.5, 1)
    it.habit("one", "tails", it.names.client(), place=place, seconds=22).finish(60)
    it.healthy("a cursor that waits for events")


def short_transactions(it: Incident) -> None:
    """Two applications book in short transactions and now and then one does it again; nothing is wrong."""
    place = it.place()
    works = [
        it.habit(host, "books", it.names.client(), place=place, fill=fill, pause_s=0.6, seconds=20)
        for host, fill in (("one", 10), ("two", 0))
    ]
    for one in works:
        one.finish(60)
    it.healthy("short transactions that meet now and then")


FAULTS: tuple[Callable[[Incident], None], ...] = (
    import_of_files,
    queue_workers,
    idle_pools,
    tailing,
    short_transactions,
)
