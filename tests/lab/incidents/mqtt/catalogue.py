"""All incidents of MQTT by name, and what each wants of its broker.

In: a fault's module. Out: Fault values; `fault` registers a function of an Incident under its own name.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import NamedTuple

from tests.lab.incidents.mqtt.brokers import Wanted
from tests.lab.incidents.mqtt.incident import Incident

FAULTS_IN = (
    "subscriptions", "sessions", "delivery", "publishers", "network", "restarts", "healthy",
    # by question
    "stale_values", "one_thing", "reached_nobody", "refused", "repeated", "ended", "waits", "growing", "habits",
    "everyday_work",
    # other mechanisms
    "logins", "keep_alives", "unreached", "workers", "device_habits", "paths", "went_back", "bridges",
    "moments", "odd_and_healthy", "misfits", "never_comes", "front_doors", "by_and_by", "fine_but_odd",
    # with servers and their rules
    "server_rules", "absent", "programs",
    # with programs that have a mistake of their own
    "shut_out", "trades",
)  # fmt: skip
Run = Callable[[Incident], None]


class Fault(NamedTuple):
    """An incident that can be made."""

    name: str
    run: Run
    broker: Wanted

    @property
    def about(self) -> str:
        """What happens."""
        return (self.run.__doc__ or "").strip().splitlines()[0]


FAULTS: dict[str, Fault] = {}


def fault(broker: Wanted | None = None) -> Callable[[Run], Run]:
    """Register a function as an incident."""

    def register(run: Run) -> Run:
        FAULTS[run.__name__] = Fault(run.__name__, run, broker or Wanted())
        return run

    return register


def all_faults() -> dict[str, Fault]:
    """Return every incident."""
    for name in FAULTS_IN:
        importlib.import_module(f"tests.lab.incidents.mqtt.{name}")
    return FAULTS
