"""Q4, who was refused, and can it heal: logins, rights, limits of time, a primary that is none for a while."""

from __future__ import annotations

from collections.abc import Callable

from tests.lab.clients import python_command
from tests.lab.incidents.mongo.faults import failing, slow
from tests.lab.incidents.mongo.incident import LAG_S, LOGIN, Incident
from tests.lab.incidents.mongo.no_effect import EITHER, beside
from tests.lab.incidents.told import accusing, called, saying
from tests.lab.mongo_servers import PORT, SECOND_PORT
from tests.lab.processes import LabError

BALANCED_PORT = 27019


def wrong_auth_database(it: Incident) -> None:
    """An application logs in against the database shop; its user is one of admin."""
    app, good, place = it.names.client(), it.names.client(), it.place()
    it.habit("two", "asks", good, place=place, fill=50, pause_s=0.3, seconds=60).wait_for_event("ready")
    for _ in range(5):
        process = it.habit(
            "one",
            "asks",
            app,
            place=place,
            pause_s=0.5,
            seconds=1,
            login=f"{LOGIN}@",
            client={"authSource": "shop", "authMechanism": "SCRAM-SHA-256"},
        )
        process.finish(30)
        it.seconds(0.5, 1.5)
    it.ask(
        "Q4",
        "a wrong auth database",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), ["auth", "login", "logged"], ["shop", "database"])],
        [accusing(good)],
    )


def unauthorized(it: Incident) -> None:
    """An application may not do one of its commands, at any time, and goes on without it."""
    app, place = it.names.client(), it.place()
    good = beside(it, "two", place, fill=60)
    order = failing("distinct", errorCode=13)
    it.habit("one", "shelves", app, place=place, fail_point=order, pause_s=2.0, driver=it.rng.choice(EITHER)).finish(60)
    wordings = ["unauthorized", "not authorized", "\\b13\\b", "refus", "right", "permission"]
    it.ask(
        "Q4",
        "a command that is not allowed",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), ["distinct"], wordings)],
        [accusing(good)],
    )


def limit_too_short(it: Incident) -> None:
    """An application gives the server 40 ms for what takes longer, each time."""
    app, place = it.names.client(), it.place()
    good = beside(it, "two", place, fill=60)
    order = slow("aggregate", it.rng.randrange(120, 300))
    options = {"limit_ms": 40, "fail_point": order, "pause_s": 0.5, "driver": it.rng.choice(EITHER)}
    it.habit("one", "totals", app, place=place, **options).finish(60)
    wordings = ["maxTimeMS", "MaxTimeMSExpired", "time limit", "\\b50\\b"]
    it.ask(
        "Q4",
        "maxTimeMS too short",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), wordings)],
        [accusing(good)],
    )


def retries_at_once(it: Incident) -> None:
    """A primary steps down; one application tries its insert again without any pause, hundreds of times."""
    app, other = it.names.client(), it.names.client()
    direct = {"retryWrites": "false", "directConnection": "true"}
    busy = it.habit("one", "inserts_alone", app, to=it.endpoint, client=direct, pause_s=0.002, seconds=14)
    it.habit("two", "inserts_alone", other, pause_s=0.5, seconds=14)
    busy.wait_for_event("ready")
    it.seconds(1, 2)
    it.work("three", "step_down", it.names.client(), seconds=5).finish(60)
    busy.finish(60)
    wordings = ["retr", "again", "tries", "without (a )?(pause|back)", "per second", "\\d{3} ", "NotWritablePrimary"]
    it.ask(
        "Q5",
        "retries without a pause",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), wordings, ["NotWritablePrimary", "primary", "10107"])],
    )


def behind_balancer(it: Incident) -> None:
    """A balancer sends each connection to another of two servers: a cursor of one is asked for at the other."""
    app, place = it.names.client(), it.place()
    it.habit("two", "asks", it.names.client(), place=place, fill=60, pause_s=0.5, seconds=60).wait_for_event("ready")
    it.seconds(LAG_S + 0.5, LAG_S + 1)
    targets = [f"{it.address}:{port}" for port in (PORT, SECOND_PORT)]
    balanced = f"{it.address}:{BALANCED_PORT}"
    it.start("server", *python_command("balancer", balanced, *targets)).wait_for_event("listening")
    walker = it.habit("one", "walks_together", app, to=balanced, place=place, pause_s=0.3, seconds=16)
    walker.finish(60)
    if "CursorNotFound" not in walker.named_events("done")[0]["failed"]:
        raise LabError("all connections went to one server")
    wordings = ["CursorNotFound", "cursor.*(not found|unknown|another|other|does not)", "\\b43\\b"]
    it.ask(
        "Q4",
        "cursors behind a balancer",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), wordings)],
    )


FAULTS: tuple[Callable[[Incident], None], ...] = (
    wrong_auth_database,
    unauthorized,
    limit_too_short,
    retries_at_once,
    behind_balancer,
)
