"""Kafka records of many batches at once: raw rows of `kafka_records`, one for a batch, to Arrow columns with lists.

In: the conversation's rows (`KAFKA_ROWS["kafka_records"]`), whose `data` is what decompressing gave. Out: an Arrow
batch with FIELDS; of every column in `Table.lists` a row holds a list with one element per record, at most LIST_ROWS.
`dissectors/kafka/records/record_sets.py` says what record data means. Here the same is done with arrays: only the hop
from one record to the next is a Python loop. A batch in which anything is odd is left to that slower reader.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from analyser.registry.tables import TABLES
from analyser.rows.store import RAW_TYPES
from dissectors.core.limits import Limits
from dissectors.core.model import Row
from dissectors.kafka.records.record_sets import Record, record_headers, split_records
from dissectors.kafka.rows.fields import KAFKA_ROWS

TABLE = "kafka_records"
LIST_ROWS = 1024
# What stands in the raw row for the analyser only.
_INNER = (
    "data",
    "records_count",
    "records",
    "base_offset",
    "first_offset",
    "base_timestamp_ms",
    "fixed_timestamp_ms",
    "base_sequence",
    "payload",
)
_SCALARS = tuple(name for name in KAFKA_ROWS[TABLE] if name not in _INNER)
_ERROR_AT = _SCALARS.index("error")
FIELDS = (*_SCALARS, *TABLES[TABLE].lists)
_MAX_MS = (2**63 - 1) // 1_000_000
_NS_PER_MS = 1_000_000
# Honest differences are far smaller; sums of larger ones would not fit into 64 bits.
_MAX_DELTA = 2**53
_MAX_SIZE_BITS = 35
_PADDING = 16
_SHORTEST_RECORD_BYTES = 7
# From so many batches on a step of arrays costs less than the steps of a loop.
_TOGETHER = 100
_NULL = np.iinfo(np.int64).min
_MAX_PAYLOAD_BYTES = Limits().max_payload_bytes

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]


class _Batch(NamedTuple):
    """What a raw row says for the analyser only; the order is that of _INNER."""

    data: bytes
    records_count: int
    records: list[Record] | None
    base_offset: int | None
    first_offset: int
    base_timestamp_ms: int | None
    fixed_timestamp_ms: int | None
    base_sequence: int | None
    payload: frozenset[str]


class _Found(NamedTuple):
    """Records as arrays: their batch, offset behind the batch's first, time in ms, positions and sizes in the blob.

    _NULL stands for what is not known; an element whose headers are _NULL stands for the rest that is missing.
    """

    batch: Ints
    offset: Ints
    time_ms: Ints
    key_at: Ints
    key_bytes: Ints
    value_at: Ints
    value_bytes: Ints
    headers_at: Ints
    headers: Ints
    end: Ints


def gathered(rows: Sequence[Row]) -> tuple[list[pa.Array], Ints]:
    """Arrays of FIELDS, and for each of their rows the index of the raw row that it comes from."""
    first = len(_SCALARS)
    batches = [_Batch._make(row[first:]) for row in rows]
    blob = b"".join([batch.data for batch in batches])
    bases = np.concatenate(([0], np.cumsum([len(batch.data) for batch in batches]))).astype(np.int64)
    found, errors = _found(batches, blob, bases, [row[_ERROR_AT] for row in rows])
    pieces = _pieces(found)
    offsets = pa.array(np.append(pieces.start, len(found.batch)).astype(np.int32))
    lists = [pa.ListArray.from_arrays(offsets, values) for values in _values(found, batches, blob)]
    owners = pa.array(pieces.batch)
    scalars = []
    for place, name in enumerate(_SCALARS):
        if name == "error":
            scalars.append(pa.array([errors[batch] if rest else None for batch, rest in pieces.owners()], pa.string()))
        else:
            kind = TABLES[TABLE].column(name).kind if name in TABLES[TABLE].column_names() else "int64"
            scalars.append(pa.array([row[place] for row in rows], RAW_TYPES[kind]).take(owners))
    return scalars + lists, pieces.batch


@dataclass(frozen=True, slots=True)
class _Pieces:
    """Runs of records of one batch, each short enough to be one row. rest: it stands for records that are missing."""

    batch: Ints
    start: Ints
    rest: npt.NDArray[np.bool_]

    def owners(self) -> list[tuple[int, bool]]:
        """(batch, rest) of every piece."""
        return list(zip(self.batch.tolist(), self.rest.tolist(), strict=True))


def _pieces(found: _Found) -> _Pieces:
    """A piece begins with each batch, after LIST_ROWS records, and with a missing rest."""
    count = len(found.batch)
    rest = found.headers == _NULL
    begins = np.ones(count, bool)
    begins[1:] = (found.batch[1:] != found.batch[:-1]) | rest[1:]
    place = np.arange(count)
    since = place - np.maximum.accumulate(np.where(begins, place, 0))
    start = np.nonzero(begins | (since % LIST_ROWS == 0))[0].astype(np.int64)
    return _Pieces(found.batch[start], start, rest[start])


def _found(
    batches: Sequence[_Batch], blob: bytes, bases: Ints, told: Sequence[str | None]
) -> tuple[_Found, list[str | None]]:
    """All records in the order of the batches, and what is wrong with each batch."""
    errors = list(told)
    fast, odd = _quick(batches, blob, bases)
    parts = [fast]
    for index in odd:
        batch = batches[index]
        records, wrong = (batch.records, None) if batch.records is not None else split_records(
            batch.data, batch.records_count, batch.first_offset, batch.base_timestamp_ms or 0, batch.fixed_timestamp_ms
        )  # fmt: skip
        errors[index] = errors[index] or wrong
        parts.append(_listed(index, records or [], batch, int(bases[index])))
    parts += [_missing(index, int(bases[index + 1])) for index, error in enumerate(errors) if error]
    if len(parts) == 1:
        return fast, errors
    joined = _Found(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
    order = np.argsort(joined.batch, kind="stable")
    return _Found(*(column[order] for column in joined)), errors


def _listed(index: int, records: Sequence[Record], batch: _Batch, base: int) -> _Found:
    """Records that the slower reader gave; numbers that no column can hold become unknown."""
    rows = [
        (
            index,
            _bounded(offset - batch.first_offset, _NULL),
            _NULL if time is None else _bounded(time, _NULL),
            base + key_at,
            key_bytes,
            base + value_at,
            value_bytes,
            base + headers_at,
            headers,
            base + stop,
        )
        for offset, time, key_at, key_bytes, value_at, value_bytes, headers_at, headers, stop in records
    ]
    table = np.array(rows, np.int64).reshape(len(rows), len(_Found._fields))
    return _Found(*table.T)


def _missing(index: int, end: int) -> _Found:
    return _Found(*(np.array([value], np.int64) for value in (index, _NULL, _NULL, end, -1, end, -1, end, _NULL, end)))


def _bounded(value: int, otherwise: int) -> int:
    return value if -_MAX_DELTA <= value <= _MAX_DELTA else otherwise


def _quick(batches: Sequence[_Batch], blob: bytes, bases: Ints) -> tuple[_Found, list[int]]:
    """The records of all batches that are as they should be, and the indexes of the other ones."""
    buf = np.frombuffer(blob + bytes(_PADDING), np.uint8)
    sizes = np.diff(bases)
    counts = np.array([-1 if batch.records is not None else batch.records_count for batch in batches], np.int64)
    odd = (counts < 0) | (counts * _SHORTEST_RECORD_BYTES > sizes) | ((counts == 0) & (sizes > 0))
    counts[odd] = 0
    begins, filled = _begins(blob, buf, bases[:-1], bases[1:], counts)
    owner = np.repeat(np.arange(len(batches)), counts)
    found, right = _fields(buf, begins, owner, bases[1:][owner], batches)
    odd |= ~filled
    odd[owner[~right]] = True
    if odd.any():
        kept = ~odd[owner]
        found = _Found(*(column[kept] for column in found))
    return found, np.nonzero(odd)[0].tolist()


def _begins(blob: bytes, buf: Bytes, starts: Ints, ends: Ints, counts: Ints) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Where the records of each batch begin, and which batches their records fill.

    Each record tells where the next one begins, so one batch is a loop; many batches make their steps together.
    """
    begins = np.zeros(int(counts.sum()), np.int64)
    order = np.argsort(-counts, kind="stable")
    at, end, falling = starts[order], ends[order], counts[order]
    place = (np.cumsum(counts) - counts)[order]
    step = 0
    active = int(np.count_nonzero(falling > step))
    while active >= _TOGETHER:
        here = at[:active]
        begins[place[:active] + step] = here
        size, after = _varints(buf, here)
        right = (size >= 0) & (size <= end[:active] - after)
        # A batch that went wrong goes nowhere any more, least of all to its end.
        at[:active] = np.where(right, after + size, end[:active] + 1)
        step += 1
        active = int(np.count_nonzero(falling > step))
    for row in range(active):
        left = int(falling[row]) - step
        told, behind = _hop(blob, int(at[row]), int(end[row]), left)
        first = int(place[row]) + step
        begins[first : first + len(told)] = told
        at[row] = behind
    filled = np.empty(len(order), bool)
    filled[order] = at == end
    return begins, filled


def _hop(blob: bytes, at: int, end: int, count: int) -> tuple[list[int], int]:
    """Where `count` records begin and what is behind them; behind the end where they do not fit."""
    begins: list[int] = []
    add = begins.append
    for _ in range(count):
        if at >= end:
            return begins, end + 1
        add(at)
        byte = blob[at]
        size = byte & 127
        shift = 7
        while byte >= 128 and at + 1 < end:
            at += 1
            byte = blob[at]
            size |= (byte & 127) << shift
            shift += 7
        if byte >= 128 or size & 1 or shift > _MAX_SIZE_BITS:
            return begins, end + 1
        at += 1 + (size >> 1)
    return begins, at


def _fields(
    buf: Bytes, begins: Ints, owner: Ints, ends: Ints, batches: Sequence[_Batch]
) -> tuple[_Found, npt.NDArray[np.bool_]]:
    """The fields of the records that begin at these places, and whether a record is as it should be."""
    # Where the next record begins; the last one of a batch ends with the batch.
    stops = ends.copy()
    same = owner[1:] == owner[:-1]
    stops[:-1][same] = begins[1:][same]
    _, at = _varints(buf, begins)
    delta_ms, at = _varints(buf, at + 1)
    offset, at = _varints(buf, at)
    key_bytes, key_at = _varints(buf, at)
    value_bytes, value_at = _varints(buf, key_at + np.maximum(key_bytes, 0))
    headers, headers_at = _varints(buf, value_at + np.maximum(value_bytes, 0))
    right = (key_bytes >= -1) & (value_bytes >= -1) & (headers >= 0)
    right &= (key_bytes < len(buf)) & (value_bytes < len(buf)) & (headers < len(buf))
    right &= (np.abs(delta_ms) <= _MAX_DELTA) & (np.abs(offset) <= _MAX_DELTA)
    right &= np.where(headers == 0, headers_at == stops, headers_at + 2 * headers <= stops)
    time_ms = _times(delta_ms, owner, batches)
    found = _Found(owner, offset, time_ms, key_at, key_bytes, value_at, value_bytes, headers_at, headers, stops)
    return found, right


def _varints(buf: Bytes, at: Ints) -> tuple[Ints, Ints]:
    """Zigzag varints at these places and the places behind them; behind the buffer's end there are zeros."""
    last = len(buf) - _PADDING
    at = np.clip(at, 0, last)
    byte = buf[at]
    value = (byte & 127).astype(np.uint64)
    after = at + 1
    going = np.nonzero(byte >= 128)[0]
    for shift in range(7, 70, 7):
        if not len(going):
            break
        byte = buf[np.minimum(after[going], last)]
        value[going] |= (byte & 127).astype(np.uint64) << np.uint64(shift)
        after[going] += 1
        going = going[byte >= 128]
    # One that does not end is as wrong as one that states an impossible size.
    after[going] = last + _PADDING
    return (value >> np.uint64(1)).astype(np.int64) ^ -(value & np.uint64(1)).astype(np.int64), after


def _times(delta_ms: Ints, owner: Ints, batches: Sequence[_Batch]) -> Ints:
    """Times in ms; _NULL where none was given."""
    fixed = np.array([_ms(batch.fixed_timestamp_ms) for batch in batches], np.int64)[owner]
    base = np.array([_ms(batch.base_timestamp_ms) for batch in batches], np.int64)[owner]
    times = np.where(base == _NULL, _NULL, np.where(base == _NULL, 0, base) + delta_ms)
    return np.where(fixed == _NULL, times, fixed)


def _ms(value: int | None) -> int:
    return _NULL if value is None or value == -1 else _bounded(value, _NULL)


def _values(found: _Found, batches: Sequence[_Batch], blob: bytes) -> list[pa.Array]:
    """The columns of `Table.lists`, one element per record."""
    rest = found.headers == _NULL
    bases = np.array([_NULL if b.base_offset is None else _bounded(b.base_offset, _NULL) for b in batches], np.int64)[
        found.batch
    ]
    sequences = np.array([-1 if b.base_sequence is None else b.base_sequence for b in batches], np.int64)[found.batch]
    unknown = (bases == _NULL) | (found.offset == _NULL)
    columns: dict[str, pa.Array] = {
        "offset": pa.array(np.where(unknown, 0, bases) + found.offset, mask=unknown),
        "timestamp": _ns(found.time_ms),
        "key_bytes": pa.array(found.key_bytes, mask=found.key_bytes < 0),
        "value_bytes": pa.array(found.value_bytes, mask=found.value_bytes < 0),
        "headers_count": pa.array(found.headers, mask=rest),
        "sequence": pa.array((sequences + _index_in_batch(found)) & 0x7FFFFFFF, mask=(sequences < 0) | rest),
    }
    columns.update(_payload(found, blob, batches[0].payload))
    return [columns.get(name, pa.nulls(len(rest), pa.string())) for name in TABLES[TABLE].lists]


def _ns(time_ms: Ints) -> pa.Array:
    unknown = (time_ms == _NULL) | (np.abs(time_ms) > _MAX_MS) | (time_ms == -1)
    return pa.array(np.where(unknown, 0, time_ms) * _NS_PER_MS, mask=unknown)


def _index_in_batch(found: _Found) -> Ints:
    place = np.arange(len(found.batch))
    begins = np.ones(len(place), bool)
    begins[1:] = found.batch[1:] != found.batch[:-1]
    return place - np.maximum.accumulate(np.where(begins, place, 0))


def _payload(found: _Found, blob: bytes, wanted: frozenset[str]) -> dict[str, pa.Array]:
    """Keys, values and headers as text."""
    columns: dict[str, pa.Array] = {}
    if "key" in wanted or "value" in wanted:
        parts = _parts(found, blob)
        for name, place, sizes in (("key", 0, found.key_bytes), ("value", 2, found.value_bytes)):
            if name in wanted:
                at = pa.array(np.arange(place, 4 * len(sizes), 4), mask=sizes < 0)
                columns[name], columns[f"{name}_encoding"] = _texts(parts.take(at), sizes)
    if "headers" in wanted:
        headers = ["[]"] * len(found.batch)
        places = found.headers_at, found.headers, found.end
        for index in np.nonzero(found.headers > 0)[0].tolist():
            headers[index] = _headers_json(blob, *(int(numbers[index]) for numbers in places))
        columns["headers"] = pc.if_else(pa.array(found.headers != _NULL), pa.array(headers, pa.string()), None)
    return columns


def _parts(found: _Found, blob: bytes) -> pa.Array:
    """Key, what follows it, value, what follows that, of each record: positions only rise, so nothing is copied."""
    edges = np.empty((len(found.batch), 4), np.int64)
    edges[:, 0], edges[:, 1] = found.key_at, found.key_at + np.maximum(found.key_bytes, 0)
    edges[:, 2], edges[:, 3] = found.value_at, found.value_at + np.maximum(found.value_bytes, 0)
    bounds = np.append(edges.ravel(), len(blob))
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(blob)]
    return pa.Array.from_buffers(pa.large_binary(), len(bounds) - 1, buffers)


def _texts(parts: pa.Array, sizes: Ints) -> tuple[pa.Array, pa.Array]:
    """Bytes as text, and how they are written in it."""
    if not (sizes > _MAX_PAYLOAD_BYTES).any():
        try:
            return parts.cast(pa.string()), pc.if_else(parts.is_valid(), "utf8", None)
        except pa.ArrowInvalid:
            pass
    both: list[Any] = [(None, None) if part is None else text_of(part) for part in parts.to_pylist()]
    texts, encodings = zip(*both, strict=True)
    return pa.array(texts, pa.string()), pa.array(encodings, pa.string())


def text_of(data: bytes) -> tuple[str, str]:
    """The text of a key, value or header, and its encoding: utf8, hex, or either with _cut behind the first MiB."""
    cut = len(data) > _MAX_PAYLOAD_BYTES
    suffix = "_cut" if cut else ""
    part = data[:_MAX_PAYLOAD_BYTES]
    for end in range(len(part), len(part) - (4 if cut else 1), -1):  # the cut may go through a character
        try:
            return part[:end].decode(), f"utf8{suffix}"
        except UnicodeDecodeError:
            continue
    return part.hex(), f"hex{suffix}"


def _headers_json(blob: bytes, at: int, count: int, end: int) -> str:
    found, _ = record_headers(blob, at, count, end)
    listed = []
    for name, value in found:
        text, encoding = (None, None) if value is None else text_of(value)
        listed.append([text_of(name)[0], text, *([encoding] if encoding not in (None, "utf8") else [])])
    return json.dumps(listed, ensure_ascii=False)
