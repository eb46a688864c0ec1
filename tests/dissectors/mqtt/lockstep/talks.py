"""Made-up MQTT connections, as they should be and broken, and their frames; what a capture with losses has of them."""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

from tests.support.left_frames import as_cut
from tests.support.mqtt_encode import (
    PING,
    PONG,
    PUBACK,
    PUBCOMP,
    PUBREC,
    PUBREL,
    ack,
    connack,
    connect,
    disconnect,
    packet,
    publish,
    suback,
    subscribe,
    u16,
    user_property,
)
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, SERVER_TO_CLIENT, Frame
from wirewitness.dissectors.core.protocol import Sink

_TOPICS = ("a", "plant/oven/temperature", "küche", "plant/7", "plant/8")
_ODD_TOPICS = ("", "bad/#", "\x01", "x" * 1500)
_PROPERTIES = ((b"\x02\0\0\0\x09",), (user_property("k", "v"),), (b"\x23" + u16(1),))


class Said(NamedTuple):
    """One packet: who sent it, and its bytes."""

    direction: int
    data: bytes


class Talk:
    """A connection that goes on for a while. odd: the share of packets that are not in the ordinary course."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.level = random.choice((3, 4, 4, 5))
        self.odd = random.choice((0.0, 0.0, 0.005, 0.05))
        self.begins = random.random() < 0.8
        self.said: list[Said] = []
        # What each side still has to send: the packets of the handshakes that it is in.
        self._due: tuple[list[bytes], list[bytes]] = ([], [])
        self._identifiers = [random.choice((0, 65_500)), 0]
        self._few = random.choice((3, 40, 65_535))
        if self.begins:
            self._open()
        for _ in range(random.randrange(10, 250)):
            self._go_on()
        if random.random() < 0.3:
            self.said.append(Said(CLIENT_TO_SERVER, disconnect()))

    @property
    def _none(self) -> tuple[()] | None:
        return () if self.level == 5 else None

    def _open(self) -> None:
        five = self.level == 5 and self._random.random() < 0.3
        limits = [b"\x21" + u16(self._random.choice((2, 20)))] if five else self._none
        self.said.append(Said(CLIENT_TO_SERVER, connect(self.level, "client", properties=limits or ())))
        self.said.append(Said(SERVER_TO_CLIENT, connack(properties=limits)))

    def _go_on(self) -> None:
        random = self._random
        waiting = [side for side in (0, 1) if self._due[side]]
        if waiting and random.random() < 0.55:
            side = random.choice(waiting)
            due = self._due[side]
            self._say(side, due.pop(0 if random.random() < 0.9 else random.randrange(len(due))))
        elif random.random() < 0.04:
            self._say(CLIENT_TO_SERVER, PING)
            self._due[SERVER_TO_CLIENT].append(PONG)
        else:
            self._publish(random.choice((0, 0, 0, 1)), random.choice((0, 0, 1, 1, 2)))

    def _publish(self, side: int, qos: int) -> None:
        random = self._random
        identifier = self._identifiers[side] = self._identifiers[side] % self._few + 1
        size = random.choice((0, 5, 20, random.randrange(300), 20_000 if random.random() < 0.02 else 3))
        payload = bytes([random.randrange(256)]) * size
        if random.random() < 0.5:
            payload = random.choice((b'{"n":%d}', b'{"n":%d', b"[%d]\n", b"[%d", b"{}", b"{", b"[", b"%d\0")).replace(
                b"%d", payload
            )
        topic = random.choice(_TOPICS)
        flags = {"retain": random.random() < 0.1}
        self._say(side, publish(topic, payload, qos, identifier, properties=self._none, **flags))
        if qos == 1:
            self._due[1 - side].append(ack(PUBACK, identifier))
        elif qos == 2:
            self._due[1 - side].append(ack(PUBREC, identifier))

    def _say(self, side: int, data: bytes) -> None:
        if self._random.random() < self.odd:
            self._say_otherwise(side, data)
            return
        self.said.append(Said(side, data))
        self._owe(side, data)

    def _owe(self, side: int, data: bytes) -> None:
        """What the other side has to send for this."""
        if data[0] == PUBREC << 4:
            self._due[1 - side].append(packet(PUBREL, data[2:4]))
        elif data[0] == PUBREL << 4 | 2:
            self._due[1 - side].append(packet(PUBCOMP, data[2:4]))

    def _say_otherwise(self, side: int, data: bytes) -> None:
        random = self._random
        identifier = random.randrange(4)
        kind = random.choice((PUBACK, PUBREC, PUBREL, PUBCOMP))
        at = random.randrange(len(data))
        said = random.choice(
            (
                [],
                [data, data],
                [data[:at] + bytes([random.randrange(256)]) + data[at + 1 :]],
                [ack(kind, identifier)],
                [ack(kind, identifier, random.choice((0, 0x10, 0x97)))],
                [publish(random.choice(_ODD_TOPICS), b"x", 1, identifier, properties=self._none)],
                [publish("a", b"x", random.randrange(4), identifier, dup=True, properties=self._none)],
                [publish("a", b"x", 1, identifier, properties=random.choice(_PROPERTIES))],
                [subscribe(identifier, ("a/#", 1), properties=self._none)],
                [suback(identifier, 1, properties=self._none)],
                [random.choice((PING, PONG))],
                [connect(random.choice((4, 5)), "another")],
                [bytes([data[0]]) + b"\x80" * 4],
                [packet(0, b"abc")],
            )
        )
        self.said += [Said(side, one) for one in said]


def frames_of(talk: Talk, random: Random) -> list[Frame]:
    """The frames as they are fed: some of a side share their bytes and their packet; the last one may be cut."""
    offsets = [0 if talk.begins else 1000] * 2
    found: list[Frame] = []
    said, number, ts_ns = talk.said, 0, 10**18
    while said:
        together = next((n for n, one in enumerate(said) if one.direction != said[0].direction), len(said))
        together = min(together, random.randrange(1, 6))
        now, said = said[:together], said[together:]
        data = b"##" + b"".join(one.data for one in now) + b"##"
        number += random.randrange(1, 4)
        ts_ns += random.choice((0, 1000, 10**9))
        at = 2
        for direction, content in now:
            end = at + len(content)
            place = (offsets[direction], number - random.randrange(2), number, ts_ns)
            found.append(Frame(number, direction, data, at, end, *place, True))
            offsets[direction] += len(content)
            at = end
    if random.random() < 0.1:
        last = found[-1]
        found[-1] = last._replace(end=last.start + 1 + (last.size - 1) // 2, complete=last.size < 2)
    return found


class Missing(NamedTuple):
    """Bytes of this direction are missing here, as a decoder is told."""

    direction: int


def with_losses(frames: list[Frame], random: Random) -> list[Frame | Missing]:
    """The frames without some of them: where that was noticed `Missing` says so, where it was noticed late what one
    side sent stands behind what the other one sent later."""
    share = random.choice((0.01, 0.05, 0.2))
    found: list[Frame | Missing] = []
    at = 0
    while at < len(frames):
        late = frames[at : at + random.randrange(2, 30)] if random.random() < share else []
        side = random.randrange(2)
        now = sorted(late, key=lambda frame: frame.direction == side) or [frames[at]]
        at += len(now)
        for frame in now:
            if random.random() < share:
                found += [Missing(frame.direction)] if random.random() < 0.8 else []
            else:
                found.append(frame)
    return found


def feed_with_losses(decoder: Any, items: list[Frame | Missing], out: Sink) -> None:
    """Feed frames, and tell what is missing where it is."""
    fed: list[Frame] = []
    for item in items:
        if isinstance(item, Missing):
            decoder.feed(as_cut(fed, out), out)
            decoder.lost(item.direction, out)
            fed = []
        else:
            fed.append(item)
    decoder.feed(as_cut(fed, out), out)
