"""What functions that look for causes need: rows, and words for times and clients. In: a source. Out: an `Asking`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from wirewitness.analyser.base.severity import severity_rank
from wirewitness.analyser.base.times import moment_text, seconds_text
from wirewitness.analyser.base.words import count, printable
from wirewitness.analyser.tables.queries import literal
from wirewitness.reports.base.formats.words import first_sentence, size
from wirewitness.reports.base.questions.causes import Finding, findings
from wirewitness.reports.base.questions.source import Source
from wirewitness.reports.base.why.model import Link, Place, Row

if TYPE_CHECKING:
    from wirewitness.reports.base.why.packets import Around

# Rows of commits with their times, to which a condition is added.
COMMITS_OF = """
    select * replace (coalesce(topic, topic_id) as topic), epoch_ns(ts) as sent_ns,
           epoch_ns(coalesce(ts_response, ts)) as at_ns from kafka_offset_commits"""
# Names come from the wire, and a chain has many of them.
_LONGEST_NAME = 120
FINDING = "finding"
_LONGEST_SENTENCE = 400
# So many findings about the same are told as causes, the worst first.
_MOST_RELATED = 3
_COVERED = """
    select count(*) as n, epoch_ns(min(ts_first)) as first_ns, epoch_ns(max(ts_last)) as last_ns,
           coalesce(sum(gap_bytes), 0) as missing_bytes, coalesce(sum(truncated_packets), 0) as cut,
           count(*) filter ((bytes_to_server > 0) <> (bytes_to_client > 0)) as one_sided
    from flows where flow_id in ({flows}) and duplicate_of is null"""


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


def finding_link(found: Finding) -> Link:
    """A finding as a link."""
    places = tuple(
        Place(one.get("file"), one.get("packet"), one.get("message_id"), one.get("line")) for one in found.evidence[:6]
    )
    sure: Any = "fact" if found.confidence == "high" else found.confidence
    words = "" if sure == "fact" else f"{found.code} decides so with {found.confidence} confidence"
    return Link(FINDING, (found.finding_id,), f"{found.code}: {first_sentence(found.sentence, _LONGEST_SENTENCE)}",
                found.title, found.first_ns, found.last_ns, places,
                (row("findings", finding_id=found.finding_id),), sure, words, {"finding": found})  # fmt: skip


def accusing(ask: Asking, about: Callable[[Finding], bool]) -> list[Finding]:
    """Findings above info about something, the worst first."""
    found = [one for one in ask.findings() if severity_rank(one.severity) > severity_rank("info") and about(one)]
    return sorted(found, key=lambda one: -severity_rank(one.severity))


def related(
    ask: Asking, from_ns: int | None, to_ns: int | None, about: Callable[[Finding], bool], but: str | None = None
) -> list[Link]:
    """Findings about the same subject that were the case in that time, as links. but: the id of one that is told."""
    found = [one for one in accusing(ask, about) if one.finding_id != but and _overlaps(one, from_ns, to_ns)]
    return [finding_link(one) for one in found[:_MOST_RELATED]]


def _overlaps(found: Finding, from_ns: int | None, to_ns: int | None) -> bool:
    if from_ns is None or found.first_ns is None or found.last_ns is None:
        return False
    return found.first_ns <= max(from_ns, to_ns or from_ns) and found.last_ns >= from_ns


def names_client(found: Finding, client_id: object, address: object) -> bool:
    """Whether the finding names this client, by client id and address."""
    return address is not None and any(
        one.get("address") == address and one.get("client_id") == client_id for one in found.everybody
    )


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of the capture a conclusion rests on. text: a sentence; whole: both directions of all connections, and
    no byte missing."""

    text: str
    whole: bool


def coverage(ask: Asking, flows: str) -> Coverage:
    """What was captured of some connections. flows: a SELECT of their ids."""
    found = ask.rows(_COVERED.format(flows=flows))[0]
    if not found["n"]:
        return Coverage("no connection of it is in the capture", False)
    until_ns = found["last_ns"] if ask.until_ns is None else min(ask.until_ns, found["last_ns"])
    lasted = seconds_text(max(until_ns - found["first_ns"], 0))
    span = f"{moment_text(found['first_ns'])} to {moment_text(until_ns)} ({lasted})"
    seen = f"{found['one_sided']:,} of them seen in one direction" if found["one_sided"] else "both directions seen"
    lacks = [size(found["missing_bytes"]) + " missing"] if found["missing_bytes"] else []
    lacks += [f"{count(found['cut'], 'packet')} cut short"] if found["cut"] else []
    lost = ", ".join(lacks) or "no bytes missing"
    return Coverage(f"{span}, {count(found['n'], 'connection')}: {seen}, {lost}", not (found["one_sided"] or lacks))
