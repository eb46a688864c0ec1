"""What opens behind a row of a comparison. In: the row and the pressed column; out: a page with its URL values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from wirewitness.app.dashboard.views.exchange_filters import client_text, exchange_filters
from wirewitness.app.dashboard.views.kafka_group_list import group_key
from wirewitness.reports.base.questions.apis import NOT_DECODED, NOT_TOLD

Row = Mapping[str, Any]
Door = tuple[str, dict[str, str | None]]
_COUNTS = ("findings", "exchanges", "there")
_OF_A, _OF_B = ("a", "before"), ("b", "after")


def where_is(row: Row, column: str) -> int:
    """0 or 1: the side of the pressed column if that has anything, else the other; the second for other columns."""
    there = [next((bool(row[f"{name}_{side}"]) for name in _COUNTS if f"{name}_{side}" in row), True) for side in "ab"]
    if there[0] != there[1]:
        return 0 if there[0] else 1
    return 0 if column in _OF_A or column.endswith("_a") else 1


def _finding(row: Row) -> Door:
    values = dict.fromkeys(("finding", "severity", "about", "subject"))
    return "findings", {**values, "rule": f"{row['code']} {row['name']}"}


def _exchanges(row: Row) -> Door:
    error = row.get("error")
    named = {"operation": row["operation"], "error": error}
    told = {name: None if value in (NOT_DECODED, NOT_TOLD) else value for name, value in named.items()}
    return "exchanges", exchange_filters(protocol_of=row["protocol"], status="error" if error else None, **told)


def _client(row: Row) -> Door:
    return "clients", {"who": client_text(row)}


def _setting(row: Row) -> Door:
    return "clients", {"who": row["clients"][0]}


def _topic(row: Row) -> Door:
    return "kafka-topics", {"topic": row["topic"], "cluster": None}


def _group(row: Row) -> Door:
    return "kafka-groups", {"group": group_key(row["cluster_id"], row["group_id"]), "partition": None}


# By the kinds of `reports.report.differences`.
DOORS: Mapping[str, Callable[[Row], Door]] = {
    "finding": _finding, "error": _exchanges, "latency": _exchanges, "rate": _exchanges, "client": _client,
    "version": _client, "setting": _setting, "group": _group, "topic": _topic,
}  # fmt: skip
