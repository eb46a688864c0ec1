"""KAF105 fenced-commits: the broker refuses the commits of a member that is no longer one.

Finds
    Commits refused with 22 ILLEGAL_GENERATION, 25 UNKNOWN_MEMBER_ID, 27 REBALANCE_IN_PROGRESS, 82 FENCED_INSTANCE_ID,
    110 FENCED_MEMBER_EPOCH or 113 STALE_MEMBER_EPOCH.

Why it matters
    The offset is safe: the broker kept it. But the refused member goes on working on partitions that others have, so
    messages are processed twice, and what it did is never stored.

How it decides
    Refused commits of one client (address, client id, group.instance.id) with one error code belong together, whatever
    its member id was: whoever joins again gets a new one. Requests that were on their way together count once; 113 may
    stand at single partitions of a request. A refusal is healed when the same client later has a commit accepted for
    one of the same partitions, at the refused offset or above. 27 is everyday while a rebalance is under way, and
    healed when the client has any later commit accepted. A later commit whose answer the capture lost may have been
    accepted, and one of a topic without a known name may be of that topic: both heal.
    warning: `zombie` refusals that are not healed. Under one member id the client does not notice that it is out;
    under several it is thrown out again and again, each time before it stores what it did.
    info: fewer. Nothing is said of refusals that are all healed by 22, 25 or 27, nor of fewer than `zombie` of these
    when the client joined or left within `rebalance_s` of them: it was restarted, or took part in a rebalance.
    Confidence high: errors are on the wire. Healing can be hidden by a gap, so a finding may be overturned.

False alarms
    Two processes of one host that share a client id count as one client.

What it cannot tell
    Of requests alone nothing is said: the errors are in the answers. A capture that begins late lacks the refusals from
    before, and one that ends early the commit that heals.

References
    Kafka protocol errors. KIP-345 (82), KIP-848 (110, 113), KIP-1251 (113 at partitions).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from wirewitness.analyser.base.times import NS_PER_S, period_text
from wirewitness.analyser.base.words import count
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import first_value, values
from wirewitness.analyser.engine.rules.limits import compared
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.kafka.rules.commits import (
    COMMIT_COLUMNS,
    COMMITS,
    Commit,
    by_identity,
    commit_proof,
    commits_of,
    committer_key,
    committer_numbers,
    committer_text,
    group_text,
    partitions_text,
    requests_of,
    sent_together,
    short_committer,
)
from wirewitness.analyser.kafka.rules.names import partition_names, title_text

KEYS = ("cluster_id", "group_id", "client_address", "client_id")
EVENTS = "kafka_group_events"
REBALANCE_IN_PROGRESS = 27
MEANINGS = {
    22: "ILLEGAL_GENERATION, its generation is over",
    25: "UNKNOWN_MEMBER_ID, the group does not know this member",
    27: "REBALANCE_IN_PROGRESS, the group is rebalancing",
    82: "FENCED_INSTANCE_ID, another process has its static member name",
    110: "FENCED_MEMBER_EPOCH, the coordinator has fenced this member",
    113: "STALE_MEMBER_EPOCH, its member epoch is old",
}
# What a client meets that was restarted or takes part in a rebalance.
EVERYDAY = (22, 25, REBALANCE_IN_PROGRESS)
_MOST_COMMITTERS = 20
# Comparisons are counted by so many.
_COUNTED = 64


class _Refusals(NamedTuple):
    """Refused commits of one client with one code. standing: times that none healed; members: ids it had then."""

    commits: Sequence[Commit]
    code: int
    requests: int
    standing: int
    members: int


def detect(frames: Frames, *, zombie: int = 3, rebalance_s: float = 30.0) -> Iterator[Finding]:
    """One finding per client and error code."""
    commits = commits_of(frames[COMMITS])
    cluster = first_value(frames[COMMITS], "cluster_id") if commits else None
    refused: dict[tuple[str | None, int], list[Commit]] = {}
    for commit in commits:
        if commit.error_code in MEANINGS and not _simple(commit):
            refused.setdefault((commit.group_instance_id, commit.error_code or 0), []).append(commit)
    if not refused:
        return
    latest = _Accepted(commits)
    moves = values(frames[EVENTS]["ts"])
    for (_, code), own in refused.items():
        refusals = _refusals(own, code, latest)
        few = code in EVERYDAY and refusals.standing < zombie
        if few and (not refusals.standing or _around(own, moves, rebalance_s * NS_PER_S)):
            continue
        yield _finding(cluster, refusals, zombie)


def _simple(commit: Commit) -> bool:
    """A simple consumer's commit, see KAF106. TxnOffsetCommit without member data is never fenced by generation."""
    return not commit.member_id and (commit.generation is None or commit.generation < 0)


def _refusals(refused: Sequence[Commit], code: int, latest: _Accepted) -> _Refusals:
    requests = list(requests_of(refused).values())
    standing = [request[0] for request in requests if not latest.heals(request, code)]
    together = sum(sent_together(first, second) for first, second in pairwise(standing))
    members = len({commit.member_id for commit in standing})
    return _Refusals(refused, code, len(requests), len(standing) - together, members)


def _around(refused: Sequence[Commit], moves: Sequence[int], within_ns: float) -> bool:
    """The client joined or left shortly before the first of them or after the last one."""
    first, last = refused[0].ts - within_ns, refused[-1].done_ns + within_ns
    return any(first <= at <= last for at in moves)


class _Accepted:
    """Commits of each instance of the client that were accepted, or whose answer the capture lost: the last one at all,
    and those of each partition. A topic of None is one without a known name."""

    def __init__(self, commits: Sequence[Commit]) -> None:
        self._any: dict[str | None, int] = {}
        self._partitions: dict[tuple[str | None, int], dict[str | None, list[tuple[int, int]]]] = {}
        lossy = any(commit.client_gap_ts is not None for commit in commits)
        for commit in commits:
            lost = commit.error_code is None and (lossy or commit.ts_response is not None)
            if commit.accepted or (lost and commit.committed_offset >= 0):
                self._any[commit.group_instance_id] = commit.done_ns
                topics = self._partitions.setdefault((commit.group_instance_id, commit.partition), {})
                topics.setdefault(commit.topic, []).append((commit.done_ns, commit.committed_offset))

    def heals(self, request: Sequence[Commit], code: int) -> bool:
        """The client got through later, for one of these partitions (for 27: at all)."""
        if code == REBALANCE_IN_PROGRESS:
            return self._any.get(request[0].group_instance_id, 0) > request[0].done_ns
        return any(self._later(commit) for commit in request)

    def _later(self, commit: Commit) -> bool:
        topics = self._partitions.get((commit.group_instance_id, commit.partition), {})
        names = topics if commit.topic is None else (commit.topic, None)
        return any(_reached(topics.get(name, ()), commit) for name in names)


def _reached(stored: Sequence[tuple[int, int]], commit: Commit) -> bool:
    """One of these was stored after the commit, at its offset or above."""
    for number, (done_ns, offset) in enumerate(reversed(stored)):
        if number % _COUNTED == _COUNTED - 1:
            compared(_COUNTED)
        if done_ns <= commit.done_ns:
            return False
        if offset >= commit.committed_offset:
            return True
    return False


def _finding(cluster: str | None, refusals: _Refusals, zombie: int) -> Finding:
    refused, code = refusals.commits, refusals.code
    last, is_zombie = refused[-1], refusals.standing >= zombie
    key = committer_key(cluster, last)
    by_member = list(by_identity(refused).values())[-_MOST_COMMITTERS:]
    return RULE.finding(
        severity="warning" if is_zombie else "info",
        provisional=True,
        subject={**{name: key[name] for name in ("cluster", "group", "client", "address")}, "error": code}
        | ({"instance": last.group_instance_id} if last.group_instance_id else {}),
        title=title_text(
            f"{count(refusals.requests, 'commit')} refused: {{}} in group {{}}, {code} {MEANINGS[code].split(',')[0]}",
            short_committer(last), last.group_id or "?",
        ),
        sentence=(
            f"{group_text(last)}: the broker refused {count(refusals.requests, 'commit')} of "
            f"{committer_text(last)} with error {code} ({MEANINGS[code]}). That was for "
            f"{partitions_text(refused, 3)}, {period_text(refused[0].ts, last.ts)}. {_outcome(refusals, is_zombie)}."
        ),
        next_step=_next_step(refusals, is_zombie),
        proof=commit_proof(refused),
        numbers={
            **key,
            "error_code": code,
            "generation": last.generation,
            "refused_requests": refusals.requests,
            "not_healed": refusals.standing,
            "members": refusals.members,
            "partitions": partition_names((c.topic, c.partition) for c in refused),
            "committers": [committer_numbers(own) for own in by_member],
        },
    )  # fmt: skip


def _outcome(refusals: _Refusals, is_zombie: bool) -> str:
    if not is_zombie:
        return "The broker kept the stored offset"
    if refusals.members > 1:
        return (
            f"It came back under {refusals.members} member ids, and each time it was out of the group before its "
            "commit: the same messages are handled again"
        )
    return "No commit was accepted later: it works on partitions that are no longer its own"


def _next_step(refusals: _Refusals, is_zombie: bool) -> str:
    who = committer_text(refusals.commits[-1])
    if not is_zombie:
        return f"Look whether {who} noticed it: what it did after the committed offset is done again."
    what = "Look why" if refusals.members > 1 else f"Restart the process behind {who} and look why"
    return (
        f"{what} it missed the rebalance: processing longer than max.poll.interval.ms, a pause longer than the session "
        "timeout, or a generation that is kept."
    )


_CODES = ", ".join(map(str, MEANINGS))
RULE = Rule(
    code="KAF105",
    question="concurrent",
    name="fenced-commits",
    severity="warning",
    confidence="high",
    reads={COMMITS: COMMIT_COLUMNS, EVENTS: ("ts",)},
    partition_by=KEYS,
    detect=detect,
    rows={EVENTS: "event IN ('join', 'leave') OR (event = 'consumer_heartbeat' AND generation < 0)"},
    suspects=AnyRow(COMMITS, f"error_code IN ({_CODES})"),
)
