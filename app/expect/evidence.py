"""Rows that break an expectation, with the packets that they are from. In: SQL over an analysis. Out: a few rows as
plain values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from wirewitness.analyser.tables.queries import literal, quoted
from wirewitness.analyser.tables.tables import ALL_TABLES
from wirewitness.reports.base.formats.plain import plain_batch
from wirewitness.reports.base.formats.values import time_text

if TYPE_CHECKING:
    from wirewitness.analyser.analysis.analysis import Analysis

Found = Mapping[str, Any]
ROWS_KEPT = 10
# What tells a row to people, in this order: columns that a table has of these.
_TELLING = (
    *(
        "ts",
        "client_id",
        "client_address",
        "operation",
        "api",
        "command",
        "group_id",
        "member_id",
        "topic",
        "partition",
    ),
    *("committed_offset", "database", "collection", "packet_identifier", "status", "error_name"),
)
# What tells a connection besides: its ends, by which it is found in any other tool.
_ENDS = ("ts_first", "client_address", "client_port", "server_address", "server_port", "protocol", "closed_by")
# A column with an id -> table, its key, the file and packet there, and what else is worth telling.
_PACKETS_OF = {
    "exchange_id": ("exchanges", "exchange_id", "request_file", "request_packet", ()),
    "message_id": ("messages", "message_id", "file", "packet_first", ()),
    "flow_id": ("flows", "flow_id", "file", "first_packet", _ENDS[1:5]),
}
_TOLD_BY_ITSELF = ("packet", "request_packet", "packet_first", "first_packet")


def rows_of(analysis: Analysis, sql: str, limit: int | None = None) -> list[dict[str, Any]]:
    """Rows of one SELECT over the selected rows, times as text. Raises QueryError."""
    query = sql if limit is None else f"{sql} LIMIT {limit}"
    return [row for batch in analysis.query(query) for row in _plain(batch)]


def evidence_of(
    analysis: Analysis, source: str, where: str, order: str, columns: Sequence[str] | None, table: str | None = None
) -> list[Found]:
    """The first rows of a source with their packets.

    source: a registered table, or a SELECT in brackets. columns: what must be shown beside what tells a row; None: all
    that the source has. table: whose columns a SELECT has.
    """
    known = ALL_TABLES[table or source].column_names() if (table or source) in ALL_TABLES else None
    chosen = "*" if known is None else ", ".join(quoted(name) for name in _shown(known, columns or ()))
    behind = quoted(source) if source in ALL_TABLES else source
    ordered = f" ORDER BY {order or ('ts' if known is not None and 'ts' in known else 'ALL')}"
    ordered = "" if known is None and not order else ordered
    found = rows_of(analysis, f"SELECT {chosen} FROM {behind} WHERE {where}{ordered}", ROWS_KEPT)
    return _with_packets(analysis, found)


def _shown(known: Sequence[str], columns: Sequence[str]) -> list[str]:
    named = [name for name in ((*_ENDS, *_TELLING) if "first_packet" in known else _TELLING) if name in known]
    ids = [name for name in ("exchange_id", "message_id", "file", "request_file", *_TOLD_BY_ITSELF) if name in known]
    return list(dict.fromkeys([*columns, *named, *ids]))


def _with_packets(analysis: Analysis, found: Sequence[dict[str, Any]]) -> list[Found]:
    """Rows with `file` and `packet`, where an id tells them and the row itself does not; of a connection's id that is
    its first packet, and its ends stand beside."""
    if not found or any(name in found[0] for name in _TOLD_BY_ITSELF):
        return list(found)
    for column, (table, key, file, packet, more) in _PACKETS_OF.items():
        ids = sorted({str(row[column]) for row in found if row.get(column) is not None})
        if ids and table in analysis.tables():
            listed = ", ".join(map(literal, ids))
            told = ", ".join((f"{key} AS id", f"{file} AS file", f"{packet} AS packet", *more))
            places = {
                row.pop("id"): row for row in rows_of(analysis, f"SELECT {told} FROM {table} WHERE {key} IN ({listed})")
            }
            unknown = dict.fromkeys(("file", "packet", *more))
            return [
                {
                    **row,
                    **{
                        name: value
                        for name, value in places.get(row.get(column), unknown).items()
                        if row.get(name) is None
                    },
                }
                for row in found
            ]
    return list(found)


def _plain(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """Rows with times as ISO 8601, and null for what JSON has no number for."""
    told = plain_batch(batch)
    times = [
        name for name, kind in zip(told.schema.names, told.schema.types, strict=True) if pa.types.is_timestamp(kind)
    ]
    for name in times:
        as_ns = told.column(name).cast(pa.timestamp("ns", tz="UTC")).cast(pa.int64())
        texts = [None if value is None else time_text(value) for value in as_ns.to_pylist()]
        told = told.set_column(told.schema.get_field_index(name), name, pa.array(texts, pa.string()))
    for row in told.to_pylist():
        yield {name: None if isinstance(value, float) and not isfinite(value) else value for name, value in row.items()}
