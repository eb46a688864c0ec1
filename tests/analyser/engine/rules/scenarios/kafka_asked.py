"""Scenarios of what clients ask for by time."""

from __future__ import annotations

from tests.analyser.engine.rules.scenarios.build import START, Row
from tests.analyser.engine.rules.scenarios.build_offsets import listed
from tests.analyser.engine.rules.scenarios.scenario import Scenario, fires, silent

_SECONDS = START // 10**9


def asked(time: int, offset: int | None) -> list[Row]:
    """m1 asks three partitions for the offset of that time, and is answered with this one; None: no answer."""
    error = None if offset is None else 0
    return [listed(1, time, offset, partition=n, error_code=error, replica_id=-1) for n in range(3)]


ASKED_FIRES: list[Scenario] = [
    fires("KAF345", "warning", "the last hour in seconds", kafka_list_offsets=asked(_SECONDS - 3600, 0)),
    fires("KAF345", "warning", "two years ago in seconds, of requests alone",
          kafka_list_offsets=asked(_SECONDS - 2 * 365 * 86400, None)),
    fires("KAF345", "warning", "microseconds, for which no record is found",
          kafka_list_offsets=asked(_SECONDS * 10**6, -1)),
    fires("KAF345", "warning", "nanoseconds", kafka_list_offsets=asked(START, -1)),
]  # fmt: skip
ASKED_NEAR_MISSES: list[Scenario] = [
    silent("KAF345", "the last hour in milliseconds", kafka_list_offsets=asked((_SECONDS - 3600) * 1000, 900)),
    silent("KAF345", "the end, the beginning, the highest timestamp and the first record of all times",
           kafka_list_offsets=[row for time in (-1, -2, -3, 0, 1) for row in asked(time, 0)]),
    silent("KAF345", "a day of 1972 in milliseconds", kafka_list_offsets=asked(86_400_000 * 800, 0)),
    silent("KAF345", "a replica asks", kafka_list_offsets=[row | {"replica_id": 2} for row in asked(_SECONDS, 0)]),
]  # fmt: skip
