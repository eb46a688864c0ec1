"""Who clients are, as reports show it. In: columns about owners of a table. Out: SQL that gives words."""

from __future__ import annotations

from wirewitness.reports.base.questions.columns import Column
from wirewitness.reports.base.questions.source import Source, rows

# Where a capture or a file names processes, pods or hosts.
OWNER = Column("client_owner", "Owner")
# `pod payments-7d4f, java (4711)` of one row; null where nobody says.
_OF_ROW = "nullif(concat_ws(', ', coalesce('pod ' || client_pod, 'host ' || client_host), client_process), '')"
# The same of grouped rows: the first one, and how many others there are; null where nobody says.
OWNERS = (
    f"min({_OF_ROW}) || if(count(DISTINCT {_OF_ROW}) > 1, ' or ' || (count(DISTINCT {_OF_ROW}) - 1) || ' more', '')"
)
_NAMED = " OR ".join(f"client_{name} IS NOT NULL" for name in ("process", "pod", "host"))
_ANYBODY = f"SELECT 1 FROM flows WHERE {_NAMED} LIMIT 1"


def is_anybody_named(source: Source) -> bool:
    """Does a capture or a file name any process, pod or host of clients?"""
    return bool(rows(source, _ANYBODY))
