"""NET101 idle-dropped: something between client and server forgets connections that are idle.

Finds
    Connections that were silent for a while and are dead when they are used again: a firewall, a NAT gateway or a load
    balancer dropped them, and neither side was told.

Why it matters
    The next request waits for TCP to give up or for a request timeout, often tens of seconds, each time after a pause.
    Both ends look healthy, and new connections work at once.

How it decides
    After at least 15 s without a packet of the other side (idle_s): bytes are sent four times or more (sent_least) and
    never confirmed, although the two hosts go on to talk over another connection; or a reset comes whose hop limit
    (TTL) is not that of the packets that its sender sent before: somebody between sent it.

False alarms
    A host that was off the network for a while and came back under the same address. A server whose own packets take
    two ways with different hop counts.

References
    RFC 5382, 2.5 (NAT: established idle timeout 2 h 4 min); AWS Network Load Balancer 350 s, Azure 4 min;
    connections.max.idle.ms (Kafka clients: 9 min), tcp_keepalive_time, maxIdleTimeMS.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from analyser.addresses import client_endpoint_text, server_text
from analyser.detectors.detector import Detector, Frames
from analyser.detectors.findings import Evidence, Finding
from analyser.detectors.flow_rows import MOST_NAMED
from analyser.detectors.frame_rows import Row, rows_of
from analyser.detectors.proof import Proof
from analyser.times import NS_PER_S, seconds_text
from analyser.words import count

_OTHER = {"client": "server", "server": "client"}


_KEPT_ALIVE = "have connections kept alive (TCP keep-alive)"
# What closes or uses an idle connection in time.
_BEFORE_IT = {
    "kafka": "have connections closed (connections.max.idle.ms) or kept alive (TCP keep-alive)",
    "mqtt": "have the client ping more often (a shorter keep alive, which must be below that timeout)",
    "mongo": "have connections closed (maxIdleTimeMS) or kept alive (TCP keep-alive, tcp_keepalive_time)",
}


class _Dropped(NamedTuple):
    """A connection that was dead after a pause. sender: whose bytes, or reset, showed it."""

    flow: Row
    kind: str
    sender: str
    idle_ns: int
    at_ns: int
    sends: int = 0


def detect(frames: Frames, *, idle_s: float = 15.0, sent_least: int = 4) -> Iterator[Finding]:
    """At most one finding for this client and server."""
    flows = rows_of(frames["flows"])
    dropped = [
        one
        for flow in flows
        for one in (_reset(flow), *_unheard(flow, flows, sent_least))
        if one is not None and one.idle_ns >= idle_s * NS_PER_S
    ]
    if dropped:
        yield _finding(dropped)


def _reset(flow: Row) -> _Dropped | None:
    """A reset in another's name, after a pause of the one in whose name it is."""
    sender = flow["reset_by"]
    if sender is None or flow["reset_ttl"] is None or flow[f"{sender}_ttl"] in (None, flow["reset_ttl"]):
        return None
    heard, closed = flow[f"ts_last_from_{sender}"], flow["ts_closed"]
    if heard is None or closed is None:
        return None
    return _Dropped(flow, "reset", sender, closed - heard, closed)


def _unheard(flow: Row, flows: Sequence[Row], sent_least: int) -> Iterator[_Dropped]:
    """Bytes that are sent again and again and never confirmed, while both hosts talk elsewhere."""
    for sender, other in _OTHER.items():
        heard, since = flow[f"ts_last_from_{other}"], flow[f"ts_unheard_to_{other}"]
        sends = flow[f"unheard_sends_to_{other}"]
        if heard is None or since is None or sends < sent_least or heard > since:
            continue
        if any(one is not flow and (one[f"ts_last_from_{other}"] or 0) > since for one in flows):
            yield _Dropped(flow, "unheard", sender, since - heard, since, sends)


def _finding(dropped: Sequence[_Dropped]) -> Finding:
    worst = max(dropped, key=lambda one: (one.idle_ns, one.flow["flow_id"]))
    flow = worst.flow
    server = server_text(flow)
    own = client_endpoint_text(flow)
    if worst.kind == "reset":
        how = (
            f"a reset came in the name of the {worst.sender} with hop limit {flow['reset_ttl']}, where its own packets "
            f"have {flow[f'{worst.sender}_ttl']}: something between the two sent it"
        )
    else:
        how = (
            f"what the {worst.sender} sent then was sent {worst.sends} times and never confirmed, while the two hosts "
            "talk over another connection"
        )
    more = f" {count(len(dropped), 'connection')} in all." if len(dropped) > 1 else ""
    return DETECTOR.finding(
        subject={"client": flow["client_address"], "server": flow["server_address"]},
        sentence=(
            f"The connection {own} to {server} ({flow['protocol'] or 'unknown protocol'}) was dropped in between while "
            f"idle: after {seconds_text(worst.idle_ns)} of silence {how}.{more}"
        ),
        next_step=(
            "Find the firewall, NAT or load balancer between the two and raise its idle timeout above that of client "
            f"and server, or {_BEFORE_IT.get(flow['protocol'], _KEPT_ALIVE)} before it."
        ),
        proof=_proof(dropped),
        numbers={
            "address": flow["client_address"],
            "server": server,
            "where": server,
            "protocol": flow["protocol"],
            "kind": worst.kind,
            "connections": len(dropped),
            "idle_s": [round(one.idle_ns / NS_PER_S, 1) for one in dropped[:MOST_NAMED]],
            "flows": [one.flow["flow_id"] for one in dropped[:MOST_NAMED]],
            "clients": [{"address": flow["client_address"], "client_id": None}],
        },
    )


def _proof(dropped: Sequence[_Dropped]) -> Proof:
    opened = [Evidence(one.flow["file"], one.flow["first_packet"], None) for one in dropped]
    return Proof(min(one.at_ns - one.idle_ns for one in dropped), max(one.at_ns for one in dropped), opened)


_OTHERS_NAME = "reset_ttl <> CASE reset_by WHEN 'client' THEN client_ttl ELSE server_ttl END"

DETECTOR = Detector(
    code="NET101",
    name="idle-dropped",
    severity="warning",
    confidence="high",
    reads={
        "flows": (
            "flow_id", "protocol", "client_port", "server_port", "file", "first_packet", "ts_closed", "reset_by",
            "reset_ttl", "client_ttl", "server_ttl", "ts_last_from_client", "ts_last_from_server",
            "unheard_sends_to_server", "unheard_sends_to_client", "ts_unheard_to_server", "ts_unheard_to_client",
        ),
    },
    partition_by=("client_address", "server_address"),
    detect=detect,
    rows={"flows": "duplicate_of IS NULL"},
    suspects=f"""
        SELECT client_address, server_address FROM r_flows
        WHERE {_OTHERS_NAME} OR unheard_sends_to_server >= 4 OR unheard_sends_to_client >= 4""",
)  # fmt: skip
