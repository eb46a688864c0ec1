"""The pipeline of a capture without an end, and questions to it.

In: sources, as for `analyser/decoding/run/pipeline.py`, whose way packets go. Out: at any time an Analysis of what is
there, made in a copy of the process as if the capture ended at that moment, and rates.
"""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from wirewitness.analyser.analysis.analysis import Analysis
from wirewitness.analyser.analysis.build import Lookups, finish_batch, log_files
from wirewitness.analyser.analysis.capture_tables import CaptureTables
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.capture import BlockBuffer, CaptureError, CaptureStats, Source, log_segment
from wirewitness.analyser.capture.workloads.seen import End
from wirewitness.analyser.decoding.rows.timeorder import FLOW
from wirewitness.analyser.decoding.run.address_names import named_addresses
from wirewitness.analyser.decoding.run.capture_rows import file_label, flow_row
from wirewitness.analyser.decoding.run.pipeline import Pipeline
from wirewitness.analyser.live.forks import Copy
from wirewitness.analyser.live.rates import Rates
from wirewitness.analyser.live.retention import Kept, RollingStore
from wirewitness.analyser.tables.tables import arrow_schema
from wirewitness.analyser.tcp.flow import Flow
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.protocol import Dissector

Answer = TypeVar("Answer")
Row: TypeAlias = dict[str, Any]

# Rows leave in so many parts of the time that they stay.
_SPANS = 8
# Sightings of identities at connections; each takes some 300 bytes.
_MOST_IDENTITIES = 100_000


class LivePipeline(Pipeline):
    """A pipeline whose store forgets.

    rates: of exchanges so far. keep_fresh: make `fresh` at every tick: the exchanges since the last one with the
    columns of their table. clusters: flow id -> cluster id, as far as somebody has found out.
    """

    def __init__(
        self,
        dissectors: Mapping[str, Dissector],
        wanted: Sequence[str],
        options: ReadOptions,
        kept: Kept,
        limits: Limits | None = None,
    ) -> None:
        self.rolling = RollingStore()
        self._protocols: dict[int, str] = {}
        self._ended: list[int] = []
        self._logged = LoggedFlows(self._protocols, self._ended)
        super().__init__(dissectors, wanted, options, limits, store=self.rolling)
        if self._keys is not None:
            self._keys.follow()
        self._flows.forgets_ended = True
        for table in self.rolling.rolling:
            table.span_ns = max(kept.age_ns // _SPANS, 1)
        self._wanted, self._known_dissectors = wanted, dissectors
        self._address_names = named_addresses(options)
        self._kept = kept
        self._open: dict[int, Flow] = {}
        self._consuming: Flow | None = None
        self.rates = Rates(self._protocols)
        self.keep_fresh = False
        self.fresh: list[pa.RecordBatch] = []
        self.clusters: dict[str, str] = {}
        self._raw: list[pa.RecordBatch] = []
        self.rolling.rolling_table("exchanges").watcher = self._exchanges

    @property
    def shown_protocols(self) -> tuple[str, ...]:
        """Protocols that are to be shown; empty for all."""
        return self._options.protocols

    @property
    def now_ns(self) -> int | None:
        """The time of the newest packet."""
        return max((stats.ts_last_ns for stats in self._captures() if stats.ts_last_ns is not None), default=None)

    @property
    def packets(self) -> int:
        """Packets read so far."""
        return sum(stats.packets for stats in self._captures())

    @property
    def lines(self) -> int | None:
        """Lines of a request log read so far; None where packets come."""
        told = [stats.lines for stats in self._captures() if stats.lines is not None]
        return sum(told) if told else None

    @property
    def progress(self) -> int:
        """Packets or lines read so far: more of them, and there is something new to look at."""
        return self.packets + (self.lines or 0)

    def tick(self, now_s: float) -> None:
        """Count what has come since the last tick."""
        self.rolling.rolling_table("exchanges").pack()
        self.rates.tick(now_s)
        self.fresh = [self._finished(batch) for batch in self._raw]
        self._raw.clear()
        for packet in self._ended:
            self._protocols.pop(packet, None)
            self._open.pop(packet, None)
            self._logged.rows.pop(packet, None)
        self._ended.clear()

    def forget(self) -> None:
        """Let go of rows and flows that are too old. No copy may be at work."""
        now_ns = self.now_ns
        if now_ns is not None:
            self.rolling.forget(now_ns - self._kept.age_ns, self._kept.rows)
            self.result.flows.forget(now_ns - self._kept.age_ns, self._kept.flows)
            self._forget_identities()
            known = pa.array([*self._protocols, *self.result.flows.first_packets], pa.int64())
            for table in self.rolling.rolling:
                table.forget_flows(known)
        gc.collect()

    def _forget_identities(self) -> None:
        """A connection that stands keeps its identities, however long ago these were told."""
        for stats in self._captures():
            if len(stats.identities) > _MOST_IDENTITIES:
                both = (self._endpoints[flow.pair] for flow in self._flows.open_flows())
                kept = {end for one in both for end in _ends(one[:2], one[2:4], one.encapsulation)}
                stats.identities.keep_newest(_MOST_IDENTITIES // 2, kept)

    def ask(self, question: Callable[[Analysis, int | None], Answer], asked: Kept, nice: int = 0) -> Copy[Answer]:
        """Ask about the capture so far: question(analysis, cut) gets the rows that `asked` says; cut: no row from
        before this time or of it (ns) is among them, None where all are. nice: see Copy."""

        def answer() -> Answer:
            with tempfile.TemporaryDirectory(dir=self.rolling.folder) as folder:
                self.rolling.use_folder(Path(folder))
                if self.now_ns is not None:
                    self.rolling.narrow(self.now_ns - asked.age_ns, asked.rows)
                self.rolling.rolling_table("exchanges").watcher = None
                self.result.captures = self._captures()
                self.end()
                return question(Analysis(self.tables(), self._options), self.rolling.cut_ns)

        return Copy(answer, nice)

    def tables(self) -> CaptureTables:
        """The tables of all that is there; reading must be over."""
        flows = self.result.flows_table()
        if self.rolling.cut_ns is not None or self.result.flows.forgotten:
            self.rolling.know_flows(flows.column(FLOW).combine_chunks())
        return CaptureTables(
            self.result,
            self._wanted,
            self._known_dissectors.values(),
            self._options.topic_ids,
            names=self._address_names,
        )

    def _finished(self, raw: pa.RecordBatch) -> pa.RecordBatch:
        """Raw exchanges with their registered columns, from what is known of their flows by now."""
        packets = sorted(filter(self._is_open, raw.column(FLOW).unique().to_pylist()))
        rows = [self._flow_row(packet) for packet in packets]
        flows = pa.Table.from_pylist(rows, arrow_schema("flows")).append_column(FLOW, pa.array(packets, pa.int64()))
        ends = {end for row in rows for end in _ends_of(row)}
        seen = [found for stats in self._captures() if len(found := stats.identities.some(ends))]
        if seen or self._address_names is not None:
            from wirewitness.analyser.analysis.flow_workloads import with_identities

            flows, _ = with_identities(flows, seen, self._address_names)
        clusters = pa.array([self.clusters.get(row["flow_id"]) for row in rows], pa.string())
        captures = self._captures()
        files = [file_label(stats.file) for stats in captures]
        raw = raw.filter(pc.is_in(raw.column(FLOW), pa.array(packets, pa.int64())))
        known = Lookups(flows, clusters, {}, files, self._known_dissectors, log_files(captures))
        return finish_batch("exchanges", raw, known)

    def _is_open(self, first_packet: int) -> bool:
        return first_packet in self._open or first_packet in self._logged.rows

    def _flow_row(self, first_packet: int) -> Row:
        logged = self._logged.rows.get(first_packet)
        return flow_row(self._open[first_packet], self._endpoints) if logged is None else logged()

    def _captures(self) -> list[CaptureStats]:
        """Captures that were read, and the one that is being read."""
        read = self.result.captures
        return read if self.stats is None or (read and read[-1] is self.stats) else [*read, self.stats]

    def _exchanges(self, batch: pa.RecordBatch) -> None:
        if self._consuming is not None and self._consuming.protocol is not None:
            self._protocols[self._consuming.first_packet] = self._consuming.protocol
        self.rates.feed(batch)
        if self.keep_fresh:
            self._raw.append(batch)

    def _broker_file(self, kind: str, source: Source, stats: CaptureStats, blocks: BlockBuffer) -> Iterator[int]:
        if kind == log_segment.FORMAT:
            raise CaptureError(
                f"{source.name} is a log segment; only `analyse` and the other reading commands take it."
            )
        return super()._broker_file(kind, source, stats, blocks)

    def _log_listener(self) -> LoggedFlows:
        return self._logged

    def _whole_reading(self) -> None:
        """Few connections lie in one batch of a live capture, and all are looked at while they are open."""

    def _consume(self, flow: Flow) -> None:
        self._consuming = flow  # its rows may be counted before it is known here
        super()._consume(flow)
        if flow.protocol is not None and flow.first_packet not in self._protocols:
            self._protocols[flow.first_packet] = flow.protocol
        if self.keep_fresh and flow.protocol is not None:
            self._open[flow.first_packet] = flow
        if flow.finished:
            self._ended.append(flow.first_packet)
        self._consuming = None


def _ends_of(row: Row) -> tuple[End, End]:
    """Of a row of `flows`; one of a request log has no encapsulation."""
    client, server = ((row[f"{side}_address"], row[f"{side}_port"]) for side in ("client", "server"))
    return _ends(client, server, row.get("encapsulation") or "")


def _ends(one: tuple[str, int], other: tuple[str, int], around: str) -> tuple[End, End]:
    return End(*one, *other, around), End(*other, *one, around)


class LoggedFlows:
    """The connections of a request log, for whoever shows rows before they have ended. rows: first line -> what makes
    the row of `flows`."""

    def __init__(self, protocols: dict[int, str], ended: list[int]) -> None:
        """protocols, ended: get what flows of packets give by themselves."""
        self.rows: dict[int, Callable[[], Row]] = {}
        self._protocols, self._ended = protocols, ended

    def began(self, first_line: int, protocol: str, row: Callable[[], Row]) -> None:
        """As of logs.Listener."""
        self._protocols[first_line] = protocol
        self.rows[first_line] = row

    def ended(self, first_line: int) -> None:
        """As of logs.Listener."""
        self._ended.append(first_line)
