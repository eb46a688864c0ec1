"""Findings put together by cause. In: the findings table; out: causes, worst first.

Which findings are one incident, and in which order, is decided where they are made
(`analyser/engine/incidents/incidents.py`) and
stands in the table: here its rows become values.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from wirewitness.analyser.base.severity import confidence_rank, severity_rank
from wirewitness.analyser.engine.numbers import default_title
from wirewitness.reports.base.questions.source import Source, rows

_FINDINGS = """
    select finding_id, code, name, title, severity, confidence, provisional, subject, sentence, next_step,
           epoch_ns(ts_first) as first_ns, epoch_ns(ts_last) as last_ns, evidence, numbers,
           coalesce(incident_id, finding_id) as incident_id
    from findings order by incident_order, code, subject, finding_id"""


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
    incident_id: str
    title: str = ""

    @property
    def committers(self) -> tuple[Mapping[str, Any], ...]:
        """Who took part, where the rule says so."""
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

    def lines_of(self, client: Mapping[str, Any]) -> list[tuple[str, int]]:
        """File and line of its evidence in request logs on connections of one of its clients, in order."""
        listed = client.get("flows")
        flows = {client.get("flow_id"), *(listed if isinstance(listed, list) else ())}
        return [
            (str(one.get("file") or ""), one["line"])
            for one in self.evidence
            if isinstance(one.get("line"), int) and str(one.get("message_id")).partition("-")[0] in flows
        ]

    @property
    def topic_partition(self) -> tuple[str, int] | None:
        """The partition it is about, where it is about one."""
        topic, partition = self.numbers.get("topic"), self.numbers.get("partition")
        return (str(topic), partition) if topic is not None and isinstance(partition, int) else None

    def partitions(self) -> list[tuple[str, int]]:
        """The partitions it is about: its own one, or those that a finding about a whole member lists."""
        if self.topic_partition is not None:
            return [self.topic_partition]
        listed = self.numbers.get("partitions")
        names = [str(name).rpartition("-") for name in listed] if isinstance(listed, list) else []
        return [(topic, int(number)) for topic, _, number in names if number.isdecimal()]

    def measures(self) -> dict[str, int | float]:
        """The plain numbers of the finding, those that name its subject left out."""
        return {
            key: value
            for key, value in self.numbers.items()
            if isinstance(value, int | float) and not isinstance(value, bool) and key != "partition"
        }


@dataclass(frozen=True, slots=True)
class Cause:
    """Findings of one cause: first that which tells it, then those that follow from it, in the incident's order."""

    findings: tuple[Finding, ...]

    @property
    def first(self) -> Finding:
        """The finding that is told in full."""
        return self.findings[0]

    @property
    def severity(self) -> str:
        """The highest severity among them."""
        return max((f.severity for f in self.findings), key=severity_rank)

    @property
    def confidence(self) -> str:
        """The highest confidence of those that tell the cause."""
        return max((f.confidence for f in self.own), key=confidence_rank)

    @property
    def own(self) -> tuple[Finding, ...]:
        """Those that tell the cause: of the rule of the first one."""
        return tuple(f for f in self.findings if f.code == self.first.code)

    def partitions(self) -> list[tuple[str, int]]:
        """Topics and partitions that the cause was seen on, in order."""
        return sorted({place for finding in self.own for place in finding.partitions()})

    def by_code(self) -> dict[str, list[Finding]]:
        """Findings of each rule; codes and findings in the order of the incident."""
        found: dict[str, list[Finding]] = {}
        for finding in self.findings:
            found.setdefault(finding.code, []).append(finding)
        return found

    def fullest(self) -> Finding:
        """The first one, or where it names committers of a partition, the finding on it that names most of them."""
        place = self.first.topic_partition
        if not self.first.committers or place is None:
            return self.first
        return max((f for f in self.findings if f.topic_partition == place), key=lambda f: len(f.committers))

    def packets(self) -> dict[str, list[int]]:
        """Evidence packets per file, in order."""
        return _packets(self.findings)

    def lines(self) -> dict[str, list[int]]:
        """Evidence lines per request log, in order."""
        return _packets(self.findings, "line")

    def first_packets(self) -> dict[str, list[int]]:
        """Evidence packets of the first finding alone."""
        return _packets(self.findings[:1])


def findings(source: Source) -> list[Finding]:
    """All findings in the order of their table."""
    return [_finding(row) for row in rows(source, _FINDINGS)]


def causes(found: Iterable[Finding]) -> list[Cause]:
    """Findings in the order of their table by cause."""
    incidents: dict[str, list[Finding]] = {}
    for finding in found:
        incidents.setdefault(finding.incident_id, []).append(finding)
    return [Cause(tuple(incident)) for incident in incidents.values()]


def severity_among(found: Iterable[Finding], at_least: str) -> bool:
    """Whether one of these findings is of that severity or above."""
    return any(severity_rank(finding.severity) >= severity_rank(at_least) for finding in found)


def _packets(found: Iterable[Finding], name: str = "packet") -> dict[str, list[int]]:
    items = [item for finding in found for item in finding.evidence if isinstance(item.get(name), int)]
    files = {str(item["file"]) for item in items if item.get("file")}
    unnamed = files.copy().pop() if len(files) == 1 else ""
    packets: dict[str, set[int]] = {}
    for item in items:
        packets.setdefault(str(item.get("file") or unnamed), set()).add(item[name])
    return {file: sorted(numbers) for file, numbers in sorted(packets.items())}


def _finding(row: dict[str, Any]) -> Finding:
    evidence, decoded = _decoded(row.pop("evidence")), _decoded(row.pop("numbers"))
    items = evidence if isinstance(evidence, list) else []
    numbers = decoded if isinstance(decoded, Mapping) else {}
    row["title"] = row["title"] or default_title(row["name"], numbers)
    return Finding(**row, evidence=tuple(item for item in items if isinstance(item, Mapping)), numbers=numbers)


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # of a dataset that somebody else wrote
        return None
