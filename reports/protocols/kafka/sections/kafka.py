"""What Kafka adds to a report: its consumer groups, and offsets of log segments.

In: an analysis; out: sections, and values for JSON.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from wirewitness.reports.base.formats.document import Section
from wirewitness.reports.base.formats.rows import with_times
from wirewitness.reports.base.questions.causes import Finding
from wirewitness.reports.base.questions.source import Source, rows
from wirewitness.reports.protocols.kafka.questions.group_owners import PARTITION_TABLES
from wirewitness.reports.protocols.kafka.questions.groups import Group, groups
from wirewitness.reports.protocols.kafka.questions.stored_offsets import stored_offsets
from wirewitness.reports.protocols.kafka.questions.unseen_commits import stored_clocks, unseen_commits
from wirewitness.reports.protocols.kafka.questions.view import view_sql
from wirewitness.reports.protocols.kafka.questions.views import VIEWS
from wirewitness.reports.protocols.kafka.sections.groups import group_section
from wirewitness.reports.protocols.kafka.sections.stored import stored_section
from wirewitness.reports.protocols.kafka.sections.view import state_line

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
