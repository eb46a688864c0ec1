"""Whether a group's lag grows because more is written than before, while the group reads as fast as it did (KAF108).

In: batches that were stored in the partition, and commits. Out: that cause, naming who writes most, or None.
"""

from __future__ import annotations

import numpy as np

from wirewitness.analyser.base.times import NS_PER_S, moment_text
from wirewitness.analyser.engine.rules.columns import UNKNOWN, Integers
from wirewitness.analyser.engine.rules.frame import Frame, numbered, places_of
from wirewitness.analyser.kafka.rules.lag_causes import Cause, Commits, Growth
from wirewitness.analyser.kafka.rules.names import who_numbers, who_text

# The time in which batches were stored, in so many parts; so many of them at least before and after a change.
_PARTS, _LEAST = 20, 4
# So many times as much is another load; quarters of the parts before and after it lie this far apart.
_TIMES, _APART = 3.0, 2.0
# A group that commits this share of what it did in the same time has not become slower.
_KEPT = 0.8


def more_written(batches: Frame, commits: Commits, growth: Growth) -> Cause | None:
    """Written more from one time on, while commits moved on as fast as before."""
    at, records = batches["ts"].numbers(), batches["records_count"].numbers()
    rows = np.flatnonzero((at != UNKNOWN) & (records > 0) & (at <= growth.until))
    if len(rows) < 2 * _LEAST:
        return None
    at, records = at[rows], records[rows]
    first, width = int(at.min()), max((int(at.max()) - int(at.min())) // _PARTS, 1)
    written = np.bincount(np.minimum((at - first) // width, _PARTS - 1), weights=records, minlength=_PARTS)
    change = _change(written)
    if change is None:
        return None
    part, times = change
    since = first + part * width
    before, after = _pace(commits, first, since), _pace(commits, since, growth.until)
    if before is None or after is None or after < _KEPT * before:
        return None
    later = np.flatnonzero(at >= since)
    who = _writer(batches.take(rows[later]), records[later])
    if who is None:
        return None
    client_id, address, share = who
    pace = records[later].sum() / max((growth.until - since) / NS_PER_S, 1e-9)
    return Cause(
        "more written",
        f"Since {moment_text(since)} {times:,.0f} times as much is written ({pace:,.0f} records a second), {share:.0%} "
        f"of it by {who_text(address, client_id)}; the group commits {after:,.0f} a second, as fast as before.",
        "Ask who runs that producer whether this load is meant. If it is, add partitions and consumers for it; if not, "
        "stop it, or hold it with a quota (producer_byte_rate).",
        writer=who_numbers(address, client_id),
    )


def _change(written: np.ndarray) -> tuple[int, float] | None:
    """From which part on how many times as much is written: the sharpest rise, where both sides are steady."""
    found = [
        (float(np.median(after) / np.median(before)), part)
        for part in range(_LEAST, len(written) - _LEAST + 1)
        for before, after in [(written[:part], written[part:])]
        if np.median(before) > 0 and np.quantile(after, 0.25) >= _APART * np.quantile(before, 0.75)
    ]
    times, part = max(found, default=(0.0, 0))
    return (part, times) if times >= _TIMES else None


def _pace(commits: Commits, begin: int, until: int) -> float | None:
    """Records a second by the commits in that time; None with fewer than three."""
    own = np.flatnonzero((commits.done_ns >= begin) & (commits.done_ns <= until))
    if len(own) < 3:
        return None
    seconds = (int(commits.done_ns[own[-1]]) - int(commits.done_ns[own[0]])) / NS_PER_S
    return int(commits.offset[own[-1]] - commits.offset[own[0]]) / seconds if seconds > 0 else None


def _writer(batches: Frame, records: Integers) -> tuple[str | None, str | None, float] | None:
    """Client id and address of who wrote most of these records, and its share; None where nobody wrote half."""
    ids, addresses = batches["client_id"].texts(), batches["client_address"].texts()
    clients = numbered(ids.codes.astype(np.int64) * (int(addresses.codes.max(initial=0)) + 2) + addresses.codes)
    most = max(places_of(clients), key=lambda rows: int(records[rows].sum()))
    share = int(records[most].sum()) / int(records.sum())
    return (ids.at(int(most[0])), addresses.at(int(most[0])), share) if share >= 1 / 2 else None
