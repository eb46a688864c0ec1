"""What looks odd and is as it should be."""

from __future__ import annotations

from collections.abc import Callable

from tests.lab import clients
from tests.lab.incidents.mongo.incident import Incident
from tests.lab.incidents.mongo.no_effect import beside
from tests.lab.mongo_servers import PORT


def rolling_deploy(it: Incident) -> None:
    """Four instances are replaced one after the other: connections end and begin; nothing is wrong."""
    place, app = it.place(), it.names.client()
    hosts = ("one", "two", "three", "site")
    works = {
        host: it.habit(host, "asks", app, place=place, fill=0 if n else 60, pause_s=0.3, seconds=60)
        for n, host in enumerate(hosts)
    }
    it.seconds(4, 6)
    for host in hosts:
        works[host].ask_to_end()
        it.seconds(0.8, 1.5)
        it.habit(host, "asks", app, place=place, pause_s=0.3, seconds=60).wait_for_event("ready")
        it.seconds(3, 4)
    it.healthy("a rolling deploy")


def indexes_at_start(it: Incident) -> None:
    """Three instances make sure of their index once each as they start; nothing is wrong."""
    place = it.place()
    for host, fill in (("one", 60), ("two", 0), ("three", 0)):
        it.practice(host, "starts", it.names.client(), place=place, fill=fill, field="key", index="key_1", pause_s=0.3)
        it.seconds(1, 2)
    it.seconds(14, 18)
    it.healthy("indexes made once")


def optimistic_locks(it: Incident) -> None:
    """Two editors save a row only if nobody has changed it meanwhile, now and then in vain; nothing is wrong."""
    place = it.place()
    first = it.practice(
        "one",
        "optimistic",
        it.names.client(),
        place=place,
        driver="node",
        fill=20,
        think_s=0.15,
        pause_s=0.9,
        seconds=26,
    )
    first.wait_for_event("ready")
    options = {"think_s": 0.12, "pause_s": 1.1, "seconds": 24, "driver": "node"}
    it.practice("two", "optimistic", it.names.client(), place=place, **options).finish(60)
    first.finish(60)
    it.healthy("optimistic locks")


def bulk_sync(it: Incident) -> None:
    """A sync job writes with bulkWrite and upserts, unordered, mostly what is there; nothing is wrong."""
    place = it.place()
    beside(it, "two", place, fill=60)
    it.practice("one", "bulk", it.names.client(), place=place, upserts=True, pause_s=1.0, seconds=24).finish(60)
    it.healthy("a sync with bulkWrite")


def nightly_batch(it: Incident) -> None:
    """Half a minute is quiet; then an import writes its batches as quickly as they go, and rests; nothing is wrong."""
    place = it.place()
    beside(it, "two", place, fill=60, pause_s=2.5)
    it.seconds(28, 34)
    it.habit("one", "imports", it.names.client(), place=it.place(), pause_s=0.05, seconds=6).finish(60)
    it.seconds(12, 15)
    it.healthy("a nightly import")


def archiver(it: Incident) -> None:
    """An archiver takes old rows away, twenty at a time by their ids, until there are none; nothing is wrong."""
    place = it.place()
    options = {"fill": 1200, "pause_s": 0.35, "seconds": 24, "driver": "node"}
    it.practice("one", "archives", it.names.client(), place=place, **options).finish(60)
    it.healthy("an archiver")


def tcp_probes(it: Incident) -> None:
    """A balancer opens a connection to the server each two seconds and closes it again; nothing is wrong."""
    place = it.place()
    beside(it, "two", place, fill=60)
    probe = f"while true; do (: > /dev/tcp/{it.address}/{PORT}); sleep 2; done"
    it.start("one", "bash", "-c", probe)
    it.seconds(24, 30)
    it.healthy("probes of a balancer")


def old_driver_beside(it: Incident) -> None:
    """One service still has a Go driver of version 1 and its colleagues newer ones; nothing is wrong."""
    place, old = it.place(), it.names.client()
    it.practice("two", "asks", it.names.client(), place=place, driver="go", fill=60, pause_s=0.3, seconds=60)
    it.habit("three", "asks", it.names.client(), place=place, driver="node", pause_s=0.3, seconds=60)
    it.clients.append(it.who("one", old))
    it.taken.append("go")
    it.start("one", str(clients.BINARIES / "go_mongo_old"), it.uri(), old, "0", "20").finish(60)
    it.healthy("an old driver that does its work")


def price_rise(it: Incident) -> None:
    """A job raises the prices of two fifths of the articles with one update, once in a while; nothing is wrong."""
    place = it.place()
    beside(it, "two", place, fill=400)
    it.practice("one", "raises", it.names.client(), place=place, driver="node", pause_s=9.0, seconds=24).finish(60)
    it.healthy("a rise of prices")


FAULTS: tuple[Callable[[Incident], None], ...] = (
    rolling_deploy,
    indexes_at_start,
    optimistic_locks,
    bulk_sync,
    nightly_batch,
    archiver,
    tcp_probes,
    old_driver_beside,
    price_rise,
)
