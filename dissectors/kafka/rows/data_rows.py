"""Rows of the data APIs: Produce, Fetch, ListOffsets and OffsetForLeaderEpoch.

In: a request with its response (None when it was never answered). Out: rows appended to the sink.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from wirewitness.dissectors.core.protocol import Sink
from wirewitness.dissectors.core.remarks import Remark
from wirewitness.dissectors.kafka.records.batches import BatchHeader, batch_headers
from wirewitness.dissectors.kafka.records.record_sets import FirstRecord, checksum_ok, first_record
from wirewitness.dissectors.kafka.rows.data_fields import LEADER_EPOCHS, LIST_OFFSETS
from wirewitness.dissectors.kafka.rows.fetch_sessions import Asked, PartitionKey
from wirewitness.dissectors.kafka.rows.fields import Request, Response, exchange_key, placed_exchange_of
from wirewitness.dissectors.kafka.rows.group_rows import topic_key
from wirewitness.dissectors.kafka.rows.int64 import or_none
from wirewitness.dissectors.kafka.schema.primitives import UNSEEN, Value

NO_BATCH = (None,) * 12
_FORMAT_2 = 2
_NO_EPOCH: Value = {"leader_epoch": -1, "epoch": -1}


class ProducedPartition(NamedTuple):
    """One partition of a Produce request, read while the request's bytes are at hand.

    start, size: where its record data is. crc_ok, first: of each batch. held: a copy of the record data where it is
    decoded later; then uncompressed are the sizes that the batches have without compression.
    """

    key: PartitionKey
    start: int
    size: int
    batches: list[BatchHeader]
    crc_ok: list[bool | None]
    first: Sequence[FirstRecord] = ()
    held: bytes | None = None
    uncompressed: Sequence[int | None] = ()


def produced(value: Value, data: bytes, remarks: list[Remark]) -> list[ProducedPartition]:
    """The partitions of a Produce request with the headers of their batches; adds a remark on each damaged batch."""
    found = []
    for topic in value["topic_data"]:
        names = topic_key(topic)
        for partition in topic["partition_data"]:
            start, size = partition["records"] or (0, 0)
            key = (*names, partition["index"])
            if start == UNSEEN:
                found.append(ProducedPartition(key, 0, 0, [_unseen_batch(size)], [None], [FirstRecord()]))
                continue
            batches = batch_headers(data, start, size)
            crc_ok = _checksums(data, batches, start + size)
            first = [_first(data, batch) for batch in batches]
            found.append(ProducedPartition(key, start, size, batches, crc_ok, first))
            _tell_damage(key, batches, found[-1].crc_ok, remarks.append)
    return found


def _unseen_batch(size: int) -> BatchHeader:
    """The batch that the records of a partition are, where only their size is known: Produce sends one (KIP-98)."""
    return BatchHeader(UNSEEN, 0, size, partial=True)


def _checksums(data: bytes, batches: Sequence[BatchHeader], end: int) -> list[bool | None]:
    return [checksum_ok(data, batch, min(end, len(data))) for batch in batches]


def _first(data: bytes, batch: BatchHeader) -> FirstRecord:
    if batch.magic != _FORMAT_2 or batch.partial or batch.codec is None:
        return FirstRecord()
    return first_record(data, batch.start, batch.start + batch.batch_bytes, batch.codec)


def _tell_damage(
    key: PartitionKey, batches: Sequence[BatchHeader], crc_ok: Sequence[bool | None], tell: Callable[[Remark], None]
) -> None:
    if False in crc_ok:
        wrong = [batch.base_offset for batch, right in zip(batches, crc_ok, strict=True) if right is False]
        where = f"{key[0] or key[1]}-{key[2]}"
        text = (
            f"{len(wrong)} of {len(batches)} batches of {where} have a wrong checksum, the first at offset {wrong[0]}"
        )
        tell(("error", "malformed", "corrupt_batch", text))


def produce_answers(response: Response | None) -> dict[PartitionKey, Value]:
    """The answers of a Produce by partition."""
    answers: dict[PartitionKey, Value] = {}
    if response is not None and response.value is not None:
        for topic in response.value["responses"]:
            names = topic_key(topic)
            for partition in topic["partition_responses"]:
                answers[(*names, partition["index"])] = partition
    return answers


def produce_rows(request: Request, response: Response | None, out: Sink) -> None:
    """kafka_produce_batches of a Produce."""
    rows = out.rows("kafka_produce_batches")
    value = request.value
    if rows is None or value is None:
        return
    answers = produce_answers(response)
    head = (*exchange_key(request, response), *_packets(request, response), request.client_id)
    acks, timeout_ms, transactional_id = value["acks"], value["timeout_ms"], value.get("transactional_id")
    for produced_partition in request.extra or ():
        answer = answers.get(produced_partition.key, {})
        base_offset = answer.get("base_offset")
        sizes = [*produced_partition.uncompressed] or [None] * len(produced_partition.batches)
        for batch, crc_ok, first, size in zip(
            produced_partition.batches, produced_partition.crc_ok, produced_partition.first, sizes, strict=True
        ):
            last_offset = None
            if base_offset is not None and base_offset >= 0 and batch.last_offset_delta is not None:
                last_offset = or_none(base_offset + batch.last_offset_delta)
            rows.append(
                (
                    *head,
                    *produced_partition.key,
                    base_offset,
                    last_offset,
                    batch.records_count,
                    batch.codec,
                    batch.batch_bytes,
                    batch.batch_bytes if batch.codec == "none" else size,
                    batch.producer_id,
                    batch.producer_epoch,
                    batch.base_sequence,
                    batch.base_timestamp,
                    batch.max_timestamp,
                    answer.get("log_append_time_ms"),
                    *first,
                    acks,
                    timeout_ms,
                    batch.transactional,
                    transactional_id,
                    *_leader(answer),
                    crc_ok,
                    answer.get("error_code"),
                    answer.get("error_message"),
                )
            )
            if last_offset is not None:
                base_offset = or_none(last_offset + 1)


def _leader(answer: Value) -> tuple[int | None, int | None]:
    """current_leader_id and current_leader_epoch of an answered partition; -1 stands for nothing."""
    told = answer.get("current_leader") or _NO_EPOCH
    return (None, None) if told["leader_epoch"] < 0 else (told["leader_id"], told["leader_epoch"])


def _led(partition: Value) -> tuple[int | None, ...]:
    """current_leader_id to diverging_end_offset of a partition that was fetched."""
    told = partition.get("diverging_epoch") or _NO_EPOCH
    return *_leader(partition), *((None, None) if told["epoch"] < 0 else (told["epoch"], told["end_offset"]))


def fetch_rows(request: Request, response: Response | None, out: Sink) -> None:
    """kafka_fetch_partitions of a Fetch: every partition that was named, in the request or in the answer."""
    rows = out.rows("kafka_fetch_partitions")
    if rows is None and out.rows("expert_infos") is not None:
        rows = []  # made for the remarks on their checksums
    value = request.value
    if rows is None or value is None or request.extra is None:
        return
    asked: Asked = request.extra
    head = _fetch_head(request, response, value)
    seen: set[PartitionKey] = set()
    if response is not None and response.value is not None:
        for topic in response.value["responses"]:
            names = topic_key(topic)
            for partition in topic["partitions"]:
                key = (*names, partition["partition_index"])
                seen.add(key)
                rows.append((*head, *key, *asked.of(key), *_fetched(key, partition, response)))
    for key in asked.named:
        if key not in seen:
            rows.append((*head, *key, *asked.of(key), *NO_BATCH))


def _fetch_head(request: Request, response: Response | None, value: Value) -> tuple[str | int | None, ...]:
    """request_offset to session_epoch, the same for all partitions of a Fetch."""
    state = value.get("replica_state")
    session_id = value.get("session_id")
    if response is not None and response.value is not None:
        session_id = response.value.get("session_id") or session_id
    return (
        *exchange_key(request, response),
        *_packets(request, response),
        request.client_id,
        value["replica_id"] if "replica_id" in value else (state["replica_id"] if state else -1),
        value["max_wait_ms"],
        value["min_bytes"],
        value.get("max_bytes"),
        value.get("isolation_level"),
        session_id,
        value.get("session_epoch"),
    )


def _fetched(key: PartitionKey, partition: Value, response: Response) -> tuple[int | bool | None, ...]:
    """high_watermark to error_code of one answered partition."""
    span = partition["records"] or (0, 0)
    if span[0] == UNSEEN:
        return _fetched_unseen(partition)
    headers = batch_headers(response.data, *span)
    checksums = _checksums(response.data, headers, sum(span))
    _tell_damage(key, headers, checksums, response.remark)
    batches = [batch for batch in headers if not batch.partial]
    counts = [batch.records_count for batch in batches]
    last = batches[-1] if batches else None
    after = None
    if last is not None and last.last_offset_delta is not None:
        after = or_none(last.base_offset + last.last_offset_delta + 1)
    return (
        partition["high_watermark"],
        partition.get("last_stable_offset"),
        partition.get("log_start_offset"),
        *_led(partition),
        span[1],
        None if None in counts else sum(count or 0 for count in counts),
        after,
        False if False in checksums else True if True in checksums else None,
        partition["error_code"],
    )


def _fetched_unseen(partition: Value) -> tuple[int | bool | None, ...]:
    """The same of a request log. Behind the size stands where the reader went on, if its next request told it."""
    _, size, *after = partition["records"]
    last_stable, log_start = partition.get("last_stable_offset"), partition.get("log_start_offset")
    read = (size, None, after[0] if after else None, None)
    return (partition["high_watermark"], last_stable, log_start, *_led(partition), *read, partition["error_code"])


def _packets(request: Request, response: Response | None) -> tuple[int, int | None]:
    """request_packet and response_packet."""
    return request.packet, None if response is None else response.packet


def list_offsets_rows(request: Request, response: Response | None, out: Sink) -> None:
    """kafka_list_offsets of a ListOffsets."""
    rows = out.rows("kafka_list_offsets")
    value = request.value
    if rows is None or value is None:
        return
    answers: dict[tuple[str | None, int], Value] = {}
    if response is not None and response.value is not None:
        for topic in response.value["topics"]:
            for partition in topic["partitions"]:
                answers[(topic["name"], partition["partition_index"])] = partition
    exchange = placed_exchange_of(request, response)
    for topic in value["topics"]:
        for partition in topic["partitions"]:
            index = partition["partition_index"]
            answer = answers.get((topic["name"], index), {})
            old = answer.get("old_style_offsets")
            offset = answer["offset"] if "offset" in answer else (old[0] if old else None)
            rows.append(
                LIST_OFFSETS.row(
                    **exchange,
                    client_id=request.client_id,
                    replica_id=value["replica_id"],
                    topic=topic["name"],
                    partition=index,
                    timestamp=partition["timestamp"],
                    offset=offset,
                    error_code=answer.get("error_code"),
                    isolation_level=value.get("isolation_level"),
                    answered_timestamp=answer.get("timestamp"),
                    leader_epoch=answer.get("leader_epoch"),
                )
            )


def leader_epoch_rows(request: Request, response: Response | None, out: Sink) -> None:
    """kafka_leader_epochs of an OffsetForLeaderEpoch."""
    rows = out.rows("kafka_leader_epochs")
    value = request.value
    if rows is None or value is None:
        return
    answers: dict[tuple[str | None, int], Value] = {}
    if response is not None and response.value is not None:
        for topic in response.value["topics"]:
            for partition in topic["partitions"]:
                answers[(topic["topic"], partition["partition"])] = partition
    exchange = placed_exchange_of(request, response)
    for topic in value["topics"]:
        for partition in topic["partitions"]:
            answer = answers.get((topic["topic"], partition["partition"]), {})
            rows.append(
                LEADER_EPOCHS.row(
                    **exchange,
                    client_id=request.client_id,
                    replica_id=value.get("replica_id"),
                    topic=topic["topic"],
                    partition=partition["partition"],
                    current_leader_epoch=partition.get("current_leader_epoch"),
                    requested_epoch=partition["leader_epoch"],
                    leader_epoch=answer.get("leader_epoch"),
                    end_offset=answer.get("end_offset"),
                    error_code=answer.get("error_code"),
                )
            )
