"""What months of traffic come down to: tables that only datasets have.

In: a change that has all tables of its captures, with context and findings. Out: the same change with
`latency_minutes`, `kafka_lag_minutes` and `findings_history`. Only hours that changed are written.
"""

from __future__ import annotations

from analyser.archive.dataset.change import Change
from analyser.archive.derive import history, lags, latencies
from analyser.archive.derive.latencies import merge_rows

__all__ = ["merge_rows", "run_aggregates"]


def run_aggregates(change: Change) -> dict[str, set[int | None]]:
    """Bring all aggregates up to date; table -> hours written. Once for each change, last before its commit."""
    return {
        latencies.TABLE: latencies.run_latencies(change),
        lags.TABLE: lags.run_lags(change),
        history.TABLE: history.run_history(change),
    }
