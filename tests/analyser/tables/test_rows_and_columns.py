"""Raw fields and registered columns belong together: none without the other, and none that nobody ever fills.

Static: what is declared. Filled: rows of real samples, and of messages made for what the samples do not have.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from random import Random
from typing import Any

import pytest

import wirewitness
from tests.analyser.tcp.test_waits import begun, read, transfer
from tests.conftest import SAMPLES
from tests.dissectors.kafka.test_decoder import Wire as KafkaWire
from tests.dissectors.mongo.wire import Wire as MongoWire
from tests.dissectors.mqtt.wire import Wire as MqttWire
from tests.support import kafka_encode, record_batches, segments
from tests.support.mongo_messages import CHECKSUM, op_msg
from tests.support.mqtt_encode import PUBACK, ack, connack, connect, publish, string, suback, subscribe
from wirewitness.analyser.analysis.build import computed
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.decoding.rows.fields import row_fields
from wirewitness.analyser.decoding.rows.row_expansion import gathering
from wirewitness.analyser.tables.tables import TABLES, Column
from wirewitness.analyser.tcp.waits import TABLE as WAITS
from wirewitness.analyser.tcp.waits import WAIT_FIELDS
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.options import DecodeOptions
from wirewitness.dissectors.core.protocol import Sink
from wirewitness.dissectors.kafka.records.internal_topics import CONSUMER_OFFSETS
from wirewitness.dissectors.kafka.rows.api_rows import API_ROWS
from wirewitness.dissectors.kafka.schema import definitions as schema
from wirewitness.dissectors.kafka.segment import KafkaPartition
from wirewitness.dissectors.registry import OPTIONAL, PROTOCOLS

FIELDS = row_fields({**PROTOCOLS, **OPTIONAL})
TABLE_NAMES = sorted(FIELDS)
# What a raw row says so that others can compute columns.
HELPERS = {"request_offset", "response_offset", "stream_offset", "first_offset", "direction", "line"}
# Times of a row's answer stand in exchanges; not every table repeats them.
ALSO_IN_EXCHANGES = {"ts_response"}
# Larger samples fill nothing that the others and the messages made here leave empty.
MAX_SAMPLE_BYTES = 1_500_000


def fields(table: str) -> tuple[str, ...]:
    """The fields of a table's raw rows as they leave the dissector's hands: records are gathered from batches."""
    gathered = gathering(table)
    return FIELDS[table] if gathered is None else gathered.fields


@pytest.mark.parametrize("table", TABLE_NAMES)
def test_every_column_is_a_field_or_is_made(table: str) -> None:
    given = fields(table)
    without = [c.name for c in TABLES[table].columns if c.name not in given and not made_elsewhere(table, c)]
    assert without == []


def made_elsewhere(table: str, column: Column) -> bool:
    """The column's value comes from the flow, from other rows, or is computed."""
    if column.source == "flow":
        return column.name in TABLES["flows"].column_names() or computed(table, column.name)
    return column.source == "context" or (column.source == "derived" and computed(table, column.name))


@pytest.mark.parametrize("table", TABLE_NAMES)
def test_every_field_has_a_column_or_helps_to_make_one(table: str) -> None:
    columns = TABLES[table].column_names()
    known = HELPERS | ALSO_IN_EXCHANGES
    assert [name for name in fields(table) if name not in columns and name not in known] == []


@pytest.mark.parametrize("table", TABLE_NAMES)
def test_every_column_that_rows_fill_is_filled_somewhere(table: str) -> None:
    filled = filled_columns()[table]
    of_rows = [c.name for c in TABLES[table].columns if c.source == "row" or c.name in fields(table)]
    assert [name for name in of_rows if name not in filled] == []


@cache
def filled_columns() -> Mapping[str, set[str]]:
    """Columns of each table that have a value in at least one row."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for path in sorted(SAMPLES.glob("*.pcapng")):
        if path.stat().st_size > MAX_SAMPLE_BYTES:
            continue
        with wirewitness.read(path, options=ReadOptions(payload=True), tables=TABLE_NAMES) as analysis:
            for table in analysis.tables():
                rows = analysis.arrow(table)
                found[table] |= {name for name in rows.column_names if rows[name].null_count < len(rows)}
    for path in sorted((SAMPLES / "request_logs").glob("*.log.gz")):
        with wirewitness.read(path, tables=["kafka_request_times"]) as analysis:
            rows = analysis.arrow("kafka_request_times")
            found["kafka_request_times"] |= {name for name in rows.column_names if rows[name].null_count < len(rows)}
    for table, names, rows in made_rows():
        values = zip(*rows, strict=True)
        found[table] |= {
            name for name, column in zip(names, values, strict=False) if set(map(repr, column)) != {"None"}
        }
    return found


Made = tuple[str, tuple[str, ...], Sequence[tuple[Any, ...]]]


def made_rows() -> Iterator[Made]:
    """Rows of decoders made for what the samples do not have, and the names of their fields."""
    for wire in (*of_every_api(), broken_records(), refused_records(), mqtt_reasons(), mongo_concerns()):
        for table, rows in wire.finish().out.tables().items():
            if rows:
                yield table, FIELDS[table], rows
    yield "kafka_stored_offsets", FIELDS["kafka_stored_offsets"], stored_offsets()
    (waits,) = read(transfer(begun(), 2).packets, WAITS)
    yield WAITS, WAIT_FIELDS, [tuple(row.get(name) for name in WAIT_FIELDS) for row in waits]


def stored_offsets() -> Sequence[tuple[Any, ...]]:
    """Rows of a segment with an offset of a topic id, and one of a transaction that expires."""
    key, body = segments.commit_key("g", "t", 0), segments.commit_value(9, metadata="m")
    with_id = b"\0\4" + bytes(8) + bytes(4) + b"\1" + bytes(8) + b"\1\0\x10" + b"i" * 16
    sent = [record_batches.Sent(1, key, value) for value in (body, with_id, segments.commit_value(9, 1))]
    partition = KafkaPartition((CONSUMER_OFFSETS, 0), Limits(), DecodeOptions(payload=False))
    out = Sink(["kafka_stored_offsets"])
    partition.add(record_batches.batch(sent, transactional=True, producer=(1, 0, 0)), 1, out)
    partition.finish(out)
    return out.rows("kafka_stored_offsets") or []


def of_every_api() -> Iterator[KafkaWire]:
    """Random valid messages of the newest version of every API that gives rows."""
    for key in API_ROWS:
        api = schema.api(key)
        assert api is not None
        version = api.versions.last or 0
        tags = b"\0" if api.is_flexible(version) else b""
        wire, random = KafkaWire(), Random(key)
        for number in range(8):
            asked, _ = kafka_encode.message(key, version, "request", random)
            answer, _ = kafka_encode.message(key, version, "response", random)
            wire.request(key, version, number, tags + asked).response(number, tags + answer)
        yield wire


def broken_records() -> KafkaWire:
    """A Produce v3 whose batch does not decompress."""
    batch = bytearray(record_batches.batch([record_batches.Sent(1, b"k", b"value" * 50)], "gzip"))
    batch[-20:] = bytes(20)
    return KafkaWire().request(0, 3, 1, one_partition(bytes(batch)))


def refused_records() -> KafkaWire:
    """A Produce v8 that the broker refuses with its reason."""
    batch = record_batches.batch([record_batches.Sent(1, b"k", b"value")], "none")
    refused = b"\0\0\0\1" + string("t") + b"\0\0\0\1" + bytes(4) + (87).to_bytes(2, "big") + b"\xff" * 24
    answer = refused + bytes(4) + string("too old") + bytes(4)
    return KafkaWire().request(0, 8, 1, one_partition(batch)).response(1, answer)


def one_partition(batch: bytes) -> bytes:
    """The body of a Produce v3 to v8 with a batch for partition 0 of topic t."""
    body = b"\xff\xff\x00\x01\0\0\0\x05" + b"\0\0\0\1" + string("t") + b"\0\0\0\1" + bytes(4)
    return body + len(batch).to_bytes(4, "big") + batch


def mqtt_reasons() -> MqttWire:
    """A 5.0 decoder whose answers say why, and name another server."""
    why = b"\x1f" + string("quota")
    told = (why, b"\x11" + (60).to_bytes(4, "big"), b"\x1c" + string("other:1883"), b"\x1a" + string("answers/"))
    wire = MqttWire().client(connect(5)).server(connack(0, 0, told))
    wire.client(publish("t", b"x", 1, 1, properties=())).server(ack(PUBACK, 1, 0x97, (why,)))
    return wire.client(subscribe(2, ("a/#", 1), properties=())).server(suback(2, 0x97, properties=(why,)))


def mongo_concerns() -> MongoWire:
    """Commands with concerns and checksums, and an error of the write concern."""
    wire = MongoWire().client(op_msg({"find": "c", "skip": 2, "readConcern": {"level": "majority"}, "$db": "d"}, 1))
    wire.client(op_msg({"insert": "c", "documents": [{}], "writeConcern": {"w": 2}, "$db": "d"}, 2, flags=CHECKSUM))
    failed = {"ok": 1.0, "n": 1, "writeConcernError": {"code": 64, "codeName": "WriteConcernFailed", "errmsg": "late"}}
    return wire.server(op_msg({"ok": 1.0}, 9, 1), op_msg(failed, 10, 2, flags=CHECKSUM))
