"""The tree of a message covers its bytes, for right messages and for any bytes; secrets and values stay inside."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import bson
import pytest
from bson.binary import Binary
from bson.int64 import Int64
from hypothesis import given
from hypothesis import strategies as st

from tests.support.mongo_messages import (
    CHECKSUM,
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
from wirewitness.dissectors.core.inspect import Asked, Inspected, Node
from wirewitness.dissectors.core.options import DecodeOptions
from wirewitness.dissectors.mongo.inspect import inspect

SHOWN, ALL = DecodeOptions(), DecodeOptions(payload=True)
PASSWORD = "correct horse battery staple"
VALUE = "a value of an application"
DOCUMENT = {"_id": bson.ObjectId(b"a" * 12), "name": VALUE, "tags": [1, {"x": VALUE}], "at": bson.Timestamp(5, 6)}


def check(tree: Inspected, size: int) -> None:
    """The top level covers the frame; inside, spans rise and do not overlap; hidden spans rise and are apart."""
    tiles(tree.nodes, 0, size, whole=True)
    at = 0
    for start, end, _ in tree.hidden:
        assert at <= start < end <= size
        at = end


def tiles(nodes: Sequence[Node], start: int, end: int, *, whole: bool) -> None:
    at = start
    for node in nodes:
        assert at <= node.start <= node.end <= end
        assert not whole or node.start == at
        tiles(node.children, node.start, node.end, whole=False)
        at = node.end
    assert not whole or at == end


def values(nodes: Sequence[Node], path: str = "") -> Iterator[tuple[str, Any]]:
    """(path, value) of all leaves."""
    for node in nodes:
        name = f"{path}/{node.name}"
        if node.children:
            yield from values(node.children, name)
        else:
            yield name, node.value


def visible_bytes(data: bytes, tree: Inspected) -> bytes:
    """What a hex dump still shows."""
    shown = bytearray(data)
    for start, end, _ in tree.hidden:
        shown[start:end] = b"." * (end - start)
    return bytes(shown)


FIND = op_msg(
    {"find": "orders", "filter": {"name": VALUE}, "limit": 3, "lsid": {"id": Binary(b"\1" * 16, 4)}, "$db": "shop"}
)
INSERT = op_msg({"insert": "orders", "$db": "shop"}, flags=CHECKSUM, sequences=[("documents", [DOCUMENT, DOCUMENT])])
REPLY = op_msg({"cursor": {"firstBatch": [DOCUMENT], "id": Int64(7), "ns": "shop.orders"}, "ok": 1.0}, 2, 1)
MESSAGES = [
    pytest.param(FIND, Asked("request", "find", "OP_MSG"), id="find"),
    pytest.param(INSERT, Asked("request", "insert", "OP_MSG"), id="insert"),
    pytest.param(REPLY, Asked("response", "find", "OP_MSG"), id="reply"),
    pytest.param(compressed(FIND, "zstd"), Asked("request", "find", "OP_MSG"), id="compressed"),
    pytest.param(op_query("d.a", {"x": VALUE}, selector={"y": 1}), Asked("request", "OP_QUERY", None), id="query"),
    pytest.param(op_reply([DOCUMENT, {"limit": VALUE}], 1), Asked("response", "OP_QUERY", "OP_REPLY"), id="documents"),
    pytest.param(op_insert("d.a", [DOCUMENT, {"n": VALUE}]), Asked("request", "OP_INSERT", None), id="op insert"),
    pytest.param(op_update("d.a", {"x": VALUE}, DOCUMENT), Asked("request", "OP_UPDATE", "OP_UPDATE"), id="op update"),
    pytest.param(op_delete("d.a", {"x": VALUE}), Asked("request", "OP_DELETE", "OP_DELETE"), id="op delete"),
    pytest.param(op_get_more("d.a", 5), Asked("request", "OP_GET_MORE", "OP_GET_MORE"), id="op get more"),
    pytest.param(op_kill_cursors([1, 2]), Asked("request", "OP_KILL_CURSORS", "OP_KILL_CURSORS"), id="op kill cursors"),
    pytest.param(
        message(2010, b"d\0find\0" + bson.encode({"find": "a", "filter": {"x": VALUE}}) + bson.encode({})),
        Asked("request", "find", "OP_COMMAND"), id="op command",
    ),
    pytest.param(
        message(2011, bson.encode({"value": VALUE, "ok": 1.0}) + bson.encode({})),
        Asked("response", "find", "OP_COMMANDREPLY"), id="op command reply",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("data", "asked"), MESSAGES)
def test_a_message_is_covered_and_values_of_applications_need_to_be_asked_for(data: bytes, asked: Asked) -> None:
    tree = inspect(data, asked, SHOWN)
    check(tree, len(data))
    assert tree.error is None
    assert VALUE.encode() not in visible_bytes(data, tree)
    assert VALUE not in [value for _, value in values(tree.nodes)]
    whole = inspect(data, asked, ALL)
    check(whole, len(data))
    assert whole.hidden == []
    held_values = bool({b"name", b"x", b"value"} & set(data.replace(b"\0", b" ").split())) or asked.operation == "find"
    assert (VALUE in [value for _, value in values(whole.nodes)]) == held_values


def test_the_fields_of_a_find() -> None:
    fields = dict(values(inspect(FIND, Asked("request", "find", "OP_MSG"), SHOWN).nodes))
    assert fields == {
        "/message_length": len(FIND),
        "/request_id": 1,
        "/response_to": 0,
        "/opcode": "OP_MSG",
        "/flag_bits": 0,
        "/section/kind": 0,
        "/section/document/find": "orders",
        "/section/document/filter/name": None,
        "/section/document/limit": 3,
        "/section/document/lsid/id": "01010101-0101-0101-0101-010101010101",
        "/section/document/$db": "shop",
    }


def test_what_is_in_a_compressed_message_is_shown_without_bytes() -> None:
    data = compressed(FIND, "snappy")
    tree = inspect(data, Asked("request", "find", "OP_MSG"), ALL)
    assert [(node.name, node.value) for node in tree.nodes[3:7]] == [
        ("opcode", "OP_COMPRESSED"), ("original_opcode", "OP_MSG"), ("uncompressed_size", len(FIND) - 16),
        ("compressor_id", "snappy"),
    ]  # fmt: skip
    assert ("/compressed_message/section/document/filter/name", VALUE) in list(values(tree.nodes))


TYPES = {
    "double": 1.5,
    "binary": b"\1\2",
    "regex": bson.Regex("^a", "i"),
    "code": bson.Code("f()"),
    "decimal": bson.Decimal128("1.20"),
    "long": Int64(1 << 40),
    "min": bson.MinKey(),
    "max": bson.MaxKey(),
    "null": None,
    "true": True,
    "date": bson.DatetimeMS(1),
    "far": bson.DatetimeMS(1 << 60),
}
TEXTS = {
    "double": 1.5, "binary": b"\1\2", "regex": "/^a/i", "code": "f()", "decimal": "1.20", "long": 1 << 40,
    "min": "MinKey", "max": "MaxKey", "null": None, "true": True, "date": "1970-01-01T00:00:00.001+00:00",
    "far": f"{1 << 60} ms",
}  # fmt: skip


def test_values_of_every_type() -> None:
    tree = inspect(op_msg({"ping": 1, "x": TYPES}), Asked("request", "ping", "OP_MSG"), SHOWN)
    prefix = "/section/document/x/"
    found = {path.removeprefix(prefix): value for path, value in values(tree.nodes) if path.startswith(prefix)}
    assert found == TEXTS


SECRETS = [
    pytest.param(op_msg({"saslStart": 1, "mechanism": "PLAIN", "payload": PASSWORD.encode()}), "saslStart", id="sasl"),
    pytest.param(op_msg({"saslContinue": 1, "payload": PASSWORD}), "saslContinue", id="payload as text"),
    pytest.param(op_msg({"payload": PASSWORD.encode(), "ok": 1.0}, 2, 1), "saslContinue", id="reply"),
    pytest.param(
        op_msg({"hello": 1, "speculativeAuthenticate": {"saslStart": 1, "payload": PASSWORD.encode()}}), "hello",
        id="speculative",
    ),
    pytest.param(op_query("d.$cmd", {"authenticate": 1, "key": PASSWORD}), "authenticate", id="authenticate"),
    pytest.param(op_msg({"createUser": "u", "pwd": PASSWORD}), "createUser", id="createUser"),
    pytest.param(op_msg({"updateUser": "u", "pwd": {"x": PASSWORD}}), "updateUser", id="inside a document"),
    pytest.param(op_msg({"copydb": 1, "key": PASSWORD, "nonce": PASSWORD}), "copydb", id="copydb"),
    pytest.param(op_msg({"find": "a", "filter": {"password": PASSWORD}}), "find", id="field of a document"),
    pytest.param(op_msg({"setParameter": 1, "ldapQueryPassword": PASSWORD}), "setParameter", id="parameter"),
    pytest.param(op_msg({"setParameter": 1, "awsSecretAccessKey": PASSWORD}), "setParameter", id="words in front"),
    pytest.param(op_msg({"update": "a", "updates": [{"u": {"api_key": PASSWORD}}]}), "update", id="key of an API"),
    pytest.param(compressed(op_msg({"createUser": "u", "pwd": PASSWORD}), "noop"), "createUser", id="compressed"),
    pytest.param(
        message(2013, b"\0\0\0\0\0" + bson.encode({"ping": 1}) + b"\2" + PASSWORD.encode() + b"\0"), "ping", id="token"
    ),
    pytest.param(op_msg({"saslStart": 1, "payload": PASSWORD.encode(), "options": "xxxx"})[:-4], "saslStart", id="cut"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "operation"), SECRETS)
def test_secrets_are_never_shown(data: bytes, operation: str) -> None:
    for options in (SHOWN, ALL):
        tree = inspect(data, Asked("request", operation, "OP_MSG"), options)
        check(tree, len(data))
        assert PASSWORD.encode() in data
        assert PASSWORD.encode() not in visible_bytes(data, tree)
        assert PASSWORD not in json.dumps(list(values(tree.nodes)), default=repr)
        assert any(kind == "secret" for _, _, kind in tree.hidden)


def test_what_applications_keep_with_a_user_is_shown_on_request() -> None:
    data = op_msg({"createUser": "u", "customData": {"badge": "hall-7"}, "roles": [], "$db": "admin"})
    for options, is_shown in ((SHOWN, False), (ALL, True)):
        tree = inspect(data, Asked("request", "createUser", "OP_MSG"), options)
        assert (b"hall-7" in visible_bytes(data, tree)) == is_shown
        assert ("hall-7" in json.dumps(list(values(tree.nodes)), default=repr)) == is_shown


ASKED = st.builds(
    Asked,
    st.sampled_from(["request", "response", None]),
    st.sampled_from(["find", "saslStart", "hello", "OP_QUERY", None, "Opcode 7"]),
    st.sampled_from(["OP_MSG", "OP_REPLY", None]),
)


@given(st.binary(max_size=120), ASKED, st.booleans())
def test_any_bytes(data: bytes, asked: Asked, payload: bool) -> None:
    check(inspect(data, asked, DecodeOptions(payload=payload)), len(data))


@given(
    st.sampled_from([parameter.values for parameter in MESSAGES]),
    st.lists(st.tuples(st.integers(min_value=0), st.integers(0, 255)), max_size=4),
    st.integers(min_value=0),
    st.booleans(),
)
def test_damaged_messages(case: Any, changes: list[tuple[int, int]], cut: int, payload: bool) -> None:
    whole, asked = case
    data = bytearray(whole)
    for place, value in changes:
        data[place % len(data)] = value
    kept = bytes(data[: len(data) - cut % 40])
    check(inspect(kept, asked, DecodeOptions(payload=payload)), len(kept))


def test_a_deep_document_has_a_tree_of_bounded_depth() -> None:
    document = bson.encode({})
    for _ in range(10_000):
        document = b"\x03a\0" + document
        document = (len(document) + 5).to_bytes(4, "little") + document + b"\0"
    data = op_msg(document)
    tree = inspect(data, Asked("request", "a", "OP_MSG"), ALL)
    depth, nodes = 0, tree.nodes
    while nodes:
        depth, nodes = depth + 1, nodes[-1].children
    assert 50 < depth < 150
    assert tree.error is None
