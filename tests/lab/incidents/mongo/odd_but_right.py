"""What a hasty reader would accuse, and what is as it should be: lookups of what is rare, a sale, a canary."""

from __future__ import annotations

from collections.abc import Callable

from tests.lab.incidents.mongo.incident import Incident
from tests.lab.processes import Process


def mostly_unknown(it: Incident) -> None:
    """Two mail servers ask whether a sender is on a blocklist, and nearly nobody is; nothing is wrong."""
    place = it.place()
    first = it.practice("one", "blocklist", it.names.client(), place=place, inserts=True, pause_s=0.2, seconds=34)
    first.wait_for_event("ready")
    it.practice("two", "blocklist", it.names.client(), place=place, pause_s=0.35, seconds=30).finish(60)
    first.finish(60)
    it.healthy("lookups of what is rare")


def flash_sale(it: Incident) -> None:
    """A sale begins: for ten seconds there are ten times as many requests, all quick; nothing is wrong."""
    place, shop, orders = it.place(), it.names.client(), it.names.client()
    first = it.practice("one", "asks", shop, place=place, driver="node", fill=60, pause_s=0.5, seconds=46)
    first.wait_for_event("ready")
    second = it.practice("two", "adds", orders, place=it.place(), driver="go", pause_s=0.7, seconds=44)
    it.seconds(14, 18)
    more = [
        it.practice(host, work, app, place=where, driver="go", pause_s=0.09, seconds=10)
        for host, app, work, where in (
            ("one", shop, "asks", place), ("two", orders, "adds", it.place()), ("three", shop, "asks", place)
        )
    ]  # fmt: skip
    for one in (*more, first, second):
        one.finish(90)
    it.healthy("a sale")


def canary(it: Incident) -> None:
    """Of four instances the newest gets each twentieth request, as is wanted of a canary; nothing is wrong."""
    place, app = it.place(), it.names.client()
    works: list[Process] = []
    for host, pause_s in (("two", 0.15), ("three", 0.15), ("one", 3.0), ("site", 0.15)):
        driver = "pymongo" if host == "one" else "node"
        works.append(it.habit(host, "asks", app, place=place, driver=driver, fill=0 if works else 60, pause_s=pause_s,
                              seconds=34))  # fmt: skip
        works[-1].wait_for_event("ready")
    for one in works:
        one.finish(60)
    it.healthy("a canary")


FAULTS: tuple[Callable[[Incident], None], ...] = (mostly_unknown, flash_sale, canary)
