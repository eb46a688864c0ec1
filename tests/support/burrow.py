"""Burrow's verdict on a partition, re-stated: what the usual lag monitor says of the same commits.

In: commits of one (group, topic, partition) as a DataFrame with the columns of `kafka_offset_commits`, and the log end.
Out: OK, WARN, STALL, STOP or REWIND. The rules are those of linkedin/Burrow, core/internal/evaluator/caching.go, on a
ring as core/internal/storage/inmemory.go keeps it; written from their description, not copied:

  no lag now            OK, whatever else
  STOP                  the last commit is older than the ring is long, unless there was no lag lately
  REWIND                an offset below the one before it, unless a later one reached the height it fell from
  a commit without lag  OK
  STALL                 all offsets equal
  WARN                  the lag never decreases
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import pandas as pd

INTERVALS = 10


class Commit(NamedTuple):
    """One entry of the ring: time in ms, offset, lag when it was committed (None: log end unknown)."""

    ts_ms: int
    offset: int
    lag: int | None


def verdict(ring: Sequence[Commit], current_lag: int, now_ms: int, recent_log_ends: Sequence[int] = ()) -> str:
    """Burrow's status of one partition from its ring of commits, oldest first."""
    if not ring or current_lag <= 0:
        return "OK"
    first, last = ring[0], ring[-1]
    caught_up = any(log_end <= last.offset for log_end in recent_log_ends)
    if now_ms - last.ts_ms > last.ts_ms - first.ts_ms and not caught_up:
        return "STOP"
    if _rewound_and_not_recovered(ring):
        return "REWIND"
    if any(commit.lag == 0 for commit in ring):
        return "OK"
    if all(commit.offset == first.offset for commit in ring):
        return "STALL"
    lags = [commit.lag for commit in ring if commit.lag is not None]
    return "OK" if any(b < a for a, b in pairwise(lags)) else "WARN"


def _rewound_and_not_recovered(ring: Sequence[Commit]) -> bool:
    """The first step back counts, and only until some later commit is as far again."""
    for index, (before, after) in enumerate(pairwise(ring)):
        if after.offset < before.offset:
            return all(commit.offset < before.offset for commit in ring[index + 1 :])
    return False


def entries(commits: pd.DataFrame) -> list[Commit]:
    """The accepted commits in Burrow's order: the offsets topic holds no refused ones, and no committer."""
    accepted = commits[commits["error_code"] == 0].sort_values(["ts_response", "ts"], kind="stable")
    return [
        Commit(
            int(row.ts.value // 1_000_000),
            int(row.committed_offset),
            None if pd.isna(row.log_end_offset) else max(0, int(row.log_end_offset) - int(row.committed_offset)),
        )
        for row in accepted.itertuples()
    ]


def ring_of(commits: pd.DataFrame, intervals: int = INTERVALS) -> list[Commit]:
    """The newest of them, as many as Burrow stores."""
    return entries(commits)[-intervals:]


def verdict_of(commits: pd.DataFrame, log_end: int, intervals: int = INTERVALS) -> str:
    """Burrow's status right after the last of these commits, with the log ending at `log_end`."""
    return _verdict_at(ring_of(commits, intervals), log_end)


def _verdict_at(ring: Sequence[Commit], log_end: int) -> str:
    return verdict(ring, max(0, log_end - ring[-1].offset), ring[-1].ts_ms) if ring else "OK"


def verdicts_over_time(commits: pd.DataFrame, intervals: int = INTERVALS) -> list[str]:
    """Burrow's status after every accepted commit from the first full ring on, at the log end known then."""
    ordered = commits[commits["error_code"] == 0].sort_values(["ts_response", "ts"], kind="stable")
    known, all_of_them = ordered["log_end_offset"].ffill().fillna(0), entries(commits)
    return [
        _verdict_at(all_of_them[count - intervals : count], int(known.iloc[count - 1]))
        for count in range(intervals, len(all_of_them) + 1)
    ]
