"""What Kafka adds to a report: its consumer groups. In: an analysis; out: sections, and values for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from analyser.context.log_ends import END_TABLES
from reports.formats.document import Section
from reports.formats.rows import with_times
from reports.questions.causes import Finding
from reports.questions.group_owners import OWNER_TABLES
from reports.questions.groups import Group, groups
from reports.questions.source import Source
from reports.sections.kafka_groups import group_section

TABLES_READ = ("kafka_offset_commits", *OWNER_TABLES, *END_TABLES)


def sections(source: Source, found: Sequence[Finding]) -> list[Section]:
    """The groups, those that findings are about first; no section without groups."""
    known = groups(source)
    return [group_section(known, {str(f.numbers.get("group")) for f in found})] if known else []


def values(source: Source) -> dict[str, Any]:
    """`groups`: members and partitions of every group."""
    return {"groups": [_group(group) for group in groups(source)]}


def _group(group: Group) -> dict[str, Any]:
    return {
        "cluster_id": group.cluster_id,
        "group_id": group.group_id,
        "members": [with_times(asdict(member)) for member in group.members],
        "partitions": [with_times(asdict(state)) for state in group.partitions],
    }
