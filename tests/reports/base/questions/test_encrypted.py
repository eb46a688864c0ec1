"""What encrypted connections show without keys, and what they are likely to be."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.analysis_from_rows import RowsAnalysis
from wirewitness.reports.base.formats.text import render
from wirewitness.reports.base.questions.encrypted import EncryptedPair, encrypted_pairs
from wirewitness.reports.base.sections.encrypted import encrypted_section
from wirewitness.reports.report.json_document import json_pieces

S = 1_000_000_000
START_NS = 1_790_000_000 * S
CLIENT, SERVER = "10.0.0.1", "10.0.0.9"


def hidden(number: int, begin_s: float = 0.0, **more: Any) -> dict[str, Any]:
    """A connection of TLS that lasted four seconds, with eight packets of the client."""
    begin = START_NS + int(begin_s * S)
    return {
        "flow_id": f"{number:016x}", "encrypted": True, "tls_decryption": "no key", "tls_handshake": "complete",
        "tls_handshake_ms": 12.0, "client_address": CLIENT, "client_port": 40_000 + number, "server_address": SERVER,
        "server_port": 443, "ts_first": begin, "ts_last": begin + 4 * S, "bytes_to_server": 1_000,
        "bytes_to_client": 500, "client_packets": 8, **more,
    }  # fmt: skip


def pairs(*flows: dict[str, Any]) -> list[EncryptedPair]:
    return encrypted_pairs(RowsAnalysis({"flows": [*flows]}))


def test_connections_of_a_pair_are_one_row() -> None:
    times = (0, 10, 21, 30)
    found = pairs(*(hidden(n, at) for n, at in enumerate(times)), hidden(9, server_port=8883, bytes_to_client=9_000))
    assert [(one.server_port, one.connections, one.bytes_to_server, one.bytes_to_client) for one in found] == [
        (8883, 1, 1_000, 9_000),
        (443, 4, 4_000, 2_000),
    ]
    assert [(one.connection_every_ns, one.client_packet_every_ns, one.lasted_ns) for one in found] == [
        (None, S // 2, 4 * S),
        (10 * S, S // 2, 4 * S),
    ]


@pytest.mark.parametrize(
    "more",
    [
        {"encrypted": False},
        {"tls_decryption": "decrypted"},
        {"tls_decryption": "records lost"},
        {"protocol": "kafka"},
        {"duplicate_of": "x"},
        {"bytes_to_server": 0, "bytes_to_client": 0},
    ],
    ids=["clear", "decrypted", "decrypted in part", "read", "seen twice", "empty"],
)
def test_what_could_be_read_or_is_none_is_not_there(more: dict[str, Any]) -> None:
    assert pairs(hidden(1, **more)) == []
    assert encrypted_section(pairs(hidden(1, **more))) == []


@pytest.mark.parametrize(
    ("more", "likely"),
    [
        ({"port_protocol": "kafka"}, ("kafka", "port")),
        ({"port_protocol": "kafka", "sni": "Mongo-1.example"}, ("mongo", "server name")),
        ({"port_protocol": "kafka", "sni": "mongo-1.example", "tls_alpn": "x-amzn-mqtt-ca"}, ("mqtt", "ALPN")),
        ({"sni": "pkc-4r087.europe-west1.gcp.confluent.cloud"}, ("kafka", "server name")),
        ({"sni": "www.example", "tls_alpn": "h2"}, None),
        ({}, None),
    ],
)
def test_what_a_connection_is_likely_to_be(more: dict[str, Any], likely: tuple[str, str] | None) -> None:
    [found] = pairs(hidden(1, **more))
    assert found.likely == likely


def test_the_section_says_how_sure_it_is() -> None:
    flows = [hidden(n, 10 * n, port_protocol="kafka", sni="b1.example") for n in range(3)]
    text = render(encrypted_section(pairs(*flows, hidden(7, 90, tls_handshake="broken off"))), 200, colour=False)
    assert "kafka (port)" in text
    assert "10.0.0.9:443 (b1.example)" in text
    assert "3 complete (12.000 ms), 1 not" in text
    assert "a connection each 10.000 s, a client packet each 0.500 s" in text
    assert "LIKELY is a guess" in text
    assert "no key" in text


def test_json_has_each_pair() -> None:
    flows = [hidden(n, 10 * n, port_protocol="kafka") for n in range(3)]
    made = json.loads(b"".join(json_pieces(RowsAnalysis({"flows": flows}))))
    assert made["encrypted_connections"] == [
        {
            "client_address": CLIENT, "server_address": SERVER, "server_port": 443, "sni": None, "alpn": None,
            "port_protocol": "kafka", "connections": 3, "bytes_to_server": 3_000, "bytes_to_client": 1_500,
            "complete": 3, "failed": 0, "handshake_ms": 12.0, "lasted_ns": 4 * S, "connection_every_ns": 10 * S,
            "client_packet_every_ns": S // 2, "decryption": "no key", "likely_protocol": "kafka", "likely_by": "port",
        }
    ]  # fmt: skip


def test_many_pairs_are_cut_with_a_pointer_to_the_rest() -> None:
    text = render(encrypted_section(pairs(*(hidden(n, server_port=2000 + n) for n in range(25)))), 200, colour=False)
    assert "and 5 more pairs; all rows: wirewitness table flows" in text
