"""What a server refuses for reasons of its own: a member that recovers, a full disk quota, sorts that are too large."""

from __future__ import annotations

from collections.abc import Callable

from tests.lab.incidents.mongo.faults import failing
from tests.lab.incidents.mongo.incident import LAG_S, Incident
from tests.lab.incidents.mongo.no_effect import EITHER, beside
from tests.lab.incidents.told import accusing, called, saying
from tests.lab.mongo_servers import SECOND_PORT


def recovering_member(it: Incident) -> None:
    """An application is bound to one member, which recovers: its reads are refused for as long as that lasts."""
    app, place = it.names.client(), it.place()
    good = beside(it, "two", place, fill=60)
    it.seconds(LAG_S + 0.5, LAG_S + 1)
    away = f"{it.address}:{SECOND_PORT}"
    client = {"readPreference": "secondaryPreferred", "retryReads": "false"}
    works = it.habit(
        "one", "asks", app, to=away, place=place, client=client, pause_s=0.5, seconds=30, driver=it.rng.choice(EITHER)
    )
    works.wait_for_event("ready")
    it.seconds(5, 8)
    said = "node is not in primary or recovering state"
    it.order(failing("find", errorCode=13436, errmsg=said, errorLabels=[]), port=SECOND_PORT)
    works.finish(60)
    wordings = ["13436", "NotPrimaryOrSecondary", "recover", "refus", "error", "fail"]
    it.ask(
        "Q4",
        "reads from a member that recovers",
        {"any": [it.who("one", app)], "server": away},
        [saying(called(app, it.hosts["one"].address, away), wordings)],
        [accusing(good)],
    )


def retries_unsupported(it: Incident) -> None:
    """An application writes with retryWrites to a server that takes no such writes: each insert is refused."""
    app, place = it.names.client(), it.place()
    good = beside(it, "two", place, fill=60)
    said = "Transaction numbers are only allowed on a replica set member or mongos"
    it.order(failing("insert", errorCode=20, errmsg=said, appName=app))
    driver, work = it.rng.choice((("node", "inserts"), ("go", "adds")))
    it.practice("one", work, app, place=place, driver=driver, pause_s=0.6, seconds=24).finish(60)
    wordings = ["IllegalOperation", "\\b20\\b", "retryable", "retryWrites", "transaction numbers", "insert"]
    it.ask(
        "Q4",
        "retryable writes that the server does not take",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), wordings)],
        [accusing(good)],
    )


def sort_too_large(it: Incident) -> None:
    """A report sorts more than the server's memory for it holds: it works for a second, fails, and is asked again."""
    app, place = it.names.client(), it.place()
    good = beside(it, "two", place, fill=60)
    said = "Sort exceeded memory limit of 104857600 bytes, but did not opt in to external sorting."
    late = failing("aggregate", errorCode=292, errmsg=said, appName=app, blockConnection=True, blockTimeMS=1100)
    it.order(late)
    it.habit("one", "totals", app, place=place, pause_s=2.5, seconds=34, driver=it.rng.choice(EITHER)).finish(60)
    wordings = ["292", "QueryExceededMemoryLimit", "Sort exceeded", "memory", "aggregate"]
    it.ask(
        "Q4",
        "sorts that need too much memory",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), wordings)],
        [accusing(good)],
    )


def over_quota(it: Incident) -> None:
    """A hosted cluster is full: from one moment on the inserts of two services are refused, while reads go on."""
    names, reader, place = [it.names.client() for _ in range(2)], it.names.client(), it.place()
    it.practice("three", "asks", reader, place=place, driver="go", fill=60, pause_s=0.3, seconds=60).wait_for_event(
        "ready"
    )
    works = [
        it.practice(host, work, app, place=it.place(), driver=driver, pause_s=0.5, seconds=42)
        for host, app, driver, work in (("one", names[0], "node", "inserts"), ("two", names[1], "go", "adds"))
    ]
    it.seconds(16, 20)
    said = "you are over your space quota, using 512 MB of 512 MB"
    it.order(failing("insert", errorCode=8000, errmsg=said))
    for one in works:
        one.finish(60)
    who = [word for host, app in (("one", names[0]), ("two", names[1])) for word in (app, it.hosts[host].address)]
    it.ask(
        "Q4",
        "a cluster over its quota",
        {"any": [it.who("one", names[0]), it.who("two", names[1])], "server": it.endpoint},
        [saying(called(*who, it.endpoint, it.address), ["8000", "quota", "insert"])],
        [accusing(reader)],
    )
    it.truth["cluster_wide"] = True


FAULTS: tuple[Callable[[Incident], None], ...] = (recovering_member, retries_unsupported, sort_too_large, over_quota)
