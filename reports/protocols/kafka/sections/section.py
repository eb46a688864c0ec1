"""What Kafka adds to a report: its consumer groups, and offsets of log segments.

In: an analysis; out: sections, and values for JSON.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from wirewitness.analyser.base.words import count
from wirewitness.reports.base.formats.document import Block, Cells, Heading, Paragraph, Section, alike_without_empty
from wirewitness.reports.base.formats.rows import with_times
from wirewitness.reports.base.questions.causes import Finding
from wirewitness.reports.base.questions.source import Source, rows
from wirewitness.reports.base.sections.traffic import more
from wirewitness.reports.protocols.kafka.questions.group_partitions import PARTITION_TABLES
from wirewitness.reports.protocols.kafka.questions.group_views import PARTITION_HEADINGS
from wirewitness.reports.protocols.kafka.questions.groups import Group, Member, PartitionState, groups
from wirewitness.reports.protocols.kafka.questions.stored_offsets import stored_offsets
from wirewitness.reports.protocols.kafka.questions.unseen_commits import stored_clocks, unseen_commits
from wirewitness.reports.protocols.kafka.questions.view import view_sql
from wirewitness.reports.protocols.kafka.questions.views import VIEWS
from wirewitness.reports.protocols.kafka.sections.stored import stored_section
from wirewitness.reports.protocols.kafka.sections.view import state_line

# Consumer groups of a report. In: their values; out: a section.

_GROUPS_SHOWN = 20
_PARTITIONS_SHOWN = 40
_MEMBERS_SHOWN = 20
_OF_PARTITIONS = (
    "topic", "partition", "committed_offset", "log_end_offset", "lag", "accepted", "refused", "committers",
    "committed_by",
)  # fmt: skip


def group_section(
    groups: Sequence[Group], first: Collection[str], stand: Mapping[tuple[str | None, str | None], str]
) -> Section:
    """Consumer groups: how each stands, members, then partitions with the committer of their last accepted commit.

    first: ids of the groups that findings are about; when there are too many groups these are shown. stand: cluster and
    group -> how it stands, in a line.
    """
    blocks: list[Block] = []
    shown = sorted(groups, key=lambda group: group.group_id not in first)[:_GROUPS_SHOWN]
    members = alike_without_empty([_members(group.members[:_MEMBERS_SHOWN]) for group in shown])
    partitions = alike_without_empty([_partitions(group.partitions) for group in shown])
    for group, of_members, of_partitions in zip(shown, members, partitions, strict=True):
        blocks.append(Heading(_group_title(group)))
        if (group.cluster_id, group.group_id) in stand:
            blocks.append(Paragraph(stand[group.cluster_id, group.group_id]))
        if group.members:
            blocks.append(of_members)
            blocks.extend(more(len(group.members) - _MEMBERS_SHOWN, "member", "kafka_group_events"))
        if group.partitions:
            blocks.append(of_partitions)
            blocks.extend(more(len(group.partitions) - _PARTITIONS_SHOWN, "partition", "kafka_offset_commits"))
    blocks.extend(more(len(groups) - _GROUPS_SHOWN, "group", "kafka_group_events"))
    return Section("CONSUMER GROUPS", tuple(blocks))


def _group_title(group: Group) -> str:
    cluster = f" (cluster {group.cluster_id})" if group.cluster_id else ""
    accepted = sum(p.accepted for p in group.partitions)
    refused = sum(p.refused for p in group.partitions)
    commits = f"{count(accepted, 'accepted commit')}{f', {refused:,} refused' if refused else ''}"
    return (
        f"{group.group_id}{cluster}: {count(len(group.members), 'member id')}{_generations(group)}, "
        f"{commits} on {count(len(group.partitions), 'partition')}"
    )


def _generations(group: Group) -> str:
    known = [g for m in group.members for g in (m.first_generation, m.last_generation) if g is not None]
    if not known:
        return ""
    low, high = min(known), max(known)
    return f", generation {low}" if low == high else f", generations {low} to {high}"


def _members(members: Sequence[Member]) -> Cells:
    table = tuple(
        (
            m.member_id,
            m.group_instance_id or "",
            m.client_id or "(none)",
            m.client_address or "?",
            _span(m.first_generation, m.last_generation),
            f"{m.committed_partitions:,}",
        )
        for m in members
    )
    header = ("MEMBER ID", "STATIC NAME", "CLIENT ID", "ADDRESS", "GENERATIONS", "COMMITS")
    return Cells(header, table, numbers=(5,), shortened=(0,))


def _partitions(partitions: Sequence[PartitionState]) -> Cells:
    """Those with most committers and lag, in the order of their names."""
    most = sorted(partitions, key=lambda p: (-p.committers, -(p.lag or 0)))[:_PARTITIONS_SHOWN]
    table = tuple(
        (
            p.topic or "?",
            str(p.partition),
            _known(p.committed_offset),
            _known(p.log_end_offset),
            _known(p.lag),
            f"{p.accepted:,}",
            f"{p.refused:,}" if p.refused else "",
            str(p.committers),
            _committer(p),
        )
        for p in sorted(most, key=lambda p: (p.topic or "", p.partition))
    )
    header = tuple(PARTITION_HEADINGS[name] for name in _OF_PARTITIONS)
    return Cells(header, table, numbers=(1, 2, 3, 4, 5, 6, 7), shortened=(0, 8), dispensable=(5, 6))


def _committer(state: PartitionState) -> str:
    if state.committed_offset is None:
        return "none accepted"
    return f"{state.client_id or '(no client id)'}@{state.client_address or '?'}"


def _known(number: int | None) -> str:
    return "-" if number is None else str(number)


def _span(low: int | None, high: int | None) -> str:
    if low is None or high is None:
        return ""
    return str(low) if low == high else f"{low} to {high}"


_STATE = VIEWS["groups"]["state"]
TABLES_READ = tuple(dict.fromkeys((*PARTITION_TABLES, *_STATE.tables)))


def sections(source: Source, found: Sequence[Finding]) -> list[Section]:
    """The groups, those that findings are about first, and stored offsets; no section without either."""
    stored = stored_offsets(source)
    told = [stored_section(stored, unseen_commits(source), stored_clocks(source))] if stored else []
    return [*_groups(source, found), *told]


def _groups(source: Source, found: Sequence[Finding]) -> list[Section]:
    known = groups(source)
    if not known:
        return []
    states = rows(source, f"select * replace (epoch_ns(ts_since) as ts_since) from ({view_sql(_STATE)})")
    stand = {(row["cluster_id"], row["group_id"]): state_line(row) for row in states}
    return [group_section(known, {str(f.numbers.get("group")) for f in found}, stand)]


def values(source: Source) -> dict[str, Any]:
    """`groups`: members and partitions of every group. `stored_offsets`: what log segments hold of them;
    `unseen_commits`: what of that nothing in a capture of the same time asks for."""
    return {
        "groups": [_group(group) for group in groups(source)],
        "stored_offsets": [with_times(asdict(one)) for one in stored_offsets(source)],
        "unseen_commits": [with_times(asdict(one)) for one in unseen_commits(source)],
    }


def _group(group: Group) -> dict[str, Any]:
    return {
        "cluster_id": group.cluster_id,
        "group_id": group.group_id,
        "members": [with_times(asdict(member)) for member in group.members],
        "partitions": [with_times(asdict(state)) for state in group.partitions],
    }
