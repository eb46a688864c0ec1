"""What pages show besides where lines of a request log stand in place of packets."""

from __future__ import annotations

from collections.abc import Sequence

from wirewitness.reports.base.questions.columns import Column
from wirewitness.reports.base.questions.source import Source, all_rows

_KINDS = "select coalesce(bool_or(lines is not null), false) as lines from captures"
_LINE = Column("line", "Line", "plain", 60)


def with_lines(source: Source, columns: Sequence[Column]) -> Sequence[Column]:
    """The columns, and one with lines of request logs, where there are any, behind the first one."""
    return (columns[0], _LINE, *columns[1:]) if all_rows(source, _KINDS)[0]["lines"] else columns
