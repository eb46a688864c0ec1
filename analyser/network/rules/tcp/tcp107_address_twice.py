"""TCP107 address-twice: connections are reset in a client's name, and the client goes on trying as if they were not.

Finds
    Clients whose SYN the server accepts, upon which an RST comes from the client's address, while the client itself
    sends its SYN again. Question: who acts on one thing at the same time.

Why it matters
    Two machines have one address, or something on the way sends RSTs in the client's name. Frames reach now the one,
    now the other machine, connections of both break, and no log of client or server says why.

How it decides
    A connection without data was reset by the client's address, and within 10 s (again_s) a SYN came from the same
    address and port again, `resets_least` times and on none of them data. Who resets an attempt itself has given that
    port up; only one that did not see the answer repeats its SYN from it.

False alarms
    A scanner that sends all its SYNs from one port, several times to the same server.

What it cannot tell
    Which machine has the address rightly. Frames tell more than this: look at the MAC addresses (in Wireshark eth.src)
    of the SYN and of the RST.

References
    RFC 9293, 3.5.2 (a SYN-ACK for a connection that is not there is answered by RST); RFC 6298 (the SYN is repeated);
    RFC 5227 (address conflicts in IPv4).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from wirewitness.analyser.base.addresses import server_of, server_text
from wirewitness.analyser.base.times import NS_PER_MS, NS_PER_S, period_text
from wirewitness.analyser.base.words import count, names_text, printable
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.flow_rows import MAX_NAME, MOST_NAMED, exchange_of_each_client
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule


def detect(frames: Frames, *, resets_least: int = 3, again_s: float = 10.0) -> Iterator[Finding]:
    """At most one finding for this client address and server."""
    names = sorted({row["client_id"] for row in rows_of(frames["exchanges"]) if row["client_id"]})
    by_port: dict[int, list[Row]] = {}
    for row in rows_of(frames["flows"]):
        by_port.setdefault(row["client_port"], []).append(row)
    again: list[Row] = []
    for rows in by_port.values():
        for row, following in pairwise(rows):
            if _is_reset(row) and following["ts_first"] - row["ts_first"] <= again_s * NS_PER_S:
                again.append(row)
        if any(row["data_segments"] for row in rows):
            return
    if len(again) >= resets_least:
        yield _finding(sorted(again, key=lambda row: row["ts_first"]), names)


def _is_reset(row: Row) -> bool:
    return bool(row["reset_by"] == "client" and row["server_packets"])


def _finding(again: Sequence[Row], names: Sequence[str]) -> Finding:
    first, last = again[0], again[-1]
    address = first["client_address"] or "(unknown address)"
    shown = names_text([printable(name, MAX_NAME) for name in names], 3)
    who = f"{address} (where {shown} runs)" if names else address
    return RULE.finding(
        subject={"server": server_of(first), "client_address": first["client_address"]},
        title=f"Connections of {address} to {server_text(first)} are reset in its name",
        sentence=(
            f"{who}: {count(len(again), 'attempt')} to connect to {server_text(first)} were reset from this address, "
            f"{period_text(first['ts_first'], last['ts_first'])}. The RST came after the server's SYN-ACK, and the SYN "
            f"came again from the same port. Two machines have this address, or something between "
            f"resets in its name."
        ),
        next_step=(
            "Compare the MAC addresses of SYN and RST, and look at the ARP tables of the server or its router: does "
            "another machine use this address? If not, look at firewalls on the way."
        ),
        proof=Proof(
            first["ts_first"],
            last["ts_first"],
            (Evidence(row["file"], row["first_packet"], None) for row in again),
        ),
        numbers={
            "server": server_of(first),
            "address": first["client_address"],
            "attempts": len(again),
            "requests_refused": len(again),
            "stood_still_ms": round((last["ts_first"] - first["ts_first"]) / NS_PER_MS, 3),
            "clients": [{"address": first["client_address"], "client_id": name} for name in names][:MOST_NAMED],
        },
    )


_SERVER = "server_address, server_port"
_RESET = "reset_by = 'client' AND coalesce(data_segments, 0) = 0"
# Ports of clients from which a SYN came again after such an end.
_AGAIN = f"""
    SELECT ({_SERVER}, client_address, client_port) FROM flows WHERE duplicate_of IS NULL
    GROUP BY {_SERVER}, client_address, client_port HAVING count(*) FILTER ({_RESET}) >= 2"""
RULE = Rule(
    code="TCP107",
    question="concurrent",
    name="address-twice",
    severity="warning",
    confidence="medium",
    reads={
        "flows": (
            "flow_id", "client_address", "client_port", "ts_first", "file", "first_packet", "reset_by",
            "server_packets", "data_segments",
        ),
        "exchanges": ("ts", "client_id"),
    },
    signs={"flows": f"bool_or({_RESET})"},
    partition_by=("server_address", "server_port", "client_address"),
    detect=detect,
    rows={
        "flows": f"duplicate_of IS NULL AND ({_SERVER}, client_address, client_port) IN ({_AGAIN})",
        "exchanges": exchange_of_each_client(_RESET),
    },
    suspects=AnyRow("flows", f"{_RESET}"),
)  # fmt: skip
