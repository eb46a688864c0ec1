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

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from wirewitness.analyser.base.times import NS_PER_S, period_text
from wirewitness.analyser.base.words import count, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import first_value
from wirewitness.analyser.engine.rules.limits import compared
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.kafka.rules.commits import (
    Identity,
    committer_text,
    group_text,
    may_be_one,
    partition_key,
    partition_text,
    short_committer,
)
from wirewitness.analyser.kafka.rules.names import title_text
from wirewitness.analyser.kafka.rules.stored import (
    EDGES_SQL,
    STORED,
    STORED_COLUMNS,
    Stored,
    by_committer,
    committers_numbers,
    stored_by_group,
)

KEYS = ("cluster_id", "topic", "partition")
_UNSEEN = " It may have turned back by itself each time: its fetches of this partition are not in the capture."


class _Group(NamedTuple):
    """The commits of a group as findings look for them."""

    last: Stored
    by_step: Mapping[int, Stored]
    own: Mapping[Identity, Sequence[Stored]]


def detect(frames: Frames, *, returns: int = 5, behind_s: float = 5.0) -> Iterator[Finding]:
    """One finding per group, committer and value."""
    for commits in stored_by_group(frames[STORED]):
        values: dict[tuple[Identity, int], list[Stored]] = {}
        for commit in commits:
            values.setdefault((commit.identity, commit.committed_offset), []).append(commit)
        group = _Group(commits[-1], {commit.step: commit for commit in commits}, by_committer(commits))
        for same in values.values():
            found = [
                one
                for one in same
                if one.ahead_offset is not None and (one.ahead_step is None or one.ahead_step in group.by_step)
            ]
            if (
                found
                and _returns(found) >= returns
                and not _came_on(group.own[same[0].identity], found, behind_s * NS_PER_S)
            ):
                yield _finding(first_value(frames[STORED], "cluster_id"), group, same, found)


def _returns(found: Sequence[Stored]) -> int:
    """How many there are; of many the rows at hand are some."""
    return found[0].same_returns or len(found)


def _came_on(own: Sequence[Stored], found: Sequence[Stored], behind_ns: float) -> bool:
    """Did nobody but the fetch position get ahead, for a moment, and the committer commit more after it?"""
    first, last = found[0], found[-1]
    is_overtaken = bool(first.same_overtaken) or any(one.ahead_step is not None for one in found)
    if is_overtaken or last.ts_sent - first.ts_sent >= behind_ns:
        return False
    compared(len(own))
    end = own[-1]
    is_last = end.own_number is not None and end.own_number == end.own_commits
    return not is_last or any(one.committed_offset > last.committed_offset for one in own if one.step > last.step)


def _finding(cluster: str | None, group: _Group, same: Sequence[Stored], found: Sequence[Stored]) -> Finding:
    """same: a committer's commits of one value. found: those that return to it."""
    last, value, by_step = found[-1], found[-1].committed_offset, group.by_step
    times = last.same_commits or len(same)
    period = (min(one.ts_sent for one in same), max(one.ts_sent for one in same))
    worst = max(found, key=lambda one: one.ahead_offset or 0)
    position, ahead = worst.ahead_offset or 0, by_step.get(worst.ahead_step or -1)
    overtaken = [by_step[step] for step in (one.ahead_step or -1 for one in found) if step in by_step]
    times_overtaken = last.same_overtaken or len(overtaken)
    by_others = any(one.identity != last.identity and _is_other(one, last) for one in overtaken)
    # Where it reads is not known: it may have turned back by itself each time.
    lately = (*overtaken[-1:], *found[-2:])
    unseen = bool(overtaken) and not by_others and not all(one.fetches_seen for one in lately)
    proof = [same[0].evidence]
    for one in found:
        proof += [by_step[step].evidence for step in (one.ahead_step or -1, one.step) if step in by_step]
    key = partition_key(cluster, last)
    return RULE.finding(
        severity="info" if unseen else "critical" if times_overtaken else "warning",
        confidence="low" if unseen else "high" if times_overtaken else "medium",
        provisional=not times_overtaken,
        subject=key,
        title=title_text(
            f"Same offset committed {times:,} times: {{}}, offset {value}, by {{}}",
            partition_text(last), short_committer(last),
        ),
        sentence=_sentence(last, times, ahead, position, period) + (_UNSEEN if unseen else ""),
        next_step=_next_step(last, overtaken=times_overtaken > 0),
        proof=Proof(*period, proof),
        numbers={
            **key,
            "stuck_offset": value,
            "commits_of_it": times,
            "returns": _returns(found),
            "ahead_offset": position,
            "ahead_by_commits": times_overtaken,
            "last_offset": group.last.committed_offset,
            "replay": position - value,
            "committers": committers_numbers(group.own, [last.identity, *(one.identity for one in overtaken)]),
        },
    )  # fmt: skip


def _is_other(one: Stored, last: Stored) -> bool:
    """Not the same client, as far as is known, with a member id and without."""
    return bool(one.member_id and last.member_id) or not may_be_one(one.client, last.client)


def _sentence(last: Stored, times: int, ahead: Stored | None, position: int, period: tuple[int, int]) -> str:
    value = last.committed_offset
    if ahead is None:
        further = f"It had fetched up to {position}"
    elif ahead.identity == last.identity:
        further = f"It had committed {position} itself"
    else:
        further = f"{sentence_start(committer_text(ahead))} had committed {position}"
    return (
        f"{group_text(last)}: {committer_text(last)} committed offset {value} of {partition_text(last)} "
        f"{times} times. {further} in between. This was {period_text(*period)}. A restart at {value} would reprocess "
        f"{count(position - value, 'message')}."
    )


def _next_step(last: Stored, *, overtaken: bool) -> str:
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
    reads={STORED: STORED_COLUMNS},
    partition_by=KEYS,
    detect=detect,
    rows={STORED: f"near_repeat OR {EDGES_SQL}"},
    # Six commits of one value by one committer, and something further in between.
    suspects=AnyRow(STORED, "same_returns >= 5"),
)
