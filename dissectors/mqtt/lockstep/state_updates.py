"""What connections know after the packets that were read together.

In: packets, messages and pings that are in turn. Out: an `Afterwards` for each connection, which changes it when its
turn comes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from wirewitness.dissectors.core.lockstep.frames import Flags, Frames, Ints
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER
from wirewitness.dissectors.mqtt.connection import Connection
from wirewitness.dissectors.mqtt.handshake import FIRST, Flight
from wirewitness.dissectors.mqtt.levels import LEVEL_50
from wirewitness.dissectors.mqtt.lockstep.contents import Contents
from wirewitness.dissectors.mqtt.lockstep.handshakes import Handshakes, Open
from wirewitness.dissectors.mqtt.lockstep.packets import PINGREQ, PUBLISH_1, PUBLISH_2, Packets
from wirewitness.dissectors.mqtt.lockstep.pings import Pings
from wirewitness.dissectors.mqtt.packet_types import PINGREQ as PINGREQ_TYPE
from wirewitness.dissectors.mqtt.packet_types import PUBREC as PUBREC_TYPE
from wirewitness.dissectors.mqtt.packet_types import PUBREL as PUBREL_TYPE
from wirewitness.dissectors.mqtt.publish_rows import NO_TAIL
from wirewitness.dissectors.mqtt.requests import Requests
from wirewitness.dissectors.mqtt.subscriptions import Asked


class Silence(NamedTuple):
    """The longest time between two messages of the client: how long, since when, and packet."""

    ns: int
    since: int | None
    packet: int | None


class Step(NamedTuple):
    """How far a message got that was in flight before and still is."""

    flight: Flight
    received: int | None
    released: int | None
    packet: int


class Begun(NamedTuple):
    """A message that is in flight now: who sent it, its identifier, and the place of its PUBLISH among all frames."""

    direction: int
    identifier: int
    flight: Flight
    at: int


class Afterwards:
    """What becomes of one connection. Pairs are of the client and of the server.

    messages, publishes, most_in_flight: counted here. last: (time, packet) of the last message, None for none.
    over, begun, gone_on: messages in flight before that are over, by (who sent, identifier); new ones that are not, the
    oldest first; and those that made a step. pings: PINGREQ counted here. waiting: pings that wait now, None if none
    came or went. last and silence are those of all packets, also of such as are read alone between others.
    """

    __slots__ = (
        "begun",
        "gone_on",
        "last",
        "messages",
        "most_in_flight",
        "over",
        "pings",
        "publishes",
        "silence",
        "waiting",
    )

    def __init__(self, connection: Connection) -> None:
        self.over: list[tuple[int, int]] = []
        self.begun: list[Begun] = []
        self.gone_on: list[Step] = []
        self.silence = Silence(connection.silence_ns, connection.silence_from, connection.silence_packet)
        self.messages = self.publishes = self.most_in_flight = [0, 0]
        self.last: list[tuple[int, int] | None] = [None, None]
        self.pings = 0
        self.waiting: list[Asked] | None = None

    def counted_anew(self, in_flight: Ints, most: list[int]) -> None:
        """More or fewer were in flight: at each packet, and at most of each side."""
        self.most_in_flight = most
        for begun in self.begun:
            begun.flight.in_flight = int(in_flight[begun.at])

    def change(self, connection: Connection, flights: Open, requests: Requests) -> None:
        """The connection was read so far."""
        for direction in (0, 1):
            connection.messages[direction] += self.messages[direction]
            connection.publishes[direction] += self.publishes[direction]
            most = connection.max_in_flight
            most[direction] = max(most[direction], self.most_in_flight[direction])
            last = self.last[direction]
            if last is not None:
                connection.last_ts_ns[direction], connection.last_packet[direction] = last
        connection.silence_ns, connection.silence_from, connection.silence_packet = self.silence
        for direction, identifier in self.over:
            del flights[direction][identifier]
        for flight, received, released, packet in self.gone_on:
            _went_on(flight, received, released, packet, connection.level)
        for direction, identifier, flight, _ in self.begun:
            flights[direction][identifier] = flight
        if self.waiting is not None:
            connection.count("pings", self.pings)
            requests.pings = self.waiting


def afterwards(
    frames: Frames,
    packets: Packets,
    taken: Flags,
    read: Flags,
    connections: Sequence[Connection],
    found: Handshakes,
    in_flight: Ints,
    contents: Contents,
    with_heads: bool,
) -> list[Afterwards]:
    """What becomes of each connection. read: what is taken, and what is read alone between; with_heads: does anybody
    want `mqtt_publishes`?"""
    made = [Afterwards(connection) for connection in connections]
    _counts(made, frames, packets, taken, in_flight)
    _lasts(made, frames, read)
    _silences(made, frames, read, connections)
    _flights(made, frames, packets, connections, found, in_flight, contents if with_heads else None)
    return made


def _counts(made: Sequence[Afterwards], frames: Frames, packets: Packets, taken: Flags, in_flight: Ints) -> None:
    """Messages, publishes, and the most in flight."""
    rows = np.flatnonzero(taken)
    side = frames.connection[rows] * 2 + frames.direction[rows]
    sides = 2 * len(made)
    kind = packets.kind[rows]
    acknowledged = (kind == PUBLISH_1) | (kind == PUBLISH_2)
    most = np.zeros(sides, np.int64)
    np.maximum.at(most, side[acknowledged], in_flight[rows[acknowledged]])
    counted = zip(
        made,
        np.bincount(side, minlength=sides).reshape(-1, 2).tolist(),
        np.bincount(side[kind <= PUBLISH_2], minlength=sides).reshape(-1, 2).tolist(),
        most.reshape(-1, 2).tolist(),
        strict=True,
    )
    for one, messages, publishes, in_flight_at_most in counted:
        one.messages, one.publishes, one.most_in_flight = messages, publishes, in_flight_at_most


def _lasts(made: Sequence[Afterwards], frames: Frames, read: Flags) -> None:
    """The last message of each side."""
    rows = np.flatnonzero(read)
    last = np.full(2 * len(made), -1)
    last[frames.connection[rows] * 2 + frames.direction[rows]] = rows  # of several the last one stays
    for one, lasts in zip(made, last.reshape(-1, 2).tolist(), strict=True):
        one.last = [(int(frames.ts_ns[at]), int(frames.packet_last[at])) if at >= 0 else None for at in lasts]


def _silences(made: Sequence[Afterwards], frames: Frames, read: Flags, connections: Sequence[Connection]) -> None:
    """The longest silence of each client, where it is longer than all before."""
    rows = np.flatnonzero(read & (frames.direction == CLIENT_TO_SERVER))
    if not len(rows):
        return
    owner, ts_ns = frames.connection[rows], frames.ts_ns[rows]
    firsts = np.flatnonzero(np.append(True, owner[1:] != owner[:-1]))
    gap = np.empty(len(rows), np.int64)
    gap[1:] = ts_ns[1:] - ts_ns[:-1]
    owners = owner[firsts].tolist()
    gap[firsts] = ts_ns[firsts] - np.array([connections[number].last_ts_ns[0] or 0 for number in owners], np.int64)
    longest = np.maximum.reduceat(gap, firsts).tolist()
    ends = [*firsts[1:].tolist(), len(rows)]
    for number, first, end, most in zip(owners, firsts.tolist(), ends, longest, strict=True):
        connection = connections[number]
        if most <= connection.silence_ns:
            continue
        at = first + int(np.argmax(gap[first:end]))
        if at == first:
            made[number].silence = Silence(most, connection.last_ts_ns[0] or 0, connection.last_packet[0])
        else:
            made[number].silence = Silence(most, int(ts_ns[at - 1]), int(frames.packet_last[rows[at - 1]]))


def _flights(
    made: Sequence[Afterwards],
    frames: Frames,
    packets: Packets,
    connections: Sequence[Connection],
    found: Handshakes,
    in_flight: Ints,
    contents: Contents | None,
) -> None:
    """What is in flight behind the packets, and what no longer is."""
    is_over = found.last >= 0
    latest = found.latest
    was_known = np.array([flight is not None for flight in found.known], bool)
    for row in np.flatnonzero(was_known).tolist():
        flight, at = found.known[row], int(latest[row])
        assert flight is not None
        one = made[int(frames.connection[at])]
        if is_over[row]:
            one.over.append((1 - int(frames.direction[at]), int(packets.identifier[at])))
        else:
            one.gone_on.append(Step(flight, *_times(frames, found, row), int(frames.packet_last[at])))
    begun = np.flatnonzero(~was_known & ~is_over)
    for row in begun[np.argsort(found.publish[begun])].tolist():
        at, end = int(found.publish[row]), int(latest[row])
        identifier, qos = int(packets.identifier[at]), int(packets.kind[at])
        place = int(frames.offset[at]), int(frames.size[at]), int(frames.packet_last[at]), int(frames.ts_ns[at])
        head = None if contents is None else contents.head(at, identifier)
        flight = Flight(*place, FIRST[qos], head, NO_TAIL, int(in_flight[at]))
        number = int(frames.connection[at])
        if end != at:
            times = _times(frames, found, row)
            _went_on(flight, *times, int(frames.packet_last[end]), connections[number].level)
        made[number].begun.append(Begun(int(frames.direction[at]), identifier, flight, at))


def _times(frames: Frames, found: Handshakes, row: int) -> tuple[int | None, int | None]:
    """When PUBREC and PUBREL of a message came here; None where they did not."""
    received, released = int(found.pubrec[row]), int(found.pubrel[row])
    return (
        int(frames.ts_ns[received]) if received >= 0 else None,
        int(frames.ts_ns[released]) if released >= 0 else None,
    )


def _went_on(flight: Flight, received: int | None, released: int | None, packet: int, level: int | None) -> None:
    """PUBREC or PUBREL of a message was read, or both."""
    flight.ts_received = flight.ts_received if received is None else received
    if released is None and flight.ts_released is not None:  # PUBREC behind PUBREL brings it no further
        return
    flight.waits_for = "pubrel" if released is None else "pubcomp"
    flight.ts_released = flight.ts_released if released is None else released
    flight.last_packet = packet
    if level == LEVEL_50:
        flight.code, flight.code_of = 0, PUBREC_TYPE if released is None else PUBREL_TYPE


def with_pings(
    made: Sequence[Afterwards],
    frames: Frames,
    packets: Packets,
    taken: Flags,
    answered: Pings,
    known: Sequence[Sequence[Asked]],
) -> None:
    """Add how many pings each connection had, and which wait now."""
    requests = np.flatnonzero(taken & (packets.kind == PINGREQ))
    if not len(requests) and not len(answered.response):
        return
    asked = np.bincount(frames.connection[requests], minlength=len(made)).tolist()
    answers = np.bincount(frames.connection[answered.response], minlength=len(made)).tolist()
    firsts = np.searchsorted(frames.connection[requests], np.arange(len(made))).tolist()
    for one, before, first, pings, pongs in zip(made, known, firsts, asked, answers, strict=True):
        if not pings and not pongs:
            continue
        one.pings = pings
        waiting = requests[first + max(pongs - len(before), 0) : first + pings].tolist()
        one.waiting = [*before[pongs:], *(_asked(frames, at) for at in waiting)]


def _asked(frames: Frames, at: int) -> Asked:
    size = int(frames.end[at] - frames.start[at])
    return Asked(PINGREQ_TYPE, None, int(frames.offset[at]), size, int(frames.packet_last[at]), int(frames.ts_ns[at]))
