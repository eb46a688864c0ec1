"""What functions that look for causes need: rows, and words for times and clients. In: a source. Out: an `Asking`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from wirewitness.analyser.base.words import printable
from wirewitness.analyser.tables.queries import literal
from wirewitness.reports.base.questions.causes import Finding, findings
from wirewitness.reports.base.questions.source import Source
from wirewitness.reports.base.why.model import Place, Row

if TYPE_CHECKING:
    from wirewitness.reports.base.why.packets import Around

# Rows of commits with their times, to which a condition is added.
COMMITS_OF = """
    select * replace (coalesce(topic, topic_id) as topic), epoch_ns(ts) as sent_ns,
           epoch_ns(coalesce(ts_response, ts)) as at_ns from kafka_offset_commits"""
# Names come from the wire, and a chain has many of them.
_LONGEST_NAME = 120


@dataclass(slots=True)
class Asking:
    """The tables, as they were up to a moment.

    until_ns: later rows do not count, Unix ns; None for the end. packets: reads those of an exchange (a row) again;
    None where they are not at hand. brief: for one line of a report, so nothing is counted in large tables. Answers are
    kept: many links ask for the same rows.
    """

    source: Source
    until_ns: int | None = None
    packets: Callable[[Mapping[str, Any]], Around] | None = None
    brief: bool = False
    _kept: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    _findings: list[Finding] | None = None
    _commits: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def rows(self, query: str) -> list[dict[str, Any]]:
        """Rows of a SELECT, whatever the options select; without its columns of times, which are asked for as ns."""
        if query not in self._kept:
            self._kept[query] = _plain(self.source, query)
        return self._kept[query]

    def one(self, query: str) -> dict[str, Any] | None:
        """The first row, or None."""
        return next(iter(self.rows(query)), None)

    def findings(self) -> list[Finding]:
        """All findings."""
        if self._findings is None:
            self._findings = findings(self.source)
        return self._findings

    def commits(self, ids: Iterable[str]) -> list[dict[str, Any]]:
        """Rows of commits in these exchanges; asked for once, however often they are wanted."""
        wanted = list(dict.fromkeys(ids))
        missing = [one for one in wanted if one not in self._commits]
        if missing:
            self._commits |= {one: [] for one in missing}
            listed = ", ".join(map(literal, missing))
            for found in _plain(self.source, f"{COMMITS_OF} where exchange_id in ({listed})"):
                self._commits[found["exchange_id"]].append(found)
        return [found for one in wanted for found in self._commits[one]]

    def until(self, moment: str) -> str:
        """An SQL condition: `moment`, in Unix ns, counts."""
        return "true" if self.until_ns is None else f"{moment} <= {int(self.until_ns)}"


def _plain(source: Source, query: str) -> list[dict[str, Any]]:
    """Times of nanoseconds as Python values would import pandas, which no report needs."""
    table = source.sql(query)
    kept = [place for place, field_ in enumerate(table.schema) if not pa.types.is_timestamp(field_.type)]
    found: list[dict[str, Any]] = table.select(kept).to_pylist()
    return found


def name(value: object) -> str:
    """A name from the wire, fit for a sentence."""
    return "?" if value is None else printable(str(value), _LONGEST_NAME)


def who(client_id: object, address: object) -> str:
    """`ledger-a@10.77.0.12`, as reports name clients."""
    if client_id is None and address is None:
        return "a client"
    return f"{name(client_id) if client_id else '(no client id)'}@{name(address)}"


def known(value: object) -> str:
    """SQL that a column is like this value; null for None."""
    return "is null" if value is None else f"= {value if isinstance(value, int) else literal(value)}"


def where(**values: object) -> str:
    """An SQL condition: all these columns have these values."""
    return " and ".join(f"{column} {known(value)}" for column, value in values.items())


def row(table: str, **values: object) -> Row:
    """The rows of a table with these values."""
    return Row(table, where(**values))


def place(found: Mapping[str, Any], packet: str = "request_packet", message: str = "exchange_id") -> Place:
    """Where a row's request is."""
    file = found.get("file") or found.get("request_file")
    return Place(file, found.get(packet), found.get(message), found.get("line"))


def by_id(message_id: object) -> Place:
    """A message by its id; its packet is looked up when the chain is there (`evidence_packets.py`)."""
    return Place(None, None, None if message_id is None else str(message_id))
