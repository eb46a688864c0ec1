"""MQT125 one-topic: what one client sends on one topic is nearly all that a server has to carry.

Finds
    Servers at which one topic has four fifths of the bytes that clients publish, and one client sends them.

Why it matters
    A camera or a log on the server that was made for small messages takes its memory and links: each subscriber of the
    topic gets all of it, queues for slow ones fill with it, and small messages of others wait behind it.

How it decides
    Bytes of the PUBLISH packets that clients sent to one server. One topic has 80 % of them or more (SHARE), while at
    least 50 messages are published on other topics (OTHERS_LEAST), and by more than one client in all. Its rate is 100
    kB a second or more (bytes_per_s_least) for 5 s or more (lasts_s), and one client sends 80 % of its bytes
    (one_client). So a server with one topic only, a topic that a whole fleet publishes to, and one on which little
    passes are left alone. It is info: nothing is broken yet. The first 20,000 messages of the topic are looked at.

False alarms
    A server that is meant for this topic, and sized for it.

References
    MQTT 5.0: section 3.1.2.11.4 (Maximum Packet Size), 4.9 (flow control).
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.addresses import server_of, server_text
from wirewitness.analyser.base.times import NS_PER_S, period_text
from wirewitness.analyser.base.words import count, printable, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof, evidence_of
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.mqtt.rules.rows import client_numbers, client_text, client_title, short

SHARE = 0.8
OTHERS_LEAST = 50
ROWS_MOST = 20_000


def detect(
    frames: Frames, *, bytes_per_s_least: float = 100_000.0, lasts_s: float = 5.0, one_client: float = 0.8
) -> Iterator[Finding]:
    """At most one finding for this topic, which has so many of its server's bytes."""
    rows = rows_of(frames["mqtt_publishes"])
    if not rows:
        return
    lasted_ns = rows[-1]["ts"] - rows[0]["ts"]
    size = sum(row["length_bytes"] for row in rows)
    if lasted_ns < lasts_s * NS_PER_S or size * NS_PER_S < bytes_per_s_least * lasted_ns:
        return
    clients: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        clients.setdefault((row["client_address"], row["client_id"]), []).append(row)
    own = max(clients.values(), key=lambda found: sum(row["length_bytes"] for row in found))
    own_size = sum(row["length_bytes"] for row in own)
    if own_size >= one_client * size:
        yield _finding(own, own_size, own_size * NS_PER_S / lasted_ns, len(rows) >= ROWS_MOST)


def _finding(own: list[Row], size: int, per_second: float, more: bool) -> Finding:
    first, last = own[0], own[-1]
    topic = printable(first["topic"], 80)
    at_least = "at least " if more else ""
    return RULE.finding(
        subject={"server": first["server_address"], "topic": first["topic"]},
        title=(
            f"One topic is most of the traffic: {short(first['topic'])} by {client_title(first)}, "
            f"{per_second / 1000:,.0f} kB/s"
        ),
        sentence=(
            f"{sentence_start(client_text(first))} sends nearly all that {server_text(first)} carries: on {topic} "
            f"{at_least}{count(len(own), 'message')} of {size / len(own):,.0f} bytes on average "
            f"({per_second / 1000:,.0f} kB per second). At least "
            f"{SHARE:.0%} of what clients published are on this topic, {period_text(first['ts'], last['ts'])}."
        ),
        next_step=(
            "Ask who needs it on this server: send pictures, files and logs on another way and publish where they are, "
            "publish less often, or give the topic a server of its own."
        ),
        proof=Proof(first["ts"], last["ts"], evidence_of(own)),
        numbers={
            "client_id": first["client_id"],
            "address": first["client_address"],
            "server": server_of(first),
            "published": len(own),
            "bytes": size,
            "bytes_per_second": round(per_second),
            "topics": [topic],
            "where": topic,
            "clients": [client_numbers(first)],
        },
    )


_SENT = "direction = 'client_to_server' AND topic IS NOT NULL AND length_bytes IS NOT NULL"
# Topics with such a share of their server's bytes, beside which others publish other topics.
_HEAVY = f"""
    SELECT server_address, topic FROM (
        SELECT server_address, topic, sum(length_bytes) AS bytes, count(*) AS sends,
               min(coalesce(client_id, flow_id)) AS one, max(coalesce(client_id, flow_id)) AS other
        FROM mqtt_publishes WHERE {_SENT} GROUP BY ALL)
    WINDOW of_server AS (PARTITION BY server_address)
    QUALIFY bytes >= {SHARE} * sum(bytes) OVER of_server AND min(one) OVER of_server <> max(other) OVER of_server
        AND sum(sends) OVER of_server - sends >= {OTHERS_LEAST}"""
_FIRST = f"""
    topic IS NOT NULL AND message_id IN (
        SELECT message_id FROM (
            SELECT message_id, row_number() OVER (PARTITION BY server_address, topic ORDER BY ts, message_id) AS place
            FROM mqtt_publishes SEMI JOIN ({_HEAVY}) USING (server_address, topic) WHERE {_SENT})
        WHERE place <= {ROWS_MOST})"""

RULE = Rule(
    code="MQT125",
    question="growing",
    name="one-topic",
    severity="info",
    confidence="high",
    reads={
        "mqtt_publishes": (
            "ts", "flow_id", "client_id", "client_address", "client_port", "server_port", "version", "length_bytes",
            "message_id", "file", "packet",
        ),
    },
    partition_by=("server_address", "topic"),
    detect=detect,
    rows={"mqtt_publishes": _FIRST},
    suspects=AnyRow("mqtt_publishes"),
)  # fmt: skip
