"""Rows of kafka_records, of many exchanges at once, one for each batch: the same as those of `rows/record_rows.py`.

In: a `Group` of Produces or Fetches with the data of their batches. Out: rows, and whose they are.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from wirewitness.dissectors.core.blocks import Block, Coded, Column, Numbers, Same
from wirewitness.dissectors.core.lockstep.column_ops import chosen, coded
from wirewitness.dissectors.core.lockstep.frames import Ints
from wirewitness.dissectors.kafka.lockstep.group_rows import NOTHING, heads
from wirewitness.dissectors.kafka.lockstep.groups import Group
from wirewitness.dissectors.kafka.lockstep.partitions import Partitions
from wirewitness.dissectors.kafka.lockstep.records import Batches
from wirewitness.dissectors.kafka.lockstep.texts import TopicKey
from wirewitness.dissectors.kafka.records.batches import (
    CODEC_BITS,
    CONTROL_BIT,
    LOG_APPEND_TIME_BIT,
    TRANSACTIONAL_BIT,
    codec_name,
)
from wirewitness.dissectors.kafka.records.record_sets import control_type, split_records
from wirewitness.dissectors.kafka.rows.int64 import MOST
from wirewitness.dissectors.kafka.schema.api_keys import api_name

_EXCHANGE_FIELDS = 4
_TIMESTAMP_TYPES = ("create_time", "log_append_time")


def record_rows(
    group: Group, partitions: Partitions, topics: list[TopicKey], base_offset: Numbers, payload: frozenset[str]
) -> tuple[Block, Ints]:
    """A row for each batch. partitions: those that the batches lie in; topics: by code. base_offset: of each batch."""
    batches = group.batches
    assert batches is not None
    owners = partitions.exchange[batches.field]
    attributes = batches.number("attributes")
    appended = (attributes & LOG_APPEND_TIME_BIT) != 0
    columns: list[Column] = [
        *(chosen(one, owners) for one in (*heads(group)[:_EXCHANGE_FIELDS], group.client_ids)),
        Same(api_name(group.api_key)),
        *(Coded(partitions.topic[batches.field], [key[part] for key in topics]) for part in range(2)),
        Numbers(partitions.number[batches.field]),
        Coded(appended.astype(np.int64), _TIMESTAMP_TYPES),
        Coded(attributes & CODEC_BITS, [codec_name(number) for number in range(CODEC_BITS + 1)]),
        Numbers(batches.number("producer_id")),
        Numbers(batches.number("producer_epoch")),
        Numbers((attributes & TRANSACTIONAL_BIT) != 0),
        _controls(batches, (attributes & CONTROL_BIT) != 0),
        Same(True),  # a wrong checksum is irregular
        NOTHING,  # and so is what cannot be opened
        Coded(np.arange(len(owners)), batches.data),
        Numbers(batches.number("count")),
        NOTHING,
        base_offset,
        Numbers(batches.number("base_offset")),
        Numbers(batches.number("base_timestamp")),
        Numbers(batches.number("max_timestamp"), appended),
        Numbers(batches.number("base_sequence")),
        Same(payload),
    ]
    return Block(columns, len(owners)), owners


def in_log(batches: Batches, answered: Ints) -> Numbers:
    """The offset of each batch's first record. answered: of each one's partition; those of one follow each other."""
    taken = batches.number("last_offset_delta") + 1
    before = np.cumsum(taken) - taken
    before -= before[np.searchsorted(batches.field, batches.field)]
    known = (answered >= 0) & (answered <= MOST - before)
    return Numbers(np.where(known, answered, 0) + np.where(known, before, 0), known)


def _controls(batches: Batches, control: np.ndarray) -> Column:
    """What control records say."""
    return coded(_control_types(batches, control.tolist())) if control.any() else NOTHING


def _control_types(batches: Batches, control: list[bool]) -> Iterator[str | None]:
    counts = batches.number("count").tolist()
    for is_control, data, count in zip(control, batches.data, counts, strict=True):
        first = split_records(data, min(count, 1), 0, 0, None)[0] if is_control else []
        yield (control_type(data, first[0]) if first else None) or "unknown" if is_control else None
