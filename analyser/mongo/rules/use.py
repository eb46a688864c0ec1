"""What rules over `mongo_client_commands` and its like share: pace, share of the server, words, findings.

In: rows of these tables as dicts. Out: numbers, findings.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from wirewitness.analyser.base.severity import Confidence, Severity
from wirewitness.analyser.base.times import NS_PER_MS, NS_PER_S
from wirewitness.analyser.engine.rules.evidence import Proof, evidence_of_ids
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row
from wirewitness.analyser.engine.rules.rule import Rule
from wirewitness.analyser.mongo.rules.rows import client_key, client_numbers, namespace

USE = "mongo_client_commands"
USE_COLUMNS = (
    "ts", "ts_last", "server_address", "server_port", "client_address", "app_name", "driver", "driver_version",
    "database", "collection", "command", "shape_id", "query_shape", "commands", "succeeded", "exchange_id",
    "last_exchange_id",
)  # fmt: skip
SERVER_KEY = ("server_address", "server_port")
QUERIES = ("find", "aggregate", "count", "distinct")
# What a program does with its data; all else belongs to connections, to watching, to administration.
DATA = (*QUERIES, "insert", "update", "delete", "findAndModify", "findandmodify", "bulkWrite", "getMore", "mapReduce")
# What a program does before it works.
PREPARES = (
    "createIndexes", "listCollections", "listIndexes", "listDatabases", "create", "collStats", "dbStats",
)  # fmt: skip
# Conditions by which a filter looks for what is due, and does not name what it wants.
_SEARCHES = ('"$lt', '"$gt', '"$exists"', '"$ne"', '"$regex"', '"$nin"')


def every_ms(row: Row) -> float:
    """The time between two of these commands, on the average; 0 for one alone."""
    return float(((row["ts_last"] or row["ts"]) - row["ts"]) / NS_PER_MS / max(row["commands"] - 1, 1))


def span_s(row: Row) -> float:
    """From the first to the last of them."""
    return float(((row["ts_last"] or row["ts"]) - row["ts"]) / NS_PER_S)


def names_documents(row: Row) -> bool:
    """Does its filter name what it wants, with other values each time? A search for what is due does not."""
    shape = row["query_shape"] or ""
    return row["same"] * 2 < row["commands"] and not any(word in shape for word in _SEARCHES)


def compares_and_sets(shape: str | None) -> bool:
    """Does an update ask for the old value of a field that it sets, as for a lease, a lock or a version? It matches
    nothing where somebody else was first, or holds it."""
    try:
        updates = json.loads(shape or "")["updates"]
        asked = {name for one in updates for name in one["q"]}
        set_to = {name for one in updates for changed in one["u"].values() for name in changed}
    except (ValueError, TypeError, KeyError, AttributeError):  # cut, or something else than an update
        return False
    return bool(asked & set_to - {"_id"})


def client_of(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """The application of a row."""
    return tuple(row[name] for name in ("client_address", "app_name", "driver"))


def is_data(row: Row) -> bool:
    """Is it work on data?"""
    return row["command"] in DATA


class Shares:
    """Of the data commands of a server and of their time, what part a row makes."""

    def __init__(self, every: Iterable[Row]) -> None:
        work = [row for row in every if is_data(row)]
        self._totals = {way: sum(row[way] or 0 for row in work) for way in ("commands", "latency_sum_ms")}

    def of(self, row: Row) -> float:
        """Its part of either, whichever is larger."""
        return float(max((row[way] or 0) / max(total, 1e-9) for way, total in self._totals.items()))


def use_finding(
    rule: Rule,
    rows: Sequence[Row],
    *,
    severity: Severity,
    title: str,
    sentence: str,
    next_step: str,
    numbers: Mapping[str, object],
    confidence: Confidence | None = None,
) -> Finding:
    """A finding about one application, proved by the first and last command of these rows."""
    first = rows[0]
    return rule.finding(
        severity=severity,
        confidence=confidence,
        provisional=True,
        subject={**client_key(first), "where": namespace(first), "command": first["command"]},
        title=title,
        sentence=sentence,
        next_step=next_step,
        proof=Proof(
            min(row["ts"] for row in rows),
            max(row["ts_last"] or row["ts"] for row in rows),
            evidence_of_ids(one for row in rows for one in (row["exchange_id"], row["last_exchange_id"])),
        ),
        numbers={
            **client_key(first),
            "where": namespace(first),
            "command": first["command"],
            "shape_id": first["shape_id"],
            "query_shape": first["query_shape"],
            **numbers,
            "clients": [client_numbers(first, commands=sum(row["commands"] for row in rows))],
        },
    )
