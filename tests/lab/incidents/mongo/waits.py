"""Q7, who waits for whom: applications and members that are far away."""

from __future__ import annotations

from collections.abc import Callable

from tests.lab.incidents.mongo.incident import Incident
from tests.lab.incidents.told import accusing, called, saying
from tests.lab.mongo_servers import PORT, SECOND_PORT

SLOWER = ["slow", "longer", "latency", "round trip", "\\bfar\\b"]


def far_application(it: Incident) -> None:
    """One of four applications with the same query is far away: the line is slow, the server is not."""
    place, names = it.place(), [it.names.client() for _ in range(4)]
    it.far("one", 90)
    first = it.habit("two", "asks", names[1], place=place, fill=60, pause_s=0.1, seconds=20)
    first.wait_for_event("ready")
    for host, app in zip(("one", "three", "site"), (names[0], *names[2:]), strict=True):
        it.habit(host, "asks", app, place=place, pause_s=0.1, seconds=20)
    first.finish(60)
    it.ask(
        "Q7",
        "an application on a long line",
        it.who("one", names[0]),
        [saying(called(names[0], it.hosts["one"].address), SLOWER)],
        [accusing(*names[1:])],
        sides=("network",),
    )


def far_secondary(it: Incident) -> None:
    """An application reads from a secondary in another region; its sister reads the same from the primary."""
    place, app, sister = it.place(), it.names.client(), it.names.client()
    it.far("server", 70, SECOND_PORT)
    first = it.habit("two", "asks", sister, place=place, fill=60, pause_s=0.1, seconds=24)
    first.wait_for_event("ready")
    it.seconds(1.6, 2)
    away = {"readPreference": "secondary"}
    it.habit("one", "asks", app, place=place, client=away, pause_s=0.1, seconds=18).finish(60)
    first.finish(60)
    it.ask(
        "Q7",
        "reads from a far secondary",
        it.who("one", app),
        [
            saying(
                called(app, it.hosts["one"].address, f"{it.address}:{SECOND_PORT}"),
                SLOWER,
                ["secondary", f"{SECOND_PORT}"],
            )
        ],
        [accusing(f"{it.address}:{PORT}")],
    )


FAULTS: tuple[Callable[[Incident], None], ...] = (far_application, far_secondary)
