"""Cursors and transactions of the MongoDB samples, against what the drivers and the applications said of them.

Opened cursors, documents and getMore come from the drivers' monitoring; what was left open, committed or aborted from
what the applications did (MANIFEST).
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

import pytest

import wirewitness
from tests.conftest import SAMPLES
from tests.oracle.test_mongo_clients import COMPRESSED, ENTRIES, EVERY_SAMPLE, log_of

Row = dict[str, Any]


@cache
def tables(name: str) -> dict[str, list[Row]]:
    """Return mongo_cursors and mongo_transactions of a sample."""
    wanted = ("mongo_cursors", "mongo_transactions")
    with wirewitness.read(SAMPLES / name, tables=wanted) as analysis:
        return {table: analysis.arrow(table).to_pylist() for table in wanted}


def addresses(name: str) -> dict[str, str]:
    return {client["client"]: client["address"] for client in ENTRIES[name]["facts"]["client"]}


@EVERY_SAMPLE
def test_cursors_are_those_that_drivers_opened(name: str) -> None:
    rows = tables(name)["mongo_cursors"]
    log = log_of(name)
    opened = [one for one in log if one.cursor_id and one.command != "getMore"]
    assert {(row["client_address"], row["cursor_id"]) for row in rows} == {
        (one.address, one.cursor_id) for one in opened
    }
    further = [one for one in log if one.command == "getMore"]
    documents: Counter[str] = Counter()
    for one in (*opened, *further):
        documents[one.address] += one.returned or 0
    assert documents == sums(rows, "documents")
    asked = Counter(one.address for one in further if one.request_id)
    assert asked == sums(rows, "get_mores")


def sums(rows: list[Row], column: str) -> Counter[str]:
    """Return the sum of a column for each client."""
    found: Counter[str] = Counter()
    for row in rows:
        found[row["client_address"]] += row[column]
    return found


@EVERY_SAMPLE
def test_cursors_end_as_their_clients_ended_them(name: str) -> None:
    rows = tables(name)["mongo_cursors"]
    left = {
        (addresses(name)[fact["client"]], fact["cursor_id"]) for fact in ENTRIES[name]["facts"].get("left_open", ())
    }
    assert {(row["client_address"], row["cursor_id"]) for row in rows if row["ended_by"] is None} == left
    killed = Counter(one.address for one in log_of(name) if one.command == "killCursors")
    assert Counter(row["client_address"] for row in rows if row["ended_by"] == "killed") == killed


@pytest.mark.parametrize("fact", ENTRIES[COMPRESSED]["facts"]["transactions"], ids=lambda fact: str(fact["client"]))
def test_transactions_end_as_their_clients_ended_them(fact: dict[str, Any]) -> None:
    place = addresses(COMPRESSED)[fact["client"]]
    mine = [row for row in tables(COMPRESSED)["mongo_transactions"] if row["client_address"] == place]
    assert Counter(row["outcome"] for row in mine) == {"committed": fact["committed"], "aborted": fact["aborted"]}
    # One of the aborted ones met a write conflict.
    assert [row["error_code"] for row in mine if row["errors"]] == [112]


def test_a_transaction_that_was_left_is_open() -> None:
    rows = [row for row in tables(COMPRESSED)["mongo_transactions"] if row["outcome"] == "open"]
    assert [{"client_address": row["client_address"], "lsid": row["lsid"].replace("-", "")} for row in rows] == [
        {"client_address": addresses(COMPRESSED)[fact["client"]], "lsid": fact["lsid"]}
        for fact in ENTRIES[COMPRESSED]["facts"]["open_transactions"]
    ]
