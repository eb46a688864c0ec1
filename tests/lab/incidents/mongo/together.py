"""Several that do the same thing at the same time; an answer that came too late; a primary that changes too often."""

from __future__ import annotations

from collections.abc import Callable

from tests.lab.incidents.mongo.faults import failing
from tests.lab.incidents.mongo.incident import Incident
from tests.lab.incidents.mongo.no_effect import beside
from tests.lab.incidents.told import accusing, called, saying


def hot_row(it: Incident) -> None:
    """Three instances with four threads each take numbers from one row, in transactions that meet all the time."""
    app, place = it.names.client(), it.place()
    works = [
        it.practice(host, "hot", app, place=place, threads=4, fill=fill, pause_s=0.02, seconds=18)
        for host, fill in (("one", 10), ("two", 0), ("three", 0))
    ]
    for one in works:
        one.finish(90)
    it.ask(
        "Q3",
        "one row that all transactions change",
        {"clients": [it.who(host, app) for host in ("one", "two", "three")]},
        [
            saying(
                called(app, *(it.hosts[host].address for host in ("one", "two", "three"))),
                ["WriteConflict", "write conflict", "conflict", "\\b112\\b"],
            )
        ],
    )


def cron_overlaps(it: Incident) -> None:
    """A job takes longer than the time between its starts: three of its runs add the same bonus to the same rows."""
    app, place = it.names.client(), it.place()
    good = beside(it, "two", place, fill=60)
    runs = []
    for _ in range(3):
        runs.append(it.practice("one", "in_all_rows", app, place=place, rows=60, pause_s=0.25, seconds=15))
        it.seconds(4.5, 5)
    for one in runs:
        one.finish(60)
    it.ask(
        "Q3",
        "runs of a job that overlap",
        it.who("one", app),
        [
            saying(
                called(app, it.hosts["one"].address),
                ["update"],
                [
                    "overlap",
                    "same",
                    "twice",
                    "at once",
                    "at the same time",
                    "several",
                    "both",
                    "times",
                    "together",
                    "again",
                ],
            )
        ],
        [accusing(good)],
    )


def queue_unclaimed(it: Incident) -> None:
    """Two workers look for new work and mark it as done only after it: both do each piece."""
    names, place = [it.names.client() for _ in range(2)], it.place()
    it.practice("three", "adds", it.names.client(), place=place, driver="go", pause_s=0.5, seconds=60)
    it.seconds(1, 2)
    works = [
        it.practice(host, "unclaimed", app, place=place, think_s=0.3, pause_s=0.05, seconds=22)
        for host, app in zip(("one", "two"), names, strict=True)
    ]
    for one in works:
        one.finish(60)
    first, second = (called(app, it.hosts[host].address) for host, app in zip(("one", "two"), names, strict=True))
    it.ask(
        "Q3",
        "two workers that do the same work",
        {"clients": [it.who("one", names[0]), it.who("two", names[1])]},
        [saying(first, second, ["same", "both", "twice", "again", "race", "lost", "overw", "between", "claim"])],
    )


def inserted_again(it: Incident) -> None:
    """An application waits 350 ms for an insert that takes longer, and inserts the same order again with a new id."""
    app, place = it.names.client(), it.place()
    good = beside(it, "two", place, fill=60)
    it.order(failing("insert", blockConnection=True, blockTimeMS=it.rng.randrange(600, 900), appName=app))
    client = {"socketTimeoutMS": 350, "retryWrites": "false"}
    it.practice("one", "orders_again", app, place=place, client=client, pause_s=1.0, seconds=22).finish(60)
    wordings = ["gave up", "gives up", "time-?out", "timed out", "before", "without waiting", "clos", "again", "twice"]
    it.ask(
        "Q6",
        "orders inserted again after a time-out",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), ["insert"], wordings)],
        [accusing(good)],
        sides=("client",),
    )


def primary_flaps(it: Incident) -> None:
    """A failover drill runs every few seconds: the primary steps down again and again, and writers wait each time."""
    app = it.names.client()
    writers = [
        it.practice(host, work, it.names.client(), driver=driver, pause_s=0.15, seconds=36)
        for host, driver, work in (("one", "node", "inserts"), ("two", "go", "adds"))
    ]
    it.seconds(5, 7)
    down = [{"replSetStepDown": 1, "secondaryCatchUpPeriodSecs": 0, "force": True}]
    drill = it.practice(
        "three", "commands", app, database="admin", commands=down, count=6, pause_s=4.0,
        client={"readPreference": "primaryPreferred"},
    )  # fmt: skip
    drill.finish(60)
    for one in writers:
        one.finish(60)
    it.ask(
        "Q5",
        "a primary that steps down again and again",
        {"any": [it.who("three", app)], "server": it.endpoint},
        [
            saying(
                called(app, it.hosts["three"].address, it.endpoint, it.address),
                ["step", "primary", "NotWritablePrimary", "10107", "election", "189"],
            )
        ],
    )


FAULTS: tuple[Callable[[Incident], None], ...] = (
    hot_row,
    cron_overlaps,
    queue_unclaimed,
    inserted_again,
    primary_flaps,
)
