"""A broker of MQTT at work: what its rules and their context cost beside decoding.

In: a number of messages. Out: a capture. Publishers (3.1.1) send readings with QoS 1, each to topics of its own; each
subscriber gets those of some publishers by one filter for each, and acknowledges them. Nothing is wrong.
"""

from __future__ import annotations

from pathlib import Path

from tests.support.mqtt_encode import PUBACK, ack, connack, connect, publish, suback, subscribe
from tests.support.replay import START_NS
from tests.support.replay_mqtt import PORT, TOPICS
from tests.support.replay_wire import ACK, ACK_DELAY_NS, PSH, SERVER, SYN, PcapWriter, Side

PUBLISHERS, SUBSCRIBERS = 64, 8
MESSAGES_OF_PUBLISH = 4  # PUBLISH and PUBACK, there and on
PAUSE_NS = 1_000_000


class _Connection:
    """One client of the broker. now_ns of its methods: when the packet is sent."""

    def __init__(self, writer: PcapWriter, number: int) -> None:
        address = bytes((10, 77, 1, 11 + number))
        self._writer = writer
        self._client = Side(address, 40_000 + number, SERVER, PORT, 2 * number + 1)
        self._server = Side(SERVER, PORT, address, 40_000 + number, 2 * number + 2)

    def asks(self, now_ns: int, data: bytes, flags: int = PSH | ACK) -> int:
        """The client sends; the time of the next packet."""
        return self._send(now_ns, self._client, self._server, data, flags)

    def gets(self, now_ns: int, data: bytes, flags: int = PSH | ACK) -> int:
        """The server sends; the time of the next packet."""
        return self._send(now_ns, self._server, self._client, data, flags)

    def begins(self, now_ns: int, name: str) -> int:
        """Handshake and CONNECT; the time of the next packet."""
        now_ns = self.gets(self.asks(now_ns, b"", SYN), b"", SYN | ACK)
        return self.gets(self.asks(self.asks(now_ns, b"", ACK), connect(4, name)), connack())

    def _send(self, now_ns: int, source: Side, target: Side, data: bytes, flags: int) -> int:
        known = 0 if flags == SYN else target.seq
        self._writer.add(now_ns, source.packet(now_ns, flags, known, target.clock_ms(now_ns), data))
        return now_ns + ACK_DELAY_NS


def write_deliveries(out: Path, messages: int) -> int:
    """Write a capture with at least so many MQTT packets; the number of publishes of clients."""
    publishes = -(-messages // MESSAGES_OF_PUBLISH)
    with out.open("wb", buffering=1 << 20) as file:
        writer, now_ns = PcapWriter(file), START_NS
        subscribers = [_Connection(writer, number) for number in range(SUBSCRIBERS)]
        publishers = [_Connection(writer, SUBSCRIBERS + number) for number in range(PUBLISHERS)]
        for number, one in enumerate(subscribers):
            filters = [(f"plant/{place}/#", 1) for place in range(number, PUBLISHERS, SUBSCRIBERS)]
            now_ns = one.begins(now_ns, f"board-{number}")
            now_ns = one.gets(one.asks(now_ns, subscribe(1, *filters)), suback(1, *(1 for _ in filters)))
        for number, one in enumerate(publishers):
            now_ns = one.begins(now_ns, f"sensor-{number}")
        for number in range(publishes):
            place = number % PUBLISHERS
            topic = f"plant/{place}/sensor/{number // PUBLISHERS % TOPICS}/temperature"
            reading = b'{"seq":%d,"value":%d}' % (number, number % 90)
            sender, reader, identifier = publishers[place], subscribers[place % SUBSCRIBERS], number % 65_535 + 1
            taken = sender.asks(now_ns, publish(topic, reading, 1, identifier))
            got = reader.gets(sender.gets(taken, ack(PUBACK, identifier)), publish(topic, reading, 1, identifier))
            now_ns = reader.asks(got, ack(PUBACK, identifier)) + PAUSE_NS
    return publishes
