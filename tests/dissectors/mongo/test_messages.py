"""Messages as bytes, after the OP_MSG and OP_COMPRESSED specifications, and as pymongo itself encodes them."""

from __future__ import annotations

from typing import Any

import pytest
from bson.codec_options import CodecOptions
from pymongo import message as pymongo_message
from pymongo.compression_support import SnappyContext, ZlibContext, ZstdContext

from tests.dissectors.mongo.wire import Wire
from wirewitness.dissectors.core.remarks import Remark
from wirewitness.dissectors.mongo.bson_fields import text
from wirewitness.dissectors.mongo.messages import Message, read_header, read_message
from wirewitness.dissectors.mongo.opcodes import HEADER_BYTES

OPTIONS: CodecOptions[Any] = CodecOptions()


def read(data: bytes) -> tuple[Message, list[Remark]]:
    """A message that is all there."""
    remarks: list[Remark] = []
    opcode = read_header(data, 0)[3]
    return read_message(opcode, data, 0, HEADER_BYTES, len(data), remarks, complete=True), remarks


# The insert of the specification, with the arguments pulled out into a section of kind 1.
HEADER = "{size} 07000000 00000000 dd070000"
FLAGS_NONE = "00000000"
BODY = "00" + "26000000" + "02 696e7365727400 05000000 636f6c6c00" + "02 24646200 03000000 646200" + "08 6f00 01" + "00"
DOCUMENT = "0c000000 10 6100 01000000 00"
SEQUENCE = "01" + "26000000" + "646f63756d656e747300" + DOCUMENT + DOCUMENT


def message_bytes(*parts: str) -> bytes:
    """The message with its length in place of {size}."""
    body = bytes.fromhex("".join(parts))
    return bytes.fromhex(HEADER.replace("{size}", (len(body) + 16).to_bytes(4, "little").hex())) + body


SECTIONS = [
    pytest.param((FLAGS_NONE, BODY), 0, 0, id="kind 0"),
    pytest.param((FLAGS_NONE, BODY, SEQUENCE), 1, 2, id="kind 0, then kind 1"),
    pytest.param((FLAGS_NONE, SEQUENCE, BODY), 1, 2, id="kind 1 first"),
    pytest.param((FLAGS_NONE, BODY, "01 0e000000 646f63756d656e747300"), 1, 0, id="an empty sequence"),
    pytest.param(("02000100", BODY, SEQUENCE), 1, 2, id="moreToCome and exhaustAllowed"),
]


@pytest.mark.parametrize(("parts", "sequences", "documents"), SECTIONS)
def test_sections(parts: tuple[str, ...], sequences: int, documents: int) -> None:
    found, remarks = read(message_bytes(*parts))
    assert (found.error, remarks) == (None, [])
    assert found.body is not None
    assert list(found.body) == [b"insert", b"$db", b"o"]
    assert text(found.data, found.body[b"insert"]) == "coll"
    assert [(one.name, one.documents) for one in found.sequences] == [(b"documents", documents)] * sequences


def test_a_section_of_kind_2_is_named() -> None:
    token = "02" + b"eyJhbGciOiJub25lIn0".hex() + "00"
    for parts in ((FLAGS_NONE, BODY, token), (FLAGS_NONE, token, BODY), (FLAGS_NONE, BODY, "02", DOCUMENT)):
        found, remarks = read(message_bytes(*parts))
        assert found.error is None
        assert [code for _, _, code, _ in remarks] == ["internal_section"]


def test_two_bodies_are_told_and_the_first_one_counts() -> None:
    found, remarks = read(message_bytes(FLAGS_NONE, BODY, "00", DOCUMENT))
    assert next(iter(found.body or {})) == b"insert"
    assert [code for _, _, code, _ in remarks] == ["several_bodies"]


COMMANDS: list[dict[str, Any]] = [
    {"find": "orders", "filter": {"x": {"$gt": 5}}, "limit": 2, "$db": "shop"},
    {"insert": "orders", "ordered": True, "documents": [{"a": 1}, {"a": 2}, {"b": "x" * 100}], "$db": "shop"},
    {"update": "orders", "updates": [{"q": {"a": 1}, "u": {"$set": {"b": 2}}}], "$db": "shop"},
    {"delete": "orders", "deletes": [{"q": {"a": 1}, "limit": 1}], "$db": "shop"},
]
CONTEXTS = {"none": None, "snappy": SnappyContext(), "zlib": ZlibContext(-1), "zstd": ZstdContext()}


@pytest.mark.parametrize("flags", [0, 2, 1 << 16], ids=["plain", "moreToCome", "exhaustAllowed"])
@pytest.mark.parametrize("compressor", CONTEXTS)
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: next(iter(command)))
def test_what_pymongo_encodes(command: dict[str, Any], compressor: str, flags: int) -> None:
    name = next(iter(command))
    request_id, encoded, *_ = pymongo_message._op_msg(
        flags, dict(command), "shop", None, OPTIONS, ctx=CONTEXTS[compressor]
    )
    wire = Wire().client(encoded).finish()
    assert wire.rows("messages", "operation", "version", "correlation_id", "error") == [
        (name, "OP_MSG", request_id, None)
    ]
    field = {"insert": "documents", "update": "updates", "delete": "deletes"}.get(name)
    sent = len(command[field]) if field else None
    assert wire.command("collection", "database", "documents_sent", "compressor", "unacknowledged") == (
        "orders", "shop", sent, None if compressor == "none" else compressor, flags == 2
    )  # fmt: skip
    assert wire.remarks() == []
