"""KAF102 stuck-committer: a client commits the same offset again and again although reading goes on.

Finds
    A client that commits one offset repeatedly for a partition while another client's commits, its own later commits,
    or its own fetch position are ahead of that offset.

Why it matters
    The stored offset stays behind, or falls back to the same place again and again, although the messages are
    consumed. Lag tools see an offset that moves now and then and stay quiet. At the next rebalance or restart all
    messages since the stuck offset are delivered again.

How it decides
    Accepted commits of one committer (member id, else address and client id) to one partition, in broker order. A
    commit of a value that this committer wrote before is a return when, since it wrote that value first,
    - another committer's accepted commit was ahead of it, or
    - its own commit since the last time was ahead of it (1000, 500, 1010, 500) and no Fetch, ListOffsets or OffsetFetch
      of this client at or below the value lies between, or
    - its fetch position is ahead of it and moved on since.
    `returns` returns to one value are a finding: critical when commits were ahead, warning when only the fetch position
    was (the application may be slow, or it forgot to commit); info where only its own commits were ahead and none of
    its fetches is in the capture, since it may have turned back by itself. Where only the fetch position was ahead the
    returns last 5 s or more (`behind_s`), or the value is the last that it committed: one that commits on and on while
    it works through what it fetched, after a broker that stood still say, repeats a value for a moment.
    Ahead means more than one offset, or one while the log end is further: the last offset of a log can be a control
    record, which no application sees.

False alarms
    An automatic committer that repeats an unchanged position while nothing is fetched is not a finding. Neither is a
    consumer that waits with its prefetched messages: its fetch position does not move. One that skips messages without
    committing (a filter with manual commits) looks stuck until it commits: that is the warning.

What it cannot tell
    Requests alone say nothing, since only an accepted commit counts. A capture at the coordinator alone lacks the
    fetches that other brokers get: KAF103 then counts what went back, and this rule says as info who repeats what.

References
    Burrow's STALL rule, but per committer: over all commits of a partition two committers never stall.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from wirewitness.analyser.base.times import NS_PER_S, period_text
from wirewitness.analyser.base.words import count
from wirewitness.analyser.engine.rules.columns import UNKNOWN, Booleans, Integers
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame import numbered, pairs, places_of
from wirewitness.analyser.engine.rules.frame_rows import first_value
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.commit_columns import CommitColumns, Highest, commit_columns
from wirewitness.analyser.kafka.rules.commits import (
    COMMIT_COLUMNS,
    COMMITS,
    IDENTITY_SQL,
    Commit,
    committer_text,
    group_text,
    may_be_one,
    partition_key,
    partition_text,
    short_committer,
)
from wirewitness.analyser.kafka.rules.names import title_text
from wirewitness.analyser.kafka.rules.positions import READ_TABLES, Reads, reads_of

KEYS = ("cluster_id", "topic", "partition")
_UNSEEN = " It may have turned back by itself each time: its fetches of this partition are not in the capture."


class _Group(NamedTuple):
    """A group's commits, who committed each, and what was told of committers: findings share them."""

    commits: CommitColumns
    committers: Integers
    told: dict[int, dict[str, Any]]

    def numbers_of(self, committer: int) -> dict[str, Any]:
        if committer not in self.told:
            self.told[committer] = self.commits.numbers_of(np.flatnonzero(self.committers == committer))
        return self.told[committer]


class _Returns(NamedTuple):
    """Returns to values, in broker order: rows, where the value was written last, rows of commits ahead, how far.

    ahead: -1 where only the fetch position was.
    """

    rows: Integers
    before: Integers
    ahead: Integers
    positions: Integers

    def turned_back(self, group: _Group, reads: Reads) -> Booleans:
        """Whose client read there again in between, where it was ahead itself, as whatever committer."""
        commits, found = group.commits, np.zeros(len(self.rows), dtype=bool)
        clients = commits.clients()
        # One client under two identities, with a member id and without: it may have turned back as well.
        is_own = (self.ahead >= 0) & (clients[self.ahead] == clients[self.rows])
        is_own |= (self.ahead >= 0) & (group.committers[self.ahead] == group.committers[self.rows])
        for client, places in commits.by_client(self.rows[is_own]):
            some = np.flatnonzero(is_own)[places]
            rows, before = self.rows[some], self.before[some]
            found[some] = reads.turned_back(client, commits.ts[before], commits.ts[rows], commits.offset[rows])
        return found


class _Worst(NamedTuple):
    """The return with the furthest position, and the commit that was there (None: it was fetched)."""

    ahead: Commit | None
    position: int


def detect(frames: Frames, *, returns: int = 5, behind_s: float = 5.0) -> Iterator[Finding]:
    """One finding per group, committer and value."""
    accepted = commit_columns(frames[COMMITS]).accepted()
    if len(accepted) <= returns:
        return
    cluster = first_value(frames[COMMITS], "cluster_id")
    reads = reads_of(frames)
    for commits in accepted.groups():
        group = _Group(commits, commits.committers(), {})
        for value, found in _returns(group, reads, returns):
            if len(found.rows) >= returns and not _came_on(group, found, behind_s * NS_PER_S):
                yield _finding(cluster, group, value, found, reads)


def _came_on(group: _Group, found: _Returns, behind_ns: float) -> bool:
    """Did nobody but the fetch position get ahead, for a moment, and the committer commit more after it?"""
    first, last = found.rows[0], found.rows[-1]
    if found.ahead.max() >= 0 or group.commits.ts[last] - group.commits.ts[first] >= behind_ns:
        return False
    later = group.commits.offset[last:][group.committers[last:] == group.committers[last]]
    return bool(later.max() > later[0])


def _returns(group: _Group, reads: Reads, least: int) -> Iterator[tuple[int, _Returns]]:
    """Returns to every value that a committer wrote more than `least` times, in the order of the first of each."""
    found = _overtaken(group, reads, least)
    if not len(found.rows):
        return
    may_turn_back = found.turned_back(group, reads)
    found = _Returns(*(column[~may_turn_back] for column in found))
    committers, offset = group.committers[found.rows], group.commits.offset[found.rows]
    for places in places_of(numbered(pairs(committers, offset))):
        yield int(offset[places[0]]), _Returns(*(column[places] for column in found))


def _overtaken(group: _Group, reads: Reads, least: int) -> _Returns:
    """Commits of a value that their committer wrote before, with something ahead of it in between."""
    commits, committers = group.commits, group.committers
    keys = numbered(pairs(committers, commits.offset))
    frequent = np.flatnonzero((np.bincount(keys) > least)[keys])
    by_key = frequent[np.argsort(keys[frequent], kind="stable")]
    begins = np.flatnonzero(np.diff(keys[by_key], prepend=-1))
    firsts = np.repeat(by_key[begins], np.diff(begins, append=len(by_key)))
    again = by_key != firsts
    rows, before, first = by_key[again], np.roll(by_key, 1)[again], firsts[again]
    order = np.argsort(rows)
    rows, before, first = rows[order], before[order], first[order]
    if not len(rows):
        return _Returns(rows, rows, rows, rows)
    ahead, positions = _ahead(group, reads, rows, before, first)
    found = positions != UNKNOWN
    return _Returns(rows[found], before[found], ahead[found], positions[found])


def _ahead(group: _Group, reads: Reads, rows: Integers, before: Integers, first: Integers) -> tuple[Integers, Integers]:
    """Of each repeated value the row that was ahead of it (-1: only the fetch position was), and how far.

    How far is UNKNOWN where nothing was. before, first: where the committer wrote the value last before, and first.
    """
    commits, who = group.commits, group.committers[rows]
    highest = Highest(group.committers, commits.offset)
    position = _positions(commits, reads)
    moved = (position[before] > UNKNOWN) & (position[rows] > position[before])
    ahead = np.full(len(rows), -1)
    reached = np.where(moved & _is_ahead(commits, rows, position[rows], moved), position[rows], UNKNOWN)
    for found in (highest.by_themselves(who, before, rows), highest.by_others(who, first, rows)):
        offsets = commits.offset[found]
        is_ahead = _is_ahead(commits, rows, offsets, found >= 0)
        ahead[is_ahead], reached[is_ahead] = found[is_ahead], offsets[is_ahead]
    return ahead, reached


def _positions(commits: CommitColumns, reads: Reads) -> Integers:
    """Where the client of each commit had fetched last."""
    found = np.empty(len(commits), np.int64)
    for client, rows in commits.by_client(np.arange(len(commits))):
        found[rows] = reads.positions_at(client, commits.ts[rows])
    return found


def _is_ahead(commits: CommitColumns, rows: Integers, offsets: Integers, known: Booleans) -> Booleans:
    """Which offsets are more than one ahead of a row's, or exactly one while the log is known to go on behind them."""
    lead = np.where(known, offsets, 0) - commits.offset[rows]
    goes_on = commits.numbers["log_end_offset"][rows] > offsets
    found: Booleans = known & ((lead > 1) | ((lead == 1) & goes_on))
    return found


def _finding(cluster: str | None, group: _Group, value: int, found: _Returns, reads: Reads) -> Finding:
    commits, committers = group.commits, group.committers
    rows, ahead, positions = found.rows, found.ahead, found.positions
    last, who = commits[int(rows[-1])], int(committers[rows[-1]])
    same_value = np.flatnonzero((committers == who) & (commits.offset == value))
    period = (int(commits.ts[same_value].min()), int(commits.ts[same_value].max()))
    furthest = int(positions.argmax())
    worst = _Worst(commits[int(ahead[furthest])] if ahead[furthest] >= 0 else None, int(positions[furthest]))
    overtaken = ahead[ahead >= 0]
    ahead_of = dict(zip(committers[overtaken].tolist(), overtaken.tolist(), strict=True))
    by_others = any(_is_other(commits[row], last) for one, row in ahead_of.items() if one != who)
    # Where it reads is not known: it may have turned back by itself each time.
    clients = {commits.client(int(row)) for row in (*overtaken[-1:], *rows[-2:])}
    unseen = len(overtaken) > 0 and not by_others and not all(map(reads.sees_fetches, clients))
    others = dict.fromkeys([who, *committers[overtaken].tolist()])
    proof = np.stack([ahead, rows], axis=1).reshape(-1)
    key = partition_key(cluster, last)
    return RULE.finding(
        severity="info" if unseen else "critical" if len(overtaken) else "warning",
        confidence="low" if unseen else "high" if len(overtaken) else "medium",
        provisional=not len(overtaken),
        subject=key,
        title=title_text(
            f"Same offset committed {len(same_value):,} times: {{}}, offset {value}, by {{}}",
            partition_text(last), short_committer(last),
        ),
        sentence=_sentence(last, value, len(same_value), worst, period) + (_UNSEEN if unseen else ""),
        next_step=_next_step(last, len(overtaken) > 0),
        proof=Proof(
            *period,
            commits.evidence(np.concatenate([same_value[:1], proof[proof >= 0]])),
        ),
        numbers={
            **key,
            "stuck_offset": value,
            "commits_of_it": len(same_value),
            "returns": len(rows),
            "ahead_offset": worst.position,
            "ahead_by_commits": len(overtaken),
            "last_offset": int(commits.offset[-1]),
            "replay": worst.position - value,
            "committers": [group.numbers_of(one) for one in others],
        },
    )  # fmt: skip


def _is_other(one: Commit, last: Commit) -> bool:
    """Not the same client, as far as is known, with a member id and without."""
    return bool(one.member_id and last.member_id) or not may_be_one(one.client, last.client)


def _sentence(last: Commit, value: int, times: int, worst: _Worst, period: tuple[int, int]) -> str:
    if worst.ahead is None:
        ahead = f"although it had fetched up to {worst.position}"
    elif worst.ahead.identity == last.identity:
        ahead = f"although it had committed {worst.position} itself"
    else:
        ahead = f"although {committer_text(worst.ahead)} had committed {worst.position}"
    return (
        f"{group_text(last)}: {committer_text(last)} committed offset {value} of {partition_text(last)} "
        f"{times} times, {ahead}. This was {period_text(*period)}. A restart at {value} "
        f"would reprocess {count(worst.position - value, 'message')}."
    )


def _next_step(last: Commit, overtaken: bool) -> str:
    if not overtaken:
        return (
            f"Ask why {committer_text(last)} does not commit what it fetches: a record that fails again and again, a "
            "worker that hangs, or a code path that never marks its messages."
        )
    return (
        f"Look at the process behind {committer_text(last)}: it holds an old offset of this partition and commits it "
        "on a timer. Restart it to stop the damage; then search for its own offset store or for commits out of order."
    )


RULE = Rule(
    code="KAF102",
    question="went back",
    name="stuck-committer",
    severity="critical",
    confidence="high",
    reads={COMMITS: COMMIT_COLUMNS, **READ_TABLES},
    partition_by=KEYS,
    detect=detect,
    rows={COMMITS: "error_code = 0"},
    # Six commits of one value by one committer, and something further in that partition.
    suspects=f"""
        SELECT repeated.cluster_id, repeated.topic, repeated.partition FROM (
            SELECT cluster_id, topic, partition, min(committed_offset) AS lowest FROM (
                SELECT cluster_id, topic, partition, committed_offset FROM r_{COMMITS}
                GROUP BY cluster_id, topic, partition, group_id, {IDENTITY_SQL}, committed_offset HAVING count(*) > 5)
            GROUP BY ALL) AS repeated
        JOIN (
            SELECT cluster_id, topic, partition, max(furthest) AS furthest FROM (
                SELECT cluster_id, topic, partition, committed_offset AS furthest FROM r_{COMMITS}
                UNION ALL
                SELECT cluster_id, topic, partition, fetch_offset FROM r_kafka_fetch_partitions)
            GROUP BY ALL) AS ahead
        ON repeated.cluster_id IS NOT DISTINCT FROM ahead.cluster_id
            AND repeated.topic IS NOT DISTINCT FROM ahead.topic AND repeated.partition = ahead.partition
        WHERE furthest > lowest""",
)
