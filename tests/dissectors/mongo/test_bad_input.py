"""Broken, hostile and absurd messages: reported, bounded, and what follows goes on."""

from __future__ import annotations

import struct
import tracemalloc
import zlib

import bson
import pytest
import snappy
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from tests.dissectors.mongo.wire import Wire
from tests.support.mongo_messages import COMPRESSOR_IDS, compressed, message, op_msg, op_reply, sequence
from tests.support.shares import examples
from tests.support.timing import takes_less_than
from wirewitness.dissectors.core.limits import MIB, Limits
from wirewitness.dissectors.core.options import DecodeOptions

PING = op_msg({"ping": 1, "$db": "admin"}, 2)
PONG = op_msg({"ok": 1.0}, 3, 2)


def nested(levels: int, kind: bytes = b"\x03") -> bytes:
    """A document that holds one that holds one ..."""
    document = bson.encode({})
    for _ in range(levels):
        document = struct.pack("<i", len(document) + 8) + kind + b"0\0" + document + b"\0"
    return document


def section(kind: int, content: bytes) -> bytes:
    return message(2013, b"\0\0\0\0" + bytes([kind]) + content)


BROKEN = [
    pytest.param(message(2013, b"\0\0\0"), "malformed_message", id="flags cut"),
    pytest.param(message(2013, b"\0\0\0\0"), "malformed_message", id="no section"),
    pytest.param(section(0, b""), "malformed_message", id="no document"),
    pytest.param(section(0, struct.pack("<i", -5) + b"\0"), "malformed_message", id="negative size of a document"),
    pytest.param(section(0, struct.pack("<i", 2**31 - 1) + b"\0"), "malformed_message", id="absurd size"),
    pytest.param(section(0, struct.pack("<i", 4) + b"\0"), "malformed_message", id="size below the least"),
    pytest.param(section(1, struct.pack("<i", 2**31 - 1) + b"a\0"), "malformed_message", id="sequence too long"),
    pytest.param(section(1, struct.pack("<i", -1) + b"a\0"), "malformed_message", id="negative sequence"),
    pytest.param(section(1, struct.pack("<i", 8) + b"abcd"), "malformed_message", id="sequence without name's end"),
    pytest.param(section(1, sequence("a", [{}])[1:]), "malformed_message", id="no body"),
    pytest.param(section(3, bson.encode({})), "malformed_message", id="unknown kind"),
    pytest.param(section(0, bson.encode({"a": 1})[:-1] + b"\1"), "malformed_message", id="no closing zero"),
    pytest.param(section(0, b"\x0c\0\0\0\x21a\0\0\0\0\0\0"), "malformed_message", id="unknown type"),
    pytest.param(section(0, b"\x0e\0\0\0\x02a\0\xff\xff\xff\x7f\0\0"), "malformed_message", id="string too long"),
    pytest.param(message(2004, b"\0\0\0\0abc"), "malformed_message", id="namespace without end"),
    pytest.param(message(2007, struct.pack("<ii", 0, 2**31 - 1)), "malformed_message", id="more cursor ids than bytes"),
    pytest.param(message(2007, struct.pack("<ii", 0, -1)), "malformed_message", id="negative count of cursor ids"),
    pytest.param(message(2012, b"\xdd\x07"), "malformed_message", id="compressed header cut"),
    pytest.param(message(2012, struct.pack("<iiB", 2013, 9, 9) + b"x"), "unknown_compressor", id="unknown compressor"),
    pytest.param(message(2012, struct.pack("<iiB", 2012, 9, 0) + b"x"), "compressed_twice", id="compressed twice"),
    pytest.param(
        message(2012, struct.pack("<iiB", 2013, -9, 2) + b"x"), "uncompressed_size", id="negative size inside"
    ),
    pytest.param(
        message(2012, struct.pack("<iiB", 2013, 2**31 - 1, 2) + b"x"), "uncompressed_size", id="absurd size inside"
    ),
    pytest.param(compressed(PING, "zlib", stated=5000), "uncompressed_size", id="less than stated"),
    pytest.param(compressed(PING, "zlib", stated=20), "decompression_limit", id="more than stated"),
    pytest.param(message(2012, struct.pack("<iiB", 2013, 50, 2) + b"junk"), "decompression_failed", id="no zlib"),
    pytest.param(message(2012, struct.pack("<iiB", 2013, 50, 1) + b"\xff" * 9), "decompression_failed", id="no snappy"),
    pytest.param(message(2012, struct.pack("<iiB", 2013, 50, 3) + b"junk"), "decompression_failed", id="no zstd"),
]


@pytest.mark.parametrize(("broken", "code"), BROKEN)
def test_what_is_broken_is_told_and_the_rest_goes_on(broken: bytes, code: str) -> None:
    wire = Wire().client(broken, PING).server(PONG).finish()
    assert code in wire.remarks()
    assert ("ping", "ok") in wire.commands("command", "status")
    errors = [error for (error,) in wire.rows("messages", "error")]
    assert errors[0]
    assert errors[1:] == [None, None]


@pytest.mark.parametrize("kind", [b"\x03", b"\x04"], ids=["documents", "arrays"])
def test_deep_nesting(kind: bytes) -> None:
    deep = nested(10_000, kind)
    request = bson.encode({"find": "a", "$db": "d"})
    request = struct.pack("<i", len(request) + len(deep) + 8) + request[4:-1] + b"\x03filter\0" + deep + b"\0"
    request = struct.pack("<i", len(request)) + request[4:]
    for options in (DecodeOptions(), DecodeOptions(payload=True)):
        wire = Wire(options=options).client(op_msg(request, 1), PING)
        wire.server(op_msg({"ok": 1.0}, 9, 1), op_msg(deep, 10, 2))
        shape, document = wire.commands("query_shape", "request_document")[0]
        assert '"?' in shape
        assert len(shape) < 3000
        assert document is None
        assert wire.commands("status") == [("ok",), ("ok",)]


def bomb(compressor: str, size: int) -> bytes:
    """Compressed data that gives `size` zero bytes."""
    zeros = bytes(size)
    return {
        "zlib": lambda: zlib.compress(zeros, 9),
        "zstd": lambda: zstandard.ZstdCompressor(write_content_size=False).compress(zeros),
        "snappy": lambda: snappy.compress(zeros),
    }[compressor]()


@pytest.mark.parametrize("stated", [100, 47_000_000, 2_000_000_000], ids=["lies", "honest", "absurd"])
@pytest.mark.parametrize("compressor", ["zlib", "zstd", "snappy"])
def test_decompression_bombs_are_bounded(compressor: str, stated: int) -> None:
    data = bomb(compressor, 47_000_000)
    head = struct.pack("<iiB", 2013, stated, COMPRESSOR_IDS[compressor])
    limits = Limits(max_decompressed_bytes=MIB, decompression_slack_bytes=4 * MIB)
    wire = Wire(limits)
    tracemalloc.start()
    wire.client(message(2012, head + data), PING).server(PONG)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12 * MIB
    assert set(wire.remarks()) & {"decompression_limit", "uncompressed_size"}
    assert wire.commands("command", "status") == [("ping", "ok")]


def test_many_bombs_cost_what_their_size_allows() -> None:
    data = bomb("zlib", 4_000_000)
    one = message(2012, struct.pack("<iiB", 2013, 4_000_000, 2) + data)
    limits = Limits(usual_compression_ratio=10, decompression_slack_bytes=8 * MIB)
    wire = Wire(limits).client(*[one] * 300)
    assert takes_less_than(5, lambda: Wire(limits).client(*[one] * 300))
    assert "decompression_limit" in wire.remarks()


def test_remarks_of_a_flow_are_limited() -> None:
    wire = Wire(Limits(max_expert_infos=5)).client(*[BROKEN[0].values[0]] * 50)
    assert len(wire.remarks()) == 5


def test_a_huge_batch_is_counted_not_decoded() -> None:
    many = {str(number): 1 for number in range(200_000)}
    reply = op_msg({"cursor": {"firstBatch": [many] * 5, "id": 0, "ns": "a.b"}, "ok": 1.0}, 3, 2)
    wire = Wire().client(op_msg({"find": "a", "$db": "d"}, 2)).server(reply)
    assert wire.command("documents_returned", "ok") == (5, True)


def test_sizes_beyond_what_servers_take() -> None:
    document = bson.encode({"a": "x" * (16 << 20)})
    wire = Wire().client(op_msg({"insert": "a", "$db": "d"}, 1, sequences=[("documents", [document] * 3)]))
    assert wire.remarks() == ["message_too_large", *["document_too_large"] * 3]
    assert wire.finish().command("documents_sent") == 3
    assert Wire().client(op_msg({"insert": "a", "$db": "d"}, 1, sequences=[("documents", [{"a": 1}])])).remarks() == []


def test_what_waits_for_a_reply_is_small() -> None:
    """Names and shapes of any length, and documents that were asked for, in requests that are never answered."""
    long = "n" * 20_000
    wide = {f"{number}{'k' * 1000}": 1 for number in range(500)}
    limits = Limits(max_held_records_bytes=100_000)
    wire = Wire(limits, DecodeOptions(payload=True))
    wire.client(op_msg({"hello": 1, "client": {"driver": {"name": long}}, "$db": "admin"}, 1))
    wire.client(*(op_msg({"find": long, "filter": wide, "$db": long, "x": long}, number) for number in range(2, 30)))
    wire.finish()
    assert {len(name) for (name,) in wire.commands("driver")} == {4096}
    assert {len(name) for (name,) in wire.commands("collection")[1:]} == {4096}
    assert {shape for (shape,) in wire.commands("query_shape")[1:]} == {'"?..."'}
    assert sum(len(text or "") for (text,) in wire.commands("request_document")) <= 100_000
    assert "held_payload" in wire.remarks()


def test_a_wrong_count_of_documents() -> None:
    reply = bytearray(op_reply([{"ok": 1.0}], 2))
    reply[32:36] = struct.pack("<i", 9)
    wire = Wire().client(PING).server(bytes(reply))
    assert "wrong_count" in wire.remarks()
    assert wire.command("status") == "ok"


@examples(200)
@given(st.lists(st.tuples(st.booleans(), st.binary(max_size=120)), max_size=6), st.booleans())
def test_any_bytes_as_messages(parts: list[tuple[bool, bytes]], payload: bool) -> None:
    wire = Wire(options=DecodeOptions(payload=payload))
    for from_client, data in parts:
        (wire.client if from_client else wire.server)(data)
    wire.finish()
    assert len(wire.rows("messages", "role")) == len(parts)


SOUND = [
    op_msg({"find": "a", "filter": {"x": {"$in": [1, 2]}}, "sort": {"y": 1}, "$db": "d"}, 1),
    op_msg({"aggregate": "a", "pipeline": [{"$match": {"x": 1}}, {"$group": {"_id": "$y"}}], "$db": "d"}, 2),
    op_msg({"update": "a", "$db": "d"}, 3, sequences=[("updates", [{"q": {"x": 1}, "u": {"$set": {"y": 1}}}])]),
    op_msg({"hello": 1, "client": {"driver": {"name": "x"}}, "compression": ["zlib"], "$db": "admin"}, 4),
    op_msg({"cursor": {"firstBatch": [{"a": 1}], "id": 5, "ns": "d.a"}, "ok": 1.0}, 5, 1),
    op_msg({"n": 1, "writeErrors": [{"code": 11000}], "writeConcernError": {"code": 64}, "ok": 1.0}, 6, 3),
    compressed(op_msg({"find": "a", "$db": "d"}, 7), "snappy"),
    op_reply([{"ok": 1.0}], 2),
]


@examples(400)
@given(
    st.sampled_from(SOUND),
    st.lists(st.tuples(st.integers(16, 400), st.integers(0, 255)), min_size=1, max_size=5),
    st.booleans(),
)
def test_damaged_messages_never_raise(sound: bytes, changes: list[tuple[int, int]], payload: bool) -> None:
    data = bytearray(sound)
    for place, value in changes:
        data[place % len(data) if place % len(data) >= 16 else 16] = value
    wire = Wire(options=DecodeOptions(payload=payload)).client(*SOUND[:4]).client(bytes(data)).server(bytes(data))
    wire.finish()
    assert len(wire.rows("messages", "role")) == 6


@given(st.sampled_from(SOUND), st.integers(0, 300))
def test_a_cut_message_is_no_fault(sound: bytes, keep: int) -> None:
    wire = Wire().client(sound[: min(keep, len(sound) - 1)], complete=False).finish()
    assert not set(wire.remarks()) & {
        "malformed_message",
        "decompression_failed",
        "uncompressed_size",
        "checksum_wrong",
    }
