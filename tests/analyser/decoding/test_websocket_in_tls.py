"""A protocol inside WebSocket inside TLS: the messages of WebSocket alone, named by places in TCP's stream."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import wirewitness
from tests.analyser.decoding.test_websocket import Rows, calls, codes, tables
from tests.conftest import SAMPLES
from tests.support.example_encode import request, response
from tests.support.packets import Captured, pcap
from tests.support.tls_twin import TLS_12, TLS_13, Sides, twin
from tests.support.websocket import WebSocketTalk
from tests.support.wire import packets_of, thinned
from wirewitness.analyser.analysis.evidence.bytes import message_bytes
from wirewitness.analyser.analysis.evidence.index import open_index
from wirewitness.analyser.analysis.evidence.rows import parse_message_id
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.capture import open_captures
from wirewitness.dissectors.core.model import split_packet

PLACES = ("stream_offset", "request_offset", "response_offset", "span")


class Both(NamedTuple):
    """The same packets in clear text and encrypted, with what the keys need."""

    clear: list[Captured]
    encrypted: list[Captured]
    options: ReadOptions


def both(packets: Sequence[Captured], folder: Path, version: Any = TLS_13) -> Both:
    sides = Sides(version)
    encrypted, clear = twin(packets, sides)
    path = folder / "keys.log"
    path.write_bytes(sides.keylog)
    return Both(clear, encrypted, ReadOptions(enable=("example",), keylogs=(str(path),)))


def without_places(found: dict[str, Rows]) -> dict[str, list[dict[str, Any]]]:
    """What both must have in common. TLS itself is remarked on."""
    return {
        table: [{name: row[name] for name in row if name not in PLACES} for row in found[table]]
        for table in ("messages", "exchanges")
    } | {"codes": [{"code": code} for code in codes(found) if code != "encrypted"]}


def talk(*, compressed: bool) -> WebSocketTalk:
    """Messages in fragments, several in one frame, and one that takes many records and packets."""
    ws = calls(WebSocketTalk(compressed=compressed).open(), 20)
    ws.binary(True, request(b"one") + request(b"three"), cut=[5, 9]).ping(True)
    ws.binary(False, response(b"long" * 9000)).text(True, request(b"text"))
    whole = request(b"in pieces")
    ws.binary(True, whole[:3], fin=False).ping(False).continued(True, whole[3:])
    return ws.close()


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("version", [TLS_12, TLS_13])
def test_the_rows_are_those_of_clear_text(version: Any, compressed: bool, tmp_path: Path) -> None:
    made = both(talk(compressed=compressed).packets, tmp_path, version)
    clear, found = tables(made.clear), tables(made.encrypted, options=made.options)
    assert without_places(found) == without_places(clear)
    assert len(found["messages"]) == 45
    (flow,) = found["flows"]
    assert (flow["protocol"], flow["carrier"], flow["encrypted"]) == ("example", "websocket", True)
    for direction in (0, 1):
        offsets = [row["stream_offset"] for row in found["messages"] if row["direction"] == direction]
        assert offsets == sorted(set(offsets))
    assert [row["carrier"] for row in tables(made.encrypted)["flows"]] == [None]


@pytest.mark.parametrize("block_bytes", [300, 2000])
@pytest.mark.parametrize("compressed", [False, True])
def test_batches_do_not_matter(block_bytes: int, compressed: bool, tmp_path: Path) -> None:
    made = both(talk(compressed=compressed).packets, tmp_path)
    for packets in (made.encrypted, thinned(made.encrypted, seed=1, share=0.05, keep_first=30)):
        whole = tables(packets, options=made.options)
        assert tables(packets, options=made.options, block_bytes=block_bytes) == whole


@pytest.mark.parametrize("compressed", [False, True])
def test_the_bytes_of_a_message_are_found_in_its_packets(compressed: bool, tmp_path: Path) -> None:
    """Each message is read again from its packets alone, as that of clear text is, and from the same ones."""
    made = both(talk(compressed=compressed).packets, tmp_path)
    told = []
    for name, packets in (("ws.pcap", made.clear), ("wss.pcap", made.encrypted)):
        capture = tmp_path / name
        capture.write_bytes(pcap(packets, nanoseconds=True))
        with wirewitness.read(str(capture), options=made.options) as analysis:
            rows = analysis.table("messages").to_dict("records")
        with open_index(open_captures([capture]), made.options, use_cache=False) as index:
            found = [
                message_bytes(
                    index.message(parse_message_id(row["message_id"])), index.sources, index.places, index.keylogs
                )
                for row in rows
            ]
        for row, message in zip(rows, found, strict=True):
            assert len(message.data) == row["length_bytes"]
            packets_of_it = [split_packet(piece.packet)[1] for piece in message.pieces]
            assert (packets_of_it[0], max(packets_of_it)) == (row["packet_first"], row["packet_last"])
        told.append([(message.data, row["packet_last"]) for row, message in zip(rows, found, strict=True)])
    assert told[0] == told[1]
    assert len(told[0]) == 45


@pytest.mark.parametrize("lost", [1, 2])
def test_the_upgrade_is_lost(lost: int, tmp_path: Path) -> None:
    """Frames are found behind it, as in clear text."""
    made = both(calls(WebSocketTalk().open(), 60, 20).packets, tmp_path)
    upgrade = [at for at, packet in enumerate(made.clear) if b"HTTP/1.1" in packet.data]
    packets = [packet for at, packet in enumerate(made.encrypted) if at not in upgrade[:lost]]
    found = tables(packets, options=made.options)
    assert (found["flows"][0]["protocol"], found["flows"][0]["carrier"]) == ("example", "websocket")
    assert len(found["messages"]) >= 110


def test_http_that_is_no_upgrade_is_no_websocket(tmp_path: Path) -> None:
    ws = WebSocketTalk()
    ws.talk.handshake()
    ws.raw(True, b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n").raw(False, b"HTTP/1.1 200 OK\r\n\r\n" + bytes(9000))
    made = both(ws.packets, tmp_path)
    (flow,) = tables(made.encrypted, options=made.options)["flows"]
    assert (flow["protocol"], flow["carrier"]) == (None, "tls")


def test_the_sample_of_mqtt(tmp_path: Path) -> None:
    """Real clients of three languages, each connection through TLS."""
    made = both(packets_of(SAMPLES / "mqtt_websocket.pcapng"), tmp_path)
    clear, found = tables(made.clear), tables(made.encrypted, options=made.options)
    assert without_places(found) == without_places(clear)
    assert {row["carrier"] for row in found["flows"]} == {"websocket", "tls"}
    assert len(found["messages"]) > 200
