"""Exchanges that carry much data: Produce 8 and Fetch 11 with record batches of about 16 KB.

In: lab captures. Out: for each connection an endless iterator of exchanges.
The records are the lab's: their batches are found in the captures by their magic byte and checksum. A batch repeats
them, numbered anew and with values repeated up to 1,000 bytes, until it has the Java client's default batch size; its
CRC is computed. Client id and topic are the lab's too. The envelopes are written here, in the highest versions that
tshark 4.0 decodes: a Produce of 32 partitions with a batch each (a broker takes no more than one per partition), a
Fetch answered by 4 partitions of 16 batches each, with base offsets that go on from fetch to fetch.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

import crc32c

from tests.support.lab_exchanges import Exchange, lab_connections

BATCH_BYTES = 16 * 1024
VALUE_BYTES = 1000
PRODUCE_PARTITIONS = 32
FETCH_PARTITIONS, FETCH_BATCHES = 4, 16
DIFFERENT_BATCHES = 32
LATENCY_NS = 2_000_000
_BATCH_HEADER_BYTES = 61
_TOPIC = "orders"


def bulk_clients(samples: Iterable[Path], flows: int) -> list[Iterator[Exchange]]:
    """FLOWS scripts, producers and consumers in turn."""
    connections = [connection for sample in samples for connection in lab_connections(sample)]
    producer = next(_client_id(c[0].request) for c in connections if any(e.api_key == 0 for e in c))
    consumer = next(_client_id(c[0].request) for c in connections if any(e.api_key == 8 for e in c))
    batches = make_batches(lab_values(connections))
    return [
        produce_exchanges(producer, batches) if index % 2 == 0 else fetch_exchanges(consumer, batches)
        for index in range(flows)
    ]


def lab_values(connections: Iterable[list[Exchange]]) -> list[tuple[bytes, bytes]]:
    """Key and value of every record in uncompressed Produce batches of the captures."""
    found: list[tuple[bytes, bytes]] = []
    for exchange in itertools.chain.from_iterable(connections):
        if exchange.api_key == 0:
            for batch in find_batches(exchange.request):
                found += _records(batch)
    if not found:
        raise ValueError("no uncompressed record in these captures")
    return found


def find_batches(message: bytes) -> Iterator[bytes]:
    """Uncompressed record batches (magic 2) anywhere in a message, proven by their checksums."""
    at = message.find(b"\x02")
    while at >= 0:
        start = at - 16
        if start >= 0 and start + _BATCH_HEADER_BYTES <= len(message):
            length, _, _, checksum, attributes = struct.unpack_from(">iibIh", message, start + 8)
            end = start + 12 + length
            if start + _BATCH_HEADER_BYTES <= end <= len(message) and crc32c.crc32c(message[at + 5 : end]) == checksum:
                if attributes & 7 == 0:
                    yield message[start:end]
                at = end - 1
        at = message.find(b"\x02", at + 1)


def make_batches(values: list[tuple[bytes, bytes]]) -> list[tuple[bytes, int]]:
    """Batches with base offset 0, and the number of records in each."""
    source = itertools.cycle(values)
    return [make_batch(source) for _ in range(DIFFERENT_BATCHES)]


def produce_exchanges(client_id: bytes, batches: list[tuple[bytes, int]]) -> Iterator[Exchange]:
    """Produce 8 with acks -1, one batch for each partition."""
    offset = 0
    head = _request_head(0, 8, client_id) + struct.pack(">hhi", -1, -1, 30000) + _one_topic(PRODUCE_PARTITIONS)
    source = itertools.cycle(batches)
    while True:
        body, answer = [head], [_one_topic(PRODUCE_PARTITIONS)]
        for partition in range(PRODUCE_PARTITIONS):
            batch, records = next(source)
            body.append(struct.pack(">ii", partition, len(batch)) + batch)
            answer.append(struct.pack(">ihqqqih", partition, 0, offset, -1, 0, 0, -1))
        offset += records
        answer.append(struct.pack(">i", 0))
        yield _exchange(0, 8, b"".join(body), b"".join(answer))


def fetch_exchanges(client_id: bytes, batches: list[tuple[bytes, int]]) -> Iterator[Exchange]:
    """Fetch 11 without a fetch session; offsets go on."""
    head = _request_head(1, 11, client_id) + struct.pack(">iiiibii", -1, 500, 1, 50 << 20, 1, 0, -1)
    source = itertools.cycle(batches)
    offset = 0
    while True:
        records_of_answer = list(itertools.islice(source, FETCH_BATCHES))
        end = offset + sum(records for _, records in records_of_answer)
        body = [head, _one_topic(FETCH_PARTITIONS)]
        answer = [struct.pack(">ihi", 0, 0, 0), _one_topic(FETCH_PARTITIONS)]
        for partition in range(FETCH_PARTITIONS):
            body.append(struct.pack(">iiqqi", partition, -1, offset, -1, 1 << 20))
            data = _numbered(records_of_answer, offset)
            answer.append(struct.pack(">ihqqqiii", partition, 0, end, end, 0, -1, -1, len(data)) + data)
        body.append(struct.pack(">ih", 0, 0))
        offset = end
        yield _exchange(1, 11, b"".join(body), b"".join(answer))


def _numbered(batches: list[tuple[bytes, int]], offset: int) -> bytes:
    """The batches with rising base offsets, which no checksum covers."""
    parts = []
    for batch, records in batches:
        parts += [offset.to_bytes(8, "big"), batch[8:]]
        offset += records
    return b"".join(parts)


def make_batch(
    source: Iterator[tuple[bytes, bytes]], batch_bytes: int = BATCH_BYTES, value_bytes: int = VALUE_BYTES
) -> tuple[bytes, int]:
    """A batch of that size with base offset 0, and the number of its records."""
    records = bytearray()
    count = 0
    while len(records) < batch_bytes - _BATCH_HEADER_BYTES - value_bytes:
        key, value = next(source)
        value = (value * (value_bytes // max(len(value), 1) + 1))[:value_bytes]
        record = b"\0\0" + _varint(count) + _varint(len(key)) + key + _varint(len(value)) + value + _varint(0)
        records += _varint(len(record)) + record
        count += 1
    ts_ms = 1_790_000_000_000
    checked = struct.pack(">hiqqqhii", 0, count - 1, ts_ms, ts_ms, -1, -1, -1, count) + records
    head = struct.pack(">qiibI", 0, len(checked) + 9, 0, 2, crc32c.crc32c(checked))
    return head + checked, count


def _records(batch: bytes) -> Iterator[tuple[bytes, bytes]]:
    (count,) = struct.unpack_from(">i", batch, 57)
    at = _BATCH_HEADER_BYTES
    for _ in range(count):
        length, at = _read_varint(batch, at)
        end = at + length
        at += 1  # attributes
        for _ in range(2):  # deltas of timestamp and offset
            _, at = _read_varint(batch, at)
        key, at = _read_bytes(batch, at)
        value, at = _read_bytes(batch, at)
        yield key, value
        at = end


def _read_bytes(data: bytes, at: int) -> tuple[bytes, int]:
    length, at = _read_varint(data, at)
    return (data[at : at + length], at + length) if length >= 0 else (b"", at)


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
        shift += 7


def _varint(value: int) -> bytes:
    zigzag = value << 1 if value >= 0 else (-value << 1) - 1
    out = bytearray()
    while zigzag >= 0x80:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    out.append(zigzag)
    return bytes(out)


def _client_id(request: bytes) -> bytes:
    (length,) = struct.unpack_from(">h", request, 12)
    return request[14 : 14 + length]


def _request_head(api_key: int, api_version: int, client_id: bytes) -> bytes:
    return struct.pack(">hhih", api_key, api_version, 0, len(client_id)) + client_id


def _one_topic(partitions: int) -> bytes:
    topic = _TOPIC.encode()
    return struct.pack(">ih", 1, len(topic)) + topic + struct.pack(">i", partitions)


def _exchange(api_key: int, api_version: int, request: bytes, body: bytes) -> Exchange:
    framed = len(request).to_bytes(4, "big") + request
    response = struct.pack(">ii", len(body) + 4, 0) + body
    return Exchange(api_key, api_version, framed, response, LATENCY_NS, True, True)
