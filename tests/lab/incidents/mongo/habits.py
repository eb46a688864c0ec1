"""Q9, whose content differs: one version of a program writes a field with another type than its peers."""

from __future__ import annotations

from collections.abc import Callable

from tests.lab.incidents.mongo.incident import Incident
from tests.lab.incidents.told import called, saying


def type_changed(it: Incident) -> None:
    """One of three instances runs a new version, which writes prices as text; the others write numbers."""
    place, names = it.place(), [it.names.client() for _ in range(3)]
    works = [
        it.habit(host, "prices", app, place=place, text=app == names[0], pause_s=0.3, seconds=20)
        for host, app in zip(("one", "two", "three"), names, strict=True)
    ]
    for one in works:
        one.finish(60)
    it.ask(
        "Q9",
        "a field whose type one application has changed",
        it.who("one", names[0]),
        [saying(called(names[0], it.hosts["one"].address), ["price"], ["type", "string", "text"])],
    )


FAULTS: tuple[Callable[[Incident], None], ...] = (type_changed,)
