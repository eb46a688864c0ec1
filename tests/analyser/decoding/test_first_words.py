"""How connections begin: TLS and HTTP on ports of something else, and alerts in the clear, in whatever batches."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from tests.analyser.decoding.test_tls import TABLES, client_hello, record
from tests.support.wire import ACK, FIN, Talk, decode
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.decoding.first_words import AlertFinder
from wirewitness.analyser.inputs import analysis_of
from wirewitness.dissectors.registry import PROTOCOLS

FAILURE = bytes.fromhex("15 0303 0002 0228")
CLOSE = bytes.fromhex("15 0303 0002 0100")
GET = b"GET /metrics HTTP/1.1\r\nHost: kafka\r\n\r\n"
HELLO = record(22, b"\2" + bytes(60))
ENCRYPTED = record(23, bytes(40))
EXPECTED = ("client_opening", "server_opening", "client_tls_alert", "server_tls_alert")


def talk(*parts: tuple[bool, bytes]) -> Talk:
    """Segments in turn (from the client, bytes), then an orderly end by the server."""
    made, sent = Talk().handshake(), [0, 0]
    for from_client, data in parts:
        made.send(from_client, sent[from_client], data, ack=sent[not from_client])
        sent[from_client] += len(data)
    return made.send(False, sent[False], flags=FIN | ACK, ack=sent[True])


def tables(made: Talk, block_bytes: int = 1 << 20) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The row of the flow, and remarks named tls_alert."""
    with analysis_of(
        decode(made.packets, TABLES, block_bytes=block_bytes), TABLES, ReadOptions(), PROTOCOLS.values()
    ) as analysis:
        (flow,) = analysis.table("flows").to_dict("records")
        remarks = analysis.table("expert_infos").to_dict("records")
    return flow, [remark for remark in remarks if remark["code"] == "tls_alert"]


# Metadata 1 for all topics by the client "app".
KAFKA = bytes.fromhex("00000011 0003 0001 00000007 0003") + b"app" + bytes.fromhex("ffffffff")
CASES = {
    "Kafka in the clear to a TLS port": (
        talk((True, KAFKA), (False, FAILURE)), (None, "tls", None, "fatal handshake_failure"),
    ),
    "a client that does not trust the certificate": (
        talk((True, client_hello()), (False, HELLO), (True, bytes.fromhex("15 0301 0002 0230"))),
        ("tls", "tls", "fatal unknown_ca", None),
    ),
    "no version in common": (
        talk((True, client_hello()), (False, bytes.fromhex("15 0301 0002 0246"))),
        ("tls", "tls", None, "fatal protocol_version"),
    ),
    "TLS to a port that closes": (talk((True, client_hello())), ("tls", None, None, None)),
    "HTTP to a port that closes": (talk((True, GET)), ("http", None, None, None)),
    "a PROXY line to a port that closes": (
        talk((True, b"PROXY TCP4 10.0.0.7 10.0.0.2 41000 1883\r\n")), ("proxy", None, None, None),
    ),
    "a PROXY header of version 2": (
        talk((True, b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c" + bytes(12))), ("proxy", None, None, None),
    ),
    "a word that is no PROXY line": (talk((True, b"PROXY of mine, not TCP")), (None, None, None, None)),
    "Kafka to an HTTP port": (
        talk((True, KAFKA), (False, b"HTTP/1.1 400 Bad Request\r\n\r\n")), (None, "http", None, None),
    ),
    "an orderly end": (talk((True, client_hello()), (False, CLOSE)), ("tls", "tls", None, "warning close_notify")),
    "an encrypted alert": (
        talk((True, client_hello()), (False, HELLO + ENCRYPTED), (False, FAILURE)), ("tls", "tls", None, None)
    ),
    "in small parts": (
        talk((True, client_hello()[:3]), (True, client_hello()[3:]), (False, FAILURE[:4]), (False, FAILURE[4:])),
        ("tls", "tls", None, "fatal handshake_failure"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("block_bytes", [1 << 20, 300], ids=["at once", "in parts"])
@pytest.mark.parametrize(("made", "expected"), CASES.values(), ids=CASES)
def test_first_words(made: Talk, expected: tuple[str | None, ...], block_bytes: int) -> None:
    flow, remarks = tables(made, block_bytes)
    told = tuple(None if pd.isna(flow[name]) else flow[name] for name in EXPECTED)
    assert told == expected
    fatal = [alert for alert in expected[2:] if alert is not None and alert.startswith("fatal")]
    assert len(remarks) == len(fatal)
    assert all(fatal[0].removeprefix("fatal ") in remark["text"] for remark in remarks)


def test_the_remark_names_the_side_and_the_packet() -> None:
    ((remark),) = tables(talk((True, KAFKA), (False, FAILURE)))[1]
    assert (remark["direction"], remark["packet"], remark["span"]) == ("server_to_client", 5, "0-6")
    assert remark["text"] == "the TLS handshake ended with an alert: handshake_failure (40)"


def test_the_middle_of_a_connection_tells_nothing() -> None:
    made = Talk().send(True, 10, KAFKA, ack=0).send(False, 0, FAILURE, ack=10 + len(KAFKA))
    assert tables(made)[1] == []


def test_what_each_side_confirmed() -> None:
    made = Talk().handshake().send(True, 0, KAFKA, ack=0).send(False, 0, flags=ACK, ack=len(KAFKA))
    made.send(True, len(KAFKA), KAFKA, ack=0)
    flow, _ = tables(made)
    assert (flow["acked_by_server"], flow["acked_by_client"]) == (len(KAFKA), 0)


def test_what_a_side_confirmed_that_was_not_captured() -> None:
    flow, _ = tables(Talk().send(True, 0, KAFKA, ack=0).send(True, len(KAFKA), KAFKA, ack=0))
    assert pd.isna(flow["acked_by_server"])


@pytest.mark.parametrize("size", [1, 2, 5, 1000])
def test_an_alert_is_found_however_the_bytes_are_cut(size: int) -> None:
    data, finder = HELLO + record(22, bytes(5000)) + FAILURE, AlertFinder()
    found = [finder.feed([data[at : at + size]]) for at in range(0, len(data), size)]
    (alert,) = [one for one in found if one is not None]
    assert (alert.name, alert.level, alert.position) == ("handshake_failure", "fatal", len(data) - len(FAILURE))
    assert finder.over


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n\r\n", ENCRYPTED + FAILURE, record(22, b"x" * 9) * 40_000])
def test_a_finder_that_gives_up(data: bytes) -> None:
    finder = AlertFinder()
    assert finder.feed([data]) is None
    assert finder.over
