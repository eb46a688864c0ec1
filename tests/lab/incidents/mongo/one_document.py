"""Q3, who acts on one thing at the same time: transactions, rows that are written back, jobs that run twice."""

from __future__ import annotations

from collections.abc import Callable

from tests.lab.incidents.mongo.incident import Incident
from tests.lab.incidents.told import called, saying


def conflict_held(it: Incident) -> None:
    """An application thinks within its transaction; another gets a WriteConflict at each try for the same row."""
    holder, loser, place = it.names.client(), it.names.client(), it.place()
    it.habit("one", "holds", holder, place=place, fill=10, hold_s=it.rng.uniform(3, 4), pause_s=0.2, seconds=18)
    it.seconds(2.5, 3)
    it.habit("two", "conflicts", loser, place=place, pause_s=0.25, seconds=14).finish(60)
    held, lost = called(holder, it.hosts["one"].address), called(loser, it.hosts["two"].address)
    it.ask(
        "Q3",
        "the holder of a write conflict",
        {"clients": [it.who("one", holder), it.who("two", loser)]},
        [saying(["WriteConflict", "write conflict", "conflict"], held, lost)],
    )


def lost_updates(it: Incident) -> None:
    """Two applications read a row, think, and write the whole of it back: each undoes what the other has written."""
    first, second, place = it.names.client(), it.names.client(), it.place()
    one = it.habit("one", "replaces", first, place=place, fill=10, field="stock", think_s=0.25, pause_s=0.1, seconds=18)
    one.wait_for_event("ready")
    it.habit("two", "replaces", second, place=place, field="price", think_s=0.35, pause_s=0.1, seconds=16).finish(60)
    one.finish(60)
    wordings = ["lost", "overw", "undo", "between", "replac", "race", "read.modify"]
    it.ask(
        "Q3",
        "updates that replace what another wrote between",
        {"clients": [it.who("one", first), it.who("two", second)]},
        [saying(called(first, it.hosts["one"].address), called(second, it.hosts["two"].address), wordings)],
    )


def runs_twice(it: Incident) -> None:
    """A nightly job runs on two machines at once: the later one finds every row there already."""
    app, place = it.names.client(), it.place()
    first = it.habit("one", "nightly", app, place=place, pause_s=0.12, seconds=16)
    it.seconds(0.6, 0.9)
    it.habit("two", "nightly", app, place=place, pause_s=0.12, seconds=15).finish(60)
    first.finish(60)
    here, there = it.hosts["one"].address, it.hosts["two"].address
    it.ask(
        "Q3",
        "one job on two machines",
        {"clients": [it.who("one", app), it.who("two", app)]},
        [saying(called(here), called(there), ["duplicate", "E11000", "11000", "already", "twice", "both"])],
    )


FAULTS: tuple[Callable[[Incident], None], ...] = (conflict_held, lost_updates, runs_twice)
