"""MQT154 thrown-out: the server ends a client's connection each time a client with another id connects.

Finds
    Clients with different client ids of which the server keeps one at a time: each CONNECT of one ends the connection
    of another. Question: who acts on one thing at the same time.

Why it matters
    The server takes them for one: it may use the user name or the certificate as client id, or allow one connection
    for each user or address. Each comes back by itself and throws the other out, so none stays, and messages are lost.
    The client ids differ, so that nobody looks for it, and to each program it looks like a bad network.

How it decides
    An end counts where the server closed a connection, or sent DISCONNECT, right after the accepted CONNECT of one
    other client id: within closed_within_s, and within a twentieth of the usual time between two CONNECTs there. No
    other connection was ended by the server at that moment, and the client itself had not connected again. A client is
    thrown out where that holds for ends_least ends of it or more, and for four fifths (share) of all that the server
    made. Clients that do so to each other are told together. With MQTT 3.1.1 a server says no reason.

False alarms
    A server that is full and lets the latest in, where only two clients try.

What it cannot tell
    What the server takes them for: user name or address is named where they have it in common and no other client has.

References
    MQTT 3.1.1: section 3.1.3.1 and [MQTT-3.1.4-2]; 5.0: [MQTT-3.1.4-3]. Mosquitto: use_username_as_clientid,
    use_identity_as_username.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from wirewitness.analyser.base.addresses import server_of, server_text
from wirewitness.analyser.base.times import NS_PER_MS, NS_PER_S, ms_text, period_text
from wirewitness.analyser.base.words import names_text, printable, times
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mqtt.rules.rows import client_numbers, client_title

_PART_OF_A_GAP = 20


class _ThrownOut(NamedTuple):
    old: Row
    new: Row
    ended: int


def detect(
    frames: Frames, *, ends_least: int = 3, share: float = 0.8, closed_within_s: float = 1.0
) -> Iterator[Finding]:
    """One finding for each set of clients of this server that throw each other out."""
    ports: dict[int | None, list[Row]] = {}
    for row in rows_of(frames["mqtt_connections"]):
        ports.setdefault(row["server_port"], []).append(row)
    for rows in ports.values():
        accepted = [row for row in rows if row["connect_seen"] and row["error_code"] == 0]
        gaps = [after["ts"] - before["ts"] for before, after in pairwise(accepted)]
        if len(gaps) < ends_least:
            continue
        within = min(int(closed_within_s * NS_PER_S), int(median(gaps)) // _PART_OF_A_GAP)
        ends = [(row, ended) for row in rows if (ended := _ended_by_server(row)) is not None]
        found = list(_thrown_out(accepted, ends, within))
        caused, all_ends = Counter(one.old["client_id"] for one in found), Counter(row["client_id"] for row, _ in ends)
        victims = {name for name, n in caused.items() if n >= ends_least and n >= share * all_ends[name]}
        found = [one for one in found if one.old["client_id"] in victims]
        shared = _Shared(accepted)
        for together in _sets(found):
            yield _finding(together, shared)


def _ended_by_server(row: Row) -> int | None:
    """When the server ended that connection; None where the client did, or nobody."""
    if row["disconnected_by"] is not None:
        return row["ts_disconnect"] if row["disconnected_by"] == "server" else None
    return row["ts_closed"] if row["closed_by"] == "server" else None


def _thrown_out(accepted: Sequence[Row], ends: Sequence[tuple[Row, int]], within: int) -> Iterator[_ThrownOut]:
    """Each end that came right after one CONNECT of another client id."""
    begun = [row["ts"] for row in accepted]
    moments = sorted(ended for _, ended in ends)
    for row, ended in ends:
        first, behind = bisect_left(begun, ended - within), bisect_right(begun, ended)
        others = bisect_right(moments, ended + within) - bisect_left(moments, ended - within)
        if behind - first == 1 and others == 1 and accepted[first]["client_id"] != row["client_id"]:
            yield _ThrownOut(row, accepted[first], ended)


def _sets(found: Sequence[_ThrownOut]) -> list[list[_ThrownOut]]:
    """Ends whose client ids are joined by them, those that only throw others out among them."""
    leads: dict[str, str] = {}

    def lead(name: str) -> str:
        while leads.setdefault(name, name) != name:
            leads[name] = name = leads[leads[name]]
        return name

    for one in found:
        leads[lead(one.old["client_id"])] = lead(one.new["client_id"])
    sets: dict[str, list[_ThrownOut]] = {}
    for one in found:
        sets.setdefault(lead(one.old["client_id"]), []).append(one)
    return [*sets.values()]


class _Shared:
    """User names and addresses of the clients of a server."""

    def __init__(self, accepted: Sequence[Row]) -> None:
        self._clients = {row["client_id"] for row in accepted}
        self._values: dict[tuple[str, str], set[str | None]] = {}
        self._holders: dict[tuple[str, str | None], set[str]] = {}
        for row in accepted:
            for column in _WORDS:
                self._values.setdefault((column, row["client_id"]), set()).add(row[column])
                self._holders.setdefault((column, row[column]), set()).add(row["client_id"])

    def by(self, clients: Sequence[Row]) -> str:
        """What these clients share and no other client of the server has."""
        own = {row["client_id"] for row in clients}
        only = ", and no other client there has it" if len(self._clients) > len(own & self._clients) else ""
        for column, text in _WORDS.items():
            values = set().union(*(self._values.get((column, one), ()) for one in own))
            value = values.pop() if len(values) == 1 else None
            if value is not None and len(held := self._holders[column, value]) <= len(own) and held <= own:
                return f" All of them have {text.format(printable(value, 60))}{only}."
        return ""


_WORDS = {"user_name": "the user name {}", "client_address": "the address {}"}


def _finding(found: Sequence[_ThrownOut], shared: _Shared) -> Finding:
    last_of = {row["client_id"]: row for one in found for row in (one.old, one.new)}
    clients = [last_of[name] for name in sorted(last_of)]
    thrown, server = Counter(one.old["client_id"] for one in found), server_text(clients[0])
    shown = names_text(
        [f"{printable(row['client_id'], 80)} at {row['client_address'] or '(unknown address)'} "
         f"({times(thrown[row['client_id']])})" for row in clients], 4
    )  # fmt: skip
    took = max(one.ended - one.new["ts"] for one in found) / NS_PER_MS
    return RULE.finding(
        subject={"server": clients[0]["server_address"], "client_id": clients[0]["client_id"],
                 "clients": [row["client_id"] for row in clients]},
        title=f"Client ids that throw each other out: {names_text([client_title(row) for row in clients], 3)}",
        sentence=(
            f"Clients with different ids end each other's connections at {server}: {shown}. "
            f"{times(len(found)).capitalize()} the server closed a connection of one within {ms_text(took)} of the "
            f"CONNECT of another, {period_text(found[0].new['ts'], found[-1].ended)}.{shared.by(clients)}"
        ),
        next_step=(
            "Look at what the server takes for the identity of a client, or counts connections by: the user name, the "
            "certificate, the address. Give each program a user of its own, or change that setting of the server."
        ),
        proof=Proof(
            found[0].new["ts"],
            found[-1].ended,
            (Evidence(one.new["file"], one.new["packet"], one.new["exchange_id"]) for one in found),
        ),
        numbers={
            "server": server_of(clients[0]),
            "take_overs": len(found),
            "requests_refused": len(found),
            "where": server,
            "clients": [client_numbers(row, thrown_out=thrown[row["client_id"]]) for row in clients],
        },
    )  # fmt: skip


RULE = Rule(
    code="MQT154",
    question="concurrent",
    name="thrown-out",
    severity="warning",
    confidence="medium",
    reads={
        "mqtt_connections": (
            "ts", "exchange_id", "client_id", "client_address", "client_port", "server_port", "version", "user_name",
            "connect_seen", "error_code", "disconnected_by", "ts_disconnect", "closed_by", "ts_closed", "file",
            "packet",
        ),
    },
    partition_by=("server_address",),
    detect=detect,
    rows={"mqtt_connections": "client_id <> ''"},
    suspects="""
        SELECT server_address FROM r_mqtt_connections GROUP BY server_address
        HAVING count(*) FILTER (closed_by = 'server' OR disconnected_by = 'server') >= 3
            AND min(client_id) <> max(client_id)""",
)  # fmt: skip
