"""MQT102 takeover-loop: clients with one client id throw each other out.

Finds
    One client id that connects again and again from different connections, each time ending the one before.

Why it matters
    A server closes the older connection when a client id connects once more. Two programs with one id, each of
    which reconnects by itself, never stop: every few seconds one of them loses its connection, and messages are
    lost or come twice. Each program's log shows a network that fails.

How it decides
    A take-over: a CONNECT that was accepted, from another address or port, while an earlier connection with that
    client id was open, which then ended within 1 s (closed_within_s), by the server or, in 5.0, with DISCONNECT
    0x8E. At least 3 of them (takeovers_least) within 60 s (window_s); of two addresses in turn, back and forth, within
    five times the keep-alive, too: these programs wait longer before they come back. Two addresses make it critical.
    Or two addresses that never are there together resume one session in turn, turns_least times and nearly always
    when one connects: a warning.
    From one address it may be one program that starts a second connection before it closes the first, or two behind
    one address.

False alarms
    A client on a bad network whose old connections stay open at the server until it comes back: the closes then
    follow the pattern of its network, and its address often stays the same.

References
    MQTT 3.1.1: [MQTT-3.1.4-2]; 5.0: [MQTT-3.1.4-3], reason code 0x8E session taken over.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from wirewitness.analyser.base.addresses import client_endpoint_text, server_text
from wirewitness.analyser.base.times import NS_PER_S, ms_text
from wirewitness.analyser.base.words import names_text, printable, times
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.engine.rules.sweeps import most_within
from wirewitness.analyser.mqtt.rules.rows import client_text, ms_between, short

TAKEN_OVER = 0x8E
_KEEP_ALIVES = 5
_MOST_MOVE = 0.8


class _TakeOver(NamedTuple):
    old: Row
    new: Row


def detect(
    frames: Frames,
    *,
    takeovers_least: int = 3,
    window_s: float = 60.0,
    closed_within_s: float = 1.0,
    turns_least: int = 5,
) -> Iterator[Finding]:
    """One finding for this client id when `takeovers_least` take-overs lie within `window_s`."""
    connections = [row for row in rows_of(frames["mqtt_connections"]) if row["client_id"]]
    found = list(_take_overs(connections, int(closed_within_s * NS_PER_S)))
    keep_alive_s = min((one.new["keep_alive_s"] or 0 for one in found), default=0)
    if _in_turn(found):
        window_s = max(window_s, _KEEP_ALIVES * keep_alive_s)
    most = len(most_within(found, int(window_s * NS_PER_S), lambda one: int(one.new["ts"])))
    if not found or most < takeovers_least:
        yield from _shared(connections, turns_least)
        return
    addresses = sorted({c["client_address"] for t in found for c in (t.old, t.new)} - {None})
    name = printable(found[0].new["client_id"], 80)
    took = ms_text(ms_between(found[0].new["ts"], found[-1].new["ts"]))
    who = (
        f"from {len(addresses)} addresses ({names_text(addresses, 3)})"
        if len(addresses) > 1
        else f"from {addresses[0] if addresses else '(unknown address)'}"
    )
    last = found[-1]
    yield RULE.finding(
        severity="critical" if len(addresses) > 1 else "warning",
        confidence="high" if len(addresses) > 1 else "medium",
        subject={"server": found[0].new["server_address"], "client_id": found[0].new["client_id"]},
        title=f"Client id {short(last.new['client_id'])} taken over {times(len(found))}: {names_text(addresses, 2)}",
        sentence=(
            f"Client id {name} took over its own connection at {server_text(found[0].new)} {len(found)} times in "
            f"{took}, {who}. Each CONNECT ended the connection before: last, {client_text(last.new)} ended that "
            f"of {client_endpoint_text(last.old)}."
        ),
        next_step=(
            "Give each program a client id of its own; look at these addresses for copies of one program."
            if len(addresses) > 1
            else "Look for two copies of the program, or for a reconnect that does not close the old connection first."
        ),
        proof=Proof(
            found[0].new["ts"],
            found[-1].new["ts"],
            (Evidence(t.new["file"], t.new["packet"], t.new["exchange_id"]) for t in found),
        ),
        numbers={
            "client_id": found[0].new["client_id"],
            "server_address": found[0].new["server_address"],
            "where": server_text(found[0].new),
            "take_overs": len(found),
            "requests_refused": len(found),
            "most_in_window": most,
            "clients": _clients(found),
        },
    )


def _take_overs(connections: list[Row], within_ns: int) -> Iterator[_TakeOver]:
    """Each CONNECT that ended the connection before. A refused CONNECT takes nothing over."""
    before: Row | None = None
    for row in connections:
        if row["connect_seen"] and row["error_code"] not in (0, None):
            continue
        if before is not None and row["connect_seen"] and _ended_by(before, row, within_ns):
            yield _TakeOver(before, row)
        before = row


def _ended_by(old: Row, new: Row, within_ns: int) -> bool:
    ended = old["ts_closed"] or old["ts_disconnect"]
    if ended is None or not new["ts"] <= ended <= new["ts"] + within_ns:
        return False
    # A client that closes by itself at that moment is reconnecting, not thrown out.
    by_code = old["disconnected_by"] == "server" and old["disconnect_reason_code"] == TAKEN_OVER
    return by_code or bool(old["disconnected_by"] != "client" and old["closed_by"] != "client")


def _shared(connections: list[Row], turns_least: int) -> Iterator[Finding]:
    """One session that clients at two addresses resume in turn, without ending each other's connection."""
    own = [row for row in connections if row["connect_seen"] and row["error_code"] == 0]
    addresses = {row["client_address"] for row in own}
    moved = [after for before, after in pairwise(own) if after["client_address"] != before["client_address"]]
    resumed = [row for row in moved if row["session_present"]]
    if len(addresses) != 2 or len(resumed) < turns_least or len(resumed) < _MOST_MOVE * (len(own) - 1):
        return
    names = sorted(addresses - {None})
    yield RULE.finding(
        severity="warning",
        confidence="medium",
        subject={"server": own[0]["server_address"], "client_id": own[0]["client_id"]},
        title=f"Client id {short(own[0]['client_id'])} in turn from two addresses: {names_text(names, 2)}",
        sentence=(
            f"Client id {printable(own[0]['client_id'], 80)} connected to {server_text(own[0])} from two addresses in "
            f"turn ({names_text(names, 2)}), {times(len(own))} in {ms_text(ms_between(own[0]['ts'], own[-1]['ts']))}; "
            f"{times(len(resumed))} it went on with the session that the other one had left. So each gets the messages "
            "of the time in which it is there, and none has all of them."
        ),
        next_step="Give each program a client id of its own; look at these addresses for copies of one program.",
        proof=Proof(
            own[0]["ts"], own[-1]["ts"], (Evidence(row["file"], row["packet"], row["exchange_id"]) for row in moved)
        ),
        numbers={
            "client_id": own[0]["client_id"],
            "take_overs": 0,
            "turns": len(moved),
            "addresses": names,
            "where": server_text(own[0]),
            "clients": [{"address": one, "client_id": own[0]["client_id"]} for one in names],
        },
    )


def _in_turn(found: list[_TakeOver]) -> bool:
    """Did the address change at each of them, to one that was there before, two at least?"""
    back = [one for before, one in pairwise(found) if one.new["client_address"] == before.old["client_address"]]
    moved = all(one.old["client_address"] != one.new["client_address"] for one in found)
    return moved and len(back) == len(found) - 1 >= 1


def _clients(found: list[_TakeOver]) -> list[Row]:
    """One element per address: how often it took over, and its last port."""
    clients: dict[str | None, Row] = {}
    for one in (*(t.old for t in found[:1]), *(t.new for t in found)):
        held = clients.setdefault(
            one["client_address"],
            {
                "address": one["client_address"],
                "client_id": one["client_id"],
                "version": one["version"],
                "take_overs": 0,
            },
        )
        held["last_port"] = one["client_port"]
    for take_over in found:
        clients[take_over.new["client_address"]]["take_overs"] += 1
    return list(clients.values())


RULE = Rule(
    code="MQT102",
    question="concurrent",
    name="takeover-loop",
    severity="critical",
    confidence="high",
    reads={
        "mqtt_connections": (
            "ts", "exchange_id", "client_address", "client_port", "server_port", "version", "connect_seen",
            "error_code", "session_present", "keep_alive_s", "disconnected_by", "disconnect_reason_code",
            "ts_disconnect", "closed_by", "ts_closed", "file", "packet",
        ),
    },
    partition_by=("server_address", "client_id"),
    detect=detect,
    rows={"mqtt_connections": "client_id <> ''"},
    suspects=(
        "SELECT server_address, client_id FROM r_mqtt_connections GROUP BY ALL HAVING count(*) > 3"
    ),
)  # fmt: skip
