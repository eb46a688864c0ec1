"""Values of a user's query that Arrow or Python cannot hold, as the text that DuckDB writes for them.

In: the relation of a query, or a column of its rows. Out: the relation, or the column, with text in their place.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from wirewitness.analyser.tables.queries import quoted

if TYPE_CHECKING:
    import duckdb

# Arrow has nothing for them, or something else: a union, digits of any number, 24:00, an hour with its zone.
_WITHOUT_ARROW = re.compile(r"\b(UNION|BIT|BIGNUM|UHUGEINT|TIME|TIME_NS|TIME WITH TIME ZONE|VARIANT|GEOMETRY)\b")
_INSTANT = "TIMESTAMP WITH TIME ZONE"
_WITH_PARTS = frozenset({"list", "array", "struct", "map"})


def held_by_arrow(relation: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    """The same rows; columns of types that Arrow does not hold are text, JSON where they have parts."""
    kinds = relation.types
    if not any(map(_is_without, kinds)):
        return relation
    return relation.project(
        ", ".join(
            f"{_text(f'#{place}', kind) if _is_without(kind) else f'#{place}'} AS {quoted(name)}"
            for place, (name, kind) in enumerate(zip(relation.columns, kinds, strict=True), 1)
        )
    )


def text_of(column: pa.Array) -> pa.Array:
    """A column of Arrow as DuckDB writes its values: `infinity`, years beyond 9999; JSON where they have parts."""
    import duckdb

    with duckdb.connect(":memory:") as connection:
        connection.execute("SET TimeZone = 'UTC'")
        relation = connection.from_arrow(pa.table({"value": column}))
        text = relation.project(_text("#1", relation.types[0]))
        return text.to_arrow_table().column(0).combine_chunks()


def _is_without(kind: Any) -> bool:
    return _WITHOUT_ARROW.search(str(kind).replace(_INSTANT, "")) is not None


def _text(value: str, kind: Any) -> str:
    return f"to_json({value})::VARCHAR" if kind.id in _WITH_PARTS else f"{value}::VARCHAR"
