"""MQT155 no-correlation: a client answers requests without the correlation data that they carry.

Finds
    Clients that publish on the response topic of requests (5.0) and leave out the correlation data, although each
    request has it. Question: whose content differs.

Why it matters
    Who asked tells by the correlation data which question an answer belongs to. An answer without it is thrown away:
    the question waits for its timeout and is asked again, although every packet was delivered and acknowledged.

How it decides
    By the fact `mqtt_answers`: the client answered at least `answers_least` requests, all of which had correlation
    data, and nine tenths (share) of its answers have none. The request counts as the server delivered it, so that a
    server that drops the property is not held against the client. It is a warning where another client that got
    requests of this kind gives it back as often (share); else info, since a requester with one question at a time
    needs none.

False alarms
    A requester that puts what it needs into the payload and sends correlation data for other readers.

What it cannot tell
    Whether correlation data that is there is the right one: its size is stored, not its value.

References
    MQTT 5.0: section 4.10 (request / response), 3.3.2.3.5 (response topic), 3.3.2.3.6 (correlation data).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wirewitness.analyser.base.addresses import server_of
from wirewitness.analyser.base.times import period_text
from wirewitness.analyser.base.words import count, printable, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof, evidence_of_ids
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.mqtt.rules.rows import client_numbers, client_text, client_title, short

ANSWERS = "mqtt_answers"


def detect(frames: Frames, *, answers_least: int = 5, share: float = 0.9) -> Iterator[Finding]:
    """One finding for each client and kind of requests at this server."""
    kinds: dict[str, list[Row]] = {}
    for row in rows_of(frames[ANSWERS]):
        kinds.setdefault(row["shape"], []).append(row)
    for rows in kinds.values():
        likes = [row for row in rows if row["without_correlation"] <= (1 - share) * row["answers"]]
        for row in rows:
            if row["answers"] >= answers_least and row["without_correlation"] >= share * row["answers"]:
                yield _finding(row, likes)


def _finding(row: Row, likes: Sequence[Row]) -> Finding:
    wanted, answered = printable(row["topic"], 80), printable(row["response_topic"], 80)
    again = f" {row['asked_again']:,} of the requests were asked again." if row["asked_again"] else ""
    unlike = ""
    if likes:
        kept = sum(one["answers"] - one["without_correlation"] for one in likes)
        repeated = sum(one["asked_again"] for one in likes)
        asked = sum(one["requests"] for one in likes)
        unlike = (
            f" {sentence_start(count(len(likes), 'other client'))} that got requests of this kind sent {kept:,} "
            f"answers with it; {repeated:,} of {asked:,} were asked again."
        )
    return RULE.finding(
        severity="warning" if likes else "info",
        subject={"server": row["server_address"], "client_id": row["client_id"], "topic": wanted},
        title=f"Answers without correlation data: {client_title(row)} to requests on {short(row['topic'])}",
        sentence=(
            f"{sentence_start(client_text(row))} answered requests on {wanted} without their correlation data, "
            f"{row['without_correlation']:,} times of {row['answers']:,}, {period_text(row['ts'], row['ts_last'])}: "
            f"who asked cannot tell to which request an answer on {answered} belongs.{again}{unlike}"
        ),
        next_step="Let this client copy the correlation data of a request into its answer (MQTT 5.0, section 4.10).",
        proof=Proof(
            row["ts"],
            row["ts_last"],
            evidence_of_ids(row[one] for one in ("message_id", "answer_message_id", "last_message_id")),
        ),
        numbers={
            "client_id": row["client_id"],
            "address": row["client_address"],
            "server": server_of(row),
            "requests": row["requests"],
            "answers": row["answers"],
            "without_correlation": row["without_correlation"],
            "breaches": row["without_correlation"],
            "asked_again": row["asked_again"],
            "likes": len(likes),
            "topics": [wanted, answered],
            "where": wanted,
            "clients": [client_numbers(row)],
        },
    )


RULE = Rule(
    code="MQT155",
    question="differs",
    name="no-correlation",
    severity="warning",
    confidence="medium",
    reads={
        ANSWERS: (
            "ts", "ts_last", "client_id", "client_address", "client_port", "version", "shape", "topic",
            "response_topic", "requests", "asked_again", "answers", "without_correlation", "message_id",
            "answer_message_id", "last_message_id", "server_port",
        ),
    },
    partition_by=("server_address",),
    detect=detect,
    suspects=AnyRow(ANSWERS, "without_correlation >= 5"),
)  # fmt: skip
