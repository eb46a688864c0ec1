"""What goes wrong: each function does it to an Incident and says who did it and which codes may say so."""

from __future__ import annotations

import time
from typing import Any

from tests.lab import firewall
from tests.lab.incidents.mongo.incident import Incident
from tests.lab.mongo_servers import PORT, SECOND_PORT


def failing(command: str, times: int | None = None, **how: Any) -> dict[str, Any]:
    """Return the command that orders failures of a command; TIMES: None is always."""
    mode = "alwaysOn" if times is None else {"times": times}
    return {"configureFailPoint": "failCommand", "mode": mode, "data": {"failCommands": [command], **how}}


def slow(command: str, ms: int) -> dict[str, Any]:
    """Return the command that makes a command take so long."""
    return failing(command, blockConnection=True, blockTimeMS=ms)


def n_plus_one(it: Incident, how: str = "turn") -> None:
    """An application reads a list and then each of its rows alone."""
    name = it.names.client()
    it.work("one", "one_by_one", name, how=how).finish(120)
    # Those of a burst wait for each other.
    allowed = ("MON101",) if how == "burst" else ()
    it.blame("one lookup per row", it.who("one", name), "MON105", allowed=allowed)


def n_plus_one_burst(it: Incident) -> None:
    """It reads all rows of the list at once, each alone, over its pool."""
    n_plus_one(it, "burst")


def n_plus_one_in(it: Incident) -> None:
    """It reads each row with an $in of one value."""
    n_plus_one(it, "in")


def client_per_request(it: Incident) -> None:
    """A script that makes a client for each request."""
    name = it.names.client()
    it.work("one", "client_per_request", name).finish(120)
    it.blame("a client per request", it.who("one", name), "MON107")


def pool_saturated(it: Incident) -> None:
    """Twenty threads share four connections."""
    name, ms = it.names.client(), it.rng.choice((12, 25, 60))
    options = {"client": {"maxPoolSize": 4}, "threads": 20, "seconds": 16, "fail_point": slow("aggregate", ms)}
    it.work("one", "reports", name, **options).finish(120)
    it.blame("a pool that is too small", it.who("one", name), "MON114", allowed=("MON101",))


def slow_shape(it: Incident) -> None:
    """One kind of command takes long."""
    name = it.names.client()
    it.work("one", "distinct", name, fail_point=slow("distinct", it.rng.randrange(250, 900))).finish(120)
    it.blame("a slow command", it.who("one", name), "MON101")


def growing_cursors(it: Incident) -> None:
    """An application opens cursors and reads none to its end."""
    name = it.names.client()
    it.work("one", "cursors", name).finish(120)
    it.blame("cursors left open", it.who("one", name), "MON104")


def duplicate_keys(it: Incident) -> None:
    """An application inserts again and again what is there."""
    name = it.names.client()
    it.work("one", "duplicates", name).finish(120)
    it.blame("duplicate keys", it.who("one", name), "MON102")


def stale_read(it: Incident) -> None:
    """An application reads from a secondary what it has just written."""
    name = it.names.client()
    it.work("one", "read_own_writes", name).finish(120)
    it.blame("a stale read", it.who("one", name), "MON115")


def write_to_secondary(it: Incident) -> None:
    """An application is sent to a secondary and writes."""
    name = it.names.client()
    it.work("one", "writes", name, to=f"{it.address}:{SECOND_PORT}").finish(120)
    it.blame("writes to a secondary", it.who("one", name), "MON102")


def server_stands_still(it: Incident) -> None:
    """The server's process stands still for some seconds while applications use it."""
    assert it.server is not None
    names = [it.names.client() for _ in range(3)]
    works = [it.work(host, "users", name, threads=3) for host, name in zip(("one", "two", "three"), names, strict=True)]
    for one in works:
        one.wait_for_event("ready")
    time.sleep(it.rng.uniform(5, 8))
    it.server.freeze()
    time.sleep(it.rng.uniform(2.5, 5))
    it.server.thaw()
    for one in works:
        one.finish(120)
    it.blame("the server stands still", {"server": it.endpoint}, "MON116")
    it.truth["cluster_wide"] = True


def wrong_password(it: Incident) -> None:
    """A program with a wrong password tries again without a pause."""
    name = it.names.client()
    it.work("one", "logins", name, login="clerk:lab-mongo-wrong@").finish(120)
    it.blame("a wrong password", it.who("one", name), "NET103", "MON102", allowed=("MON107",))


def cut_connections(it: Incident) -> None:
    """The server closes connections instead of answering."""
    name = it.names.client()
    order = failing("distinct", 7, closeConnection=True)
    it.work("one", "distinct", name, fail_point=order, client={"retryReads": "false"}).finish(120)
    it.blame("connections cut", it.who("one", name), "MON103", allowed=("TCP103", "MON107"), sides=("server",))


def write_cut(it: Incident) -> None:
    """The server closes a connection instead of answering a write, which the driver sends again by itself."""
    name = it.names.client()
    it.work("one", "writes", name, fail_point=failing("insert", 1, closeConnection=True)).finish(120)
    it.blame(
        "a write sent again", it.who("one", name), "MON112", "MON103", allowed=("TCP103", "MON107"), sides=("server",)
    )


def idle_dropped(it: Incident) -> None:
    """A firewall forgets an idle connection, and drops what comes on it later."""
    name = it.names.client()
    it.work("two", "users", it.names.client(), threads=1, pause_s=1.0, seconds=60)
    busy = it.work("one", "users", it.names.client(), threads=1, pause_s=0.5, seconds=60)
    busy.wait_for_event("ready")
    time.sleep(1)
    other = set(firewall.local_ports(it.hosts["one"], PORT))
    idle = it.work("one", "pause", name, client={"heartbeatFrequencyMS": 60_000, "socketTimeoutMS": 15_000})
    idle.wait_for_event("resting")
    ports = sorted(set(firewall.local_ports(it.hosts["one"], PORT)) - other)
    with firewall.dropping(it.hosts["server"], it.hosts["one"].address, ports=ports):
        idle.finish(120)
    who = it.who("one", name)
    it.blame("an idle connection dropped", who, "NET101", allowed=("MON103", "TCP101"), sides=("network",))


def transaction_open(it: Incident) -> None:
    """An application begins a transaction and forgets it for longer than servers allow."""
    # 60 s, and up to 10 s more until the last heartbeat of the driver shows that it is still there.
    name, rest_s = it.names.client(), it.rng.uniform(74, 84)
    left = it.work("one", "transaction_left", name, how=it.rng.choice(("stay", "work")), rest_s=rest_s + 10)
    left.wait_for_event("resting")
    time.sleep(rest_s)
    it.blame("a transaction left open", it.who("one", name), "MON111")


def transaction_abandoned(it: Incident) -> None:
    """An application ends in the middle of a transaction."""
    name = it.names.client()
    it.work("one", "transaction_left", name, how="crash").finish(60)
    time.sleep(it.rng.uniform(2, 5))
    it.blame("a transaction abandoned", it.who("one", name), "MON111")


def legacy_driver(it: Incident) -> None:
    """An application has a driver that sends OP_QUERY, which servers from 5.1 on refuse."""
    name = it.names.client()
    it.work("one", "everyday", name, driver="mgo").finish(60)
    it.blame("legacy opcodes", it.who("one", name), "MON110")


def refused_driver(it: Incident) -> None:
    """An application has a driver that sends OP_QUERY, and the server refuses it."""
    name = it.names.client()
    it.work("one", "everyday", name, driver="mgo")
    time.sleep(it.rng.uniform(8, 14))  # it tries again for 10 s
    it.blame("a driver that is older than the server", it.who("one", name), "MON102", allowed=("NET103", "MON107"))
