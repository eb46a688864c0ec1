"""KAF316 topic-recreated: a topic was deleted and made again under its old name.

Finds
    A topic name that gets another topic id, with consumers or producers that were at work on the old one.

Why it matters
    The new topic is empty and its offsets begin at 0. Consumers keep their old positions: where these are beyond the
    new end they are reset (auto.offset.reset), where they are not they skip what lies before. What was not read of the
    old topic is gone, and so is what producers could not write between. Lag and stored offsets of the group mean the
    old topic until the group commits again.

How it decides
    Metadata and CreateTopics tell two ids of one name, one behind the other. Who deleted and who made it stands in
    their requests. A reader's unread rest is the highest end of the log that it was told, less the offset that its last
    answer led to; on the new topic it skips what lies between the log's start and its first offset.
    critical when records were not read, skipped or not stored, a warning when readers or writers were there and lost
    nothing, else info.
    Confidence high: ids are on the wire.

False alarms
    Two clusters that the capture does not tell apart and that have a topic of one name: then the ids alternate, which
    is left out.

What it cannot tell
    That a topic was made anew, where no Metadata or CreateTopics of before tells its old id. What was written to
    the old one and is beyond every end that an answer told is in no count.

References
    KIP-516 (topic ids), KIP-320.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from wirewitness.analyser.base.severity import Severity
from wirewitness.analyser.base.times import clock_text, seconds_text, time_text
from wirewitness.analyser.base.titles import short
from wirewitness.analyser.base.words import count, names_text, printable, shown
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.limits import compared
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.names import client_numbers, client_text, group_text, partition_names
from wirewitness.analyser.kafka.rules.producers import REFUSED, batches_of, evidence_of, records_in

TOLD, RUNS = "kafka_partitions", "kafka_fetch_ranges"
KEYS = ("cluster_id", "topic")


class _Life(NamedTuple):
    """One id of the topic: rows that tell it, in the order of time."""

    topic_id: str
    rows: list[Row]


class _Readers(NamedTuple):
    """What the change of ids did to readers. unread: of the old topic; skipped: of the new one."""

    runs: list[Row]
    unread: int
    skipped: int


def detect(frames: Frames, *, ids_least: int = 2) -> Iterator[Finding]:
    """One finding for each time that the topic was made again; it must have had `ids_least` ids."""
    lives = _lives(rows_of(frames[TOLD]))
    if len(lives) < ids_least:
        return
    runs, refused = rows_of(frames[RUNS]), rows_of(frames[REFUSED])
    for old, new in pairwise(lives):
        if old.rows[-1]["ts"] <= new.rows[0]["ts"]:
            between = [row for row in refused if old.rows[0]["ts"] <= row["ts"] and _is_lost(row)]
            yield _finding(old, new, _readers(new, runs), batches_of(between))


def _is_lost(row: Row) -> bool:
    """Batches without a sequence are put together anew before they are sent again: nobody knows what became of them."""
    return row["ts_stored"] is None and row["base_sequence"] is not None and row["base_sequence"] >= 0


def _lives(rows: Sequence[Row]) -> list[_Life]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row["topic_id"], []).append(row)
    return [_Life(topic_id, own) for topic_id, own in found.items()]


def _readers(new: _Life, runs: Sequence[Row]) -> _Readers:
    """Runs that go on with the new id behind reads of the old one."""
    compared(len(runs))
    again = [run for run in runs if run["topic_id"] == new.topic_id and run["ts_before"] is not None]
    firsts = {(run["client_address"], run["client_id"], run["partition"]): run for run in reversed(again)}
    ends = {run["partition"]: 0 for run in firsts.values()}
    reached = dict(ends)
    for run in runs:
        if run["partition"] in ends and run["topic_id"] not in (new.topic_id, None):
            ends[run["partition"]] = max(ends[run["partition"]], run["log_end_offset"] or 0)
            reached[run["partition"]] = max(reached[run["partition"]], run["next_offset"] or 0)
    unread = sum(max(0, end - reached[partition]) for partition, end in ends.items())
    skipped = sum(max(0, (run["first_offset"] or 0) - (run["log_start_offset"] or 0)) for run in firsts.values())
    return _Readers(list(firsts.values()), unread, skipped)


def _finding(old: _Life, new: _Life, readers: _Readers, refused: Sequence[Row]) -> Finding:
    first, made = old.rows[0], new.rows[0]
    deleted = next((run for run in readers.runs if run["change"] == "topic deleted"), None)
    maker = next((row for row in new.rows if row["source"] == "CreateTopics"), None)
    since = deleted["ts_change"] if deleted else old.rows[-1]["ts"]
    lost = readers.unread + readers.skipped + records_in(refused)
    severity: Severity = "critical" if lost else "warning" if readers.runs or refused else "info"
    culprits = [_by(deleted)] if deleted else []
    culprits += [client_numbers(maker)] if maker else []
    culprit = culprits[0] if culprits else {"address": None, "client_id": None}
    groups = sorted({run["group_id"] for run in readers.runs if run["group_id"]})
    key = {"cluster": made["cluster_id"], "topic": made["topic"], "topic_id": new.topic_id}
    return RULE.finding(
        severity=severity,
        subject=key,
        title=_title(made["topic"], culprits, lost),
        sentence=_sentence(new, deleted, maker, since) + _cost(readers, refused),
        next_step=(
            "Set the positions of these groups by hand before they go on (kafka-consumer-groups.sh --reset-offsets "
            "--to-earliest), and restart producers and consumers that go on with old ids. Delete records "
            "(kafka-delete-records.sh, retention.ms) instead of the topic."
        ),
        proof=Proof(first["ts"], made["ts"], evidence_of([*old.rows[-3:], *([maker] if maker else []), *new.rows[:3]])),
        numbers={
            **key,
            "old_topic_id": old.topic_id,
            "address": culprit["address"],
            "client_id": culprit["client_id"],
            "clients": list({(one["address"], one["client_id"]): one for one in culprits}.values()),
            "victims": _victims([*readers.runs, *refused]),
            "group": groups[0] if len(groups) == 1 else None,
            "groups": groups,
            "partitions": partition_names((made["topic"], row["partition"]) for row in [*readers.runs, *refused]),
            "where": made["topic"],
            "since": time_text(since),
            "until": time_text(made["ts"]),
            "records_unread": readers.unread,
            "records_skipped": readers.skipped,
            "records_not_stored": records_in(refused),
            "records_lost": lost,
        },
    )  # fmt: skip


def _by(run: Row) -> Row:
    return {"address": run["change_client_address"], "client_id": run["change_client_id"]}


def _victims(rows: Sequence[Row]) -> list[Row]:
    found = {(row["client_address"], row["client_id"]): row for row in rows}
    return [client_numbers(row, member_id=row.get("member_id")) for row in found.values()][:20]


def _sentence(new: _Life, deleted: Row | None, maker: Row | None, since: int) -> str:
    topic = printable(new.rows[0]["topic"], 120)
    again = f"made again, seen from {clock_text(new.rows[0]['ts'])} on"
    if maker:
        again = f"made again {seconds_text(max(0, maker['ts'] - since))} later by {client_text(maker)}"
    if not deleted:
        return f"Topic {topic} was deleted after {clock_text(since)} and {again}: its id is another one."
    who = {"client_id": deleted["change_client_id"], "client_address": deleted["change_client_address"]}
    return f"Topic {topic} was deleted at {clock_text(since)} by {client_text(who)} and {again}."


def _title(topic: str | None, culprits: Sequence[Row], lost: int) -> str:
    by = f" by {short(culprits[0]['client_id'] or culprits[0]['address'])}" if culprits else ""
    return f"Topic {short(topic)} deleted and made again{by}{f': {lost:,} records lost' if lost else ''}"


def _cost(readers: _Readers, refused: Sequence[Row]) -> str:
    text = ""
    for run in readers.runs[:2]:
        had = run["next_offset_before"] if run["next_offset_before"] is not None else run["fetch_offset_before"]
        text += (
            f" {group_text(run['group_id'])} ({client_text(run)}) goes on at offset {shown(run['first_offset'])} of "
            f"partition {run['partition']}, where it had come to {shown(had)} before."
        )
    if len(readers.runs) > 2:
        text += f" So do {len(readers.runs) - 2} more."
    parts = [f"{count(readers.unread, 'record')} of the old topic never read"] if readers.unread else []
    parts += [f"{count(readers.skipped, 'record')} of the new one skipped"] if readers.skipped else []
    if refused:
        writers = names_text(sorted({client_text(row) for row in refused}), 3)
        parts.append(f"{count(records_in(refused), 'record')} of {writers} refused and not stored")
    return f"{text} Lost: {', '.join(parts)}." if parts else text


RULE = Rule(
    code="KAF316",
    question="went back",
    name="topic-recreated",
    severity="critical",
    confidence="high",
    reads={
        TOLD: ("ts", "exchange_id", "topic_id", "source", "client_id", "client_address", "file", "request_packet"),
        RUNS: (
            "ts", "exchange_id", "group_id", "member_id", "client_id", "client_address", "topic_id", "partition",
            "first_offset", "next_offset", "log_start_offset", "log_end_offset", "ts_before", "fetch_offset_before",
            "next_offset_before", "ts_change", "change", "change_client_id", "change_client_address",
        ),
        REFUSED: (
            "ts", "exchange_id", "client_id", "client_address", "partition", "records_count", "batch_bytes",
            "base_timestamp", "producer_id", "producer_epoch", "base_sequence", "error_code", "ts_stored",
        ),
    },
    partition_by=KEYS,
    detect=detect,
    rows={TOLD: "topic IS NOT NULL AND topic_id IS NOT NULL", REFUSED: "error_code IN (3, 100)"},
    suspects=f"SELECT cluster_id, topic FROM r_{TOLD} GROUP BY cluster_id, topic HAVING count(DISTINCT topic_id) > 1",
)  # fmt: skip
