"""What stands out of requests and connections, whatever the protocol: given rows, the lines, and near misses."""

from __future__ import annotations

from typing import Any

import pytest

from tests.analyser.engine.outliers.lines import Rows, at, exchange, said


def flow(number: int, client: str = "a", server: str = "s", **more: Any) -> dict[str, Any]:
    return {"flow_id": f"f{number}", "protocol": "mqtt", "client_address": client, "server_address": server,
            "server_port": 1, "ts_first": at(10 * number), "ts_last": at(10 * number + 9), "handshake": "complete",
            "handshake_seen": True, "bytes_to_server": 50, "bytes_to_client": 50,
            "data_segments": 4} | more  # fmt: skip


def flows(of_one: int, **more: Any) -> Rows:
    """So many of one client that are special, and four other clients with one connection each."""
    usual = [flow(100 + n, f"b{n}") for n in range(4)]
    return {"flows": [*usual, *(flow(n, **more) for n in range(of_one))]}


def ended(ages: list[float], by: str, clients: int = 1) -> Rows:
    """Connections of clients at one server that began ten seconds apart and had these ages at their ends."""
    rows = [flow(n, f"a{n % clients}") for n in range(len(ages))]
    ends = [{"flow_id": row["flow_id"], "ts": row["ts_first"] + round(age * 1e9), "protocol": "mqtt",
             "client_address": row["client_address"], "server_address": "s", "ended_by": by}
            for row, age in zip(rows, ages, strict=True)]  # fmt: skip
    return {"flows": rows, "connection_ends": ends}


def requests(every: list[float], each: int = 60, **of_last: Any) -> Rows:
    """Clients c0 ... that send one request so many seconds after the other; the last one's have other columns."""
    return {"exchanges": [
        exchange(n, f"c{client}", "Fetch", n * seconds, protocol="kafka", request_bytes=100)
        | (of_last if client == len(every) - 1 else {})
        for client, seconds in enumerate(every) for n in range(each)
    ]}  # fmt: skip


def answered(errors: int, of: int, server: str = "s") -> list[dict[str, Any]]:
    return [
        exchange(n, f"c{n % 3}", "Produce", n, protocol="kafka", server_address=server)
        | ({"status": "error", "error_code": 29, "error_name": "NO"} if n < errors else {})
        for n in range(of)
    ]


def pieces(segments: int) -> Rows:
    rows = {"flows": [flow(n, f"b{n}", data_segments=130 if n else segments) for n in range(6)]}
    return rows | {"exchanges": [exchange(n, f"c{of}", "PUBLISH", n, protocol="mqtt", flow_id=f"f{of}")
                                 for of in range(6) for n in range(60)]}  # fmt: skip


CASES: dict[str, tuple[Rows, str]] = {
    "TLS handshakes that fail": (
        flows(3, tls_handshake="refused by server", server_tls_alert="fatal certificate_expired"),
        "TLS handshakes: 3 TLS handshakes of a with s:1 failed (fatal certificate_expired); 0 were completed.",
    ),
    "TLS handshakes that are complete": (flows(3, tls_handshake="complete"), ""),
    "ended by the server": (
        flows(5, closed_by="server"), "ended by the server: Server s:1 ended 5 connections of a; usual 0 (4 others).",
    ),
    "ended by the client": (flows(5, closed_by="client"), ""),
    "segments sent again": (
        flows(1, data_segments=300, retransmitted_segments=30)
        | {"flows": [*(flow(100 + n, f"b{n}", data_segments=300, retransmitted_segments=1) for n in range(4)),
                     flow(0, data_segments=300, retransmitted_segments=30)]},
        "sent again: 10 % of the segments between a and s:1 were sent again; usual 0.333 % (4 others).",
    ),
    "two of a few segments": (flows(1, data_segments=20, retransmitted_segments=2), ""),
    "a receive window of 0": (
        flows(1, client_zero_window_ms=4_000.0),
        "buffer full: a took nothing from s:1 for 4 s in all: its receive window was 0.",
    ),
    "a window of 0 for a moment": (flows(1, client_zero_window_ms=40.0), ""),
    "refused at a port where nothing is known": (
        {"flows": [flow(9), *(flow(n, "x", server_port=9, protocol=None, handshake="refused", bytes_to_client=0,
                                   bytes_to_server=0) for n in range(4))]},
        "connections refused: 4 connections of x to s:9 were not taken; 0 were answered.",
    ),
    "refused by a host that speaks none of the protocols": (
        {"flows": [flow(n, "x", protocol=None, handshake="refused", bytes_to_client=0, bytes_to_server=0)
                   for n in range(4)]},
        "",
    ),
    "a server that ends all at one age": (
        ended([30.0] * 6, "server", clients=3),
        "same age: The server s ended 6 connections at the same age of 30 s, 0 at another.",
    ),
    "a client that ends all at one age": (
        ended([30.0] * 6, "client"),
        "same age: The client a0 ended 6 connections at the same age of 30 s, 0 at another.",
    ),
    "a pool that closes": (ended([60.0 - 10 * n for n in range(6)], "client"), ""),
    "a client that leaves before it has sent a byte": (
        flows(5, closed_by="client", bytes_to_client=0, bytes_to_server=0),
        "client gives up: a closed 5 connections to s:1 before a byte came, after 9 s; answered were 0.",
    ),
    "requests more often than others": (
        requests([1, 1, 1, 1, 0.1]),
        "rate: Client c4 at a sends 600 Fetch a minute; usual 60 (4 others).",
    ),
    "twice as often": (requests([1, 1, 1, 1, 0.5]), ""),
    "a broker that follows more often": (requests([1, 1, 1, 1, 0.1], client_id="broker-2-fetcher-0"), ""),
    "larger requests than others": (
        requests([1] * 5, request_bytes=9_000),
        "request size: Client c4 at a: Fetch of 9,000 bytes, median; usual 100 bytes (4 others).",
    ),
    "errors of one client": (
        {"exchanges": [exchange(n, f"c{client}", "Produce", n, protocol="kafka", server_address=f"s{client}")
                       | ({"status": "error", "error_code": 29, "error_name": "NO"} if client == 4 and n < 9 else {})
                       for client in range(5) for n in range(60)]},
        "errors: Client c4 at a: 9 of 60 Produce answered with an error, such as NO; usual 0 (4 others).",
    ),
    "a server that answers with errors": (
        {"exchanges": answered(30, 60)},
        "errors of a server: Server s:1 answered 30 Produce with an error, such as NO; clients with one: 1.",
    ),
    "messages in many pieces": (
        pieces(2_000),
        "segments per message: b0 and s use 16.7 segments for each message; usual 1.08 (5 others).",
    ),
    "messages in two": (pieces(260), ""),
    "an act of an administrator": (
        {"exchanges": [exchange(1, "c", "dropDatabase", 1, protocol="mongo")]},
        "administration: Client c at a sent 1 dropDatabase.",
    ),
    "one of Kafka's, which KAF309 tells": ({"exchanges": [exchange(1, "c", "DeleteTopics", 1, protocol="kafka")]}, ""),
    "an index made at the start": ({"exchanges": [exchange(1, "c", "createIndexes", 1, protocol="mongo")]}, ""),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_lines(case: str) -> None:
    rows, expected = CASES[case]
    lines = said(rows)
    assert (expected in lines) if expected else not lines, lines
