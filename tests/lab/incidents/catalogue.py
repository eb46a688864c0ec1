"""All incidents by name, and what each needs.

In: a fault's module. Out: Fault values; `fault` registers a function of an Incident under its own name.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import NamedTuple

from tests.lab.incidents.incident import Incident

FAULTS_IN = (
    *("members", "offsets", "commits", "healthy", "producers", "entry", "network", "shares"),
    *("stands_still", "refusals", "repeats", "ended", "waits", "goes_back", "content", "everyday"),
    *("wasted", "set_wrong", "paths", "silence", "doubles", "nodes", "two_clusters", "odd_but_well"),
    *("formats", "habits", "in_brokers", "doors", "narrow", "as_planned"),
    *("own_code", "cut_off", "at_the_limit", "in_order", "lost_on_restart"),
    *("topics_that_come", "after_maintenance", "new_ways", "right_after_all"),
)  # fmt: skip


class Fault(NamedTuple):
    """An incident that can be made."""

    name: str
    run: Callable[[Incident], None]
    world: str  # of world.KINDS
    libraries: tuple[str, ...]  # empty: any, or none is chosen
    backdrop_restart: bool

    @property
    def about(self) -> str:
        """What happens."""
        return (self.run.__doc__ or "").strip().splitlines()[0]


FAULTS: dict[str, Fault] = {}


def fault(
    *, world: str = "single", libraries: tuple[str, ...] = (), backdrop_restart: bool = True
) -> Callable[[Callable[[Incident], None]], Callable[[Incident], None]]:
    """Register a function as an incident."""

    def register(run: Callable[[Incident], None]) -> Callable[[Incident], None]:
        FAULTS[run.__name__] = Fault(run.__name__, run, world, libraries, backdrop_restart)
        return run

    return register


def all_faults() -> dict[str, Fault]:
    """Return every incident."""
    for name in FAULTS_IN:
        importlib.import_module(f"tests.lab.incidents.faults.{name}")
    return FAULTS
