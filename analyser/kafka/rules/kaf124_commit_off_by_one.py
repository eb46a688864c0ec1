"""KAF124 commit-off-by-one: a consumer commits the offset of its last record instead of the one after it.

Finds
    A group whose restarts begin, again and again, exactly one record below where it had read to.

Why it matters
    The last record is handled twice after every restart and every rebalance, in each partition, and the lag of a
    partition that is fully read stays 1, so that alarms on lag lie.

How it decides
    By the runs of reading (`kafka_fetch_ranges`): begins at the stored offset behind an OffsetFetch, against the
    highest offset that fetches of the group had led to. One below counts. It fires when that happened at
    `restarts` different times, and in at least `share` of all such begins.
    Partitions that transactions write to are left out: their commit markers take an offset each. Where no producer of
    the topic is in the capture, there may be such markers: info, confidence medium. Else warning.

False alarms
    A group that leaves just one record unhandled at every restart by chance.

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
    short_clients,
    title_text,
    who_numbers,
    who_text,
)

KEYS = ("cluster_id", "group_id")
# Partitions that a member takes over at one time are one episode: a record that was under way in each proves nothing.
_EPISODE_NS = 1_000_000_000


def detect(frames: Frames, *, restarts: int = 3, share: float = 0.8) -> Iterator[Finding]:
    """One finding per group."""
    begun = runs_of(frames[RUNS])
    short = [run for run in begun if run.group_offset_before == (run.stored_offset or 0) + 1]
    episodes = 1 + sum(later.ts - earlier.ts > _EPISODE_NS for earlier, later in pairwise(short))
    if short and episodes >= restarts and len(short) >= share * len(begun):
        yield _finding(first_value(frames[RUNS], "cluster_id"), short, len(begun))


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
        next_step=(
            "Commit the offset of the last handled record plus one (commitSync without arguments does; "
            "with OffsetAndMetadata(record.offset() + 1))."
        ),
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
    reads={RUNS: RUN_COLUMNS},
    partition_by=KEYS,
    detect=detect,
    # Begins where OffsetFetch led, behind what the group had read before.
    rows={
        RUNS: """first_offset > 0 AND answered_offset = first_offset AND stored_offset = first_offset
            AND group_offset_before IS NOT NULL AND change IS NULL AND topic IS NOT NULL
            AND transactional IS NOT TRUE"""
    },
    suspects=f"""
        SELECT cluster_id, group_id FROM r_{RUNS} GROUP BY ALL
        HAVING count(*) FILTER (group_offset_before = stored_offset + 1) >= 0.8 * count(*)""",
)
