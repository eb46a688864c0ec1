"""MQT136 never-acts: a client connects and neither subscribes nor publishes, while its likes do.

Finds
    Clients that stay connected and send nothing but pings, although all other clients of their kind subscribe or
    publish soon after they connect. Question: what does not move although it should.

Why it matters
    For the server, and for whoever looks at connections, the client is there. It does nothing that it was made for.

How it decides
    Its client id is like those of others but for digits. At least `likes_least` others of this kind at the same server
    all subscribed, published or have a session from before. It was connected and heard of for lived_s at least and five
    times as long as the slowest of them needed for a first SUBSCRIBE or PUBLISH, did none of these on any connection,
    of none of which bytes are missing, and the server has no session of it.

False alarms
    A device that has nothing to report yet, and gets no commands.

What it cannot tell
    What it did before the capture.

References
    MQTT 3.1.1 and 5.0: section 3.1.4 (clients need not wait for CONNACK), 4.1 (session state).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from wirewitness.analyser.base.addresses import server_of, server_text
from wirewitness.analyser.base.times import NS_PER_MS, NS_PER_S, seconds_text
from wirewitness.analyser.base.words import count, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof, evidence_of
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mqtt.rules.rows import client_numbers, client_text, client_title

_LONGER = 5
_PROOF = ("file", "packet", "exchange_id")


def detect(frames: Frames, *, likes_least: int = 4, lived_s: float = 10.0) -> Iterator[Finding]:
    """One finding for each client of this server."""
    acts: dict[str, int] = {}
    for table in ("mqtt_subscriptions", "mqtt_publishes"):
        for row in rows_of(frames[table]):
            acts[row["flow_id"]] = min(acts.get(row["flow_id"], row["ts"]), row["ts"])
    kinds: dict[str, dict[str, list[Row]]] = {}
    for row in rows_of(frames["mqtt_connections"]):
        if row["client_id"] and not row["bridge"]:
            kind = re.sub("[0-9]+", "0", row["client_id"])
            kinds.setdefault(kind, {}).setdefault(row["client_id"], []).append(row)
    for clients in kinds.values():
        idle = [rows for rows in clients.values() if not any(_acts(row, acts) for row in rows)]
        if not idle or len(clients) - len(idle) < max(likes_least, 4 * len(idle)):
            continue
        needed = [acts[row["flow_id"]] - row["ts"] for rows in clients.values() for row in rows
                  if row["flow_id"] in acts]  # fmt: skip
        least_ns = max([lived_s * NS_PER_S, *(_LONGER * one for one in needed)])
        for rows in idle:
            longest = max(rows, key=_lived_ns)
            if _lived_ns(longest) >= least_ns and all(_is_whole(row) for row in rows):
                yield _finding(longest, len(clients) - len(idle))


def _acts(row: Row, acts: dict[str, int]) -> bool:
    return bool(row["session_present"] or row["flow_id"] in acts)


def _is_whole(row: Row) -> bool:
    """Nothing of it is missing, so a SUBSCRIBE or PUBLISH would be there."""
    return bool(row["gap_bytes"] == 0 and row["publishes_from_client"] == 0)


def _lived_ns(row: Row) -> int:
    return int((row["ts_last_from_client"] or row["ts"]) - row["ts"])


def _finding(row: Row, likes: int) -> Finding:
    return RULE.finding(
        provisional=True,
        subject={"server": row["server_address"], "client_id": row["client_id"]},
        title=f"Connected and neither subscribes nor publishes: {client_title(row)}",
        sentence=(
            f"{sentence_start(client_text(row))} was connected to {server_text(row)} for "
            f"{seconds_text(_lived_ns(row))} and heard of, but sent no SUBSCRIBE and no PUBLISH, and the server has no "
            f"session of it. {sentence_start(count(likes, 'other client'))} with ids like its own did within a fifth "
            "of that time."
        ),
        next_step="Look at the program behind the connection: its start after CONNACK, its on-connect callback.",
        proof=Proof(row["ts"], row["ts_last_from_client"], evidence_of([row], _PROOF)),
        numbers={
            "client_id": row["client_id"],
            "address": row["client_address"],
            "server": server_of(row),
            "flow_id": row["flow_id"],
            "likes": likes,
            "pings": row["pings"],
            "stood_still_ms": round(_lived_ns(row) / NS_PER_MS, 3),
            "where": server_text(row),
            "clients": [client_numbers(row)],
        },
    )


_FIRST = """(SELECT flow_id FROM mqtt_connections WHERE connect_seen AND coalesce(publishes_from_client, 0) > 0)"""
RULE = Rule(
    code="MQT136",
    question="stalled",
    name="never-acts",
    severity="warning",
    confidence="medium",
    reads={
        "mqtt_connections": (
            "ts", "flow_id", "exchange_id", "client_id", "client_address", "client_port", "server_port", "version",
            "bridge", "session_present", "ts_last_from_client", "gap_bytes", "publishes_from_client", "pings", "file",
            "packet",
        ),
        "mqtt_subscriptions": ("ts", "flow_id"),
        "mqtt_publishes": ("ts", "flow_id"),
    },
    partition_by=("server_address",),
    detect=detect,
    rows={
        "mqtt_connections": "connect_seen AND error_code = 0 AND client_id <> ''",
        "mqtt_subscriptions": "event = 'subscribe'",
        "mqtt_publishes": f"""direction = 'client_to_server' AND message_id IN (
            SELECT arg_min(message_id, ts) FROM mqtt_publishes
            WHERE direction = 'client_to_server' AND flow_id IN {_FIRST} GROUP BY flow_id)""",
    },
    suspects="""
        SELECT server_address FROM r_mqtt_connections
        GROUP BY server_address HAVING count(DISTINCT client_id) >= 5""",
)  # fmt: skip
