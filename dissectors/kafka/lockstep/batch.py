"""Frames of many connections in columns, and which of them are requests with their responses.

In: for each connection its frames in the order in which they are fed, and what is known of it already.
Out: columns of the pairs of which `pairs.py` is certain.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.lockstep.frames import Frames, Ints
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER
from wirewitness.dissectors.kafka.lockstep.blob import Blob
from wirewitness.dissectors.kafka.lockstep.pairs import Headers, Known, certain_pairs
from wirewitness.dissectors.kafka.sasl import SASL_KEYS

_REQUEST = np.dtype([("api_key", ">i2"), ("version", ">i2"), ("correlation_id", ">i4"), ("client_id", ">i2")])
_RESPONSE = np.dtype([("correlation_id", ">i4")])
_SIZE_BYTES = 4
REQUEST_HEADER_BYTES = _SIZE_BYTES + _REQUEST.itemsize
RESPONSE_HEADER_BYTES = _SIZE_BYTES + _RESPONSE.itemsize
# A shorter request has no correlation id, one of that size may have an old header.
_LEAST_WITH_ID = _SIZE_BYTES + 8


class Side(NamedTuple):
    """Frames of one direction in columns.

    at: their places among the frames of all connections. start, end: in the blob. The others: see `Frame`.
    """

    at: Ints
    start: Ints
    end: Ints
    offset: Ints
    packet_first: Ints
    packet_last: Ints
    ts_ns: Ints

    def __len__(self) -> int:
        return len(self.at)

    def rows(self, rows: Ints) -> Side:
        """These frames only."""
        return Side(*(column[rows] for column in self))

    @property
    def size(self) -> Ints:
        """Bytes of each, length prefix included."""
        return self.end - self.start


class Batch(NamedTuple):
    """Requests and the responses to them, in the same order, and what the headers of the requests say.

    connection: the number of each one's connection. client_id_bytes: -1 for null. passed: see `Pairs`.
    In the order of the responses of each connection.
    """

    blob: Blob
    connection: Ints
    requests: Side
    responses: Side
    api_key: Ints
    version: Ints
    correlation_id: Ints
    client_id_bytes: Ints
    passed: Mapping[int, list[int]]


def batch(frames: Frames, known: Known, limits: Limits) -> Batch | None:
    """The pairs of all connections; None where there are none."""
    blob = Blob(frames.data)
    places = frames.offset, frames.packet_first, frames.packet_last, frames.ts_ns
    every = Side(np.arange(len(frames)), frames.start, frames.end, *places)
    from_client = frames.direction == CLIENT_TO_SERVER
    has_id = frames.size >= np.where(from_client, REQUEST_HEADER_BYTES, RESPONSE_HEADER_BYTES)
    ids = blob.gather(every.start + np.where(from_client, _SIZE_BYTES + 4, _SIZE_BYTES), _RESPONSE)["correlation_id"]
    keys = blob.gather(every.start + _SIZE_BYTES, _REQUEST)["api_key"]
    odd = from_client & np.isin(keys, list(SASL_KEYS))
    odd |= ~has_id & (frames.complete | (frames.size >= _LEAST_WITH_ID)) | has_id & (ids < 0)
    headers = Headers(from_client, ids.astype(np.int64), has_id, odd, ~frames.complete)
    pairs = certain_pairs(headers, known, limits)
    if not len(pairs.connection):
        return None
    requests = every.rows(pairs.asked)
    header = blob.gather(requests.start + _SIZE_BYTES, _REQUEST)
    api_key, version, ids, sizes = (header[name].astype(np.int64) for name in _REQUEST.names or ())
    answers = every.rows(pairs.answered)
    return Batch(blob, pairs.connection, requests, answers, api_key, version, ids, sizes, pairs.passed)
