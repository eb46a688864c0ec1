"""Log segments to raw rows: batches of a broker's files instead of packets. Nothing in them belongs to a flow."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from wirewitness.analyser.base.faults import CODE, caught, sentence
from wirewitness.analyser.base.storage.files import FilePath
from wirewitness.analyser.capture import CaptureStats, LogSegment, Remark
from wirewitness.analyser.capture.log_segment import partition_of
from wirewitness.analyser.capture.model import add_remark
from wirewitness.analyser.capture.packing import Packing
from wirewitness.analyser.decoding.rows.store import RawStore
from wirewitness.analyser.decoding.rows.timeorder import NO_FLOW
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import packet_of
from wirewitness.dissectors.core.options import DecodeOptions
from wirewitness.dissectors.core.protocol import Sink
from wirewitness.dissectors.core.segment_reader import SegmentReader

# Rows are packed, and somebody is told how far reading is, after so much of the file.
_PACKED_BYTES = 16 << 20
_LEAST_PACKED_ROWS = 1000
_NO_PARTITION = (
    "nobody knows topic and partition: the folder of a segment names them, as in orders-3/00000000000000000000.log"
)


class SegmentReading:
    """Reads one segment after the other."""

    def __init__(
        self,
        reader: SegmentReader,
        limits: Limits,
        options: DecodeOptions,
        out: Sink,
        store: RawStore,
        packing: Packing,
    ) -> None:
        self._reader, self._limits, self._options = reader, limits, options
        self._out, self._store, self._packing = out, store, packing

    def read(self, segment: LogSegment, stats: CaptureStats, path: FilePath | None, file_index: int) -> Iterator[int]:
        """Make the rows of a segment; now and then the bytes that are read so far."""
        key = partition_of(path)
        partition = self._reader.partition(key, self._limits, self._options)
        self._out.drain, self._out.take = partial(self._store.drain, NO_FLOW), None
        most, packed = self._limits.capture.max_remarks, 0
        file = packet_of(file_index, 0)
        for batch in segment.batches():
            try:
                partition.add(batch.data, file, self._out)
            except Exception as error:  # of our own: some rows of this batch are not there
                text = sentence(
                    caught(error), "what reads log segments", f"the batch at byte {batch.place} is left out"
                )
                add_remark(stats, most, Remark("error", CODE, text, None, batch.place))
            self._out.relieve()
            packing = self._packing.if_open
            if packing is not None and not packing.took(len(batch.data), 1):
                break
            if stats.captured_bytes - packed >= _PACKED_BYTES:
                packed = stats.captured_bytes
                self._store.mark(NO_FLOW)
                self._store.pack(_LEAST_PACKED_ROWS)
                yield packed
        partition.finish(self._out)
        self._store.mark(NO_FLOW)
        segment.end()
        if key is None:
            add_remark(stats, most, Remark("warn", "segment_folder", _NO_PARTITION, None, 0))
        for severity, code, text in partition.remarks():
            add_remark(stats, most, Remark(severity, code, text, None, 0))
        yield stats.captured_bytes
