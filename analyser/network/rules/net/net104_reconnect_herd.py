"""NET104 reconnect-herd: a server comes back, all of its clients come at once, and it cannot take them.

Finds
    Servers that were away for a while, and whose clients then connect together in such numbers that many of them are
    refused or not served although the server is there again.

Why it matters
    What was a restart of seconds becomes an outage of minutes: those who fail come again at once, the server is busy
    with handshakes and logins, and each of its queues is full. No single client does anything wrong that shows.

How it decides
    A server is away from when at least 10 of its connections end within 2 s (lost_least, together_s), or from the first
    of 10 attempts in vain, one after the other, until it serves a connection again (it answers with bytes). In the 30 s
    after that (window_s) at least 20 connections begin (attempts_least), and of those that begin once it is back at
    least 10 (failed_least) and a fifth (failed_share) are in vain: refused, never answered, closed without a byte of
    the server, answered by MQTT with "server unavailable", "server busy", "quota exceeded" or "connection rate
    exceeded", or by a CONNACK that comes when the client, which had sent CONNECT alone, has waited for a second or more
    (patience_s) and given up. The server was there for each of these: connections are served that begin within a second
    before and behind it (beside_s), or a CONNACK went to another client while it waited. Attempts while the server was
    away are none of it (TCP104 and NET103 speak of them), nor are refused credentials. The number of clients is that of
    addresses, or of client ids and applications, where more are known.

False alarms
    A server that comes back for a moment and goes again. One of whose packets many are missing from the capture.

What it cannot tell
    Why the server was away, and what it lacks: a longer accept queue, processor time, a higher limit.

References
    AWS Architecture Blog, "Exponential Backoff And Jitter"; listen(2), backlog; MQTT 3.1.1: section 3.2.2.3 (0x03);
    5.0: section 3.2.2.2 (0x88, 0x89, 0x97, 0x9F).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.times import NS_PER_S, clock_text, seconds_text
from wirewitness.analyser.base.words import count, names_text, printable
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.flow_rows import client_names, named_by
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule

# Server unavailable (3.1.1); server unavailable, server busy, quota exceeded, connection rate exceeded (5.0).
_BUSY = (0x03, 0x88, 0x89, 0x97, 0x9F)
_VAIN = ("refused", "unanswered")
# A herd is named as a whole; so many in the numbers of a finding.
MOST_CLIENTS = 100


class _Answers(NamedTuple):
    """What MQTT says of a server's connections. busy, late: flows that were told so, and told after they had given up.

    sent_ns: when its CONNACKs were sent, sorted.
    """

    busy: set[str]
    late: set[str]
    sent_ns: Sequence[int]


_begun = itemgetter("ts_first")


class _Herd(NamedTuple):
    """away_ns, back_ns: since when the server was away, and when it served again. came: connections after that."""

    away_ns: int
    back_ns: int
    came: Sequence[Row]
    failed: Sequence[Row]


def detect(
    frames: Frames,
    *,
    lost_least: int = 10,
    together_s: float = 2.0,
    window_s: float = 30.0,
    attempts_least: int = 20,
    failed_least: int = 10,
    failed_share: float = 0.2,
    beside_s: float = 1.0,
    patience_s: float = 1.0,
) -> Iterator[Finding]:
    """At most one finding for this server: its worst return."""
    answers = _answers(rows_of(frames["mqtt_connections"]), int(patience_s * NS_PER_S))
    flows = sorted(rows_of(frames["flows"]), key=lambda row: (row["ts_first"], row["flow_id"]))
    served = [row["ts_first"] for row in flows if _serves(row, answers)]
    herds = []
    for away_ns in _absences(flows, answers, lost_least, int(together_s * NS_PER_S)):
        herd = _return(flows, served, answers, away_ns, int(window_s * NS_PER_S), int(beside_s * NS_PER_S))
        if herd is None or len(herd.came) < attempts_least:
            continue
        if len(herd.failed) >= max(failed_least, failed_share * len(herd.came)):
            herds.append(herd)
    if herds:
        yield _finding(max(herds, key=lambda one: len(one.failed)), client_names(rows_of(frames["exchanges"])))


def _answers(connections: Sequence[Row], patience_ns: int) -> _Answers:
    busy = {row["flow_id"] for row in connections if row["error_code"] in _BUSY}
    late = {row["flow_id"] for row in connections if _gave_up(row, patience_ns)}
    sent = sorted(row["ts_response"] for row in connections if row["ts_response"] is not None)
    return _Answers(busy, late, sent)


def _gave_up(connection: Row, patience_ns: int) -> bool:
    """Did the client wait for CONNACK, and close before it came? One that sends and leaves does not wait."""
    closed, answered = connection["ts_closed"], connection["ts_response"]
    if connection["closed_by"] != "client" or connection["client_messages"] != 1 or closed is None or answered is None:
        return False
    return bool(answered > closed >= connection["ts"] + patience_ns)


def _in_vain(flow: Row, answers: _Answers) -> bool:
    """Did it come to nothing? One that is still open may be served yet."""
    if flow["handshake"] in _VAIN or flow["flow_id"] in answers.busy:
        return True
    return flow["handshake"] == "complete" and not flow["bytes_to_client"] and flow["ts_closed"] is not None


def _serves(flow: Row, answers: _Answers) -> bool:
    turned_away = flow["flow_id"] in answers.busy or flow["flow_id"] in answers.late
    return flow["handshake"] == "complete" and bool(flow["bytes_to_client"]) and not turned_away


def _absences(flows: Sequence[Row], answers: _Answers, least: int, together_ns: int) -> Iterator[int]:
    """When the server went away: many connections ended together, or attempts in vain follow one another."""
    ends = sorted(row["ts_closed"] for row in flows if row["ts_closed"] is not None and _serves(row, answers))
    last = None
    for first, end in zip(ends, ends[least - 1 :], strict=False):
        if end - first <= together_ns and (last is None or first - last > together_ns):
            yield first
        if end - first <= together_ns:
            last = end
    begun = failed = 0
    for row in flows:
        if _in_vain(row, answers):
            begun, failed = (begun if failed else row["ts_first"]), failed + 1
        else:
            if failed >= least:
                yield begun
            failed = 0


def _return(
    flows: Sequence[Row], served: Sequence[int], answers: _Answers, away_ns: int, window_ns: int, beside_ns: int
) -> _Herd | None:
    """What came when the server was back; None where it did not come back. flows, and when those that were served
    began: in the order of time."""
    place = bisect_left(served, away_ns)
    if place == len(served):
        return None
    back_ns = served[place]
    came = flows[bisect_left(flows, back_ns, key=_begun) : bisect_right(flows, back_ns + window_ns, key=_begun)]
    failed = [
        row for row in came
        if (row["flow_id"] in answers.late or _in_vain(row, answers))
        and (_is_there(served, row["ts_first"], beside_ns) or _answered_others(answers.sent_ns, row))
    ]  # fmt: skip
    return _Herd(away_ns, back_ns, came, failed)


def _is_there(served: Sequence[int], at_ns: int, beside_ns: int) -> bool:
    """Were connections served that began just before and just after that?"""
    place = bisect_right(served, at_ns)
    return 0 < place < len(served) and at_ns - served[place - 1] <= beside_ns >= served[place] - at_ns


def _answered_others(sent_ns: Sequence[int], flow: Row) -> bool:
    """Did a CONNACK go to another client while this one waited? Its own is none: it came after the end."""
    closed_ns = flow["ts_closed"]
    if flow["handshake"] != "complete" or closed_ns is None:
        return False
    return bisect_right(sent_ns, flow["ts_first"]) < bisect_right(sent_ns, closed_ns)


def _finding(herd: _Herd, names: Mapping[str, str]) -> Finding:
    server = server_text(herd.came[0])
    clients = dict.fromkeys((row["client_address"], names.get(row["flow_id"])) for row in herd.came)
    named = [one for one in clients if any(one)]
    addresses = sorted({address for address, _ in clients if address})
    ids = sorted({name for _, name in clients if name})
    who = f"{len(ids)} client ids" if len(ids) > len(addresses) else count(len(addresses), "address", "addresses")
    shown = names_text([printable(one, 60) for one in (ids or addresses)], 4)
    last_ns = max(row["ts_first"] for row in herd.came)
    return RULE.finding(
        subject={"server": server},
        title=(f"{count(len(herd.came), 'connection')} at once when {server} was back, {len(herd.failed):,} in vain"),
        sentence=(
            f"When {server} was back at {clock_text(herd.back_ns)}, after {seconds_text(herd.back_ns - herd.away_ns)}, "
            f"{count(len(herd.came), 'connection')} of {who} came within {seconds_text(last_ns - herd.back_ns)}. "
            f"{len(herd.failed):,} of them were in vain ({_how(herd.failed)}) although it was there. They are {shown}."
        ),
        next_step=(
            "Let clients wait a random and growing time before they connect again (jitter and a maximum, in the "
            "settings of the client library); raise the server's accept backlog and its limits of logins."
        ),
        proof=Proof(herd.away_ns, last_ns, (Evidence(row["file"], row["first_packet"], None) for row in herd.failed)),
        numbers={
            "server": server,
            "where": server,
            "away_ms": round((herd.back_ns - herd.away_ns) / 1e6, 3),
            "connections": len(herd.came),
            "requests_refused": len(herd.failed),
            "clients": [{"address": address, "client_id": name} for address, name in named[:MOST_CLIENTS]],
        },
    )


def _how(failed: Sequence[Row]) -> str:
    said = {"refused": "refused", "unanswered": "got no SYN-ACK"}
    kinds: dict[str, int] = {}
    for row in failed:
        kind = said.get(row["handshake"], "not served")
        kinds[kind] = kinds.get(kind, 0) + 1
    return ", ".join(f"{number} {kind}" for kind, number in sorted(kinds.items()))


_SIDE = ("server_address", "server_port")
_NOT_SERVED = "(handshake = 'complete' AND bytes_to_client = 0 AND ts_closed IS NOT NULL)"
_LATE = "(closed_by = 'client' AND client_messages = 1 AND ts_response > ts_closed)"
# Servers with so many attempts in vain; their other connections tell when they were there.
_TROUBLED = (
    f"({', '.join(_SIDE)}) IN (SELECT ({', '.join(_SIDE)}) FROM flows WHERE handshake IN {_VAIN} OR {_NOT_SERVED} "
    f"GROUP BY {', '.join(_SIDE)} HAVING count(*) >= 10 UNION ALL SELECT ({', '.join(_SIDE)}) FROM mqtt_connections "
    f"WHERE error_code IN {_BUSY} OR {_LATE} GROUP BY {', '.join(_SIDE)} HAVING count(*) >= 10)"
)

RULE = Rule(
    code="NET104",
    question="ended",
    name="reconnect-herd",
    severity="warning",
    confidence="medium",
    reads={
        "flows": (
            "flow_id", "client_address", "ts_first", "ts_closed", "handshake", "bytes_to_client", "file",
            "first_packet",
        ),
        "mqtt_connections": (
            "ts", "flow_id", "error_code", "ts_response", "ts_closed", "closed_by", "client_messages",
        ),
        "exchanges": ("ts", "flow_id", "client_id"),
    },
    partition_by=_SIDE,
    signs={"flows": "count(*) >= 20"},
    detect=detect,
    rows={
        "flows": f"duplicate_of IS NULL AND {_TROUBLED}",
        "mqtt_connections": f"ts_response IS NOT NULL AND {_TROUBLED}",
        "exchanges": named_by("exchanges", _TROUBLED),
    },
    suspects=f"SELECT {', '.join(_SIDE)} FROM r_flows GROUP BY ALL HAVING count(*) >= 20",
)  # fmt: skip
