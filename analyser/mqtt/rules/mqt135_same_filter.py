"""MQT135 same-filter: one host keeps many connections with the same filters, and gets each message on all of them.

Finds
    Connections of one address that are open at once, subscribe to the same filters and publish nothing. Question: what
    grows or is wasted.

Why it matters
    The server sends each message once for every connection. A pool of clients of which each subscribes for itself
    handles everything many times, and a server that sends a hundred copies has no time for others.

How it decides
    At least `connections_least` connections of one client address that were open at the same time, whose sets of
    granted filters are equal and not shared subscriptions, and which published nothing. It is info: displays behind one
    address look the same. A warning where these got half (half) of all messages that the server sent, and the ports of
    the client run on in small steps, as those of one host do.

False alarms
    Many screens behind one address that all show the same.

References
    MQTT 5.0: section 4.8.2 (shared subscriptions).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from statistics import median

from wirewitness.analyser.base.addresses import server_of, server_text
from wirewitness.analyser.base.times import period_text
from wirewitness.analyser.base.words import count, names_text, printable
from wirewitness.analyser.engine.rules.evidence import Proof, evidence_of
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mqtt.rules.rows import client_numbers, short

# Linux gives every second port to connections of one host to one server; others in between take some.
_PORT_STEP = 32
_PROOF = ("file", "packet", "exchange_id")


def detect(frames: Frames, *, connections_least: int = 10, half: float = 0.5) -> Iterator[Finding]:
    """One finding for each address and set of filters of this server."""
    filters: dict[str, set[str | None]] = {}
    for row in rows_of(frames["mqtt_subscriptions"]):
        filters.setdefault(row["flow_id"], set()).add(row["topic_filter"])
    connections = rows_of(frames["mqtt_connections"])
    sent = sum(row["publishes_from_server"] or 0 for row in connections)
    groups: dict[tuple[str | None, frozenset[str]], list[Row]] = {}
    for row in connections:
        own = filters.get(row["flow_id"], set())
        names = frozenset(one for one in own if one is not None)
        if names and names == own and not row["publishes_from_client"] and row["client_address"] is not None:
            groups.setdefault((row["client_address"], names), []).append(row)
    for (_, names), rows in groups.items():
        together = _most_open(rows)
        if together >= connections_least:
            got = sum(row["publishes_from_server"] or 0 for row in rows)
            yield _finding(rows, sorted(names), together, got, sent, wasted=got >= half * max(sent, 1))


def _most_open(rows: list[Row]) -> int:
    """The most at the same time."""
    steps = sorted(
        step for row in rows for step in ((row["ts"], 1), (row["observed_until"] or row["ts_end"] or row["ts"], -1))
    )
    most = now = 0
    for _, change in steps:
        now += change
        most = max(most, now)
    return most


def _is_one_host(rows: list[Row]) -> bool:
    ports = [row["client_port"] for row in rows if row["client_port"] is not None]
    steps = [after - before for before, after in pairwise(ports)]
    return bool(steps) and 0 < median(steps) <= _PORT_STEP


def _finding(rows: list[Row], names: list[str], together: int, got: int, sent: int, *, wasted: bool) -> Finding:
    first = rows[0]
    shown = [printable(name, 60) for name in names]
    one_host = _is_one_host(rows)
    return RULE.finding(
        severity="warning" if wasted and one_host else "info",
        confidence="high" if one_host else "medium",
        subject={"server": first["server_address"], "address": first["client_address"], "filter": shown[0]},
        title=f"{together} connections of {first['client_address']} with the same filter {short(names[0])}",
        sentence=(
            f"{first['client_address']} has {count(together, 'connection')} to {server_text(first)} open at a time, "
            f"all with the same {count(len(names), 'filter')} ({names_text(shown, 3)}) and none that publishes: the "
            f"server sends each message to all of them. They got {got:,} of the {sent:,} messages that it sent, "
            f"{period_text(first['ts'], rows[-1]['ts'])}."
        ),
        next_step=(
            "Where this is one program, let it subscribe once and hand messages on inside, or use a shared "
            "subscription ($share) so that each message goes to one connection."
        ),
        proof=Proof(first["ts"], rows[-1]["ts"], evidence_of(rows, _PROOF)),
        numbers={
            "address": first["client_address"],
            "server": server_of(first),
            "connections": together,
            "one_host": one_host,
            "got": got,
            "sent": sent,
            "records_again": round(got * (1 - 1 / together)),
            "topic_filters": shown[:20],
            "where": shown[0],
            "clients": [client_numbers(row) for row in rows[:20]],
        },
    )


RULE = Rule(
    code="MQT135",
    question="growing",
    name="same-filter",
    severity="warning",
    confidence="high",
    reads={
        "mqtt_connections": (
            "ts", "ts_end", "flow_id", "exchange_id", "client_id", "client_address", "client_port", "server_port",
            "version", "publishes_from_client", "publishes_from_server", "observed_until", "file", "packet",
        ),
        "mqtt_subscriptions": ("ts", "flow_id", "topic_filter"),
    },
    partition_by=("server_address",),
    detect=detect,
    rows={
        "mqtt_connections": "coalesce(error_code, 0) = 0",
        "mqtt_subscriptions": "event = 'subscribe' AND granted_qos IS NOT NULL AND share_name IS NULL",
    },
    suspects="""
        SELECT server_address FROM r_mqtt_connections WHERE coalesce(publishes_from_client, 0) = 0
        GROUP BY server_address, client_address HAVING count(*) >= 10""",
)  # fmt: skip
