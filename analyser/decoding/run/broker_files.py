"""Files of a broker that are read in place of packets: request logs and log segments.

In: a source that was found to be one. Out: raw rows. What reads them is loaded when the first one comes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.capture import (
    BlockBuffer,
    CaptureError,
    CaptureStats,
    LogSegment,
    RequestLog,
    Source,
    log_segment,
)
from wirewitness.analyser.decoding.rows.store import RawStore
from wirewitness.analyser.decoding.run.flow_records import FlowRecords
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.options import DecodeOptions
from wirewitness.dissectors.core.protocol import Dissector, Sink
from wirewitness.dissectors.registry import log_reader, segment_reader

if TYPE_CHECKING:
    from wirewitness.analyser.capture.packing import Packing
    from wirewitness.analyser.decoding.run.logs import Listener, LogReading
    from wirewitness.analyser.decoding.run.segments import SegmentReading


class BrokerFiles:
    """All request logs of a run are read together: one goes on where another ends."""

    def __init__(
        self,
        dissectors: Mapping[str, Dissector],
        options: ReadOptions,
        limits: Limits,
        decode_options: DecodeOptions,
        out: Sink,
        store: RawStore,
        records: FlowRecords,
        packing: Packing,
        listener: Listener | None = None,
    ) -> None:
        """out, store: get the rows. records: get the connections of request logs. packing: see `Pipeline`. listener: is
        told of connections."""
        self._dissectors, self._options = dissectors, options
        self._limits, self._decode_options = limits, decode_options
        self._out, self._store, self._records = out, store, records
        self._packing, self._listener = packing, listener
        self._logs: LogReading | None = None

    def read(self, kind: str, source: Source, stats: CaptureStats, blocks: BlockBuffer, number: int) -> Iterator[int]:
        """Rows of this source, which is input `number`; bytes done so far. Raises CaptureError."""
        if kind == log_segment.FORMAT:
            segment = LogSegment(blocks, stats, self._limits.capture)
            return self._segments(source.name).read(segment, stats, source.path, number)
        if self._logs is None:
            self._logs = self._request_logs(source.name)
        log = RequestLog(blocks, stats, self._limits.capture, self._options.log_zone_ns)
        return self._logs.read(log, stats, number)

    def end(self) -> None:
        """No more of them follow."""
        if self._logs is not None:
            self._logs.end()

    def suspended(self) -> Any:
        """What `resume` goes on from; None where no request log was read."""
        return None if self._logs is None else self._logs.suspended()

    def resume(self, suspended: Any, records: FlowRecords) -> None:
        """Go on where another one was. records: get the connections of request logs from now on."""
        self._records = records
        if suspended is not None:
            self._logs = self._request_logs("what the last run kept")
            self._logs.resume(suspended, records)

    def change_store(self, store: RawStore) -> None:
        """Rows that follow go to another store; between two files."""
        self._store = store
        if self._logs is not None:
            self._logs.change_store(store)

    def _segments(self, name: str) -> SegmentReading:
        from wirewitness.analyser.decoding.run.segments import SegmentReading

        reader = segment_reader(self._dissectors)
        if reader is None:
            raise CaptureError(f"{name} is a log segment, and no dissector that is on reads it.")
        return SegmentReading(reader, self._limits, self._decode_options, self._out, self._store, self._packing)

    def _request_logs(self, name: str) -> LogReading:
        from wirewitness.analyser.decoding.run.logs import LogReading

        reader = log_reader(self._dissectors)
        if reader is None:
            raise CaptureError(f"{name} is a request log, and no dissector that is on reads it.")
        return LogReading(
            reader,
            self._limits,
            self._decode_options,
            self._out,
            self._store,
            self._records,
            self._packing,
            self._listener,
        )
