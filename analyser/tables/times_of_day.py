"""Casts of times to a time of day, which DuckDB has for times without a zone only.

In: a query that DuckDB refused for it, a connection. Out: the query with such casts made by way of TIMESTAMP, which is
UTC here, as all times are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import duckdb

_REFUSED = "(TIMESTAMP WITH TIME ZONE -> TIME)"


def lacks_time_of_day(error: Exception) -> bool:
    """Is a query refused because it casts a time to a time of day?"""
    return _REFUSED in str(error)


def with_times_of_day(connection: duckdb.DuckDBPyConnection, query: str) -> str:
    """The query, one SELECT, with `x::TIME` as `x::TIMESTAMP::TIME`; what is a constant ('10:00'::TIME) stays, and so
    does a query that is nested too deeply to look for casts."""
    ((tree,),) = connection.execute("SELECT json_serialize_sql(?)", [query]).fetchall()
    text = query.encode()
    try:
        casts = [*_casts(json.loads(tree))]
    except RecursionError:
        return query
    # From behind, so that places before it stay what they are.
    for cast in sorted(casts, key=lambda one: -int(one["type_expr"]["query_location"])):
        word, end = cast["type_expr"]["query_location"], _end(cast)
        behind = word + cast["type_expr"]["query_location_length"]
        text = text[:word] + b"TIMESTAMP" + text[behind:end] + b"::TIME" + text[end:]
    return text.decode()


def _end(node: Any) -> int:
    return int(node["query_location"]) + int(node["query_location_length"])


def _casts(tree: Any) -> Iterator[Any]:
    """The casts to TIME below this part of a query's tree, without those of constants."""
    if isinstance(tree, dict):
        if tree.get("type") == "OPERATOR_CAST" and _is_wanted(tree):
            yield tree
        parts = list(tree.values())
    else:
        parts = tree if isinstance(tree, list) else []
    for part in parts:
        yield from _casts(part)


def _is_wanted(cast: Any) -> bool:
    name, child = str(cast["type_expr"].get("type_name", "")), str(cast["child"]["type"])
    return name.upper() == "TIME" and child != "VALUE_CONSTANT"
