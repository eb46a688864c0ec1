"""What an incident of findings begins with, in one line. In: causes of a report. Out: a line for those that have one.

A line is made of links that are facts, or assumptions of high confidence, one behind the other. Where a chain branches
or is less sure nothing is said: a report accuses nobody on a guess.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from wirewitness.analyser.base.times import time_text
from wirewitness.analyser.tables.queries import QueryError
from wirewitness.reports.base.questions.causes import Cause, causes, findings
from wirewitness.reports.base.questions.source import Source
from wirewitness.reports.base.why.asking import Asking, finding_link
from wirewitness.reports.base.why.evidence_packets import placed
from wirewitness.reports.base.why.model import Chain, Link, Step
from wirewitness.reports.report.why.findings import evidence_ids, leads_back
from wirewitness.reports.report.why.walk import walk

# As many incidents as a report lists at its head.
_MOST = 20
# Links of a line; of a longer chain the first and the last ones.
_SHOWN = 3
# What the finding itself tells: the line begins behind it.
_TOLD = ("finding", "commit", "refused_commit", "no_commit", "reads_on")


def first_causes(source: Source, incidents: Sequence[Cause] | None = None) -> dict[str, str]:
    """incident_id -> the line. incidents: those of the report, else all of the selected findings."""
    told = causes(findings(source)) if incidents is None else incidents
    ask = Asking(source, brief=True)
    wanted = [incident for incident in told[:_MOST] if leads_back(incident.first)]
    try:
        ask.commits(one for incident in wanted for one in evidence_ids(incident.first))
        chains = [Chain("", "", (walk(ask, finding_link(incident.first)),)) for incident in wanted]
        lines = [_line(chain.steps[0]) for chain in placed(ask, chains)]
    except QueryError:  # a source that lacks some of FIRST_CAUSE_TABLES tells none
        return {}
    return {incident.first.incident_id: line for incident, line in zip(wanted, lines, strict=True) if line}


def _line(step: Step) -> str:
    """`ledger-b joined (11:23:51.645, packet 6246); so rebalance to generation 2; so ...`: the first cause first."""
    links = list(_sure(step))
    if not links:
        return ""
    shorts = list(dict.fromkeys(_short(link, first=place == 0) for place, link in enumerate(reversed(links))))
    if len(shorts) > _SHOWN:
        shorts = [shorts[0], "...", *shorts[1 - _SHOWN :]]
    return "; so ".join(shorts)


def _sure(step: Step) -> Iterable[Link]:
    """The links behind a finding, as far as there is one way back and each is sure."""
    while len(step.causes) == 1 and not step.left_out:
        step = step.causes[0]
        if step.link.sure not in ("fact", "high"):
            return
        if step.link.kind not in _TOLD:
            yield step.link


def _short(link: Link, *, first: bool) -> str:
    if not first:
        return link.short
    place = next((one for one in link.places if one.packet is not None or one.line is not None), None)
    parts = [] if link.at_ns is None else [time_text(link.at_ns)[11:23]]
    if place is not None:
        parts.append(f"packet {place.packet}" if place.packet is not None else f"line {place.line}")
    return f"{link.short} ({', '.join(parts)})" if parts else link.short


def of_findings(lines: Mapping[str, str], incident_ids: Iterable[str | None]) -> list[str | None]:
    """The line of each finding, by its incident."""
    return [None if incident_id is None else lines.get(incident_id) for incident_id in incident_ids]
