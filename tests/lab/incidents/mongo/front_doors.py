"""What keeps an application out: descriptors, modes, TLS, a password, a line that is too long, a proxy's first line."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.lab import slow_link
from tests.lab.clients import mongo_workers, python_command
from tests.lab.incidents.mongo.incident import LOGIN, Incident
from tests.lab.incidents.mongo.no_effect import EITHER, beside
from tests.lab.incidents.mongo.on_the_way import ENDS, PROXY_PORT, TLS_PORT
from tests.lab.incidents.mongo.slow_parts import NETWORK
from tests.lab.incidents.told import accusing, called, saying
from tests.lab.processes import run
from tests.support.tls_certificates import Authority

UNHEARD = [*ENDS, "unanswered", "no answer", "hello", "handshake", "never", "again", "time.?out", "gave up", "wait"]
IMPATIENT = {"serverSelectionTimeoutMS": 2500}


def server_process(it: Incident, program: str) -> int:
    """Return the number of the process of a server on its host."""
    for number in run(["ip", "netns", "pids", it.hosts["server"].namespace]).split():
        if Path(f"/proc/{number}/comm").read_text().strip() == program:
            return int(number)
    raise LookupError(program)


def descriptors_used_up(it: Incident) -> None:
    """The server has no descriptor left: who is in is served, who comes waits for an answer to the first hello."""
    place, late = it.place(), [it.names.client() for _ in range(3)]
    good = beside(it, "two", place, fill=60)
    it.seconds(5, 7)
    number = server_process(it, "ferretdb")
    limit = max(int(one.name) for one in Path(f"/proc/{number}/fd").iterdir()) + 1
    run(["prlimit", "--pid", str(number), f"--nofile={limit}:{limit}"])
    client = {"connectTimeoutMS": 3000, "serverSelectionTimeoutMS": 8000}
    works = [
        it.practice(host, "asks", app, place=place, driver=driver, client=client, pause_s=0.3, seconds=30)
        for host, app, driver in (("one", late[0], "node"), ("three", late[1], "go"))
    ]
    works.append(it.habit("three", "asks", late[2], place=place, client=client, pause_s=0.3, seconds=30))
    for one in works:
        one.finish(90)
    it.ask(
        "Q6",
        "a server without descriptors",
        {"server": it.endpoint},
        [saying(called(it.endpoint, it.address), UNHEARD)],
        [accusing(good)],
    )


def load_balanced_wrong(it: Incident) -> None:
    """An application says loadBalanced of a server that is behind no balancer: it says hello and leaves, each time."""
    place, app = it.place(), it.names.client()
    good = beside(it, "two", place, fill=60)
    driver = it.rng.choice(EITHER)
    it.clients.append(it.who("one", app))
    it.taken.append(driver)
    uri = f"mongodb://{it.endpoint}/?loadBalanced=true"
    options: dict[str, Any] = {"pause_s": 0.8, "seconds": 26}
    it.start("one", *mongo_workers.habit(driver, "asks", uri, app, place, options)).finish(60)
    it.ask(
        "Q4",
        "loadBalanced without a balancer",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), [*UNHEARD, "loadBalanced", "balanc", "serviceId", "command"])],
        [accusing(good)],
    )


def plain_to_tls(it: Incident) -> None:
    """An application speaks without TLS to a port that wants TLS: each of its connections is closed."""
    place, app, good = it.place(), it.names.client(), it.names.client()
    ours = Authority("Lab CA", it.directory / "ours")
    paths = ours.issue("mongo", [it.address])
    through = f"{it.address}:{TLS_PORT}"
    words = (through, it.endpoint, f"cert={paths.certificate}", f"key={paths.key}")
    it.start("server", sys.executable, "-m", "tests.lab.tls_front", *words).wait_for_event("listening")
    fine = {"tls": "true", "tlsCAFile": ours.path}
    first = it.habit("two", "asks", good, to=through, place=place, client=fine, fill=60, pause_s=0.3, seconds=36)
    first.wait_for_event("ready")
    # The Node driver gives up for good after its first try.
    it.practice(
        "one", "asks", app, to=through, place=place, driver="go", client=IMPATIENT, pause_s=0.5, seconds=26
    ).finish(60)
    first.finish(60)
    it.ask(
        "Q4",
        "no TLS where the server wants it",
        {"server": through, "any": [it.who("one", app)]},
        [saying(called(app, it.hosts["one"].address), [*UNHEARD, "TLS", "plain", "clear"])],
        [accusing(good)],
    )


def password_rotated(it: Incident) -> None:
    """Somebody gives a user a new password: one of three instances is not told, and fails on each new connection."""
    place, names = it.place(), [it.names.client() for _ in range(3)]
    short = {"maxIdleTimeMS": 1000, "minPoolSize": 0}
    works = [it.habit("two", "asks", names[1], place=place, fill=60, pause_s=0.3, seconds=46)]
    works[0].wait_for_event("ready")
    works.append(it.habit("one", "asks", names[0], place=place, driver="node", client=short, pause_s=1.6, seconds=42))
    it.seconds(9, 12)
    user, _, old = LOGIN.partition(":")
    change = {"updateUser": user, "pwd": f"{old}-new"}
    it.practice("three", "commands", it.names.client(), database="admin", commands=[change], count=1, seconds=1).finish(
        30
    )
    fresh = f"{user}:{old}-new@"
    works.append(
        it.habit("three", "asks", names[2], place=place, login=fresh, driver="node", client=short, pause_s=1.6,
                 seconds=26)
    )  # fmt: skip
    for one in works:
        one.finish(90)
    wordings = ["auth", "password", "login", "credential", "\\b18\\b", "sasl", "refus", "fail", "SCRAM"]
    it.ask(
        "Q4",
        "a password that was changed",
        it.who("one", names[0]),
        [saying(called(names[0], it.hosts["one"].address), wordings)],
        [accusing(*names[1:])],
    )


def connect_too_short(it: Incident) -> None:
    """Of two applications far away one waits 150 ms for a connection, which takes longer: it never gets one."""
    place, app, good = it.place(), it.names.client(), it.names.client()
    for host in ("one", "two"):
        it.far(host, 130)
    fine = it.practice("two", "asks", good, place=place, driver="go", fill=40, pause_s=0.4, seconds=60)
    fine.wait_for_event("ready")
    it.work(
        "one", "writes", app, driver="java", client={"connectTimeoutMS": 150, "serverSelectionTimeoutMS": 2600}, count=9
    ).finish(90)
    it.ask(
        "Q4",
        "a time limit below the line's round trip",
        it.who("one", app),
        [saying(called(it.hosts["one"].address, app), [*UNHEARD, "SYN", "connect", "round trip", "far"])],
        [accusing(good, it.hosts["two"].address)],
        sides=("client", "network"),
    )


def proxy_header(it: Incident) -> None:
    """A proxy sends a line of the PROXY protocol first, which the server does not know: it closes each connection."""
    place, app = it.place(), it.names.client()
    good = beside(it, "two", place, fill=60)
    through = f"{it.hosts['three'].address}:{PROXY_PORT}"
    it.start("three", *python_command("header_proxy", through, it.endpoint)).wait_for_event("listening")
    it.habit("one", "asks", app, to=through, place=place, client=IMPATIENT, pause_s=0.5, seconds=28).finish(60)
    wordings = [*UNHEARD, "PROXY", "not MongoDB", "other protocol", "unknown", "not understood"]
    it.ask(
        "Q4",
        "the PROXY protocol to a server that does not speak it",
        {"address": it.hosts["three"].address},
        [saying(called(it.hosts["three"].address), wordings)],
        [accusing(good)],
    )


def thin_uplink(it: Incident) -> None:
    """One of two hosts sends no more than 300 kilobits a second: its inserts take long to come, not to be done."""
    place, app, good = it.place(), it.names.client(), it.names.client()
    options: dict[str, Any] = {"size": 60_000, "pause_s": 0.5}
    first = it.practice("two", "sends_large", good, place=place, seconds=40, **options)
    first.wait_for_event("ready")
    with slow_link.sends_slowly(it.hosts, "one", 300):
        it.practice("one", "sends_large", app, place=it.place(), seconds=30, **options).finish(60)
    first.finish(60)
    it.ask(
        "Q7",
        "a thin line upwards",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), [*NETWORK, "upload", "request", "arrive", "send"])],
        [accusing(good, it.endpoint)],
        sides=("network",),
    )


def halved_requests(it: Incident) -> None:
    """A proxy sends each request in two parts and waits 40 ms between them, as the first is acknowledged so late."""
    place, app = it.place(), it.names.client()
    good = beside(it, "two", place, fill=60)
    through = f"{it.hosts['three'].address}:{PROXY_PORT}"
    it.start("three", *python_command("halving_proxy", through, it.endpoint)).wait_for_event("listening")
    driver = it.rng.choice(EITHER)
    it.habit("one", "asks", app, to=through, place=place, driver=driver, pause_s=0.05, seconds=26).finish(60)
    wordings = [*NETWORK, "Nagle", "delayed", "acknowledg", "parts?", "pieces", "split", "40 ms", "request"]
    it.ask(
        "Q7",
        "a proxy that halves requests",
        it.who("three", app),
        [saying(called(it.hosts["three"].address, app), wordings)],
        [accusing(good)],
        sides=("client", "network"),
    )


LOGIN_NEEDED: tuple[Callable[[Incident], None], ...] = (password_rotated,)
ON_FERRETDB: tuple[Callable[[Incident], None], ...] = (descriptors_used_up,)
FAULTS: tuple[Callable[[Incident], None], ...] = (
    descriptors_used_up,
    load_balanced_wrong,
    plain_to_tls,
    password_rotated,
    connect_too_short,
    proxy_header,
    thin_uplink,
    halved_requests,
)
