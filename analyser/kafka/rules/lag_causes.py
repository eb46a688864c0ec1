"""What holds a group back whose lag grows (KAF108): told from its Fetch requests and from who writes the partition.

In: how the lag grew, and rows of Fetch responses of the group's readers. Out: one cause, with what to do.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from wirewitness.analyser.base.times import NS_PER_MS, NS_PER_S
from wirewitness.analyser.base.words import count
from wirewitness.analyser.engine.rules.columns import UNKNOWN, Integers
from wirewitness.analyser.engine.rules.frame import Frame

# Given so many times as many records as there are different ones, a reader throws away what it fetched.
_AGAIN = 5


class Ends(NamedTuple):
    """When which end of the log was known: both rise."""

    at: Integers
    end: Integers

    def when(self, at: int) -> int:
        """The end known at a time that is not before the first."""
        return int(self.end[np.searchsorted(self.at, at, side="right") - 1])

    def since(self, offset: int) -> int:
        """When the log was first known to end above the offset."""
        return int(self.at[min(int(np.searchsorted(self.end, offset, side="right")), len(self.at) - 1)])


class Commits(NamedTuple):
    """A group's commits in the order of the broker; done_ns: since when each counts."""

    done_ns: Integers
    offset: Integers


class Growth(NamedTuple):
    """How the lag grew: from when to when, from how much to how much, and how old the oldest waiting message is."""

    begin: int
    until: int
    first: int
    last: int
    age_s: float


class Pace(NamedTuple):
    """How fast commits of a group and the log's end move, in records a second; gap_ns: the usual one between commits,
    None with fewer than five. goes_on: they have not stopped."""

    commits: float
    log: float
    gap_ns: float | None
    goes_on: bool

    def least(self, gaps: float) -> tuple[float, float] | None:
        """By so many usual gaps: how much the log grows, and ns; None where commits have none, or stopped."""
        return (gaps * self.log * self.gap_ns / NS_PER_S, gaps * self.gap_ns) if self.gap_ns and self.goes_on else None


class Cause(NamedTuple):
    """What holds the group back: a word for programs, a sentence, what to do.

    longest_pause_s: without a request. writer: the producer because of whom lag grows, as in a finding's `clients`.
    """

    word: str
    text: str
    next_step: str
    longest_pause_s: float | None = None
    writer: dict[str, Any] | None = None


class _Seen(NamedTuple):
    """Answered fetches of the group: when they were asked and answered, how many bytes came and how many may come.

    Times as Python has numbers: what somebody made up may lie further apart than 64 bits hold.
    """

    ts: list[int]
    answered: list[int]
    records_bytes: Integers
    max_bytes: Integers
    watermark: Integers


def _seen(own: Frame, begin: int) -> _Seen:
    """From the last one that was answered before a time on, by time."""
    answered = own["ts_response"].numbers()
    rows = np.flatnonzero((answered != UNKNOWN) & (answered != 0))
    rows = rows[np.lexsort((answered[rows], own["ts"].numbers()[rows]))]
    rows = rows[max(int((answered[rows] < begin).sum()) - 1, 0) :]
    names = ("ts", "records_bytes", "partition_max_bytes", "high_watermark")
    ts, *sizes = (own[name].numbers()[rows] for name in names)
    return _Seen(ts.tolist(), answered[rows].tolist(), *sizes)


def ahead(own: Frame, ends: Ends, commits: Commits, growth: Growth, pace: Pace) -> Cause | None:
    """A replica that is behind the log, records that are fetched again, or fetches that run ahead of commits."""
    if not len(own):
        return None
    read = max(int(own[name].numbers().max(initial=UNKNOWN)) for name in ("fetch_offset", "next_offset"))
    watermark = int(own["high_watermark"].numbers().max(initial=UNKNOWN))
    committed = int(commits.offset[-1])
    # What the replica said is compared with the log as it was when it was asked: a response is made then, however long
    # it takes on its way.
    asked = own["ts"].numbers()[own["high_watermark"].numbers() == watermark]
    end = ends.when(max(int(asked.max(initial=0)), int(ends.at[0])))
    if 0 <= watermark <= read and 2 * (end - watermark) > growth.last:
        return Cause(
            "replica behind",
            f"It has read all that its replica has (to {watermark}), while the log ended at {end} then: that replica "
            "lags.",
            "Look at the broker that this consumer fetches from (client.rack, replica.selector.class): replication, "
            "disk and network.",
        )  # fmt: skip
    given, different = _given(own)
    if given >= _AGAIN * different:
        return Cause(
            "fetched again",
            f"It fetches the same records again: it was given {given:,}, of which {different:,} are different.",
            "Look for a seek after each record, or for pause and resume around it: each drops what was fetched ahead.",
        )  # fmt: skip
    if 2 * (read - committed) > growth.last and pace.goes_on and pace.commits < pace.log:
        return Cause(
            "slow handler",
            f"It is the handler: its fetches run ahead (to {read}), but its commits move by {pace.commits:,.1f} "
            f"records a second while the log grows by {pace.log:,.1f}.",
            "Make the handling of a record faster or parallel, or add partitions and consumers.",
        )  # fmt: skip
    return None


def _given(own: Frame) -> tuple[int, int]:
    """Records of all its responses by their offsets, and how many different ones these can be."""
    begins, ends = (own[name].numbers() for name in ("fetch_offset", "next_offset"))
    with_records = (begins != UNKNOWN) & (ends > begins)
    if not with_records.any():
        return 0, 1
    begins, ends = begins[with_records], ends[with_records]
    return int((ends - begins).sum()), int(ends.max() - begins.min())


def where_time_went(own: Frame, commits: Commits, growth: Growth) -> Cause:
    """Told from where the time between the first request and the end went."""
    seen = _seen(own, growth.begin)
    if not seen.ts:
        return Cause(
            "unknown", "Its fetches are not in the capture, so it is not known what holds it back.",
            "Capture where this consumer fetches, or look at how long it handles a batch of records.",
        )  # fmt: skip
    pauses = [after - before for after, before in zip((*seen.ts[1:], growth.until), seen.answered, strict=True)]
    idle, longest = sum(max(0, pause) for pause in pauses), max(0, *pauses) / NS_PER_S
    total = max(growth.until - min(seen.ts[0], growth.until), 1)
    again = commits.offset[commits.done_ns >= seen.answered[-1]]
    if idle * 2 > total and len(again) > 2 and len(np.unique(again)) == 1:
        return Cause(
            "not read",
            f"It sent no fetch of this partition for {longest:,.1f} s, and committed the same offset "
            f"{len(again)} times meanwhile: the partition is paused, or its handler hangs.",
            "Look for pause() of this partition without resume(), and at what handles its records.",
            longest,
        )  # fmt: skip
    if idle * 2 > total:
        return Cause(
            "slow handler",
            f"It is the handler: in {100 * min(idle, total) // total} % of the time, up to {longest:,.1f} s in a row, "
            f"no fetch was open while records waited ({count(len(seen.ts), 'fetch', 'fetches')}).",
            "Make the handling of a record faster or parallel, or add partitions and consumers; with a lower "
            "max.poll.records commits come oftener.",
            longest,
        )  # fmt: skip
    known = (seen.records_bytes != UNKNOWN) & (seen.max_bytes != UNKNOWN) & (seen.max_bytes != 0)
    full = np.flatnonzero(known & (seen.records_bytes * 10 >= seen.max_bytes * 9))
    if len(full) * 2 > len(seen.ts) and len(full) > 4:
        return Cause(
            "fetch sizes",
            f"{len(full)} of {len(seen.ts)} responses were as large as max.partition.fetch.bytes "
            f"({seen.max_bytes[full[-1]]:,}) allows.",
            "Raise max.partition.fetch.bytes and fetch.max.bytes of this consumer.",
            longest,
        )  # fmt: skip
    # A response that the end of the capture cut was on its way: nothing of it is known.
    is_cut = (seen.records_bytes == UNKNOWN) & (seen.watermark == UNKNOWN)
    with_records = np.flatnonzero(is_cut | ((seen.records_bytes != UNKNOWN) & (seen.records_bytes != 0))).tolist()
    waited = sum(seen.answered[row] - seen.ts[row] for row in with_records)
    if waited * 2 > total:
        return Cause(
            "broker or network",
            f"It waits for responses with records: {waited / len(seen.ts) / NS_PER_MS:,.0f} ms each.",
            "Look at the latency of Fetch at this broker (`wirewitness brokers --over-time`), and at TCP between both: "
            "retransmissions, full windows, round trip time.",
            longest,
        )  # fmt: skip
    return Cause(
        "too much for it", f"It fetches without long pauses ({longest:,.1f} s at most): more is written than it reads.",
        "Add consumers, and partitions where there are as many consumers already; look at how the partition's share of "
        "records compares with the others.", longest,
    )  # fmt: skip
