"""Healthy changes: nothing is wrong, however it may look."""

from __future__ import annotations

import time

from tests.lab.incidents.mongo.faults import slow
from tests.lab.incidents.mongo.incident import LAG_S, Incident


def batched(it: Incident) -> None:
    """Lists are put together with one $in for each; nothing is wrong."""
    it.work("one", "populate", it.names.client()).finish(120)
    it.healthy("batched populate")


def many_users(it: Incident) -> None:
    """Many users look at one row each, each when they like; nothing is wrong."""
    it.work("one", "users", it.names.client(), threads=12, pause_s=it.rng.choice((0.05, 0.2, 0.5))).finish(120)
    it.healthy("many users")


def ordinary_pool(it: Incident) -> None:
    """Threads share a pool that suffices; nothing is wrong."""
    more = {"client": {"maxPoolSize": 20}, "fail_point": slow("aggregate", 20), "seconds": 16}
    it.work("one", "reports", it.names.client(), threads=8, pause_s=it.rng.uniform(0.02, 0.06), **more).finish(120)
    it.healthy("an ordinary pool")


def busy_threads(it: Incident) -> None:
    """A few threads that pause for a moment after each answer, and never wait for a connection; nothing is wrong."""
    more = {"client": {"maxPoolSize": 20}, "fail_point": slow("aggregate", it.rng.choice((25, 60, 90))), "seconds": 16}
    pause_s = it.rng.uniform(0.006, 0.015)
    it.work("one", "reports", it.names.client(), threads=it.rng.randint(3, 5), pause_s=pause_s, **more).finish(120)
    it.healthy("threads that are nearly always busy")


def stepped_down(it: Incident) -> None:
    """The primary steps down for a moment; the driver writes again by itself; nothing is wrong."""
    works = [it.work(host, "writes", it.names.client()) for host in ("one", "two")]
    works[0].wait_for_event("ready")
    time.sleep(it.rng.uniform(2, 4))
    it.work("three", "step_down", it.names.client(), seconds=1).finish(60)
    for one in works:
        one.finish(120)
    it.healthy("a step-down that drivers handle")


def exported(it: Incident) -> None:
    """A program reads a collection batch by batch, as quickly as it comes; nothing is wrong."""
    it.work("one", "export", it.names.client(), seconds=14).finish(120)
    it.healthy("an export")


def patient_reader(it: Incident) -> None:
    """An application reads from a secondary what was written long ago; nothing is wrong."""
    it.work("one", "read_own_writes", it.names.client(), pause_s=LAG_S + 0.7, count=8).finish(120)
    it.healthy("reads from a secondary")


def tools(it: Incident) -> None:
    """A few programs that do one thing and end, mongosh among them; nothing is wrong."""
    for host in ("one", "two"):
        it.work(host, "writes", it.names.client(), count=2).finish(60)
    it.shell(
        "three", "show databases", "use library", "db.books.insertOne({title: 'volume'})", "db.books.find()"
    ).finish(60)
    it.work("one", "writes", it.names.client(), count=2).finish(60)
    it.healthy("programs that come and go")


def transactions(it: Incident) -> None:
    """Applications commit their transactions, and take some back; nothing is wrong."""
    works = [it.work(host, "transactions", it.names.client()) for host in ("one", "two")]
    for one in works:
        one.finish(120)
    it.healthy("transactions")
