"""Links of a chain of causes, and the chain. In: nothing. Out: values; `walk.py` makes chains of them.

A link is one thing that happened. What it says stands in rows of tables, which it names; where it says more than they
do, it is an assumption with its words and how sure it is.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

Sure = Literal["fact", "high", "medium", "low"]
_RANKS: Mapping[Sure, int] = {"fact": 0, "high": 1, "medium": 2, "low": 3}


class Row(NamedTuple):
    """Rows of a table that a link rests on. where: a DuckDB SQL condition, as `wirewitness table --where` takes it."""

    table: str
    where: str


class Place(NamedTuple):
    """Where a person finds it: a packet of a file, or a line of a request log, and the message that it ends."""

    file: str | None
    packet: int | None
    message_id: str | None = None
    line: int | None = None


class Part(NamedTuple):
    """A piece of the time that an exchange took. ns: how long; how: what tells it; sure: as of a link."""

    name: str
    ns: int
    how: str
    sure: Sure = "fact"


@dataclass(frozen=True, slots=True)
class Link:
    """One thing that happened, and what supports it.

    kind: names the function that looks for its causes (`kinds.py`). key: what makes it the same link again.
    what: a sentence without its time. short: the same in a few words, for one line of a report.
    at_ns, until_ns: Unix ns; None where it has none. assumption: what it says beyond its rows; empty for a fact.
    facts: what its causes are looked for with. parts: of an exchange, where its time went.
    """

    kind: str
    key: tuple[Hashable, ...]
    what: str
    short: str = ""
    at_ns: int | None = None
    until_ns: int | None = None
    places: tuple[Place, ...] = ()
    rows: tuple[Row, ...] = ()
    sure: Sure = "fact"
    assumption: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict, hash=False)
    parts: tuple[Part, ...] = ()

    @property
    def rank(self) -> int:
        """Facts first, then the surest."""
        return _RANKS[self.sure]


class Causes(NamedTuple):
    """What a link's function found. links: the likeliest first. end: why there are none, or what nobody knows beyond.

    more: candidates that are not among them.
    """

    links: tuple[Link, ...] = ()
    end: str = ""
    more: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """A link with its causes. end: why the chain ends here. left_out: causes that are not told."""

    link: Link
    causes: tuple[Step, ...] = ()
    end: str = ""
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Chain:
    """What was asked, what there is to say first, and the causes. healthy: there is nothing to explain.

    beside: findings about the same thing, as (code, finding_id).
    """

    subject: str
    verdict: str
    steps: tuple[Step, ...]
    healthy: bool = False
    beside: tuple[tuple[str, str], ...] = ()
    remarks: tuple[str, ...] = ()


class NoSubject(LookupError):
    """What was asked for is not in the tables; the text says so and names what is near."""
