"""Which of many requests ask the broker to wait, as `kafka/long_polls.py` says of one."""

from __future__ import annotations

import numpy as np

from wirewitness.dissectors.core.blocks import Numbers, Same
from wirewitness.dissectors.core.lockstep.frames import Flags, Ints
from wirewitness.dissectors.kafka.lockstep.groups import Group
from wirewitness.dissectors.kafka.lockstep.read import Columns, lists
from wirewitness.dissectors.kafka.lockstep.texts import Strings
from wirewitness.dissectors.kafka.long_polls import WAITS
from wirewitness.dissectors.kafka.schema.primitives import METADATA_TOPIC

_FETCHES = frozenset({1, 78})
# Of these APIs `awaitable` is told by other means than here.
LEFT_OUT = frozenset(WAITS) - _FETCHES


def awaitable(group: Group) -> Same | Numbers:
    """Whether each request asks to wait."""
    if group.api_key not in _FETCHES:
        return Same(False)
    count = len(group)
    wants_data = _number(group.asked, "min_bytes") > 0
    if not wants_data.all():
        wants_data |= _of_raft(group.asked, group.strings, count)
    waits = (_number(group.asked, "max_wait_ms") > 0) & wants_data
    return Numbers(waits)


def _number(columns: Columns, name: str) -> Ints:
    column = columns[name]
    assert isinstance(column, np.ndarray)
    return column.astype(np.int64)


def _of_raft(asked: Columns, strings: Strings, count: int) -> Flags:
    """Does the first topic hold the log of the controllers?"""
    topics = lists(asked, "topics")
    counts = topics.counts
    keys = strings.topic_keys(topics.of)
    found = np.zeros(count, bool)
    for row, first in zip(
        np.flatnonzero(counts).tolist(), (np.cumsum(counts) - counts)[counts > 0].tolist(), strict=True
    ):
        found[row] = keys[first][0] == METADATA_TOPIC
    return found
