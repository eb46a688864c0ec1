"""What a rule declares: the rows it reads, the key that cuts them into partitions, the function that judges one.

It sees one partition at a time, sorted by time, as a mapping of table name to `Frame`, and nothing else. So the same
function runs here (`running.py`), on Spark and in a test.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from wirewitness.analyser.base.severity import Confidence, Severity
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Finding, some_evidence, subject_text
from wirewitness.analyser.engine.rules.frame import Frame
from wirewitness.analyser.tables.tables import TABLES

Frames = Mapping[str, Frame]

PAGE_SECTIONS = ("Finds", "Why it matters", "How it decides", "False alarms", "References")
# Before the references: what no capture of one side, or one that begins late, lets the rule conclude.
LIMITS_SECTION = "What it cannot tell"


class AnyRow(NamedTuple):
    """Suspects a partition in which any row of this table, of those that the rule wants, meets the SQL condition.

    All rules of a key that say so are asked by one look at the table.
    """

    table: str
    condition: str = "true"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    question: the one of `QUESTIONS` that it asks of its facts.
    severity, confidence: the highest that its findings may have.
    reads: table -> columns. Columns of `partition_by` are given in any case.
    asks: further tables, which only its `rows` and `suspects` name: they are seen whole, and need no key.
    partition_by: key columns; every table in `reads` has them. Empty: the whole capture is one partition.
    detect: (frames, **thresholds) -> findings; pure. Its keyword-only arguments are the thresholds with their defaults.
    rows: table -> SQL boolean, which of its rows are wanted.
    keys: table -> key column -> the column of that table that is the key there, where it has another name.
    suspects: `AnyRow`, or a SELECT of the key columns over `r_<table>` (the rows wanted, key columns included): only
        partitions that it names are looked at. It must name every partition that could give a finding with the default
        thresholds.
    signs: table, of those that no stage makes -> SQL aggregate of its rows, without subqueries. Where none of them is
        true the rule could find nothing: it is not asked, and facts that nobody else reads are not made. Where none are
        declared, `AnyRow` may be one (`requested_codes.py`).
    """

    code: str
    question: str
    name: str
    severity: Severity
    confidence: Confidence
    reads: Mapping[str, tuple[str, ...]]
    partition_by: tuple[str, ...]
    detect: Callable[..., Iterable[Finding]]
    rows: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    suspects: AnyRow | str | None = None
    keys: Mapping[str, Mapping[str, str]] = field(default_factory=lambda: MappingProxyType({}))
    signs: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    asks: tuple[str, ...] = ()

    @property
    def thresholds(self) -> dict[str, Any]:
        """Name -> default of every threshold."""
        parameters = inspect.signature(self.detect).parameters.values()
        return {p.name: p.default for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}

    @property
    def needs(self) -> frozenset[str]:
        """All tables that it looks at."""
        return frozenset((*self.reads, *self.asks))

    @property
    def page(self) -> str:
        """The page for people: the docstring of the rule's module."""
        return inspect.cleandoc(sys.modules[self.detect.__module__].__doc__ or "")

    @property
    def suspects_sql(self) -> str:
        """Its suspects as a SELECT; empty without any."""
        if isinstance(self.suspects, AnyRow):
            return f"SELECT {', '.join(self.partition_by)} FROM r_{self.suspects.table} WHERE {self.suspects.condition}"
        return self.suspects or ""

    def columns(self, table: str) -> tuple[str, ...]:
        """Columns of that table's frame: the key first."""
        return (*self.partition_by, *(c for c in self.reads[table] if c not in self.partition_by))

    def own_columns(self, table: str) -> list[str]:
        """Columns besides the key: those declared, and those that the table is ordered by."""
        wanted = dict.fromkeys((*self.reads[table], *TABLES[table].order))
        return [column for column in wanted if column not in self.partition_by]

    def finding(
        self,
        *,
        subject: Mapping[str, Any],
        sentence: str,
        next_step: str,
        proof: Proof,
        numbers: Mapping[str, Any],
        title: str = "",
        severity: Severity | None = None,
        confidence: Confidence | None = None,
        provisional: bool = False,
    ) -> Finding:
        """A conclusion of this rule. severity, confidence: those declared unless given. Words as in `Finding`."""
        return Finding(
            code=self.code,
            name=self.name,
            severity=severity or self.severity,
            confidence=confidence or self.confidence,
            provisional=provisional,
            subject=subject_text(**subject),
            sentence=sentence,
            next_step=next_step,
            ts_first_ns=proof.ts_first_ns,
            ts_last_ns=proof.ts_last_ns,
            evidence=some_evidence(proof.evidence),
            numbers=numbers,
            title=title,
        )
