"""MQT151 left-online: a client is gone, and its retained status still says that it is there.

Finds
    Clients with a retained will that set another retained message on the same topic, and are gone without a word of
    that there: they took their leave, or their will waits for its Will Delay Interval (5.0). Question: what went back.

Why it matters
    A DISCONNECT discards the will (3.1.2.5). Who leaves in order has to publish its last status itself. Else the
    retained "online" stands, every program that subscribes takes the client for connected, and commands go to nobody.
    A will that is delayed leaves it there for so long: the interval counts seconds, not milliseconds.

How it decides
    A connection with a retained will ended with the client's DISCONNECT (not 0x04, which asks for the will), or in
    another way and its will is delayed: by the Will Delay Interval, at most until its session expires. The
    retained message of the will topic was the client's own and of another size than the will; the client did not come
    back in the capture, nobody else connected with this will topic or published there, and three seconds later or more
    the server sent that message as retained to a subscriber (served_least times). It is a warning where another
    client, whose will topic differs in one level, set a retained message of the size of its will before its own
    DISCONNECT, or delays its will, too, by a tenth of that time at most; else info, since devices that sleep leave so
    on purpose, and a delay may be meant. Bytes missing from the connection make it silent.

False alarms
    A device that sleeps between its readings, beside others that say that they are gone.

What it cannot tell
    What the payloads say: will and status are told apart by their sizes.

References
    MQTT 3.1.1 and 5.0: section 3.1.2.5, [MQTT-3.1.2-10] (3.1.1), [MQTT-3.14.4-3] (the will is discarded); 5.0: 3.14.2.1
    (0x04, Disconnect with Will Message), 3.1.3.2.2 (Will Delay Interval, in seconds).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wirewitness.analyser.base.addresses import server_of, server_text
from wirewitness.analyser.base.severity import Severity
from wirewitness.analyser.base.times import NS_PER_MS, NS_PER_S, moment_text, period_text
from wirewitness.analyser.base.words import count, printable, sentence_start, times
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.limits import compared
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.engine.rules.sweeps import Lasting
from wirewitness.analyser.mqtt.rules.rows import client_numbers, client_text, client_title, short

WITH_WILL = 0x04
_GONE_NS = 3 * NS_PER_S
# Who delays its will so much less knows the unit.
_PART_OF_DELAY = 10
# Each is compared with all others that left.
MOST_LEFT = 500


def detect(frames: Frames, *, served_least: int = 1) -> Iterator[Finding]:
    """At most one finding for each client and will topic at this server."""
    connections = rows_of(frames["mqtt_connections"])
    steps: dict[str, list[Row]] = {}
    for row in rows_of(frames["mqtt_retained"]):
        steps.setdefault(row["topic"], []).append(row)
    sent: dict[str, list[Row]] = {}
    for row in rows_of(frames["mqtt_publishes"]):
        sent.setdefault(row["topic"], []).append(row)
    same: dict[tuple[str, str], list[Row]] = {}
    for row in connections:
        same.setdefault(("client", row["client_id"]), []).append(row)
        same.setdefault(("topic", row["will_topic"]), []).append(row)
    stood = {topic: Lasting((one["ts"], one["ts_until"], one) for one in own) for topic, own in steps.items()}
    left = [(row, step) for row in connections[:MOST_LEFT] if (step := _last_word(row, stood)) is not None]
    said = [row["will_topic"] for row, step in left if step["payload_bytes"] == row["will_payload_bytes"]]
    for row, step in left:
        if step["payload_bytes"] == row["will_payload_bytes"]:
            continue
        likes = [*same["client", row["client_id"]], *same["topic", row["will_topic"]]]
        compared(len(likes))
        if _is_back(row, likes):
            continue
        served = _served(row, step, sent.get(row["will_topic"], ()))
        if len(served) >= served_least:
            delay = _delay_s(row)
            others = said if delay is None else _sooner(connections, delay)
            compared(len(others))
            peers = {topic for topic in others if _is_like(topic, row["will_topic"])}
            yield _finding(row, step, served, len(peers))


def _last_word(row: Row, steps: dict[str, Lasting[Row]]) -> Row | None:
    """The client's own retained message that stood on its will topic when it took its leave."""
    if row["will_topic"] is None or not row["will_retain"]:
        return None
    ended = _ended(row)
    if ended is None or row["gap_bytes"] != 0:
        return None
    stood = steps[row["will_topic"]].newest(ended) if row["will_topic"] in steps else None
    if stood is None or stood["set_by"] != "publish" or stood["client_id"] != row["client_id"]:
        return None
    return stood if (stood["ts_last"] or 0) >= row["ts"] else None


def _discards_will(row: Row) -> bool:
    return bool(row["disconnected_by"] == "client" and row["disconnect_reason_code"] != WITH_WILL)


def _delay_s(row: Row) -> int | None:
    """By how much the will of that connection is delayed; None where it is discarded."""
    if _discards_will(row):
        return None
    expiry = row["server_session_expiry_s"] if row["server_session_expiry_s"] is not None else row["session_expiry_s"]
    return int(min(row["will_delay_s"] or 0, expiry or 0))


def _ended(row: Row) -> int | None:
    """When the client was gone; None where it is there, or its will was due at once."""
    ended: int | None = row["ts_disconnect"] if row["ts_disconnect"] is not None else row["ts_closed"]
    return None if _delay_s(row) == 0 else ended


def _sooner(connections: Sequence[Row], delay_s: int) -> list[str]:
    """Will topics of those that delay their wills by far less."""
    own = [(row["will_topic"], row["will_delay_s"]) for row in connections if row["will_retain"]]
    return [topic for topic, delay in own if topic is not None and delay and delay * _PART_OF_DELAY <= delay_s]


def _is_back(row: Row, likes: Sequence[Row]) -> bool:
    """Of those of its client id or will topic another one was connected after that."""
    ended = _ended(row) or 0
    return any(
        other is not row and (other["ts_disconnect"] or other["ts_closed"] or ended + 1) > ended for other in likes
    )


def _served(row: Row, step: Row, sent: Sequence[Row]) -> list[Row]:
    ended, delay, until = _ended(row) or 0, _delay_s(row), step["ts_until"]
    since = ended + _GONE_NS
    if delay is not None:
        until = min(until or ended + delay * NS_PER_S, ended + delay * NS_PER_S)
    return [
        one for one in sent
        if one["ts"] >= since and one["payload_crc32"] == step["payload_crc32"] and (until is None or one["ts"] < until)
    ]  # fmt: skip


def _is_like(one: str, other: str) -> bool:
    """Topics of the same number of levels, two at least, of which one differs."""
    levels, others = one.split("/"), other.split("/")
    return 1 < len(levels) == len(others) and sum(a != b for a, b in zip(levels, others, strict=True)) == 1


def _finding(row: Row, step: Row, served: list[Row], peers: int) -> Finding:
    topic = printable(row["will_topic"], 80)
    severity: Severity = "warning" if peers else "info"
    ended, delay = _ended(row) or 0, _delay_s(row)
    others = sentence_start(count(peers, "other client"))
    if delay is None:
        went = "left with DISCONNECT at {}, so its will was not sent, and did not replace its retained status on {}"
        unlike = f" {others} said there that it is gone first." if peers else ""
    else:
        went = f"lost its connection at {{}}; its will comes {delay:,} s later, and its retained status on {{}} stands"
        unlike = f" {others} delay{'s' if peers == 1 else ''} the will by a tenth of that at most." if peers else ""
    return RULE.finding(
        severity=severity,
        confidence="medium",
        subject={"server": row["server_address"], "client_id": row["client_id"], "topic": row["will_topic"]},
        title=f"{client_title(row)} is gone, and its retained status on {short(row['will_topic'])} is not",
        sentence=(
            f"{sentence_start(client_text(row))} {went.format(moment_text(ended), topic)}. {server_text(row)} sent "
            f"that {times(len(served))} to subscribers afterwards, "
            f"{period_text(served[0]['ts'], served[-1]['ts'])}.{unlike}"
        ),
        next_step=(
            "Check the unit of the Will Delay Interval: it counts seconds. Until it is over, and the client away, its "
            "retained status stands."
            if delay is not None
            else "Let the client publish its last status with RETAIN before DISCONNECT, or (5.0) leave with reason "
            "code 0x04, which sends the will. A device that only sleeps needs no change."
        ),
        proof=Proof(
            ended,
            served[-1]["ts"],
            (
                Evidence(step["file"], step["packet"], step["message_id"]),
                Evidence(row["file"], row["disconnect_packet"], None),
                *(Evidence(one["file"], one["packet"], one["message_id"]) for one in served),
            ),
        ),
        numbers={
            "client_id": row["client_id"],
            "address": row["client_address"],
            "server": server_of(row),
            "served": len(served),
            "peers": peers,
            "will_delay_s": delay,
            "stood_still_ms": round((served[-1]["ts"] - ended) / NS_PER_MS, 3),
            "topics": [topic],
            "where": topic,
            "clients": [client_numbers(row)],
        },
    )


_GONE = "(disconnected_by = 'client' OR (will_delay_s > 0 AND coalesce(ts_disconnect, ts_closed) IS NOT NULL))"
_LEFT = f"FROM mqtt_connections WHERE will_retain AND {_GONE}"
_WILLS = f"SELECT will_topic {_LEFT}"
RULE = Rule(
    code="MQT151",
    question="went back",
    name="left-online",
    severity="warning",
    confidence="medium",
    reads={
        "mqtt_connections": (
            "ts", "flow_id", "client_id", "client_address", "client_port", "server_port", "version", "will_topic",
            "will_retain", "will_payload_bytes", "will_delay_s", "session_expiry_s", "server_session_expiry_s",
            "disconnected_by", "ts_disconnect", "disconnect_reason_code",
            "disconnect_packet", "ts_closed", "gap_bytes", "file",
        ),
        "mqtt_retained": (
            "ts", "ts_until", "ts_last", "topic", "set_by", "payload_bytes", "payload_crc32", "client_id",
            "message_id", "file", "packet",
        ),
        "mqtt_publishes": ("ts", "topic", "payload_crc32", "message_id", "file", "packet"),
    },
    partition_by=("server_address",),
    detect=detect,
    rows={
        # All of these clients, so that a return without a will is seen too.
        "mqtt_connections": f"""
            connect_seen AND error_code = 0 AND client_id <> ''
            AND (will_retain OR client_id IN (SELECT client_id {_LEFT}))""",
        "mqtt_retained": f"topic IN ({_WILLS})",
        "mqtt_publishes": (
            "direction = 'server_to_client' AND retain AND payload_bytes > 0 AND payload_crc32 IS NOT NULL "
            f"AND topic IN ({_WILLS})"
        ),
    },
    suspects=AnyRow("mqtt_connections", "disconnected_by IS NOT NULL OR ts_closed IS NOT NULL"),
)  # fmt: skip
