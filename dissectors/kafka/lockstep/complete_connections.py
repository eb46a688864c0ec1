"""Kafka connections of which every byte is there, many at once. In: `Streams`. Out: `WholeRead`.

A connection is Kafka for certain if its first request was read to its last byte and has a client id, or if the probe
says so of the segment with it. Where all exchanges of one were read together there is no decoder at all; else one
decodes what is left, between the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import accumulate
from typing import Protocol

import numpy as np

from wirewitness.dissectors.core.blocks import Block, Coded, Numbers, Same
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.lockstep.complete_connections import First, by_themselves, probed
from wirewitness.dissectors.core.lockstep.frame_scan import frames_of
from wirewitness.dissectors.core.lockstep.frames import Flags, Frames, Ints
from wirewitness.dissectors.core.lockstep.streams import Gives, Rows, Streams, WholeRead
from wirewitness.dissectors.core.model import Frame
from wirewitness.dissectors.core.protocol import DECIDES, Sink
from wirewitness.dissectors.kafka.framing import MIN_REQUEST_BYTES, MIN_RESPONSE_BYTES, looks_like_id, probe
from wirewitness.dissectors.kafka.lockstep.batch_decode import Read, Together, prepared, read
from wirewitness.dissectors.kafka.lockstep.blob import Blob
from wirewitness.dissectors.kafka.lockstep.groups import Group
from wirewitness.dissectors.kafka.lockstep.pairs import Known
from wirewitness.dissectors.kafka.schema.api_keys import API_KEYS, api_name

# Rows of kafka_api_versions of connections in which nobody asked for the broker's versions: which ones were used.
#
# In: the exchanges of many connections, all of each. Out: for each connection a row of each API, as
# `rows/version_rows.py` makes them of one.


def version_rows(groups: Sequence[Group], own: Flags) -> tuple[Block, Ints]:
    """The rows of the connections that are `own`, and the connection of each, rising."""
    chosen = [np.flatnonzero(own[group.connection]) for group in groups]
    connection, at, offset, ts_ns = (
        np.concatenate([column[rows] for column, rows in zip(columns, chosen, strict=True)])
        for columns in (
            [group.connection for group in groups],
            [group.requests.at for group in groups],
            [group.requests.offset for group in groups],
            [group.requests.ts_ns for group in groups],
        )
    )
    counts = [len(rows) for rows in chosen]
    key = np.repeat([group.api_key for group in groups], counts)
    version = np.repeat([group.version for group in groups], counts)
    begins = accumulate((len(group.client_ids.values) for group in groups), initial=0)
    client_ids = np.concatenate(
        [begin + group.client_ids.codes[rows] for begin, group, rows in zip(begins, groups, chosen, strict=False)]
    )
    order = np.lexsort((at, key, connection))
    connection, key, version = connection[order], key[order], version[order]
    begins_row = np.ones(len(order), bool)
    begins_row[1:] = (connection[1:] != connection[:-1]) | (key[1:] != key[:-1])
    first = np.flatnonzero(begins_row)
    if not len(first):
        return Block([], 0), first
    keys, codes = np.unique(key[first], return_inverse=True)
    used = order[first]
    columns = (
        Numbers(offset[used]),
        Same(None),
        Numbers(ts_ns[used]),
        Same(None),
        Coded(client_ids[used], [name for group in groups for name in group.client_ids.values]),
        Same(None),
        Same(None),
        Numbers(key[first]),
        Coded(codes, [api_name(one) for one in keys.tolist()]),
        Same(None),
        Same(None),
        Numbers(np.minimum.reduceat(version, first)),
        Numbers(np.maximum.reduceat(version, first)),
    )
    return Block(columns, len(first)), connection[first]


_SIZE = np.dtype([("size", ">i4")])


class ReadsWhole(Protocol):
    """A decoder that has not begun."""

    def whole(self, frames: Sequence[Frame], together: Together | None, out: Sink) -> None:
        """All frames of its connection. together: what was read of them with those of others."""


def read_whole(
    streams: Streams, limits: Limits, payload: frozenset[str], begin: Callable[[], ReadsWhole], out: Sink
) -> WholeRead:
    """See `Dissector.whole`. payload: see `payload_columns`. begin: makes the decoder of a connection that needs
    one."""
    frames, odd = frames_of(streams, partial(_sizes, Blob(streams.data), limits))
    asked = First.of(streams, frames, limits)
    known = ~odd & asked.comes_first
    found = read(frames, Known.nothing(frames.ends - frames.begins), limits, payload, out)
    plain = known & _plain(found, frames, asked, limits)
    known &= plain | probed(streams, asked, known & ~plain, _is_known)
    rows = [] if found is None else [*_rows(found, frames, plain, out)]
    return WholeRead(known, rows, [*_single(found, frames, known & ~plain, begin)])


def _plain(found: Read | None, frames: Frames, asked: First, limits: Limits) -> Flags:
    """Connections that are Kafka for certain, and of which everything was read together."""
    plain = np.zeros(len(frames.begins), bool)
    if found is None or limits.max_api_versions < len(API_KEYS):
        return plain
    for group in found.groups:
        is_first = group.requests.at == asked.frame[group.connection]
        names = np.array([bool(name) and looks_like_id(name) for name in group.client_ids.values], bool)
        plain[group.connection[is_first & names[group.client_ids.codes]]] = True
    plain[frames.connection[found.alone]] = False
    plain[frames.connection[np.fromiter(found.passed, np.int64, len(found.passed))]] = False
    for number, fetches in found.fetches.items():  # sessions are followed one Fetch after the other
        plain[found.groups[number].connection[np.fromiter(fetches.in_session, np.int64)]] = False
    return plain


def _is_known(head: bytes) -> bool:
    return probe(head, b"", True) >= DECIDES


def _rows(found: Read, frames: Frames, plain: Flags, out: Sink) -> Iterator[Rows]:
    for table, placed in found.placed.items():
        connection = frames.connection[placed.at]
        row = np.flatnonzero(plain[connection])
        yield Rows(table, placed.block, row, connection[row])
    if out.rows("kafka_api_versions") is not None:
        groups: list[Group] = list(found.groups)
        block, connection = version_rows(groups, plain)
        yield Rows("kafka_api_versions", block, np.arange(len(connection)), connection)


def _single(found: Read | None, frames: Frames, own: Flags, begin: Callable[[], ReadsWhole]) -> Iterator[Gives]:
    """The connections in which not everything was read together."""
    if not own.any():
        return
    made: list[Together | None] = [None] * len(own) if found is None else prepared(found, frames, own)

    def give(number: int, mine: Callable[[], list[Frame]], out: Sink) -> None:
        begin().whole(mine(), made[number], out)

    yield from by_themselves(frames, own, give)


def _sizes(blob: Blob, limits: Limits, streams: Ints, starts: Ints) -> Ints:
    """See `Sizes`."""
    size = blob.gather(starts, _SIZE)["size"].astype(np.int64)
    smallest = np.where(streams & 1, MIN_RESPONSE_BYTES, MIN_REQUEST_BYTES)
    return np.where((size >= smallest) & (size <= limits.max_frame_bytes), size + _SIZE.itemsize, 0)
