"""NET103 retry-without-back-off: a client tries again and again without waiting longer.

Finds
    Clients whose connections to one server are refused, or whose logins are, many times with hardly a pause.

Why it matters
    A thousand clients that try ten times a second keep a server that comes back from coming back, and fill the logs of
    both. It also hides what was wrong first.

How it decides
    20 failed attempts or more (attempts_least) of one client at one server: a SYN that is answered by RST, by
    address; a login that is refused (Kafka and MongoDB) or a CONNECT (MQTT), by client id or application. The median
    pause between them is less than half a second (pause_s; Java's Kafka clients wait up to a second by default), and
    the pauses do not grow: that of the last third of them is less than twice that of the first third (growth_below).

False alarms
    Many clients behind one address, each of which waits as it should. A port scanner.

References
    reconnect.backoff.ms and reconnect.backoff.max.ms of Kafka clients; RFC 9293 has no rule for applications; AWS
    Architecture Blog, "Exponential Backoff And Jitter".
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from analyser.addresses import server_text
from analyser.detectors.detector import Detector, Frames
from analyser.detectors.findings import Evidence, Finding
from analyser.detectors.frame_rows import Row, rows_of
from analyser.detectors.proof import Proof
from analyser.times import NS_PER_S, seconds_text
from analyser.words import printable

LOGINS = "kafka_authentications"
_SASL = "command IN ('saslStart', 'saslContinue', 'authenticate')"


class _Attempts(NamedTuple):
    """Where attempts of one kind stand. name: the column that tells clients at one address apart."""

    table: str
    what: str
    name: str | None
    next_step: str


_WAIT = "then let the client wait longer after each failure, with jitter"
_KINDS = (
    _Attempts("flows", "connections are refused", None, f"Mend what is refused (TCP104); {_WAIT}."),
    _Attempts(
        LOGINS, "logins are refused", "client_id",
        f"Mend what is refused (KAF312); {_WAIT} (reconnect.backoff.max.ms in Kafka clients).",
    ),
    _Attempts(
        "mqtt_connections", "CONNECT is refused", "client_id",
        f"Mend what is refused (MQT101); {_WAIT} (the reconnect delay of the client library, with a maximum).",
    ),
    _Attempts(
        "mongo_commands", "logins are refused", "app_name",
        "Mend what is refused (MON102: user, password, authSource); then let the program wait longer after each "
        "failure, and make one client object instead of one for each attempt.",
    ),
)  # fmt: skip


def detect(
    frames: Frames, *, attempts_least: int = 20, pause_s: float = 0.5, growth_below: float = 2.0
) -> Iterator[Finding]:
    """For this address and server: its refused connections, else for each client its refused logins."""
    for kind in _KINDS:
        found = [
            _finding(rows, kind, pause)
            for rows in _by_client(rows_of(frames[kind.table]), kind)
            if len(rows) >= attempts_least and (pause := _pause(rows, growth_below)) < pause_s
        ]
        if found:
            yield from found
            return


def _by_client(rows: Sequence[Row], kind: _Attempts) -> Iterator[list[Row]]:
    """The failed attempts of each client, in the order of time, with the time and the user under one name each."""
    users = {row["flow_id"]: row["user_name"] for row in rows if row.get("user_name") is not None}
    column = "ts_first" if kind.table == "flows" else "ts"
    clients: dict[str | None, list[Row]] = {}
    for row in rows:
        if row.get("status", "error") == "error":
            name = None if kind.name is None else row[kind.name]
            own = {"ts_begin": row[column], "user_name": users.get(row["flow_id"]), "name": name}
            clients.setdefault(name, []).append({**row, **own})
    for attempts in clients.values():
        yield sorted(attempts, key=lambda row: row["ts_begin"])


def _pause(rows: Sequence[Row], growth_below: float) -> float:
    """The median pause in s; for ever where pauses grow."""
    pauses = [(second["ts_begin"] - first["ts_begin"]) / NS_PER_S for first, second in pairwise(rows)]
    third = max(len(pauses) // 3, 1)
    first, last = median(pauses[:third]), median(pauses[-third:])
    return median(pauses) if last < growth_below * max(first, 0.001) else math.inf


def _finding(rows: Sequence[Row], kind: _Attempts, pause: float) -> Finding:
    first, last = rows[0], rows[-1]
    server = server_text(first)
    lasted = last["ts_begin"] - first["ts_begin"]
    name = first["name"] or next((row["client_id"] for row in rows if row.get("client_id")), None)
    user = next((row["user_name"] for row in rows if row["user_name"]), None)
    who = f"{printable(name, 120)} at {first['client_address']}" if name else str(first["client_address"])
    as_user = f" as user {printable(user, 120)}" if user else ""
    return DETECTOR.finding(
        subject={"client": first["client_address"], "server": server, **({"name": name} if name else {})},
        sentence=(
            f"{who} tries {len(rows)} times in {seconds_text(lasted)} to get into {server}{as_user} although its "
            f"{kind.what}: the median pause is {pause * 1000:,.0f} ms, and it does not grow."
        ),
        next_step=kind.next_step,
        proof=Proof(
            first["ts_begin"],
            last["ts_begin"],
            (_evidence(row) for row in rows),
        ),
        numbers={
            "address": first["client_address"],
            "server": server,
            "where": server,
            "attempts": len(rows),
            "median_pause_ms": round(pause * 1000, 3),
            "per_minute": round(60 * NS_PER_S * (len(rows) - 1) / max(lasted, 1), 1),
            "user_name": user,
            "requests_refused": len(rows),
            "clients": [{"address": first["client_address"], "client_id": name}],
        },
    )


def _evidence(row: Row) -> Evidence:
    packet = next(
        (row[name] for name in ("first_packet", "packet", "request_packet") if row.get(name) is not None), None
    )
    return Evidence(row.get("file"), packet, row.get("exchange_id"))


DETECTOR = Detector(
    code="NET103",
    name="retry-without-back-off",
    severity="warning",
    confidence="high",
    reads={
        "flows": ("ts_first", "flow_id", "file", "first_packet"),
        LOGINS: ("ts", "exchange_id", "client_id", "flow_id", "user_name"),
        "mqtt_connections": ("ts", "exchange_id", "client_id", "flow_id", "user_name", "file", "packet"),
        "mongo_commands": ("ts", "exchange_id", "app_name", "flow_id", "user_name", "status", "file", "request_packet"),
    },
    partition_by=("client_address", "server_address", "server_port"),
    detect=detect,
    rows={
        "flows": "handshake = 'refused' AND duplicate_of IS NULL",
        LOGINS: "NOT accepted AND error_code <> 0",
        "mqtt_connections": "error_code <> 0",
        # The user stands in an earlier command of the connection than the refusal.
        "mongo_commands": f"({_SASL} AND status = 'error') OR (user_name IS NOT NULL AND flow_id IN (SELECT flow_id "
        f"FROM mongo_commands WHERE {_SASL} AND status = 'error') AND status = 'ok')",
    },
    suspects=" UNION ALL ".join(
        f"SELECT client_address, server_address, server_port FROM r_{kind.table} GROUP BY ALL HAVING count(*) >= 20"
        for kind in _KINDS
    ),
)
