"""MQT150 dollar-topic: a client publishes under a topic with $, which filters that begin with # or + do not match.

Finds
    Clients whose topics begin with $ while others wait for all topics with a filter that begins with a wildcard.
    Question: what does not move although it should.

Why it matters
    A $ at the beginning is no letter like others: topics with it are the server's own, and # and + as the first level
    leave them out. The server takes and acknowledges the messages, and archives and gateways with the filter # get
    none of them.

How it decides
    The last `messages_least` messages of a client on such a topic went to nobody (expected_deliveries is 0), and while
    they were sent a filter of another client was in force that begins with # or + and would match but for the $.
    Nobody subscribes to a filter that begins with the same level with $, as programs do that talk to the server or to
    a plugin of it. Names that servers and clouds give a meaning ($SYS, $CONTROL, $aws, $iothub and the like) are left
    out.

False alarms
    A plugin of the server that reads these messages and answers nobody.

What it cannot tell
    Whether the one with the wildcard is meant to get these messages.

References
    MQTT 3.1.1 and 5.0: section 4.7.2, [MQTT-4.7.2-1].
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.addresses import server_of, server_text, who_is
from wirewitness.analyser.base.times import NS_PER_MS, period_text
from wirewitness.analyser.base.words import names_text, printable, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.mqtt.rules.counted_matches import Matches
from wirewitness.analyser.mqtt.rules.rows import MAX_NAME, client_numbers, client_text, client_title, short

# First levels that servers and clouds act on themselves: Mosquitto, EMQX, AWS, Azure, Tencent, Huawei, OneNET, Baidu.
_OF_SERVERS = frozenset((
    "$sys", "$control", "$share", "$queue", "$exclusive", "$delayed", "$events", "$file", "$stream", "$bridge",
    "$aws", "$iothub", "$dps", "$hardware", "$thing", "$ota", "$shadow", "$broadcast", "$rrpc", "$config",
    "$template", "$resource", "$system", "$gateway", "$oc", "$iot", "$dp", "$creq", "$crsp", "$baidu",
))  # fmt: skip
MOST_FILTERS, MOST_TOPICS = 100, 500


def detect(frames: Frames, *, messages_least: int = 5) -> Iterator[Finding]:
    """At most one finding for each client and first level at this server."""
    wanted = rows_of(frames["mqtt_active_subscriptions"])
    spoken = {_first_level(row["matching_filter"]) for row in wanted} | _OF_SERVERS
    wild = [row for row in wanted if row["matching_filter"][0] in "#+"][:MOST_FILTERS]
    topics: dict[tuple[str, str], list[Row]] = {}
    for row in rows_of(frames["mqtt_publishes"]):
        if _first_level(row["topic"]) not in spoken and len(topics) < MOST_TOPICS:
            topics.setdefault((row["client_id"] or row["flow_id"], row["topic"]), []).append(row)
    told: set[tuple[str, str]] = set()
    known = Matches()
    for (client, topic), sent in topics.items():
        place = (client, _first_level(topic))
        if place in told or len(sent) < messages_least or any(row["expected_deliveries"] != 0 for row in sent):
            continue
        if past := [row for row in wild if _leaves_out(known, row, sent)]:
            told.add(place)
            yield _finding(sent, past)


def _first_level(name: str) -> str:
    return name.split("/", 1)[0].casefold()


def _leaves_out(known: Matches, wanted: Row, sent: list[Row]) -> bool:
    """The filter was in force for all of these messages, and matches but for the $."""
    if wanted["flow_id"] == sent[0]["flow_id"] or wanted["ts"] > sent[0]["ts"]:
        return False
    if wanted["ts_until"] is not None and wanted["ts_until"] < sent[-1]["ts"]:
        return False
    return known.match(wanted["matching_filter"], "_" + sent[0]["topic"][1:])


def _finding(sent: list[Row], past: list[Row]) -> Finding:
    first, last = sent[0], sent[-1]
    topic = printable(last["topic"], 80)
    whom = [
        f"{printable(row['matching_filter'], 40)} of {who_is(row['client_id'], row['client_address'], most=MAX_NAME)}"
        for row in past
    ]
    return RULE.finding(
        subject={"server": last["server_address"], "client_id": last["client_id"], "topic": last["topic"]},
        title=f"Topic with $ of {client_title(last)} reaches nobody: {short(last['topic'])}",
        sentence=(
            f"{sentence_start(client_text(last))} publishes on {topic} at {server_text(last)}, which reaches nobody, "
            f"{period_text(first['ts'], last['ts'])}. A filter that begins with a wildcard does not match a topic "
            f"that begins with $: {names_text(list(dict.fromkeys(whom)), 2)}."
        ),
        next_step=(
            "Let the client publish on a topic without $ at its beginning, or let those who want it subscribe to a "
            "filter that begins with the same level."
        ),
        proof=Proof(
            first["ts"],
            last["ts"],
            (
                *(Evidence(row["file"], row["packet"], row["message_id"]) for row in sent),
                Evidence(past[0]["file"], past[0]["packet"], past[0]["exchange_id"]),
            ),
        ),
        numbers={
            "client_id": last["client_id"],
            "address": last["client_address"],
            "server": server_of(last),
            "topics": [topic],
            "topic_filters": list(dict.fromkeys(printable(row["matching_filter"], 80) for row in past))[:20],
            "stood_still_ms": round((last["ts"] - first["ts"]) / NS_PER_MS, 3),
            "where": topic,
            "clients": [client_numbers(last)],
        },
    )


# The last messages of each client and topic.
_LAST = """
    direction = 'client_to_server' AND topic LIKE '$%' AND message_id IN (
        SELECT unnest(list(message_id ORDER BY ts DESC, message_id)[:5]) FROM mqtt_publishes
        WHERE direction = 'client_to_server' AND topic LIKE '$%' AND payload_bytes > 0
        GROUP BY server_address, coalesce(client_id, flow_id), topic)"""
RULE = Rule(
    code="MQT150",
    question="stalled",
    name="dollar-topic",
    severity="warning",
    confidence="medium",
    reads={
        "mqtt_active_subscriptions": (
            "ts", "ts_until", "exchange_id", "flow_id", "client_id", "client_address", "matching_filter", "file",
            "packet",
        ),
        "mqtt_publishes": (
            "ts", "flow_id", "client_id", "client_address", "client_port", "server_port", "version", "topic",
            "expected_deliveries", "message_id", "file", "packet",
        ),
    },
    partition_by=("server_address",),
    detect=detect,
    rows={
        "mqtt_active_subscriptions": "regexp_matches(matching_filter, '^[#+$]')",
        "mqtt_publishes": _LAST,
    },
    suspects=AnyRow("mqtt_publishes", "expected_deliveries = 0"),
)  # fmt: skip
