"""KAF313 unknown-name-loop: a client asks again and again for a topic that does not exist.

Finds
    Clients whose Metadata requests get UNKNOWN_TOPIC_OR_PARTITION (3) or INVALID_TOPIC_EXCEPTION (17)
    over and over, and the existing topic whose name is nearest.

Why it matters
    A misspelt name (or a topic of another cluster) looks like an idle application: producers block for max.block.ms and
    throw, consumers wait for ever.

How it decides
    Five such answers or more (answers_least) to one client id, about a topic that no answer in the capture shows later
    than the first of them. A topic that is being made is known after one or two.

False alarms
    A program that waits for a topic to be made by another one.

What it cannot tell
    Which name was meant: the nearest one is a guess, among the names that the capture holds. Whether the topic ever
    existed.

References
    Kafka Errors; auto.create.topics.enable, allow.auto.create.topics.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from wirewitness.analyser.base.addresses import server_of, server_text
from wirewitness.analyser.base.near_names import NearNames
from wirewitness.analyser.base.times import period_text
from wirewitness.analyser.base.titles import client_title, first_of
from wirewitness.analyser.base.words import count, names_text, printable, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.connections import client_keys, client_subject
from wirewitness.analyser.kafka.rules.names import MAX_NAME, client_numbers, client_text

PARTITIONS = "kafka_partitions"
# Tables that name topics; of those with many rows, one row for each topic.
NAMING = ("kafka_assignments", "kafka_produce_batches", "kafka_offset_commits")
UNKNOWN = {3: "UNKNOWN_TOPIC_OR_PARTITION", 17: "INVALID_TOPIC_EXCEPTION"}
_MOST_NAMES = 20


def detect(frames: Frames, *, answers_least: int = 5) -> Iterator[Finding]:
    """One finding per client (address and client id)."""
    known: dict[str, int] = {}
    missing: dict[str, set[str]] = {}
    for table in (PARTITIONS, *NAMING):
        for row in rows_of(frames[table]):
            if not row["topic"]:
                continue
            if row.get("error_code") in UNKNOWN:
                missing.setdefault(row["flow_id"], set()).add(row["topic"])
            elif not row.get("error_code"):
                known[row["topic"]] = max(known.get(row["topic"], 0), row["ts"])
    near_names = NearNames()
    answers: dict[tuple[str | None, str | None], list[Row]] = {}
    for row in rows_of(frames["exchanges"]):
        answers.setdefault((row["client_address"], row["client_id"]), []).append(row)
    for own in answers.values():
        named = {topic for flow in {row["flow_id"] for row in own} for topic in missing.get(flow, ())}
        names = sorted(topic for topic in named if known.get(topic, 0) < own[0]["ts"])
        if len(own) >= answers_least and names:
            there = sorted(topic for topic in known if topic not in named)
            near = {name: near_names.nearest(name, there, 0.7) for name in names[:_MOST_NAMES]}
            yield _finding(own, names, near)


def _finding(own: Sequence[Row], names: Sequence[str], near: Mapping[str, str | None]) -> Finding:
    first, last = own[0], own[-1]
    hints = [printable(other, MAX_NAME) for other in near.values() if other is not None]
    hint = f" A topic named {names_text(sorted(set(hints)), 3)} exists." if hints else ""
    shown = names_text([printable(name, MAX_NAME) for name in names], 3)
    topics = f"topic {shown}, which does" if len(names) == 1 else f"topics {shown}, which do"
    error = f"{first['error_code']} ({UNKNOWN[first['error_code']]})"
    return RULE.finding(
        provisional=True,
        title=(
            f"Topic{'s' if len(names) > 1 else ''} {first_of(names)} {'do' if len(names) > 1 else 'does'} not exist: "
            f"{count(len(own), 'request')} of {client_title(first)}"
        ),
        subject={**client_subject(first), "topic": names[0]},
        sentence=(
            f"{sentence_start(client_text(first))} asks {server_text(first)} for {topics} not exist: "
            f"{count(len(own), 'response')} with error {error}, {period_text(first['ts'], last['ts'])}.{hint}"
        ),
        next_step=(
            "Correct the name in the application's settings, or make the topic (kafka-topics.sh --create); look also "
            "whether bootstrap.servers names the cluster that is meant."
        ),
        proof=Proof(
            first["ts"], last["ts_response"] or last["ts"],
            (Evidence(row["request_file"], row["request_packet"], row["request_message_id"]) for row in own),
        ),
        numbers={
            **client_keys(first),
            "topic": names[0],
            "topics": list(names[:_MOST_NAMES]),
            "nearest": {name: other[0] for name, other in near.items() if other},
            "answers": len(own),
            "error_code": first["error_code"],
            "server": server_of(first),
            "clients": [client_numbers(first, answers=len(own))],
        },
    )  # fmt: skip


RULE = Rule(
    code="KAF313",
    question="refused",
    name="unknown-name-loop",
    severity="warning",
    confidence="high",
    reads={
        "exchanges": (
            "ts", "ts_response", "flow_id", "client_id", "client_address", "server_address", "server_port",
            "error_code", "request_file", "request_packet", "request_message_id",
        ),
        PARTITIONS: ("ts", "flow_id", "topic", "error_code"),
        **dict.fromkeys(NAMING, ("ts", "topic")),
    },
    partition_by=("cluster_id",),
    detect=detect,
    rows={
        "exchanges": f"protocol = 'kafka' AND operation = 'Metadata' AND error_code IN {tuple(UNKNOWN)}",
        PARTITIONS: f"coalesce(partition, 0) = 0 OR error_code IN {tuple(UNKNOWN)}",
        **{
            table: f"exchange_id IN (SELECT max(exchange_id) FROM {table} WHERE topic IS NOT NULL "
            "GROUP BY cluster_id, topic)"
            for table in NAMING
        },
    },
    suspects="SELECT cluster_id FROM r_exchanges GROUP BY ALL HAVING count(*) >= 5",
)  # fmt: skip
