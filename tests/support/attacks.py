"""Captures made to cost more than their size: time, memory, or the whole analysis.

In: how large, as a multiple of the smallest. Out: the bytes of a capture. Each is the smallest form of one kind of
attack; `tests/bench/attacks.py` measures what they cost at several sizes.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Callable, Mapping
from itertools import count as numbers

import crc32c
import zstandard

from tests.support import mqtt_encode as mqtt
from tests.support.packets import ACK, Captured, block, enhanced, interface, option, pcap, section
from tests.support.wire import Talk

__all__ = ["ATTACKS", "kafka", "spoken"]

SEGMENT_BYTES = 1400
MQTT_SERVER = ("10.0.0.2", 1883)


def kafka(api_key: int, version: int, correlation: int, body: bytes, client_id: bytes = b"c") -> bytes:
    """A request of Kafka with a header that is not flexible."""
    head = struct.pack(">hhih", api_key, version, correlation, len(client_id)) + client_id
    return struct.pack(">i", len(head) + len(body)) + head + body


def answer(correlation: int, body: bytes) -> bytes:
    """A response of Kafka with a header that is not flexible."""
    return struct.pack(">ii", 4 + len(body), correlation) + body


def text(value: bytes) -> bytes:
    """A string of Kafka or MQTT."""
    return struct.pack(">H", len(value)) + value


class Wire:
    """A decoder; `say` cuts what one side says into segments."""

    def __init__(self, talk: Talk | None = None, *, segment_bytes: int = SEGMENT_BYTES) -> None:
        self.talk = (talk or Talk()).handshake()
        self.sent = [0, 0]
        self.segment_bytes = segment_bytes

    def say(self, from_client: bool, data: bytes) -> Wire:
        """All of it, in order, each segment confirming what the other side said."""
        for at in range(0, len(data), self.segment_bytes):
            piece = data[at : at + self.segment_bytes]
            self.talk.send(from_client, self.sent[from_client], piece, ack=self.sent[not from_client])
            self.sent[from_client] += len(piece)
        return self

    def lose(self, from_client: bool, size: int) -> Wire:
        """So many bytes of this side were not captured; the other one confirms them."""
        self.sent[from_client] += size
        self.talk.send(not from_client, self.sent[not from_client], flags=ACK, ack=self.sent[from_client])
        return self

    def capture(self) -> bytes:
        """The bytes of the capture."""
        return pcap(self.talk.packets, nanoseconds=True)


def spoken(*parts: tuple[bool, bytes], server: tuple[str, int] = ("10.0.0.2", 9092)) -> bytes:
    """A capture of one decoder: who says what."""
    wire = Wire(Talk(server=server))
    for from_client, data in parts:
        wire.say(from_client, data)
    return wire.capture()


def _mqtt(*parts: tuple[bool, bytes], level: int = 4, client_id: str = "c") -> bytes:
    begin = ((True, mqtt.connect(level, client_id)), (False, mqtt.connack(properties=() if level == 5 else None)))
    return spoken(*begin, *parts, server=MQTT_SERVER)


def fetch_of_long_names(size: int) -> bytes:
    """Topic names of 32 kB, each with many partitions: names would stand in every row."""
    partitions = 1000 * size
    asked = struct.pack(">iiii", -1, 500, 1, 1) + text(b"n" * 32_000) + struct.pack(">i", partitions)
    asked += b"".join(struct.pack(">iqi", p, 0, 1) for p in range(partitions))
    said = struct.pack(">i", 1) + text(b"n" * 32_000) + struct.pack(">i", partitions)
    said += b"".join(struct.pack(">ihqi", p, 0, 5, 0) for p in range(partitions))
    parts = []
    for one in range(4):
        parts += [(True, kafka(1, 0, one, asked)), (False, answer(one, said))]
    return spoken(*parts)


def commits_of_long_names(size: int) -> bytes:
    """OffsetCommit v2 whose group, member, topic and metadata are 30 kB each."""
    partitions = 1000 * size
    body = text(b"g" * 30_000) + struct.pack(">i", 1) + text(b"m" * 30_000) + struct.pack(">qi", -1, 1)
    body += text(b"t" * 30_000) + struct.pack(">i", partitions)
    body += b"".join(struct.pack(">iqh", p, 7, -1) for p in range(partitions))
    said = struct.pack(">i", 1) + text(b"t" * 30_000) + struct.pack(">i", partitions)
    said += b"".join(struct.pack(">ih", p, 0) for p in range(partitions))
    return spoken((True, kafka(8, 2, 1, body, b"k" * 30_000)), (False, answer(1, said)))


def long_client_id(size: int) -> bytes:
    """An MQTT client id of 60 kB and the smallest publishes: the id would stand in every row."""
    return _mqtt((True, mqtt.publish("t", b"") * (8000 * size)), client_id="i" * 60_000)


def tiny_messages(size: int) -> bytes:
    """The smallest messages that there are: each is a row of several tables."""
    return _mqtt((True, (mqtt.publish("t", b"") + mqtt.packet(mqtt.PINGREQ)) * (20_000 * size)))


def waiting_requests(size: int) -> bytes:
    """Small requests over many connections that are all never answered."""
    packets: list[Captured] = []
    for flow in range(8 * size):
        wire = Wire(
            Talk(client=("10.0.1.1", 20_000 + flow), client_isn=flow * 7, ts_ns=1_700_000_000_000_000_000 + flow)
        )
        wire.say(False, answer(-5, b"")[:0] or b"")
        wire.say(True, kafka(18, 0, 0, b"")).say(False, answer(0, struct.pack(">hi", 0, 0)))
        wire.say(
            True, b"".join(kafka(12, 0, n, text(b"g") + struct.pack(">i", 1) + text(b"m")) for n in range(1, 5000))
        )
        packets += wire.talk.packets
    return pcap(packets, nanoseconds=True)


def unanswered_records(size: int) -> bytes:
    """Produce requests with many partitions and no answer: what was read of each waits."""
    partitions = b"".join(struct.pack(">ii", p, 0) for p in range(2000))
    body = struct.pack(">hii", 1, 1000, 1) + text(b"t") + struct.pack(">i", 2000) + partitions
    begin = (True, kafka(18, 0, 0, b"")), (False, answer(0, struct.pack(">hi", 0, 0)))
    return spoken(*begin, *((True, kafka(0, 0, n, body)) for n in range(1, 40 * size)))


def secrets_in_urls(size: int) -> bytes:
    """A configuration value that nearly holds credentials at every place: ://: again and again."""
    value = b"://:" * (8_000 * size)
    parts = []
    for n, at in enumerate(range(0, len(value), 32_000)):
        body = struct.pack(">i", 1) + b"\x02" + text(b"t") + struct.pack(">i", 1)
        body += text(b"retention.ms") + text(value[at : at + 32_000]) + b"\0"
        said = struct.pack(">iihhb", 0, 1, 0, -1, 2) + text(b"t")
        parts += [(True, kafka(33, 0, n, body)), (False, answer(n, said))]
    return spoken(*parts)


def _nested(number: int) -> bytes:
    """So many headers of Metadata v0, each of which names the ones behind it as topics, and one topic too many."""
    size = 60_000
    head = struct.pack(">ihhih", size, 3, 0, 1, 1) + b"c"
    unit = len(head) + 4 + 2
    head += struct.pack(">i", size // unit + 1)
    return (head + struct.pack(">h", len(head))) * number


def boundaries_after_a_loss(size: int) -> bytes:
    """Behind a loss, headers of requests that decode far into the bytes and then do not."""
    wire = Wire()
    wire.say(True, kafka(18, 0, 0, b"")).say(False, answer(0, struct.pack(">hi", 0, 0)))
    wire.lose(True, 1000)
    wire.say(True, b"\xff" * 3 + _nested(6000 * size))  # none stands where a segment starts
    return wire.capture()


def probes_in_the_middle(size: int) -> bytes:
    """Many connections that are joined in the middle and show such headers."""
    packets: list[Captured] = []
    for flow in range(2 * size):
        talk = Talk(client=("10.0.1.1", 20_000 + flow), client_isn=flow * 7)
        data = b"\xff" * 100 + _nested(3000)
        for at in range(0, len(data), SEGMENT_BYTES):
            talk.send(True, at, data[at : at + SEGMENT_BYTES], ack=0)
        packets += talk.packets
    return pcap(packets, nanoseconds=True)


def one_byte_segments(size: int) -> bytes:
    """Every second byte of a stream is missing, for as long as gaps are kept open; then what is there comes again."""
    talk = Talk().handshake()
    talk.send(True, 0, kafka(18, 0, 0, b""), ack=0).send(False, 0, answer(0, struct.pack(">hi", 0, 0)), ack=14)
    number = 5000 * size
    for n in range(number):
        talk.send(True, 100 + 2 * n, b"x", ack=14)
        talk.ts_ns -= 999_000
    return pcap(talk.packets, nanoseconds=True)


def segments_backwards(size: int) -> bytes:
    """One-byte segments with gaps whose sequence numbers fall: each is put in front of all that wait."""
    talk = Talk().handshake()
    talk.send(True, 0, kafka(18, 0, 0, b""), ack=0).send(False, 0, answer(0, struct.pack(">hi", 0, 0)), ack=14)
    number = 5000 * size
    for n in range(number):
        talk.send(True, 100 + 2 * (number - n), b"x", ack=14)
        talk.ts_ns -= 999_000
    return pcap(talk.packets, nanoseconds=True)


def deep_topics(size: int) -> bytes:
    """Filters with a wildcard at every other level, in all ways, and topics as deep."""
    levels = 12
    filters = ["/".join("+" if n >> level & 1 else "a" for level in range(levels)) for n in range(1 << levels)]
    chosen = [(one, 0) for one in filters[: 500 * size]]
    parts = [(True, mqtt.subscribe(n + 1, *chosen[n * 100 : n * 100 + 100])) for n in range(len(chosen) // 100)]
    parts += [(False, mqtt.suback(n + 1, *([0] * 100))) for n in range(len(chosen) // 100)]
    parts += [(True, b"".join(mqtt.publish("/".join(["a"] * levels), b"x", 1, n + 1) for n in range(1000 * size)))]
    parts += [(False, b"".join(mqtt.publish("/".join(["a"] * levels), b"x") for n in range(1000 * size)))]
    return _mqtt(*parts)


def very_deep_topics(size: int) -> bytes:
    """Filters of thousands of levels, each a wildcard, and a topic as deep."""
    levels = 8000 * size
    wild = ["+/" * (levels - n) + "#" for n in range(8)]
    topic = "a/" * levels + "a"
    parts = [(True, mqtt.subscribe(n + 1, (one, 0))) for n, one in enumerate(wild)]
    parts += [(False, mqtt.suback(n + 1, 0)) for n in range(len(wild))]
    parts += [(True, mqtt.publish(topic, b"x") * 4)]
    return _mqtt(*parts)


def fan_out(size: int) -> bytes:
    """Many clients subscribe to everything, one publishes: each publish should reach all."""
    packets: list[Captured] = []
    start = 1_700_000_000_000_000_000
    for flow in range(200 * size):
        wire = Wire(Talk(client=("10.0.1.1", 10_000 + flow), server=MQTT_SERVER, client_isn=flow * 7, ts_ns=start))
        wire.say(True, mqtt.connect(4, f"s{flow}")).say(False, mqtt.connack())
        wire.say(True, mqtt.subscribe(1, ("#", 0), ("a/#", 0), ("a/+", 0))).say(False, mqtt.suback(1, 0, 0, 0))
        packets += wire.talk.packets
    packets.sort(key=lambda packet: packet.ts_ns)
    wire = Wire(Talk(server=MQTT_SERVER, ts_ns=start + 1_000_000_000))
    wire.say(True, mqtt.connect(4, "p")).say(False, mqtt.connack())
    wire.say(True, b"".join(mqtt.publish("a/b", b"%d" % n) for n in range(1000 * size)))
    return pcap([*packets, *wire.talk.packets], nanoseconds=True)


def fan_out_of_servers(size: int) -> bytes:
    """The same at many servers, few clients at each: what is waited for at one is little."""
    packets: list[Captured] = []
    start = 1_700_000_000_000_000_000
    for number in range(4 * size):
        server = (f"10.0.2.{number}", 1883)
        for flow in range(100):
            client = (f"10.0.1.{number}", 10_000 + flow)
            wire = Wire(Talk(client=client, server=server, client_isn=flow * 7, ts_ns=start))
            wire.say(True, mqtt.connect(4, f"s{flow}")).say(False, mqtt.connack())
            wire.say(True, mqtt.subscribe(1, ("#", 0))).say(False, mqtt.suback(1, 0))
            packets += wire.talk.packets
        wire = Wire(Talk(server=server, ts_ns=start + 1_000_000_000))
        wire.say(True, mqtt.connect(4, "p")).say(False, mqtt.connack())
        wire.say(True, b"".join(mqtt.publish("a/b", b"%d" % n) for n in range(1000)))
        packets += wire.talk.packets
    packets.sort(key=lambda packet: packet.ts_ns)
    return pcap(packets, nanoseconds=True)


def deep_filters(size: int) -> bytes:
    """Filters of many levels that have nothing in common: each level is a node of two trees."""
    filters = [(f"{n}" + "/+" * 300, 0) for n in range(400 * size)]
    parts = [(True, mqtt.subscribe(n + 1, *filters[n * 100 : n * 100 + 100])) for n in range(len(filters) // 100)]
    parts += [(False, mqtt.suback(n + 1, *([0] * 100))) for n in range(len(filters) // 100)]
    return _mqtt(*parts, (True, mqtt.publish("a/b", b"x")))


def compressed_zeros(size: int) -> bytes:
    """A gzip-compressed pcapng of zeros behind its header."""
    packer = zlib.compressobj(9, wbits=31)
    data = packer.compress(section() + interface())
    return data + b"".join(packer.compress(bytes(1 << 20)) for _ in range(64 * size)) + packer.flush()


def compressed_packets(size: int) -> bytes:
    """A gzip-compressed capture of one packet again and again."""
    talk = Talk().handshake().send(True, 0, b"x" * 20)
    packer = zlib.compressobj(9, wbits=31)
    data = packer.compress(pcap(talk.packets, nanoseconds=True))
    again = pcap(talk.packets[-1:], nanoseconds=True)[24:] * 1000
    return data + b"".join(packer.compress(again) for _ in range(500 * size)) + packer.flush()


def packed_messages(size: int) -> bytes:
    """A gzip-compressed capture of the smallest messages."""
    return gzip.compress(tiny_messages(10 * size), 9)


def compressed_records(size: int) -> bytes:
    """Batches of the smallest records, all alike, in zstd: hundreds in a byte."""
    count = 100_000
    body = zstandard.ZstdCompressor(level=19).compress(b"\x0c\0\0\0\1\1\0" * count)
    checked = struct.pack(">hiqqqhii", 4, count - 1, 1_700_000_000_000, 1_700_000_000_000, -1, -1, -1, count) + body
    records = struct.pack(">qiibI", 0, len(checked) + 9, 0, 2, crc32c.crc32c(checked)) + checked
    asked = struct.pack(">hhii", -1, 1, 1000, 1) + text(b"t")
    asked += struct.pack(">iii", 1, 0, len(records)) + records
    parts = [(True, kafka(18, 0, 0, b"")), (False, answer(0, struct.pack(">hi", 0, 0)))]
    for n in range(1, 50 * size):
        said = struct.pack(">i", 1) + text(b"t") + struct.pack(">iihqqqi", 1, 0, 0, n * count, -1, 0, 0)
        parts += [(True, kafka(0, 7, n, asked)), (False, answer(n, said))]
    return spoken(*parts)


def name_records(size: int) -> bytes:
    """A name resolution block with a million records in the smallest form."""
    records = (struct.pack("<HH", 1, 6) + b"\x0a\0\0\1" + b"a\0" + b"\0\0") * (250_000 * size)
    return section() + interface() + block(4, records + struct.pack("<HH", 0, 0))


def interfaces(size: int) -> bytes:
    """Interface blocks without an end, the smallest."""
    return section() + interface() * (100_000 * size)


def _upgrade(more: bytes = b"") -> tuple[bytes, bytes]:
    """What both sides say to open WebSocket. more: a header field of both."""
    asked = (
        b"GET /mqtt HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    )
    asked += b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: mqtt\r\n" + more + b"\r\n"
    said = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    said += b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nSec-WebSocket-Protocol: mqtt\r\n" + more + b"\r\n"
    return asked, said


def compressed_websocket(size: int) -> bytes:
    """The smallest messages inside permessage-deflate: a byte of the capture holds hundreds of them."""
    asked, said = _upgrade(b"Sec-WebSocket-Extensions: permessage-deflate\r\n")
    packer = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)

    def frame(data: bytes) -> bytes:
        data = (packer.compress(data) + packer.flush(zlib.Z_SYNC_FLUSH))[:-4]
        size = bytes([0x80 | len(data)]) if len(data) < 126 else b"\xfe" + struct.pack(">H", len(data))
        return b"\xc2" + size + bytes(4) + data

    parts = [(True, asked), (False, said), (True, frame(mqtt.connect(4, "c")))]
    parts += [(True, frame((mqtt.publish("t", b"") + mqtt.PING) * (1 << 17))) for _ in range(4 * size)]
    return spoken(*parts, server=("10.0.0.2", 9001))


def websocket_flows(size: int) -> bytes:
    """Connections that are upgraded, log in and then say nothing: each keeps its decoders."""
    packets: list[Captured] = []
    asked, said = _upgrade()
    for flow in range(2000 * size):
        wire = Wire(Talk(client=(f"10.1.{flow >> 8}.{flow & 255}", 40_000), server=("10.0.0.2", 9001), client_isn=flow))
        login, welcome = mqtt.connect(4, f"c{flow}"), mqtt.connack()
        wire.say(True, asked).say(False, said).say(True, bytes([0x82, 0x80 | len(login)]) + bytes(4) + login)
        packets += wire.say(False, bytes([0x82, len(welcome)]) + welcome).talk.packets
    return pcap(packets, nanoseconds=True)


def clock_step(size: int) -> bytes:
    """A request in 1970, its answer when the clock has been set; of every protocol, and TCP that waits."""
    packets: list[Captured] = []
    bson = struct.pack("<i", 15) + b"\x10ping\0" + struct.pack("<i", 1) + b"\0"
    ok = struct.pack("<i", 17) + b"\x01ok\0" + struct.pack("<d", 1.0) + b"\0"

    def message(number: int, to: int, document: bytes) -> bytes:
        return struct.pack("<iiiiI", 21 + len(document), number, to, 2013, 0) + b"\0" + document

    talks = [
        (
            9092,
            kafka(18, 0, 0, b""),
            answer(0, struct.pack(">hi", 0, 0)),
            kafka(18, 0, 1, b""),
            answer(1, struct.pack(">hi", 0, 0)),
        ),
        (1883, mqtt.connect(4, "c"), mqtt.connack(), mqtt.publish("a", b"x", 1, 1), mqtt.ack(mqtt.PUBACK, 1)),
        (27017, message(1, 0, bson), message(2, 1, ok), message(3, 0, bson), message(4, 3, ok)),
    ]
    for number, (port, *said) in zip(numbers(), talks, strict=False):
        wire = Wire(Talk(server=("10.0.0.2", port), client=("10.0.0.1", 40_000 + number), ts_ns=1_000_000_000))
        for n, data in enumerate(said * size):
            if n == 3:
                wire.talk.ts_ns += 1_700_000_000_000_000_000
            wire.say(n % 2 == 0, data)
        packets += wire.talk.packets
    return pcap(packets, nanoseconds=True)


def huge_statistics(size: int) -> bytes:
    """Interface statistics of 2^63 and more."""
    options = b"".join(option(code, struct.pack("<Q", (1 << 64) - 1)) for code in range(2, 9)) + option(0, b"")
    statistics = block(5, struct.pack("<III", 0, 0xFFFFFFFF, 0xFFFFFFFF) + options)
    return section() + interface() + statistics * size


def times_at_the_ends(size: int) -> bytes:
    """Packets of one decoder at both ends of what 64 bits hold, in units of nanoseconds, seconds and 2^-63 s."""
    wire = Wire()
    for n in range(10 * size):
        wire.say(True, kafka(18, 0, n, b"")).say(False, answer(n, struct.pack(">hi", 0, 0)))
    data = section()
    for resolution in (9, 0, 0x80 | 63, 127, 0xFF):
        for offset in (0, -(1 << 63), (1 << 63) - 1):
            options = option(9, bytes([resolution])) + option(14, struct.pack("<q", offset)) + option(0, b"")
            data += interface(options=options)
    units = (0, (1 << 64) - 1, (1 << 63) - 1, 1 << 63, 1_700_000_000_000_000_000)
    for n, packet in enumerate(wire.talk.packets):
        data += enhanced(packet.data, units[n % len(units)], number=n % 15)
    return data


ATTACKS: Mapping[str, Callable[[int], bytes]] = {
    made.__name__: made
    for made in (
        fetch_of_long_names,
        commits_of_long_names,
        long_client_id,
        tiny_messages,
        waiting_requests,
        unanswered_records,
        secrets_in_urls,
        boundaries_after_a_loss,
        probes_in_the_middle,
        one_byte_segments,
        segments_backwards,
        deep_topics,
        very_deep_topics,
        fan_out,
        fan_out_of_servers,
        deep_filters,
        compressed_zeros,
        compressed_packets,
        packed_messages,
        compressed_records,
        name_records,
        interfaces,
        websocket_flows,
        compressed_websocket,
        clock_step,
        huge_statistics,
        times_at_the_ends,
    )
}
