"""What a cross-check found: counts for each operation, reasons with examples, and the disagreements themselves."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from wirewitness.reports.report.tshark.case import Limit

SHOWN = 1000


@dataclass(slots=True)
class Counts:
    """Messages of one operation. agree: both have it, every value that both have is equal.

    explained: a known reason stands behind the difference, or behind what only one decodes. The others are
    disagreements: differ (values), only_ours, only_theirs, gave_up (tshark stopped inside without a known reason).
    """

    agree: int = 0
    explained: int = 0
    differ: int = 0
    only_ours: int = 0
    only_theirs: int = 0
    gave_up: int = 0

    @property
    def disagreements(self) -> int:
        """Messages on which the sides disagree without a known reason."""
        return self.differ + self.only_ours + self.only_theirs + self.gave_up


@dataclass(frozen=True, slots=True)
class Example:
    """One message. kind: a name of Counts; packet, other_packet: ours and tshark's; values: name, ours, tshark's;
    fields: all that tshark says of its packet, or of ours where it has none, where that was asked for."""

    kind: str
    protocol: str
    operation: str | None
    role: str | None
    version: str | None
    file: str
    packet: int | None
    other_packet: int | None
    message_id: str | None
    values: tuple[tuple[str, Any, Any], ...] = ()
    remarks: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()


@dataclass(slots=True)
class Explained:
    """How often a limit applied, to which operations (name and version), and the first message."""

    limit: Limit
    count: int = 0
    operations: Counter[str] = field(default_factory=Counter)
    example: Example | None = None


@dataclass(slots=True)
class CrossCheck:
    """The whole. counts: by protocol, operation and role. compared: how many values of each name were compared.

    disagreements: the first SHOWN of them; `disagreeing` counts all. unread: files that tshark cannot read, why;
    remarks: files that it read up to a damage.
    """

    version: str
    counts: dict[tuple[str, str, str], Counts] = field(default_factory=dict)
    compared: dict[tuple[str, str], int] = field(default_factory=dict)
    explained: dict[str, Explained] = field(default_factory=dict)
    disagreements: list[Example] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    too_large: int = 0

    @property
    def disagreeing(self) -> int:
        """How many messages the sides disagree on without a known reason."""
        return sum(counts.disagreements for counts in self.counts.values())

    @property
    def agreeing(self) -> int:
        """How many messages they agree on."""
        return sum(counts.agree for counts in self.counts.values())

    def add(self, example: Example, limit: Limit | None) -> None:
        """Count one message that is not simply equal."""
        counts = self._counts(example.protocol, example.operation, example.role)
        if limit is None:
            setattr(counts, example.kind, getattr(counts, example.kind) + 1)
            if len(self.disagreements) < SHOWN:
                self.disagreements.append(example)
            return
        counts.explained += 1
        entry = self.explained.setdefault(limit.code, Explained(limit))
        entry.count += 1
        entry.operations[" ".join(filter(None, (example.operation, example.version)))] += 1
        entry.example = entry.example or example

    def add_agreement(self, protocol: str, operation: str | None, role: str | None) -> None:
        """Count one message on which both agree."""
        self._counts(protocol, operation, role).agree += 1

    def _counts(self, protocol: str, operation: str | None, role: str | None) -> Counts:
        return self.counts.setdefault((protocol, operation or "", role or ""), Counts())
