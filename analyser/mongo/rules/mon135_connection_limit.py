"""MON135 connection-limit: a server sends new connections away, and who holds most of those that are open.

Finds
    Servers that close connections before they reply to anything, while as many others are open as at no other time, and
    the client that holds most of these.

Why it matters
    A server takes so many connections and no more (net.maxIncomingConnections, the descriptors of its process, the
    limit of a hosting plan). Who comes late is sent away and blames the network; the cause is whoever holds them.

How it decides
    At least 5 connections (least) that the server closed although it had sent nothing on them. At each of these moments
    at least as many others were open as when the last one that was open was taken, or nine tenths (full) of it: the
    number at which it sends away is one, and below it connections are taken. One client (address) holds more than half
    (half) of the open ones, and at least 10 (holds_least). Connections that were open before the capture began are
    counted as far as they are seen.

False alarms
    A limit on connections of one address that is reached by the same client.

What it cannot tell
    Which limit it was.

References
    MongoDB manual: net.maxIncomingConnections, ulimit; connection string option maxPoolSize.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from wirewitness.analyser.base.addresses import server_text, who_is
from wirewitness.analyser.base.words import count, names_text, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.flow_rows import MAX_NAME
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.mongo.rules.rows import MONGO_FLOWS


def detect(
    frames: Frames, *, least: int = 5, full: float = 0.9, half: float = 0.5, holds_least: int = 10
) -> Iterator[Finding]:
    """At most one finding for this server."""
    flows = rows_of(frames["flows"])
    sent_away = [flow for flow in flows if flow["closed_by"] == "server" and not flow["bytes_to_client"]]
    taken = [flow for flow in flows if flow["bytes_to_client"]]
    if len(sent_away) < least or not taken:
        return
    begun = sorted(flow["ts_first"] for flow in taken)
    ended = sorted(max(flow["ts_first"], flow["ts_closed"]) for flow in taken if flow["ts_closed"] is not None)

    def number(flow: Row) -> int:
        """How many connections are open when it begins, itself among them."""
        return bisect_right(begun, flow["ts_first"]) - bisect_right(ended, flow["ts_first"])

    most = max(number(flow) - bool(_open_at([flow], flow["ts_first"])) for flow in taken)
    fewest = min(sent_away, key=number)
    if number(fewest) < full * (most + 1):
        return
    held = Counter(flow["client_address"] for flow in _open_at(taken, fewest["ts_first"]))
    (holder, holds), *_ = held.most_common(1)
    if holds >= holds_least and holds > half * sum(held.values()):
        yield _finding(
            sent_away, _open_at(taken, sent_away[-1]["ts_first"]), holder, holds, rows_of(frames["mongo_commands"])
        )


def _open_at(flows: Sequence[Row], ts: int) -> list[Row]:
    """The connections that are open at that time."""
    return [
        flow for flow in flows
        if flow["ts_first"] <= ts and (flow["ts_closed"] is None or flow["ts_closed"] > ts)
    ]  # fmt: skip


def _names(address: str | None, commands: Sequence[Row]) -> list[str]:
    return sorted({row["app_name"] for row in commands if row["client_address"] == address and row["app_name"]})


def _text(address: str | None, commands: Sequence[Row]) -> str:
    names = _names(address, commands)
    return who_is(names[0] if len(names) == 1 else None, address, kind="application", most=MAX_NAME)


def _finding(
    sent_away: Sequence[Row], is_open: Sequence[Row], holder: str, holds: int, known: Sequence[Row]
) -> Finding:
    ordered = sorted(sent_away, key=lambda flow: (flow["ts_first"], flow["flow_id"]))
    server, names = server_text(ordered[0]), _names(holder, known)
    victims = [*dict.fromkeys(flow["client_address"] for flow in ordered)]
    who = _text(holder, known)
    client: dict[str, Any] = {"address": holder, "client_id": names[0] if len(names) == 1 else None}
    return RULE.finding(
        severity="warning",
        confidence="medium",
        subject={"server": server, "address": holder},
        title=f"{server} sent away {count(len(ordered), 'connection')}: {names[0] if names else holder} holds {holds}",
        sentence=(
            f"{sentence_start(who)} holds {holds} of the {len(is_open)} open connections to {server}, which takes no "
            f"more: it closed {count(len(ordered), 'new connection')} of "
            f"{names_text([_text(one, known) for one in victims], 3)} without a reply."
        ),
        next_step=(
            "Let that application open fewer connections (maxPoolSize; one client object for each process), or raise "
            "the limit of the server (net.maxIncomingConnections, descriptors of the process, the hosting plan)."
        ),
        proof=Proof(
            ordered[0]["ts_first"], ordered[-1]["ts_first"],
            (Evidence(flow["file"], flow["first_packet"], None) for flow in ordered),
        ),
        numbers={
            "server": server,
            "address": holder,
            "sent_away": len(ordered),
            "requests_refused": len(ordered),
            "open": len(is_open),
            "holds": holds,
            "clients": [client],
            "victims": [{"address": one, "client_id": next(iter(_names(one, known)), None)} for one in victims[:20]],
        },
    )  # fmt: skip


_SERVER = "server_address, server_port"
_AWAY = "closed_by = 'server' AND bytes_to_client = 0 AND handshake = 'complete'"
_THERE = f"({_SERVER}) IN (SELECT ({_SERVER}) FROM flows WHERE {_AWAY})"
RULE = Rule(
    code="MON135",
    question="ended",
    name="connection-limit",
    severity="warning",
    confidence="medium",
    reads={
        "flows": (
            "flow_id", "client_address", "server_address", "server_port", "ts_first", "ts_closed", "closed_by",
            "bytes_to_client", "file", "first_packet",
        ),
        "mongo_commands": ("client_address", "app_name"),
    },
    partition_by=("server_address", "server_port"),
    detect=detect,
    rows={
        "flows": f"{MONGO_FLOWS} AND handshake = 'complete'",
        "mongo_commands": "exchange_id IN (SELECT min(exchange_id) FROM mongo_commands WHERE app_name IS NOT NULL AND "
        f"{_THERE} GROUP BY {_SERVER}, client_address, app_name)",
    },
    suspects=AnyRow("flows", "closed_by = 'server' AND bytes_to_client = 0"),
)  # fmt: skip
