"""What months of traffic come down to: tables that only datasets have.

In: a change that has all tables of its captures, with context and findings, and who works. Out: the same change with
`latency_minutes`, `kafka_lag_minutes` and `findings_history`. Only hours that changed are written.
"""

from __future__ import annotations

from wirewitness.analyser.archive.aggregate import history, lags, latencies
from wirewitness.analyser.archive.aggregate.latencies import merge_rows
from wirewitness.analyser.archive.dataset.change import Change
from wirewitness.analyser.archive.spark.workers import HERE, Workers

__all__ = ["merge_rows", "run_aggregates"]


def run_aggregates(change: Change, workers: Workers = HERE) -> dict[str, set[int | None]]:
    """Bring all aggregates up to date; table -> hours written. Once for each change, last before its commit."""
    return {
        latencies.TABLE: latencies.run_latencies(change, workers),
        lags.TABLE: lags.run_lags(change, workers),
        history.TABLE: history.run_history(change, workers),
    }
