"""MQT123 bloat: the same thing is sent far more often than anybody needs it.

Finds
    Publishers that send one unchanged payload at a high rate, and subscribers that get each message several times
    because their filters overlap.

Why it matters
    Every copy is sent to every subscriber, and may be stored for each. A sensor that reports an unchanged value a
    hundred times a second, or two filters that match the same topics, fill links, queues and databases with nothing.

How it decides
    One client publishes the same topic and payload at 50 a second (rate_least) over 10 s (window_s) or more. Or a
    subscriber, two of whose own filters match a topic, gets the same message again within 20 ms (again_within_ms),
    20 times (copies_least) and for a tenth of its messages at least; a server that joins overlapping filters sends one
    copy. A message that always comes so close upon the last one with its content is a value that is published often,
    no copy. Where the publishers are in the capture, too, mqtt_deliveries tells which publish each message is, and
    counts its copies (mqtt_deliveries.copies) whatever the time between them; more copies of one publish than filters
    match are none, but messages of somebody who is not in the capture.

False alarms
    A heartbeat whose rate is what counts.

References
    MQTT 3.1.1: section 3.3.5; 5.0: section 3.3.4 (overlapping subscriptions), 3.8.3.1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from wirewitness.analyser.base.addresses import server_of, server_text
from wirewitness.analyser.base.times import NS_PER_MS, NS_PER_S, period_text
from wirewitness.analyser.base.words import count, names_text, printable, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof, evidence_of
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mqtt.rules.rows import client_numbers, client_text, client_title, short
from wirewitness.dissectors.mqtt.filters import matches

# So many messages of one content are a stream, unless one in FILTERS_MOST of them comes after a pause.
STREAM = 20
FILTERS_MOST = 8


def detect(
    frames: Frames,
    *,
    rate_least: float = 50.0,
    window_s: float = 10.0,
    again_within_ms: float = 20.0,
    copies_least: int = 20,
) -> Iterator[Finding]:
    """One finding for each topic that this flow's client repeats, one for its overlapping filters."""
    rows = rows_of(frames["mqtt_publishes"])
    sent: dict[tuple[object, ...], list[Row]] = {}
    got: list[Row] = []
    for row in rows:
        if row["direction"] == "server_to_client":
            got.append(row)
        else:
            sent.setdefault((row["topic"], row["payload_crc32"], row["payload_bytes"]), []).append(row)
    for same in sent.values():
        lasted_ns = same[-1]["ts"] - same[0]["ts"]
        if lasted_ns >= window_s * NS_PER_S and len(same) * NS_PER_S >= rate_least * lasted_ns:
            yield _unchanged(same)
    filters = sorted({row["matching_filter"] for row in rows_of(frames["mqtt_subscriptions"])})
    told = rows_of(frames["mqtt_deliveries"])
    once = {row["delivered_message_id"] for row in told}
    copies = [row for row in _copies(got, filters, int(again_within_ms * NS_PER_MS)) if row["message_id"] not in once]
    number = len(copies)
    multiplied = _multiplied(told, filters)
    if (counted := sum(multiplied.values())) >= number:
        copies, number = [row for row in got if row["message_id"] in multiplied], counted
    if copies and number >= copies_least and 10 * number >= len(got):
        yield _overlapping(copies, number, filters, len(got))


def _multiplied(told: list[Row], filters: list[str]) -> dict[str, int]:
    """How often each message that came several times came again; none where other publishers are likely."""
    found: dict[str, int] = {}
    matching: dict[str, int] = {}
    for row in told:
        if (row["copies"] or 0) < 2:
            continue
        topic = row["topic"]
        if topic not in matching:
            matching[topic] = sum(matches(name, topic) for name in filters)
        if row["copies"] > matching[topic]:
            return {}
        found[row["delivered_message_id"]] = row["copies"] - 1
    return found


def _copies(got: list[Row], filters: list[str], within_ns: int) -> Iterator[Row]:
    """What came again at once, where two of the filters match."""
    by_content: dict[tuple[object, ...], list[Row]] = {}
    for row in got:
        by_content.setdefault((row["topic"], row["payload_crc32"], row["payload_bytes"]), []).append(row)
    overlaps: dict[str, bool] = {}
    again: list[Row] = []
    for rows in by_content.values():
        topic = rows[0]["topic"]
        close = [second for first, second in pairwise(rows) if second["ts"] - first["ts"] <= within_ns]
        if not close or (len(rows) >= STREAM and len(rows) - len(close) < len(rows) / FILTERS_MOST):
            continue
        if topic not in overlaps:
            overlaps[topic] = sum(matches(name, topic) for name in filters) > 1
        if overlaps[topic]:
            again += close
    yield from sorted(again, key=lambda row: (row["ts"], row["message_id"]))


def _unchanged(same: list[Row]) -> Finding:
    first, last = same[0], same[-1]
    rate = len(same) * NS_PER_S / (last["ts"] - first["ts"])
    topic, size = printable(first["topic"], 80), sum(row["length_bytes"] for row in same)
    return RULE.finding(
        subject={"flow": first["flow_id"], "topic": first["topic"], "payload": first["payload_crc32"]},
        title=f"Unchanged payload {len(same):,} times: {short(first['topic'])} by {client_title(first)}",
        sentence=(
            f"{sentence_start(client_text(first))} published one unchanged payload on {topic} {len(same):,} times "
            f"({rate:,.0f} per second, {count(size, 'byte')}) to {server_text(first)}, "
            f"{period_text(first['ts'], last['ts'])}."
        ),
        next_step="Publish when the value changes, and retain it for those who come later.",
        proof=Proof(first["ts"], last["ts"], evidence_of(same)),
        numbers={**_numbers(first), "repeats": len(same), "per_second": round(rate, 1), "bytes": size},
    )


def _overlapping(copies: list[Row], number: int, filters: list[str], messages: int) -> Finding:
    first, last = copies[0], copies[-1]
    topic = Counter(row["topic"] for row in copies).most_common(1)[0][0]
    own = [printable(name, 60) for name in filters if matches(name, topic)]
    return RULE.finding(
        subject={"flow": first["flow_id"], "kind": "overlap"},
        title=f"{number:,} of {messages:,} messages were copies: overlapping filters of {client_title(first)}",
        sentence=(
            f"{sentence_start(client_text(first))} gets messages several times: {number:,} of {messages:,} from "
            f"{server_text(first)} were copies (first on {printable(first['topic'], 80)}). "
            f"Its filters {names_text(own, 4)} match the same topics."
        ),
        next_step="Subscribe with one filter that covers the others, or let the server join overlapping subscriptions.",
        proof=Proof(first["ts"], last["ts"], evidence_of(copies)),
        numbers={**_numbers(first), "records_again": number, "messages": messages, "topic_filters": own[:20]},
    )


def _numbers(row: Row) -> Row:
    return {
        "flow_id": row["flow_id"],
        "client_id": row["client_id"],
        "address": row["client_address"],
        "server": server_of(row),
        "topics": [printable(row["topic"], 80)],
        "where": printable(row["topic"], 80),
        "clients": [client_numbers(row)],
    }


RULE = Rule(
    code="MQT123",
    question="growing",
    name="bloat",
    severity="warning",
    confidence="high",
    reads={
        "mqtt_publishes": (
            "ts", "client_id", "client_address", "client_port", "server_address", "server_port", "version",
            "direction", "topic", "payload_bytes", "payload_crc32", "length_bytes", "message_id", "file", "packet",
        ),
        "mqtt_subscriptions": ("ts", "matching_filter"),
        "mqtt_deliveries": ("ts", "topic", "delivered_message_id", "copies"),
    },
    partition_by=("flow_id",),
    detect=detect,
    rows={
        "mqtt_publishes": "topic IS NOT NULL AND payload_crc32 IS NOT NULL AND NOT dup "
        "AND NOT (retain AND direction = 'server_to_client')",
        "mqtt_subscriptions": "event = 'subscribe' AND granted_qos IS NOT NULL AND share_name IS NULL "
        "AND matching_filter IS NOT NULL",
        "mqtt_deliveries": "delivered_message_id IS NOT NULL AND subscriber_flow_id IS NOT NULL AND share_name IS NULL",
    },
    keys={"mqtt_deliveries": {"flow_id": "subscriber_flow_id"}},
    suspects="""
        SELECT flow_id FROM r_mqtt_publishes WHERE direction = 'client_to_server'
        GROUP BY flow_id, topic, payload_crc32, payload_bytes HAVING count(*) >= 500
        UNION
        SELECT flow_id FROM (
            SELECT flow_id, ts - lag(ts) OVER (
                       PARTITION BY flow_id, topic, payload_crc32, payload_bytes ORDER BY ts) AS after_ns
            FROM r_mqtt_publishes SEMI JOIN (
                SELECT flow_id FROM r_mqtt_subscriptions GROUP BY flow_id HAVING count(DISTINCT matching_filter) > 1
            ) USING (flow_id) WHERE direction = 'server_to_client')
        WHERE after_ns <= 20_000_000 GROUP BY flow_id HAVING count(*) >= 20
        UNION
        SELECT flow_id FROM r_mqtt_deliveries WHERE copies > 1 GROUP BY flow_id HAVING sum(copies - 1) >= 20""",
)  # fmt: skip
