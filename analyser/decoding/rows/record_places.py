"""Where the records of many batches are, as arrays.

In: batches of records in columns, whose `data` stand behind each other in one blob. Out: `Found`, one element per
record, and what is wrong with each batch. `dissectors/kafka/records/record_sets.py` says what record data means. Here
the same is done with arrays: only the hop from one record to the next is a Python loop. A batch in which anything is
odd is left to that slower reader.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from wirewitness.dissectors.kafka.records.record_sets import Record, split_records

# Stands for a number that is not known.
NULL = np.iinfo(np.int64).min
# Honest differences are far smaller; sums of larger ones would not fit into 64 bits.
_MAX_DELTA = 2**53
_MAX_SIZE_BITS = 35
_PADDING = 16
_SHORTEST_RECORD_BYTES = 7
# From so many batches on a step of arrays costs less than the steps of a loop.
_TOGETHER = 100

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]


class Batch(NamedTuple):
    """The last fields of a raw row of `kafka_records`, in their order: what it says for the analyser only."""

    data: bytes
    records_count: int
    records: list[Record] | None
    base_offset: int | None
    first_offset: int
    base_timestamp_ms: int | None
    fixed_timestamp_ms: int | None
    base_sequence: int | None
    payload: frozenset[str]


class Batches(NamedTuple):
    """Batches in columns; NULL stands for numbers that are not known, or that no sum may be made of.

    counts: how many records each has, -1 where they were read already. one: gives the batch with this number.
    """

    data: Sequence[bytes]
    counts: Ints
    base_offset: Ints
    base_ms: Ints
    fixed_ms: Ints
    base_sequence: Ints
    payload: frozenset[str]
    one: Callable[[int], Batch]

    @classmethod
    def of(cls, batches: Sequence[Batch]) -> Batches:
        """Of at least one."""
        return cls(
            [batch.data for batch in batches],
            np.array([-1 if batch.records is not None else batch.records_count for batch in batches], np.int64),
            known_of([batch.base_offset for batch in batches]),
            times_of(known_of([batch.base_timestamp_ms for batch in batches])),
            times_of(known_of([batch.fixed_timestamp_ms for batch in batches])),
            known_of([batch.base_sequence for batch in batches]),
            batches[0].payload,
            batches.__getitem__,
        )


def known_of(values: Sequence[int | None]) -> Ints:
    """Numbers as `Batches` have them."""
    return np.array([NULL if value is None else bounded(value, NULL) for value in values], np.int64)


def known(values: Ints, valid: npt.NDArray[np.bool_] | None) -> Ints:
    """The same of an array. valid: which are not null, None for all."""
    fit = (values >= -_MAX_DELTA) & (values <= _MAX_DELTA)
    found: Ints = np.where(fit if valid is None else fit & valid, values, NULL)
    return found


def times_of(values: Ints) -> Ints:
    """Times as `Batches` have them: -1 says that none was given."""
    found: Ints = np.where(values == -1, NULL, values)
    return found


class Found(NamedTuple):
    """Records as arrays: their batch, offset behind the batch's first, time in ms, positions and sizes in the blob.

    NULL stands for what is not known; an element whose headers are NULL stands for the rest that is missing.
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


def found_records(
    batches: Batches, blob: bytes, bases: Ints, told: Sequence[str | None]
) -> tuple[Found, list[str | None]]:
    """All records in the order of the batches, and what is wrong with each batch."""
    errors = list(told)
    fast, odd = _quick(batches, blob, bases)
    parts = [fast]
    for index in odd:
        batch = batches.one(index)
        records, wrong = (batch.records, None) if batch.records is not None else split_records(
            batch.data, batch.records_count, batch.first_offset, batch.base_timestamp_ms or 0, batch.fixed_timestamp_ms
        )  # fmt: skip
        errors[index] = errors[index] or wrong
        parts.append(_listed(index, records or [], batch, int(bases[index])))
    parts += [_missing(index, int(bases[index + 1])) for index, error in enumerate(errors) if error]
    if len(parts) == 1:
        return fast, errors
    joined = Found(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
    order = np.argsort(joined.batch, kind="stable")
    return Found(*(column[order] for column in joined)), errors


def _listed(index: int, records: Sequence[Record], batch: Batch, base: int) -> Found:
    """Records that the slower reader gave; numbers that no column can hold become unknown."""
    rows = [
        (
            index,
            bounded(offset - batch.first_offset, NULL),
            NULL if time is None else bounded(time, NULL),
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
    table = np.array(rows, np.int64).reshape(len(rows), len(Found._fields))
    return Found(*table.T)


def _missing(index: int, end: int) -> Found:
    return Found(*(np.array([value], np.int64) for value in (index, NULL, NULL, end, -1, end, -1, end, NULL, end)))


def bounded(value: int, otherwise: int) -> int:
    return value if -_MAX_DELTA <= value <= _MAX_DELTA else otherwise


def _quick(batches: Batches, blob: bytes, bases: Ints) -> tuple[Found, list[int]]:
    """The records of all batches that are as they should be, and the indexes of the other ones."""
    buf = np.frombuffer(blob + bytes(_PADDING), np.uint8)
    sizes = np.diff(bases)
    counts = batches.counts.copy()
    odd = (counts < 0) | (counts * _SHORTEST_RECORD_BYTES > sizes) | ((counts == 0) & (sizes > 0))
    counts[odd] = 0
    begins, filled = _begins(blob, buf, bases[:-1], bases[1:], counts)
    owner = np.repeat(np.arange(len(counts)), counts)
    found, right = _fields(buf, begins, owner, bases[1:][owner], batches)
    odd |= ~filled
    odd[owner[~right]] = True
    if odd.any():
        kept = ~odd[owner]
        found = Found(*(column[kept] for column in found))
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


def _fields(buf: Bytes, begins: Ints, owner: Ints, ends: Ints, batches: Batches) -> tuple[Found, npt.NDArray[np.bool_]]:
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
    found = Found(owner, offset, time_ms, key_at, key_bytes, value_at, value_bytes, headers_at, headers, stops)
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


def _times(delta_ms: Ints, owner: Ints, batches: Batches) -> Ints:
    """Times in ms; NULL where none was given."""
    fixed, base = batches.fixed_ms[owner], batches.base_ms[owner]
    times = np.where(base == NULL, NULL, np.where(base == NULL, 0, base) + delta_ms)
    return np.where(fixed == NULL, times, fixed)
