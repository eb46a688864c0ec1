"""Q4, who was refused, and can it heal: logins, rights, limits of time, a primary that is none for a while."""

from __future__ import annotations

from collections.abc import Callable

from tests.lab.incidents.mongo.faults import failing, slow
from tests.lab.incidents.mongo.incident import LOGIN, Incident
from tests.lab.incidents.mongo.no_effect import EITHER, beside
from tests.lab.incidents.staged import name, saying


def wrong_auth_database(it: Incident) -> None:
    """An application logs in against the database shop; its user is one of admin."""
    app, good, place = it.names.client(), it.names.client(), it.place()
    it.habit("two", "asks", good, place=place, fill=50, pause_s=0.3, seconds=60).wait_for_event("ready")
    for _ in range(8):
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
        [saying(name(app, it.hosts["one"].address), ["auth", "login", "logged"], ["shop", "database"])],
        [saying(name(good), ["auth"])],
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
        [saying(name(app, it.hosts["one"].address), ["distinct"], wordings)],
        [saying(name(good), ["Unauthorized"])],
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
        [saying(name(app, it.hosts["one"].address), wordings)],
        [saying(name(good), wordings)],
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
        [saying(name(app, it.hosts["one"].address), wordings, ["NotWritablePrimary", "primary", "10107"])],
    )


FAULTS: tuple[Callable[[Incident], None], ...] = (wrong_auth_database, unauthorized, limit_too_short, retries_at_once)
