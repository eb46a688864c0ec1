"""One MongoDB connection: what becomes of requests and replies.

Long, since all tests speak with one connection by the helpers of this file.
"""

from __future__ import annotations

import pickle
from typing import Any

import bson
import pytest
from bson.binary import Binary
from bson.int64 import Int64

from tests.dissectors.mongo.wire import MS, Wire
from tests.support.mongo_messages import (
    CHECKSUM,
    EXHAUST_ALLOWED,
    MORE_TO_COME,
    compressed,
    message,
    op_delete,
    op_get_more,
    op_insert,
    op_kill_cursors,
    op_msg,
    op_query,
    op_reply,
    op_update,
)
from wirewitness.dissectors.core.limits import Limits

OK = {"ok": 1.0}
LSID = {"id": Binary(bytes(range(16)), 4)}
FIND = {"find": "orders", "filter": {"status": "open"}, "lsid": LSID, "$db": "shop"}
BATCH = {"cursor": {"firstBatch": [{"a": 1}, {"a": 2}], "id": Int64(77), "ns": "shop.orders"}, "ok": 1.0}
HELLO = {
    "hello": 1,
    "$db": "admin",
    "compression": ["zstd", "zlib"],
    "client": {
        "application": {"name": "billing"},
        "driver": {"name": "PyMongo", "version": "4.20"},
        "os": {"type": "Linux", "name": "Linux"},
        "platform": "CPython 3.11",
    },
}
HELLO_REPLY = {"isWritablePrimary": True, "setName": "rs0", "maxWireVersion": 21, "compression": ["zlib"], "ok": 1.0}
NEWS = {"processId": bson.ObjectId(b"a" * 12), "counter": Int64(4)}
AWAITABLE = {"hello": 1, "topologyVersion": NEWS, "maxAwaitTimeMS": 10_000, "$db": "admin"}


def test_a_request_and_its_reply_are_an_exchange() -> None:
    wire = Wire().client(op_msg(FIND, 7)).server(op_msg(BATCH, 900, 7))
    assert wire.rows("exchanges", "operation", "version", "status", "error_code", "error_name") == [
        ("find", "OP_MSG", "ok", 0, "OK")
    ]
    assert wire.rows("messages", "role", "operation", "version", "correlation_id") == [
        ("request", "find", "OP_MSG", 7),
        ("response", "find", "OP_MSG", 900),
    ]
    assert wire.command("command", "database", "collection", "status", "latency_ms", "ok", "documents_returned") == (
        "find", "shop", "orders", "ok", 1.0, True, 2
    )  # fmt: skip
    assert wire.command("cursor_id", "cursor_exhausted", "lsid", "txn_number") == (
        77, False, "00010203-0405-0607-0809-0a0b0c0d0e0f", None
    )  # fmt: skip
    assert wire.command("query_shape") == '{"filter":{"status":"?string"}}'
    assert wire.remarks() == []


def test_pipelined_requests_pair_by_request_id() -> None:
    wire = Wire().client(op_msg(FIND, 1), op_msg({"ping": 1, "$db": "admin"}, 2))
    wire.server(op_msg(OK, 50, 2), op_msg(BATCH, 51, 1))
    assert wire.commands("command", "request_id", "latency_ms") == [("ping", 2, 1.0), ("find", 1, 3.0)]


def test_a_request_without_reply_is_unanswered() -> None:
    wire = Wire().client(op_msg(FIND, 1)).finish()
    assert wire.rows("exchanges", "status", "error_code", "response_bytes") == [("unanswered", None, None)]
    assert wire.command("status", "ok", "error_code", "latency_ms", "replies") == ("unanswered", None, None, None, 0)


def test_a_reply_without_request_is_an_orphan() -> None:
    wire = Wire().server(op_msg(BATCH, 9, 1)).finish()
    assert wire.rows("exchanges", "operation", "status", "request_offset") == [(None, "orphan", None)]
    assert wire.rows("messages", "operation", "error") == [(None, "the request is not in the capture")]
    assert wire.command("command", "documents_returned", "cursor_id", "request_id") == (None, 2, 77, 1)


def test_a_reply_may_stand_before_its_request_in_the_capture() -> None:
    wire = Wire().server(op_msg(BATCH, 9, 1)).client(op_msg(FIND, 1)).finish()
    assert wire.command("command", "status", "documents_returned") == ("find", "ok", 2)


def test_the_same_request_id_again_means_that_the_first_one_got_no_reply() -> None:
    wire = Wire().client(op_msg(FIND, 1), op_msg(FIND, 1)).server(op_msg(BATCH, 9, 1)).finish()
    assert wire.commands("status") == [("unanswered",), ("ok",)]


UNACKNOWLEDGED = {"insert": "log", "ordered": True, "writeConcern": {"w": 0}, "$db": "shop"}


@pytest.mark.parametrize(
    ("flags", "status"),
    [pytest.param(MORE_TO_COME, "one_way", id="moreToCome"), pytest.param(0, "one_way", id="w: 0, never answered")],
)
def test_unacknowledged_writes_get_no_reply(flags: int, status: str) -> None:
    wire = Wire().client(op_msg(UNACKNOWLEDGED, 1, flags=flags, sequences=[("documents", [{"a": 1}, {"a": 2}])]))
    wire.finish()
    assert wire.command("status", "unacknowledged", "documents_sent", "write_concern") == (
        status, True, 2, '{"w": 0}'
    )  # fmt: skip


def test_a_server_may_answer_what_wants_no_reply() -> None:
    wire = Wire().client(op_msg({"endSessions": [], "$db": "admin"}, 1, flags=MORE_TO_COME))
    wire.server(op_msg({"ok": 0.0, "code": 59, "codeName": "CommandNotFound"}, 9, 1)).finish()
    assert wire.commands("command", "status") == [("endSessions", "one_way")]
    assert wire.rows("messages", "role", "operation", "summary") == [
        ("request", "endSessions", "endSessions on admin"),
        ("response", "endSessions", "error 59 CommandNotFound"),
    ]
    assert wire.remarks() == ["unwanted_reply"]


def test_an_exhaust_stream_is_one_exchange() -> None:
    get_more = {"getMore": Int64(77), "collection": "orders", "$db": "shop"}

    def batch(count: int, cursor: int) -> dict[str, Any]:
        return {"cursor": {"nextBatch": [{"a": 1}] * count, "id": Int64(cursor), "ns": "shop.orders"}, "ok": 1.0}

    wire = Wire().client(op_msg(get_more, 5, flags=EXHAUST_ALLOWED))
    wire.server(op_msg(batch(3, 77), 100, 5, flags=MORE_TO_COME))
    assert wire.commands("status") == []
    wire.server(op_msg(batch(3, 77), 101, 100, flags=MORE_TO_COME), op_msg(batch(1, 0), 102, 101))
    assert wire.command("replies", "exhaust", "documents_returned", "latency_ms", "cursor_id", "cursor_exhausted") == (
        3, True, 7, 1.0, 77, True
    )  # fmt: skip
    assert wire.command("ts_response", "ts_last_response") == (2 * MS, 4 * MS)
    assert wire.rows("messages", "operation", "role") == [("getMore", "request")] + [("getMore", "response")] * 3
    assert wire.remarks() == []


def test_an_exhaust_stream_that_goes_on_is_told_at_the_end() -> None:
    wire = Wire().client(op_msg(AWAITABLE, 5, flags=EXHAUST_ALLOWED))
    wire.server(op_msg(HELLO_REPLY, 100, 5, flags=MORE_TO_COME), op_msg(HELLO_REPLY, 101, 100, flags=MORE_TO_COME))
    wire.finish()
    assert wire.command("awaitable", "exhaust", "replies", "latency_ms", "status") == (True, True, 2, None, "ok")
    assert wire.rows("exchanges", "awaitable", "status") == [(True, "ok")]


def test_an_awaitable_hello_has_no_latency() -> None:
    wire = Wire().client(op_msg(AWAITABLE, 5)).server(op_msg(HELLO_REPLY, 100, 5))
    assert wire.command("awaitable", "latency_ms", "await_time_ms", "ts_response") == (True, None, 10_000, 2 * MS)


def test_the_hello_names_client_and_server_of_later_commands() -> None:
    wire = Wire().client(op_msg(HELLO, 1)).server(op_msg(HELLO_REPLY, 100, 1))
    wire.client(op_msg(FIND, 2)).server(op_msg(BATCH, 101, 2))
    columns = ("driver", "driver_version", "app_name", "client_os", "client_platform")
    assert wire.commands(*columns) == [("PyMongo", "4.20", "billing", "Linux", "CPython 3.11")] * 2
    columns = ("server_role", "set_name", "max_wire_version", "compressors_offered", "compressors_agreed")
    assert wire.commands(*columns) == [("primary", "rs0", 21, "zstd,zlib", "zlib")] * 2
    assert wire.rows("exchanges", "client_id") == [("billing",)] * 2


@pytest.mark.parametrize(("sent", "told"), [("4.20|", "4.20"), ("7.8|2.12", "7.8|2.12"), ("|", None), ("", None)])
def test_versions_of_libraries_around_a_driver(sent: str, told: str | None) -> None:
    hello = HELLO | {"client": HELLO["client"] | {"driver": {"name": "PyMongo|x", "version": sent}}}
    wire = Wire().client(op_msg(hello, 1)).server(op_msg(HELLO_REPLY, 100, 1))
    assert wire.command("driver_version") == (told or None)


@pytest.mark.parametrize(
    ("reply", "role"),
    [
        pytest.param({"ismaster": True}, "standalone", id="standalone"),
        pytest.param({"ismaster": True, "msg": "isdbgrid"}, "mongos", id="mongos"),
        pytest.param({"isWritablePrimary": False, "secondary": True, "setName": "a"}, "secondary", id="secondary"),
        pytest.param({"ismaster": False, "arbiterOnly": True, "setName": "a"}, "arbiter", id="arbiter"),
        pytest.param({"ismaster": False, "setName": "a"}, "other", id="recovering"),
        pytest.param({"ismaster": False, "isreplicaset": True}, "other", id="not initiated"),
    ],
)
def test_roles_of_servers(reply: dict[str, Any], role: str) -> None:
    wire = Wire().client(op_query("admin.$cmd", {"ismaster": 1}, 1)).server(op_reply([{**reply, "ok": 1.0}], 1))
    assert wire.command("server_role", "opcode", "command") == (role, "OP_QUERY", "ismaster")
    assert wire.remarks() == []


@pytest.mark.parametrize("compressor", ["noop", "snappy", "zlib", "zstd"])
def test_compressed_messages_are_opened(compressor: str) -> None:
    request, reply = op_msg(FIND, 7), op_msg(BATCH, 900, 7)
    wire = Wire().client(compressed(request, compressor)).server(compressed(reply, compressor))
    assert wire.rows("messages", "operation", "version") == [("find", "OP_MSG"), ("find", "OP_MSG")]
    assert wire.command("command", "opcode", "compressor", "response_compressor", "documents_returned") == (
        "find", "OP_MSG", compressor, compressor, 2
    )  # fmt: skip
    assert wire.command("request_uncompressed_bytes", "response_uncompressed_bytes") == (len(request), len(reply))
    assert wire.command("request_bytes") == len(compressed(request, compressor))
    assert wire.remarks() == []


@pytest.mark.parametrize(
    "command",
    [
        pytest.param({"hello": 1, "$db": "admin"}, id="hello"),
        pytest.param({"isMaster": 1, "$db": "admin"}, id="legacy hello"),
        pytest.param({"saslStart": 1, "mechanism": "PLAIN", "payload": b"\0u\0p", "$db": "$external"}, id="saslStart"),
        pytest.param({"createUser": "u", "pwd": "p", "roles": [], "$db": "admin"}, id="createUser"),
    ],
)
def test_what_must_not_be_compressed(command: dict[str, Any]) -> None:
    wire = Wire().client(compressed(op_msg(command, 1), "zlib"))
    assert wire.remarks() == ["compressed_forbidden"]
    assert wire.server(compressed(op_msg(OK, 9, 1), "zlib")).remarks() == ["compressed_forbidden"], "servers may"


def test_a_secret_that_stands_in_place_of_a_command_is_no_collection() -> None:
    """Of a damaged document the first field may be any."""
    wire = Wire().client(op_msg({"pwd": "hush", "$db": "d"}, 1)).server(op_msg(OK, 9, 1))
    assert wire.command("command", "collection") == ("pwd", None)


ERRORS = [
    pytest.param(
        {"ok": 0.0, "code": 13, "codeName": "Unauthorized", "errmsg": "no"}, (False, 13, "Unauthorized"), id="command"
    ),
    pytest.param({"ok": 0.0, "code": 10107, "errmsg": "no"}, (False, 10107, "NotWritablePrimary"), id="no codeName"),
    pytest.param({"ok": 0, "errmsg": "no such command"}, (False, None, None), id="no code"),
    pytest.param(
        {"n": 0, "writeErrors": [{"index": 0, "code": 11000, "errmsg": "dup"}], "ok": 1.0},
        (True, 11000, "DuplicateKey"), id="write error",
    ),
    pytest.param(
        {"n": 1, "writeConcernError": {"code": 64, "codeName": "WriteConcernTimeout", "errmsg": "slow"}, "ok": 1.0},
        (True, 64, "WriteConcernTimeout"), id="write concern",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("reply", "expected"), ERRORS)
def test_errors(reply: dict[str, Any], expected: tuple[Any, ...]) -> None:
    wire = Wire().client(op_msg({"insert": "a", "$db": "d"}, 1)).server(op_msg(reply, 9, 1))
    assert wire.command("ok", "error_code", "error_name") == expected
    assert wire.command("status", "error_message") == ("error", None)  # errmsg repeats values of documents
    assert wire.rows("exchanges", "status", "error_code", "error_name") == [("error", *expected[1:])]


def test_several_write_errors() -> None:
    errors = [{"index": i, "code": code, "errmsg": "x"} for i, code in enumerate([11000, 121, 11000])]
    reply = {"n": 4, "writeErrors": errors, "errorLabels": ["RetryableWriteError"], "ok": 1.0}
    wire = Wire().client(op_msg({"insert": "a", "$db": "d"}, 1)).server(op_msg(reply, 9, 1))
    assert wire.command("write_errors", "write_error_codes", "write_error_names", "error_labels", "n") == (
        3, [121, 11000], "DocumentValidationFailure,DuplicateKey", "RetryableWriteError", 4
    )  # fmt: skip


COUNTS = [
    pytest.param(
        {"update": "a", "updates": [{"q": {"x": 1}, "u": {"$set": {"y": 2}}, "upsert": True}]},
        {"n": 1, "nModified": 0, "upserted": [{"index": 0, "_id": 5}], "ok": 1.0},
        {"n": 1, "n_modified": 0, "upserted": 1, "documents_sent": 1}, id="update",
    ),
    pytest.param(
        {"findAndModify": "a", "query": {"x": 1}, "update": {"$inc": {"n": 1}}},
        {"value": {"_id": 1}, "lastErrorObject": {"n": 1, "updatedExisting": True}, "ok": 1.0},
        {"n": 1, "documents_returned": 1}, id="findAndModify",
    ),
    pytest.param({"distinct": "a", "key": "x"}, {"values": [1, 2, 3], "ok": 1.0}, {"documents_returned": 3},
                 id="distinct"),
    pytest.param({"count": "a"}, {"n": 12, "ok": 1.0}, {"n": 12, "collection": "a"}, id="count"),
    pytest.param(
        {"bulkWrite": 1, "ops": [{"insert": 0, "document": {}}], "nsInfo": [{"ns": "d.a"}]},
        {"nInserted": 1, "nMatched": 2, "nModified": 2, "nDeleted": 0, "nUpserted": 0, "nErrors": 0,
         "cursor": {"id": Int64(0), "firstBatch": [], "ns": "admin.$cmd.bulkWrite"}, "ok": 1.0},
        {"n": 3, "n_modified": 2, "write_errors": 0, "documents_sent": 1, "database": "d", "collection": "a"},
        id="bulkWrite",
    ),
    pytest.param(
        {"bulkWrite": 1, "ops": [{"insert": 0, "document": {}}] * 3, "nsInfo": [{"ns": "d.a"}, {"ns": "d.b"}]},
        {"nInserted": 1, "nMatched": 0, "nModified": 0, "nDeleted": 0, "nUpserted": 0, "nErrors": 1,
         "cursor": {"id": Int64(0), "firstBatch": [
             {"ok": 1.0, "idx": 0, "n": 1}, {"ok": 0.0, "idx": 1, "n": 0, "code": 11000, "errmsg": "E11000"}]},
         "ok": 1.0},
        {"n": 1, "write_errors": 1, "write_error_codes": [11000], "write_error_names": "DuplicateKey",
         "error_code": 11000, "status": "error", "ok": True, "database": "d", "collection": None,
         "untried": 1},
        id="bulkWrite that stops",
    ),
    pytest.param(
        {"bulkWrite": 1, "ops": [{"delete": 0, "filter": {}}], "nsInfo": [{"ns": "d.a"}, {"ns": "e.a"}]},
        {"nErrors": 2, "cursor": {"id": Int64(9), "firstBatch": []}, "ok": 1.0},
        {"write_errors": 2, "write_error_codes": [], "error_code": None, "status": "error"},
        id="bulkWrite whose errors come in a later batch",
    ),
    pytest.param({"killCursors": "a", "cursors": [Int64(5), Int64(6)]}, {"cursorsKilled": [], "ok": 1.0},
                 {"cursors_killed": [5, 6], "collection": "a"}, id="killCursors"),
    pytest.param({"logApplicationMessage": "what it did"}, {"ok": 1.0},
                 {"collection": None, "command": "logApplicationMessage"}, id="a text"),
    pytest.param({"getLog": "global"}, {"ok": 1.0}, {"collection": None, "command": "getLog"}, id="no collection"),
    pytest.param({"aggregate": 1, "pipeline": [], "cursor": {"batchSize": 7}}, {"ok": 1.0},
                 {"collection": None, "batch_size": 7, "tailable": False}, id="aggregate of a database"),
    pytest.param(
        {"find": "a", "sort": {"x": 1}, "limit": 3, "skip": 2, "batchSize": 9, "maxTimeMS": 50, "noCursorTimeout": True,
         "readConcern": {"level": "majority"}, "$readPreference": {"mode": "nearest"}, "txnNumber": Int64(4),
         "startTransaction": True, "autocommit": False},
        {"ok": 1.0},
        {"has_sort": True, "has_projection": False, "limit": 3, "skip": 2, "batch_size": 9, "max_time_ms": 50,
         "no_cursor_timeout": True, "read_concern": "majority", "read_preference": "nearest", "txn_number": 4,
         "start_transaction": True, "autocommit": False, "tailable": False}, id="options of find",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("command", "reply", "expected"), COUNTS)
def test_what_commands_and_replies_tell(
    command: dict[str, Any], reply: dict[str, Any], expected: dict[str, Any]
) -> None:
    wire = Wire().client(op_msg({**command, "$db": "d"}, 1)).server(op_msg(reply, 9, 1))
    assert dict(zip(expected, wire.commands(*expected)[0], strict=True)) == expected


LEGACY = [
    pytest.param(
        op_query("shop.orders", {"$query": {"a": 1}, "$orderby": {"b": -1}}, 1, flags=4, wanted=50, selector={"b": 1}),
        [op_reply([{"b": 1}, {"b": 2}], 1, cursor_id=9)],
        {"command": "find", "opcode": "OP_QUERY", "database": "shop", "collection": "orders", "batch_size": 50,
         "query_shape": '{"filter":{"a":"?number"},"sort":{"b":-1},"projection":{"b":true}}',
         "read_preference": "secondaryPreferred", "documents_returned": 2, "cursor_id": 9, "status": "ok"}, id="query",
    ),
    pytest.param(
        op_query("shop.orders", {"a": 1}, 1), [op_reply([{"$err": "x", "code": 50}], 1, flags=2)],
        {"status": "error", "error_code": 50, "error_name": "MaxTimeMSExpired", "documents_returned": 0}, id="failure",
    ),
    pytest.param(
        op_query("shop.orders", {"a": 1}, 1), [op_reply([{"ok": 0, "n": 5}], 1)],
        {"status": "ok", "ok": None, "n": None, "documents_returned": 1}, id="a document with ok",
    ),
    pytest.param(
        op_get_more("shop.orders", 9, 20), [op_reply([], 1, flags=1)],
        {"command": "getMore", "cursor_id": 9, "error_code": 43, "error_name": "CursorNotFound"}, id="get more",
    ),
    pytest.param(
        op_query("shop.$cmd", {"$query": {"count": "orders", "query": {"a": 1}}, "$readPreference": {"mode": "x"}}, 1),
        [op_reply([{"n": 4, "ok": 1.0}], 1)],
        {"command": "count", "collection": "orders", "n": 4, "query_shape": '{"query":{"a":"?number"}}'}, id="command",
    ),
    pytest.param(
        op_insert("shop.orders", [{"a": 1}, {"a": 2}]), [],
        {"command": "insert", "status": "one_way", "documents_sent": 2, "unacknowledged": True}, id="insert",
    ),
    pytest.param(
        op_update("shop.orders", {"a": 1}, {"$set": {"b": 2}}, flags=2), [],
        {"command": "update",
         "query_shape": '{"updates":[{"q":{"a":"?number"},"u":{"$set":{"b":"?number"}},"multi":true}]}'}, id="update",
    ),
    pytest.param(
        op_delete("shop.orders", {"a": 1}, flags=1), [],
        {"command": "delete", "query_shape": '{"deletes":[{"q":{"a":"?number"},"limit":1}]}'}, id="delete",
    ),
    pytest.param(op_kill_cursors([5, -6]), [], {"command": "killCursors", "cursors_killed": [5, -6]}, id="kill"),
]  # fmt: skip


@pytest.mark.parametrize(("request_", "replies", "expected"), LEGACY)
def test_legacy_opcodes_fill_the_same_columns(request_: bytes, replies: list[bytes], expected: dict[str, Any]) -> None:
    wire = Wire().client(request_).server(*replies)
    assert dict(zip(expected, wire.commands(*expected)[0], strict=True)) == expected
    assert wire.remarks() == ["legacy_opcode"]


def test_legacy_and_new_finds_have_one_shape() -> None:
    wire = Wire().client(op_query("shop.orders", {"status": "x"}, 1)).server(op_reply([], 1))
    wire.client(op_msg({**FIND, "filter": {"status": "y"}}, 2)).server(op_msg(BATCH, 9, 2))
    (first,), (second,) = wire.commands("shape_id")
    assert first == second is not None


def test_a_legacy_exhaust_cursor_ends_with_cursor_id_0() -> None:
    wire = Wire().client(op_query("shop.orders", {}, 1, flags=1 << 6))
    wire.server(op_reply([{"a": 1}], 1, 100, cursor_id=5), op_reply([{"a": 2}], 100, 101, cursor_id=5))
    assert wire.commands("status") == []
    wire.server(op_reply([{"a": 3}], 101, 102))
    assert wire.command("replies", "documents_returned", "exhaust", "cursor_exhausted") == (3, 3, True, True)


def test_op_command_of_old_servers() -> None:
    arguments, metadata = bson.encode({"find": "a", "filter": {"x": 1}}), bson.encode({"$ssm": 1})
    reply = [bson.encode({"ok": 1.0, "n": 3}), bson.encode({"$meta": 1})]
    for parts, answer in ((arguments + metadata, reply[0] + reply[1]), (metadata + arguments, reply[1] + reply[0])):
        wire = Wire().client(message(2010, b"shop\0find\0" + parts, 1)).server(message(2011, answer, 2, 1))
        assert wire.command("command", "database", "collection", "n", "ok") == ("find", "shop", "a", 3, True)


def test_a_right_and_a_wrong_checksum() -> None:
    request, reply = op_msg(FIND, 7, flags=CHECKSUM), op_msg(BATCH, 9, 7, flags=CHECKSUM)
    wire = Wire().client(request).server(reply)
    assert wire.command("checksum_ok", "documents_returned") == (True, 2)
    assert wire.remarks() == []
    wire = Wire().client(request[:-1] + bytes([request[-1] ^ 1])).server(reply)
    assert wire.command("checksum_ok", "command", "status") == (False, "find", "ok")
    assert wire.remarks() == ["checksum_wrong"]


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        pytest.param(1 << 2, "unknown_required_flag", id="required"),
        pytest.param(1 << 17, "unknown_optional_flag", id="optional"),
    ],
)
def test_unknown_flags_are_told_and_the_message_is_read(flags: int, code: str) -> None:
    wire = Wire().client(op_msg(FIND, 7, flags=flags)).server(op_msg(BATCH, 9, 7))
    assert wire.command("command", "documents_returned") == ("find", 2)
    assert wire.remarks() == [code]


def test_sections_may_come_in_any_order() -> None:
    body = {"update": "a", "$db": "d"}
    updates = [{"q": {"x": i}, "u": {"$set": {"y": i}}} for i in range(3)]
    wire = Wire().client(op_msg(body, 1, sequences=[("updates", updates)], sequences_first=True))
    wire.server(op_msg({"n": 3, "ok": 1.0}, 2, 1))
    assert wire.command("command", "collection", "documents_sent", "query_shape") == (
        "update", "a", 3, '{"updates":[{"q":{"x":"?number"},"u":{"$set":{"y":"?number"}}}]}'
    )  # fmt: skip


def test_an_unknown_opcode_is_kept_as_a_message() -> None:
    wire = Wire().client(message(2999, b"what", 1)).finish()
    assert wire.rows("messages", "operation", "version", "error") == [
        ("Opcode 2999", "Opcode 2999", "Opcode 2999 is not known")
    ]
    assert wire.remarks() == ["unknown_opcode"]


def test_a_cut_message_keeps_what_was_there() -> None:
    request = op_msg({"find": "a", "$db": "d", "filter": {"x": "y" * 500}}, 1)
    wire = Wire().client(request[:100], complete=False).finish()
    assert wire.rows("messages", "operation", "complete", "error") == [
        ("find", False, "cut: the rest of this message is not in the capture")
    ]
    assert wire.command("command", "database", "collection", "status") == ("find", "d", "a", "unanswered")
    assert wire.remarks() == []


def test_limits_of_what_waits() -> None:
    wire = Wire(Limits(max_outstanding=3)).client(op_msg(FIND, 1)).server(op_msg(BATCH, 9, 1))
    wire.client(*(op_msg(FIND, number) for number in range(2, 7)))
    assert wire.commands("status") == [("ok",), (None,), (None,)], "replies may come"
    assert wire.remarks() == ["outstanding_requests"], "said once"


def test_a_decoder_can_move_to_another_process() -> None:
    wire = Wire().client(op_msg(HELLO, 1)).server(op_msg(HELLO_REPLY, 2, 1)).client(op_msg(FIND, 3))
    wire.decoder = pickle.loads(pickle.dumps(wire.decoder))
    wire.server(op_msg(BATCH, 9, 3))
    assert wire.commands("command", "app_name", "status") == [("hello", "billing", "ok"), ("find", "billing", "ok")]
