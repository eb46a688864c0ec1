"""TCP104 handshake: connections to a server are refused, not accepted, or slow to begin.

Finds
    Servers (address and port) to which connections could not be made, or only after more than a second.

Why it matters
    Clients retry for long and say only "disconnected" or "timeout". A refused port is a process that is not there; no
    answer is a filter or a dead host; a handshake of a second or more is a lost SYN or a full accept queue.

How it decides
    A SYN that is answered by RST; a SYN that was sent at least 3 times (syns_least) without any answer, and neither
    data nor a close behind it (they prove that the answer is only missing from the capture); more than 1 s
    (slow_ms_above) from the first SYN to the SYN-ACK. One finding for each server. When the server accepts connections
    after the last refused or unanswered one it was restarted: info; likewise when it was in use before and the attempts
    in vain end within 15 s (restart_s), since a server that is restarted looks so at the end of a capture. A client is
    named by its client id or application where that connection told one; of another connection of its address only
    that such a client runs there, since nobody knows which program of the address tried. It was not restarted where one
    address alone got no answer, three times or more, while connections of others went on from before the first of these
    attempts until after the last. Handshakes that are slow at fewer than 3 moments (moments; SYNs within once_s are of
    one), none of which took slow_ms_warned or more, are info: one lost SYN each, as when many clients come in the same
    instant.

False alarms
    A probe that tries which ports are open. Unanswered attempts where only one direction was captured: confidence is
    low for them.

What it cannot tell
    Whether it was a filter or a host that is off, where there is no answer at all; or a full accept queue, where only
    the address that was cut off opened connections then.

References
    RFC 9293, 3.5; RFC 6298: the first SYN is repeated after 1 s. Linux drops SYNs when the accept queue is full.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.times import NS_PER_S
from wirewitness.analyser.base.titles import first_of
from wirewitness.analyser.base.words import count, names_text, printable
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.flow_rows import MAX_NAME, MOST_NAMED, client_names
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule

_SILENT_LEAST = 3


def detect(
    frames: Frames,
    *,
    slow_ms_above: float = 1000.0,
    syns_least: int = 3,
    restart_s: float = 15.0,
    once_s: float = 1.0,
    slow_ms_warned: float = 2000.0,
    moments: int = 3,
) -> Iterator[Finding]:
    """At most one finding for this server: refused, `syns_least` SYNs in vain, or slower than `slow_ms_above`."""
    flows = rows_of(frames["flows"])
    refused = [f for f in flows if f["handshake"] == "refused"]
    silent = [f for f in flows if f["handshake"] == "unanswered" and not f["data_segments"]]
    silent = [f for f in silent if (f["packets"] or 0) >= syns_least and f["closed_by"] is None]
    failed = [f["ts_first"] for f in (*refused, *silent)]
    slow = [f for f in flows if f["handshake"] == "complete" and (f["handshake_ms"] or 0) > slow_ms_above]
    failed_ns = max(failed, default=0)
    restarting = bool(failed) and failed_ns - min(failed) < restart_s * NS_PER_S and _in_use(flows, min(failed))
    recovered = any(f["handshake"] == "complete" and f["ts_first"] > failed_ns for f in flows)
    cut_off = _cut_off(silent, flows)
    is_slow = _moments(slow, once_s) >= moments or any(f["handshake_ms"] >= slow_ms_warned for f in slow)
    shown = sorted((*refused, *silent, *slow), key=lambda f: (f["ts_first"], f["flow_id"]))
    if not shown:
        return
    server = server_text(shown[0])
    parts = [
        f"{count(len(refused), 'connection')} refused" if refused else "",
        f"{count(len(silent), 'connection')} without a SYN-ACK" if silent else "",
        f"{count(len(slow), 'connection')} slow to open (up to {max(f['handshake_ms'] for f in slow):.0f} ms)"
        if slow
        else "",
    ]
    what = ", ".join(filter(None, parts))
    clients = _clients(shown, rows_of(frames["exchanges"]))
    named = names_text([_client_text(one) for one in clients], 3)
    more = (_LATER if recovered else "") + (_CUT_OFF if cut_off else "")
    yield RULE.finding(
        severity="info" if (recovered or restarting or not failed) and not (is_slow or cut_off) else "warning",
        confidence="high" if refused or slow else "medium" if cut_off else "low",
        subject={"server": server},
        title=f"{server}: {what}, from {first_of(one['client_id'] or one['address'] or '?' for one in clients)}",
        sentence=f"{server}: {what}, from {named}{more}.",
        next_step=(
            "Refused: is the process up, is the advertised address right? No SYN-ACK: firewall, routing, dead host. "
            "Slow: lost packets, or an accept queue that is full."
        ),
        proof=Proof(
            shown[0]["ts_first"], shown[-1]["ts_first"], (Evidence(f["file"], f["first_packet"], None) for f in shown)
        ),
        numbers={
            "server": server,
            "refused": len(refused),
            "unanswered": len(silent),
            "slow": len(slow),
            "requests_refused": len(refused) + len(silent),
            "wasted_ms": round(sum(f["handshake_ms"] for f in slow), 3),
            "slowest_ms": max((f["handshake_ms"] for f in slow), default=None),
            "clients": [
                {"address": one["address"], "client_id": one["client_id"]}
                for one in clients
                if one["client_id"] is not None
            ][:MOST_NAMED],
            "addresses": list(dict.fromkeys(one["address"] for one in clients))[:MOST_NAMED],
        },
    )


_LATER = "; it accepts them later"
_CUT_OFF = "; connections of other addresses went on meanwhile, so the server was there and this address was cut off"


def _moments(slow: Sequence[Row], once_s: float) -> int:
    """How often some began within so many seconds."""
    found, until = 0, 0
    for began in sorted(flow["ts_first"] for flow in slow):
        if began >= until:
            found, until = found + 1, began + once_s * NS_PER_S
    return found


def _cut_off(silent: Sequence[Row], flows: Sequence[Row]) -> bool:
    """Did one address alone get no answer, while connections of others went on?"""
    addresses = {flow["client_address"] for flow in silent}
    if len(silent) < _SILENT_LEAST or len(addresses) != 1:
        return False
    since, until = (edge(flow["ts_first"] for flow in silent) for edge in (min, max))
    taken = [flow for flow in flows if flow["handshake"] in (None, "complete")]
    if any(flow["client_address"] in addresses and since < flow["ts_first"] < until for flow in taken):
        return False
    return any(
        flow["client_address"] not in addresses and flow["ts_first"] < since and flow["ts_last"] > until
        for flow in taken
    )  # fmt: skip


def _clients(shown: Sequence[Row], exchanges: Sequence[Row]) -> list[Row]:
    """Who tried, each once: by the client id of that connection, else by the one that its address told this server."""
    by_flow = client_names(exchanges)
    told: dict[str | None, set[str]] = {}
    for row in exchanges:
        told.setdefault(row["client_address"], set()).add(row["client_id"])
    found = set()
    for flow in shown:
        names = told.get(flow["client_address"], set())
        # With several clients at an address nobody knows which one tried.
        only = next(iter(names)) if len(names) == 1 else None
        own = by_flow.get(flow["flow_id"])
        found.add((flow["client_address"], own or only, own is None))
    ordered = sorted(found, key=lambda one: (str(one[0]), str(one[1]), one[2]))
    return [{"address": address, "client_id": name, "by_address": guess} for address, name, guess in ordered]


def _client_text(client: Row) -> str:
    address, name = client["address"] or "(unknown address)", client["client_id"]
    if not name:
        return str(address)
    shown = printable(name, MAX_NAME)
    return f"{address} (where {shown} runs)" if client["by_address"] else f"{address} ({shown})"


def _in_use(flows: Sequence[Row], before_ns: int) -> bool:
    """Data went to and from this server before that."""
    return any(f["handshake"] in (None, "complete") and f["data_segments"] and f["ts_first"] < before_ns for f in flows)


_FAILED = (
    "(handshake = 'refused' OR (handshake = 'unanswered' AND packets >= 3 AND coalesce(data_segments, 0) = 0 "
    "AND closed_by IS NULL) "
    "OR handshake_ms > 1000)"
)
_SERVER = "server_address, server_port"
# One exchange of each client of such a server.
_CLIENTS = (
    "exchange_id IN (SELECT min(exchange_id) FROM exchanges WHERE client_id IS NOT NULL "
    f"AND ({_SERVER}) IN (SELECT ({_SERVER}) FROM flows WHERE {_FAILED}) "
    f"GROUP BY {_SERVER}, client_address, client_id, "
    f"CASE WHEN flow_id IN (SELECT flow_id FROM flows WHERE {_FAILED}) THEN flow_id END)"
)

RULE = Rule(
    code="TCP104",
    question="ended",
    name="handshake",
    severity="warning",
    confidence="high",
    reads={
        "flows": (
            "flow_id", "client_address", "ts_first", "ts_last", "file", "first_packet", "packets", "handshake",
            "handshake_ms", "data_segments", "closed_by",
        ),
        "exchanges": ("ts", "flow_id", "client_address", "client_id"),
    },
    signs={"flows": f"bool_or({_FAILED})"},
    partition_by=("server_address", "server_port"),
    detect=detect,
    rows={"flows": "duplicate_of IS NULL", "exchanges": _CLIENTS},
    suspects=AnyRow("flows", f"{_FAILED}"),
)  # fmt: skip
