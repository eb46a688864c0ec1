"""TCP108 large-segments-lost: large segments of a connection never get through, small ones do.

Finds
    Clients whose connections to a server begin, carry small messages, and stop at the first large one, again and
    again. Question: what is repeated without effect.

Why it matters
    The way between both carries smaller packets than their interfaces believe (a tunnel, VPN or VLAN), and what says so
    (ICMP "fragmentation needed") is dropped. Ping, logins and small requests work, a large response never comes. The
    client times out, connects again and asks the same again. Neither side logs a reason.

How it decides
    A side sent stream bytes three times or more, and the other never ACKed them; they are 512 or more, and earlier
    bytes of the same connection were ACKed. The receiver was there: it sent packets on that connection a second
    (alive_s) later, or more. So it is on hits_least connections of one client address and server, each of which began
    when the one before it was stuck already: packets of the handshake and small messages came through meanwhile.

False alarms
    A link that breaks on each connection for longer than the application waits, and comes back within it.

What it cannot tell
    Where on the way it happens. A capture at the side that receives shows none of these segments, and bytes missing.

References
    RFC 1191, RFC 8201 (path MTU discovery), RFC 2923 (black holes), RFC 4821 (probing without ICMP).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wirewitness.analyser.base.addresses import server_of, server_text
from wirewitness.analyser.base.times import NS_PER_MS, NS_PER_S, period_text
from wirewitness.analyser.base.words import count, names_text, printable, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.flow_rows import MAX_NAME, MOST_NAMED, exchange_of_each_client
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule

_SENDS, _BYTES = 3, 512
# Who receives, and the columns that tell of it.
_TO = {
    side: (f"unheard_sends_to_{side}", f"ts_unheard_to_{side}", f"bytes_to_{side}", f"acked_by_{side}",
           f"ts_last_from_{side}")
    for side in ("client", "server")
}  # fmt: skip


def detect(frames: Frames, *, alive_s: float = 1.0, hits_least: int = 3) -> Iterator[Finding]:
    """At most one finding for each direction of this client address and server."""
    names = sorted({row["client_id"] for row in rows_of(frames["exchanges"]) if row["client_id"]})
    rows = sorted(rows_of(frames["flows"]), key=lambda row: row["ts_first"])
    for side, columns in _TO.items():
        sends, since, sent, acked, heard = columns
        chain: list[Row] = []
        for row in rows:
            if any(row[name] is None for name in columns):
                continue
            lost = row[sends] >= _SENDS and row[acked] > 0 and row[sent] - row[acked] >= _BYTES
            alive = row[heard] - row[since] >= alive_s * NS_PER_S
            if lost and alive and (not chain or row["ts_first"] > chain[-1][since]):
                chain.append(row)
        if len(chain) >= hits_least:
            yield _finding(side, chain, names)


def _finding(side: str, chain: Sequence[Row], names: Sequence[str]) -> Finding:
    sends, since, sent, acked, _ = _TO[side]
    first, last = chain[0], chain[-1]
    address = first["client_address"] or "(unknown address)"
    shown = names_text([printable(name, MAX_NAME) for name in names], 3)
    who = f"client {shown} at {address}" if names else address
    server = server_text(first)
    sender, receiver = (f"server {server}", who) if side == "client" else (who, f"server {server}")
    most = max(row[sends] for row in chain)
    return RULE.finding(
        subject={"server": server_of(first), "client_address": first["client_address"], "to": side},
        title=f"Large segments do not get through: {server} and {names[0] if names else address}",
        sentence=(
            f"{sentence_start(who)}: {count(len(chain), 'connection')} to {server} stopped at a large message, "
            f"{period_text(first[since], last[since])}. {sentence_start(sender)} sent up to "
            f"{max(row[sent] - row[acked] for row in chain):,} bytes up to {most} times, {receiver} never ACKed them, "
            "and had ACKed smaller ones."
        ),
        next_step=(
            "Look for a smaller MTU on the way (tunnel, VPN, VLAN): ping with Don't Fragment and rising size. Let ICMP "
            "'fragmentation needed' through, lower the MTU of the interface, or clamp the MSS."
        ),
        proof=Proof(
            first["ts_first"],
            last[since],
            (Evidence(row["file"], row["first_packet"], None) for row in chain),
        ),
        numbers={
            "server": server_of(first),
            "address": first["client_address"],
            "to": side,
            "connections": len(chain),
            "stood_still_ms": round((last[since] - first[since]) / NS_PER_MS, 3),
            "clients": [{"address": first["client_address"], "client_id": name} for name in names][:MOST_NAMED],
        },
    )


_LOST = " OR ".join(
    f"({sends} >= {_SENDS} AND {sent} - {acked} >= {_BYTES} AND {acked} > 0)"
    for sends, _, sent, acked, _ in _TO.values()
)
RULE = Rule(
    code="TCP108",
    question="repeated",
    name="large-segments-lost",
    severity="warning",
    confidence="medium",
    reads={
        "flows": ("flow_id", "ts_first", "file", "first_packet", *(name for own in _TO.values() for name in own)),
        "exchanges": ("ts", "client_id"),
    },
    signs={"flows": f"bool_or({_LOST})"},
    partition_by=("server_address", "server_port", "client_address"),
    detect=detect,
    rows={
        "flows": f"duplicate_of IS NULL AND ({_LOST})",
        "exchanges": exchange_of_each_client(_LOST),
    },
    suspects=AnyRow("flows"),
)  # fmt: skip
