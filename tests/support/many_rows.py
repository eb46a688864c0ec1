"""More rows of the same subject: a scenario's rows again and again, as one partition, group, topic or client has them.

In: rows of tables, how often, and in which way. Out: rows of tables. Names of exchanges and messages differ in each
copy, times and places in streams and logs go on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from tests.analyser.engine.rules.scenarios.build import Row
from wirewitness.analyser.tables.tables import ALL_TABLES

Rows = Mapping[str, Iterable[Mapping[str, Any]]]

# What happened, in each copy another.
_NAMES = re.compile(r"(exchange_id|message_id)$")
# Where it stands, in each copy further on.
_PLACES = re.compile(r"(packet|offset|packet_first|packet_last|high_watermark|sequence|generation|log_end|epoch)$")
# Who did it.
_WHO = re.compile(r"(flow_id|flow_before|duplicate_of|client_id|client_port|member_id|lsid|producer_id)$")
# To what.
_WHAT = re.compile(r"^(topic|partition|topic_filter|matching_filter|collection|shape_id|group_id|document_id)$")
# One row for each connection, or file.
_ONCE = ("flows", "mqtt_connections", "captures")
_ENDS = re.compile(r"^(ts_last.*|observed_until|ts_closed|ts_disconnect|client_silence_from)$")

# Way -> whether times go on, and which names differ.
WAYS: dict[str, tuple[bool, re.Pattern[str] | None]] = {
    "later": (True, None),
    "others": (False, _WHO),
    "others later": (True, _WHO),
    "places": (False, _WHAT),
}


def many(rows: Rows, copies: int, way: str) -> dict[str, list[Row]]:
    """The rows so many times, in one of WAYS."""
    held = {table: [dict(row) for row in some] for table, some in rows.items()}
    goes_on, differs = WAYS[way]
    step = _span(held) if goes_on else 1_000
    found: dict[str, list[Row]] = {}
    for table, some in held.items():
        kinds = {column.name: column.kind for column in ALL_TABLES[table].columns}
        if table in _ONCE and not (differs is _WHO and table != "captures"):
            found[table] = [_longer(row, kinds, step * (copies - 1)) for row in some]
        else:
            found[table] = [_copy(row, kinds, number, step, differs) for number in range(copies) for row in some]
    return found


def size(rows: Rows) -> int:
    """How many rows."""
    return sum(len([*some]) for some in rows.values())


def _span(rows: Mapping[str, list[Row]]) -> int:
    """From the first to the last time of what happens, and a second."""
    times = [row["ts"] for some in rows.values() for row in some if row.get("ts") is not None]
    return (max(times) - min(times) if times else 0) + 1_000_000_000


def _longer(row: Row, kinds: Mapping[str, str], more: int) -> Row:
    return {
        name: value + more if kinds[name] == "time" and _ENDS.match(name) and value is not None else value
        for name, value in row.items()
    }


def _copy(row: Row, kinds: Mapping[str, str], number: int, step: int, differs: re.Pattern[str] | None) -> Row:
    return {name: _again(name, value, kinds[name], number, step, differs) for name, value in row.items()}


def _again(name: str, value: Any, kind: str, number: int, step: int, differs: re.Pattern[str] | None) -> Any:
    if value is None or not number:
        return value
    if kind == "time":
        return value + number * step
    another = differs is not None and differs.search(name)
    if kind == "int64":
        if another:
            return value + number * 50
        return value + number * 100_000 if _PLACES.search(name) and value >= 0 else value
    if kind == "string" and (another or _NAMES.search(name)):
        head, dash, tail = value.rpartition("-")
        if _NAMES.search(name) and dash and (match := re.fullmatch(r"(\D*)(\d+)", tail)):
            return f"{head}{dash}{match[1]}{int(match[2]) + number * 10**12}"
        return f"{value}+{number}"
    return value
