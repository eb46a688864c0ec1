"""Records read with arrays are those that the plain reader gives, for whole, odd and hostile batches alike."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.dissectors.kafka.records.test_batches import COMMIT_MARKER, GZIP_V1, MESSAGES_V0, TRANSACTIONAL
from tests.dissectors.kafka.records.test_record_sets import SEEDS, _batch_of
from tests.support.record_batches import CODEC_NUMBERS, Sent, batch, message_set
from tests.support.shares import examples
from wirewitness.analyser.decoding.rows.record_arrays import FIELDS, LIST_ROWS, gathered, gathered_of_block, text_of
from wirewitness.analyser.tables.tables import TABLES
from wirewitness.dissectors.core.blocks import Block, Column, Same
from wirewitness.dissectors.core.decompression import Allowance
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.lockstep.column_ops import coded, optional
from wirewitness.dissectors.core.model import Row
from wirewitness.dissectors.core.options import DecodeOptions
from wirewitness.dissectors.core.protocol import Sink
from wirewitness.dissectors.kafka.records.record_sets import control_type, opened_batches, record_headers, records_of
from wirewitness.dissectors.kafka.rows.data_fields import RECORDS
from wirewitness.dissectors.kafka.rows.fields import Request, Response
from wirewitness.dissectors.kafka.rows.record_rows import RecordRows

LISTS = TABLES["kafka_records"].lists
_AT = {name: place for place, name in enumerate(RECORDS.names)}
_NUMBERS = {"records_count", "base_offset", "base_timestamp_ms", "fixed_timestamp_ms", "base_sequence"}


def columns_of(spans: list[bytes], *, payload: bool = True) -> list[dict[str, Any]]:
    """The records of a Fetch answer with these partitions, one dict for each, by way of the arrays."""
    made = raw_rows(spans, payload=payload)
    if not made:
        return []
    arrays, owners = gathered(made)
    assert len(owners) == len(arrays[0])
    assert all(1 <= len(piece) <= LIST_ROWS for piece in arrays[-1].to_pylist())
    table = pa.table(dict(zip(FIELDS, arrays, strict=True))).to_pylist()
    return [
        {**row, **dict(zip(LISTS, values, strict=True))}
        for row in table
        for values in zip(*(row[name] for name in LISTS), strict=True)
    ]


def raw_rows(spans: list[bytes], *, payload: bool) -> list[Row]:
    """The rows of such an answer as the dissector gives them."""
    rows = RecordRows(Limits(), DecodeOptions(payload=payload))
    out = Sink(["kafka_records"])
    data, partitions = b"", []
    for index, span in enumerate(spans):
        partitions.append({"partition_index": index, "records": (len(data), len(span))})
        data += span
    value = {"responses": [{"topic": "t", "partitions": partitions}]}
    request = Request(1, 11, 1, "client", 0, 10, 1, 5, {})
    rows.fetched(request, Response(0, 2, 6, value, data, []), out)
    return out.rows("kafka_records") or []


def expected_of(spans: list[bytes]) -> list[dict[str, Any]]:
    """The same by way of the plain reader, record by record."""
    found = []
    for index, span in enumerate(spans):
        for one in opened_batches(span, 0, len(span), Allowance(Limits())):
            if one.header.partial and one.header.error is None:
                continue
            records, error = records_of(one)
            head = {"partition": index, "codec": one.header.codec, "crc_ok": one.crc_ok}
            control = (control_type(one.data, records[0]) or "unknown") if one.header.control and records else None
            for number, record in enumerate(records):
                found.append({**head, "control": control, "error": None, **_record(one, record, number)})
            if error:
                found.append({**head, "error": error, "offset": None, "key": None, "headers": None})
    return found


def _record(one: Any, record: Any, number: int) -> dict[str, Any]:
    offset, time, key_at, key_bytes, value_at, value_bytes, headers_at, headers, stop = record
    base, sequence = one.header.base_offset, one.header.base_sequence
    key = None if key_bytes < 0 else one.data[key_at : key_at + key_bytes]
    value = None if value_bytes < 0 else one.data[value_at : value_at + value_bytes]
    listed = record_headers(one.data, headers_at, headers, stop)[0]
    return {
        "offset": offset if max(abs(offset - base), abs(base)) <= 2**53 else None,
        "timestamp": None if time in (None, -1) or abs(time) > 9_000_000_000_000 else time * 1_000_000,
        "key": None if key is None else text_of(key)[0],
        "value": None if value is None else text_of(value)[0],
        "value_encoding": None if value is None else text_of(value)[1],
        "key_bytes": None if key is None else len(key),
        "value_bytes": None if value is None else len(value),
        "headers_count": headers,
        "headers": [[text_of(name)[0], None if content is None else text_of(content)[0]] for name, content in listed],
        "sequence": None if sequence is None or sequence < 0 else (sequence + number) & 0x7FFFFFFF,
    }


def assert_same(spans: list[bytes]) -> None:
    got, wanted = columns_of(spans), expected_of(spans)
    assert len(got) == len(wanted)
    for row, expected in zip(got, wanted, strict=True):
        shown = {name: row[name] for name in expected}
        if shown["headers"] is not None:
            shown["headers"] = [header[:2] for header in json.loads(shown["headers"])]
        if expected.get("timestamp") is None and shown.get("timestamp") is not None:
            assert abs(shown["timestamp"]) >= 9_000_000_000_000_000_000
            shown["timestamp"] = None
        assert shown == expected


def _some(count: int, seed: int = 3) -> list[Sent]:
    chance = random.Random(seed)
    sizes = (0, 1, 5, 63, 64, 65, 127, 300, 9000)
    return [
        Sent(
            1_790_000_000_000 + chance.choice((0, 1, 70, -70, 10**6, -(10**9))),
            chance.choice((None, b"", b"k%d" % number, "ключ".encode(), b"\xff\x00")),
            chance.choice((None, chance.randbytes(chance.choice(sizes)), b"v" * chance.choice(sizes))),
            [("h", b"1"), ("n", None), ("b", b"\xff")][: chance.choice((0, 0, 0, 1, 3))],
        )
        for number in range(count)
    ]


@pytest.mark.parametrize("codec", CODEC_NUMBERS)
def test_every_codec_and_size(codec: str) -> None:
    assert_same([batch(_some(count, count), codec, producer=(5, 0, 2**31 - 3)) for count in (1, 2, 63, 64, 65, 200)])


def test_formats_side_by_side() -> None:
    old = [message_set(_some(30), magic, codec) for magic in (0, 1) for codec in ("none", "gzip")]
    assert_same([TRANSACTIONAL, MESSAGES_V0 + TRANSACTIONAL + COMMIT_MARKER, GZIP_V1, b"", *old, TRANSACTIONAL[:70]])


@pytest.mark.parametrize("count", [LIST_ROWS - 1, LIST_ROWS, LIST_ROWS + 1, 3 * LIST_ROWS + 5])
def test_long_batches_are_cut_into_rows(count: int) -> None:
    assert_same([batch([Sent(1_790_000_000_000, b"%d" % n, None) for n in range(count)], producer=(1, 0, 0))])


def test_an_odd_batch_among_good_ones_costs_only_itself() -> None:
    good = batch(_some(20))
    odd = _batch_of(bytes.fromhex("12 00 00 00 02 6b 04 7631 00 12 00 00 00 7e 6b 04 7631 00"), 2)
    got = columns_of([good, odd, good])
    assert [row["partition"] for row in got] == [0] * 20 + [1] * 2 + [2] * 20
    assert [row["error"] for row in got if row["error"]] == ["the data ends inside record 1 of 2"]
    assert_same([good, odd, good])


def test_without_payload_there_are_sizes_only() -> None:
    raw = batch(_some(50))
    with_payload, without = columns_of([raw]), columns_of([raw], payload=False)
    hidden = ("key", "key_encoding", "value", "value_encoding", "headers")
    assert [[row[name] for name in hidden] for row in without] == [[None] * 5] * 50
    shown = [name for name in FIELDS if name not in hidden]
    assert [[row[name] for name in shown] for row in without] == [[row[name] for name in shown] for row in with_payload]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(b"", ("", "utf8"), id="empty"),
        pytest.param("größe\n".encode(), ("größe\n", "utf8"), id="utf8"),
        pytest.param(b"\xff\x00a", ("ff0061", "hex"), id="no utf8"),
        pytest.param(b"a" * (1 << 20), ("a" * (1 << 20), "utf8"), id="a MiB"),
        pytest.param(b"a" * ((1 << 20) + 1), ("a" * (1 << 20), "utf8_cut"), id="more than a MiB"),
        pytest.param("ä".encode() * (1 << 20) + b"x", ("ä" * (1 << 19), "utf8_cut"), id="characters of two bytes"),
        pytest.param(b"x" + "ä".encode() * (1 << 20), ("x" + "ä" * ((1 << 19) - 1), "utf8_cut"), id="cut in one"),
        pytest.param(b"\xff" * (2 << 20), ("ff" * (1 << 20), "hex_cut"), id="no utf8, cut"),
    ],
)
def test_text_of(data: bytes, expected: tuple[str, str]) -> None:
    assert text_of(data) == expected
    value = columns_of([batch([Sent(0, b"k", data), Sent(0, None, b"v")])])
    assert [(row["value"], row["value_encoding"]) for row in value] == [expected, ("v", "utf8")]


@examples(300)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(SEEDS),
            st.lists(st.tuples(st.integers(0, 2000), st.binary(min_size=1, max_size=5)), max_size=3),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_changed_bytes_give_the_same(changed: list[tuple[bytes, list[tuple[int, bytes]]]]) -> None:
    spans = []
    for seed, changes in changed:
        raw = bytearray(seed)
        for at, change in changes:
            at %= len(raw)
            raw[at : at + len(change)] = change
        spans.append(bytes(raw))
    assert_same(spans)


@examples(300)
@given(st.lists(st.tuples(st.binary(max_size=120), st.integers(0, 9)), min_size=1, max_size=5))
def test_any_records_give_the_same(bodies: list[tuple[bytes, int]]) -> None:
    assert_same([_batch_of(body, count) for body, count in bodies])


@pytest.mark.parametrize("seed", range(4))
def test_so_many_batches_that_they_make_their_steps_together(seed: int) -> None:
    chance = random.Random(seed)
    spans = []
    for number in range(250):
        raw = bytearray(batch(_some(chance.choice((1, 2, 9, 30)), number)))
        if chance.random() < 0.3:
            for _ in range(chance.choice((1, 3))):
                raw[chance.randrange(61, len(raw))] = chance.randrange(256)
        spans.append(bytes(raw))
    assert_same(spans)
    assert len({row["error"] for row in columns_of(spans)}) > 3


@pytest.mark.parametrize("numbers", [optional, coded])
def test_rows_of_a_block_are_those_of_tuples(numbers: Callable[[list[Any]], Column]) -> None:
    """Whole batches of format 2, some with damaged records or without any; a part of them is taken."""
    spans = [span for span in SEEDS if span[16] == 2] + [_batch_of(b"", 0), _batch_of(b"\x02\xff", 3), TRANSACTIONAL]
    rows = [row for row in raw_rows(spans, payload=True) if row[_AT["records"]] is None and row[_AT["error"]] is None]
    columns: list[Column] = [
        numbers(list(values)) if name in _NUMBERS else coded(values)
        for name, values in zip(RECORDS.names, zip(*rows, strict=True), strict=True)
    ]
    columns[_AT["records"]] = Same(None)
    for chosen in (np.arange(len(rows)), np.array([len(rows) - 1, 0, 2]), np.array([len(rows) - 3])):
        expected, owners = gathered([rows[place] for place in chosen.tolist()])
        arrays, found = gathered_of_block(Block(columns, len(rows)), chosen)
        assert found.tolist() == owners.tolist()
        assert [one.to_pylist() for one in arrays] == [one.to_pylist() for one in expected]
