"""The way of the data from captures to raw tables.

In: sources of packets. Out: raw rows in a `RawStore`, the flows, and the statistics of every capture. Offline files,
live capture and archives differ only in who feeds the batches.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from wirewitness.analyser.base.collector import collector_paused
from wirewitness.analyser.base.faults import CODE, told
from wirewitness.analyser.base.options import Progress, ProgressCallback, ReadOptions
from wirewitness.analyser.base.words import count
from wirewitness.analyser.capture import (
    BlockBuffer,
    CaptureError,
    CaptureStats,
    EndpointTable,
    PacketBatch,
    Source,
    read_batches,
)
from wirewitness.analyser.capture.model import Remark
from wirewitness.analyser.capture.packing import Packing, note_packed
from wirewitness.analyser.decoding.complete_connections import WholeDecoder
from wirewitness.analyser.decoding.faults import tell_of_no_flow
from wirewitness.analyser.decoding.flow_decoder import FlowDecoder
from wirewitness.analyser.decoding.rows.fields import row_fields, row_kinds, row_names
from wirewitness.analyser.decoding.rows.names import Names
from wirewitness.analyser.decoding.rows.row_expansion import gathering
from wirewitness.analyser.decoding.rows.store import RawStore
from wirewitness.analyser.decoding.rows.timeorder import NO_FLOW
from wirewitness.analyser.decoding.run.broker_files import BrokerFiles
from wirewitness.analyser.decoding.run.capture_rows import client_is_low, note_row
from wirewitness.analyser.decoding.run.complete_connections import WholeReading
from wirewitness.analyser.decoding.run.decoded import Decoded, UnreadInput
from wirewitness.analyser.decoding.run.flow_records import FlowRecords
from wirewitness.analyser.decoding.run.shard import ALONE, Dealing, MakeDealing, Own, ShardFailed
from wirewitness.analyser.tcp import waits
from wirewitness.analyser.tcp.flow import Flow
from wirewitness.analyser.tcp.flow_table import FlowTable
from wirewitness.analyser.tcp.notes import Note
from wirewitness.dissectors.core.budget import Budget
from wirewitness.dissectors.core.deferred import Later
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, SERVER_TO_CLIENT
from wirewitness.dissectors.core.options import DecodeOptions
from wirewitness.dissectors.core.protocol import Dissector, Sink
from wirewitness.dissectors.core.rows import expert_row
from wirewitness.dissectors.registry import CARRIERS

if TYPE_CHECKING:
    from wirewitness.analyser.decoding.run.keys import Keys
    from wirewitness.analyser.decoding.run.logs import Listener

# Rows hold what streams brought since they were packed last; tables of few rows wait for more.
_UNPACKED_BYTES = 64 << 20
_LEAST_PACKED_ROWS = 1000


Kept = TypeVar("Kept")


class Pipeline:
    """Feeds captures through flows and dissectors into raw tables."""

    def __init__(
        self,
        dissectors: Mapping[str, Dissector],
        wanted: Iterable[str],
        options: ReadOptions,
        limits: Limits | None = None,
        dealing: MakeDealing = ALONE,
        store: RawStore | None = None,
        keys: Keys | None = None,
    ) -> None:
        """dealing: which flows are decoded here. store: where rows go, None for an own one. keys: what opens encrypted
        connections; None for what the options name. Raises CaptureError."""
        self._dissectors = dissectors
        self._options = options
        self._limits = limits or Limits()
        self._keys = keys
        if keys is None and options.keylogs:
            self._use_keys()
        self._decode_options = DecodeOptions(options.payload, options.payload_columns)
        fields = row_fields(dissectors)
        tables = [name for name in fields if name in set(wanted)]
        self._sink = Sink(tables)
        self._later = self._sink.later = Later()
        # Flows that left frames for later in this batch, and those that are over since these were decoded.
        self._leaving: dict[int, Flow] = {}
        self._over: list[Flow] = []
        self._store = store or RawStore()
        self._fields = {name: fields[name] for name in tables}
        self._kinds = row_kinds(dissectors)
        self._names = row_names(dissectors)
        self._unpacked_bytes = 0
        self._add_tables()
        self._endpoints = EndpointTable(self._limits.capture.max_pairs)
        self._dealing: Dealing = dealing(self._endpoints)
        self._records = FlowRecords(self._endpoints)
        with_waits = waits.TABLE in tables
        # A method, since rows may go to another store.
        self._packing = Packing(self._limits.capture, lambda: self._store.given_rows)
        whole = self._whole_reading()
        self._flows = FlowTable(self._limits, self._endpoints, self._consume, self._records.add, with_waits, whole)
        self._records.delays = self._flows.delays
        self._broker_files = BrokerFiles(
            dissectors,
            options,
            self._limits,
            self._decode_options,
            self._sink,
            self._store,
            self._records,
            self._packing,
            self._log_listener(),
        )
        self.result = self.decoded()
        self.stats: CaptureStats | None = None  # of the capture that is being read

    def _add_tables(self) -> None:
        for name, own in self._fields.items():
            gather = gathering(name)
            names = gather.fields if gather else own
            kinds = [self._kinds[name][field_name] for field_name in names]
            rows, ts_at = self._sink.tables()[name], own.index("ts") if "ts" in own else 0
            of_names = Names(self._names.get(name, {}), ts_at, self._limits.max_name_characters)
            self._store.add(name, names, kinds, rows, gather, of_names)

    def _whole_reading(self) -> WholeReading | None:
        """What takes connections whole; None where no protocol reads them so."""
        options = replace(self._decode_options, whole=True)
        decoder = WholeDecoder(self._dissectors, self._limits, options)
        if not decoder.reads_any:
            return None
        own_ports = list(self._options.decode_as)
        return WholeReading(decoder, self._endpoints, self._records, own_ports, self._sink, self._store, self._packing)

    def _log_listener(self) -> Listener | None:
        """Who is told of the connections of request logs."""
        return None

    def run(self, sources: Iterable[Source], progress: ProgressCallback | None = None) -> Decoded:
        """Read all sources to their ends. A source that cannot be read is named in `unread`, the rest goes on."""
        result = self.result
        with collector_paused():
            self._read_all(sources, result, progress)
        return result

    @property
    def endpoints(self) -> EndpointTable:
        """The pairs that batches number."""
        return self._endpoints

    @property
    def budget(self) -> Budget:
        """The memory that open flows take."""
        return self._flows.budget

    @property
    def open_flows(self) -> int:
        """Flows in memory."""
        return self._flows.kept

    def decoded(self) -> Decoded:
        """What was made of the packets; captures are up to who fed them."""
        payload = self._options.payload
        return Decoded(self._store, self._endpoints, self._records, faults=self._sink.faults, payload=payload)

    def suspended(self, keep: Callable[[Any], Kept]) -> Kept:
        """What `keep` makes of what is known of the flows so far, for `resume` in another process; rows that are in
        the store are not in it."""
        with self._flows.without_callbacks():
            return keep((self._flows, self._endpoints, self._records, self._broker_files.suspended()))

    def resume(self, suspended: Any) -> None:
        """Go on where a pipeline with the same tables and options was."""
        self._flows, self._endpoints, self._records, broker_files = suspended
        self._broker_files.resume(broker_files, self._records)
        self._flows.call(self._consume, self._records.add, self._whole_reading())
        if self._keys is not None:
            for flow in self._flows.open_flows():
                if isinstance(flow.decoder, FlowDecoder):
                    flow.decoder.use(self._keys.carriers)

    def pairs_of(self, flows: Collection[int]) -> dict[int, int]:
        """The pairs of those of these flows that are known, by their first packets."""
        still = (flow for flow in self._flows.all_flows() if flow.first_packet in flows)
        return self._records.pairs(flows) | {flow.first_packet: flow.pair for flow in still}

    def exchange(self, other: Pipeline, flows: Collection[int]) -> list[int]:
        """Let what `other`, which was fed all packets of these flows again, knows of them take the place of what is
        known here; which of the flows it has, by their first packets. What has ended here ends there."""
        ended = {*self._records.first_packets} & {*flows}
        still = {flow.first_packet: flow for flow in other._flows.all_flows()}
        other._flows.end(still[first] for first in ended if first in still)
        other._end_batch()
        over = ended & {*other._records.first_packets}
        self._records.replace(other._records, [*over])
        open_here = {flow.first_packet for flow in self._flows.all_flows()} & {*flows}
        going_on = {first: still[first] for first in open_here if first in still and not still[first].finished}
        self._flows.exchange(going_on)
        return sorted({*over, *going_on})

    def change_store(self, store: RawStore) -> None:
        """Rows that follow go to another store; what came so far must have been handed over."""
        self._store = store
        self._add_tables()
        self._broker_files.change_store(store)
        self._flows.call(self._consume, self._records.add, self._whole_reading())

    def read_broker_file(self, source: Source, stats: CaptureStats, number: int) -> None:
        """Make the rows of a request log or a log segment, which is input `number`. Raises CaptureError."""

        def read(kind: str, blocks: BlockBuffer) -> None:
            for _ in self._broker_files.read(kind, source, stats, blocks, number):
                pass

        for _ in read_batches(source, self._endpoints, stats, self._limits.capture, read, self._packing):
            raise CaptureError(f"{source.name} is no file of a broker any more: it has packets.")

    def advance(self, now_ns: int) -> None:
        """The capture's clock has come to this time, in packets that are not fed here."""
        self._flows.advance(now_ns)
        self._end_batch()

    def next_file(self, index: int, packets_before: int) -> None:
        """Packets that follow come from the capture with this index; so many packets are in those before it."""
        self._packing.end()
        self._flows.next_file(index, packets_before)
        self._dealing.next_file(index, packets_before)

    def feed(self, batch: PacketBatch, clock: npt.NDArray[np.int64] | None = None) -> None:
        """Take one batch; `clock` as in FlowTable.feed."""
        if self._keys is not None:
            self._keys.refresh()
        self._packing.came(len(batch))
        self._flows.feed(batch, clock)
        self._end_batch()
        if self._packing.is_open:
            self._packing.count()
        self._unpacked_bytes += int(batch.payload_bytes.sum())
        if self._unpacked_bytes > _UNPACKED_BYTES:
            self._unpacked_bytes = 0
            self._store.pack(_LEAST_PACKED_ROWS)

    def end(self) -> None:
        """No packets follow: end all flows, and say what is to be said of none of them."""
        self._flows.finish()
        self._settle()
        self._broker_files.end()
        for note in self._flows.remarks():
            self._remark(note, None, None)
        self._store.mark(NO_FLOW)
        self._store.pack()
        for what, (rows, longest, flow, ts_ns) in self._store.long_names():
            text = f"names longer than {self._limits.max_name_characters} characters are cut in {what}"
            text += f": {count(rows, 'row')}, the longest has {longest}"
            remark = ("note", "limit", "long_names", text)
            self._sink.expert(expert_row(direction=None, packet=None, ts=ts_ns, remark=remark))
            self._store.mark(flow)
        for text in self._store.faults():
            tell_of_no_flow(text, self._flows.now_ns, self._sink)
        self._store.mark(NO_FLOW)

    def _use_keys(self) -> Keys:
        """The keys of this run, from now on."""
        from wirewitness.analyser.decoding.run.keys import Keys

        self._keys = Keys(self._options.keylogs)
        return self._keys

    def merge_keys(self, entries: Mapping[bytes, tuple[bytes, ...]]) -> None:
        """What another process read of key logs."""
        (self._keys or self._use_keys()).merge(entries)

    def unpacked(self, packed_bytes: int) -> None:
        """Packets that follow are of a compressed input, of which another process has read so much."""
        self._packing.begin()
        self._packing.packed_bytes = packed_bytes

    @property
    def has_too_much(self) -> bool:
        """Was something of the compressed input left out because it became too much?"""
        return self._packing.is_over

    def take_keys(self, stats: CaptureStats) -> None:
        """Secrets that the capture brings along, before the packets behind them are decoded."""
        if stats.secrets and (entries := (self._keys or self._use_keys()).take(stats)):
            self._dealing.keys(entries)

    def _read_all(self, sources: Iterable[Source], result: Decoded, progress: ProgressCallback | None) -> None:
        packets_before = 0
        for source in sources:
            stats = self.stats = CaptureStats(source.name)
            self.next_file(len(result.captures), packets_before)
            try:
                self._read(source, stats, progress)
            except CaptureError as error:
                result.unread.append(UnreadInput(source.name, str(error)))
                if not stats.packets:
                    continue
            except ShardFailed:
                raise
            except Exception as error:
                text = told(error, "what reads captures", f"what follows packet {stats.packets} is not read")
                stats.remarks.append(Remark("error", CODE, text, None, 0))
            result.captures.append(stats)
            packets_before += stats.packets
        self._dealing.end()
        self.end()
        if self._keys is not None:
            result.remarks += self._keys.remarks()

    def _read(self, source: Source, stats: CaptureStats, progress: ProgressCallback | None) -> None:
        total = source.path.stat().st_size if source.path is not None and source.path.is_file() else None
        try:
            on_other = partial(self._read_other, source, stats, total, progress)
            limits, packing = self._limits.capture, self._packing
            for batch in read_batches(source, self._endpoints, stats, limits, on_other, packing):
                self.take_keys(stats)
                if packing.is_open:
                    self._dealing.packed(packing.packed_bytes)
                self._feed_own(self._dealing.take(batch))
                if progress is not None:
                    progress(Progress(source.name, stats.captured_bytes, total, stats.packets))
        except ShardFailed:
            raise
        except Exception:
            self._feed_own(self._dealing.rest())
            raise
        self._feed_own(self._dealing.rest())
        note_packed(self._packing, stats, 0)

    def _read_other(
        self,
        source: Source,
        stats: CaptureStats,
        total: int | None,
        progress: ProgressCallback | None,
        kind: str,
        blocks: BlockBuffer,
    ) -> None:
        """A request log or a log segment in place of packets."""
        for done in self._broker_file(kind, source, stats, blocks):
            if progress is not None:
                number, counted = (stats.batches, "batches") if stats.lines is None else (stats.lines, "lines")
                progress(Progress(source.name, done, total, number or 0, counted))

    def _broker_file(self, kind: str, source: Source, stats: CaptureStats, blocks: BlockBuffer) -> Iterator[int]:
        return self._broker_files.read(kind, source, stats, blocks, len(self.result.captures))

    def _feed_own(self, dealt: Iterable[Own]) -> None:
        for batch, clock in dealt:
            self.feed(batch, clock)

    def _consume(self, flow: Flow) -> None:
        if flow.decoder is None and any(half.queue for half in flow.halves):
            flow.decoder = self._decoder(flow)
        self._rows_of(flow)
        left = self._later.frames
        try:
            self._take_rows(flow)
        finally:
            self._store.mark(flow.first_packet)  # whatever came of it is this flow's, and no other one's
        is_ending = flow.decoder is not None and flow.decoder.is_ending
        if is_ending or self._later.frames > left:
            self._leaving[flow.first_packet] = flow
        elif flow.finished or flow.streams_over:
            flow.decoder = None
        is_tight = self._packing.is_open and self._packing.is_tight
        if self._leaving and (self._later.is_full or is_tight or not self.budget.is_ample):
            self._settle()

    def _rows_of(self, flow: Flow) -> None:
        """Rows that leave the sink from now on are of this flow."""
        self._sink.drain = partial(self._store.drain, flow.first_packet)
        self._sink.take = partial(self._store.claim, flow.first_packet)

    def _end_batch(self) -> None:
        self._settle()
        self._flows.put_away(self._over)
        self._over.clear()

    def _settle(self) -> None:
        """Decode what decoders left for later, those of one kind together."""
        leaving, self._leaving = self._leaving, {}
        for kind, decoders in self._later.take().items():
            try:
                kind.read_together(decoders, self._sink)
            except Exception as error:  # of our own: each reads what it left by itself
                text = told(error, "what reads messages together", "they are read one by one")
                tell_of_no_flow(text, self._flows.now_ns, self._sink, "bug")
                self._store.mark(NO_FLOW)
        for flow in leaving.values():
            self._rows_of(flow)
            try:
                if flow.decoder is not None:
                    flow.decoder.settle(flow, self._sink)
            finally:
                self._store.mark(flow.first_packet)
            if flow.finished or flow.streams_over:
                flow.decoder = None
                self._over.append(flow)
        self._flows.recount(leaving.values())

    def _take_rows(self, flow: Flow) -> None:
        if flow.decoder is not None:
            flow.decoder.consume(flow, self._sink, self._packing.if_open)
        if flow.client_is_low is None and not flow.finished:
            return
        notes = flow.take_notes()
        if not notes and flow.waits is None:
            return
        client_low = client_is_low(flow, self._endpoints[flow.pair])
        for from_low, note in notes:
            direction = CLIENT_TO_SERVER if from_low == client_low else SERVER_TO_CLIENT
            self._remark(note, direction, note.packet)
        if flow.waits is not None and (rows := self._sink.rows(waits.TABLE)) is not None:
            rows += [(int(from_low != client_low), *row) for from_low, *row in flow.waits.take()]

    def _remark(self, note: Note, direction: int | None, packet: int | None) -> None:
        row = note_row(direction, packet, note)
        if note.code == CODE:
            self._sink.fault(note.text, row)
        else:
            self._sink.expert(row)

    def _decoder(self, flow: Flow) -> FlowDecoder:
        pair = self._endpoints[flow.pair]
        ports = (pair.high_port, pair.low_port)
        forced = next(
            ((self._options.decode_as[port], port) for port in ports if port in self._options.decode_as), None
        )
        carriers = CARRIERS if self._keys is None else self._keys.carriers
        return FlowDecoder(self._dissectors, forced, ports, self._limits, self._decode_options, carriers=carriers)
