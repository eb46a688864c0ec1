"""Rows of the tables that every exchange fills, of many exchanges at once. In: a `Group`. Out: rows in its order."""

from __future__ import annotations

import numpy as np

from wirewitness.dissectors.core.blocks import Block, Coded, Numbers, Same
from wirewitness.dissectors.core.lockstep.column_ops import coded
from wirewitness.dissectors.core.lockstep.frames import Ints
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, SERVER_TO_CLIENT
from wirewitness.dissectors.kafka.error_codes import ERROR_NAMES
from wirewitness.dissectors.kafka.lockstep.batch import Side
from wirewitness.dissectors.kafka.lockstep.group_rows import NOTHING, column
from wirewitness.dissectors.kafka.lockstep.groups import Group
from wirewitness.dissectors.kafka.lockstep.long_polls import awaitable
from wirewitness.dissectors.kafka.lockstep.summaries import Words, summaries


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
