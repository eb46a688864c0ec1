"""KAF216 content-changed: a producer writes another kind of values than before, or than the other writers of its topic.

Finds
    Producers whose values or keys changed for good from one batch to the next: JSON instead of records with a schema's
    id, nulls instead of values, no keys where all had one; and a writer without a schema's id in a topic where all
    others have one.

Why it matters
    The broker takes any bytes. Readers fail at the first such record, or take it for something else; nulls delete what
    a compacted topic holds, and records without keys lose their order and are not compacted at all.

How it decides
    By the fact `kafka_topic_writers`, of what the first records of batches are: `least` batches of one kind, then one
    change, then `least` of another kind up to the end. The same between two addresses with one client id, where the
    one begins later: a deployment. Whoever goes to and fro writes both on purpose. Without a change only a schema's id
    is compared: all others of the topic, two at least, have it, or none of them has.
    Confidence medium: a migration may be meant.

False alarms
    A migration of a topic to another format, which all of its readers know.

What it cannot tell
    Compressed batches do not show their records here. Of later records of a batch nothing is said. That the format is
    the right one for its schema is not looked at.

References
    Kafka message format, KIP-98; the wire format of schema registries (a zero byte, four bytes of the schema's id);
    cleanup.policy=compact.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from wirewitness.analyser.base.times import moment_text, time_text
from wirewitness.analyser.base.titles import client_title, first_of
from wirewitness.analyser.base.words import count, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof, evidence_of_ids
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.names import client_numbers, client_text
from wirewitness.analyser.kafka.rules.producers import topic_keys, topic_subject, topic_text

WRITERS = "kafka_topic_writers"
_LEAST = 20
_SCHEMA = "schema_id"
# How sentences call values of each kind.
_VALUES = {
    "null": "nulls",
    "empty": "empty values",
    "json": "JSON",
    "json_cut": "JSON that is cut off",
    "schema_id": "values with a schema's id",
    "text": "text",
    "binary": "binary values",
}
_KEYS = {True: "records with keys", False: "records without keys"}


def detect(frames: Frames, *, least: int = _LEAST) -> Iterator[Finding]:
    """One finding for each client whose content changed, or differs from that of all others of the topic."""
    rows = [row for row in rows_of(frames[WRITERS]) if row["known_count"] >= least]
    changed = [*_within(rows, least), *_between(rows)]
    yield from changed
    if not changed:
        yield from _beside(rows)


def _within(rows: list[Row], least: int) -> Iterator[Finding]:
    """Those that changed once."""
    for row in rows:
        for what, words in (("kind", _VALUES), ("key", _KEYS)):
            names = ("first_kind", "last_kind") if what == "kind" else ("first_keyed", "last_keyed")
            turn = [row[f"{what}_after"], row[f"ts_{what}_turned"], *(row[name] for name in names)]
            if row[f"{what}_turns"] != 1 or None in turn:
                continue
            after = row[f"{what}_after"]
            if min(after, row["known_count"] - after) < least:
                continue
            old, new = (words[row[name]] for name in names)
            same = [one for one in rows if one is not row and one[names[0]] == one[names[1]] == row[names[0]]]
            yield _finding(
                row,
                what="values" if what == "kind" else "keys",
                title=f"{sentence_start(new)} instead of {old} in {first_of([topic_text(row)])}: {client_title(row)}",
                sentence=f"{sentence_start(client_text(row))} wrote {old} to {topic_text(row)}, "
                f"{count(row['known_count'] - after, 'batch', 'batches')}, and since "
                f"{moment_text(row[f'ts_{what}_turned'])} only {new}: {count(after, 'batch', 'batches')}. "
                f"{_others(same, old)}",
                since=row[f"ts_{what}_turned"],
                exchange=row[f"{what}_turned_exchange_id"],
                old=old,
                new=new,
            )


def _between(rows: list[Row]) -> Iterator[Finding]:
    """Client ids of which a later address writes what the earlier one did not."""
    by_client: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if None not in (row["client_id"], row["client_address"], row["first_kind"]) and row["kind_turns"] == 0:
            by_client[row["client_id"]].append(row)
    for own in by_client.values():
        own.sort(key=lambda row: row["ts"])
        for before, row in pairwise(own):
            old, new = _VALUES[before["first_kind"]], _VALUES[row["first_kind"]]
            if old == new:
                continue
            yield _finding(
                row,
                what="values",
                title=f"{sentence_start(new)} instead of {old} in {first_of([topic_text(row)])}: {client_title(row)}",
                sentence=f"{sentence_start(client_text(row))} writes {new} to {topic_text(row)} since "
                f"{moment_text(row['ts'])}, {count(row['known_count'], 'batch', 'batches')}; the same client id at "
                f"{before['client_address']}, which began before, writes {old}.",
                since=row["ts"],
                exchange=row["exchange_id"],
                old=old,
                new=new,
            )


def _beside(rows: list[Row]) -> Iterator[Finding]:
    """The one that has no schema's id where all others have one, or the other way round."""
    steady = [row for row in rows if row["kind_turns"] == 0 and row["first_kind"] not in (None, "null")]
    framed = [row for row in steady if row["first_kind"] == _SCHEMA]
    plain = [row for row in steady if row["first_kind"] != _SCHEMA]
    for few, many in ((framed, plain), (plain, framed)):
        if len(few) == 1 and len(many) > 1 and len(few) + len(many) == len(rows):
            (row,) = few
            old, new = _VALUES[many[0]["first_kind"]], _VALUES[row["first_kind"]]
            yield _finding(
                row,
                what="values",
                title=f"{sentence_start(new)} among {old} in {first_of([topic_text(row)])}: {client_title(row)}",
                sentence=f"{sentence_start(client_text(row))} writes {new} to {topic_text(row)}, "
                f"{count(row['known_count'], 'batch', 'batches')}; its {len(many)} other writers write {old}.",
                since=row["ts"],
                exchange=row["exchange_id"],
                old=old,
                new=new,
            )


def _others(same: list[Row], old: str) -> str:
    return (
        f"{count(len(same), 'other writer')} of it still {'writes' if len(same) == 1 else 'write'} {old}."
        if same
        else ""
    )


def _finding(
    row: Row, *, what: str, title: str, sentence: str, since: int, exchange: str, old: str, new: str
) -> Finding:
    return RULE.finding(
        title=title,
        subject={**topic_subject(row), "what": what},
        sentence=sentence.rstrip(),
        next_step="Look what was deployed or set at that time (serializer, schema, key), and whether its readers know "
        "the new form; if not, stop it first: what is in the log stays there.",
        proof=Proof(row["ts"], row["ts_last"], evidence_of_ids((exchange, row["last_exchange_id"]))),
        numbers={
            **topic_keys(row),
            "where": row["topic"],
            "what": what,
            "before": old,
            "after": new,
            "batches": row["known_count"],
            "since": time_text(since),
            "clients": [client_numbers(row)],
        },
    )


RULE = Rule(
    code="KAF216",
    question="differs",
    name="content-changed",
    severity="warning",
    confidence="medium",
    reads={
        WRITERS: (
            "ts", "ts_last", "exchange_id", "client_id", "client_address", "known_count", "first_kind", "last_kind",
            "kind_turns", "ts_kind_turned", "kind_after", "kind_turned_exchange_id", "first_keyed", "last_keyed",
            "key_turns", "ts_key_turned", "key_after", "key_turned_exchange_id", "last_exchange_id",
        ),
    },
    partition_by=("cluster_id", "topic"),
    detect=detect,
    rows={WRITERS: f"known_count >= {_LEAST}"},
    suspects=(
        f"SELECT cluster_id, topic FROM r_{WRITERS} GROUP BY cluster_id, topic "
        "HAVING bool_or(kind_turns = 1 OR key_turns = 1) OR count(DISTINCT first_kind) > 1"
    ),
)  # fmt: skip
