"""What servers allow: time for a transaction or a cursor, connections, bytes in a row; members that are not there."""

from __future__ import annotations

from collections.abc import Callable

from tests.lab.incidents.mongo.incident import Incident
from tests.lab.incidents.mongo.no_effect import EITHER, beside
from tests.lab.incidents.told import accusing, called, saying

IMPATIENT = {"serverSelectionTimeoutMS": 2500}
CONNECTIONS = 40
GONE_PORT = 27021


def transaction_expires(it: Incident) -> None:
    """An application asks a payment service within its transaction; the server has ended it before the commit."""
    app, place = it.names.client(), it.place()
    good = beside(it, "two", place, fill=60)
    it.practice("one", "thinks", app, place=place, think_s=it.rng.uniform(5.5, 7), pause_s=0.6, seconds=34).finish(60)
    wordings = ["NoSuchTransaction", "\\b251\\b", "commit", "expire", "lifetime", "transaction"]
    it.ask(
        "Q4",
        "transactions that last longer than the server allows",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), wordings)],
        [accusing(good)],
    )


def cursor_expires(it: Incident) -> None:
    """A program works on each batch for longer than the server keeps an idle cursor."""
    app, place = it.names.client(), it.place()
    good = beside(it, "two", place, fill=120)
    walks = it.practice(
        "one", "slow_batches", app, place=place, think_s=it.rng.uniform(5.5, 7), pause_s=0.5, seconds=36
    )
    walks.finish(90)
    wordings = ["CursorNotFound", "cursor.*(not found|unknown|expire|time)", "\\b43\\b"]
    it.ask(
        "Q4",
        "a cursor that is idle for too long",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), wordings)],
        [accusing(good)],
    )


def connection_limit(it: Incident) -> None:
    """One application takes nearly all connections that the server allows; others are sent away as they connect."""
    hog, place = it.names.client(), it.place()
    victims = [it.names.client() for _ in range(2)]
    it.habit("two", "asks", victims[0], place=place, fill=60, pause_s=0.5, seconds=40).wait_for_event("ready")
    warm = {"minPoolSize": 34, "maxPoolSize": 100, "maxConnecting": 20}
    it.habit("one", "asks", hog, place=place, client=warm, pause_s=0.2, seconds=34).wait_for_event("ready")
    it.seconds(4, 5)
    for _ in range(4):
        late = it.habit(
            "three", "asks", victims[1], place=place, driver="node", client=IMPATIENT, pause_s=0.3, seconds=3
        )
        late.finish(30)
        it.seconds(0.5, 1)
    it.ask(
        "Q8",
        "one application holds nearly all connections of the server",
        it.who("one", hog),
        [saying(called(hog, it.hosts["one"].address), ["connection"])],
        [accusing(victims[0])],
    )


def document_full(it: Incident) -> None:
    """A program keeps attachments in one row until it is larger than MongoDB allows: each later update fails."""
    app, place = it.names.client(), it.place()
    good = beside(it, "two", place, fill=60)
    size = it.rng.randrange(1_400_000, 1_900_000)
    it.practice("one", "attaches", app, place=place, size=size, pause_s=1.0, seconds=24).finish(90)
    wordings = ["10334", "larger", "too large", "BSONObjectTooLarge", "16 ?MB", "size", "grow", "limit"]
    it.ask(
        "Q8",
        "a row that has become larger than allowed",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), wordings)],
        [accusing(good)],
    )


def dead_secondary(it: Incident) -> None:
    """A member of the replica set is down; an application that reads from secondaries alone finds none."""
    app, place = it.names.client(), it.place()
    good = it.names.client()
    it.habit("two", "asks", good, place=place, fill=60, pause_s=0.3, seconds=60).wait_for_event("ready")
    for _ in range(4):
        away = {**IMPATIENT, "readPreference": "secondary"}
        it.habit("one", "asks", app, place=place, client=away, pause_s=0.4, seconds=4, driver=it.rng.choice(EITHER))
        it.seconds(5, 6.5)
    it.ask(
        "Q6",
        "reads from secondaries of which none is there",
        {"server": f"{it.address}:{GONE_PORT}", "any": [it.who("one", app)]},
        [
            saying(
                called(app, it.hosts["one"].address, f"{it.address}:{GONE_PORT}", f"{GONE_PORT}"),
                ["hello", "no command", "never", "refused", "RST", "reset", "unreach", "member", "connect", "answer"],
            )
        ],
    )


def wrong_set_name(it: Incident) -> None:
    """An application names another replica set than the server's: it says hello, leaves, and starts again."""
    app, place = it.names.client(), it.place()
    good = beside(it, "two", place, fill=60)
    other = {**IMPATIENT, "replicaSet": it.rng.choice(("rs0", "prod-rs", "shop"))}
    for _ in range(6):
        it.habit("one", "asks", app, place=place, client=other, pause_s=0.5, seconds=1).finish(30)
        it.seconds(0.5, 2)
    wordings = ["hello", "no command", "never", "replica set", "without a command", "setName"]
    it.ask(
        "Q6",
        "another replica set's name",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), wordings)],
        [accusing(good)],
    )


def no_login(it: Incident) -> None:
    """An application has no user and no password: the server refuses each of its commands."""
    app, place = it.names.client(), it.place()
    good = beside(it, "two", place, fill=60)
    login, it.login = it.login, ""
    it.practice("one", "inserts", app, place=place, driver="node", pause_s=0.8, seconds=20).finish(60)
    it.login = login
    wordings = ["authenticat", "unauthorized", "not authorized", "\\b13\\b", "log(ged)? ?in", "refus"]
    it.ask(
        "Q4",
        "no login at all",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), wordings)],
        [accusing(good)],
    )


# What the test server is told beside the usual; it has a secondary, too.
WORDS: dict[Callable[[Incident], None], tuple[str, ...]] = {
    transaction_expires: ("--transaction-s=4",),
    cursor_expires: ("--cursor-s=4",),
}
FAULTS: tuple[Callable[[Incident], None], ...] = (
    transaction_expires,
    cursor_expires,
    connection_limit,
    document_full,
    dead_secondary,
    wrong_set_name,
    no_login,
)
