"""Findings about reading that jumped: one for each cause, which two rules tell each from its side.

In: runs of reading, and what a rule counts of a jump. Out: findings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from wirewitness.analyser.base.severity import Severity
from wirewitness.analyser.base.times import moment_text, time_text
from wirewitness.analyser.base.words import count
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import first_value
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.fetch_ranges import MAX_NAMED, RUNS, proof_of_runs, reader_numbers, runs_of
from wirewitness.analyser.kafka.rules.names import (
    MAX_LISTED,
    partition_names,
    partition_text,
    short_who,
    title_text,
    who_numbers,
    who_text,
)
from wirewitness.analyser.kafka.rules.offset_resets import BY_SOMEBODY, OWN_CHOICE, Cause, Jump


class Told(NamedTuple):
    """What a rule says of jumps of one cause. numbers: what it adds to those of all jumps."""

    severity: Severity
    title: str
    sentence: str
    next_step: str
    numbers: dict[str, Any]


def jump_findings(
    rule: Rule, frames: Frames, records: Callable[[Jump], int], least: int, told: Callable[[list[Jump]], Told]
) -> Iterator[Finding]:
    """One finding for each cause of the jumps in the frame, from so many records on."""
    frame = frames[RUNS]
    for jumps in _by_cause(map(Jump, runs_of(frame))):
        if sum(map(records, jumps)) >= least:
            yield _finding(rule, first_value(frame, "cluster_id"), jumps, told(jumps))


def _finding(rule: Rule, cluster: str | None, jumps: list[Jump], told: Told) -> Finding:
    runs = [jump.run for jump in jumps]
    doubt = any(jump.in_doubt for jump in jumps)
    before, first_ns = _evidence_before(jumps)
    key = {"cluster": cluster, "group": runs[0].group_id}
    change = runs[0].change_exchange_id if jumps[0].key[1] else jumps[0].policy
    return rule.finding(
        severity=told.severity,
        confidence="medium" if doubt else "high",
        provisional=doubt,
        subject={**key, "cause": jumps[0].cause, "change": change},
        title=told.title,
        sentence=told.sentence,
        next_step=told.next_step,
        proof=proof_of_runs(runs, before, first_ns),
        numbers={**key, **numbers_of(jumps), **told.numbers},
    )


def amount_text(jumps: list[Jump], records: int) -> str:
    """`3,000 records`, of several partitions `3,000 records of 2 partitions`."""
    places = len({jump.run.place for jump in jumps})
    return count(records, "record") + (f" of {count(places, 'partition')}" if places > 1 else "")


_CAUSES: dict[Cause, str] = {
    "reset": "{who} set the group's offsets at {when}",
    "offsets deleted": "{who} deleted the group's stored offsets (OffsetDelete) at {when}",
    "group deleted": "{who} deleted the group (DeleteGroups) at {when}, and its stored offsets with it",
    "records deleted": "{who} deleted the records that it had not read yet (DeleteRecords) at {when}",
    "records expired": "the log start passed the reader (retention or DeleteRecords; OFFSET_OUT_OF_RANGE)",
    "truncated": "the log was truncated at {epoch_end} below it, as OffsetForLeaderEpoch reported at {epoch_end_at}",
    "log cut": "the log no longer reaches the group's offset (OFFSET_OUT_OF_RANGE): it was cut or made anew",
    "offset gone": "the group's committed offset was gone (OffsetFetch returns -1): expired, deleted unseen, or "
    "overwritten with -1",
    "partitions added": "{who} added partitions at {when}, and they were written to before they were read",
    "never stored": "the group had read the partition but never committed an offset of it (OffsetFetch returns -1)",
    "asked beyond": "the reader requested offset {refused} by itself (its last response led to {led_to}); the broker "
    "refused it (OFFSET_OUT_OF_RANGE)",
    "older offset": "the broker returned an offset to OffsetFetch that is older than the last one it had accepted",
    "time": "the client requested the offset of a time (ListOffsets) and began there",
    "seek": "the client got its group's offset and started elsewhere by itself (seek, or offsets kept elsewhere)",
}


_IN_TITLES: dict[Cause, str] = {
    "reset": "after {} reset offsets",
    "offsets deleted": "after {} deleted the offsets",
    "group deleted": "after {} deleted the group",
    "records deleted": "after {} deleted records",
    "records expired": "the log start passed it",
    "truncated": "log truncated",
    "log cut": "the log was cut or made anew",
    "offset gone": "stored offset gone",
    "partitions added": "new partitions",
    "never stored": "no stored offset",
    "asked beyond": "it requested an offset out of range",
    "older offset": "an older offset was returned",
    "time": "offset requested by time",
    "seek": "seek",
}


def jump_title(jumps: list[Jump], records: int, what: str) -> str:
    """`Records never read: 400 of payments-0 in group billing, after ops deleted the group`. what: the first words."""
    first = max(jumps, key=lambda jump: jump.skipped + jump.again)
    cause, by = _IN_TITLES[first.cause], []
    if "{}" in cause:
        by = [short_who(first.run.change_client_address, first.run.change_client_id)]
    more = len({jump.run.place for jump in jumps}) - 1
    others = f" and {more:,} more" if more else ""
    words = f"{what}: {records:,} of {{}}{others} in group {{}}, {cause}"
    return title_text(words, partition_text(*first.run.place), first.run.group_id or "?", *by)


def cause_text(jumps: list[Jump]) -> str:
    """Why, and who did it; jumps of one key."""
    first = jumps[0]
    run = first.run
    who = who_text(run.change_client_address, run.change_client_id)
    text = _CAUSES[first.cause].format(
        who=who,
        when=moment_text(run.ts_change or run.ts),
        refused=run.out_of_range_offset,
        led_to=run.next_offset_before,
        epoch_end=run.epoch_end_offset,
        epoch_end_at=moment_text(run.ts_epoch_end or run.ts),
    )
    if first.policy and first.cause not in OWN_CHOICE:
        text += f"; it then began by auto.offset.reset={first.policy}"
    return text


def partitions_text(jumps: list[Jump]) -> str:
    """`t-0 from 500 to 900; t-1 ...; and 7 more`: where the group was to go on and where it began, the worst first."""
    worst = sorted(jumps, key=lambda jump: -(jump.skipped + jump.again))
    named = [f"{partition_text(*jump.run.place)} from {jump.stored} to {jump.begins}" for jump in worst[:MAX_NAMED]]
    return "; ".join(named) + (f"; and {len(jumps) - MAX_NAMED} more" if len(jumps) > MAX_NAMED else "")


def numbers_of(jumps: list[Jump]) -> dict[str, Any]:
    """What findings about jumps of one key share: cause, who, by partition, clients."""
    first, runs = jumps[0], [jump.run for jump in jumps]
    changed = first.cause in BY_SOMEBODY
    by = [who_numbers(first.run.change_client_address, first.run.change_client_id)] if changed else []
    return {
        "cause": first.cause,
        "auto_offset_reset": first.policy,
        "changed_by": by[0] if by else None,
        "ts_change": time_text(first.run.ts_change) if changed else None,
        "ts_first": time_text(min(run.ts for run in runs)),
        "ts_last": time_text(max(run.ts for run in runs)),
        "partitions": partition_names(run.place for run in runs),
        "by_partition": [jump.numbers for jump in jumps[:MAX_LISTED]],
        "clients": [*by, *(one for one in reader_numbers(runs) if one not in by)],
    }


def _evidence_before(jumps: list[Jump]) -> tuple[list[Evidence], int | None]:
    """What led to the jumps, and when: the change, else the last commits."""
    first = jumps[0].run
    if jumps[0].cause in BY_SOMEBODY and first.change_exchange_id is not None:
        return [Evidence(None, None, first.change_exchange_id)], first.ts_change
    stored = [jump.run for jump in jumps if jump.run.stored_exchange_id is not None]
    times = [run.ts_stored for run in stored if run.ts_stored is not None]
    return [Evidence(None, None, run.stored_exchange_id) for run in stored], min(times, default=None)


def rows_of_jumps(records: str) -> str:
    """The rows of `kafka_fetch_ranges` that tell of a jump with records, by the column that counts them.

    What a truncated log has behind its end are other records than before: none is read again, and none skipped.
    """
    return f"{records} > 0 AND jump_cause <> 'truncated'"


def _by_cause(jumps: Iterable[Jump]) -> list[list[Jump]]:
    """Jumps of one cause together, causes in order of their first."""
    found: dict[tuple[Any, ...], list[Jump]] = {}
    for jump in jumps:
        found.setdefault(jump.key, []).append(jump)
    return [*found.values()]
