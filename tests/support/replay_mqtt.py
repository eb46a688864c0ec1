"""Captures of many small MQTT messages: what decoding them costs, in this project and in others.

    python -m tests.support.replay_mqtt --publishes 1000000 --out publishes.pcap
    python -m tests.support.replay_mqtt --publishes 1000000 --lossy --out lossy.pcap
    python -m tests.support.replay_mqtt --connections 25000 --out short.pcap

Clients on connections of their own, level 3.1.1, publish readings of some tens of bytes to a few topics each: of ten
messages five with QoS 0, four with QoS 1, one with QoS 2, all acknowledged. Half of the clients send one message in a
packet, the others four. With --lossy the capture misses 1 % of the packets, taken at random. With --connections each
one ends after six messages, with DISCONNECT and both FINs; some tens of them are open at a time, a third are at level
5.0. Standard output gets one JSON line, see Replayed; exchanges are publishes here.
"""

from __future__ import annotations

import argparse
import heapq
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.support.mqtt_encode import PUBACK, PUBCOMP, PUBREC, PUBREL, ack, connack, connect, disconnect, publish
from tests.support.replay import START_NS, Replayed
from tests.support.replay_wire import ACK, ACK_DELAY_NS, FIN, PSH, SERVER, SYN, Change, PcapWriter, Side, losses

PORT = 1883
FLOWS = 64
BURST = 4
QOS_MIX = (0, 1, 0, 1, 0, 2, 1, 0, 1, 0)
TOPICS = 8
THINK_NS = 400_000
SHORT_PUBLISHES = 6
CLIENT_PORTS = 25_000


def write_publishes(out: Path, publishes: int, flows: int = FLOWS, *, lossy: bool = False) -> Replayed:
    """Write a capture with at least so many PUBLISH packets, those that a lossy one misses among them."""
    each = -(-publishes // flows)
    return _write(out, [_Script(index, each) for index in range(flows)], losses() if lossy else None)


def write_short(out: Path, connections: int) -> Replayed:
    """Write a capture of so many connections that end after a few messages."""
    scripts = [_Script(index, SHORT_PUBLISHES, 5 if index % 3 == 2 else 4, ends=True) for index in range(connections)]
    return _write(out, scripts)


class _Script(NamedTuple):
    """One client: its number, how many messages it publishes, at which level, and whether it says goodbye."""

    index: int
    publishes: int
    level: int = 4
    ends: bool = False


def _write(out: Path, scripts: Sequence[_Script], change: Change | None = None) -> Replayed:
    with out.open("wb", buffering=1 << 20) as file:
        writer = PcapWriter(file, change)
        steps = [_connection(writer, script, START_NS + script.index * 1_037_011) for script in scripts]
        waiting = [(next(step), index) for index, step in enumerate(steps)]
        heapq.heapify(waiting)
        while waiting:
            index = waiting[0][1]
            later = next(steps[index], None)
            if later is None:
                heapq.heappop(waiting)
            else:
                heapq.heapreplace(waiting, (later, index))
    whole = writer.whole_requests, writer.whole_responses
    publishes = sum(script.publishes for script in scripts)
    return Replayed(writer.packets, writer.size_bytes, publishes, len(scripts), *whole)


def _connection(writer: PcapWriter, script: _Script, now_ns: int) -> Iterator[int]:
    """One client's life; yields the time of its next packet before it writes it. Counts messages of both sides."""
    index, five = script.index, script.level == 5
    network, place = divmod(index, CLIENT_PORTS)
    address = bytes((10, 77, 1 + network, 11 + index % 200))
    client = Side(address, 40_000 + place, SERVER, PORT, 2 * index + 1)
    server = Side(SERVER, PORT, address, 40_000 + place, 2 * index + 2)

    def send(source: Side, target: Side, data: bytes, flags: int = PSH | ACK, messages: int = 0) -> None:
        known = 0 if flags == SYN else target.seq
        written = writer.add(now_ns, source.packet(now_ns, flags, known, target.clock_ms(now_ns), data))
        if written and source is client:
            writer.whole_requests += messages
        elif written:
            writer.whole_responses += messages

    for source, target, flags in ((client, server, SYN), (server, client, SYN | ACK), (client, server, ACK)):
        yield now_ns
        send(source, target, b"", flags)
        now_ns += ACK_DELAY_NS
    hello = connect(script.level, f"sensor-{index}"), connack(properties=() if five else None)
    for source, target, data in ((client, server, hello[0]), (server, client, hello[1])):
        yield now_ns
        send(source, target, data, messages=1)
        now_ns += ACK_DELAY_NS
    burst = BURST if index % 2 else 1
    for first in range(0, script.publishes, burst):
        for from_client, data, messages in _exchange(index, range(first, min(first + burst, script.publishes)), five):
            yield now_ns
            source, target = (client, server) if from_client else (server, client)
            send(source, target, data, messages=messages)
            now_ns += ACK_DELAY_NS
        now_ns += THINK_NS
    if script.ends:
        yield now_ns
        send(client, server, disconnect(), messages=1)
        for source, target, flags in (
            (client, server, FIN | ACK),
            (server, client, FIN | ACK),
            (client, server, ACK),
        ):
            now_ns += ACK_DELAY_NS
            yield now_ns
            send(source, target, b"", flags)


def _exchange(index: int, numbers: range, five: bool) -> Iterator[tuple[bool, bytes, int]]:
    """(from the client, bytes, messages) of each packet of a burst."""
    sent, answers, releases, completions = b"", [], [], []
    for number in numbers:
        qos = QOS_MIX[number % len(QOS_MIX)]
        identifier = number % 65_535 + 1
        reading = b'{"seq":%d,"value":%d.%d}' % (number, number % 90, number % 10)
        topic = f"plant/{index}/sensor/{number % TOPICS}/temperature"
        sent += publish(topic, reading, qos, identifier, properties=() if five else None)
        if qos:
            answers.append(ack(PUBACK if qos == 1 else PUBREC, identifier))
        if qos == 2:
            releases.append(ack(PUBREL, identifier))
            completions.append(ack(PUBCOMP, identifier))
    yield True, sent, len(numbers)
    for from_client, packets in ((False, answers), (True, releases), (False, completions)):
        if packets:
            yield from_client, b"".join(packets), len(packets)


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description="write a capture of many small MQTT messages")
    size = parser.add_mutually_exclusive_group(required=True)
    size.add_argument("--publishes", type=int)
    size.add_argument("--connections", type=int)
    parser.add_argument("--lossy", action="store_true", help="with --publishes")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    if args.publishes:
        done = write_publishes(args.out, args.publishes, lossy=args.lossy)
    else:
        done = write_short(args.out, args.connections)
    print(json.dumps(done._asdict()))


if __name__ == "__main__":
    main()
