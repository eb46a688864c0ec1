"""Kafka records of many batches at once: raw rows of `kafka_records`, one for a batch, to Arrow columns with lists.

In: the decoder's rows (RECORDS), as tuples or in a block, whose `data` is what decompressing gave. Out: an Arrow
batch with FIELDS; of every column in `Table.lists` a row holds a list with one element per record, at most LIST_ROWS.
`record_places.py` finds the records; here their fields become columns.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from wirewitness.analyser.base import compute as pc
from wirewitness.analyser.decoding.rows.column_rows import arrays_of
from wirewitness.analyser.decoding.rows.raw_types import RAW_TYPES
from wirewitness.analyser.decoding.rows.record_places import (
    NULL,
    Batch,
    Batches,
    Found,
    Ints,
    found_records,
    known,
    known_of,
    times_of,
)
from wirewitness.analyser.tables.tables import TABLES
from wirewitness.dissectors.core.blocks import Block, Column, Numbers, Same, values_of
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.lockstep.column_ops import chosen
from wirewitness.dissectors.core.model import Row
from wirewitness.dissectors.kafka.records.record_sets import record_headers
from wirewitness.dissectors.kafka.rows.data_fields import RECORDS

TABLE = "kafka_records"
LIST_ROWS = 1024
_SCALARS = {field.name: RAW_TYPES[field.raw_kind] for field in RECORDS if field.name not in Batch._fields}
_ERROR_AT = RECORDS.names.index("error")
FIELDS = (*_SCALARS, *TABLES[TABLE].lists)
_MAX_MS = (2**63 - 1) // 1_000_000
_NS_PER_MS = 1_000_000
_MAX_PAYLOAD_BYTES = Limits().max_payload_bytes


def gathered(rows: Sequence[Row]) -> tuple[list[pa.Array], Ints]:
    """Arrays of FIELDS, and for each of their rows the index of the raw row that it comes from."""
    scalars = [pa.array([row[place] for row in rows], kind) for place, kind in enumerate(_SCALARS.values())]
    batches = Batches.of([Batch._make(row[len(_SCALARS) :]) for row in rows])
    return _unfolded(scalars, batches, [row[_ERROR_AT] for row in rows])


def gathered_of_block(block: Block, rows: Ints) -> tuple[list[pa.Array], Ints]:
    """The same of some rows of a block, of which there is one at least. Raises what `arrays_of` does."""
    columns = [chosen(column, rows) for column in block.columns]
    scalars = arrays_of(Block(columns[: len(_SCALARS)], len(rows)), list(_SCALARS.values()))
    told = list(values_of(columns[_ERROR_AT], 0, len(rows)))
    return _unfolded(scalars, _in_columns(columns, len(rows)), told)


def _in_columns(columns: Sequence[Column], count: int) -> Batches:
    own = dict(zip(Batch._fields, columns[len(_SCALARS) :], strict=True))
    if own["records"] != Same(None):
        raise TypeError("batches of which the records were read already come as tuples")

    def one(index: int) -> Batch:
        return Batch._make(next(iter(values_of(column, index, index + 1))) for column in own.values())

    return Batches(
        list(values_of(own["data"], 0, count)),
        _numbers(own["records_count"], count),
        _numbers(own["base_offset"], count),
        times_of(_numbers(own["base_timestamp_ms"], count)),
        times_of(_numbers(own["fixed_timestamp_ms"], count)),
        _numbers(own["base_sequence"], count),
        one(0).payload,
        one,
    )


def _numbers(column: Column, count: int) -> Ints:
    if isinstance(column, Numbers):
        return known(column.values, column.valid)
    return known_of(list(values_of(column, 0, count)))


def _unfolded(scalars: list[pa.Array], batches: Batches, told: Sequence[str | None]) -> tuple[list[pa.Array], Ints]:
    """See `gathered`. scalars: a row of each batch; told: why records of a batch are missing."""
    blob = b"".join(batches.data)
    bases = np.concatenate(([0], np.cumsum(list(map(len, batches.data))))).astype(np.int64)
    found, errors = found_records(batches, blob, bases, told)
    pieces = _pieces(found)
    offsets = pa.array(np.append(pieces.start, len(found.batch)).astype(np.int32))
    lists = [pa.ListArray.from_arrays(offsets, values) for values in _values(found, batches, blob)]
    owners = pa.array(pieces.batch)
    arrays = [pc.take(column, owners) for column in scalars]
    if any(errors):
        texts = [errors[batch] if rest else None for batch, rest in pieces.owners()]
        arrays[_ERROR_AT] = pa.array(texts, pa.string())
    return arrays + lists, pieces.batch


@dataclass(frozen=True, slots=True)
class _Pieces:
    """Runs of records of one batch, each short enough to be one row. rest: it stands for records that are missing."""

    batch: Ints
    start: Ints
    rest: npt.NDArray[np.bool_]

    def owners(self) -> list[tuple[int, bool]]:
        """(batch, rest) of every piece."""
        return list(zip(self.batch.tolist(), self.rest.tolist(), strict=True))


def _pieces(found: Found) -> _Pieces:
    """A piece begins with each batch, after LIST_ROWS records, and with a missing rest."""
    count = len(found.batch)
    rest = found.headers == NULL
    begins = np.ones(count, bool)
    begins[1:] = (found.batch[1:] != found.batch[:-1]) | rest[1:]
    place = np.arange(count)
    since = place - np.maximum.accumulate(np.where(begins, place, 0))
    start = np.nonzero(begins | (since % LIST_ROWS == 0))[0].astype(np.int64)
    return _Pieces(found.batch[start], start, rest[start])


def _values(found: Found, batches: Batches, blob: bytes) -> list[pa.Array]:
    """The columns of `Table.lists`, one element per record."""
    rest = found.headers == NULL
    bases, sequences = batches.base_offset[found.batch], batches.base_sequence[found.batch]
    unknown = (bases == NULL) | (found.offset == NULL)
    columns: dict[str, pa.Array] = {
        "offset": pa.array(np.where(unknown, 0, bases) + found.offset, mask=unknown),
        "timestamp": _ns(found.time_ms),
        "key_bytes": pa.array(found.key_bytes, mask=found.key_bytes < 0),
        "value_bytes": pa.array(found.value_bytes, mask=found.value_bytes < 0),
        "headers_count": pa.array(found.headers, mask=rest),
        "sequence": pa.array((sequences + _index_in_batch(found)) & 0x7FFFFFFF, mask=(sequences < 0) | rest),
    }
    columns.update(_payload(found, blob, batches.payload))
    return [columns.get(name, pa.nulls(len(rest), pa.string())) for name in TABLES[TABLE].lists]


def _ns(time_ms: Ints) -> pa.Array:
    unknown = (time_ms == NULL) | (np.abs(time_ms) > _MAX_MS) | (time_ms == -1)
    return pa.array(np.where(unknown, 0, time_ms) * _NS_PER_MS, mask=unknown)


def _index_in_batch(found: Found) -> Ints:
    place = np.arange(len(found.batch))
    begins = np.ones(len(place), bool)
    begins[1:] = found.batch[1:] != found.batch[:-1]
    return place - np.maximum.accumulate(np.where(begins, place, 0))


def _payload(found: Found, blob: bytes, wanted: frozenset[str]) -> dict[str, pa.Array]:
    """Keys, values and headers as text."""
    columns: dict[str, pa.Array] = {}
    if "key" in wanted or "value" in wanted:
        parts = _parts(found, blob)
        for name, place, sizes in (("key", 0, found.key_bytes), ("value", 2, found.value_bytes)):
            if name in wanted:
                at = pa.array(np.arange(place, 4 * len(sizes), 4), mask=sizes < 0)
                columns[name], columns[f"{name}_encoding"] = _texts(pc.take(parts, at), sizes)
    if "headers" in wanted:
        headers = ["[]"] * len(found.batch)
        places = found.headers_at, found.headers, found.end
        for index in np.nonzero(found.headers > 0)[0].tolist():
            headers[index] = _headers_json(blob, *(int(numbers[index]) for numbers in places))
        columns["headers"] = pc.if_else(pa.array(found.headers != NULL), pa.array(headers, pa.string()), None)
    return columns


def _parts(found: Found, blob: bytes) -> pa.Array:
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
            return pc.cast(parts, pa.string()), pc.if_else(pc.is_valid(parts), "utf8", None)
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


# The tables whose raw rows are gathered into arrays by code of their own, because a row stands for many.
