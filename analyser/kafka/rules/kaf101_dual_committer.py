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

from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from typing import Any, NamedTuple

from wirewitness.analyser.base.severity import Confidence, Severity
from wirewitness.analyser.base.times import NS_PER_MS, NS_PER_S, period_text
from wirewitness.analyser.base.words import count, number_word, sentence_start
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import first_value
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.kafka.rules.commits import (
    Identity,
    committer_text,
    group_text,
    may_be_one,
    partition_key,
    partition_text,
)
from wirewitness.analyser.kafka.rules.names import short_clients, short_who, title_text
from wirewitness.analyser.kafka.rules.stored import (
    EDGES_SQL,
    STORED,
    STORED_COLUMNS,
    Stored,
    by_committer,
    committers_numbers,
    proof_of_stored,
    stored_by_group,
)

KEYS = ("cluster_id", "group_id", "topic", "partition")
# A member gets a new id with every restart: a sentence that names hundreds tells nothing.
_MOST_NAMED = 5


class _Turn(NamedTuple):
    """A commit right behind one of another identity."""

    other: Stored
    again: Stored

    def returned(self, least_ns: float, gaps: float) -> bool:
        """It had committed before, and the other one lately."""
        window_ns = max(gaps * (self.again.usual_gap_ms or 0.0) * NS_PER_MS, least_ns)
        return (self.again.own_number or 0) > 1 and self.again.ts - self.other.ts <= window_ns

    @property
    def no_membership(self) -> bool:
        """Of one of them at least no membership is on the wire; one client with and without a member id may be one."""
        both = bool(self.other.member_id and self.again.member_id)
        is_one = may_be_one(self.other.client, self.again.client) and not both
        return not is_one and not (self.other.in_generation and self.again.in_generation)

    @property
    def members_at_once(self) -> bool:
        """Both were members of one generation, and not each of them the owner at its time.

        A lower one that it has only just got is that of a group that begins anew. That each had the partition then is
        so where generations begin again at 1, in a group that was deleted.
        """
        before, now = self.other.generation, self.again.generation
        is_told = before is not None and now is not None and self.other.in_generation and self.again.in_generation
        if not is_told or before is None or now is None or (self.other.is_owners and self.again.is_owners):
            return False
        return now == before or (now < before and self.again.own_generation_before == now)


def detect(
    frames: Frames, *, window_gaps: float = 3.0, window_s: float = 60.0, without_members: int = 2
) -> Iterator[Finding]:
    """At most one finding for the partition: the worst that is true."""
    for every in stored_by_group(frames[STORED]):
        commits = [commit for commit in every if commit.member_id or commit.own_commits != 1]
        turns = [_Turn(*both) for both in pairwise(commits) if both[0].identity != both[1].identity]
        returns = [turn for turn in turns if turn.returned(window_s * NS_PER_S, window_gaps)]
        at_once = [turn for turn in returns if turn.members_at_once]
        unknown = [turn for turn in returns if turn.no_membership]
        cluster = first_value(frames[STORED], "cluster_id")
        if at_once or len(unknown) >= without_members:
            yield _dual(cluster, commits, at_once or unknown, at_once=bool(at_once))
        elif unexplained := [turn for turn in turns if not turn.again.is_owners]:
            yield _hand_over(cluster, commits, unexplained)


def _of(turns: Sequence[_Turn]) -> list[Identity]:
    """The identities that write in these turns, in their order."""
    return list(dict.fromkeys(commit.identity for turn in turns for commit in turn))


def _dual(cluster: str | None, commits: Sequence[Stored], turns: Sequence[_Turn], *, at_once: bool) -> Finding:
    own: dict[Identity, list[Stored]] = {who: [] for who in _of(turns)}
    highest = worst = 0
    for commit in commits:
        if commit.identity in own:
            own[commit.identity].append(commit)
        highest = max(highest, commit.committed_offset)
        worst = max(worst, highest - commit.committed_offset)
    lasts = {who: some[-1] for who, some in own.items()}
    lowest = min(own, key=lambda who: (lasts[who].committed_offset, max(one.committed_offset for one in own[who])))
    # Who owns the partition may be behind: then the other one stored what was not read.
    foreign = [who for who, one in lasts.items() if _is_foreign(one)]
    suspect = foreign[0] if lowest not in foreign and len(foreign) == 1 else lowest
    last = commits[-1]
    named = [*islice(lasts.values(), _MOST_NAMED)]
    more = f" and {len(own) - len(named)} more" if len(own) > len(named) else ""
    wrote = ", ".join(map(_wrote_text, [*own.values()][:_MOST_NAMED]))
    period = period_text(min(turn.other.ts_sent for turn in turns), max(turn.again.ts_sent for turn in turns))
    who_writes = f"{number_word(len(own))} {'active members' if at_once else 'clients'}"
    replay = highest - last.committed_offset
    sentence = (
        f"{group_text(last)}: {who_writes} overwrite each other's commits on {partition_text(last)}. They "
        f"are {', '.join(map(committer_text, named))}{more}. They wrote {wrote}, {period}. "
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
        commits,
        turns,
        severity="critical" if at_once else "warning",
        confidence="high" if at_once else "medium",
        title=title,
        sentence=sentence,
        next_step=_next_step(lasts[suspect], is_lowest=suspect == lowest),
        measured={
            "returns": len(turns),
            "members_at_once": at_once,
            "highest_offset": highest,
            "last_offset": last.committed_offset,
            "replay_now": replay,
            "replay_worst": worst,
        },
    )


def _wrote_text(commits: Sequence[Stored]) -> str:
    """`1000 to 1090 (10 commits)`."""
    offsets, number = [commit.committed_offset for commit in commits], commits[0].own_commits or len(commits)
    low, high = min(offsets), max(offsets)
    return f"{low if low == high else f'{low} to {high}'} ({count(number, 'commit')})"


def _replay_text(now: int, worst: int) -> str:
    if worst == 0:
        return "So far no offset moved back."
    again = f"at the worst moment {count(worst, 'message')}"
    if now == 0:
        return f"A restart would reprocess nothing now; {again}."
    return f"A restart would reprocess {count(now, 'message')}; {again}."


def _is_foreign(commit: Stored) -> bool:
    return bool(commit.owner_member_id) and commit.owner_member_id != commit.member_id


def _next_step(suspect: Stored, *, is_lowest: bool) -> str:
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


def _hand_over(cluster: str | None, commits: Sequence[Stored], turns: Sequence[_Turn]) -> Finding:
    other, again = turns[-1]
    times = "" if len(turns) == 1 else f" {len(turns):,} times"
    sentence = (
        f"{group_text(again)}: the committing client of {partition_text(again)} changed{times}. "
        f"Commits went over from {committer_text(other)}, last at {other.committed_offset}, "
        f"to {committer_text(again)}, first at {again.committed_offset}."
    )
    return _finding(
        cluster,
        commits,
        turns,
        severity="info",
        confidence="high",
        title=title_text(
            "Committing client changed: {}, from {} to {}",
            partition_text(again), *(short_who(*one.client) for one in (other, again)),
        ),
        sentence=sentence,
        next_step="Nothing to do if a rebalance or a restart is known for that time.",
        measured={"hand_overs": len(turns), "last_offset": commits[-1].committed_offset},
    )  # fmt: skip


def _finding(
    cluster: str | None,
    commits: Sequence[Stored],
    turns: Sequence[_Turn],
    *,
    severity: Severity,
    confidence: Confidence,
    title: str,
    sentence: str,
    next_step: str,
    measured: dict[str, Any],
) -> Finding:
    key = partition_key(cluster, turns[0].other)
    return RULE.finding(
        severity=severity,
        confidence=confidence,
        provisional=severity == "info",
        subject=key,
        title=title,
        sentence=sentence,
        next_step=next_step,
        proof=proof_of_stored([commit for turn in turns for commit in turn]),
        numbers={**key, **measured, "committers": committers_numbers(by_committer(commits), _of(turns))},
    )


RULE = Rule(
    code="KAF101",
    question="concurrent",
    name="dual-committer",
    severity="critical",
    confidence="high",
    reads={STORED: (*STORED_COLUMNS, "near_other")},
    partition_by=KEYS,
    detect=detect,
    rows={STORED: f"near_other OR near_step_back OR {EDGES_SQL}"},
    suspects=AnyRow(STORED, "near_other"),
)
