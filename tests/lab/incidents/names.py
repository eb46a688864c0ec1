"""Random names, as teams give them to groups, topics and clients."""

from __future__ import annotations

import random

_THINGS = (
    "orders", "payments", "invoices", "shipments", "clicks", "carts", "prices", "stock", "returns", "sessions",
    "meters", "tickets", "refunds", "trades", "quotes", "parcels", "alerts", "visits", "claims", "bookings",
)  # fmt: skip
_WORKS = (
    "index", "audit", "report", "archive", "enrich", "notify", "settle", "score", "export", "sync", "match",
    "route", "bill",
)  # fmt: skip
_PLACES = ("eu", "us", "apac", "prod", "blue", "green", "core", "edge")


def _metric(name: str) -> str:
    """What names of topics may not share: a broker makes no a.b where there is an a_b."""
    return name.replace(".", "_")


class Names:
    """Gives names that it has not given before."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._given: set[str] = set()

    def _new(self, *parts: str) -> str:
        name = self._rng.choice((".", "-", "-", "_")).join(parts)
        while _metric(name) in self._given:
            name = f"{name.rstrip('0123456789')}{self._rng.randrange(2, 99)}"
        self._given.add(_metric(name))
        return name

    def topic(self) -> str:
        """Return a topic's name."""
        return self._new(self._rng.choice(_PLACES), self._rng.choice(_THINGS))

    def group(self) -> str:
        """Return a group's name."""
        return self._new(self._rng.choice(_THINGS), self._rng.choice(_WORKS))

    def client(self) -> str:
        """Return a client id."""
        return self._new(self._rng.choice(_WORKS), f"{self._rng.randrange(16**4):04x}")
