"""The record batches in many `records` fields at once. In: where the fields lie. Out: headers in columns, and data.

Only batches of format 2 that are whole, with the right checksum, and what a broker cuts off at the end of an answer. A
field with anything else is odd: `records/batches.py` reads it, and so is one with data that `opened.py` does not take.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from wirewitness.dissectors.core.decompression import Allowance
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.lockstep.frames import Flags, Ints
from wirewitness.dissectors.core.lockstep.json_ends import BEGINS_JSON
from wirewitness.dissectors.kafka.lockstep.blob import Blob
from wirewitness.dissectors.kafka.lockstep.read import Columns, Texts, lists
from wirewitness.dissectors.kafka.records.batches import CODEC_BITS, codec_name
from wirewitness.dissectors.kafka.records.compression import decompress
from wirewitness.dissectors.kafka.records.record_sets import SCHEMA_ID_BYTES, VALUE_KINDS, first_record, value_kind

HEADER_BYTES = 61
_HEADER = np.dtype(
    {
        "names": [
            "base_offset",
            "size",
            "magic",
            "crc",
            "attributes",
            "last_offset_delta",
            "base_timestamp",
            "max_timestamp",
            "producer_id",
            "producer_epoch",
            "base_sequence",
            "count",
        ],
        "formats": [">i8", ">i4", "i1", ">u4", ">i2", ">i4", ">i8", ">i8", ">i8", ">i2", ">i4", ">i4"],
        "offsets": [0, 8, 16, 17, 21, 23, 27, 35, 43, 51, 53, 57],
        "itemsize": HEADER_BYTES,
    }
)
_PREFIX_BYTES = 12
_MAGIC_AT = 16
_CHECKED_AT = 21
_SHORT_VARINT = 3
NO_KIND = len(VALUE_KINDS)
# Offsets up to here do not overflow when a batch is added to them.
_HIGHEST = (1 << 63) - (1 << 33)


class Place(NamedTuple):
    """Where the records of an API's exchanges are. of_request: else of the response. may_be_cut: at their end."""

    of_request: bool
    topics: str
    partitions: str
    may_be_cut: bool


class FirstRecords(NamedTuple):
    """`record_sets.FirstRecord` of each batch, in columns. value_kind: places in VALUE_KINDS, or NO_KIND."""

    content_crc: Sequence[int | None]
    key_bytes: Sequence[int | None]
    key_crc: Sequence[int | None]
    value_kind: Ints


class Batches(NamedTuple):
    """Whole batches. field: the number of the `records` field each lies in. header: its fields, in numpy's own type.

    In the order of the fields, those of one field in its order. at: where each begins. data: its records, one behind
    the other, where somebody wants them. first: see `first_records`.
    """

    field: Ints
    header: npt.NDArray[Any]
    at: Ints
    data: Sequence[bytes] = ()
    first: FirstRecords | None = None

    def number(self, name: str) -> Ints:
        """A field of all headers."""
        return self.header[name].astype(np.int64)

    @property
    def bytes(self) -> Ints:
        """The size of each, prefix included."""
        return self.number("size") + _PREFIX_BYTES


# So many steps are taken however few fields have so many batches; behind them, if there are some fields at least.
_STEPS_OF_FEW, _LEAST_FIELDS = 16, 6
# Batches, and which of them to open -> the data of each, empty where it is not opened, and which are odd.
Opener = Callable[[Batches, Flags], tuple[Sequence[bytes], Flags]]


def batches_of(blob: Blob, place: Place, columns: Columns, count: int, opener: Opener | None) -> tuple[Batches, Flags]:
    """The batches in the bodies of `count` exchanges, and which of the exchanges have odd ones.

    opener: gives their data; None where nobody wants it.
    """
    topics = lists(columns, place.topics)
    partitions = lists(topics.of, place.partitions)
    fields = partitions.of["records"]
    assert isinstance(fields, Texts)
    batches, odd = _batches(blob, fields, place.may_be_cut)
    if opener is not None:
        data, unfit = opener(batches, ~odd[batches.field])
        batches = batches._replace(data=data)
        odd[batches.field[unfit]] = True
    odd_exchanges = np.zeros(count, bool)
    odd_exchanges[topics.owners[partitions.owners[odd]]] = True
    return batches, odd_exchanges


def first_records(blob: Blob, batches: Batches) -> Batches:
    """The batches with what the first record of each says (`record_sets.FirstRecord`)."""
    import crc32c  # as above

    view, crc = memoryview(blob.data), crc32c.crc32c
    places, packed, odd = _first_places(blob, batches)
    begin, end, key, key_at = (one.tolist() for one in (places.begin, places.end, places.key, places.key_at))
    contents: list[int | None] = [crc(view[a:z]) for a, z in zip(begin, end, strict=True)]
    keys: list[int | None] = [
        None if size < 0 else crc(view[at : at + size]) for size, at in zip(key, key_at, strict=True)
    ]
    kinds = _value_kinds(blob, places.value, places.value_at, places.end)
    sizes: list[int | None] = [max(size, -1) for size in key]
    rows = np.flatnonzero(packed | odd)
    codecs = batches.number("attributes") & CODEC_BITS
    spans = (column[rows].tolist() for column in (batches.at, batches.bytes, codecs))
    for row, start, size, codec in zip(rows.tolist(), *spans, strict=True):
        one = first_record(view, start, start + size, codec)
        contents[row], sizes[row], keys[row] = one.content_crc, one.key_bytes, one.key_crc
        kinds[row] = NO_KIND if one.value_kind is None else VALUE_KINDS.index(one.value_kind)
    return batches._replace(first=FirstRecords(contents, sizes, keys, kinds))


def _value_kinds(blob: Blob, size: Ints, start: Ints, end: Ints) -> Ints:
    """Places in VALUE_KINDS. Most values are whole JSON or have a schema's id: these are told in columns."""
    first, second = blob.bytes_at(start), blob.bytes_at(start + 1)
    kinds = np.full(len(size), NO_KIND, np.int64)
    whole = (size >= 2) & BEGINS_JSON[first, second] & (blob.bytes_at(end - 1) == first + 2)
    kinds[whole] = VALUE_KINDS.index("json")
    kinds[(size >= SCHEMA_ID_BYTES) & (first == 0)] = VALUE_KINDS.index("schema_id")
    kinds[size < 0] = VALUE_KINDS.index("null")
    for row in np.flatnonzero(kinds == NO_KIND).tolist():
        kinds[row] = VALUE_KINDS.index(value_kind(blob.data[int(start[row]) : int(end[row])]))
    return kinds


class _Places(NamedTuple):
    """Of first records: where their keys begin with their sizes, the sizes, where keys and values are, and the end."""

    begin: Ints
    key: Ints
    key_at: Ints
    value: Ints
    value_at: Ints
    end: Ints


def _first_places(blob: Blob, batches: Batches) -> tuple[_Places, Flags, Flags]:
    """Where the first record of each batch is, which batches are compressed, and which are to be read one by one."""
    begin, end = batches.at + HEADER_BYTES, batches.at + batches.bytes
    size, at, odd = _varints(blob, begin)
    last = np.minimum(end, at + size)
    _, at, long_time = _varints(blob, at + 1)  # behind the attributes
    _, first, long_offset = _varints(blob, at)
    key, key_at, long_key = _varints(blob, first)
    value, value_at, long_value = _varints(blob, key_at + np.maximum(key, 0))
    stop = value_at + np.maximum(value, 0)
    odd |= long_time | long_offset | long_key | long_value | (stop > last) | (begin >= end)
    packed = (batches.number("attributes") & CODEC_BITS) != 0
    places = _Places(first, key, key_at, value, value_at, stop)
    return _Places(*(np.where(odd | packed, 0, one) for one in places)), packed, odd & ~packed


def _varints(blob: Blob, at: Ints) -> tuple[Ints, Ints, Flags]:
    """Zigzag varints at these positions, the positions behind them, and which are longer than _SHORT_VARINT bytes."""
    value, goes_on = np.zeros(len(at), np.int64), np.ones(len(at), bool)
    for place in range(_SHORT_VARINT):
        byte = blob.bytes_at(at)
        value |= np.where(goes_on, (byte & 0x7F) << (7 * place), 0)
        at = at + goes_on
        goes_on = goes_on & (byte >= 0x80)
    return (value >> 1) ^ -(value & 1), at, goes_on


def _batches(blob: Blob, fields: Texts, may_be_cut: bool) -> tuple[Batches, Flags]:
    """The batches of all fields, and which fields are odd: first the first ones of all, then the second ones.

    Few fields that have many more than all others are odd, too: a step for some batches takes as long as one for many.
    """
    import crc32c  # with what it imports itself it takes longer than many captures without a batch

    odd = np.zeros(len(fields.start), bool)
    view = memoryview(blob.data)
    rows = np.flatnonzero(fields.size >= _PREFIX_BYTES)
    at, end = fields.start[rows], (fields.start + fields.size)[rows]
    of_fields, headers, places = [np.zeros(0, np.int64)], [np.zeros(0, _HEADER)], [np.zeros(0, np.int64)]
    steps = 0
    while len(rows):
        if len(rows) < _LEAST_FIELDS and steps >= _STEPS_OF_FEW:
            odd[rows] = True
            break
        steps += 1
        header = blob.gather(at, _HEADER)
        left = end - at
        size = header["size"].astype(np.int64) + _PREFIX_BYTES
        whole = (header["magic"] == 2) & (size >= _HEADER.itemsize) & (header["count"] >= 0)
        whole &= (header["last_offset_delta"] >= 0) & (header["base_offset"] <= _HIGHEST)
        known = (header["magic"] == 2) & (size >= _HEADER.itemsize) & (whole | (left < _HEADER.itemsize))
        cut = np.where(left <= _MAGIC_AT, header["size"] >= 0, known & (size > left))
        odd[rows[np.where(cut, not may_be_cut, ~whole)]] = True
        rows, at, end, header, size = (column[whole & ~cut] for column in (rows, at, end, header, size))
        spans = zip((at + _CHECKED_AT).tolist(), (at + size).tolist(), strict=True)
        odd[rows[np.array([crc32c.crc32c(view[a:z]) for a, z in spans], np.int64) != header["crc"]]] = True
        of_fields.append(rows)
        headers.append(header)
        places.append(at)
        at = at + size
        more = end - at >= _PREFIX_BYTES
        rows, at, end = rows[more], at[more], end[more]
    field = np.concatenate(of_fields)
    order = np.argsort(field, kind="stable")
    return Batches(field[order], np.concatenate(headers)[order], np.concatenate(places)[order]), odd


# The data of many record batches, decompressed. In: `Batches`. Out: their records' bytes, and which batches are odd.
#
# Odd is what `records/record_sets.py` would remark on, what may depend on what the flow's data gave before (see
# `Allowance`), and all that is more than may be held at once.

# What is held at a time: bytes, and records, each of which becomes a row.
MAX_BYTES = 32 << 20
MAX_RECORDS = 1 << 20


class OpenedOnce:
    """Opens the batches of one blob, an `Opener`. Those that are asked for again are there already."""

    def __init__(self, blob: Blob, limits: Limits) -> None:
        self._data = blob.data
        self._limits = limits
        self._found: dict[int, bytes | None] = {}
        self._bytes_left, self._records_left = MAX_BYTES, MAX_RECORDS

    def __call__(self, batches: Batches, wanted: Flags) -> tuple[Sequence[bytes], Flags]:
        """See `Opener`."""
        found, odd = [b""] * len(wanted), np.zeros(len(wanted), bool)
        rows = np.flatnonzero(wanted)
        at, sizes, attributes, counts = (
            column[rows].tolist()
            for column in (batches.at, batches.bytes, batches.number("attributes"), batches.number("count"))
        )
        for row, start, size, bits, count in zip(rows.tolist(), at, sizes, attributes, counts, strict=True):
            if start not in self._found:
                self._found[start] = self._opened(start + HEADER_BYTES, start + size, bits & CODEC_BITS, count)
            data = self._found[start]
            if data is None:
                odd[row] = True
            else:
                found[row] = data
        return found, odd

    def _opened(self, start: int, end: int, codec: int, count: int) -> bytes | None:
        """The records between these places, None for odd ones."""
        if count > min(self._records_left, self._limits.max_records_per_batch) or end - start > self._bytes_left:
            return None
        data, is_odd = self._data[start:end], False
        if codec:
            allowance = Allowance(self._limits)
            if count > allowance.usual_records(end - start):
                return None
            most = min(allowance.limit(end - start), self._bytes_left + 1)
            data, error, limited, more = decompress(codec_name(codec), data, most)
            if limited or not allowance.is_usual(end - start, len(data) + 1):
                self._bytes_left = 0  # one is enough to have been opened in vain
            is_odd = error is not None or more or len(data) > self._bytes_left
        # What was opened in vain counts, too: it is opened once more, one by one.
        self._bytes_left = max(0, self._bytes_left - len(data))
        self._records_left -= count
        return None if is_odd else data
