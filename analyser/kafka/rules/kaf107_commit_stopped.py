"""KAF107 commit-stopped: a group stored its offsets regularly, and then no more, while the log went on.

Finds
    Partitions whose stored offset nobody tried to move any more, for longer than the group's own habit explains, while
    records that it has not committed wait; and who committed last: whether it still reads, is still a member and does
    nothing, or was gone without leaving.

Why it matters
    Lag grows without an end, and a restart begins where the last commit stands. Lag tools see the number; they cannot
    see whether the consumer is dead, stuck, or reads on and forgets to commit.

How it decides
    The commits of a partition, `least` or more, refused ones too: since the last one `gaps` times its usual gap went
    by (the median of the last `ring` commits) and three times its longest one, up to the last time that anybody was
    told the log's end. Where the group's commits of another partition moved on in that time, `sibling_steps` times or
    more, `sibling_gaps` usual gaps are enough. `seconds` at least: the time after which records that nobody commits
    count as waiting. That end, and the one told ten seconds before, are above the last commit and above the end that
    was known then. Then one of these holds: a client of the group reads the partition beyond the last commit, and the
    group's coordinator still hears of a member; the committer is a member still, by its heartbeats, and reads nothing
    of it (also where one record that hangs its handler stops all of its fetches); it closed its connection without
    LeaveGroup, or the group removed it, and nobody reads the partition. A reader that is given nothing (an open
    transaction, KAF203) is none, nor is a group that left in order. Provisional: a commit may come. Silent where bytes
    of the client are missing since its last commit.

False alarms
    A handler that works longer on one batch than it ever did before.

What it cannot tell
    Of requests alone nothing is said: the log's end stands in answers. A partition whose commits ended before the
    capture began is not found (KAF122 tells of a reader whom nobody commits for).

References
    Burrow's rules (STOP).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple

from wirewitness.analyser.base.times import NS_PER_S, moment_text, time_text
from wirewitness.analyser.base.words import count, sentence_start
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, first_value, rows_of
from wirewitness.analyser.engine.rules.limits import compared
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.commits import (
    COMMIT_COLUMNS,
    COMMITS,
    Commit,
    commit_proof,
    commits_of,
    committer_text,
    group_text,
    partitions_text,
    short_committer,
)
from wirewitness.analyser.kafka.rules.fetch_ranges import RUN_COLUMNS, RUNS, FetchRange, runs_of
from wirewitness.analyser.kafka.rules.members import MEMBER_COLUMNS, MEMBERS
from wirewitness.analyser.kafka.rules.names import partition_names, title_text, who_numbers, who_text

KEYS = ("cluster_id", "group_id")
_GONE = ("expired", "removed", "fenced")
_LEAST, _SECONDS = 4, 10.0
# A pause of that many of its longest gaps so far is none of its habits.
_LONGEST_GAPS = 3
_Place = tuple[str | None, int]


class _Stop(NamedTuple):
    """A partition whose commits stopped: the last of them, for how long, how many records wait; what goes on.

    usual: the median gap of its commits, in ns. siblings: partitions of the group whose commits moved on.
    """

    ring: Sequence[Commit]
    until: int
    behind: int
    usual: float
    siblings: int
    reader: FetchRange | None = None
    member: Row | None = None
    gone: bool = False

    @property
    def last(self) -> Commit:
        return self.ring[-1]

    @property
    def kind(self) -> str:
        """A word for programs."""
        if self.reader is not None:
            return "reads on"
        return "gone" if self.gone else "reads nothing"


def detect(
    frames: Frames,
    *,
    ring: int = 10,
    least: int = _LEAST,
    gaps: float = 5.0,
    sibling_gaps: float = 3.0,
    sibling_steps: int = 5,
    seconds: float = _SECONDS,
) -> Iterator[Finding]:
    """One finding per client that committed last, and what it does since."""
    if not len(frames[RUNS]):
        return
    runs = _by_place(runs_of(frames[RUNS]))
    members = rows_of(frames[MEMBERS])
    commits: dict[_Place, list[Commit]] = {}
    for commit in commits_of(frames[COMMITS]):
        commits.setdefault((commit.topic, commit.partition), []).append(commit)
    # Since when each partition was committed so many times more.
    moving = {place: own[-sibling_steps].done_ns for place, own in commits.items() if len(own) >= sibling_steps}
    stops: dict[tuple[Any, ...], list[_Stop]] = {}
    for place, own in commits.items():
        if len(own) < least:
            continue
        compared(len(members) + len(moving))
        steps = [later.done_ns - earlier.done_ns for earlier, later in pairwise(own)]
        siblings = sum(since > own[-1].done_ns for since in moving.values())
        shortest = max(
            seconds * NS_PER_S,
            (sibling_gaps if siblings else gaps) * median(steps[-ring:]),
            _LONGEST_GAPS * max(steps),
        )
        stop = _stop(own[-ring:], runs.get(place, []), members, shortest, siblings)
        if stop is not None:
            stops.setdefault((*stop.last.client, stop.kind), []).append(stop)
    for several in stops.values():
        yield _finding(first_value(frames[COMMITS], "cluster_id"), several)


def _by_place(runs: Sequence[FetchRange]) -> Mapping[_Place, list[FetchRange]]:
    found: dict[_Place, list[FetchRange]] = {}
    for run in runs:
        found.setdefault(run.place, []).append(run)
    return found


def _stop(
    ring: Sequence[Commit], runs: Sequence[FetchRange], members: Sequence[Row], shortest_ns: float, siblings: int
) -> _Stop | None:
    last = ring[-1]
    told = next((run for run in runs if run.ts_last_log_end is not None), None)
    if told is None or not last.accepted:
        return None
    until, end, earlier = told.ts_last_log_end or 0, told.last_log_end_offset, told.earlier_log_end_offset
    stood = until - last.done_ns
    known = max(last.committed_offset, last.log_end_offset or 0)
    if end is None or earlier is None or min(end, earlier) <= known or stood < shortest_ns or _lost(last, runs):
        return None
    usual = median(later.done_ns - earlier.done_ns for earlier, later in pairwise(ring))
    return _what_goes_on(_Stop(ring, until, end - last.committed_offset, usual, siblings), runs, members)


def _lost(last: Commit, runs: Sequence[FetchRange]) -> bool:
    return any((run.ts_last_gap or 0) > last.ts for run in runs)


def _what_goes_on(stop: _Stop, runs: Sequence[FetchRange], members: Sequence[Row]) -> _Stop | None:
    """Who is there, as far as requests since then prove it; None: nobody, or it is not known."""
    last = stop.last
    halfway = last.done_ns + (stop.until - last.done_ns) // 2
    heard = [one for one in members if one["ts_last"] > halfway and one["ended"] != "left"]
    own = [one for one in members if (one["client_address"], one["client_id"]) == last.client]
    latest = max(own, key=lambda one: one["ts_last"], default=None)
    reading = [run for run in runs if run.ts_last > halfway]
    if reading:
        reader = max(reading, key=lambda run: run.ts_last)
        return stop._replace(reader=reader) if heard and (reader.next_offset or 0) > last.committed_offset else None
    if latest is None or not (latest in heard or _is_gone(latest)):
        return None
    return stop._replace(member=latest, gone=latest not in heard)


def _is_gone(member: Row) -> bool:
    """It is no member any more, or closed its connection, and did not say so."""
    return member["ended"] in _GONE or (member["ended"] != "left" and member["closed_by"] == "client")


def _finding(cluster: str | None, stops: Sequence[_Stop]) -> Finding:
    worst = max(stops, key=lambda stop: stop.behind)
    last = worst.last
    stood = (worst.until - last.done_ns) / NS_PER_S
    usual = worst.usual / NS_PER_S
    beside = f" {count(worst.siblings, 'other partition')} of the group moved on." if worst.siblings else ""
    text, next_step = _words(worst)
    lasts = [stop.last for stop in stops]
    more = f" and {len(stops) - 1:,} more" if len(stops) > 1 else ""
    waiting = sum(stop.behind for stop in stops)
    return RULE.finding(
        provisional=True,
        subject={"cluster": cluster, "group": last.group_id, "client": last.client_id, "kind": worst.kind},
        title=title_text(
            f"No commit for {stood:.1f} s: {{}}{more}, {{}} was last",
            partitions_text([last]),
            short_committer(last),
        ),
        sentence=(
            f"{group_text(last)} has committed nothing on {partitions_text(lasts, 3)} since "
            f"{moment_text(last.done_ns)}, for {stood:.1f} s; before, it did every {usual:.1f} s. "
            f"{sentence_start(committer_text(last))} committed {last.committed_offset} of {partitions_text([last])} "
            f"last; {count(worst.behind, 'record')} wait there.{beside} {text}"
        ),
        next_step=next_step,
        proof=commit_proof(lasts)._replace(ts_last_ns=worst.until),
        numbers={
            "cluster": cluster,
            "group": last.group_id,
            "partitions": partition_names((one.topic, one.partition) for one in lasts),
            "client_id": last.client_id,
            "address": last.client_address,
            "member": last.member_id,
            "kind": worst.kind,
            "generation": last.generation,
            "last_offset": last.committed_offset,
            "records_behind": waiting,
            "seconds": round(stood, 3),
            "usual_seconds": round(usual, 3),
            "partitions_that_move": worst.siblings,
            "ts_last_commit": time_text(last.done_ns),
            "since": time_text(last.done_ns),
            "until": time_text(worst.until),
            "clients": [who_numbers(last.client_address, last.client_id, last.member_id)],
        },
    )


def _words(stop: _Stop) -> tuple[str, str]:
    if stop.reader is not None:
        reader = stop.reader
        return (
            f"{sentence_start(who_text(*reader.client, reader.member_id))} still reads, up to "
            f"{reader.next_offset}.",
            "Look in the log of this client for commits that are no longer called, and for a handler that hangs "
            "on what was fetched; a restart reads again from the last commit.",
        )  # fmt: skip
    member = stop.member or {}
    seen = moment_text(member["ts_last"])
    if stop.kind == "gone":
        return (
            f"It was last heard of at {seen}, did not leave the group, and nobody reads in its place.",
            "Look why this process ended, and start it, or another member, again.",
        )  # fmt: skip
    return (
        f"It is still a member (last heard of at {seen}) and does not fetch there.",
        "Look what this consumer's handler waits for (a thread dump), and for pause() without resume().",
    )  # fmt: skip


RULE = Rule(
    code="KAF107",
    question="stalled",
    name="commit-stopped",
    severity="warning",
    confidence="medium",
    reads={COMMITS: COMMIT_COLUMNS, RUNS: RUN_COLUMNS, MEMBERS: MEMBER_COLUMNS},
    partition_by=KEYS,
    detect=detect,
    suspects=f"""
        SELECT DISTINCT runs.cluster_id, runs.group_id
        FROM (SELECT cluster_id, group_id, topic, partition, max(last_log_end_offset) AS reached,
                     max(ts_last_log_end) AS told
              FROM r_{RUNS} GROUP BY ALL) AS runs
        JOIN (SELECT cluster_id, group_id, topic, partition, arg_max(committed_offset, ts) AS stored, max(ts) AS ts
              FROM r_{COMMITS} GROUP BY ALL HAVING count(*) >= {_LEAST}) AS commits
            ON runs.cluster_id IS NOT DISTINCT FROM commits.cluster_id AND runs.group_id = commits.group_id
            AND runs.topic = commits.topic AND runs.partition = commits.partition
        WHERE reached > stored AND told - ts >= {int(_SECONDS * NS_PER_S)}""",
)
