"""Captures to raw rows, by this process alone or with helpers. In: opened sources. Out: `Decoded`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from wirewitness.analyser.base.options import ProgressCallback, ReadOptions
from wirewitness.analyser.capture import CaptureLimits, EndpointTable, PacketBatch, Source
from wirewitness.analyser.capture.model import joined
from wirewitness.analyser.capture.packing import TOO_MUCH
from wirewitness.analyser.decoding.rows.store import RawStore
from wirewitness.analyser.decoding.rows.timeorder import FLOW
from wirewitness.analyser.decoding.run.child import Child, NewKeys, NextFile, NoMore, ShardJob, Unpacked
from wirewitness.analyser.decoding.run.decoded import Decoded
from wirewitness.analyser.decoding.run.helpers import Helpers
from wirewitness.analyser.decoding.run.pipeline import Pipeline
from wirewitness.analyser.decoding.run.shard import CaptureClock, Ints, Own
from wirewitness.analyser.decoding.run.shared_memory import Area
from wirewitness.analyser.decoding.run.work_items import pack, packed_bytes
from wirewitness.analyser.tcp.tcp import SYN
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.registry import dissectors

if TYPE_CHECKING:
    from wirewitness.analyser.decoding.run.keys import Keys

# Segments dealt out to this process and others. In: batches, as one process reads them. Out: this process's shard of
# them; parcels for the others.
#
# Blocks of the capture are held back until they make about as much for each process as one block is for one: what is
# decoded together is as much then. Their bytes are copied into an area of memory that all see; columns of headers go
# along for those alone who decode them. An area is used again when all are done with it.

# Who decodes which endpoint pairs, so that all have about as much to do. In: batches. Out: the shard of each segment.
#
# Pairs lie in buckets by a digest of their addresses and ports (see `shard.py`). The first segments of a bucket
# decide who has it: the one with the least to do so far. Share 0 is that of the process that reads the capture, too.

BUCKETS = 1024
# What a segment with payload, one without, and a new connection cost, in the time that goes into a byte of payload; and
# what reading a packet of the capture does beside its bytes: on small messages a tenth of what decoding it does. Bytes
# of large messages cost as much to read, for they are copied once more, as to decode.
_WITH_PAYLOAD, _WITHOUT, _OPENED, _READING = 4096, 512, 1 << 16, 512


class Balance:
    """Deals buckets to so many shards."""

    def __init__(self, endpoints: EndpointTable, shards: int) -> None:
        self._endpoints = endpoints
        self._shard_of = np.full(BUCKETS, -1, np.int64)
        self._costs = np.zeros(shards)

    def shards(self, batch: PacketBatch) -> Ints:
        """The shard of each segment of the next batch."""
        buckets = self._endpoints.shards(batch.pair, BUCKETS)
        costs = np.bincount(buckets, _costs(batch), BUCKETS)
        self._costs[0] += _READING * len(batch) + int(batch.payload_bytes.sum())
        known = np.flatnonzero((self._shard_of >= 0) & (costs > 0))
        np.add.at(self._costs, self._shard_of[known], costs[known])
        fresh = np.flatnonzero((self._shard_of < 0) & (costs > 0))
        for bucket in fresh[np.argsort(-costs[fresh], kind="stable")].tolist():
            shard = int(np.argmin(self._costs))
            self._shard_of[bucket] = shard
            self._costs[shard] += costs[bucket]
        found: Ints = self._shard_of[buckets]
        return found


def _costs(batch: PacketBatch) -> npt.NDArray[np.int64]:
    size = batch.payload_bytes.astype(np.int64)
    return np.where(size > 0, size + _WITH_PAYLOAD, _WITHOUT) + np.where(batch.flags & SYN, _OPENED, 0)


# So many blocks lie in an area at most, however many processes there are.
_MOST_BLOCKS = 4


class ShardDealing:
    """A `Dealing` that gives the other shards to children."""

    def __init__(
        self, children: Sequence[Child], areas: Sequence[Area], limits: CaptureLimits, endpoints: EndpointTable
    ) -> None:
        self._children, self._areas, self._endpoints = children, areas, endpoints
        blocks = min(1 + len(children), _MOST_BLOCKS)
        # There may be room for another block behind these bytes.
        self._enough = limits.block_bytes * (blocks - 1)
        self._balance = Balance(endpoints, 1 + len(children))
        self._clock = CaptureClock()
        self._parcels = 0
        self._held: list[PacketBatch] = []
        self._clocks: list[Ints] = []
        self._used = 0

    def next_file(self, index: int, packets_before: int) -> None:
        """See `Dealing`."""
        for child in self._children:
            child.tell(NextFile(index, packets_before))

    def keys(self, entries: Mapping[bytes, tuple[bytes, ...]]) -> None:
        """See `Dealing`."""
        for child in self._children:
            child.tell(NewKeys(entries))

    def packed(self, packed_bytes: int) -> None:
        """See `Dealing`."""
        for child in self._children:
            child.tell(Unpacked(packed_bytes))

    def take(self, batch: PacketBatch) -> Iterator[Own]:
        """See `Dealing`."""
        if not self._held:
            self._wait_for_area()
        first = int(batch.payload_start.min())
        last = int((batch.payload_start + batch.payload_bytes).max())
        memory = self._area.view(self._used + last - first)
        memory[self._used : self._used + last - first] = batch.data[first:last]
        self._held.append(batch.moved(memory, self._used - first))
        self._clocks.append(self._clock.watch(batch))
        self._used += last - first
        if self._used > self._enough:
            yield from self.rest()

    def rest(self) -> Iterator[Own]:
        """See `Dealing`."""
        if not self._held:
            return
        memory = self._area.view(self._used + len(self._children) * packed_bytes(0) + packed_bytes(self._rows))
        batch, clock = joined(memory, self._held), np.concatenate(self._clocks)
        shards, at = self._balance.shards(batch), self._used
        for number, child in enumerate(self._children, 1):
            theirs = np.flatnonzero(shards == number)
            own = Own(batch.chosen(theirs), clock[theirs])
            parcel = pack(memory, self._parcels % len(self._areas), at, own, self._endpoints)
            at = parcel.end
            child.hand(parcel)
        self._parcels += 1
        self._held, self._clocks, self._used = [], [], 0
        mine = np.flatnonzero(shards == 0)
        yield Own(batch.chosen(mine), clock[mine])

    def end(self) -> None:
        """See `Dealing`."""
        for child in self._children:
            child.tell(NoMore(self._clock.now_ns))

    def let_go(self) -> None:
        """All is decoded: the areas are not needed any more, however long somebody still knows of this dealing."""
        self._areas = ()

    @property
    def _area(self) -> Area:
        return self._areas[self._parcels % len(self._areas)]

    @property
    def _rows(self) -> int:
        return sum(map(len, self._held))

    def _wait_for_area(self) -> None:
        """Until all children are done with what lay in the next area."""
        for child in self._children:
            child.wait_for(self._parcels - len(self._areas) + 1)


# Reading with several processes. In: sources. Out: what one process would have given, put together.
#
# This process reads the captures, deals their segments out and decodes its own shard; the others
# (`helpers.py`, `shard_process.py`) leave their rows in files of the analysis's temporary folder.


class SharedReading:
    """The work of children beside this process's own. areas: descriptors of memory that they see, too."""

    def __init__(self, children: Sequence[Child], areas: Sequence[int]) -> None:
        self._children = children
        self._areas = tuple(areas)
        self._dealing: ShardDealing | None = None

    def start(self, wanted: Sequence[str], options: ReadOptions, folder: Path, keys: Keys | None = None) -> None:
        """Give every process its job, and the keys; their rows will be in folders below FOLDER."""
        # Read-only views cannot be sent; key logs are read once.
        plain = replace(options, decode_as=dict(options.decode_as), topic_ids=dict(options.topic_ids), keylogs=())
        for number, child in enumerate(self._children, 1):
            job = ShardJob(tuple(wanted), plain, self._areas, folder / f"share-{number}")
            job.folder.mkdir()
            child.tell(job)
            if keys is not None:
                child.tell(NewKeys(keys.ring.entries()))

    def dealing(self, limits: CaptureLimits, endpoints: EndpointTable) -> ShardDealing:
        """Who decodes what; `endpoints` numbers the pairs of this process."""
        self._dealing = ShardDealing(self._children, [*map(Area, self._areas)], limits, endpoints)
        return self._dealing

    def collect(self, decoded: Decoded) -> None:
        """Wait for the other shards and add their flows and rows. Raises ShardFailed."""
        from pyarrow import feather

        flows = [decoded.flows_table()]
        for child in self._children:
            result = child.result()
            for name, rows in result.tables.items():
                decoded.store.tables[name].adopt(rows)
            if result.flows is not None:
                flows.append(feather.read_table(result.flows))
            decoded.faults.update(result.faults)
            for capture, remark in result.remarks:
                remarks = decoded.captures[capture].remarks
                if remark.code != TOO_MUCH or all(known.code != TOO_MUCH for known in remarks):
                    remarks.append(remark)
        decoded.flow_facts = pa.concat_tables(flows).sort_by(FLOW)
        if self._dealing is not None:
            self._dealing.let_go()


def decode_captures(
    sources: list[Source],
    wanted: list[str],
    options: ReadOptions,
    progress: ProgressCallback | None,
    helpers: Helpers,
) -> Decoded:
    """The raw rows of these tables, read by this process and the helpers. The caller closes the store.

    helpers: one less than the processes that the options ask for.
    """
    known = dissectors(options.enable)
    if options.processes == 1:
        return Pipeline(known, wanted, options).run(sources, progress)
    keys = None
    if options.keylogs:
        from wirewitness.analyser.decoding.run.keys import Keys

        keys = Keys(options.keylogs)
    limits, store = Limits(), RawStore()
    try:
        others = SharedReading([*map(Child, helpers.children)], helpers.areas)
        others.start(wanted, options, store.folder, keys)
        dealing = partial(others.dealing, limits.capture)
        decoded = Pipeline(known, wanted, options, limits, dealing, store, keys).run(sources, progress)
        others.collect(decoded)
        helpers.decoded()
    except BaseException:
        store.close()
        raise
    return decoded
