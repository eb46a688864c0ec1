"""KAF134 group-without-members: all members of a group have left, and its topic is written on.

Finds
    Groups that kept up with their topics, whose last member then left or was removed, and to which nobody came back;
    and groups in whose place another one, of a like name or at the same address, began to read further on.

Why it matters
    Lag grows for as long as nobody reads, and no client shows an error: there is none left. After
    offsets.retention.minutes the group's offsets go as well, and retention.ms deletes what it has not read. A group
    that was renamed begins by auto.offset.reset: with latest it never reads what was written in between.

How it decides
    Every membership of the group in the capture has ended. It was no job that reads to the end and stops: on one
    partition `rounds` commits at least were stored close behind the log's end (closer than the log goes on in two of
    its usual gaps between commits). Since its last member was heard of nobody joined, committed or read for it, for
    `away_s` at least, for `gaps` of its usual gaps, and for as long as it had been seen before (a minute is enough): a
    restart is quicker. The log's end went on in that time, as anybody was told.
    Another group that came up since and is there to the end, reads such a topic, and has its name but for a version at
    the end (orders, orders-v2), is in its place: silent where it begins at or below the stored offsets, else that is
    the finding. Several that came up since are the groups of a tool: silent.
    A warning for groups that were there before (a stored offset, a member that joined before the capture) or that had
    two clients at least; else info, for people who look into a topic have a group of their own as well.
    Confidence medium: somebody may want it so. Provisional: a member may come back.

False alarms
    Consumers that are stopped on purpose for longer than that.

What it cannot tell
    Whether a member comes back after the capture. Members at a coordinator that was not captured: their fetches and
    commits show them, where these are in the capture. Of requests alone nothing is said: the log's end stands in
    responses.

References
    Burrow's rules (STOP); offsets.retention.minutes, auto.offset.reset; KEDA minReplicaCount.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from wirewitness.analyser.base.times import NS_PER_S, moment_text, seconds_text, time_text
from wirewitness.analyser.base.titles import first_of
from wirewitness.analyser.base.words import count, names_text, printable, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of, rows_with
from wirewitness.analyser.engine.rules.limits import compared
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.left_groups import GONE, LeftGroup, Place, left_group
from wirewitness.analyser.kafka.rules.names import (
    client_numbers,
    client_text,
    group_text,
    partition_names,
    partition_text,
    title_text,
)

MEMBERS, COMMITS, LOG_ENDS, RUNS = "kafka_members", "kafka_offset_commits", "kafka_log_ends", "kafka_fetch_ranges"
LISTED, STORED = "kafka_list_offsets", "kafka_offset_fetches"
# What names of one application have at their end, and other digits are random.
_VERSION = re.compile(r"([-_.]?v?\d{1,2}|[-_.](new|old|next|copy|blue|green|canary))$", re.IGNORECASE)
_MOST = 20
_Client = tuple[str | None, str | None]


def detect(frames: Frames, *, rounds: int = 5, gaps: float = 10.0, away_s: float = 20.0) -> Iterator[Finding]:
    """One finding for each group."""
    members = _by_group(rows_of(frames[MEMBERS]))
    ends: dict[Place, list[Row]] = {}
    for row in rows_of(frames[LOG_ENDS]):
        ends.setdefault((row["topic"], row["partition"]), []).append(row)
    for group, own in members.items():
        if group is None or any(row["ended"] not in GONE for row in own):
            continue
        left = left_group(own, rows_with(frames[COMMITS], "group_id", group), ends, rounds, gaps, away_s)
        if left is None or any(row["ts_last"] > left.since for row in rows_with(frames[RUNS], "group_id", group)):
            continue
        instead = _instead(group, left, members, frames)
        if not instead:
            yield _empty(left, lasting=_is_lasting(left, rows_with(frames[STORED], "group_id", group)))
        elif len(instead) == 1 and (skipped := _skipped(left, instead[0])):
            yield _renamed(left, instead[0], skipped)


def _listed(frames: Frames) -> dict[_Client, list[Row]]:
    """Where a client was told that the log ends, as the first run of its reading is told: it begins there."""
    found: dict[_Client, list[Row]] = {}
    for row in rows_of(frames[LISTED]):
        found.setdefault(_client(row), []).append({**row, "first_offset": row["offset"]})
    return found


def _client(row: Row) -> _Client:
    return row["client_address"], row["client_id"]


def _by_group(rows: Iterable[Row]) -> dict[str | None, list[Row]]:
    found: dict[str | None, list[Row]] = {}
    for row in rows:
        found.setdefault(row["group_id"], []).append(row)
    return found


def _instead(
    group: str,
    left: LeftGroup,
    members: Mapping[str | None, list[Row]],
    frames: Frames,
) -> list[list[Row]]:
    """What groups that came up in its place begin to read: the first run of each partition; empty where not known."""
    topics, found, listed = {topic for topic, _ in left.stored}, [], _listed(frames)
    begun = min(row["ts"] for row in left.members)
    compared(len(members))
    for name, others in members.items():
        since = min(row["ts"] for row in others)
        if name is None or name == group or since <= max(begun, left.since - _grace(left)):
            continue
        if _stem(name) != _stem(group):
            continue
        told = [row for one in others for row in listed.get(_client(one), ()) if row["ts"] >= since]
        known = [{**row, "group_id": name} for row in (rows_with(frames[RUNS], "group_id", name) or told)]
        reads = [row for row in known if row["topic"] in topics]
        may_read = not known or any(row["topic"] is None or row["topic"] in topics for row in known)
        if may_read:
            found.append(list({(row["topic"], row["partition"]): row for row in reversed(reads)}.values()))
    return found


def _stem(name: str) -> str:
    return _VERSION.sub("", name)


def _is_lasting(left: LeftGroup, stored: Sequence[Row]) -> bool:
    """It was there before the capture, or is a service of several clients."""
    return (
        any(row["ts"] < left.committed_ns for row in stored)
        or any(row["ts_joined"] is None for row in left.members)
        or len({_client(row) for row in left.members}) > 1
    )


def _grace(left: LeftGroup) -> int:
    """A successor may start somewhat before the last one of the old group leaves."""
    return (left.until - left.since) // 2


def _skipped(left: LeftGroup, instead: Sequence[Row]) -> list[tuple[Row, int]]:
    found = []
    for row in instead:
        stored = left.stored.get((row["topic"], row["partition"]))
        if stored is not None and row["first_offset"] is not None and row["first_offset"] > stored:
            found.append((row, row["first_offset"] - stored))
    return found


def _who_left(left: LeftGroup) -> str:
    own = {(row["client_address"], row["client_id"]): row for row in left.members}
    return names_text([client_text(row) for row in own.values()], 3)


def _empty(left: LeftGroup, *, lasting: bool) -> Finding:
    first, waiting = left.members[0], sum(left.waiting.values())
    group = group_text(first["group_id"])
    away = seconds_text(left.until - left.since)
    listed = [partition_text(*place) for place in sorted(left.waiting, key=left.waiting.__getitem__, reverse=True)]
    return RULE.finding(
        severity="warning" if lasting else "info",
        provisional=True,
        title=title_text(f"No member for {away}, {count(waiting, 'record')} unread: {{}}", group),
        subject={"cluster": first["cluster_id"], "group": first["group_id"]},
        sentence=f"{sentence_start(group)} has had no member since {moment_text(left.since)}, for {away}, and nobody "
        f"reads for it: {_who_left(left)} left. Its topics are written on: {count(waiting, 'record')} wait in "
        f"{names_text(listed, 3)}. Before, it committed every {seconds_text(round(left.usual))} and kept up.",
        next_step="Start a member again: look at the deployment's replicas and its autoscaler (it must not go to none "
        "while there is lag), and at the logs of those that left.",
        proof=_proof(left),
        numbers={
            **_numbers(left),
            "group": first["group_id"],
            "records_behind": waiting,
            "partitions": partition_names(left.waiting)[:_MOST],
            "clients": _clients(left.members),
        },
    )


def _renamed(left: LeftGroup, instead: Sequence[Row], skipped: Sequence[tuple[Row, int]]) -> Finding:
    old, new = left.members[0], instead[0]
    records = sum(number for _, number in skipped)
    worst, number = max(skipped, key=lambda one: one[1])
    stored = left.stored[worst["topic"], worst["partition"]]
    names = group_text(new["group_id"]), f"the group {printable(str(old['group_id']), 120)}"
    return RULE.finding(
        title=title_text(
            f"{count(records, 'record')} of {first_of([worst['topic'] or '?'])} read by neither group: {{}}", names[0]
        ),
        subject={"cluster": new["cluster_id"], "group": new["group_id"], "before": old["group_id"]},
        sentence=f"{sentence_start(names[0])} ({client_text(new)}) reads in the place of {names[1]}, whose members "
        f"left at {moment_text(left.since)}, and begins further on: at {worst['first_offset']} of "
        f"{partition_text(worst['topic'], worst['partition'])}, where {stored} was stored. "
        f"{count(records, 'record')} in {count(len(skipped), 'partition')} were not read by either.",
        next_step="Stop it, set its offsets to those of the old group (kafka-consumer-groups.sh --reset-offsets "
        "--from-file of an --export), and start it again; or let it begin with auto.offset.reset=earliest.",
        proof=_proof(left),
        numbers={
            **_numbers(left),
            "group": new["group_id"],
            "group_before": old["group_id"],
            "records_skipped": records,
            "largest_skip": number,
            "partitions": partition_names((row["topic"], row["partition"]) for row, _ in skipped)[:_MOST],
            "clients": _clients(instead),
        },
    )


def _proof(left: LeftGroup) -> Proof:
    last = [row for row in left.members if row["last_exchange_id"]]
    return Proof(left.since, left.until, [Evidence(None, None, row["last_exchange_id"]) for row in last[-_MOST:]])


def _numbers(left: LeftGroup) -> Row:
    return {
        "cluster": left.members[0]["cluster_id"],
        "seconds": round((left.until - left.since) / NS_PER_S, 3),
        "usual_seconds": round(left.usual / NS_PER_S, 3),
        "since": time_text(left.since),
        "until": time_text(left.until),
    }


def _clients(rows: Iterable[Row]) -> list[Row]:
    return [client_numbers(row) for row in {(row["client_address"], row["client_id"]): row for row in rows}.values()]


_LEFT_GROUPS = f"""
    SELECT cluster_id, group_id FROM {MEMBERS} WHERE group_id IS NOT NULL GROUP BY cluster_id, group_id
    HAVING bool_and(coalesce(ended, '') IN {GONE})"""
RULE = Rule(
    code="KAF134",
    question="stalled",
    name="group-without-members",
    severity="warning",
    confidence="medium",
    reads={
        MEMBERS: (
            "ts", "ts_joined", "ts_last", "ts_ended", "ended", "group_id", "client_id", "client_address",
            "last_exchange_id",
        ),
        COMMITS: ("ts", "group_id", "topic", "partition", "committed_offset", "log_end_offset"),
        LOG_ENDS: ("ts", "ts_last", "topic", "partition", "log_end_offset"),
        RUNS: ("ts", "ts_last", "group_id", "topic", "partition", "client_id", "client_address", "first_offset"),
        LISTED: ("ts", "topic", "partition", "client_id", "client_address", "offset"),
        STORED: ("ts", "group_id"),
    },
    partition_by=("cluster_id",),
    detect=detect,
    rows={
        COMMITS: f"""
            error_code = 0 AND committed_offset >= 0 AND (coalesce(cluster_id, ''), group_id) IN (
                SELECT coalesce(cluster_id, ''), group_id FROM ({_LEFT_GROUPS}))""",
        LOG_ENDS: "log_end_offset IS NOT NULL",
        RUNS: "group_id IS NOT NULL",
        STORED: "error_code = 0 AND committed_offset >= 0 AND group_id IS NOT NULL",
        LISTED: "timestamp = -1 AND error_code = 0 AND coalesce(replica_id, -1) < 0",
    },
    suspects=f"SELECT DISTINCT cluster_id FROM ({_LEFT_GROUPS.replace(MEMBERS, f'r_{MEMBERS}')})",
)  # fmt: skip
