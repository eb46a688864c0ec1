"""BSON, against pymongo's bson: keys, values, types, and what is left of broken documents."""

from __future__ import annotations

import datetime
import struct
from typing import Any

import bson
import pytest
from bson.binary import Binary
from bson.codec_options import CodecOptions, DatetimeConversion
from bson.int64 import Int64
from bson.son import SON
from hypothesis import given
from hypothesis import strategies as st

from tests.support.mongo_examples import ALL_TYPES, BROKEN_DOCUMENTS
from wirewitness.dissectors.core.inspect import Node
from wirewitness.dissectors.mongo.bson_fields import (
    boolean,
    count_elements,
    document,
    inner,
    integer,
    text,
    whole_fields,
)
from wirewitness.dissectors.mongo.bson_tree import DocumentWalker

_keys = st.text(max_size=8).filter(lambda key: "\0" not in key)
_scalars = st.one_of(
    st.integers(-(2**63), 2**63 - 1).map(Int64),
    st.integers(-(2**31), 2**31 - 1),
    st.floats(allow_nan=False),
    st.text(max_size=12),
    st.booleans(),
    st.none(),
    st.binary(max_size=9),
    st.binary(min_size=12, max_size=12).map(bson.ObjectId),
    st.datetimes(datetime.datetime(1971, 1, 1), datetime.datetime(2100, 1, 1)),
    st.builds(bson.Timestamp, st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)),
    st.just(bson.MinKey()),
    st.builds(bson.Regex, _keys),
    st.builds(bson.Code, st.text(max_size=5)),
    st.builds(lambda text: bson.Code(text, {"x": 1}), st.text(max_size=5)),
)
_documents = st.dictionaries(
    _keys,
    st.recursive(
        _scalars,
        lambda held: st.one_of(st.lists(held, max_size=4), st.dictionaries(_keys, held, max_size=4)),
        max_leaves=10,
    ),
    max_size=6,
)


@given(_documents, st.binary(max_size=5), st.binary(max_size=5))
def test_fields_are_those_that_pymongo_reads(value: dict[str, Any], before: bytes, behind: bytes) -> None:
    encoded = bson.encode(value)
    data = before + encoded + behind
    found = document(data, len(before), len(data))
    assert (found.end, found.error) == (len(before) + len(encoded), None)
    assert [key.decode() for key in found.fields] == list(bson.decode(encoded, CodecOptions(SON)))
    assert whole_fields(data, len(before), found.end) == found.fields
    for key, (kind, start, end) in found.fields.items():
        alone = bytes([kind]) + key + b"\0" + data[start:end]
        one = struct.pack("<i", len(alone) + 5) + alone + b"\0"
        options: CodecOptions[dict[str, Any]] = CodecOptions(datetime_conversion=DatetimeConversion.DATETIME_MS)
        assert bson.decode(one, options) == {key.decode(): bson.decode(encoded, options)[key.decode()]}


@given(_documents)
def test_small_readers_agree_with_pymongo(value: dict[str, Any]) -> None:
    data = bson.encode(value)
    for key, span in document(data, 0, len(data)).fields.items():
        true = value[key.decode()]
        assert text(data, span) == (true if type(true) is str else None)
        if type(true) in (int, Int64, bool):
            assert (boolean(data, span), integer(data, span)) == (bool(true), None if type(true) is bool else true)
        if isinstance(true, list):
            assert count_elements(data, span) == len(true)
        if isinstance(true, dict):
            assert [name.decode() for name in inner(data, span)] == list(true)


def shown(value: Any) -> Any:
    """What the tree shows of a value."""
    table: dict[type, Any] = {
        bson.ObjectId: lambda v: f"ObjectId({v.binary.hex()})",
        bson.Timestamp: lambda v: f"Timestamp({v.time}, {v.inc})",
        bson.MinKey: lambda _: "MinKey",
        bson.Regex: lambda v: f"/{v.pattern}/",
        datetime.datetime: lambda v: v.replace(
            microsecond=v.microsecond // 1000 * 1000, tzinfo=datetime.UTC
        ).isoformat(timespec="milliseconds"),
    }  # fmt: skip
    return table[type(value)](value) if type(value) in table else value


def compare(nodes: list[Node], value: Any) -> None:
    items = value.items() if isinstance(value, dict) else ((f"[{at}]", item) for at, item in enumerate(value))
    for node, (name, item) in zip(nodes, items, strict=True):
        assert node.name == name
        if isinstance(item, dict | list):
            compare(node.children, item)
        elif isinstance(item, bson.Code):
            assert item.scope is not None or node.value == str(item)
        else:
            assert node.value == shown(item)


@given(_documents)
def test_the_tree_holds_what_pymongo_wrote(value: dict[str, Any]) -> None:
    data = bson.encode(value)
    walked = DocumentWalker(data, lambda _: None, 1000, payload=True).walk(0, len(data))
    assert (walked.pos, walked.error, walked.hidden) == (len(data), None, [])
    compare(walked.nodes, value)


@given(_documents, st.integers(0, 10_000))
def test_of_a_cut_document_a_prefix_is_left(value: dict[str, Any], cut: int) -> None:
    data = bson.encode(value)
    kept = data[: cut % len(data)]
    found = document(kept, 0, len(kept))
    assert found.error is not None
    assert list(found.fields.items()) == list(document(data, 0, len(data)).fields.items())[: len(found.fields)]
    walked = DocumentWalker(kept, lambda _: None, 1000, payload=True).walk(0, len(kept))
    assert walked.error is not None
    assert len(walked.nodes) >= len(found.fields)


def test_a_document_with_every_type() -> None:
    true = bson.decode(ALL_TYPES, CodecOptions(SON))
    found = document(ALL_TYPES, 0, len(ALL_TYPES))
    assert found.error is None
    assert [key.decode() for key in found.fields] == list(true)
    walked = DocumentWalker(ALL_TYPES, lambda _: None, 1000, payload=True).walk(0, len(ALL_TYPES))
    assert walked.error is None
    assert [node.name for node in walked.nodes] == list(true)


@pytest.mark.parametrize("name", BROKEN_DOCUMENTS)
def test_broken_documents(name: str) -> None:
    data = bytes.fromhex(BROKEN_DOCUMENTS[name])
    found = document(data, 0, len(data))
    walked = DocumentWalker(data, lambda _: None, 1000, payload=True).walk(0, len(data))
    assert whole_fields(data, 0, len(data)) is None
    assert found.error is not None or found.end != len(data)
    assert walked.error is not None or walked.pos != len(data)


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    """What is said to be well formed is what pymongo can at least take apart, and nothing raises."""
    fields = whole_fields(data, 0, len(data))
    walked = DocumentWalker(data, lambda _: None, 1000, payload=True).walk(0, len(data))
    if walked.error is None and walked.pos == len(data):
        assert fields is not None


def test_uuids_and_sessions() -> None:
    data = bson.encode({"id": Binary(bytes(range(16)), 4)})
    walked = DocumentWalker(data, lambda _: None, 10, payload=True).walk(0, len(data))
    assert [node.value for node in walked.nodes] == ["00010203-0405-0607-0809-0a0b0c0d0e0f"]


def test_there_are_not_more_nodes_than_asked_for() -> None:
    data = bson.encode({str(number): number for number in range(50)})
    walked = DocumentWalker(data, lambda _: None, 10, payload=True).walk(0, len(data))
    assert len(walked.nodes) == 10
    assert walked.error == "there are more fields than are shown"
