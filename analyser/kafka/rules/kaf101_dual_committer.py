"""KAF101 dual-committer: two clients overwrite each other's commits on one partition.

Finds
    Two committing clients whose commits for the same cluster, group, topic and partition are both accepted: the older
    one commits again after the newer one began.

Why it matters
    A group stores one offset per partition, and the last commit wins. With two committing clients it jumps between two
    places: after the next rebalance or restart messages are delivered again, or skipped. The stored offset carries no
    client, member or host, so broker tools cannot name the clients. The broker checks the client's member id and
    generation, not that the member owns the partition.

How it decides
    Accepted commits (error 0) of one partition are put into broker order: on one connection the order of the stream,
    between connections the time of the response. An identity is the member id, else address and client id. A commit is
    a return when another identity committed just before it and its own identity had committed earlier, and when the
    two commits lie within a window of `window_gaps` x the median time between commits of one identity, at least
    `window_s` seconds.
    critical: a return whose generation (or member epoch) is not above that of the other's commit. An accepted commit
        proves membership, so both were members at once; unless each had the partition assigned when it committed, or
        it is the committer's first one in the lower generation: a group that is deleted begins again at generation 1.
    warning: `without_members` returns where the membership is not on the wire (generation -1, no member id).
    info: the committer changed and nobody came back within the window, or came back in a newer generation: a hand-over.
        Silent where the assignments in the capture show that the new committer owns the partition.
    Gaps in the capture only hide commits: what was seen stands.

False alarms
    An offset reset by an admin tool is one commit without member id; it is left to KAF106 and KAF103. A static member
    that restarts gets a new member id in the same generation; that is a single hand-over. A partition that moves away
    and comes back does so in newer generations. Two connections that commit at the same moment are not ordered by this
    rule: it only asks who committed, not in which order two racing commits were stored.

What it cannot tell
    Requests alone say nothing, since only an accepted commit counts. What was written before the capture began is not
    seen: a first return may be a second one.

References
    segmentio/kafka-go#1308. Kafka ClassicGroup and ConsumerGroup validateOffsetCommit. KIP-848, KIP-1251.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from wirewitness.analyser.base.severity import Confidence, Severity
from wirewitness.analyser.base.times import NS_PER_S, period_text
from wirewitness.analyser.base.words import count, number_word, sentence_start
from wirewitness.analyser.engine.rules.columns import UNKNOWN, Booleans, Integers
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame import numbered, pairs, places_of, together
from wirewitness.analyser.engine.rules.frame_rows import first_value
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.commit_columns import CommitColumns, commit_columns
from wirewitness.analyser.kafka.rules.commits import (
    COMMIT_COLUMNS,
    COMMITS,
    IDENTITY_SQL,
    Commit,
    committer_text,
    group_text,
    partition_key,
    partition_text,
)
from wirewitness.analyser.kafka.rules.names import short_clients, short_who, title_text

KEYS = ("cluster_id", "group_id", "topic", "partition")
# A member gets a new id with every restart: a sentence that names hundreds tells nothing.
_MOST_NAMED = 5


class _Turns(NamedTuple):
    """Rows of commits right behind one of another identity, in broker order.

    returned: it had committed before, and the other one lately. known: in that generation.
    """

    rows: Integers
    returned: Booleans
    known: Booleans


class _Committed(NamedTuple):
    """The accepted commits of a partition in broker order, and the rows of each identity, by its number."""

    commits: CommitColumns
    identities: Integers
    rows: list[Integers]

    def last(self, identity: int) -> Commit:
        return self.commits[int(self.rows[identity][-1])]

    def of(self, turns: Integers) -> list[int]:
        """The identities that write in these turns, in their order."""
        return list(dict.fromkeys(self.identities[_both(turns)].tolist()))


def detect(
    frames: Frames, *, window_gaps: float = 3.0, window_s: float = 60.0, without_members: int = 2
) -> Iterator[Finding]:
    """At most one finding for the partition: the worst that is true."""
    commits = _without_single_resets(commit_columns(frames[COMMITS]).accepted())
    identities = commits.committers()
    if identities.max(initial=0) < 1:
        return
    committed = _Committed(commits, identities, places_of(identities))
    turns = _turns(committed, _window_ns(committed, window_gaps, window_s))
    returns = turns.rows[turns.returned]
    at_once = returns[_members_at_once(commits, returns, turns.known[turns.returned])]
    unknown = returns[_no_membership(commits, returns)]
    cluster = first_value(frames[COMMITS], "cluster_id")
    if len(at_once) or len(unknown) >= without_members:
        yield _dual(cluster, committed, at_once if len(at_once) else unknown, len(at_once) > 0)
        return
    by_time = np.lexsort((turns.returned, commits.done_ns[turns.rows]))
    unexplained = turns.rows[by_time][~_owns(commits, turns.rows[by_time])]
    if len(unexplained):
        yield _hand_over(cluster, committed, unexplained)


def _both(turns: Integers) -> Integers:
    """The rows of the commits before, each with the one of the turn behind it."""
    found: Integers = np.stack([turns - 1, turns], axis=1).reshape(-1)
    return found


def _without_single_resets(commits: CommitColumns) -> CommitColumns:
    """An identity without member id that commits once is a reset by hand, not a second consumer."""
    identities = commits.committers()
    is_reset = (np.bincount(identities) == 1)[identities] & ~commits.texts["member_id"].is_told()
    return commits.take(~is_reset) if is_reset.any() else commits


def _window_ns(committed: _Committed, gaps: float, least_s: float) -> float:
    between = np.concatenate([np.diff(committed.commits.ts[rows]) for rows in committed.rows]).tolist()
    return max(gaps * median(between) if between else 0.0, least_s * NS_PER_S)


def _turns(committed: _Committed, window_ns: float) -> _Turns:
    commits, identities = committed.commits, committed.identities
    rows = np.flatnonzero(np.diff(identities)) + 1
    generations = numbered(pairs(identities, commits.numbers["generation"]))
    was_seen, is_known = (np.unique(of, return_index=True)[1][of[rows]] < rows for of in (identities, generations))
    lately = commits.done_ns[rows] - commits.done_ns[rows - 1] <= window_ns
    return _Turns(rows, was_seen & lately, is_known)


def _in_generation(commits: CommitColumns, rows: Integers) -> Booleans:
    """`Commit.in_generation` of these rows."""
    found: Booleans = (commits.numbers["generation"][rows] >= 0) & commits.texts["member_id"].is_told()[rows]
    return found


def _no_membership(commits: CommitColumns, turns: Integers) -> Booleans:
    """Of one of them at least no membership is on the wire; one client with and without a member id may be one."""
    may_be_one = np.ones(len(turns), dtype=bool)
    for name in ("client_address", "client_id"):
        other, again = (commits.texts[name].codes[rows] for rows in (turns - 1, turns))
        may_be_one &= (other < 0) | (again < 0) | (other == again)
    has_member = commits.texts["member_id"].is_told()
    one_client = may_be_one & ~(has_member[turns - 1] & has_member[turns])
    found: Booleans = ~one_client & ~(_in_generation(commits, turns - 1) & _in_generation(commits, turns))
    return found


def _members_at_once(commits: CommitColumns, turns: Integers, known: Booleans) -> Booleans:
    """Both were members of one generation, and not each of them the owner at its time.

    A lower one that it has only just got is that of a group that begins anew. That each had the partition then is so
    where generations begin again at 1, in a group that was deleted.
    """
    other, again = (commits.numbers["generation"][rows] for rows in (turns - 1, turns))
    told = (other != UNKNOWN) & (again != UNKNOWN)
    members = _in_generation(commits, turns - 1) & _in_generation(commits, turns)
    owners = _owns(commits, turns - 1) & _owns(commits, turns)
    found: Booleans = told & ~owners & members & ((again == other) | ((again < other) & known))
    return found


def _owns(commits: CommitColumns, rows: Integers) -> Booleans:
    owners, members = together(commits.texts["owner_member_id"], commits.texts["member_id"])
    found: Booleans = (commits.texts["ownership_confidence"].among(("high",)) & (owners == members))[rows]
    return found


def _dual(cluster: str | None, committed: _Committed, turns: Integers, at_once: bool) -> Finding:
    commits, offsets = committed.commits, committed.commits.offset
    own = {identity: offsets[committed.rows[identity]] for identity in committed.of(turns)}
    lowest = min(own, key=lambda identity: (int(own[identity][-1]), int(own[identity].max())))
    # Who owns the partition may be behind: then the other one stored what was not read.
    foreign = [identity for identity in own if _is_foreign(committed.last(identity))]
    suspect = foreign[0] if lowest not in foreign and len(foreign) == 1 else lowest
    last, highest = commits[-1], int(offsets.max())
    worst = int((np.maximum.accumulate(offsets) - offsets).max())
    named = [committed.last(identity) for identity in islice(own, _MOST_NAMED)]
    more = f" and {len(own) - len(named)} more" if len(own) > len(named) else ""
    wrote = ", ".join(f"{_offsets_text(some)} ({count(len(some), 'commit')})" for some in [*own.values()][:_MOST_NAMED])
    who_writes = f"{number_word(len(own))} {'active members' if at_once else 'clients'}"
    replay = highest - last.committed_offset
    sentence = (
        f"{group_text(last)}: {who_writes} overwrite each other's commits on {partition_text(last)}: "
        f"{', '.join(map(committer_text, named))}{more}. "
        f"They wrote {wrote}, {period_text(int(commits.ts[turns - 1].min()), int(commits.ts[turns].max()))}. "
        f"The committed offset is {last.committed_offset}, the highest was {highest}. {_replay_text(replay, worst)}"
        f"{'' if at_once else ' Their memberships are not in the capture.'}"
    )
    short = short_clients((one.client_address, one.client_id) for one in named[:2])
    title = title_text(
        f"{sentence_start(who_writes)} overwrite each other's commits: {{}}, by {' and '.join('{}' for _ in short)}"
        f"{f' and {len(own) - 2:,} more' if len(own) > 2 else ''}",
        partition_text(last), *short,
    )  # fmt: skip
    return _finding(
        cluster,
        committed,
        turns,
        severity="critical" if at_once else "warning",
        confidence="high" if at_once else "medium",
        title=title,
        sentence=sentence,
        next_step=_next_step(committed.last(suspect), is_lowest=suspect == lowest),
        measured={
            "returns": len(turns),
            "members_at_once": at_once,
            "highest_offset": highest,
            "last_offset": last.committed_offset,
            "replay_now": replay,
            "replay_worst": worst,
        },
    )


def _offsets_text(offsets: Integers) -> str:
    low, high = int(offsets.min()), int(offsets.max())
    return str(low) if low == high else f"{low} to {high}"


def _replay_text(now: int, worst: int) -> str:
    if worst == 0:
        return "So far no offset moved back."
    again = f"at the worst moment {count(worst, 'message')}"
    if now == 0:
        return f"A restart would reprocess nothing now; {again}."
    return f"A restart would reprocess {count(now, 'message')}; {again}."


def _is_foreign(commit: Commit) -> bool:
    return bool(commit.owner_member_id) and commit.owner_member_id != commit.member_id


def _next_step(suspect: Commit, *, is_lowest: bool) -> str:
    owner = ""
    if _is_foreign(suspect):
        how = "assigned to" if suspect.ownership_confidence == "high" else "read by"
        owner = f" The partition is {how} member {suspect.owner_member_id}."
    wrote = "it wrote the lowest position" if is_lowest else "it wrote a position that is not its own"
    return (
        f"Look at the process behind {committer_text(suspect)}: {wrote}.{owner} Stop or restart it, "
        "and search its code for offsets that are kept or committed after the partition was revoked, and for a second "
        "consumer with the same group id that assigns partitions by hand."
    )


def _hand_over(cluster: str | None, committed: _Committed, turns: Integers) -> Finding:
    commits = committed.commits
    latest = int(turns[-1])
    other, again = commits[latest - 1], commits[latest]
    times = "" if len(turns) == 1 else f" (the committing client changed {len(turns)} times)"
    sentence = (
        f"{group_text(again)}: commits of {partition_text(again)} went over from {committer_text(other)}, "
        f"last at {other.committed_offset}, to {committer_text(again)}, first at {again.committed_offset}{times}."
    )
    return _finding(
        cluster,
        committed,
        turns,
        severity="info",
        confidence="high",
        title=title_text(
            "Committing client changed: {}, from {} to {}",
            partition_text(again), *(short_who(*one.client) for one in (other, again)),
        ),
        sentence=sentence,
        next_step="Nothing to do if a rebalance or a restart is known for that time.",
        measured={"hand_overs": len(turns), "last_offset": int(commits.offset[-1])},
    )  # fmt: skip


def _finding(
    cluster: str | None,
    committed: _Committed,
    turns: Integers,
    *,
    severity: Severity,
    confidence: Confidence,
    title: str,
    sentence: str,
    next_step: str,
    measured: dict[str, Any],
) -> Finding:
    commits, proof = committed.commits, _both(turns)
    key = partition_key(cluster, commits[int(proof[0])])
    return RULE.finding(
        severity=severity,
        confidence=confidence,
        provisional=severity == "info",
        subject=key,
        title=title,
        sentence=sentence,
        next_step=next_step,
        proof=Proof(int(commits.ts[proof].min()), int(commits.ts[proof].max()), commits.evidence(proof)),
        numbers={
            **key,
            **measured,
            "committers": [commits.numbers_of(committed.rows[identity]) for identity in committed.of(turns)],
        },
    )


RULE = Rule(
    code="KAF101",
    question="concurrent",
    name="dual-committer",
    severity="critical",
    confidence="high",
    reads={COMMITS: COMMIT_COLUMNS},
    partition_by=KEYS,
    detect=detect,
    rows={COMMITS: "error_code = 0"},
    suspects=f"SELECT {', '.join(KEYS)} FROM r_{COMMITS} GROUP BY ALL HAVING count(DISTINCT {IDENTITY_SQL}) > 1",
)
