"""KAF124 commit-off-by-one: a consumer commits the offset of its last record instead of the one after it.

Finds
    A group whose restarts begin, again and again, exactly one record below where it had read to; or a client whose
    commits stay exactly one record below the end of a log that it has read to its end.

Why it matters
    The last record is handled twice after every restart and every rebalance, in each partition, and the lag of a
    partition that is fully read stays 1, so that alarms on lag lie.

How it decides
    By the runs of reading (`kafka_fetch_ranges`): begins at the stored offset behind an OffsetFetch, against the
    highest offset that fetches of the group had led to. One below counts. It fires when that happened at
    `restarts` different times, and in at least `share` of all such begins. Without a restart, by commits: of one client
    with `offsets` different ones or more, `share` are one below the log's end known then, and none is at it.
    Partitions that transactions write to are left out: their commit markers take an offset each. Where no producer of
    the topic is in the capture, there may be such markers: info, confidence medium. Else warning.

False alarms
    A group that leaves just one record unhandled at every restart by chance; one that commits a record on purpose when
    the next one comes.

What it cannot tell
    Of one direction alone nothing is said. Restarts before the capture are not counted, and a restart counts only
    where both its OffsetFetch and what was read before it are in the capture.

References
    KafkaConsumer.commitSync: "the committed offset should be the next message your application will consume".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from wirewitness.analyser.base.times import moment_text, time_text
from wirewitness.analyser.base.words import count, names_text
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import first_value
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.commits import (
    COMMIT_COLUMNS,
    COMMITS,
    Commit,
    Identity,
    commit_proof,
    commits_of,
    committer_text,
    short_committer,
)
from wirewitness.analyser.kafka.rules.fetch_ranges import (
    RUN_COLUMNS,
    RUNS,
    FetchRange,
    names_of,
    places_of,
    proof_of_runs,
    readers_text,
    runs_of,
)
from wirewitness.analyser.kafka.rules.names import (
    first_text,
    group_text,
    partition_names,
    short_clients,
    title_text,
    who_numbers,
    who_text,
)

KEYS = ("cluster_id", "group_id")
# Partitions that a member takes over at one time are one episode: a record that was under way in each proves nothing.
_EPISODE_NS = 1_000_000_000
_OFFSETS, _SHARE = 10, 0.8
_NEXT_STEP = (
    "Commit the offset of the last handled record plus one (commitSync without arguments does; with "
    "OffsetAndMetadata(record.offset() + 1))."
)


def detect(frames: Frames, *, restarts: int = 3, share: float = _SHARE, offsets: int = _OFFSETS) -> Iterator[Finding]:
    """One finding per group: by its restarts, else by the commits of a client."""
    runs = runs_of(frames[RUNS]) if len(frames[RUNS]) else ()
    begun = [run for run in runs if _is_restart(run)]
    short = [run for run in begun if run.group_offset_before == (run.stored_offset or 0) + 1]
    episodes = 1 + sum(later.ts - earlier.ts > _EPISODE_NS for earlier, later in pairwise(short))
    if short and episodes >= restarts and len(short) >= share * len(begun):
        yield _finding(first_value(frames[RUNS], "cluster_id"), short, len(begun))
        return
    plain = {run.place: run.transactional is False for run in runs if run.transactional is not True}
    marked = {run.place for run in runs if run.transactional}
    commits: dict[Identity, list[Commit]] = {}
    for commit in commits_of(frames[COMMITS]):
        if (commit.topic, commit.partition) not in marked:
            commits.setdefault(commit.client, []).append(commit)
    for own in commits.values():
        below = [commit for commit in own if commit.log_end_offset == commit.committed_offset + 1]
        at_end = any((commit.log_end_offset or 0) <= commit.committed_offset for commit in own)
        several = len({(commit.topic, commit.partition, commit.committed_offset) for commit in below}) >= offsets
        if several and not at_end and len(below) >= share * len(own):
            is_plain = all(plain.get((one.topic, one.partition)) for one in below)
            yield _by_commits(first_value(frames[COMMITS], "cluster_id"), below, is_plain)
            return


def _is_restart(run: FetchRange) -> bool:
    """It begins where OffsetFetch led, behind what the group had read before."""
    led = run.answered_offset == run.first_offset == run.stored_offset
    before = run.group_offset_before is not None and run.change is None and run.transactional is not True
    return bool(run.first_offset) and led and before


def _by_commits(cluster: str | None, below: Sequence[Commit], plain: bool) -> Finding:
    first, last = below[0], below[-1]
    key = {"cluster": cluster, "group": last.group_id}
    places = partition_names((commit.topic, commit.partition) for commit in below)
    return RULE.finding(
        severity="warning" if plain else "info",
        confidence="high" if plain else "medium",
        subject=key,
        title=title_text(
            "Last record committed, not the next: group {}, by {}", last.group_id or "?", short_committer(last)
        ),
        sentence=(
            f"{group_text(last.group_id)}: {committer_text(last)} commits the offset of the last record and not the "
            f"next one. {count(len(below), 'commit')} of {names_text(places, 3)} are one below the log's end, none is "
            f"at it, from {moment_text(first.ts)} to {moment_text(last.ts)}: the lag stays 1."
        ),
        next_step=_NEXT_STEP,
        proof=commit_proof(below),
        numbers={
            **key,
            "partitions": places,
            "commits": len(below),
            "lag": 1,
            "ts_first": time_text(first.ts),
            "ts_last": time_text(last.ts),
            "clients": [who_numbers(last.client_address, last.client_id, last.member_id)],
        },
    )


def _finding(cluster: str | None, short: Sequence[FetchRange], begun: int) -> Finding:
    last = short[-1]
    key = {"cluster": cluster, "group": last.group_id}
    committers = dict.fromkeys(
        (run.stored_client_address, run.stored_client_id) for run in short if run.stored_client_id
    )
    who = names_text([who_text(*client) for client in committers], 3) or readers_text(short)
    clients = [*committers, *(run.client for run in short if run.client not in committers)]
    members = {run.client: run.member_id for run in short}
    plain = all(run.transactional is False for run in short)
    return RULE.finding(
        severity="warning" if plain else "info",
        confidence="high" if plain else "medium",
        subject=key,
        title=title_text(
            f"Last record committed, not the next: group {{}}, {count(len(short), 'record')} twice, by {{}}",
            last.group_id or "?", first_text(short_clients(committers or [run.client for run in short])),
        ),
        sentence=(
            f"{group_text(last.group_id)}: {who} commits the offset of the last record and not the "
            f"next one. {len(short):,} of {begun:,} starts read one record again "
            f"({places_of(short)}), from {moment_text(short[0].ts)} to {moment_text(last.ts)}."
        ),
        next_step=_NEXT_STEP,
        proof=proof_of_runs(
            short, [Evidence(None, None, run.stored_exchange_id) for run in short if run.stored_exchange_id],
            min((run.ts_stored for run in short if run.ts_stored is not None), default=None),
        ),
        numbers={
            **key,
            "partitions": names_of(short),
            "restarts": len(short),
            "all_begins": begun,
            "records_again": len(short),
            "messages_again": len(short),
            "ts_first": time_text(short[0].ts),
            "ts_last": time_text(last.ts),
            "clients": [who_numbers(*client, members.get(client)) for client in dict.fromkeys(clients)],
        },
    )  # fmt: skip


RULE = Rule(
    code="KAF124",
    question="went back",
    name="commit-off-by-one",
    severity="warning",
    confidence="high",
    reads={RUNS: RUN_COLUMNS, COMMITS: COMMIT_COLUMNS},
    partition_by=KEYS,
    detect=detect,
    rows={RUNS: "topic IS NOT NULL", COMMITS: "error_code = 0 AND topic IS NOT NULL AND log_end_offset IS NOT NULL"},
    suspects=f"""
        SELECT cluster_id, group_id FROM r_{RUNS}
        WHERE first_offset > 0 AND answered_offset = first_offset AND stored_offset = first_offset
            AND group_offset_before IS NOT NULL AND change IS NULL AND transactional IS NOT TRUE
        GROUP BY ALL HAVING count(*) FILTER (group_offset_before = stored_offset::HUGEINT + 1) >= {_SHARE} * count(*)
        UNION SELECT cluster_id, group_id FROM (
            SELECT cluster_id, group_id, client_id, client_address,
                   count(*) FILTER (log_end_offset = committed_offset::HUGEINT + 1) AS below, count(*) AS commits
            FROM r_{COMMITS} GROUP BY ALL) WHERE below >= {_OFFSETS} AND below >= {_SHARE / 2} * commits""",
)
