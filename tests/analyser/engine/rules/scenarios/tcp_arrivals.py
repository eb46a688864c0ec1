"""Scenarios of TCP109: requests that take long from their first to their last packet."""

from __future__ import annotations

from tests.analyser.engine.rules.scenarios.build import Row, full_window, message, remark, tcp_flow
from tests.analyser.engine.rules.scenarios.scenario import Scenario, fires, silent

QUICK = {"client_address": "10.1.0.2", "client_port": 50_002}


def _packet(seconds: float) -> int:
    return round(seconds * 1000) + 1


def sent(flow_id: str, seconds: float, lasts: float = 0.0, size: int = 60_000, name: str = "billing-1") -> Row:
    """A request whose first packet comes so long before its last one."""
    return message(
        flow_id, seconds, operation="Produce", direction="client_to_server", role="request", complete=True,
        length_bytes=size, packet_first=_packet(seconds - lasts), client_id=name,
    )  # fmt: skip


def begun(flow_id: str, trip: float) -> list[Row]:
    """The first request of a connection, its response, and the next request."""
    ask = {"operation": "ApiVersions", "length_bytes": 80, "complete": True}
    to_server = {**ask, "direction": "client_to_server"}
    return [
        message(flow_id, 0.01, packet_first=_packet(0.01), **to_server),
        message(flow_id, 0.02, message_id=f"{flow_id}-s0", packet_first=_packet(0.02), direction="server_to_client",
                **ask),
        message(flow_id, 0.02 + trip, packet_first=_packet(0.02 + trip), **to_server),
    ]  # fmt: skip


def two_senders(
    lasts: float = 1.5, count: int = 8, trip: float = 0.01, quick_size: int = 60_000, size: int = 60_000,
    beside: int = 100, **more: object,
) -> dict[str, list[Row]]:  # fmt: skip
    """One sends a request each two seconds, `lasts` from its first packet to its last; another one sends its own, so
    many, at once each. more: of the flow of the first one."""
    slow = [sent("a", 3 + 2 * n, lasts, size) for n in range(count)]
    quick = [sent("b", 1.03 + 0.2 * n, 0.004, quick_size, "billing-2") for n in range(beside)]
    return {
        "flows": [tcp_flow("a", **more), tcp_flow("b", **QUICK)],
        "messages": [*begun("a", trip), *begun("b", 0.01), *slow, *quick],
    }


ARRIVALS_FIRES: list[Scenario] = [
    fires("TCP109", "warning", "a thin line upwards", **two_senders()),
    fires("TCP109", "warning", "a little was sent again", **two_senders(), expert_infos=[
        remark("a", 4.5, "tcp", "retransmission", direction="client_to_server"),
    ]),
]  # fmt: skip
ARRIVALS_NEAR_MISSES: list[Scenario] = [
    silent("TCP109", "as quick as others", **two_senders(lasts=0.004)),
    silent("TCP109", "four requests", **two_senders(count=4)),
    silent("TCP109", "far away: its requests take some round trips", **two_senders(trip=0.26)),
    silent("TCP109", "nobody else sends as much", **two_senders(quick_size=9_000)),
    silent("TCP109", "nothing else in the capture: no time of the first packet", **two_senders(beside=0)),
    silent("TCP109", "the connection began before the capture", **two_senders(handshake_seen=False)),
    silent(
        "TCP109", "the server does not read", **two_senders(),
        tcp_waits=[full_window("a", 1.5 + 2 * n, 0.5, direction="client_to_server") for n in range(8)],
    ),
    silent(
        "TCP109", "the server's window is closed", **two_senders(),
        expert_infos=[remark("a", 2.2 + 2 * n, "tcp", "zero_window", direction="server_to_client") for n in range(8)],
    ),
    silent(
        "TCP109", "what is lost is sent again", **two_senders(),
        expert_infos=[
            remark("a", 2.2 + 2 * n, "tcp", "retransmission", direction="client_to_server") for n in range(8)
        ],
    ),
]  # fmt: skip
