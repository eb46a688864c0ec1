"""Programs of a plant with paho-mqtt: a host and its nodes as Sparkplug has them, updates in pieces, a fleet by night.

In: HOST PORT VERSION WORK CLIENT_ID TOPIC, and for some works more words. Out: JSON lines. Works:

host           wants a node's birth again where its sequence number is not the next (spBv1.0/TOPIC)
node good|bad  birth and values; the bad one's numbers do not begin again with its birth
source         sends the pieces of an update to each device that asks for one
device good|bad  asks for an update and checks it; the bad one finds it wrong, and asks for it again
machine        sends quickly by day and seldom by night, as a command of TOPIC/mode says
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from paho.mqtt import client as mqtt
from paho_works import Program, tell

METRICS, PIECES, PIECE_BYTES = 60, 48, 6000


def varint(value: int) -> bytes:
    """Return a number as protobuf writes it."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def number_field(field: int, value: int) -> bytes:
    """Return a field of protobuf that is a number."""
    return bytes([field << 3]) + varint(value)


def bytes_field(field: int, content: bytes) -> bytes:
    """Return a field of protobuf that has bytes."""
    return bytes([field << 3 | 2]) + varint(len(content)) + content


def metric(name: str, value: int) -> bytes:
    """Return a metric of Sparkplug: name, type Int32, value."""
    return bytes_field(2, bytes_field(1, name.encode()) + number_field(4, 3) + number_field(10, value))


def payload(seq: int, *metrics: bytes) -> bytes:
    """Return a payload of Sparkplug: time, metrics, sequence number."""
    return number_field(1, int(time.time() * 1000)) + b"".join(metrics) + number_field(3, seq % 256)


def host(program: Program) -> None:
    """Keep the numbers of all nodes."""
    last: dict[str, int] = {}

    def on_message(_client: Any, _data: Any, one: mqtt.MQTTMessage) -> None:
        kind, node = one.topic.split("/")[2:4]
        # The sequence number is the last field here: one byte, or two.
        seq = one.payload[-1] if one.payload[-2] == 0x18 else one.payload[-2] & 127 | one.payload[-1] << 7
        if kind == "NDATA" and seq != (last.get(node, -9) + 1) % 256:
            program.send(payload(0, metric("Node Control/Rebirth", 1)), f"spBv1.0/{program.topic}/NCMD/{node}")
            tell("rebirth", node=node)
        last[node] = seq

    program.filters = [(f"spBv1.0/{program.topic}/NBIRTH/+", 1), (f"spBv1.0/{program.topic}/NDATA/+", 1)]
    program.client.on_message = on_message
    program.begin()
    program.end(600)


def node(program: Program) -> None:
    """Sixty metrics at birth, then one or two at a time."""
    bad = program.words[0] == "bad"
    state = {"seq": 90 if bad else 0}

    def born(*_: Any) -> None:
        if not bad:
            state["seq"] = 0
        metrics = [metric(f"Line {n // 10}/Motor {n % 10}/Speed", 900 + n) for n in range(METRICS)]
        program.send(payload(0, *metrics), f"spBv1.0/{program.topic}/NBIRTH/{program.client_id}")

    program.filters = [(f"spBv1.0/{program.topic}/NCMD/{program.client_id}", 1)]
    program.client.on_message = born
    program.begin()
    born()
    for number in range(60):
        state["seq"] += 1
        speed = metric(f"Line {number % 6}/Motor {number % 10}/Speed", 880 + number * 7 % 50)
        program.send(payload(state["seq"], speed), f"spBv1.0/{program.topic}/NDATA/{program.client_id}")
        time.sleep(0.6)
    program.end()


def source(program: Program) -> None:
    """Send all pieces to who asks, one after the other."""
    asked: list[str] = []
    program.filters = [(f"{program.topic}/want/+", 1)]
    program.client.on_message = lambda client, data, one: asked.append(one.topic.rpartition("/")[2])
    program.begin()
    while True:
        while not asked:
            time.sleep(0.05)
        device = asked.pop(0)
        for number in range(PIECES):
            content = bytes((number * 31 + place * 7) % 251 for place in range(PIECE_BYTES))
            program.send(content, f"{program.topic}/piece/{device}/{number}")
            time.sleep(0.05)


def device(program: Program) -> None:
    """Ask, gather, check; say the state now and then."""
    got: list[int] = []
    program.filters = [(f"{program.topic}/piece/{program.client_id}/+", 1)]
    program.client.on_message = lambda client, data, one: got.append(len(one.payload))
    program.begin()
    wants = True
    for number in range(45):
        if wants:
            got.clear()
            program.send(b"2.4.1", f"{program.topic}/want/{program.client_id}")
            wants = False
        elif len(got) == PIECES:
            bad = program.words[0] == "bad"
            program.send(b"checksum wrong" if bad else b"2.4.1 runs", f"{program.topic}/state/{program.client_id}")
            got.clear()
            wants = bad
        elif not number % 5:
            program.send(b"up %d s" % (number + 3), f"{program.topic}/alive/{program.client_id}")
        time.sleep(1)
    program.end()


def machine(program: Program) -> None:
    """Measures quickly by day, and seldom by night."""
    mode = {"now": b"day"}
    program.filters = [(f"{program.topic}/mode", 1)]
    program.client.on_message = lambda client, data, one: mode.update(now=one.payload)
    program.begin()
    until, number, spread = time.monotonic() + 52, 0, sum(program.client_id.encode()) % 20
    while time.monotonic() < until:
        program.send(f'{{"seq": {number}, "rpm": {900 + (number * 7 + spread) % 40}}}',
                     f"{program.topic}/value/{program.client_id}")  # fmt: skip
        number += 1
        again = time.monotonic() + (0.5 if mode["now"] == b"day" else 8) + spread / 100
        before = mode["now"]
        while time.monotonic() < again and (before == mode["now"] or before == b"day"):
            time.sleep(0.05)
    program.end()


WORKS: dict[str, Callable[[Program], None]] = {one.__name__: one for one in (host, node, source, device, machine)}


def main() -> None:
    """Do one work."""
    place, port, version, work, *words = sys.argv[1:]
    WORKS[work](Program(place, port, version, *words))
    tell("done")


if __name__ == "__main__":
    main()
