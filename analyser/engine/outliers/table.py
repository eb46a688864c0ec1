"""The rows of `stands_out`: at most ten, the surest first, without what findings tell.

In: a connection with views of finished tables and findings; populations. Out: the table. Neutral by nature: a line has
a value, what is usual, and packets to look at, no severity and no advice.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from wirewitness.analyser.base.words import printable
from wirewitness.analyser.engine.facts.topics import holding
from wirewitness.analyser.engine.outliers.comparison import Candidate, Row, candidates
from wirewitness.analyser.engine.outliers.populations import Population
from wirewitness.analyser.engine.rules.findings import subject_text
from wirewitness.analyser.tables.tables import arrow_schema

if TYPE_CHECKING:
    import duckdb

MOST_LINES = 10
# Lines of one measure: ten partitions that lag are one thing.
_MOST_OF_MEASURE = 2
# Lines about subjects that findings name for something else, behind all others: their cause may be among them.
_MOST_OF_NAMED = 3
# Values of one measure that are looked up in findings.
_MOST_TRIED = 20
# Findings that are read for what they tell; more are of one kind each.
_MOST_FINDINGS = 2_000
_LONGEST_NAME = 48
_LONGEST_SENTENCE = 199
# What is measured, and not counted.
_MEASURED = ("", "ms", "s", "bytes", "kB", "%")
# Names of columns as subjects of findings have them.
_KEYS = {"client_id": "client", "client_address": "address", "group_id": "group", "server_address": "server"}
_WITHOUT_NAME = frozenset({"operation", "partition", "acks", "server_port", "command", "protocol"})


def lines(
    con: duckdb.DuckDBPyConnection, populations: Iterable[Population], question_of: Callable[[str], str]
) -> pa.Table:
    """The table. question_of: the question that a rule asks, by its code."""
    found = [one for population in _asked(con, populations) for one in _of(con, population)]
    found.sort(key=lambda one: (-one.score, one.measure.name, _subject(one)))
    kept = _without_told(found, Told(con, question_of)) if found else []
    places = _places(con, {str(one) for each in kept for one in each.row["ids"] or ()})
    rows = [{"rank": rank, **_row(one, places)} for rank, one in enumerate(kept, 1)]
    schema = arrow_schema("stands_out")
    columns = {name: pa.array([row[name] for row in rows], schema.field(name).type) for name in schema.names}
    return pa.table(columns, schema=schema)


def _asked(con: duckdb.DuckDBPyConnection, populations: Iterable[Population]) -> list[Population]:
    """Those in which a value may lie apart, in their order; each table is asked once."""
    every = [*populations]
    of_table: dict[str, set[str]] = {}
    for one in every:
        of_table.setdefault(one.of, set()).add(one.asks)
    held = {table: holding(con, table, asks) for table, asks in of_table.items()}
    return [one for one in every if one.asks in held[one.of]]


def _of(con: duckdb.DuckDBPyConnection, population: Population) -> Iterator[Candidate]:
    read = con.execute(population.query())
    names = [column[0] for column in read.description or ()]
    yield from candidates(population, [dict(zip(names, row, strict=True)) for row in read.fetchall()])


def _without_told(found: Sequence[Candidate], told: Told) -> list[Candidate]:
    """The first ones that no finding tells; what is about the same subject, or shows in the same packets, once."""
    kept: list[Candidate] = []
    of_named: list[Candidate] = []
    subjects: set[tuple[str, ...]] = set()
    shown: set[frozenset[str]] = set()
    of_measure: Counter[str] = Counter()
    tried: Counter[str] = Counter()
    for one in found:
        names, ids = tuple(_names(one)), frozenset(one.row["ids"] or ())
        is_enough = of_measure[one.measure.name] >= _MOST_OF_MEASURE or tried[one.measure.name] >= _MOST_TRIED
        if names in subjects or ids in shown or is_enough:
            continue
        tried[one.measure.name] += 1
        questions = told.questions(names)
        if one.measure.question in questions or told.shows(ids):
            subjects.add(names)
            shown.add(ids)
        elif questions and len(of_named) == _MOST_OF_NAMED:
            continue
        else:
            subjects.add(names)
            shown.add(ids)
            of_measure[one.measure.name] += 1
            (of_named if questions else kept).append(one)
            if len(kept) == MOST_LINES:
                break
    return [*kept, *of_named][:MOST_LINES]


class Told:
    """What findings tell: which questions they answer of the names in them, and the messages that prove them."""

    def __init__(self, con: duckdb.DuckDBPyConnection, question_of: Callable[[str], str]) -> None:
        rows = con.execute(
            "select code, subject, title, sentence, evidence from findings "
            f"order by incident_order, code, subject, finding_id limit {_MOST_FINDINGS}"
        ).fetchall()
        self._texts = [(question_of(code), " ".join(map(str, texts))) for code, *texts, _ in rows]
        self._places: dict[str, set[int]] = {}
        self._messages = {
            id_ for *_, evidence in rows for id_ in re.findall(r'"message_id": ?"([^"]+)"', str(evidence))
        }

    def questions(self, names: Sequence[str]) -> set[str]:
        """Those of findings that name all of these."""
        if not names:
            return set()
        every = set.intersection(*map(self._naming, names))
        return {self._texts[place][0] for place in every}

    def _naming(self, name: str) -> set[int]:
        """Where a finding names this; each name is looked for once."""
        if name not in self._places:
            pattern = _named(name)
            self._places[name] = {
                place for place, (_, text) in enumerate(self._texts) if name in text and pattern.search(text)
            }
        return self._places[name]

    def shows(self, ids: Iterable[str]) -> bool:
        """Is one of these messages the evidence of a finding?"""
        return not self._messages.isdisjoint(ids)


def _named(name: str) -> re.Pattern[str]:
    """The name as a word of its own; where it is a word of English, too, as a name: `client producer`, `group=test`."""
    before = r"(?:=|\b(?i:client|group|topic|user|id) )" if name.isalpha() else r"(?<![\w.])"
    return re.compile(rf"{before}{re.escape(name)}(?![\w]|\.\w)")


def _names(one: Candidate) -> Iterator[str]:
    """What a finding about the same would name."""
    row = one.row
    for name in one.population.subject:
        value = row[name]
        if name == "topic" and row.get("partition") is not None:
            yield f"{value}-{row['partition']}"
        elif name == "client_address" and row.get("client_id"):
            continue  # the id is what findings name first
        elif name not in _WITHOUT_NAME and value is not None:
            yield str(value)


def _subject(one: Candidate) -> str:
    return subject_text(**{_KEYS.get(name, name): one.row[name] for name in one.population.subject})


def _row(one: Candidate, places: Mapping[str, Mapping[str, Any]]) -> Row:
    evidence = sorted(
        (places[str(id_)] for id_ in one.row["ids"] or () if str(id_) in places),
        key=lambda place: (place["file"] or "", place["packet"] or 0, place["message_id"] or ""),
    )
    return {
        "measure": one.measure.name,
        "subject": _subject(one),
        "protocol": one.population.protocol or one.row.get("protocol"),
        "value": one.value,
        "usual": one.usual,
        "others": one.others,
        "unit": one.measure.unit or None,
        "score": one.score,
        "sentence": sentence(one),
        "ts_first": one.row["first_ns"],
        "ts_last": one.row["last_ns"],
        "evidence": json.dumps(evidence),
    }


def sentence(one: Candidate) -> str:
    """The line in words."""
    row, unit = one.row, one.measure.unit
    shown = {name: _shown(value) for name, value in row.items() if name not in ("ids", "value", "usual")}
    shown["who"] = _who(row)
    shown["where"] = f"{shown.get('topic')}-{shown.get('partition')}"
    text = one.measure.text.format(value=amount(one.value, unit), usual=amount(one.usual, unit), **shown)
    if one.others:
        text += f"; usual {amount(one.usual, unit)} ({one.others} other{'s' * (one.others > 1)})"
    if not one.measure.text.startswith("{") or one.measure.text.startswith("{who}"):  # names stay as they are
        text = f"{text[:1].upper()}{text[1:]}"
    return printable(f"{text}.", _LONGEST_SENTENCE)


def _shown(value: object) -> str:
    if isinstance(value, float):
        return amount(value, "")
    return "?" if value is None else printable(str(value), _LONGEST_NAME)


def _who(row: Row) -> str:
    name, address = row.get("client_id"), row.get("client_address")
    if name is None:
        return f"client at {_shown(address)}"
    return f"client {_shown(name)}" + (f" at {_shown(address)}" if address is not None else "")


def amount(value: float, unit: str) -> str:
    """`1.2 s`, `340 ms`, `1,200 records`, `34 kB`, `0.25`."""
    if unit == "ms" and abs(value) >= 1_000:
        value, unit = value / 1_000, "s"
    if unit == "bytes" and abs(value) >= 10_000:
        value, unit = value / 1_000, "kB"
    is_whole = value == int(value) or abs(value) >= 100 or unit not in _MEASURED
    number = f"{value:,.0f}" if is_whole else f"{value:.3g}"
    return f"{number} {unit}".rstrip()


def _places(con: duckdb.DuckDBPyConnection, ids: set[str]) -> dict[str, dict[str, Any]]:
    """Where exchanges begin and flows, as the column `evidence` of findings has it."""
    if not ids:
        return {}
    rows = con.execute(
        "select exchange_id, request_file, request_packet, exchange_id, line from exchanges "
        "where exchange_id in (select unnest(?)) union all select flow_id, file, first_packet, null, null from flows "
        "where flow_id in (select unnest(?))",
        [sorted(ids), sorted(ids)],
    ).fetchall()
    return {
        id_: {"file": file, "packet": packet, "message_id": message} | ({} if line is None else {"line": line})
        for id_, file, packet, message, line in rows
    }
