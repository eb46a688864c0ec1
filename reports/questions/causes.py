"""Findings put together by cause. In: the findings table; out: causes, worst first.

One fault shows on many partitions and to several detectors: a stale committer is a second committer, is stuck, and
makes the offset go back. Findings on one partition belong together, and partitions of one group with the same
committers too: one cause, told once with all its codes and partitions. Findings that name no committers (CAP codes)
are of one cause when they have one code and group.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from analyser.severity import confidence_rank, severity_rank
from reports.questions.source import Source, rows

# Parts of the names under which detectors count messages.
_AT_STAKE = ("replay", "delta", "messages")

# Address, client id, member id.
Identity = tuple[Any, Any, Any]

_FINDINGS = """
    select finding_id, code, name, severity, confidence, provisional, subject, sentence, next_step,
           epoch_ns(ts_first) as first_ns, epoch_ns(ts_last) as last_ns, evidence, numbers
    from findings order by code, subject, finding_id"""


@dataclass(frozen=True, slots=True)
class Finding:
    """A row of the findings table with evidence and numbers decoded; `*_ns` are Unix times of the evidence."""

    finding_id: str
    code: str
    name: str
    severity: str
    confidence: str
    provisional: bool
    subject: str
    sentence: str
    next_step: str
    first_ns: int | None
    last_ns: int | None
    evidence: tuple[Mapping[str, Any], ...]
    numbers: Mapping[str, Any]

    @property
    def committers(self) -> tuple[Mapping[str, Any], ...]:
        """Who took part, where the detector says so."""
        found = self.numbers.get("committers")
        return tuple(c for c in found if isinstance(c, Mapping)) if isinstance(found, list) else ()

    @property
    def who(self) -> tuple[Mapping[str, Any], ...]:
        """Clients that it names: the committers, or those under `clients`."""
        found = self.numbers.get("clients")
        named = tuple(c for c in found if isinstance(c, Mapping)) if isinstance(found, list) else ()
        return self.committers or named

    @property
    def everybody(self) -> tuple[Mapping[str, Any], ...]:
        """All clients that it names anywhere: those under `who`, those who only suffer, and the one it is about."""
        numbers = self.numbers
        listed = [numbers.get(name) for name in ("committers", "clients", "victims")]
        named = [c for found in listed if isinstance(found, list) for c in found if isinstance(c, Mapping)]
        if numbers.get("address") is not None:
            named.append({"address": numbers["address"], "client_id": numbers.get("client_id", numbers.get("client"))})
        return tuple(named)

    @property
    def topic_partition(self) -> tuple[str, int] | None:
        """The partition it is about, where it is about one."""
        topic, partition = self.numbers.get("topic"), self.numbers.get("partition")
        return (str(topic), partition) if topic is not None and isinstance(partition, int) else None

    def identities(self) -> set[Identity]:
        """Its committers without generation and numbers."""
        return {(c.get("address"), c.get("client_id"), c.get("member_id")) for c in self.committers}

    def partitions(self) -> list[tuple[str, int]]:
        """The partitions it is about: its own one, or those that a finding about a whole member lists."""
        if self.topic_partition is not None:
            return [self.topic_partition]
        listed = self.numbers.get("partitions")
        names = [str(name).rpartition("-") for name in listed] if isinstance(listed, list) else []
        return [(topic, int(number)) for topic, _, number in names if number.isdecimal()]

    @property
    def at_stake(self) -> float:
        """Messages delivered again or skipped at worst; 0 where the finding has no such number."""
        named = (abs(value) for name, value in self.measures().items() if any(word in name for word in _AT_STAKE))
        return float(max(named, default=0))

    def measures(self) -> dict[str, int | float]:
        """The plain numbers of the finding, those that name its subject left out."""
        return {
            key: value
            for key, value in self.numbers.items()
            if isinstance(value, int | float) and not isinstance(value, bool) and key != "partition"
        }


@dataclass(frozen=True, slots=True)
class Cause:
    """Findings of one cause; the worst one comes first."""

    findings: tuple[Finding, ...]

    @property
    def worst(self) -> Finding:
        """The finding that is told in full."""
        return self.findings[0]

    @property
    def at_stake(self) -> float:
        """The largest number of messages that one of its findings puts at stake; 0 where none says."""
        return max(f.at_stake for f in self.findings)

    @property
    def confidence(self) -> str:
        """The highest confidence among them."""
        return max((f.confidence for f in self.findings), key=confidence_rank)

    def partitions(self) -> list[tuple[str, int]]:
        """Topics and partitions it was seen on, in order."""
        return sorted({place for finding in self.findings for place in finding.partitions()})

    def by_code(self) -> dict[str, list[Finding]]:
        """Findings of each detector; codes and findings with the worst first."""
        found: dict[str, list[Finding]] = {}
        for finding in self.findings:
            found.setdefault(finding.code, []).append(finding)
        return found

    def fullest(self) -> Finding:
        """Of the findings on the worst one's partition the one that names most committers."""
        beside = [f for f in self.findings if f.topic_partition == self.worst.topic_partition]
        return max(beside, key=lambda f: len(f.committers))

    def packets(self) -> dict[str, list[int]]:
        """Evidence packets per file, in order."""
        return _packets(self.findings)

    def worst_packets(self) -> dict[str, list[int]]:
        """Evidence packets of the worst finding alone."""
        return _packets(self.findings[:1])


def findings(source: Source) -> list[Finding]:
    """All findings in the order of their table."""
    return [_finding(row) for row in rows(source, _FINDINGS)]


def causes(found: Iterable[Finding]) -> list[Cause]:
    """Findings by cause: critical first, then by the messages at stake, the number of findings and the code."""
    found = list(found)
    committers: dict[tuple[Any, ...], set[Identity]] = {}
    for finding in found:
        committers.setdefault(_partition_key(finding), set()).update(finding.identities())
    by_key: dict[tuple[Any, ...], list[Finding]] = {}
    for finding in found:
        key = _cause_key(finding, frozenset(committers[_partition_key(finding)]))
        by_key.setdefault(key, []).append(finding)
    grouped = [Cause(tuple(sorted(group, key=_badness, reverse=True))) for group in by_key.values()]
    return sorted(
        grouped, key=lambda c: (-severity_rank(c.worst.severity), -c.at_stake, -len(c.findings), c.worst.code)
    )


def severity_reached(source: Source, at_least: str) -> bool:
    """Whether there is a finding of that severity or above."""
    present = rows(source, "select distinct severity from findings")
    return any(severity_rank(row["severity"]) >= severity_rank(at_least) for row in present)


def _packets(found: Iterable[Finding]) -> dict[str, list[int]]:
    packets: dict[str, set[int]] = {}
    for item in (item for finding in found for item in finding.evidence):
        if isinstance(item.get("packet"), int):
            packets.setdefault(str(item.get("file") or ""), set()).add(item["packet"])
    return {file: sorted(numbers) for file, numbers in sorted(packets.items())}


def _finding(row: dict[str, Any]) -> Finding:
    evidence, numbers = _decoded(row.pop("evidence")), _decoded(row.pop("numbers"))
    items = evidence if isinstance(evidence, list) else []
    return Finding(
        **row,
        evidence=tuple(item for item in items if isinstance(item, Mapping)),
        numbers=numbers if isinstance(numbers, Mapping) else {},
    )


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _partition_key(finding: Finding) -> tuple[Any, ...]:
    """What the finding is about as narrowly as it says."""
    numbers = finding.numbers
    place = finding.topic_partition or (finding.code, finding.finding_id)
    return numbers.get("cluster"), numbers.get("group"), place


def _cause_key(finding: Finding, committers: frozenset[Identity]) -> tuple[Any, ...]:
    group = (finding.numbers.get("cluster"), finding.numbers.get("group"))
    return (*group, committers) if committers else (*group, finding.code)


def _badness(finding: Finding) -> tuple[int, int, float]:
    return severity_rank(finding.severity), confidence_rank(finding.confidence), finding.at_stake
