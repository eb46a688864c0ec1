"""The part of a dataset's report that goes over time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.analysis_from_rows import RowsAnalysis
from wirewitness.analyser.archive.aggregate.sketches import sketch_of
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.reports.base.formats.text import render
from wirewitness.reports.report.trends import trend_section

HOUR_NS = 3_600_000_000_000
MINUTE_NS = 60_000_000_000
# Friday, 2026-11-20 13:00 UTC
START_NS = 1_795_179_600_000_000_000


def minute(at_ns: int, values: list[float], errors: int = 0, protocol: str = "kafka") -> dict[str, Any]:
    data = np.array(values)
    return {
        "ts": at_ns, "protocol": protocol, "operation": "Fetch", "exchanges": len(values) + errors, "errors": errors,
        "unanswered": 0, "latencies": len(values), "latency_sum_ms": data.sum(), "latency_min_ms": data.min(),
        "latency_max_ms": data.max(), "sketch": sketch_of(data).serialize(),
    }  # fmt: skip


def lag(at_ns: int, behind: int, client: str = "ledger-a") -> dict[str, Any]:
    return {
        "ts": at_ns, "group_id": "payments-ledger", "topic": "payments", "partition": 4, "committed_offset": 49,
        "log_end_offset": 49 + behind, "lag": behind, "client_id": client, "client_address": "10.77.0.12",
        "ts_commit": at_ns, "commits": 1, "rejected": 0, "committers": 1,
    }  # fmt: skip


def shown(rows: Any, options: ReadOptions | None = None) -> list[str]:
    lines = render(trend_section(RowsAnalysis(rows, options)), 120).splitlines()
    return [" ".join(line.split()) for line in lines if line.strip()]


def test_hours_with_merged_percentiles_and_lag() -> None:
    minutes = [minute(START_NS + h * HOUR_NS + m * MINUTE_NS, [1.0 + h, 2.0 + h, 30.0 + h], errors=h)
               for h in range(5) for m in (0, 30)]  # fmt: skip
    lags = [lag(START_NS, 3), lag(START_NS + HOUR_NS, 90), lag(START_NS + 2 * HOUR_NS, 77, "ledger-c")]
    assert shown({"latency_minutes": minutes, "kafka_lag_minutes": lags}) == [
        "OVER TIME",
        "HOUR (UTC) PROTOCOL EXCHANGES ERRORS MEDIAN MS P99 MS MAX MS",
        "2026-11-20 13:00 kafka 6 2.000 30.000 30.000",
        "2026-11-20 14:00 kafka 8 2 3.000 31.000 31.000",
        "2026-11-20 15:00 kafka 10 4 4.000 32.000 32.000",
        "2026-11-20 16:00 kafka 12 6 5.000 33.000 33.000",
        "2026-11-20 17:00 kafka 14 8 6.000 34.000 34.000",
        "GROUP PARTITION FIRST LAG LARGEST AT (UTC) LAST COMMITTED BY",
        "payments-ledger payments-4 3 90 2026-11-20 14:00 77 ledger-c@10.77.0.12",
        "lag minute by minute in the table kafka_lag_minutes",
    ]


@pytest.mark.parametrize(
    ("hours", "every", "head", "first"),
    [
        (24 * 7, 6, "DAY (UTC)", "2026-11-20"),
        (24 * 100, 24, "WEEK (UTC)", "2026-11-16"),
    ],
    ids=["days", "weeks"],
)
def test_longer_times_in_longer_steps(hours: int, every: int, head: str, first: str) -> None:
    lines = shown({"latency_minutes": [minute(START_NS + h * HOUR_NS, [5.0]) for h in range(0, hours, every)]})
    assert lines[1].startswith(head)
    assert lines[2].startswith(first)
    assert len(lines) < 25


def test_a_short_time_has_no_trend_and_options_select() -> None:
    minutes = [minute(START_NS + h * HOUR_NS, [1.0], protocol=p) for h in range(6) for p in ("kafka", "mqtt")]
    assert shown({"latency_minutes": minutes[:4]}) == []
    assert shown({"latency_minutes": minutes}, ReadOptions(to_ns=START_NS + HOUR_NS)) == []
    only = shown({"latency_minutes": minutes}, ReadOptions(protocols=("mqtt",)))
    assert len(only) == 8
    assert all(" mqtt 1 " in line for line in only[2:])


def test_findings_that_stand_no_more_are_counted() -> None:
    minutes = [minute(START_NS + h * HOUR_NS, [1.0]) for h in range(5)]
    history = {"finding_id": "1", "code": "KAF102", "superseded_run": "000002"}
    assert shown({"latency_minutes": minutes, "findings_history": [history]})[-1] == (
        "overturned 1 finding of earlier runs: table findings_history"
    )
