"""Who clients are, as reports show it. In: columns about owners of a table. Out: SQL that gives words.

Rows of one client may have several owners: up to three are listed.
"""

from __future__ import annotations

from reports.questions.columns import Column

# Where a capture or a file names processes, pods or hosts.
OWNER = Column("client_owner", "Owner")
_MOST = 3
# `pod payments-7d4f, java (4711)` of one row; null where nobody says.
_OF_ROW = "nullif(concat_ws(', ', coalesce('pod ' || client_pod, 'host ' || client_host), client_process), '')"
# The same of grouped rows: `a or b`, and of more how many others there are; null where nobody says.
_ALL = f"list_sort(list_distinct(list({_OF_ROW}) FILTER ({_OF_ROW} IS NOT NULL)))"
_NOBODY = "count(client_host) + count(client_pod) + count(client_process) = 0"
OWNERS = (
    f"CASE WHEN {_NOBODY} THEN NULL WHEN len({_ALL}) > {_MOST} "
    f"THEN array_to_string({_ALL}[:{_MOST}], ' or ') || ' or ' || (len({_ALL}) - {_MOST}) || ' more' "
    f"ELSE array_to_string({_ALL}, ' or ') END"
)
