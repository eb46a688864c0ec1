"""What comes back: a job that fails, a program that crashes, a cache that all refill, two who check first; and leases.

The last ones are as they should be.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable

from tests.lab.clients import mongo_workers
from tests.lab.incidents.mongo.faults import failing, slow
from tests.lab.incidents.mongo.incident import Incident
from tests.lab.incidents.mongo.no_effect import beside
from tests.lab.incidents.mongo.slow_parts import SLOW
from tests.lab.incidents.told import accusing, called, saying

AGAIN = ["again", "same", "repeat", "times", "identical", "each", "twice", "loop", "over and over", "duplicate", "both"]


def poison_job(it: Incident) -> None:
    """A worker takes a job that fails, puts it back and takes it again; all jobs behind it wait."""
    place, app, giver = it.place(), it.names.client(), it.names.client()
    worker = it.practice("one", "puts_back", app, place=place, pause_s=0.15, seconds=26)
    worker.wait_for_event("ready")
    it.seconds(1, 1.5)
    it.practice("two", "adds", giver, place=place, driver="go", pause_s=0.8, seconds=22)
    worker.finish(60)
    it.ask(
        "Q5",
        "one job that is taken again and again",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), ["findAndModify", "update", "job-0", "_id"], AGAIN)],
        [accusing(giver)],
    )


def crash_loop(it: Incident) -> None:
    """A program crashes a moment after its start, and its supervisor starts it again each time."""
    place, app = it.place(), it.names.client()
    good = beside(it, "two", place, fill=60)
    it.clients.append(it.who("one", app))
    it.taken.append("pymongo")
    command = shlex.join(mongo_workers.practice("pymongo", "crashes", it.uri(), app, place, {}))
    it.start("one", "bash", "-c", f"while true; do {command}; sleep 1.2; done")
    it.seconds(30, 34)
    wordings = ["connection", "start", "crash", "abort", "RST", "clos", "again", "short", "client for each", "new"]
    it.ask(
        "Q6",
        "a program that crashes at each start",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), wordings)],
        [accusing(good)],
        sides=("client",),
    )


def cache_expires(it: Incident) -> None:
    """A cache of 24 threads is out of date each 6 s: all of them ask for the same totals at the same moment."""
    place, app = it.place(), it.names.client()
    it.order(slow("aggregate", it.rng.randrange(150, 300)))
    good = beside(it, "two", place, fill=400)
    it.practice("one", "stampede", app, place=place, threads=24, lives_s=6, seconds=34).finish(90)
    wordings = ["at once", "same (time|moment|query|aggregate|command|pipeline)", "burst", "connections", "identical",
                "together", "parallel", "concurrent", "peak", *AGAIN]  # fmt: skip
    it.ask(
        "Q5",
        "all threads refill one cache",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), wordings)],
        [accusing(good)],
    )


def check_then_insert(it: Incident) -> None:
    """Two instances look whether an order is booked and then book it: both find nothing, and each is there twice."""
    place, names = it.place(), [it.names.client() for _ in range(2)]
    good = beside(it, "three", place, fill=20)
    works = [
        it.practice(host, "checks_first", app, place=place, seconds=22)
        for host, app in zip(("one", "two"), names, strict=True)
    ]
    for one in works:
        one.finish(60)
    it.ask(
        "Q3",
        "two who check and then insert",
        {"clients": [it.who(host, app) for host, app in zip(("one", "two"), names, strict=True)]},
        [saying(called(*names, it.hosts["one"].address, it.hosts["two"].address), ["insert", "order"], AGAIN)],
        [accusing(good)],
    )


def majority_waits(it: Incident) -> None:
    """One application wants the majority to have each write, and a secondary lags: each insert takes long."""
    place, app, good = it.place(), it.names.client(), it.names.client()
    it.order(failing("insert", blockConnection=True, blockTimeMS=it.rng.randrange(600, 900), appName=app))
    fine = it.practice("two", "concerned", good, place=place, concern={"w": 1}, pause_s=0.3, seconds=24)
    it.practice("one", "concerned", app, place=place, concern={"w": "majority"}, pause_s=0.3, seconds=22).finish(60)
    fine.finish(60)
    it.ask(
        "Q7",
        "writes that wait for the majority",
        {"any": [it.who("one", app)], "server": it.endpoint},
        [saying(called(app, it.hosts["one"].address), ["insert", "write"], [*SLOW, "majority", "concern"])],
        [accusing(good)],
    )


def mechanism_not_there(it: Incident) -> None:
    """An application logs in with SCRAM-SHA-1, for which the server has nothing of its user; it tries without end."""
    place, app = it.place(), it.names.client()
    good = beside(it, "two", place, fill=60)
    client = {"authMechanism": "SCRAM-SHA-1", "authSource": "admin"}
    it.habit("one", "asks", app, place=place, client=client, pause_s=0.5, seconds=24).finish(60)
    wordings = ["auth", "log.?in", "SCRAM", "mechanism", "sasl", "\\b18\\b", "refus", "password"]
    it.ask(
        "Q4",
        "a mechanism that the server does not take",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), wordings)],
        [accusing(good)],
    )


def leader_lease(it: Incident) -> None:
    """Of three instances one holds a lease and renews it; the others try in vain, as they should; nothing is wrong."""
    place = it.place()
    works = []
    for host in ("one", "two", "three"):
        works.append(it.practice(host, "lease", it.names.client(), place=place, pause_s=1.5, seconds=34))
        works[-1].wait_for_event("ready")
    for one in works:
        one.finish(60)
    it.healthy("a lease of a leader")


def gentle_backfill(it: Incident) -> None:
    """A job gives old rows a new field, five in a batch and a rest after each; nothing is wrong."""
    place = it.place()
    it.practice("two", "lists", it.names.client(), place=place, fill=150, pause_s=0.4, seconds=34).wait_for_event(
        "ready"
    )
    it.practice("one", "backfill", it.names.client(), place=place, pause_s=0.9, seconds=30).finish(60)
    it.healthy("a gentle backfill")


def replays_after_restart(it: Incident) -> None:
    """A consumer is restarted and takes its last dozen events again, which are there, by design; nothing is wrong."""
    place, app = it.place(), it.names.client()
    beside(it, "two", place, fill=60)
    it.practice("one", "consumes", app, place=place, first=0, pause_s=0.4, seconds=18).finish(60)
    it.seconds(2, 3)
    it.practice("one", "consumes", app, place=place, first=30, pause_s=0.4, seconds=18).finish(60)
    it.healthy("events that are taken again after a restart")


def cron_check(it: Incident) -> None:
    """A script looks every ten seconds whether rows have come, with a client of its own each time; nothing is wrong."""
    place, app = it.place(), it.names.client()
    beside(it, "two", place, fill=60)
    for _ in range(7):
        it.habit("one", "asks", app, place=place, pause_s=1, seconds=0.5).finish(30)
        it.seconds(7, 8)
    it.healthy("a check by cron")


FAULTS: tuple[Callable[[Incident], None], ...] = (
    poison_job,
    crash_loop,
    cache_expires,
    check_then_insert,
    majority_waits,
    mechanism_not_there,
    leader_lease,
    gentle_backfill,
    replays_after_restart,
    cron_check,
)
