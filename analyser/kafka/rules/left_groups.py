"""A group that nobody is in any more: since when, and what waits for it.

In: rows of a group's members, of its commits and of log ends. Out: `LeftGroup`, or None where somebody may be in it, it
was a job that had an end, or nothing waits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from wirewitness.analyser.base.times import NS_PER_S
from wirewitness.analyser.engine.rules.frame_rows import Row

Place = tuple[str | None, int]
GONE = ("left", "expired", "removed", "fenced", "replaced")
_KEPT_UP_GAPS = 2
_LONG_S = 60.0


class LeftGroup(NamedTuple):
    """A group that nobody is in: since when, until when that is known, and what waits of each partition.

    usual: the middle gap of its commits, in ns. committed_ns: the time of the first one.
    """

    members: Sequence[Row]
    since: int
    until: int
    usual: float
    committed_ns: int
    stored: Mapping[Place, int]
    waiting: Mapping[Place, int]


def left_group(
    members: Sequence[Row],
    commits: Sequence[Row],
    ends: Mapping[Place, list[Row]],
    rounds: int,
    gaps: float,
    away_s: float,
) -> LeftGroup | None:
    """The group, when nobody has been in it for `gaps` of its usual gaps and `away_s`; rounds: commits close behind."""
    since = max(max(row["ts_last"], row["ts_ended"] or 0) for row in members)
    if not commits or commits[-1]["ts"] > since:
        return None
    places: dict[Place, list[Row]] = {}
    for row in commits:
        places.setdefault((row["topic"], row["partition"]), []).append(row)
    told = {place: rows[-1] for place, rows in ends.items() if place in places}
    until = max((row["ts_last"] or row["ts"] for row in told.values()), default=0)
    steps = [after["ts"] - before["ts"] for own in places.values() for before, after in pairwise(own)]
    usual = median(steps) if steps else 0
    seen_ns = since - min(row["ts"] for row in members)
    shortest = max(gaps * usual, away_s * NS_PER_S, min(seen_ns, _LONG_S * NS_PER_S))
    if not usual or until - since < shortest:
        return None
    stored = {place: own[-1]["committed_offset"] for place, own in places.items()}
    waiting = {place: told[place]["log_end_offset"] - stored[place] for place in told}
    kept_up = any(_kept_up(own, waiting.get(place, 0), until - own[-1]["ts"], usual) >= rounds
                  for place, own in places.items())  # fmt: skip
    waiting = {place: behind for place, behind in waiting.items() if behind > 0}
    return LeftGroup(members, since, until, usual, commits[0]["ts"], stored, waiting) if kept_up and waiting else None


def _kept_up(own: Sequence[Row], waiting: int, lasts: int, usual: float) -> int:
    """So many commits that moved on were stored closer behind the end than the log goes on in some usual gaps."""
    if waiting <= 0:
        return 0
    close = max(_KEPT_UP_GAPS * usual * waiting / max(lasts, 1), 1)
    return sum(
        after["committed_offset"] > before["committed_offset"]
        and after["log_end_offset"] is not None
        and after["log_end_offset"] - after["committed_offset"] <= close
        for before, after in pairwise(own)
    )
