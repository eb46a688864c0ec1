"""Rows of the tables that every exchange fills, of many exchanges at once. In: a `Group`. Out: rows in its order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wirewitness.dissectors.core.blocks import Block, Coded, Numbers, Same
from wirewitness.dissectors.core.lockstep.column_ops import coded
from wirewitness.dissectors.core.lockstep.frames import Ints
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, SERVER_TO_CLIENT
from wirewitness.dissectors.kafka.error_codes import ERROR_NAMES, error_name
from wirewitness.dissectors.kafka.lockstep.batch import Side
from wirewitness.dissectors.kafka.lockstep.group_rows import NOTHING, column
from wirewitness.dissectors.kafka.lockstep.groups import Group
from wirewitness.dissectors.kafka.lockstep.long_polls import awaitable
from wirewitness.dissectors.kafka.lockstep.plan import ELEMENT
from wirewitness.dissectors.kafka.lockstep.read import Columns, Lists, Texts
from wirewitness.dissectors.kafka.lockstep.texts import Strings
from wirewitness.dissectors.kafka.summary import MAX_TOPICS, PARTITION_FIELDS, TOPIC_FIELDS, WORDS

# The line for people about each of many messages, as `kafka/summary.py` writes it of one.

Words = list[str | None]


def summaries(columns: Columns, strings: Strings, count: int, error_codes: Sequence[int] | None) -> Words:
    """The lines of `count` messages. error_codes: of responses, None for requests."""
    words = [_word(name, columns, strings) for name in WORDS if columns.get(name) is not None]
    for name in TOPIC_FIELDS:
        topics = columns.get(name)
        if isinstance(topics, Lists) and topics.of and ELEMENT not in topics.of:
            words.append(_topics(topics, strings))
    if error_codes is not None:
        told = {code: f"error={code} {error_name(code) or ''}".rstrip() for code in set(error_codes)}
        words.append([told[code] for code in error_codes])
    if not words:
        return [None] * count
    return [" ".join(filter(None, line)) or None for line in zip(*words, strict=True)]


def _word(name: str, columns: Columns, strings: Strings) -> Words:
    column = columns[name]
    if isinstance(column, Texts):
        texts = strings.of(column)
        told = {text: f"{name}={text}" if text else None for text in set(texts)}
        return [told[text] for text in texts]
    assert isinstance(column, np.ndarray)
    return [f"{name}={number}" for number in column.tolist()]


def _topics(topics: Lists, strings: Strings) -> Words:
    """The first topics of each message, with their partition counts."""
    told = [name or topic_id for name, topic_id in strings.topic_keys(topics.of)]
    parts = _partitions(topics.of)
    if parts is None:
        words = [one or "?" for one in told]
    else:
        counted = zip(told, parts.sizes.tolist(), strict=True)
        words = [f"{one}[{count}]" if count >= 0 else one or "?" for one, count in counted]
    counts = topics.counts
    if (counts == 1).all():
        return list(words)
    firsts = (np.cumsum(counts) - counts).tolist()
    return [_of_one(words, first, count) for first, count in zip(firsts, counts.tolist(), strict=True)]


def _of_one(words: list[str], first: int, count: int) -> str | None:
    shown = words[first : first + min(count, MAX_TOPICS)]
    if count > MAX_TOPICS:
        shown.append(f"and {count - MAX_TOPICS} more topics")
    return " ".join(shown) or None


def _partitions(topic: Columns) -> Lists | None:
    """The first list of partitions that a topic has."""
    for name in PARTITION_FIELDS:
        column = topic.get(name)
        if isinstance(column, Lists):
            return column
    return None


def exchange_rows(group: Group, error_codes: Ints) -> Block:
    """Rows of `exchanges`, in the order of EXCHANGE_FIELDS."""
    asked, answered = group.requests, group.responses
    columns = (
        Same(CLIENT_TO_SERVER),
        Numbers(asked.offset),
        Numbers(answered.offset),
        Numbers(asked.packet_last),
        Numbers(answered.packet_last),
        Numbers(asked.ts_ns),
        Numbers(answered.ts_ns),
        Same(group.known.name),
        Same(group.known.version),
        group.client_ids,
        Coded((error_codes != 0).astype(np.int64), ("ok", "error")),
        Numbers(error_codes),
        _error_names(error_codes),
        Numbers(asked.size),
        Numbers(answered.size),
        awaitable(group),
        column(group, group.answered, "throttle_time_ms"),
    )
    return Block(columns, len(group))


def _error_names(error_codes: Ints) -> Coded:
    different, codes = np.unique(error_codes, return_inverse=True)
    return Coded(codes, [ERROR_NAMES.get(code) for code in different.tolist()])


def message_rows(group: Group, error_codes: Ints) -> tuple[Block, Block]:
    """Rows of `messages`, in the order of MESSAGE_FIELDS: of the requests, and of the responses."""
    count = len(group)
    asked = summaries(group.asked, group.strings, count, None)
    answered = summaries(group.answered, group.strings, count, error_codes.tolist())
    return (
        _messages(group, CLIENT_TO_SERVER, group.requests, "request", asked),
        _messages(group, SERVER_TO_CLIENT, group.responses, "response", answered),
    )


def _messages(group: Group, direction: int, side: Side, role: str, lines: Words) -> Block:
    columns = (
        Same(direction),
        Numbers(side.offset),
        Numbers(side.size),
        Numbers(side.packet_first),
        Numbers(side.packet_last),
        Numbers(side.ts_ns),
        Same(role),
        Same(group.known.name),
        Same(group.known.version),
        Numbers(group.correlation_ids),
        group.client_ids,
        Same(True),
        NOTHING,
        coded(lines),
    )
    return Block(columns, len(group))
