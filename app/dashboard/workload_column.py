"""The column that says who clients are. In: columns of a table of clients. Out: the same, without it where it is
empty.
"""

from __future__ import annotations

from wirewitness.app.dashboard.opened import Selected
from wirewitness.reports.base.questions.columns import Column
from wirewitness.reports.base.questions.workloads import OWNER, is_anybody_named


def with_owners(source: Selected, columns: tuple[Column, ...]) -> tuple[Column, ...]:
    """The columns, without that of owners where nobody is named."""
    return columns if is_anybody_named(source) else tuple(column for column in columns if column != OWNER)
