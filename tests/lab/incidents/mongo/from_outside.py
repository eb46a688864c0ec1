"""What comes from outside: a quota, one address on two hosts, a filter of words, an operator; and what is fine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.lab.clients import python_command
from tests.lab.incidents.mongo.faults import failing
from tests.lab.incidents.mongo.incident import Incident
from tests.lab.incidents.mongo.no_effect import beside
from tests.lab.incidents.mongo.on_the_way import PROXY_PORT
from tests.lab.incidents.told import accusing, called, saying
from tests.lab.net import in_namespace
from tests.lab.processes import Process

TOO_MANY = 16500  # as Azure Cosmos DB answers who is above the request units that are paid for
TOO_MANY_SAID = ("Error=16500, RetryAfterMs=34, Details='Response status code does not indicate success: "
                 "TooManyRequests (429); Substatus: 3200; Reason: (Request rate is large.)'")  # fmt: skip
AGENTS = 20
CUT = ["reset", "RST", "clos(e|es|ed|ing)\\b", "\\bFIN\\b", "\\bcuts?\\b", "abort", "\\bends?\\b", "ended", "reconnect",
       "new connection", "without (an )?(answer|reply)", "unanswered", "no (answer|reply)",
       "connections? (lost|failed)"]  # fmt: skip


def throttled(it: Incident) -> None:
    """A load takes all of what a hosted server's plan has and tries again at once; others are refused beside it."""
    place, loader, names = it.place(), it.names.client(), [it.names.client() for _ in range(2)]
    works = [it.habit("two", "asks", names[0], place=place, fill=60, pause_s=0.15, seconds=44)]
    works[0].wait_for_event("ready")
    works.append(it.practice("three", "adds", names[1], place=it.place(), driver="go", pause_s=0.2, seconds=42))
    it.seconds(9, 11)
    works.append(it.practice("one", "loads", loader, place=it.place(), driver="node", threads=6, pause_s=0.03,
                             seconds=26))  # fmt: skip
    works[-1].wait_for_event("ready")
    it.seconds(1, 2)
    refused: dict[str, Any] = failing("insert", times=160, errorCode=TOO_MANY, errmsg=TOO_MANY_SAID)
    refused["data"]["failCommands"] = ["insert", "find"]
    for _ in range(8):
        it.order(refused)
        it.seconds(0.8, 1.8)
    for one in works:
        one.finish(90)
    wordings = ["16500", "too ?many", "throttl", "\\brate", "quota", "\\b429\\b", "RetryAfter", "refus", "reject"]
    it.ask(
        "Q4",
        "a load above the quota of requests",
        {"server": it.endpoint, "any": [it.who("one", loader)]},
        [saying(called(loader, it.hosts["one"].address, it.endpoint, it.address), wordings)],
    )


def address_twice(it: Incident) -> None:
    """A second machine has the address of an application's host, and both announce it: answers go to the other."""
    place, app, other = it.place(), it.names.client(), it.names.client()
    good = beside(it, "two", place, fill=60)
    works = [
        it.practice("one", "asks", app, place=place, driver="go", pause_s=0.15, seconds=50),
        it.practice("three", "asks", other, place=place, driver="node", pause_s=0.3, seconds=50),
    ]
    it.seconds(13, 16)
    address = it.hosts["one"].address
    in_namespace(it.hosts["three"].namespace, "ip", "address", "add", f"{address}/24", "dev", "eth0")
    for host, first_s in (("three", "0.1"), ("one", "2.6")):
        it.start(host, *python_command("announces", address, first_s, "7.5")).wait_for_event("ready")
    for one in works:
        one.finish(120)
    wordings = [*CUT, "\\bMAC\\b", "\\bARP\\b", "hardware", "twice", "two (hosts|machines)", "conflict", "duplicate",
                "retransmi", "\\b(lost|loss)\\b", "silent", "\\bdead\\b", "\\bdrop", "packets?\\b"]  # fmt: skip
    it.ask(
        "Q6",
        "one address on two machines",
        {"address": address, "any": [it.who("one", app)]},
        [saying(called(app, address), wordings)],
        [accusing(good, other)],
        sides=("network",),
    )


def word_filter(it: Incident) -> None:
    """A filter on the way resets the connection of each insert whose text has a script in it; it is tried again."""
    place, app, good = it.place(), it.names.client(), it.names.client()
    through = f"{it.address}:{PROXY_PORT}"
    it.start("server", *python_command("word_filter", through, it.endpoint, "<script>")).wait_for_event("listening")
    fine = it.practice("two", "posts", good, to=through, place=place, pause_s=0.4, seconds=40)
    fine.wait_for_event("ready")
    client = {"serverSelectionTimeoutMS": 3000}
    it.practice("one", "posts", app, to=through, place=place, driver="node", client=client, pause_s=0.6, seconds=36)\
        .finish(90)  # fmt: skip
    fine.finish(60)
    it.ask(
        "Q6",
        "a filter that resets what has a word in it",
        {"server": through, "any": [it.who("one", app)]},
        [saying(called(app, it.hosts["one"].address, through), CUT)],
        [accusing(good)],
    )


def collection_renamed(it: Incident) -> None:
    """An operator renames a collection in mongosh: its readers find nothing from then on, its writer makes it anew."""
    place, names = it.place(), [it.names.client() for _ in range(4)]
    works = [it.practice("two", "asks", names[0], place=place, driver="node", fill=60, pause_s=0.3, seconds=80)]
    works[0].wait_for_event("ready")
    works.append(it.practice("three", "asks", names[1], place=place, driver="go", pause_s=0.5, seconds=78))
    works.append(it.habit("shop", "asks", names[2], place=place, pause_s=0.4, seconds=78))
    works.append(it.practice("three", "adds", names[3], place=place, driver="go", pause_s=2, seconds=78))
    it.seconds(38, 44)
    database, _, collection = place.partition(".")
    command = f"db.getCollection('{collection}').renameCollection('{collection}_2024')"
    it.shell("one", f"use {database}", command).finish(60)
    for one in works:
        one.finish(120)
    it.ask(
        "Q8",
        "a collection that is renamed",
        {"address": it.hosts["one"].address},
        [saying([*called(it.hosts["one"].address, place), "mongosh"], ["renam", "\\bmoved"])],
    )


def tests_in_their_own(it: Incident) -> None:
    """Suites of tests make databases of their own and drop them again, one after the other; nothing is wrong."""
    beside(it, "two", it.place(), fill=60)
    works = [it.practice("one", "suite", it.names.client(), driver="node", pause_s=1.5, seconds=32) for _ in range(2)]
    for one in works:
        one.finish(60)
    it.healthy("tests with databases of their own")


def agents_report(it: Incident) -> None:
    """Twenty agents store what they have measured, all at each tenth second of the clock; nothing is wrong."""
    place = it.place()
    beside(it, "shop", it.place(), fill=60)
    works: list[Process] = []
    for number in range(AGENTS):
        host = ("one", "two", "three", "site")[number % 4]
        works.append(it.practice(host, "report", it.names.client(), place=place, driver="go", every_s=10, seconds=50))
    for one in works:
        one.finish(120)
    it.healthy("agents that report at the same second")


FAULTS: tuple[Callable[[Incident], None], ...] = (
    throttled,
    address_twice,
    word_filter,
    collection_renamed,
    tests_in_their_own,
    agents_report,
)
ON_FERRETDB = (word_filter, collection_renamed, tests_in_their_own)
