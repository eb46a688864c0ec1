"""Rows of the tables that every exchange fills, of many exchanges at once. In: a `Group`. Out: rows in its order."""

from __future__ import annotations

from itertools import repeat

import numpy as np

from dissectors.core.model import CLIENT_TO_SERVER, SERVER_TO_CLIENT, Row
from dissectors.kafka.columns.batch import Side
from dissectors.kafka.columns.groups import Group
from dissectors.kafka.columns.summaries import Words, summaries
from dissectors.kafka.columns.waits import awaitable
from dissectors.kafka.error_codes import ERROR_NAMES


def exchange_rows(group: Group, error_codes: list[int]) -> list[Row]:
    """Rows of `exchanges`, in the order of EXCHANGE_FIELDS."""
    asked, answered = group.requests, group.responses
    throttled = group.answered.get("throttle_time_ms")
    names = {code: ERROR_NAMES.get(code) for code in set(error_codes)}
    return list(
        zip(
            repeat(CLIENT_TO_SERVER, len(group)),
            asked.offset.tolist(),
            answered.offset.tolist(),
            asked.packet_last.tolist(),
            answered.packet_last.tolist(),
            asked.ts_ns.tolist(),
            answered.ts_ns.tolist(),
            repeat(group.known.name),
            repeat(group.known.version),
            group.client_ids,
            ["error" if code else "ok" for code in error_codes],
            error_codes,
            [names[code] for code in error_codes],
            asked.size.tolist(),
            answered.size.tolist(),
            awaitable(group),
            throttled.tolist() if isinstance(throttled, np.ndarray) else repeat(None),
        )
    )


def message_rows(group: Group, error_codes: list[int]) -> tuple[list[Row], list[Row]]:
    """Rows of `messages`, in the order of MESSAGE_FIELDS: of the requests, and of the responses."""
    count = len(group)
    asked = summaries(group.asked, group.strings, count, None)
    answered = summaries(group.answered, group.strings, count, error_codes)
    return (
        _messages(group, CLIENT_TO_SERVER, group.requests, "request", asked),
        _messages(group, SERVER_TO_CLIENT, group.responses, "response", answered),
    )


def _messages(group: Group, direction: int, side: Side, role: str, lines: Words) -> list[Row]:
    return list(
        zip(
            repeat(direction, len(group)),
            side.offset.tolist(),
            side.size.tolist(),
            side.packet_first.tolist(),
            side.packet_last.tolist(),
            side.ts_ns.tolist(),
            repeat(role),
            repeat(group.known.name),
            repeat(group.known.version),
            group.correlation_ids,
            group.client_ids,
            repeat(True),
            repeat(None),
            lines,
        )
    )
