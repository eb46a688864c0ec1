"""The two sides of a comparison as sources, and what differs between them. In: analyses; out: tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import pyarrow as pa

from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.tables.queries import quoted
from wirewitness.analyser.tables.tables import ALL_TABLES
from wirewitness.reports.base.questions.causes import Finding
from wirewitness.reports.base.questions.source import Source, narrowed
from wirewitness.reports.protocols.kafka.questions.group_list import group_list
from wirewitness.reports.protocols.kafka.questions.group_partitions import PARTITION_TABLES
from wirewitness.reports.protocols.kafka.questions.groups import groups
from wirewitness.reports.protocols.kafka.questions.views import VIEWS
from wirewitness.reports.report.compare.differences import Between, between
from wirewitness.reports.report.compare.differing_groups import GROUP_TABLES
from wirewitness.reports.report.compare.differing_settings import SETTINGS_TABLES
from wirewitness.reports.report.compare.differing_shapes import SHAPE_TABLES
from wirewitness.reports.report.compare.differing_sizes import SIZE_TABLES
from wirewitness.reports.report.compare.differing_topics import TOPIC_TABLES

COMPARED_TABLES = sorted({
    "captures", "findings", "exchanges", "flows", "kafka_share_fetches", "kafka_share_acknowledges",
    *PARTITION_TABLES, *SETTINGS_TABLES, *TOPIC_TABLES, *GROUP_TABLES, *SHAPE_TABLES, *SIZE_TABLES,
    *(table for command, view in (("clients", ""), ("groups", "state"), ("groups", "share-offsets"))
      for table in VIEWS[command][view].tables),
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Side:
    """One side: a source of which a time is selected. name: a constant word. about: what it is."""

    name: str
    about: str
    analysis: Source
    options: ReadOptions

    def sql(self, query: str) -> pa.Table:
        """As of Source."""
        return self.analysis.sql(query)

    def batches(self, name: str) -> Iterator[pa.RecordBatch]:
        """As of Source."""
        order = ", ".join(map(quoted, ALL_TABLES[name].order))
        yield from self.sql(narrowed(f"select * from {quoted(name)} order by {order}", self.options)).to_batches()

    def up_to_its_end(self) -> Side:
        """The same with all that was told before."""
        return Side(self.name, self.about, self.analysis, replace(self.options, from_ns=None))


class TimedSource(Source, Protocol):
    """A source of which a time is selected."""

    def up_to_its_end(self) -> Source:
        """The same with all that was told before."""
        ...


def compared(a: TimedSource, b: TimedSource, found: tuple[Sequence[Finding], Sequence[Finding]]) -> Between:
    """What differs between both. found: the findings of both."""
    return between(a, b, found, (_groups(a, found[0]), _groups(b, found[1])))


def _groups(side: TimedSource, found: Sequence[Finding]) -> list[dict[str, Any]]:
    at_end = side.up_to_its_end()
    return group_list(side, at_end, groups(at_end), (), found)
