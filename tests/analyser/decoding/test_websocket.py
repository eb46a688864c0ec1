"""A protocol inside WebSocket: the same messages as without it, named by their places in the TCP stream."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from typing import Any

import pytest

from tests.conftest import SAMPLES
from tests.support.example_encode import request, response
from tests.support.packets import Captured
from tests.support.websocket import WebSocketTalk
from tests.support.wire import decode, packets_of, thinned
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import split_packet

TABLES = ("messages", "exchanges", "expert_infos")
Rows = list[dict[str, Any]]


def tables(packets: list[Captured], **how: Any) -> dict[str, Rows]:
    """Rows of the raw tables, and of flows."""
    decoded = decode(packets, TABLES, options=how.pop("options", ReadOptions(enable=("example",))), **how)
    try:
        found = {
            name: [row for batch in decoded.store.tables[name].batches() for row in batch.to_pylist()]
            for name in TABLES
        }
        return {**found, "flows": decoded.flows_table().to_pylist()}
    finally:
        decoded.store.close()


def payloads(rows: Rows) -> list[tuple[int, int]]:
    """Direction and length of complete messages in the order in which they came."""
    return [(row["direction"], row["length_bytes"]) for row in rows if row["complete"]]


def codes(found: dict[str, Rows]) -> list[str]:
    return [row["code"] for row in found["expert_infos"]]


def calls(ws: WebSocketTalk, count: int, start: int = 0) -> WebSocketTalk:
    """Requests of different lengths and their responses, each in a frame of its own."""
    for number in range(start, start + count):
        ws.binary(True, request(b"q" * number)).binary(False, response(b"a" * number))
    return ws


def test_messages_have_their_places_in_the_tcp_stream() -> None:
    ws = WebSocketTalk().open()
    at = ws.sent[1]
    ws.binary(True, request(b"one") + request(b"three"), cut=[5, 9])
    ws.ping(True)
    ws.binary(False, response(b"r1") + response(b"r2"))
    found = tables(ws.close().packets)
    first, second = [row for row in found["messages"] if row["direction"] == 0]
    # A masked frame has a header of 6 bytes here.
    assert (first["stream_offset"], first["length_bytes"]) == (at + 6, 11)
    assert (second["stream_offset"], second["length_bytes"]) == (at + 17, 13)
    assert [(row["packet_first"], row["packet_last"]) for row in (first, second)] == [(7, 8), (8, 8)]
    assert [row["status"] for row in found["exchanges"]] == ["ok", "ok"]
    (flow,) = found["flows"]
    assert (flow["protocol"], flow["identified_by"], flow["carrier"]) == ("example", "content", "websocket")
    assert codes(found) == ["websocket", "websocket_close", "websocket_close"]
    (told, *_) = found["expert_infos"]
    assert (told["packet"], told["text"]) == (5, "the connection was upgraded to WebSocket, subprotocol mqtt")


def test_a_message_in_fragments_with_control_frames_between() -> None:
    whole = request(b"in four pieces")
    ws = WebSocketTalk().open()
    ws.binary(True, whole[:3], fin=False).ping(False).continued(True, whole[3:9], fin=False).ping(True)
    ws.continued(True, b"", fin=False).continued(True, whole[9:])
    found = tables(ws.binary(False, response(b"yes")).packets)
    assert payloads(found["messages"]) == [(0, len(whole)), (1, 11)]
    assert found["exchanges"][0]["status"] == "ok"
    assert codes(found) == ["websocket"]


def test_messages_need_not_begin_with_frames() -> None:
    stream = b"".join(request(bytes(number)) for number in range(20))
    ws = WebSocketTalk().open()
    for place in range(0, len(stream), 7):
        ws.binary(True, stream[place : place + 7])
    assert payloads(tables(ws.packets)["messages"]) == [(0, 8 + number) for number in range(20)]


@pytest.mark.parametrize("subprotocol", [None, "mqtt", "something.else"])
def test_what_it_is_is_told_by_the_bytes(subprotocol: str | None) -> None:
    found = tables(calls(WebSocketTalk(subprotocol).open(), 3).packets)
    assert found["flows"][0]["protocol"] == "example"


def test_decode_as_reaches_inside() -> None:
    options = ReadOptions(enable=("example",), decode_as={9001: "example"})
    found = tables(calls(WebSocketTalk().open(), 3).packets, options=options)
    assert (found["flows"][0]["identified_by"], len(found["messages"])) == ("user", 6)


def test_text_frames_are_remarked_once() -> None:
    ws = WebSocketTalk().open()
    for _ in range(3):
        ws.text(True, request(b"text"))
    # 0xCA 0xFE is no UTF-8, so `websockets` would not take it: only the client's side is looked at.
    found = tables(ws.packets)
    assert codes(found).count("text_frame") == 1
    assert len(found["messages"]) == 3


@pytest.mark.parametrize("forgetting", [False, True], ids=["context kept", "context forgotten"])
def test_compressed_messages(forgetting: bool) -> None:
    ws = WebSocketTalk(compressed=True, forgetting=forgetting).open()
    for number in range(10):
        ws.binary(True, request(b"abc" * 200) * 5, cut=[4, 20])
        ws.binary(False, (response(b"x" * number) * 3)[:-2], fin=False).ping(True)
        ws.continued(False, response(b"x" * number)[-2:])
    found = tables(ws.packets)
    sent = [length for direction, length in payloads(found["messages"]) if direction == 0]
    answered = [length for direction, length in payloads(found["messages"]) if direction == 1]
    assert (sent, answered) == ([608] * 50, [8 + number for number in range(10) for _ in range(3)])
    for direction in (0, 1):
        offsets = [row["stream_offset"] for row in found["messages"] if row["direction"] == direction]
        assert offsets == sorted(set(offsets))
    assert codes(found) == ["websocket"]


@pytest.mark.parametrize("share", [0.02, 0.1])
def test_after_losses_messages_are_found_again(share: float) -> None:
    whole = tables(calls(ws := WebSocketTalk().open(), 200, 20).packets)
    lossy = thinned(ws.packets, seed=3, share=share, keep_first=30)
    names = ("direction", "stream_offset", "length_bytes")
    true = {tuple(row[name] for name in names) for row in whole["messages"]}
    found = {tuple(row[name] for name in names) for row in tables(lossy)["messages"] if row["complete"]}
    assert found <= true
    lost = len(ws.packets) - len(lossy)
    assert lost > 3
    assert len(true) - len(found) <= 3 * lost


def test_a_gap_inside_a_frame_hides_no_other() -> None:
    ws = calls(WebSocketTalk().open(), 2)
    ws.binary(True, request(bytes(6000)) + request(b"behind it"), cut=range(1000, 6000, 1000))
    ws.binary(False, response(b"first") + response(b"second"))
    packets = list(ws.packets)
    del packets[-4]
    messages = tables(packets)["messages"]
    assert [(row["length_bytes"], row["complete"]) for row in messages if row["direction"] == 0][-1] == (17, True)


@pytest.mark.parametrize("first", [3, 4, 5, 6, 9, 20])
def test_a_connection_that_was_open_before_the_capture(first: int) -> None:
    ws = calls(WebSocketTalk().open(), 40, 5)
    found = tables(ws.packets[first:])
    assert found["flows"][0]["carrier"] == "websocket"
    assert len(found["messages"]) >= min(80, 80 - (first - 5))
    assert {row["length_bytes"] for row in found["messages"]} <= set(range(8, 60))


@pytest.mark.parametrize("lost", [3, 4], ids=["request", "response"])
def test_half_of_the_upgrade_is_missing(lost: int) -> None:
    packets = list(calls(WebSocketTalk().open(), 40, 5).packets)
    del packets[lost]
    found = tables(packets)
    assert found["flows"][0]["carrier"] == "websocket"
    assert len(found["messages"]) == 80


def test_one_sided_captures() -> None:
    ws = calls(WebSocketTalk().open(), 40, 5)
    from_client = [packet for place, packet in enumerate(ws.packets) if place > 4 and place % 2]
    assert len(tables(from_client)["messages"]) == 40


def test_bytes_of_no_protocol_stay_unidentified() -> None:
    dice = random.Random(5)
    ws = WebSocketTalk("chat").open()
    for _ in range(50):
        ws.binary(True, dice.randbytes(90)).binary(False, dice.randbytes(40))
    found = tables(ws.packets)
    assert (found["flows"][0]["protocol"], found["flows"][0]["carrier"]) == (None, "websocket")
    middle = tables(ws.packets[8:])
    assert (middle["flows"][0]["protocol"], middle["flows"][0]["carrier"], middle["messages"]) == (None, None, [])


@pytest.mark.parametrize("block_bytes", [300, 2000, 1 << 20])
def test_batches_do_not_matter(block_bytes: int) -> None:
    for ws in (WebSocketTalk().open(), WebSocketTalk(compressed=True).open()):
        packets = thinned(calls(ws, 60).packets, seed=1, share=0.05, keep_first=30)
        assert tables(packets, block_bytes=block_bytes) == tables(packets)
        assert tables(packets[7:], block_bytes=block_bytes) == tables(packets[7:])


@pytest.mark.parametrize(
    ("damage", "code"),
    [
        pytest.param(b"\x82\xff" + b"\xff" * 8 + bytes(4), "malformed_frame", id="a frame of 2^64"),
        pytest.param(b"\x82\xff" + struct.pack(">Q", 1 << 63) + bytes(4), "malformed_frame", id="a frame of 2^63"),
        pytest.param(b"\x82\xff" + struct.pack(">Q", 1 << 62) + bytes(4), "malformed_frame", id="a frame of 2^62"),
        pytest.param(b"\x83\x80" + bytes(4), "malformed_frame", id="a reserved opcode"),
        pytest.param(b"\xc2\x80" + bytes(4), "malformed_frame", id="a reserved bit"),
        pytest.param(b"\x82\x05hello", "malformed_frame", id="a client that does not mask"),
        pytest.param(b"\x09\x80" + bytes(4), "malformed_frame", id="a ping in fragments"),
        pytest.param(b"\x80\x80" + bytes(4), "fragmentation", id="a continuation of nothing"),
    ],
)
def test_what_is_damaged_is_remarked_and_the_rest_goes_on(damage: bytes, code: str) -> None:
    ws = calls(WebSocketTalk().open(), 3).raw(True, damage)
    before = len(tables(ws.packets)["messages"])
    found = tables(calls(ws, 3).packets)
    assert code in codes(found)
    assert (before, len(found["messages"])) == (6, 12)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", id="no upgrade"),
        pytest.param(b"HTTP/1.1 101 Other\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n", id="to another"),
        pytest.param(b"HTTP/1.1 101 Switching Protocols\r\nX: " + b"y" * 100_000, id="an endless head"),
        pytest.param(b"\xff" * 300, id="something else"),
    ],
)
def test_what_is_no_upgrade(answer: bytes) -> None:
    ws = WebSocketTalk()
    ws.talk.handshake()
    ws.client.send_request(ws.client.connect())
    ws.raw(True, b"".join(ws.client.data_to_send())).raw(False, answer[:50_000]).raw(False, answer[50_000:])
    found = tables(ws.packets)
    assert (found["flows"][0]["carrier"], found["messages"]) == (None, [])


def test_a_compressed_bomb_is_cut_short() -> None:
    ws = WebSocketTalk(compressed=True).open()
    ws.binary(True, request(b"before")).binary(True, request(bytes(5_000_000))).binary(True, request(b"behind"))
    found = tables(ws.packets, limits=Limits(max_decompressed_bytes=1 << 20))
    assert "compressed_message" in codes(found)
    assert [row["length_bytes"] for row in found["messages"] if row["complete"]] == [14]


def test_compressed_bytes_behind_a_loss() -> None:
    for forgetting, expected in ((True, 18), (False, 10)):
        ws = calls(WebSocketTalk(compressed=True, forgetting=forgetting).open(), 10)
        packets = list(ws.packets)
        del packets[5 + 10]  # a request in the middle
        found = tables(packets)
        assert "gap" in codes(found)
        assert ("compressed_message" in codes(found)) is not forgetting
        assert len(found["messages"]) >= expected


def test_any_bytes_behind_the_upgrade() -> None:
    dice = random.Random(11)
    changes: list[Callable[[bytes], bytes]] = [
        lambda data: dice.randbytes(len(data)),
        lambda data: data[: len(data) // 2] + dice.randbytes(3) + data[len(data) // 2 + 3 :],
        lambda data: data + b"\x82\xfe",
    ]
    for compressed in (False, True):
        for _ in range(25):
            ws = calls(WebSocketTalk(compressed=compressed).open(), 4)
            for number in range(10):
                ws.client.send_binary(request(b"m" * number)), ws.server.send_binary(response(b"n" * number))
                for side, protocol in ((True, ws.client), (False, ws.server)):
                    data = b"".join(protocol.data_to_send())
                    ws.raw(side, dice.choice(changes)(data) if dice.random() < 0.3 else data)
            assert tables(ws.packets)["flows"][0]["carrier"] == "websocket"


def sample_messages(packets: list[Captured]) -> tuple[set[tuple[Any, ...]], dict[str, Rows]]:
    """What names a message of any flow: the client's port, and its place; and all rows."""
    found = tables(packets, options=ReadOptions())
    ports = {row["_flow"]: row["client_port"] for row in found["flows"]}
    names = ("direction", "stream_offset", "length_bytes", "operation")
    return {
        (ports[row["_flow"]], *(row[name] for name in names)) for row in found["messages"] if row["complete"]
    }, found


@pytest.mark.parametrize("seed", range(4))
def test_no_mqtt_message_of_the_sample_is_made_up_after_losses(seed: int) -> None:
    packets = packets_of(SAMPLES / "mqtt_websocket.pcapng")
    lossy = thinned(packets, seed, 0.03, 40)
    true, _ = sample_messages(packets)
    found, _ = sample_messages(lossy)
    assert found <= true
    assert len(true - found) <= len(packets) - len(lossy)


@pytest.mark.parametrize("first", [60, 150, 250, 400])
def test_mqtt_connections_of_the_sample_that_were_open_before(first: int) -> None:
    packets = packets_of(SAMPLES / "mqtt_websocket.pcapng")
    _, whole = sample_messages(packets)
    _, found = sample_messages(packets[first:])
    later = [row for row in whole["messages"] if split_packet(row["packet_first"])[1] > first]
    assert len(found["messages"]) >= 0.9 * len(later)
    assert [row for row in found["expert_infos"] if row["severity"] == "error"] == []
