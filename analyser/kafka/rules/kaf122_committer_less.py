"""KAF122 committer-less: a member of a group reads and nobody commits what it reads.

Finds
    A client with a membership that was given 1,000 records, or has read for 60 s, or for longer than its siblings take
    to commit several times, while no commit for any of its partitions was sent by anyone in the group since it reads
    them.

Why it matters
    After the next restart or rebalance everything is delivered again, or, with auto.offset.reset=latest, never.

How it decides
    By the runs of reading (`kafka_fetch_ranges`) of clients whose group requests are in the capture, and all commits of
    the group, accepted or not, from the begin of its reading on: what an owner before it committed is no help to it. A
    commit of another client counts too, as of a producer that commits for its consumer.
    Fires from `records` records or `seconds` of reading on that gave any record, where nobody ever committed these
    partitions; where other members commit, or an owner before it did, from
    `steps` of their usual steps on (the medians of time and of records between two commits of one partition), of both
    time and records, and `least_s` at least; what is delivered again counts once,
    since who is thrown out each time has no turn to commit (KAF119). Warning; provisional, since a commit
    may come later; confidence medium where bytes of the client are missing. Where a topic has no known name, nothing is
    said unless the whole group commits nothing.

False alarms
    Applications that keep offsets elsewhere, in a database or with the results.

What it cannot tell
    Of answers alone nothing is said, since they name no client; of requests alone neither, since nobody knows what was
    given. A capture that is shorter than the time between two commits has none of them: hence `seconds` and `records`.

References
    Kafka's consumer configuration: enable.auto.commit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import median

from wirewitness.analyser.base.times import NS_PER_S, moment_text, seconds_text, time_text
from wirewitness.analyser.base.words import count
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame import Frame
from wirewitness.analyser.engine.rules.frame_rows import first_value, values
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.commits import COMMITS
from wirewitness.analyser.kafka.rules.fetch_ranges import (
    RUN_COLUMNS,
    RUNS,
    Client,
    FetchRange,
    names_of,
    places_of,
    proof_of_runs,
    reader_numbers,
    runs_of,
)
from wirewitness.analyser.kafka.rules.names import group_text, short_who, title_text, who_text

KEYS = ("cluster_id", "group_id")
_LEAST_S, _LEAST_STEPS = 10.0, 5


def detect(
    frames: Frames, *, records: int = 1000, seconds: float = 60.0, steps: float = 5.0, least_s: float = _LEAST_S
) -> Iterator[Finding]:
    """One finding per client."""
    commits = frames[COMMITS]
    usual_ns, usual_records = _usual_step(commits)
    committed = _last_commits(commits)
    committers = {*zip(values(commits["client_address"]), values(commits["client_id"]), strict=True)}
    clients: dict[Client, list[FetchRange]] = {}
    for run in runs_of(frames[RUNS]) if len(frames[RUNS]) else ():
        clients.setdefault(run.client, []).append(run)
    for client, runs in clients.items():
        given = _given(runs)
        lasts = max(run.ts_last for run in runs) - runs[0].ts
        seen = any(run.member_id for run in runs)
        named = all(run.is_named for run in runs) and all(topic is not None for topic, _ in committed)
        since = any(committed.get(run.place, -1) >= run.ts for run in runs)
        silent = client not in committers and not since and (named or not committed)
        behind = lasts >= max(steps * usual_ns, least_s * NS_PER_S) and given >= steps * usual_records
        alone = not any(run.place in committed for run in runs)
        long = alone and (given >= records or lasts >= seconds * NS_PER_S)
        if seen and silent and given and (long or behind):
            yield _finding(first_value(frames[RUNS], "cluster_id"), runs, given, lasts)


def _last_commits(commits: Frame) -> dict[tuple[str | None, int], int]:
    """When each partition was committed last, Unix ns."""
    last: dict[tuple[str | None, int], int] = {}
    for ts, topic, partition in zip(*(values(commits[name]) for name in ("ts", "topic", "partition")), strict=True):
        last[topic, partition] = max(ts, last.get((topic, partition), ts))
    return last


def _usual_step(commits: Frame) -> tuple[float, float]:
    """Medians of time (ns) and of records between two commits of a partition that move it on; infinite with few."""
    last: dict[tuple[str | None, int], tuple[int, int]] = {}
    steps = []
    columns = (values(commits[name]) for name in ("ts", "topic", "partition", "committed_offset"))
    for ts, topic, partition, offset in sorted(zip(*columns, strict=True), key=lambda row: row[0]):
        before = last.get((topic, partition))
        if before is not None and offset > before[1]:
            steps.append((ts - before[0], offset - before[1]))
        if before is None or offset > before[1]:
            last[topic, partition] = (ts, offset)
    if len(steps) < _LEAST_STEPS:
        return math.inf, math.inf
    return median(ts for ts, _ in steps), median(records for _, records in steps)


def _given(runs: Sequence[FetchRange]) -> int:
    """How many records it was given, each counted once as far as offsets tell; by these alone where none is counted."""
    places: dict[tuple[str | None, int], list[FetchRange]] = {}
    for run in runs:
        places.setdefault(run.place, []).append(run)
    return sum(min(_counted(own), _span(own)) for own in places.values())


def _counted(runs: Sequence[FetchRange]) -> int:
    """Records by their number; a request log tells of none, so there offsets have to do."""
    known = [run.records_count for run in runs if run.records_count is not None]
    return sum(known) if known else _span(runs)


def _span(runs: Sequence[FetchRange]) -> int:
    """From the lowest offset to the highest."""
    ends = [run.next_offset for run in runs if run.next_offset is not None]
    begins = [run.first_offset if run.first_offset is not None else _least_begin(run) for run in runs]
    known = [begin for begin in begins if begin is not None]
    return max(ends) - min(known) if ends and known else 0


def _least_begin(run: FetchRange) -> int | None:
    """Where a run began at the latest that lists no offset (a fetch session that began before the capture)."""
    if run.next_offset is None:
        return None
    return max(run.next_offset - (run.records_count or 0), 0)


def _finding(cluster: str | None, runs: Sequence[FetchRange], given: int, lasts: int) -> Finding:
    last = runs[-1]
    gap = any((run.ts_last_gap or 0) > runs[0].ts for run in runs)
    key = {"cluster": cluster, "group": last.group_id, "client": last.client_id, "address": last.client_address}
    began = {-2: "the begin of the log", -1: "the end of the log"}.get(runs[0].listed_timestamp or 0)
    start = f"It had no stored offset and began at {began}. " if began and runs[0].answered_offset == -1 else ""
    return RULE.finding(
        provisional=True,
        confidence="medium" if gap else "high",
        subject=key,
        title=title_text(
            f"Reads, and nobody commits: {{}} in group {{}}, {count(given, 'record')}",
            short_who(*last.client), last.group_id or "?",
        ),
        sentence=(
            f"{group_text(last.group_id)}: {who_text(*last.client, last.member_id)} was given "
            f"{count(given, 'record')} of {places_of(runs)} in {seconds_text(lasts)} and commits nothing of it, nor "
            f"does anybody else. It reads since {moment_text(runs[0].ts)}. {start}A restart would deliver them again, "
            "or skip to the end with auto.offset.reset=latest."
        ),
        next_step=(
            "Look whether enable.auto.commit is off and the application forgets to commit. If it keeps its offsets "
            "elsewhere, this is as it should be."
        ),
        proof=proof_of_runs(runs),
        numbers={
            **key,
            "client_id": last.client_id,
            "member": last.member_id,
            "partitions": names_of(runs),
            "messages_uncommitted": given,
            "seconds": round(lasts / NS_PER_S, 3),
            "ts_first": time_text(runs[0].ts),
            "ts_last": time_text(max(run.ts_last for run in runs)),
            "clients": reader_numbers(runs),
        },
    )  # fmt: skip


RULE = Rule(
    code="KAF122",
    question="stalled",
    name="committer-less",
    severity="warning",
    confidence="high",
    reads={RUNS: RUN_COLUMNS, COMMITS: ("ts", "topic", "partition", "committed_offset", "client_id", "client_address")},
    partition_by=KEYS,
    detect=detect,
    suspects=f"""
        SELECT runs.cluster_id, runs.group_id
        FROM (SELECT cluster_id, group_id, client_address, client_id FROM r_{RUNS}
              GROUP BY ALL HAVING coalesce(sum(records_count), sum(next_offset - first_offset)) >= 1000
                  OR max(ts_last) - min(ts) >= {int(_LEAST_S * NS_PER_S)}) AS runs
        ANTI JOIN r_{COMMITS} AS commits
            ON runs.cluster_id IS NOT DISTINCT FROM commits.cluster_id AND runs.group_id = commits.group_id
            AND runs.client_id IS NOT DISTINCT FROM commits.client_id
            AND runs.client_address IS NOT DISTINCT FROM commits.client_address""",
)
