"""Connections that keys open now, read again from their captures; all others stay as the run before left them.

In: chunks of the captures that have packets of them, and a pipeline that goes on from the state of the run before. Out:
their rows, and the pipeline as if it had had the keys. Of a connection all packets are fed, and no others of its
endpoints, to a pipeline of their own, at the same places of the capture and with the same clock.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from wirewitness.analyser.archive.decode.chunks import Chunk
from wirewitness.analyser.archive.decode.fetching import with_stretches
from wirewitness.analyser.archive.decode.packets import NOTE, RangeResult
from wirewitness.analyser.archive.decode.shard_decoder import Before, Rows, ShardDecoder
from wirewitness.analyser.base.storage.files import FilePath
from wirewitness.analyser.capture import PacketBatch
from wirewitness.analyser.decoding.run.pipeline import Pipeline
from wirewitness.dissectors.core.model import packet_of

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Again:
    """What is read again. flows: share -> first packet of a connection -> its last one. before: what lies before the
    files that are read, by number."""

    flows: Mapping[int, Mapping[int, int]]
    before: Mapping[int, Before]


class ReadAgain(NamedTuple):
    """flows: those that were read again, by their first packets. ranges: what was told of the files."""

    flows: list[int]
    ranges: list[RangeResult]


def read_again(
    asked: Again, shard: int, chunks: Iterable[Chunk], paths: Mapping[int, FilePath], kept: Pipeline, fresh: Pipeline
) -> ReadAgain:
    """Read connections of a shard again with `fresh`, whose store gets their rows, and give `kept` what it needs to go
    on. Others may begin on the same endpoints: their rows are in the store, too. ObjectLost."""
    flows = asked.flows.get(shard, {})
    ranges: list[RangeResult] = []
    if not flows:
        told = (chunk.payload for chunk in chunks if chunk.number == NOTE and chunk.payload is not None)
        return ReadAgain([], [*map(pickle.loads, told)])
    wanted = _Wanted(flows, kept, fresh)
    decoder = ShardDecoder(fresh, paths.__getitem__, asked.before, wanted.rows)
    for chunk, stretch in with_stretches(chunks, paths):
        if chunk.number == NOTE and chunk.payload is not None:
            ranges.append(pickle.loads(chunk.payload))
        decoder.take(chunk, stretch)
    return ReadAgain(kept.exchange(fresh, flows), ranges)


class _Wanted:
    """Which packets of a batch belong to the connections that are read again."""

    def __init__(self, flows: Mapping[int, int], kept: Pipeline, fresh: Pipeline) -> None:
        known = kept.pairs_of(flows)
        pairs = np.array([*known.values()], np.int32)
        own = fresh.endpoints.known_as(*kept.endpoints.keys(pairs)) if len(pairs) else pairs
        found: dict[int, list[tuple[int, int]]] = {}
        for pair, first in sorted(zip(own.tolist(), known, strict=True)):
            found.setdefault(pair, []).append((first, flows[first]))
        # By pair, in the order of the capture: where its connections begin and end.
        self._spans: dict[int, tuple[Ints, Ints]] = {
            pair: tuple(np.array(column, np.int64) for column in zip(*spans, strict=True))  # type: ignore[misc]
            for pair, spans in found.items()
        }
        self._pairs = np.array([*self._spans], np.int64)

    def rows(self, file: int, batch: PacketBatch) -> Rows:
        """Rows of a batch of this file."""
        rows = np.flatnonzero(np.isin(batch.pair, self._pairs))
        packets, pairs = packet_of(file, 0) | batch.packet[rows], batch.pair[rows]
        mine = np.zeros(len(rows), bool)
        for pair in np.unique(pairs).tolist():
            first, last = self._spans[pair]
            own = np.flatnonzero(pairs == pair)
            at = np.searchsorted(first, packets[own], side="right") - 1
            mine[own] = (at >= 0) & (packets[own] <= last[np.maximum(at, 0)])
        return rows[mine]
