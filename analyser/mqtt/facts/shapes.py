"""The shape of a topic name or filter: what devices of one kind have in common.

In: the name of a column, beside a column client_id. Out: SQL: the client's own id is <id>, and digits are 0. An id of
one letter stands in too many words to be told from them.
"""

from __future__ import annotations


def shape_of(name: str = "topic") -> str:
    """An expression of the shape; null where the name is."""
    own = f"CASE WHEN length(client_id) > 1 THEN replace({name}, client_id, '<id>') ELSE {name} END"
    return f"regexp_replace({own}, '[0-9]+', '0', 'g')"
