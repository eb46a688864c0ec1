"""Commits that come late and the runs of reading that began before them, for the rule that compares each with many.

In: a group's frames of `kafka_fetch_ranges` and `kafka_offset_commits`. Out: what is compared of each row, a fifth of
what the row takes, and the whole rows of those that a finding names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from wirewitness.analyser.engine.rules.columns import Integers
from wirewitness.analyser.engine.rules.frame import Frame, numbered, pairs, places_of, together
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.kafka.rules.fetch_range_columns import FetchRangeColumns
from wirewitness.analyser.kafka.rules.fetch_ranges import Client, FetchRange


class Read(NamedTuple):
    """What is compared of a run; row: its place among the runs of all partitions.

    Below 0 where its fetches are not there: of commit -1 - row, its client's last, it is made instead.
    """

    ts: int
    ts_last: int
    client: Client
    first_offset: int | None
    next_offset: int | None
    row: int


class LateCommit(NamedTuple):
    """What is compared of a commit; row: in the frame."""

    ts: int
    client: Client
    offset: int | None
    error_code: int | None
    row: int


class Overlap(NamedTuple):
    """own: the run of the one that came back; other: the run that took over; late: the commit."""

    own: Read
    other: Read
    late: LateCommit
    records: int


class ToldOverlap(NamedTuple):
    """An overlap with whole rows."""

    own: FetchRange
    other: FetchRange
    late: Row
    records: int


class ComparedPartition(NamedTuple):
    """A partition: what is compared of its runs, and of the commits of each client, by time."""

    reads: list[Read]
    commits: dict[Client, list[LateCommit]]


class Rows(NamedTuple):
    """The rows of the partitions that are looked at. of_runs, of_commits: a number for the partition of each."""

    runs: FetchRangeColumns
    of_runs: Integers
    commits: Frame
    of_commits: Integers

    def places(self) -> Iterator[ComparedPartition]:
        """One partition after the other, in the order of their first runs."""
        by_time = np.argsort(self.commits["ts"].numbers(), kind="stable")
        commits = by_time[np.argsort(self.of_commits[by_time], kind="stable")]
        codes = self.of_commits[commits]
        for rows in places_of(numbered(self.of_runs)):
            first, last = np.searchsorted(codes, self.of_runs[rows[0]] + np.arange(2)).tolist()
            yield ComparedPartition(self._reads(rows), self._commits(commits[first:last]))

    def _reads(self, rows: Integers) -> list[Read]:
        frame = self.runs.taken(rows)
        names = ("ts", "ts_last", "client_address", "client_id", "first_offset", "next_offset")
        columns = [frame[name].values() for name in names]
        return [
            Read(ts, ts_last, (address, client_id), first, following, row)
            for row, ts, ts_last, address, client_id, first, following in zip(rows.tolist(), *columns, strict=True)
        ]

    def _commits(self, rows: Integers) -> dict[Client, list[LateCommit]]:
        frame = self.commits.take(rows)
        names = ("ts", "client_address", "client_id", "committed_offset", "error_code")
        columns = [frame[name].values() for name in names]
        found: dict[Client, list[LateCommit]] = {}
        for row, ts, address, client_id, offset, error in zip(rows.tolist(), *columns, strict=True):
            client = address, client_id
            found.setdefault(client, []).append(LateCommit(ts, client, offset, error, row))
        return found

    def told(self, overlaps: Sequence[Overlap]) -> list[ToldOverlap]:
        """The same with whole rows, each made once."""
        numbers = sorted({read.row for one in overlaps for read in (one.own, one.other) if read.row >= 0})
        runs = dict(zip(numbers, self.runs.each(np.array(numbers, np.int64)), strict=True))
        unseen = {-1 - one.own.row for one in overlaps if one.own.row < 0}
        late = sorted(unseen | {one.late.row for one in overlaps})
        commits = dict(zip(late, rows_of(self.commits.take(np.array(late))), strict=True))
        return [
            ToldOverlap(
                runs[one.own.row] if one.own.row >= 0 else _unseen(runs[one.other.row], commits[-1 - one.own.row]),
                runs[one.other.row], commits[one.late.row], one.records,
            )
            for one in overlaps
        ]  # fmt: skip


def where_somebody_is_late(runs: Frame, commits: Frame, back_ns: int) -> Rows:
    """The rows of those partitions in which a client commits so long after its commit before, and after a begin."""
    topics = together(runs["topic"].texts(), commits["topic"].texts())
    partitions = np.concatenate([runs["partition"].numbers(), commits["partition"].numbers()])
    places = numbered(pairs(np.concatenate(topics), partitions))
    of_runs, of_commits = places[: len(runs)], places[len(runs) :]
    begun = np.full(len(places), np.iinfo(np.int64).max)
    np.minimum.at(begun, of_runs, runs["ts"].numbers())
    clients = pairs(commits["client_address"].texts().codes, commits["client_id"].texts().codes)
    at = commits["ts"].numbers()
    order = np.lexsort((at, clients, of_commits))
    goes_on = (np.diff(clients[order], prepend=-1) == 0) & (np.diff(of_commits[order], prepend=-1) == 0)
    since, before = at[order] - back_ns, np.roll(at[order], 1)
    late = order[(~goes_on | (since >= before)) & (since >= begun[of_commits[order]])]
    is_late = np.isin(np.arange(len(places)), of_commits[late])
    some, own = is_late[of_runs], is_late[of_commits]
    return Rows(FetchRangeColumns(runs.take(some)), of_runs[some], commits.take(own), of_commits[own])


def _unseen(other: FetchRange, last: Row) -> FetchRange:
    """The run of a client whose fetches of the partition are not in the capture, as far as its last commit tells."""
    return other._replace(
        client_address=last["client_address"], client_id=last["client_id"], member_id=last["member_id"],
        ts_last=other.ts, next_offset=last["committed_offset"], fetches=0,
    )  # fmt: skip
