"""One part that is slow or away: a member, a line, a neighbour's report, a proxy, the server for a while."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from tests.conftest import IMPORT_PATH
from tests.lab import firewall, slow_link
from tests.lab.clients import python_command
from tests.lab.incidents.mongo.faults import slow
from tests.lab.incidents.mongo.incident import LAG_S, Incident
from tests.lab.incidents.mongo.no_effect import EITHER, beside
from tests.lab.incidents.told import accusing, called, saying
from tests.lab.mongo_servers import PORT, SECOND_PORT, wait_for_words
from tests.lab.processes import Process

SLOW = ["slow", "longer", "latency", "took", "wait", "round trip"]
NETWORK = ["retransmi", "lost", "loss", "network", "line", "window", "slow", "longer", "unanswered", "no answer",
           "drop", "silent", "dead", "round trip", "packet"]  # fmt: skip
PROXY_PORT = 27019


def slow_secondary(it: Incident) -> None:
    """One of two members answers slowly; an application reads from it, and another reads from both as it comes."""
    place, app, other = it.place(), it.names.client(), it.names.client()
    first = it.habit("two", "asks", other, place=place, fill=60, pause_s=0.15, seconds=30)
    first.wait_for_event("ready")
    it.seconds(LAG_S + 0.2, LAG_S + 1)
    it.order(slow("find", it.rng.randrange(250, 500)), port=SECOND_PORT)
    away = {"readPreference": "secondaryPreferred"}
    it.habit(
        "one", "asks", app, place=place, client=away, pause_s=0.15, seconds=20, driver=it.rng.choice(EITHER)
    ).finish(60)
    first.finish(60)
    second = f"{it.address}:{SECOND_PORT}"
    it.ask(
        "Q7",
        "one slow member",
        {"server": second, "any": [it.who("one", app)]},
        [saying(called(app, it.hosts["one"].address, second), SLOW, [f"{SECOND_PORT}", "secondary", "member"])],
        [accusing(f"{it.address}:{PORT}", other)],
    )


def causal_waits(it: Incident) -> None:
    """A program reads from a late secondary what it wrote in the same session: the server lets each read wait."""
    place, app = it.place(), it.names.client()
    good = beside(it, "two", place, fill=60)
    it.seconds(LAG_S, LAG_S + 1)
    it.practice("one", "causal", app, place=place, pause_s=0.2, seconds=26).finish(60)
    it.ask(
        "Q7",
        "causal reads that wait for a late secondary",
        {"any": [it.who("one", app)], "server": f"{it.address}:{SECOND_PORT}"},
        [saying(called(app, it.hosts["one"].address, f"{it.address}:{SECOND_PORT}"), [*SLOW, "secondary", "lag"])],
        [accusing(good)],
    )


def heavy_report(it: Incident) -> None:
    """Four threads of a report sort a whole collection all the time; everybody's small queries wait."""
    place, app = it.place(), it.names.client()
    names = [it.names.client() for _ in range(2)]
    works = [
        it.practice(host, "asks", other, place=it.place(), driver="go", fill=50, pause_s=0.1, seconds=36)
        for host, other in zip(("two", "three"), names, strict=True)
    ]
    works[0].wait_for_event("ready")
    it.habit("one", "asks", app, place=place, fill=9000, size=300, seconds=0.5).finish(60)
    it.seconds(6, 8)
    many = [{"aggregate": place.partition(".")[2], "cursor": {}, "pipeline": [{"$sort": {"text": 1, "key": -1}},
             {"$group": {"_id": "$key", "n": {"$sum": 1}}}]}]  # fmt: skip
    reports = [it.practice("one", "commands", app, place=place, commands=many, seconds=14) for _ in range(4)]
    for one in (*reports, *works):
        one.finish(90)
    it.ask(
        "Q7",
        "a report that takes the server's time",
        it.who("one", app),
        [saying(called(app, it.hosts["one"].address), ["aggregate"], SLOW)],
        [accusing(*names)],
    )


def dump_fills_line(it: Incident) -> None:
    """A dump reads a whole collection over a line that has no more to give; small answers of others wait behind it."""
    place, app = it.place(), it.names.client()
    names = [it.names.client() for _ in range(2)]
    works = [
        it.habit(host, "asks", other, place=it.place(), fill=50, pause_s=0.15, seconds=34, driver=it.rng.choice(EITHER))
        for host, other in zip(("two", "three"), names, strict=True)
    ]
    works[1].wait_for_event("ready")
    it.practice(
        "one", "dumps", it.names.client(), place=place, fill=1500, size=2000, noise=True, batch=400, seconds=0.1
    ).finish(60)
    with slow_link.sends_slowly(it.hosts, "server", 2500):
        it.seconds(6, 8)
        it.practice("site", "dumps", app, place=place, batch=400, seconds=14).finish(60)
        for one in works:
            one.finish(60)
    it.ask(
        "Q7",
        "a dump that fills the line",
        it.who("site", app),
        [
            saying(
                called(app, it.hosts["site"].address),
                ["bytes", "MB", "large", "line", "window", "find", "slow", "longer"],
            )
        ],
        [accusing(*names)],
    )


def thin_line(it: Incident) -> None:
    """One of three hosts gets no more than 20 kilobytes a second; its answers are as large as those of the others."""
    place, names = it.place(), [it.names.client() for _ in range(3)]
    driver = it.rng.choice(EITHER)
    first = it.habit("two", "asks", names[1], place=place, fill=60, size=24_000, noise=True, pause_s=0.2, seconds=26)
    first.wait_for_event("ready")
    with slow_link.gets_slowly(it.hosts, "one", 160):
        for host, app in (("one", names[0]), ("three", names[2])):
            it.habit(host, "asks", app, place=place, pause_s=0.2, seconds=22, driver=driver)
        first.finish(60)
    it.ask(
        "Q7",
        "a thin line",
        it.who("one", names[0]),
        [saying(called(names[0], it.hosts["one"].address), NETWORK)],
        [accusing(*names[1:])],
        sides=("network",),
    )


def lossy_host(it: Incident) -> None:
    """One host loses each tenth packet; its commands take long now and then."""
    place, names = it.place(), [it.names.client() for _ in range(3)]
    first = it.habit("two", "asks", names[1], place=place, fill=60, pause_s=0.1, seconds=34)
    first.wait_for_event("ready")
    with firewall.dropping(it.hosts["server"], it.hosts["one"].address, share=it.rng.uniform(0.09, 0.14)):
        for host, app in (("one", names[0]), ("three", names[2])):
            it.practice(host, "asks", app, place=place, driver="go", pause_s=0.1, seconds=28)
        first.finish(60)
    it.ask(
        "Q7",
        "a host that loses packets",
        it.who("one", names[0]),
        [saying(called(names[0], it.hosts["one"].address), NETWORK)],
        [accusing(*names[1:])],
        sides=("network",),
    )


def host_cut_off(it: Incident) -> None:
    """A new rule of a firewall drops all of one busy host; its connections and its new ones get no answer any more."""
    place, names = it.place(), [it.names.client() for _ in range(2)]
    client = {"socketTimeoutMS": 3000, "connectTimeoutMS": 3000, "serverSelectionTimeoutMS": 4000}
    first = it.habit("two", "asks", names[1], place=place, fill=60, pause_s=0.2, seconds=34)
    first.wait_for_event("ready")
    it.habit("one", "asks", names[0], place=place, client=client, pause_s=0.2, seconds=60).wait_for_event("ready")
    it.seconds(6, 9)
    with firewall.dropping(it.hosts["server"], it.hosts["one"].address, share=0.99999):
        first.finish(60)
    it.ask(
        "Q6",
        "a host that a firewall cut off",
        it.who("one", names[0]),
        [saying(called(names[0], it.hosts["one"].address), NETWORK)],
        [accusing(names[1])],
        sides=("network",),
    )


def idle_proxy(it: Incident) -> None:
    """A proxy closes connections after 3 s of rest; an application asks each 5 s and finds its connection gone."""
    place, app = it.place(), it.names.client()
    good = beside(it, "two", place, fill=60)
    through = f"{it.address}:{PROXY_PORT}"
    it.start("server", *python_command("idle_proxy", through, it.endpoint, "3")).wait_for_event("listening")
    client = {"retryReads": "false", "heartbeatFrequencyMS": "60000"}
    it.habit("one", "asks", app, to=through, place=place, client=client, pause_s=5.0, seconds=45).finish(90)
    it.ask(
        "Q6",
        "a proxy that closes idle connections",
        {"server": through, "any": [it.who("one", app)]},
        [
            saying(
                called(app, it.hosts["one"].address, through),
                ["clos", "FIN", "reset", "RST", "end", "new connection", "idle"],
            )
        ],
        [accusing(good)],
    )


def server_restarts(it: Incident) -> None:
    """The server dies and comes back some seconds later, three times; its clients are refused meanwhile."""
    assert it.server is not None
    names = [it.names.client() for _ in range(3)]
    works = [
        it.practice(host, work, app, driver=driver, concern={}, pause_s=0.2, seconds=42)
        for host, app, driver, work in zip(
            ("one", "two", "three"), names, ("node", "go", "pymongo"), ("inserts", "adds", "concerned"), strict=True
        )
    ]
    it.seconds(6, 8)
    command = [one.decode() for one in Path(f"/proc/{it.server.pid}/cmdline").read_bytes().split(b"\0")[:-1]]
    for number in range(3):
        it.server.kill()
        it.seconds(2, 4)
        program = it.hosts["server"].command(*command)
        it.server = Process(f"server-again-{number}", program, it.directory, {"PYTHONPATH": IMPORT_PATH})
        it.stack.callback(it.server.stop)
        wait_for_words(it.server, it.server.stdout_path, "listening")
        it.seconds(4, 6)
    for one in works:
        one.finish(90)
    time.sleep(1)
    it.ask(
        "Q6",
        "a server that dies and comes back",
        {"server": it.endpoint},
        [
            saying(
                called(it.endpoint, it.address), ["clos", "refus", "RST", "reset", "restart", "end", "gone", "process"]
            )
        ],
    )
    it.truth["cluster_wide"] = True


ON_FERRETDB: tuple[Callable[[Incident], None], ...] = (heavy_report,)
FAULTS: tuple[Callable[[Incident], None], ...] = (
    slow_secondary,
    causal_waits,
    heavy_report,
    dump_fills_line,
    thin_line,
    lossy_host,
    host_cut_off,
    idle_proxy,
    server_restarts,
)
