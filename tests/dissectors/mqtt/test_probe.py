"""Which bytes are MQTT, whatever the port; where packets start after a loss."""

from __future__ import annotations

import pytest

from tests.support.mqtt_encode import (
    PING,
    PONG,
    PUBACK,
    ack,
    connack,
    connect,
    packet,
    publish,
    suback,
    subscribe,
    unsubscribe,
)
from wirewitness.dissectors.core.boundary_checks import Judged
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, SERVER_TO_CLIENT
from wirewitness.dissectors.mqtt.framing import framer, plausible
from wirewitness.dissectors.mqtt.probe import probe

JSON = b'{"celsius": 21.5}'
PUBLISHES = b"".join(publish(f"plant/{n}/temperature", JSON) for n in range(5))
KAFKA = bytes.fromhex(
    "00000025 0012 0003 00000001 000a 70726f64756365722d31 00 0b 6c69627264 6b61666b61 06 322e342e30 00"
)
MONGO = bytes.fromhex(
    "3a000000 01000000 00000000 dd070000 00000000 00 25000000 1068656c6c6f0001000000 02246462000600000061646d696e0000"
)
TLS = bytes.fromhex("16030100c8010000c40303") + bytes(range(180))

# id: (client, server, whole, least, most)
PROBES: dict[str, tuple[bytes, bytes, bool, int, int]] = {
    "CONNECT 3.1": (connect(3), b"", True, 100, 100),
    "CONNECT 3.1.1 alone": (connect(4), b"", True, 100, 100),
    "CONNECT 5.0, cut": (connect(5)[:9], b"", True, 100, 100),
    "CONNECT of a bridge": (connect(4).replace(b"MQTT\x04", b"MQTT\x84"), b"", True, 100, 100),
    "messages mid-stream": (PUBLISHES, b"", False, 50, 100),
    "messages of the server, mid-stream": (b"", PUBLISHES, False, 50, 100),
    "a ping and its answer": (PING, PONG, False, 50, 100),
    "a message and its answer": (publish("a/b", JSON, 1, 9), ack(PUBACK, 9), False, 50, 100),
    "a stream that begins inside a packet": (b"lsius: 21.5}" + PUBLISHES, b"", False, 50, 100),
    "no CONNECT although it was seen from the start": (PUBLISHES, b"", True, 50, 100),
    "one message is a hint": (publish("a/b", JSON), b"", False, 1, 49),
    "one CONNACK is a hint": (b"", connack(), True, 1, 49),
    "the wrong side": (PONG, PING, False, 0, 0),
    "nothing": (b"", b"", True, 0, 0),
    "Kafka": (KAFKA, b"", True, 0, 0),
    "Kafka, mid-stream": (KAFKA * 20, b"", False, 0, 0),
    "MongoDB": (MONGO, MONGO, True, 0, 0),
    "MongoDB, mid-stream": (MONGO * 20, MONGO * 20, False, 0, 0),
    "TLS": (TLS, TLS, True, 0, 0),
    "HTTP": (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\nhello", True, 0, 0),
    "HTTP, mid-stream": (
        b"POST /publish HTTP/1.1\r\n\r\n" + JSON * 99,
        b"HTTP/1.1 200 OK\r\n\r\n" + JSON * 99,
        False,
        0,
        0,
    ),
    "text": (b"0123456789" * 50, b"220 mail ESMTP\r\n250 OK\r\n" * 20, False, 0, 0),
    "zeroes": (bytes(500), bytes(500), False, 0, 0),
}


@pytest.mark.parametrize(("client", "server", "whole", "least", "most"), PROBES.values(), ids=PROBES)
def test_how_sure_the_probe_is(client: bytes, server: bytes, whole: bool, least: int, most: int) -> None:
    assert least <= probe(client, server, whole) <= most


THREE = PING + publish("a", JSON, 1, 9) + PING
# id: (direction, bytes, position, level, hinted, verdict)
BOUNDARIES: dict[str, tuple[int, bytes, int, int | None, bool, bool | None]] = {
    "three packets": (CLIENT_TO_SERVER, THREE, 0, 4, False, True),
    "inside one of them": (CLIENT_TO_SERVER, THREE, 1, 4, False, False),
    "two packets, more may come": (CLIENT_TO_SERVER, PING + PING, 0, 4, False, None),
    "one packet where a segment starts": (CLIENT_TO_SERVER, publish("a", JSON), 0, 4, True, True),
    "one packet and noise behind it": (CLIENT_TO_SERVER, PING + b"\xff\xff\xff", 0, 4, True, False),
    "half a packet": (CLIENT_TO_SERVER, publish("a", JSON)[:9], 0, 4, True, None),
    "a request of the server": (SERVER_TO_CLIENT, subscribe(1, ("a", 0)) * 3, 0, 4, True, False),
    "an answer of the client": (CLIENT_TO_SERVER, suback(1, 0) * 3, 0, 4, True, False),
    "DISCONNECT of a server in 3.1.1": (SERVER_TO_CLIENT, packet(14) * 3, 0, 4, True, False),
    "the same in 5.0": (SERVER_TO_CLIENT, packet(14) * 3, 0, 5, True, True),
    "identifier 0": (CLIENT_TO_SERVER, unsubscribe(0, "a") * 3, 0, 4, True, False),
    "a topic with a wildcard": (CLIENT_TO_SERVER, publish("a/#") * 3, 0, 4, True, False),
    "wrong flags": (CLIENT_TO_SERVER, packet(8, b"\0\1\0\1a\0", 0) * 3, 0, 4, True, False),
    "SUBSCRIBE sent again in 3.1": (CLIENT_TO_SERVER, packet(8, b"\0\1\0\1a\0", 10) * 3, 0, 3, True, True),
    "an unknown level": (CLIENT_TO_SERVER, THREE, 0, None, False, True),
}


@pytest.mark.parametrize(("direction", "data", "at", "level", "hinted", "verdict"), BOUNDARIES.values(), ids=BOUNDARIES)
def test_where_a_packet_may_start(
    direction: int, data: bytes, at: int, level: int | None, hinted: bool, verdict: bool | None
) -> None:
    assert plausible(data, at, direction, level, hinted, Judged()) is verdict


def test_frames_are_packets() -> None:
    big = publish("t", b"x" * 300)
    data = connect() + big + PING + publish("t")[:3]
    cut = framer(CLIENT_TO_SERVER, True, Limits()).feed(data, [0], lambda position: True)
    sizes = [end - start for start, end in zip(cut.starts, cut.ends, strict=True)]
    assert sizes == [len(connect()), len(big), 2]
    assert (cut.position, cut.need, cut.skipped) == (len(data) - 3, len(publish("t")), [])


@pytest.mark.parametrize(
    "header", [b"\x30\xff\xff\xff\xff\x01", b"\x30\xff\xff\xff\x7f"], ids=["5-byte length", "256 MiB"]
)
def test_an_impossible_header_is_one_byte_and_the_rest_is_skipped(header: bytes) -> None:
    reader = framer(CLIENT_TO_SERVER, True, Limits())
    data = PING + header + PING * 4
    cut = reader.feed(data, [0], lambda position: data[position:].startswith(PING))
    assert [data[start:end] for start, end in zip(cut.starts, cut.ends, strict=True)] == [PING, b"\x30", *[PING] * 4]
    assert [data[one.start : one.end] for one in cut.skipped] == [header[1:]]
    assert reader.synchronised
