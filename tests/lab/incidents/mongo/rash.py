"""Commands that touch more than they should, and programs that speak to the wrong thing."""

from __future__ import annotations

from collections.abc import Callable

from tests.lab.clients import python_command
from tests.lab.incidents.mongo.incident import Incident
from tests.lab.incidents.mongo.no_effect import EITHER, beside
from tests.lab.incidents.told import accusing, called, saying
from tests.lab.mongo_servers import PORT

WRONG_PORT = 27117
ALL_ROWS = ["empty filter", "no filter", "without (a )?filter", "\\ball\\b", "every", "{}", "\\d{3}", "whole", "many"]


def tests_against_production(it: Incident) -> None:
    """Somebody's tests run with the address of production: each of them drops the database first."""
    app, place = it.names.client(), it.place()
    good = beside(it, "two", place, fill=60)
    drops = [{"dropDatabase": 1}, {"insert": "rows", "documents": [{"_id": "test-%n", "ok": True}]}]
    it.practice("one", "commands", app, place=place, commands=drops, pause_s=2.0, seconds=16).finish(60)
    it.ask(
        "Q3",
        "tests that drop the database of others",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), ["drop"])],
        [accusing(good)],
    )


def update_of_everything(it: Incident) -> None:
    """A filter's value is undefined and the driver leaves it out: each request changes all rows."""
    app, place = it.names.client(), it.place()
    good = beside(it, "two", place, fill=400)
    it.practice("one", "tenant_missing", app, place=place, driver="node", pause_s=1.5, seconds=20).finish(60)
    it.ask(
        "Q9",
        "updates with an empty filter",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), ["update"], ALL_ROWS)],
        [accusing(good)],
    )


def cleaner_deletes_all(it: Incident) -> None:
    """A cleaner deletes with an empty filter; the application that reads these rows finds nothing from then on."""
    app, place = it.names.client(), it.place()
    good = beside(it, "two", place, fill=500)
    it.seconds(8, 14)
    clean = [{"delete": place.partition(".")[2], "deletes": [{"q": {}, "limit": 0}]}]
    it.practice("one", "commands", app, place=place, commands=clean, count=1).finish(60)
    it.seconds(8, 12)
    it.ask(
        "Q3",
        "a cleaner that deletes all rows",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), ["delete"])],
        [accusing(good)],
    )


def wrong_port(it: Incident) -> None:
    """An application has a wrong port in its settings; nothing listens there."""
    app, place = it.names.client(), it.place()
    good = beside(it, "two", place, fill=60)
    for _ in range(4):
        to = f"{it.address}:{WRONG_PORT}"
        it.practice(
            "one", "asks", app, place=place, driver="go", to=to, client={"serverSelectionTimeoutMS": 3000}, seconds=3
        )
        it.seconds(4, 5)
    wordings = ["refus", "RST", "reset", "nothing listens", "listen", "not (answered|accepted|open)", "SYN", "connect"]
    it.ask(
        "Q4",
        "a port where nothing listens",
        it.who("one", app),
        [saying(called(it.hosts["one"].address), wordings, [f"{WRONG_PORT}", "27017", it.address])],
        [accusing(good)],
    )


def tls_to_plain(it: Incident) -> None:
    """An application begins TLS with a server that speaks none: the server closes each connection at once."""
    app, place = it.names.client(), it.place()
    good = beside(it, "two", place, fill=60)
    for _ in range(4):
        tls = {"tls": "true", "serverSelectionTimeoutMS": 3000}
        it.habit("one", "asks", app, place=place, client=tls, driver=it.rng.choice(EITHER), seconds=2)
        it.seconds(4, 5.5)
    it.ask(
        "Q4",
        "TLS with a server that speaks none",
        it.who("one", app),
        [saying(called(it.hosts["one"].address), ["TLS", "SSL", "not MongoDB", "handshake", "clos", "reset"])],
        [accusing(good)],
    )


def http_probe(it: Incident) -> None:
    """A health check speaks HTTP to the server's port, once a second."""
    place = it.place()
    good = beside(it, "two", place, fill=60)
    it.start("one", *python_command("http_probe", f"http://{it.address}:{PORT}/health"))
    it.seconds(18, 28)
    it.ask(
        "Q4",
        "a health check in HTTP",
        {"address": it.hosts["one"].address},
        [
            saying(
                called(it.hosts["one"].address),
                ["HTTP", "not MongoDB", "GET", "clos", "reset", "undecod", "no command"],
            )
        ],
        [accusing(good)],
    )


def stream_not_known(it: Incident) -> None:
    """An application wants a change stream from a server that has none; its supervisor lets it try again and again."""
    app, place = it.names.client(), it.place()
    good = beside(it, "two", place, fill=60)
    it.practice("one", "watches", app, place=place, pause_s=it.rng.uniform(0.7, 1.5), seconds=24).finish(60)
    wordings = ["change ?stream", "aggregate", "NotImplemented", "not implemented", "\\b238\\b"]
    it.ask(
        "Q4",
        "a change stream that the server does not know",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), wordings)],
        [accusing(good)],
    )


def exporter_of_another_server(it: Incident) -> None:
    """A metrics exporter asks for the state of a replica set and a profile that this server does not know."""
    app, place = it.names.client(), it.place()
    good = beside(it, "two", place, fill=60)
    asked = [{"serverStatus": 1}, {"replSetGetStatus": 1}, {"top": 1}]
    options = {"database": "admin", "commands": asked, "pause_s": 2.0, "seconds": 24}
    it.practice("one", "commands", app, place=place, **options).finish(60)
    wordings = ["replSetGetStatus", "\\btop\\b", "CommandNotFound", "\\b59\\b"]
    it.ask(
        "Q4",
        "an exporter's commands that the server does not know",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), wordings)],
        [accusing(good)],
    )


ON_FERRETDB: tuple[Callable[[Incident], None], ...] = (stream_not_known, exporter_of_another_server)
FAULTS: tuple[Callable[[Incident], None], ...] = (
    tests_against_production,
    update_of_everything,
    cleaner_deletes_all,
    wrong_port,
    tls_to_plain,
    http_probe,
    stream_not_known,
    exporter_of_another_server,
)
