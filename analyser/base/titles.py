"""Names as the titles of findings have them: short, so that a title fits a line.

In: names from the wire, None where they are not known. Out: text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from wirewitness.analyser.base.bounded import both_ends
from wirewitness.analyser.base.words import printable

# Characters of one name, of which the last ones tell names of one kind apart; of several; of a name and its address.
_LONGEST, _END, _ROOM, _WHO = 32, 11, 32, 44


def short(name: object) -> str:
    """The name, its middle left out where it is long; `?` where it is not known."""
    return printable(both_ends("?" if name is None else str(name), _LONGEST, _END))


def client_title(row: Mapping[str, Any]) -> str:
    """The client of a row: by its client id, or by its address where that is not known."""
    return short(row["client_id"] or row["client_address"] or "unknown client")


def who_title(name: str | None, address: str | None) -> str:
    """`shop-1 at 10.0.0.3`; the one that is known, and the name alone where both are too long."""
    parts = [short(part) for part in (name, address) if part] or ["unknown client"]
    text = " at ".join(parts)
    return text if len(text) <= _WHO else parts[0]


def first_of(names: Iterable[object]) -> str:
    """`orders-0, orders-1 and 4 more`: as many as there is room for, each once."""
    shown = list(dict.fromkeys(map(short, names)))
    # With a comma and a blank each, no more than half of them have room, however many names there are.
    most = next((n for n in range(min(len(shown), _ROOM), 1, -1) if len(", ".join(shown[:n])) <= _ROOM), 1)
    rest = f" and {len(shown) - most} more" if len(shown) > most else ""
    return ", ".join(shown[:most]) + rest
