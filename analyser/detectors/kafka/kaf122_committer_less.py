"""KAF122 committer-less: a member of a group reads and nobody commits what it reads.

Finds
    A client with a membership that was given 1,000 records, or has read for 60 s, while no commit for any of its
    partitions was sent by anyone in the group.

Why it matters
    After the next restart or rebalance everything is delivered again, or, with auto.offset.reset=latest, never.

How it decides
    By the runs of reading (`kafka_reading_runs`) of clients whose group requests are in the capture, and all commits of
    the group, accepted or not. A commit of another client counts too, as of a producer that commits for its consumer.
    Fires from `records` records or `seconds` of reading on that gave any record. Warning; provisional, since a commit
    may come later; confidence medium where bytes of the client are missing. Where a topic has no known name, nothing is
    said unless the whole group commits nothing.

False alarms
    Applications that keep offsets elsewhere, in a database or with the results.

References
    Kafka's consumer configuration: enable.auto.commit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analyser.detectors.detector import Detector, Frames
from analyser.detectors.findings import Finding
from analyser.detectors.frame_rows import first_value, values
from analyser.detectors.kafka.commits import COMMITS
from analyser.detectors.kafka.names import group_text, who_text
from analyser.detectors.kafka.reading import (
    RUN_COLUMNS,
    RUNS,
    Client,
    Run,
    names_of,
    proof_of_runs,
    reader_numbers,
    runs_of,
)
from analyser.times import NS_PER_S, moment_text, seconds_text, time_text
from analyser.words import count

KEYS = ("cluster_id", "group_id")


def detect(frames: Frames, *, records: int = 1000, seconds: float = 60.0) -> Iterator[Finding]:
    """One finding per client."""
    commits = frames[COMMITS]
    committed = {*zip(values(commits["topic"]), values(commits["partition"]), strict=True)}
    committers = {*zip(values(commits["client_address"]), values(commits["client_id"]), strict=True)}
    clients: dict[Client, list[Run]] = {}
    for run in runs_of(frames[RUNS]) if len(frames[RUNS]) else ():
        clients.setdefault(run.client, []).append(run)
    for client, runs in clients.items():
        given = sum(run.records_count or 0 for run in runs)
        lasts = max(run.ts_last for run in runs) - runs[0].ts
        seen = any(run.member_id for run in runs)
        others = any(run.place in committed for run in runs) or (committed and not all(run.is_named for run in runs))
        silent = client not in committers and not others
        if seen and silent and given and (given >= records or lasts >= seconds * NS_PER_S):
            yield _finding(first_value(frames[RUNS], "cluster_id"), runs, given, lasts)


def _finding(cluster: str | None, runs: Sequence[Run], given: int, lasts: int) -> Finding:
    last = runs[-1]
    gap = any((run.ts_last_gap or 0) > runs[0].ts for run in runs)
    key = {"cluster": cluster, "group": last.group_id, "client": last.client_id, "address": last.client_address}
    began = {-2: "the begin of the log", -1: "the end of the log"}.get(runs[0].listed_timestamp or 0)
    start = f"It had no stored offset and began at {began}. " if began and runs[0].answered_offset == -1 else ""
    return DETECTOR.finding(
        provisional=True,
        confidence="medium" if gap else "high",
        subject=key,
        sentence=(
            f"{group_text(last.group_id)}: {who_text(*last.client, last.member_id)} was given "
            f"{count(given, 'record')} of {', '.join(names_of(runs)[:5])} in {seconds_text(lasts)} (from "
            f"{moment_text(runs[0].ts)}), and nobody commits them. {start}A restart delivers them again, or skips to "
            "the end with auto.offset.reset=latest."
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
    )


DETECTOR = Detector(
    code="KAF122",
    name="committer-less",
    severity="warning",
    confidence="high",
    reads={RUNS: RUN_COLUMNS, COMMITS: ("ts", "topic", "partition", "client_id", "client_address")},
    partition_by=KEYS,
    detect=detect,
    suspects=f"""
        SELECT runs.cluster_id, runs.group_id
        FROM (SELECT cluster_id, group_id, client_address, client_id FROM r_{RUNS}
              GROUP BY ALL HAVING sum(records_count) >= 1000 OR max(ts_last) - min(ts) >= 60000000000) AS runs
        ANTI JOIN r_{COMMITS} AS commits
            ON runs.cluster_id IS NOT DISTINCT FROM commits.cluster_id AND runs.group_id = commits.group_id
            AND runs.client_id IS NOT DISTINCT FROM commits.client_id
            AND runs.client_address IS NOT DISTINCT FROM commits.client_address""",
)
