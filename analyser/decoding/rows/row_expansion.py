"""Tables whose raw rows stand for many each. In: the name of a table. Out: how its rows become arrays, None for others.

Few ask for such tables, so what makes them is imported for them alone.
"""

from __future__ import annotations

from wirewitness.analyser.decoding.rows.raw_types import Gathered
from wirewitness.analyser.tables.tables import TABLES


def gathering(table: str) -> Gathered | None:
    """How rows of that table become arrays, None where each is one row of the table."""
    if not TABLES[table].lists:
        return None
    from wirewitness.analyser.decoding.rows.record_arrays import FIELDS, gathered, gathered_of_block

    return Gathered(FIELDS, gathered, gathered_of_block)
