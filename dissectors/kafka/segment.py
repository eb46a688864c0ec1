"""The line by which Kafka's log segments enter the table of contents."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from wirewitness.dissectors.core.decompression import Allowance
from wirewitness.dissectors.core.errors import DecodeError
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import Row
from wirewitness.dissectors.core.options import DecodeOptions
from wirewitness.dissectors.core.protocol import Sink
from wirewitness.dissectors.core.remarks import Remark
from wirewitness.dissectors.core.segment_reader import Graveness, SegmentReader
from wirewitness.dissectors.kafka.records.internal_topics import CONSUMER_OFFSETS, internal_record
from wirewitness.dissectors.kafka.records.record_sets import (
    OpenedBatch,
    Record,
    control_type,
    opened_batches,
    records_of,
)
from wirewitness.dissectors.kafka.rows.record_rows import TABLE as RECORDS
from wirewitness.dissectors.kafka.rows.record_rows import RecordRows
from wirewitness.dissectors.kafka.rows.stored_fields import STORED_OFFSETS, TABLE
from wirewitness.dissectors.kafka.schema.primitives import NO_TOPIC_ID, uuid_text

# Rows of a log segment: batches of a partition's file in, `kafka_records` and `kafka_stored_offsets` out.
#
# Of `__consumer_offsets` every OffsetCommit is a row, a deleted one too. Offsets of a transaction count only once its
# end is stored, so their rows wait for it, up to a limit. Sources: GroupMetadataManager and OffsetCommitValue of
# Apache Kafka; control records: KIP-98.

_COMMIT = "OffsetCommit"
_ENDS = {"commit": "committed", "abort": "aborted"}
_OPEN = "open"
_NS_PER_MS = 1_000_000
_MAX_MS = (2**63 - 1) // _NS_PER_MS


class KafkaPartition:
    """Makes the rows of one file; a `StoredPartition`."""

    __slots__ = ("_allowance", "_held", "_held_rows", "_key", "_last_ns", "_limits", "_odd", "_records")

    def __init__(self, key: tuple[str, int] | None, limits: Limits, options: DecodeOptions) -> None:
        self._key = key
        self._limits = limits
        self._records = RecordRows(limits, options)
        self._allowance = Allowance(limits)
        # Rows of transactions that have not ended, as named values, by producer id.
        self._held: OrderedDict[int, list[dict[str, Any]]] = OrderedDict()
        self._held_rows = 0
        self._last_ns = 0
        self._odd: dict[str, tuple[Graveness, str, int]] = {}

    def add(self, batch: bytes, file: int, out: Sink) -> None:
        """Append the rows of one batch."""
        wants_offsets = self._key is not None and self._key[0] == CONSUMER_OFFSETS and out.rows(TABLE) is not None
        if out.rows(RECORDS) is not None:
            self._records.stored(batch, self._key, self._time, out, self._tell)
        if not wants_offsets:
            return
        for opened in opened_batches(batch, 0, len(batch), self._allowance):
            self._add_offsets(opened, file, out)

    def finish(self, out: Sink) -> None:
        """The file ended: transactions that are open stay so."""
        while self._held:
            self._release(self._held.popitem(last=False)[1], _OPEN, out)

    def remarks(self) -> Iterator[tuple[Graveness, str, str]]:
        """What was odd: how often, and the first of each kind."""
        for code, (severity, text, number) in self._odd.items():
            yield severity, code, f"{number:,} times, the first: {text}" if number > 1 else text

    def _tell(self, remark: Remark) -> None:
        told, _, code, text = remark
        severity: Graveness = "error" if told == "error" else "warn" if told == "warn" else "note"
        _, first, number = self._odd.get(code, (severity, text, 0))
        self._odd[code] = severity, first, number + 1

    def _time(self, batch: OpenedBatch) -> int:
        """When the newest record of a batch was written, Unix ns; that of the batch before where nothing says it."""
        ms = batch.header.max_timestamp
        if ms is None or not 0 <= ms <= _MAX_MS:
            times = [] if batch.records is None else [record[1] for record in batch.records]
            ms = max((time for time in times if time is not None and 0 <= time <= _MAX_MS), default=None)
        if ms is not None:
            self._last_ns = ms * _NS_PER_MS
        return self._last_ns

    def _add_offsets(self, batch: OpenedBatch, file: int, out: Sink) -> None:
        """Rows of a batch of __consumer_offsets."""
        header = batch.header
        if batch.crc_ok is False:
            return  # an offset that may be wrong accuses somebody
        records, _ = records_of(batch)
        producer = header.producer_id if header.transactional else None
        if header.control:
            end = _ENDS.get((control_type(batch.data, records[0]) if records else None) or "")
            if end is not None and producer is not None:
                rows = self._held.pop(producer, [])
                self._held_rows -= len(rows)
                self._release(rows, end, out)
            return
        batch_ns = self._time(batch)
        found = [row for record in records if (row := self._row(batch.data, record, batch_ns, file)) is not None]
        if producer is None:
            self._release(found, None, out)
            return
        for row in found:
            row["producer_id"] = producer
        self._held.setdefault(producer, []).extend(found)
        self._held_rows += len(found)
        while self._held_rows > self._limits.max_held_stored_offsets:
            oldest = self._held.popitem(last=False)[1]
            self._held_rows -= len(oldest)
            self._release(oldest, _OPEN, out)

    def _row(self, data: bytes, record: Record, batch_ns: int, file: int) -> dict[str, Any] | None:
        """What a record says of an offset; None where it says something else."""
        offset, time_ms, key_at, key_bytes, value_at, value_bytes, *_ = record
        if key_bytes < 0:
            return None
        value = None if value_bytes < 0 else data[value_at : value_at + value_bytes]
        try:
            found = internal_record(CONSUMER_OFFSETS, data[key_at : key_at + key_bytes], value)
        except DecodeError as error:
            self._tell(("note", "undecoded", "stored_record", f"a record of {CONSUMER_OFFSETS} is not read: {error}"))
            return None
        if found.type != _COMMIT:
            return None
        key, told = found.key, found.value or {}
        topic_id = told.get("topic_id")
        time_ns = _ns(time_ms)
        return {
            "ts": batch_ns if time_ns is None else time_ns,
            "group_id": key["group"],
            "topic": key["topic"],
            "partition": key["partition"],
            "committed_offset": told.get("offset"),
            "leader_epoch": told.get("leader_epoch"),
            "metadata": told.get("metadata"),
            "commit_ts": _ns(told.get("commit_timestamp")),
            "expire_ts": _ns(told.get("expire_timestamp")) if found.version == 1 else None,
            "tombstone": found.value is None,
            "topic_id": uuid_text(topic_id) if topic_id and topic_id != NO_TOPIC_ID else None,
            "log_partition": self._key[1] if self._key is not None else None,
            "log_offset": offset,
            "line": file,
        }

    def _release(self, found: list[dict[str, Any]], transaction: str | None, out: Sink) -> None:
        rows: list[Row] | None = out.rows(TABLE)
        if rows is None or not found:
            return
        rows += [STORED_OFFSETS.row(**row, transaction=transaction) for row in found]
        out.relieve()


def _ns(ms: int | None) -> int | None:
    return None if ms is None or not 0 <= ms <= _MAX_MS else ms * _NS_PER_MS


READER = SegmentReader(KafkaPartition)
