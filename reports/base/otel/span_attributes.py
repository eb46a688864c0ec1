"""What a protocol tells for the spans of its exchanges."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from wirewitness.dissectors.core import opaque

Row = Mapping[str, Any]
# Names that the conventions do not have.
OWN = "wirewitness."


@dataclass(frozen=True, slots=True)
class Told:
    """One protocol.

    name: ours. attributes: a row of exchanges, with or without `columns`, -> attributes; None is left out.
    tables: own ones that are read. subqueries: what `joins` need (`name as (select ...)`). columns: name -> value, of
    `joins` to the exchange e; two protocols may use one name. codes_by_version: error codes mean something else in each
    version of the protocol. no_errors: operation and code of answers that belong to the ordinary course.
    """

    name: str
    attributes: Callable[[Row], dict[str, Any]]
    tables: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    joins: str = ""
    subqueries: tuple[str, ...] = ()
    codes_by_version: bool = False
    no_errors: frozenset[tuple[str, int]] = frozenset()


# A traceparent of W3C Trace Context among JSON pairs of names and values, as a regular expression of DuckDB.
TRACEPARENT = rf'\["traceparent",\s*"({opaque.TRACEPARENT})'
# So many different ones are linked to, as the SDK limits it.
MOST_LINKS = 128
