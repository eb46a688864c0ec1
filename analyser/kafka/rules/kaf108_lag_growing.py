"""KAF108 lag-growing: a group reads a partition more slowly than it is written.

Finds
    Groups whose lag on a partition grows all the time, in messages and in seconds, although they go on committing.

Why it matters
    What is read gets older and older, and once retention reaches it, it is lost. Lag tools say how far behind a group
    is; the wire says why: whether the client asks for nothing, or waits for answers.

How it decides
    The log end is the greatest that was known so far (`kafka_log_ends`); the lag is from the last accepted commit to
    it, looked at at `samples` times, over the whole time in which both are known and over
    its second half. It grows when it never falls by more than a fifth of what it was, ends within a fifth of its most,
    gains half of what it began with and what the log grew by in `gaps` usual gaps between two commits of this
    partition, and when the oldest message
    that was not committed is as many of these gaps old. It must grow from the highest commit so far, too: a stale
    commit over that of a group that keeps pace (KAF103) is no slow reader. With fewer than five commits there is no
    usual gap, and where commits stopped it says nothing: then it must gain `least_lag` messages and be `least_s`
    seconds old. One that kept pace up to its last commit was stopped, or has left (KAF134). A group that
    has read all decided transactions waits for an open one (KAF203), and one that fetches to near the log's end while
    its commits stop commits late, or not at all (KAF107, KAF109): these are none. Where its commits go on, but more
    slowly than the log, its fetches only run ahead of its handler.
    What holds it back is told first from who writes: from one time on, three times as much was stored as before (parts
    of the time lie apart on both sides), a producer wrote half of that or more, and the group's commits moved on as
    fast as before: then it is the load, and that producer is named. Else from its Fetch requests of this partition in
    that time. It has read all that the replica
    has which it reads from, and the log was longer when it asked (a response may take long to come): that one is
    behind. It was given many times as many records as there are different ones: it fetches them again. Its position is
    ahead of its commits by
    half the lag: the handler. Most of the time nothing is asked for (the application handles what it has: slow handler;
    or the same offset is committed again and again: not read, paused or stuck), most of the time an answer is awaited
    that brings records (broker or network), or answers are as large as max.partition.fetch.bytes allows (fetch sizes);
    else it reads without pause, and is too slow for what comes. Without Fetch requests in the capture it is not known.

False alarms
    A group that is stopped on purpose while producers go on falls behind too, and so does one that waits for a dead
    member: then other findings, or the rebalances, say it. Not found: a group of whose topic the capture shows the
    id and no name, since what producers say of its log's end goes by name. Of the lab's incidents (docs/lab.md) it
    names 5 of 6.

What it cannot tell
    Of one direction alone nothing is said: commits count when they are accepted, and the log's end stands in answers.
    In a capture that begins late there is no lag before the first commit or OffsetFetch answer: the lag is then not
    known, and never taken for 0.

References
    Burrow's rules (WARN); Kafka's max.poll.records, max.poll.interval.ms, max.partition.fetch.bytes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from wirewitness.analyser.base.times import NS_PER_S
from wirewitness.analyser.base.words import count, sentence_start
from wirewitness.analyser.engine.rules.columns import UNKNOWN
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame import Frame, numbered, places_of
from wirewitness.analyser.engine.rules.frame_rows import first_value
from wirewitness.analyser.engine.rules.limits import compared
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.commits import committer_text, group_text, partition_key, partition_text
from wirewitness.analyser.kafka.rules.lag_causes import Cause, Commits, Ends, Growth, Pace, ahead, where_time_went
from wirewitness.analyser.kafka.rules.lag_writers import more_written
from wirewitness.analyser.kafka.rules.names import title_text
from wirewitness.analyser.kafka.rules.stored import (
    STORED,
    STORED_COLUMNS,
    Stored,
    by_committer,
    committers_numbers,
    proof_of_stored,
    stored_by_group,
)

FETCHES, ENDS, BATCHES = "kafka_fetch_partitions", "kafka_log_ends", "kafka_produce_batches"
KEYS = ("cluster_id", "topic", "partition")


# Behind the log's end with its last commit.
_BEHIND_LEAST = 20
# Fewer commits have no usual gap between them.
_COMMITS_LEAST = 5
# Without one for so many of their usual gaps, commits have stopped.
_STOPPED_GAPS = 3


def detect(
    frames: Frames, *, samples: int = 10, gaps: float = 3.0, least_lag: int = 100, least_s: float = 10.0
) -> Iterator[Finding]:
    """At most one finding per group of a partition."""
    ends = _ends(frames[ENDS])
    if not len(ends.at):
        return
    stored = frames[STORED]
    for rows in places_of(numbered(stored["group_id"].texts().codes)):
        group = Commits(stored["ts"].numbers()[rows], stored["committed_offset"].numbers()[rows])
        if (group.offset == UNKNOWN).any() or not _was_behind(stored.take(rows)):
            continue
        pace = _pace(ends, group)
        growth = _growth(ends, group, samples, *(pace.least(gaps) or (least_lag, least_s * NS_PER_S)))
        if growth is None:
            continue
        compared(len(frames[FETCHES]))
        own = _fetches_of(stored["group_id"].texts().at(int(rows[0])), frames[FETCHES])
        is_late = _reads_to_the_end(own, ends, growth) and not pace.goes_on
        if not (is_late or _waits_for_a_transaction(own)):
            cause = (
                more_written(frames[BATCHES], group, growth)
                or ahead(own, ends, group, growth, pace)
                or where_time_went(own, group, growth)
            )
            for every in stored_by_group(stored.take(rows)):
                yield _finding(first_value(stored, "cluster_id"), every, growth, cause)


def _was_behind(own: Frame) -> bool:
    """With its last commit already: a group that kept pace until then has been stopped, or left."""
    known = np.flatnonzero(own["log_end_offset"].numbers() != UNKNOWN)
    if not len(known):
        return False
    last = known[own["ts"].numbers()[known].argmax()]
    return int(own["log_end_offset"].numbers()[last]) - int(own["committed_offset"].numbers()[last]) >= _BEHIND_LEAST


def _fetches_of(group: str | None, fetches: Frame) -> Frame:
    """Those of the group's readers."""
    groups, replicas = fetches["group_id"].texts(), fetches["replica_id"].numbers()
    own = groups.codes < 0 if group is None else groups.among((group,))
    return fetches.take(own & (replicas < 0))


def _ends(steps: Frame) -> Ends:
    """The highest so far: a log that is cut has no growing lag."""
    at, last, end = (steps[name].numbers() for name in ("ts", "ts_last", "log_end_offset"))
    at, end = np.concatenate([at, last]), np.concatenate([end, end])
    order = np.lexsort((end, at))
    order = order[(end[order] >= 0) & (at[order] != UNKNOWN)]
    return Ends(at[order], np.maximum.accumulate(end[order]))


def _pace(ends: Ends, commits: Commits) -> Pace:
    """Over the time in which both are known. Commits of one moment are one."""
    done, first = np.unique(commits.done_ns, return_index=True)
    begin, until = max(int(done[0]), int(ends.at[0])), int(ends.at[-1])
    span_s = max((until - begin) / NS_PER_S, 1e-9)
    moved = np.flatnonzero(np.diff(commits.offset[first]) > 0) + 1
    gap = float(np.median(np.diff(done[moved]))) if len(moved) >= _COMMITS_LEAST else None
    goes_on = gap is not None and until - int(done[moved[-1]]) <= _STOPPED_GAPS * gap
    log = max(ends.when(until) - ends.when(begin), 0) if until > begin else 0
    return Pace(int(commits.offset[-1] - commits.offset[0]) / span_s, log / span_s, gap, goes_on)


def _growth(ends: Ends, commits: Commits, samples: int, least_lag: float, least_ns: float) -> Growth | None:
    done, offsets = commits.done_ns.tolist(), commits.offset.tolist()
    highest = np.maximum.accumulate(commits.offset).tolist()
    begin, until = max(done[0], int(ends.at[0])), int(ends.at[-1])
    age_ns = until - max(ends.since(offsets[-1]), begin)
    if until - begin < least_ns or age_ns < least_ns:
        return None
    for since in (begin, begin + (until - begin) // 2):
        times = [since + (until - since) * step // (samples - 1) for step in range(samples)]
        known = [(ends.when(at), max(bisect_right(done, at) - 1, 0)) for at in times]
        lags = [max(0, end - offsets[row]) for end, row in known]
        reached = [max(0, end - highest[row]) for end, row in known]
        if _grows(lags, least_lag) and _grows(reached, least_lag):
            return Growth(since, until, lags[0], lags[-1], age_ns / NS_PER_S)
    return None


def _grows(lags: list[int], least_lag: float) -> bool:
    steady = all(after >= before - before // 5 for before, after in pairwise(lags))
    # A group that was set back, and catches up in small steps, is none.
    stands = lags[-1] >= max(lags) - max(lags) // 5
    return steady and stands and lags[-1] >= lags[0] + max(least_lag, lags[0] // 2)


def _reads_to_the_end(own: Frame, ends: Ends, growth: Growth) -> bool:
    """The group has fetched nearly all: it commits late, or not."""
    read = max(int(own[name].numbers().max(initial=UNKNOWN)) for name in ("fetch_offset", "next_offset"))
    return read != UNKNOWN and int(ends.end[-1]) - read < growth.last / 5


def _waits_for_a_transaction(own: Frame) -> bool:
    """It reads decided transactions only, and has read all of them."""
    position, stable = own["fetch_offset"].numbers(), own["last_stable_offset"].numbers()
    told = np.flatnonzero((own["isolation_level"].numbers() == 1) & (position != UNKNOWN) & (stable > 0))
    if not len(told):
        return False
    last = told[own["ts"].numbers()[told].argmax()]
    return bool(position[last] >= stable[last] < own["high_watermark"].numbers()[last])


def _finding(cluster: str | None, commits: list[Stored], growth: Growth, cause: Cause) -> Finding:
    last = commits[-1]
    key = partition_key(cluster, last)
    seconds = (growth.until - growth.begin) / NS_PER_S
    return RULE.finding(
        subject=key,
        title=title_text(
            f"Lag grows: {{}} of group {{}}, {growth.first:,} to {count(growth.last, 'message')}",
            partition_text(last), last.group_id or "?",
        ),
        confidence="medium" if cause.word == "unknown" else "high",
        provisional=True,
        sentence=(
            f"{group_text(last)}: the lag of {partition_text(last)} grew from {growth.first:,} to "
            f"{count(growth.last, 'message')} in {seconds:,.0f} s; its time lag is {growth.age_s:,.0f} s. "
            f"{sentence_start(committer_text(last))} committed {last.committed_offset} last. {cause.text}"
        ),
        next_step=cause.next_step,
        proof=proof_of_stored(commits),
        numbers={
            **key,
            "client_id": last.client_id,
            "address": last.client_address,
            "member": last.member_id,
            "cause": cause.word,
            "lag_before": growth.first,
            "lag": growth.last,
            "lag_s": round(growth.age_s, 1),
            "seconds": round(seconds, 1),
            "longest_pause_s": cause.longest_pause_s,
            "writer": cause.writer,
            "committers": committers_numbers(by_committer(commits)),
        },
    )  # fmt: skip


RULE = Rule(
    code="KAF108",
    question="stalled",
    name="lag-growing",
    severity="warning",
    confidence="high",
    reads={
        STORED: STORED_COLUMNS,
        FETCHES: (
            "ts", "ts_response", "group_id", "replica_id", "fetch_offset", "next_offset", "high_watermark",
            "records_bytes", "partition_max_bytes", "last_stable_offset", "isolation_level",
        ),
        ENDS: ("ts", "ts_last", "log_end_offset"),
        BATCHES: ("ts", "client_id", "client_address", "records_count"),
    },
    partition_by=KEYS,
    detect=detect,
    rows={STORED: "own_number IS NOT NULL", BATCHES: "error_code = 0"},
    suspects=f"""
        SELECT cluster_id, topic, partition FROM r_{STORED} GROUP BY cluster_id, topic, partition, group_id
        HAVING arg_max(log_end_offset::HUGEINT - committed_offset, ts) >= {_BEHIND_LEAST}""",
)  # fmt: skip
