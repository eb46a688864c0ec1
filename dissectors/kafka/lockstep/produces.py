"""Batches that producers sent, of many exchanges at once: rows of kafka_produce_batches and kafka_records.

In: a `Group` of Produces. Out: rows, and whose they are; the same as those of `rows/data_rows.py`, in the same order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wirewitness.dissectors.core.blocks import Block, Coded, Column, Numbers, Same
from wirewitness.dissectors.core.lockstep.column_ops import chosen, optional
from wirewitness.dissectors.core.lockstep.frames import Flags, Ints
from wirewitness.dissectors.kafka.lockstep.group_rows import NOTHING, column, heads
from wirewitness.dissectors.kafka.lockstep.groups import Group
from wirewitness.dissectors.kafka.lockstep.partitions import Partitions, partitions_of
from wirewitness.dissectors.kafka.lockstep.read import lists, numbers
from wirewitness.dissectors.kafka.lockstep.record_rows import in_log, record_rows
from wirewitness.dissectors.kafka.lockstep.records import HEADER_BYTES, Batches
from wirewitness.dissectors.kafka.lockstep.texts import TopicKey
from wirewitness.dissectors.kafka.records.batches import CODEC_BITS, TRANSACTIONAL_BIT, codec_name
from wirewitness.dissectors.kafka.records.record_sets import VALUE_KINDS
from wirewitness.dissectors.kafka.rows.int64 import or_none

# base_offset, error_code, error_message and log_append_timestamp of the answer about a partition.
_Answer = tuple[int | None, int | None, str | None, int | None]
_NO_ANSWER: _Answer = (None, None, None, None)


class Produced(NamedTuple):
    """The partitions that requests send to, and the answer about each. topics: the key of each code."""

    sent: Partitions
    topics: list[TopicKey]
    answers: list[_Answer]


def produced(group: Group) -> Produced:
    """Of all exchanges."""
    codes: dict[TopicKey, int] = {}
    sent = partitions_of(group, lists(group.asked, "topic_data"), "partition_data", "index", codes)
    return Produced(sent, list(codes), _answers(group, sent, list(codes)))


def produced_records(group: Group, made: Produced, payload: frozenset[str]) -> tuple[Block, Ints]:
    """kafka_records of Produces."""
    assert group.batches is not None
    answered = np.array([-1 if base is None else base for base, *_ in made.answers], np.int64)
    bases = in_log(group.batches, answered[group.batches.field])
    return record_rows(group, made.sent, made.topics, bases, payload)


def batch_rows(group: Group, made: Produced) -> tuple[Block, Ints]:
    """kafka_produce_batches of Produces: a row for each batch."""
    batches = group.batches
    assert batches is not None
    first = batches.first
    assert first is not None
    sent, topics, answers = made
    owners = sent.exchange[batches.field]
    bases, lasts = _offsets(batches, [answers[number][0] for number in batches.field.tolist()])
    attributes = batches.number("attributes")
    codec = attributes & CODEC_BITS

    def of_request(name: str) -> Column:
        return chosen(column(group, group.asked, name), owners)

    columns = (
        *(chosen(one, owners) for one in (*heads(group), group.client_ids)),
        *(Coded(sent.topic[batches.field], [key[part] for key in topics]) for part in range(2)),
        Numbers(sent.number[batches.field]),
        optional(bases),
        optional(lasts),
        Numbers(batches.number("count")),
        Coded(codec, [codec_name(number) for number in range(CODEC_BITS + 1)]),
        Numbers(batches.bytes),
        _uncompressed(batches, codec == 0),
        *(Numbers(batches.number(name)) for name in ("producer_id", "producer_epoch", "base_sequence")),
        *(Numbers(batches.number(name)) for name in ("base_timestamp", "max_timestamp")),
        chosen(optional([appended for *_, appended in answers]), batches.field),
        *(optional(one) for one in (first.content_crc, first.key_bytes, first.key_crc)),
        Coded(first.value_kind, [*VALUE_KINDS, None]),
        of_request("acks"),
        of_request("timeout_ms"),
        Numbers((attributes & TRANSACTIONAL_BIT) != 0),
        of_request("transactional_id"),
        *(NOTHING,) * 2,  # the leader is a tagged field, which is irregular
        Same(True),  # a wrong checksum is irregular
        chosen(optional([error_code for _, error_code, *_ in answers]), batches.field),
        Coded(batches.field, [message for _, _, message, _ in answers]),
    )
    return Block(columns, len(owners)), owners


def _uncompressed(batches: Batches, plain: Flags) -> Numbers:
    """The size of each without compression; null where it was not opened."""
    if not batches.data:
        return Numbers(batches.bytes, plain)
    return Numbers(HEADER_BYTES + np.fromiter(map(len, batches.data), np.int64, len(batches.data)))


def _answers(group: Group, sent: Partitions, names: list[TopicKey]) -> list[_Answer]:
    """The answer about each partition that was sent to; of several about one the last counts."""
    topics = lists(group.answered, "responses")
    codes: dict[TopicKey, int] = {}
    told = partitions_of(group, topics, "partition_responses", "index", codes)
    answers = zip(
        numbers(told.of, "base_offset"),
        numbers(told.of, "error_code"),
        _messages(group, told),
        _appended(told),
        strict=True,
    )
    found = dict(zip(told.places(list(codes)), answers, strict=True))
    return [found.get(place, _NO_ANSWER) for place in sent.places(names)]


def _appended(partitions: Partitions) -> list[int | None]:
    if "log_append_time_ms" not in partitions.of:
        return [None] * len(partitions.exchange)
    return numbers(partitions.of, "log_append_time_ms")


def _messages(group: Group, partitions: Partitions) -> list[str | None]:
    if "error_message" not in partitions.of:
        return [None] * len(partitions.exchange)
    return group.strings.of(partitions.of["error_message"])


def _offsets(batches: Batches, answered: list[int | None]) -> tuple[list[int | None], list[int | None]]:
    """base_offset and last_offset of each batch: those of one partition follow each other in the log.

    answered: what the broker said of each batch's partition.
    """
    bases, lasts = list(answered), list[int | None]()
    begins = np.concatenate(([True], batches.field[1:] != batches.field[:-1]))[: len(bases)].tolist()
    last: int | None = None
    for number, delta in enumerate(batches.number("last_offset_delta").tolist()):
        if not begins[number]:
            bases[number] = bases[number - 1] if last is None else or_none(last + 1)
        base = bases[number]
        last = None if base is None or base < 0 else or_none(base + delta)
        lasts.append(last)
    return bases, lasts
