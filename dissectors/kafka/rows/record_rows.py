"""Rows of `kafka_records`: one for each batch, whose records the analyser unfolds.

In: exchanges of Produce and Fetch with the bytes of their records, or a batch that a broker stored. Out: rows appended
to the sink, and remarks.
The offsets of produced records come with the answer, so their bytes are held until then, within a limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from wirewitness.dissectors.core.decompression import Allowance
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import Row
from wirewitness.dissectors.core.options import DecodeOptions
from wirewitness.dissectors.core.protocol import Sink
from wirewitness.dissectors.core.remarks import Remark
from wirewitness.dissectors.kafka.records.record_sets import OpenedBatch, control_type, opened_batches, records_of
from wirewitness.dissectors.kafka.rows.data_rows import ProducedPartition, produce_answers
from wirewitness.dissectors.kafka.rows.fetch_sessions import PartitionKey
from wirewitness.dissectors.kafka.rows.fields import Request, Response, exchange_key
from wirewitness.dissectors.kafka.rows.group_rows import topic_key
from wirewitness.dissectors.kafka.rows.int64 import or_none
from wirewitness.dissectors.kafka.schema.primitives import UNSEEN

TABLE = "kafka_records"
# What stands as API in rows of log segments.
STORED = "Segment"
PAYLOAD = ("key", "value", "headers")
# What a row costs beside the bytes of its records, roughly.
_ROW_BYTES = 1000


def payload_columns(options: DecodeOptions) -> frozenset[str]:
    """The columns of what applications sent that are wanted."""
    return frozenset((options.payload_columns or PAYLOAD) if options.payload else ())


class RecordRows:
    """Makes the rows of one flow. payload: see `payload_columns`. held_bytes: of records that wait for an answer."""

    __slots__ = ("_allowance", "_full", "_limits", "held_bytes", "payload")

    def __init__(self, limits: Limits, options: DecodeOptions) -> None:
        self._limits = limits
        self.payload = payload_columns(options)
        self._allowance = Allowance(limits)
        self.held_bytes = 0
        self._full = False

    def hold(self, request: Request, data: bytes, out: Sink, remarks: list[Remark]) -> list[ProducedPartition]:
        """The partitions of a Produce with a copy of their records.

        Where the limit has no room for it, they are decoded at once and their offsets stay unknown.
        """
        partitions: list[ProducedPartition] = [
            partition._replace(held=data[partition.start : partition.start + partition.size])
            for partition in request.extra
        ]
        size = sum(partition.size for partition in partitions)
        self.held_bytes += size
        if self.held_bytes <= self._limits.max_held_records_bytes:
            return partitions
        if not self._full:
            self._full = True
            remarks.append(
                (
                    "note",
                    "limit",
                    "held_records",
                    "record data that waits for answers is too much: offsets stay unknown",
                )
            )
        return self.produced(request._replace(extra=partitions), None, out, remarks)

    def produced(
        self, request: Request, response: Response | None, out: Sink, remarks: list[Remark]
    ) -> list[ProducedPartition]:
        """Rows of a Produce. The partitions with what decompressing told; they hold no bytes any more."""
        rows = out.rows(TABLE)
        told: list[ProducedPartition] = []
        answers = produce_answers(response)
        head = (*exchange_key(request, response), request.client_id, "Produce")
        for partition in request.extra or ():
            if partition.held is None or rows is None:
                told.append(partition)
                continue
            self.held_bytes -= partition.size
            base_offset = answers.get(partition.key, {}).get("base_offset", -1)
            sizes: list[int | None] = []
            for batch in opened_batches(partition.held, 0, partition.size, self._allowance):
                sizes.append(batch.uncompressed_bytes)
                first = batch.records[0][0] if batch.records else batch.header.base_offset
                offsets = (or_none(base_offset) if base_offset >= 0 else None, first)
                self._add(rows, head, partition.key, batch, offsets, out, remarks.append)
                if base_offset >= 0:
                    base_offset += _offsets_taken(batch)
            told.append(partition._replace(held=None, uncompressed=sizes))
        return told

    def fetched(self, request: Request, response: Response, out: Sink) -> None:
        """Rows of an answered Fetch."""
        rows = out.rows(TABLE)
        if rows is None or response.value is None:
            return
        head = (*exchange_key(request, response), request.client_id, "Fetch")
        for key, span in _spans(response):
            for batch in opened_batches(response.data, *span, self._allowance):
                first = batch.header.base_offset
                self._add(rows, head, key, batch, (first, first), out, response.remark)

    def stored(
        self,
        data: bytes,
        key: tuple[str, int] | None,
        time_of: Callable[[OpenedBatch], int],
        out: Sink,
        tell: Callable[[Remark], None],
    ) -> None:
        """Rows of a batch of a log segment, of this topic and partition. time_of: the time of the row, Unix ns."""
        rows = out.rows(TABLE)
        if rows is None:
            return
        topic, partition = key or (None, None)
        for batch in opened_batches(data, 0, len(data), self._allowance):
            head = (None, None, time_of(batch), None, None, STORED)
            first = batch.records[0][0] if batch.records else batch.header.base_offset
            self._add(rows, head, (topic, None, partition), batch, (first, first), out, tell)

    def _add(
        self,
        rows: list[Row],
        head: Row,
        key: PartitionKey | tuple[str | None, None, int | None],
        batch: OpenedBatch,
        offsets: tuple[int | None, int],
        out: Sink,
        tell: Callable[[Remark], None],
    ) -> None:
        """One row. offsets: that of the first record in the log, and what the batch itself calls it."""
        header = batch.header
        if header.partial and header.error is None:
            return  # cut by the size the client asked for; the next answer brings it whole
        if batch.error is not None:
            group, code = ("limit", "decompression_limit") if batch.limited else ("malformed", "unreadable_records")
            text = f"records of {key[0] or key[1]}-{key[2]}, {header.codec}: {batch.error}"
            tell(("warn" if batch.limited else "error", group, code, text))
        control = None
        if header.control:
            first, _ = records_of(batch)
            control = (control_type(batch.data, first[0]) if first else None) or "unknown"
        rows.append(
            (
                *head,
                *key,
                header.timestamp_type,
                header.codec,
                header.producer_id,
                header.producer_epoch,
                header.transactional,
                control,
                batch.crc_ok,
                batch.error,
                batch.data,
                batch.records_count,
                batch.records,
                *offsets,
                header.base_timestamp,
                batch.fixed_ms,
                header.base_sequence,
                self.payload,
            )
        )
        out.grow(TABLE, len(batch.data) + _ROW_BYTES)


def _offsets_taken(batch: OpenedBatch) -> int:
    delta = batch.header.last_offset_delta
    return batch.records_count if delta is None else delta + 1


def _spans(response: Response) -> Iterator[tuple[PartitionKey, tuple[int, int]]]:
    for topic in (response.value or {})["responses"]:
        names = topic_key(topic)
        for partition in topic["partitions"]:
            if partition["records"] and partition["records"][0] != UNSEEN:
                yield (*names, partition["partition_index"]), partition["records"]
