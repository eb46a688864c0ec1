"""Cursors and transactions of MongoDB, put together from commands on any connection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.support.rows import connection_from_rows
from wirewitness.analyser.mongo.facts.stage import add_mongo_facts

MS = 1_000_000
SESSION = "0d9c2d5e-0000-4000-8000-000000000001"
Row = dict[str, Any]


def made(table: str, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    """The columns of the table that the stage makes of these commands, which come a millisecond after each other."""
    commands = []
    for number, row in enumerate(rows):
        commands.append(
            {
                "exchange_id": f"x{number}", "flow_id": "f1", "ts": number * MS, "ts_response": number * MS + MS // 2,
                "ts_last_response": number * MS + MS // 2, "server_address": "10.0.0.2", "server_port": 27017,
                "client_address": "10.0.0.1", "client_port": 50000, "database": "shop", "status": "ok", "ok": True,
                "opcode": "OP_MSG", "replies": 1, "request_id": number, "response_bytes": 100, **row,
            }
        )  # fmt: skip
        if commands[-1]["status"] == "unanswered":
            commands[-1].update(ts_response=None, ts_last_response=None, ok=None)
    con = connection_from_rows({"mongo_commands": commands})
    add_mongo_facts(con)
    found = con.sql(f"SELECT {', '.join(columns)} FROM {table} ORDER BY ts").fetchall()
    con.close()
    return found


def find(**more: Any) -> Row:
    return {"command": "find", "collection": "orders", "cursor_id": 7, "cursor_exhausted": False,
            "documents_returned": 10, "shape_id": "s", **more}  # fmt: skip


def get_more(**more: Any) -> Row:
    return {"command": "getMore", "collection": "orders", "cursor_id": 7, "documents_returned": 10,
            "cursor_exhausted": False, **more}  # fmt: skip


KILL = {"command": "killCursors", "cursors_killed": [7]}
FAILED = {"status": "error", "ok": False, "error_code": 43, "error_name": "CursorNotFound", "documents_returned": None}
CURSOR = ("exchange_id", "get_mores", "documents", "ended_by", "ended_exchange_id", "error_name")
CURSORS = [
    pytest.param([find()], [("x0", 0, 10, None, None, None)], id="open"),
    pytest.param(
        [find(), get_more(), get_more(documents_returned=3, cursor_exhausted=True)],
        [("x0", 2, 23, "exhausted", "x2", None)], id="exhausted",
    ),
    pytest.param([find(), get_more(), KILL], [("x0", 1, 20, "killed", "x2", None)], id="killed"),
    pytest.param(
        [find(), KILL, get_more(**FAILED)], [("x0", 1, 10, "killed", "x1", None)], id="used after it was killed"
    ),
    pytest.param(
        [find(), get_more(**FAILED)], [("x0", 1, 10, "error", "x1", "CursorNotFound")], id="ended by an error"
    ),
    pytest.param(
        [find(), get_more(**{**FAILED, "error_code": 50}), get_more()], [("x0", 2, 20, None, None, None)],
        id="an error that it survived",
    ),
    pytest.param(
        [find(), get_more(status="unanswered", documents_returned=None)], [("x0", 1, 10, None, None, None)],
        id="unanswered",
    ),
    pytest.param(
        [get_more(), get_more(cursor_exhausted=True)], [(None, 2, 20, "exhausted", "x1", None)], id="opened before"
    ),
    pytest.param(
        [find(), get_more(cursor_exhausted=True), find(), KILL],
        [("x0", 1, 20, "exhausted", "x1", None), ("x2", 0, 10, "killed", "x3", None)], id="an id that is used again",
    ),
    pytest.param(
        [find(cursor_id=None, cursor_exhausted=True), {"command": "ping"}], [], id="all in the first batch"
    ),
    pytest.param(
        [find(), find(server_port=27018), KILL],
        [("x0", 0, 10, "killed", "x2", None), ("x1", 0, 10, None, None, None)], id="two servers",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("commands", "expected"), CURSORS)
def test_cursors(commands: list[Row], expected: list[tuple[Any, ...]]) -> None:
    assert made("mongo_cursors", CURSOR, commands) == expected


def test_a_cursor_goes_over_several_connections() -> None:
    opened = find(
        no_cursor_timeout=True, batch_size=10, lsid=SESSION, driver="PyMongo", driver_version="4.2", query_shape="{}"
    )
    commands = [opened, get_more(flow_id="f2"), get_more(flow_id="f3", cursor_exhausted=True)]
    columns = ("cursor_id", "connections", "flow_id", "command", "shape_id", "batch_size", "lsid", "driver",
               "driver_version", "database", "no_cursor_timeout", "response_bytes", "last_exchange_id",
               "epoch_ns(ts_ended) - epoch_ns(ts_opened)")  # fmt: skip
    assert made("mongo_cursors", columns, commands) == [
        (7, 3, "f1", "find", "s", 10, SESSION, "PyMongo", "4.2", "shop", True, 300, "x2", 2 * MS + MS // 2)
    ]


def step(command: str, **more: Any) -> Row:
    return {"command": command, "collection": None if command.endswith("Transaction") else "orders", "lsid": SESSION,
            "txn_number": 4, "autocommit": False, **more}  # fmt: skip


BEGIN, COMMIT, ABORT = step("insert", start_transaction=True), step("commitTransaction"), step("abortTransaction")
CONFLICT = {"status": "error", "ok": False, "error_code": 112, "error_name": "WriteConflict",
            "error_labels": "TransientTransactionError"}  # fmt: skip
TRANSACTION = ("outcome", "commands", "errors", "error_name", "commit_attempts", "ended_exchange_id")
TRANSACTIONS = [
    pytest.param([BEGIN, step("find"), COMMIT], ("committed", 2, 0, None, 1, "x2"), id="committed"),
    pytest.param([BEGIN, ABORT], ("aborted", 1, 0, None, 0, "x1"), id="aborted"),
    pytest.param([BEGIN], ("open", 1, 0, None, 0, None), id="open"),
    pytest.param([step("find"), COMMIT], ("committed", 1, 0, None, 1, "x1"), id="begun before the capture"),
    pytest.param(
        [BEGIN, step("update", **CONFLICT), ABORT], ("aborted", 2, 1, "WriteConflict", 0, "x1"), id="ended by an error"
    ),
    pytest.param(
        [BEGIN, step("insert", status="error", write_errors=1, error_code=11000, error_name="DuplicateKey")],
        ("aborted", 2, 1, "DuplicateKey", 0, "x1"), id="ended by a write error",
    ),
    pytest.param([BEGIN, {**COMMIT, "status": "unanswered"}], ("unknown", 1, 0, None, 1, None), id="commit unanswered"),
    pytest.param(
        [BEGIN, {**COMMIT, "status": "error", "error_code": 64, "error_name": "WriteConcernTimeout"}],
        ("unknown", 1, 1, "WriteConcernTimeout", 1, None), id="commit without majority",
    ),
    pytest.param(
        [BEGIN, {**COMMIT, "status": "unanswered"}, COMMIT], ("committed", 1, 0, None, 2, "x2"), id="commit again"
    ),
    pytest.param(
        [BEGIN, {**COMMIT, "status": "error", "ok": False, "error_code": 251, "error_name": "NoSuchTransaction"}],
        ("aborted", 1, 1, "NoSuchTransaction", 1, "x1"), id="commit of what is gone",
    ),
    pytest.param(
        [BEGIN, {"command": "insert", "lsid": SESSION, "txn_number": 5}], ("aborted", 1, 0, None, 0, None),
        id="the session went on",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("commands", "expected"), TRANSACTIONS)
def test_transactions(commands: list[Row], expected: tuple[Any, ...]) -> None:
    assert made("mongo_transactions", TRANSACTION, commands) == [expected]


def test_retryable_writes_are_no_transactions() -> None:
    assert made("mongo_transactions", TRANSACTION, [{"command": "insert", "lsid": SESSION, "txn_number": 4}]) == []


def test_what_is_known_of_a_transaction() -> None:
    commands = [
        {**BEGIN, "read_concern": "snapshot", "driver": "PyMongo"}, step("find", collection="items", flow_id="f2"),
        {**COMMIT, "write_concern": '{"w": "majority"}'},
    ]  # fmt: skip
    columns = ("lsid", "txn_number", "exchange_id", "duration_ms", "command_names", "namespaces", "read_concern",
               "write_concern", "connections", "driver", "server_port", "last_exchange_id")  # fmt: skip
    assert made("mongo_transactions", columns, commands) == [
        (SESSION, 4, "x0", 2.5, "find,insert", "shop.items,shop.orders", "snapshot", '{"w": "majority"}', 2, "PyMongo",
         27017, "x2")
    ]  # fmt: skip


HOSTS = {"command": "hello", "server_role": "primary", "set_name": "rs0", "advertised_hosts": "a:1,b:1"}


def test_a_server_has_a_row_for_each_period_in_which_it_says_the_same() -> None:
    columns = ("server_role", "advertised_hosts", "hellos", "exchange_id", "epoch_ns(ts_until)")
    rows = [
        HOSTS,
        HOSTS,
        {**HOSTS, "server_role": "secondary"},
        {"command": "find"},
        HOSTS,
        {**HOSTS, "status": "error"},
    ]
    assert made("mongo_servers", columns, rows) == [
        ("primary", "a:1,b:1", 2, "x0", 2 * MS + MS // 2),
        ("secondary", "a:1,b:1", 1, "x2", 4 * MS + MS // 2),
        ("primary", "a:1,b:1", 1, "x4", None),
    ]


def test_what_a_transaction_wrote() -> None:
    columns = ("namespaces", "namespaces_written", "document_ids", "filters_written")
    own = {"lsid": SESSION, "txn_number": 1, "autocommit": False}
    rows = [
        {"command": "find", "collection": "stock", "document_ids": [5], "literals_id": "f", **own},
        {"command": "insert", "collection": "orders", "document_ids": [9, 7], **own},
        {"command": "insert", "collection": "orders", "document_ids": [7], **own},
        {"command": "update", "collection": "stock", "literals_id": "a1", **own},
        {"command": "delete", "collection": "carts", "literals_id": "b2", "status": "error", **own},
    ]
    expected = ("shop.carts,shop.orders,shop.stock", "shop.orders,shop.stock", [7, 9], "update a1")
    assert made("mongo_transactions", columns, rows) == [expected]


MOST = 2**63 - 1


@pytest.mark.parametrize("number", [MOST, -(2**63)])
def test_numbers_at_the_ends_of_int64_cost_no_table(number: int) -> None:
    odd = {"txn_number": number, "lsid": SESSION, "autocommit": False, "documents_returned": number}
    rows = [find(response_bytes=MOST, **odd), find(response_bytes=MOST, **odd), find(lsid=SESSION, txn_number=5)]
    assert made("mongo_transactions", ["lsid"], rows) == [(SESSION,)]
    assert {*made("mongo_cursors", ["cursor_id"], rows)} == {(7,)}
