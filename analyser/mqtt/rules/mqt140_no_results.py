"""MQT140 no-results: a worker takes messages and publishes nothing, while its likes publish a result for each.

Finds
    Members of a shared subscription, and clients with their own id in the filter, that get and acknowledge messages and
    never publish, although all others of their kind publish one for each. Question: what does not move although it
    should.

Why it matters
    The server counts the messages as delivered, so they go to nobody else. What the silent member took is lost, and
    it is one job of three or of thirty.

How it decides
    By the fact `mqtt_workers`: the client got at least `got_least` messages and published none from the first one on,
    on any topic. Its likes are the other members of the shared subscription, or clients whose filter is the same but
    for their own id in it. Each of them publishes one result for each message (nine tenths to eleven tenths), all on
    topics of one shape; there are two of them at least (`likes_least`), of a kind without $share twice as many.

False alarms
    A member that is there for another purpose, such as one that only counts.

What it cannot tell
    What the client did with the messages, and whether it writes its results elsewhere.

References
    MQTT 5.0: section 4.8.2 (a message of a shared subscription goes to one member).
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.addresses import server_of, server_text
from wirewitness.analyser.base.times import period_text
from wirewitness.analyser.base.words import count, printable, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof, evidence_of_ids
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.mqtt.rules.mqt139_shared_work_twice import is_one_for_one
from wirewitness.analyser.mqtt.rules.rows import client_numbers, client_text, client_title, short

WORKERS = "mqtt_workers"


def detect(frames: Frames, *, got_least: int = 10, likes_least: int = 2) -> Iterator[Finding]:
    """One finding for each silent client of this kind."""
    kinds: dict[tuple[str | None, str], list[Row]] = {}
    for row in rows_of(frames[WORKERS]):
        if row["share_name"] is not None:
            kinds.setdefault((row["share_name"], row["topic_filter"]), []).append(row)
        elif "<id>" in row["filter_shape"]:
            kinds.setdefault((None, row["filter_shape"]), []).append(row)
    for (share, _), rows in kinds.items():
        silent = [row for row in rows if not row["published"] and row["got"] >= got_least]
        likes = [row for row in rows if row["published"]]
        least = likes_least if share is not None else 2 * likes_least
        if not silent or len(likes) < max(least, 2 * len(silent)):
            continue
        shapes = {row["result_shape"] for row in likes}
        if len(shapes) == 1 and None not in shapes and all(is_one_for_one(row) for row in likes):
            for row in silent:
                yield _finding(row, likes)


def _finding(row: Row, likes: list[Row]) -> Finding:
    wanted, results = printable(row["topic_filter"], 80), printable(likes[0]["result_shape"], 80)
    who = "other member" if row["share_name"] is not None else "other client"
    group = f" of the group {printable(row['share_name'], 60)}" if row["share_name"] is not None else " like it"
    return RULE.finding(
        subject={"server": row["server_address"], "client_id": row["client_id"], "filter": wanted},
        title=f"{client_title(row)} gets messages of {short(wanted)} and publishes no result",
        sentence=(
            f"{sentence_start(client_text(row))} got {count(row['got'], 'message')} of {wanted} from "
            f"{server_text(row)} and published nothing, {period_text(row['ts'], row['ts_last'])}. "
            f"{sentence_start(count(len(likes), who))}{group} got {sum(one['got'] for one in likes):,} and published "
            f"{sum(one['results'] for one in likes):,} results, one for each message, on topics like {results}."
        ),
        next_step="Look at the handler of this client: it takes messages, so they go to no other, and they end there.",
        proof=Proof(
            row["ts"],
            row["ts_last"],
            evidence_of_ids((row["message_id"], row["last_message_id"])),
        ),
        numbers={
            "client_id": row["client_id"],
            "address": row["client_address"],
            "server": server_of(row),
            "got": row["got"],
            "results": 0,
            "records_lost": row["got"],
            "likes": len(likes),
            "share_name": row["share_name"],
            "topic_filters": [wanted],
            "where": wanted,
            "clients": [client_numbers(row, got=row["got"])],
        },
    )


RULE = Rule(
    code="MQT140",
    question="stalled",
    name="no-results",
    severity="warning",
    confidence="medium",
    reads={
        WORKERS: (
            "ts", "ts_last", "client_id", "client_address", "client_port", "version", "topic_filter", "share_name",
            "filter_shape", "got", "published", "result_shape", "results", "message_id", "last_message_id",
            "server_port",
        ),
    },
    partition_by=("server_address",),
    detect=detect,
    suspects=AnyRow(WORKERS, "published = 0 AND got >= 10"),
)  # fmt: skip
