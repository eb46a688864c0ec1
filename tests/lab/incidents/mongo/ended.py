"""Q6, who ended it, and with what pending: a hello and no command, a client that gives up before the answer."""

from __future__ import annotations

from collections.abc import Callable

from tests.lab.incidents.mongo.faults import slow
from tests.lab.incidents.mongo.incident import Incident
from tests.lab.incidents.mongo.no_effect import beside
from tests.lab.incidents.told import accusing, called, saying

ADVERTISED = "mongo-0.internal.example:27017"
OLD_WIRE_VERSION = 6  # MongoDB 3.6
IMPATIENT = {"serverSelectionTimeoutMS": 2000}  # its supervisor starts the application again


def unreachable_hosts(it: Incident) -> None:
    """A replica set advertises a name that its clients cannot resolve: they say hello and never send a command."""
    names = [it.names.client() for _ in range(2)]
    for _ in range(5):
        for host, app in zip(("one", "two"), names, strict=True):
            it.habit(host, "asks", app, client=IMPATIENT, pause_s=0.5, seconds=1).finish(30)
        it.seconds(0.5, 1.5)
    it.ask(
        "Q6",
        "hosts that clients cannot reach",
        {"server": it.endpoint, "any": [it.who("one", names[0])]},
        [saying(["mongo-0"], ["advertis", "host", "hello", "no command", "resolve", "reach"])],
    )


def old_server(it: Incident) -> None:
    """A server is older than what a driver takes: it says hello and leaves, again and again."""
    app = it.names.client()
    for _ in range(6):
        it.habit("one", "asks", app, client=IMPATIENT, pause_s=0.5, seconds=2).finish(30)
        it.seconds(0.5, 1.5)
    it.ask(
        "Q6",
        "a server that is too old for a driver",
        it.who("one", app),
        [
            saying(
                called(app, it.hosts["one"].address, it.address),
                ["wire version", "maxWireVersion", "too old", "older", "version"],
            )
        ],
    )


def gives_up(it: Incident) -> None:
    """An application waits 400 ms for what takes a second, closes the connection and asks again."""
    app, place = it.names.client(), it.place()
    good = beside(it, "two", place, fill=60)
    options = {"socketTimeoutMS": 400, "retryReads": "false"}
    order = slow("aggregate", it.rng.randrange(900, 1300))
    it.habit("one", "totals", app, place=place, client=options, fail_point=order, pause_s=0.6).finish(60)
    wordings = [
        "gave up",
        "gives up",
        "timeout",
        "timed out",
        "before the (answer|reply|server)",
        "without waiting",
        "closed .*(before|while)",
    ]
    it.ask(
        "Q6",
        "a socket timeout shorter than the query",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), wordings)],
        [accusing(good)],
        sides=("client",),
    )


FAULTS: tuple[Callable[[Incident], None], ...] = (unreachable_hosts, old_server, gives_up)
