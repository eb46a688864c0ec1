"""What a rule concludes: one value per conclusion, and the table of them.

In: facts that a rule measured. Out: `Finding` values with a stable id, and `findings_table` with the columns that
`analyser/tables/tables.py` registers. A finding is content only: the same rows give the same finding, in whatever
order.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from wirewitness.analyser.base.severity import Confidence, Severity
from wirewitness.analyser.base.words import printable
from wirewitness.analyser.engine.incidents.incidents import with_stories
from wirewitness.analyser.engine.numbers import LONGEST_TITLE, default_title
from wirewitness.analyser.tables.tables import arrow_schema

# A finding names the packets that prove it, not every packet that agrees with it.
MAX_EVIDENCE = 24
# Most of what a finding says is of these.
_PLAIN = frozenset({int, str, bool, type(None)})


class Evidence(NamedTuple):
    """One message that proves a finding: where a person finds it, and its id (a request's id is its exchange's).

    line: of a request log, which has no packets; `evidence_packets.py` fills it in.
    """

    file: str | None
    packet: int | None
    message_id: str | None
    line: int | None = None

    def as_json(self) -> dict[str, Any]:
        """As the column `evidence` has it: a line only where there is one."""
        told = self._asdict()
        if self.line is None:
            del told["line"]
        return told


@dataclass(frozen=True, slots=True)
class Finding:
    """One conclusion.

    provisional: packets that come later could overturn it.
    subject: what it is about, as `key=value` pairs parted by spaces.
    ts_first_ns, ts_last_ns: Unix time in ns of the first and last evidence.
    evidence: at least one message, in the order of the wire; `some_evidence` keeps it short.
    numbers: what was measured, as values that JSON knows, under the names of `numbers.py`. Names and values of the
        subject stand in it too.
    title: a heading of a few words: what happened, to what, by whom. Without one: the rule's name in words, and where.
    """

    code: str
    name: str
    severity: Severity
    confidence: Confidence
    provisional: bool
    subject: str
    sentence: str
    next_step: str
    ts_first_ns: int | None
    ts_last_ns: int | None
    evidence: tuple[Evidence, ...]
    numbers: Mapping[str, Any] = field(hash=False)
    title: str = ""

    def __post_init__(self) -> None:
        """Texts hold names from the wire."""
        title = self.title or default_title(self.name, self.numbers)
        object.__setattr__(self, "title", printable(title, LONGEST_TITLE))
        object.__setattr__(self, "sentence", printable(self.sentence))
        object.__setattr__(self, "next_step", printable(self.next_step))

    @property
    def finding_id(self) -> str:
        """16 hex digits from code, subject and the first message that proves it; equal for equal packets in any file.

        A packet without a message does not count: its number and file change when the same packets are saved anew.
        """
        proof = (self.evidence[0].message_id or "") if self.evidence else ""
        return blake2b(f"{self.code}\n{self.subject}\n{proof}".encode(), digest_size=8).hexdigest()


def subject_text(**parts: object) -> str:
    """`key=value` pairs in the order given; a value with spaces or `=` is quoted as JSON, an unknown one is `?`."""
    return " ".join(f"{key}={_subject_value(value)}" for key, value in parts.items())


def _subject_value(value: object) -> str:
    if value is None:
        return "?"
    text = str(value)
    if not text or not text.isprintable() or any(c.isspace() or c in '="' for c in text):
        return json.dumps(text, ensure_ascii=not text.isprintable())
    return text


def some_evidence(evidence: Iterable[Evidence], limit: int = MAX_EVIDENCE) -> tuple[Evidence, ...]:
    """The evidence without repeats and without what names nothing; of more than `limit` the first and last halves."""
    unique = [one for one in dict.fromkeys(evidence) if one.packet is not None or one.message_id is not None]
    if len(unique) <= limit:
        return tuple(unique)
    half = limit // 2
    return (*unique[: limit - half], *unique[-half:])


def first_and_last(keys: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """Places of the evidence that `some_evidence` keeps of rows that prove a finding. keys: of each row its message."""
    first = np.sort(np.unique(keys, return_index=True)[1])
    half = MAX_EVIDENCE // 2
    return first if len(first) <= MAX_EVIDENCE else np.concatenate([first[:half], first[-half:]])


def findings_table(findings: Iterable[Finding]) -> pa.Table:
    """The findings as an Arrow table with `arrow_schema("findings")`, in the table's order."""
    return stories_table(map(finding_row, findings))


def stories_table(rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Rows of findings, times as Unix ns, as that table: put together to incidents anew, in the table's order."""
    told = with_stories(rows)
    schema = arrow_schema("findings")
    return pa.table(
        {name: pa.array([row[name] for row in told], schema.field(name).type) for name in schema.names}, schema=schema
    )


def table_rows(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of such a table, times as Unix ns."""
    for name in ("ts_first", "ts_last"):
        table = table.set_column(table.schema.get_field_index(name), name, table.column(name).cast(pa.int64()))
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def finding_row(finding: Finding) -> dict[str, Any]:
    """A row for `stories_table`."""
    return {
        "finding_id": finding.finding_id,
        "code": finding.code,
        "name": finding.name,
        "title": finding.title,
        "severity": finding.severity,
        "confidence": finding.confidence,
        "provisional": finding.provisional,
        "subject": finding.subject,
        "sentence": finding.sentence,
        "next_step": finding.next_step,
        "ts_first": finding.ts_first_ns,
        "ts_last": finding.ts_last_ns,
        "evidence": json.dumps([item.as_json() for item in finding.evidence], ensure_ascii=False),
        "numbers": json.dumps(_known(finding.numbers), ensure_ascii=False, allow_nan=False),
    }


def _known(value: Any) -> Any:
    """The value with null for what pandas holds as NaN: unknown is null, and JSON has no other word for it."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: _known(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_known(inner) for inner in value]
    return value
