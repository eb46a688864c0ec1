"""Frames that many connections left: those in the ordinary course are read together, the others by the decoders,
between them; from one on that may change what all others mean the decoder reads by itself.

In: frames of many connections and what is known of these. Out: for each of them a `Together`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import NamedTuple, Protocol

import numpy as np

from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.lockstep.cut_frames import CutFrames
from wirewitness.dissectors.core.lockstep.frames import Flags, Frames, Ints, in_columns
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, Frame
from wirewitness.dissectors.core.protocol import Sink
from wirewitness.dissectors.mqtt.connection import Connection
from wirewitness.dissectors.mqtt.gaps import Loss
from wirewitness.dissectors.mqtt.inflight import Flights
from wirewitness.dissectors.mqtt.levels import LEVEL_50
from wirewitness.dissectors.mqtt.lockstep.contents import Contents
from wirewitness.dissectors.mqtt.lockstep.handshakes import handshakes, of_senders
from wirewitness.dissectors.mqtt.lockstep.irregular_frames import Apart, State, apart
from wirewitness.dissectors.mqtt.lockstep.packets import PUBLISH_1, PUBLISH_2, packets
from wirewitness.dissectors.mqtt.lockstep.pings import answered
from wirewitness.dissectors.mqtt.lockstep.publish_columns import landed
from wirewitness.dissectors.mqtt.lockstep.rows import Placed, Told, Whose
from wirewitness.dissectors.mqtt.lockstep.state_updates import Afterwards, afterwards, with_pings
from wirewitness.dissectors.mqtt.output import Output, output
from wirewitness.dissectors.mqtt.requests import Requests

# What the decoder of one connection reads by itself, between what was read together.
#
# In: the packets that are read alone, and where bytes are missing. Out: stretches of them. How many messages are in
# flight is told by both, so it is counted on here.


class Reads(Protocol):
    """What a decoder does by itself."""

    def stretch(self, frames: Sequence[Frame], beside: tuple[int, int], out: Output) -> None:
        """Decode frames; so many more messages of client and server are in flight than it knows of."""

    def miss(self, direction: int, out: Output) -> None:
        """Bytes of this direction are missing here."""


class Alone(NamedTuple):
    """Frames, by their numbers in the connection, in front of which bytes of directions are missing. beside: messages
    of client and server in flight there that are read together, more than there were before all frames."""

    first: int
    until: int
    missing: Sequence[int]
    beside: tuple[int, int]


def stretches(alone: Flags, losses: Sequence[Loss]) -> list[tuple[int, int, list[int]]]:
    """First frame, end, and the directions that miss bytes in front of the first one, in order. alone: of the frames of
    one connection that are read together or alone."""
    missing: dict[int, list[int]] = {}
    for at, direction in losses:
        if at < len(alone):
            missing.setdefault(at, []).append(direction)
    cut = np.zeros(len(alone) + 1, bool)
    cut[[0, *missing, len(alone)]] = True
    before, behind = np.append(False, alone[:-1]), np.append(alone[1:], False)
    firsts = np.flatnonzero(alone & (~before | cut[:-1])).tolist()
    untils = (np.flatnonzero(alone & (~behind | cut[1:])) + 1).tolist()
    nothing = [(at, at) for at in missing if not alone[at]]
    return [(*span, missing.get(span[0], [])) for span in sorted([*zip(firsts, untils, strict=True), *nothing])]


class InFlight(NamedTuple):
    """How many messages are in flight, of all connections.

    counts: at each packet those of its sender, itself included. direction: of each packet. own: PUBLISH packets of QoS
    1 and 2 that are read together.
    """

    counts: Ints
    direction: Ints
    own: Flags

    def more(self, first: int, until: int, by: Sequence[int]) -> None:
        """At these packets so many more of client and server are."""
        self.counts[first:until] += np.where(self.direction[first:until], by[1], by[0])

    def most(self, first: int, until: int) -> list[int]:
        """The most of client and server at these packets."""
        own, direction = self.own[first:until], self.direction[first:until]
        return [int(self.counts[first:until][own & (direction == side)].max(initial=0)) for side in (0, 1)]


# Fewer frames of a connection than these are not worth the Python that each connection costs.
LEAST = 32
# As many of them for each stretch that the decoder reads between them.
LEAST_BESIDE = 6


class Left(NamedTuple):
    """A connection in its ordinary course, the frames that it left, and where bytes are missing between them."""

    frames: Sequence[Frame]
    losses: Sequence[Loss]
    connection: Connection
    flights: Flights
    requests: Requests


class Together(NamedTuple):
    """What was made of the first frames of a connection. frames: how many; taken: how many of them are read together.

    alone: the others. begin: the place of its first frame among those of all. tables, in_flight: of all connections.
    """

    frames: int
    taken: int
    begin: int
    alone: Sequence[Alone]
    tables: Mapping[str, Placed]
    in_flight: InFlight
    afterwards: Afterwards

    def follow(self, left: Left, decoder: Reads, out: Sink) -> None:
        """Give the rows of these frames, and change what is known of the connection."""
        flights, begin, end = left.flights.of, self.begin, self.begin + self.frames
        places = np.array([begin, *(begin + one.first for one in self.alone), end], np.int64)
        due = {table: np.searchsorted(placed.due, places).tolist() for table, placed in self.tables.items()}
        rows = output(out)
        counted_anew, more = False, [0, 0]
        untils = [*(one.until for one in self.alone[1:]), self.frames]
        own = _between(left.frames, self.alone)
        for number, (_, until, missing, beside) in enumerate(self.alone):
            self._give(due, number, counted_anew, out)
            for direction in missing:
                decoder.miss(direction, rows)
            before = len(flights[0]), len(flights[1])
            decoder.stretch(own[number], beside, rows)
            if before != (len(flights[0]), len(flights[1])):
                more = [was + len(side) - count for was, side, count in zip(more, flights, before, strict=True)]
                counted_anew = True
            if more != [0, 0]:  # at what comes before the next stretch is over: at each packet once
                self.in_flight.more(begin + until, begin + untils[number], more)
        self._give(due, len(self.alone), counted_anew, out)
        if counted_anew:
            self.afterwards.counted_anew(self.in_flight.counts, self.in_flight.most(begin, end))
        self.afterwards.change(left.connection, flights, left.requests)
        if self.alone:
            left.flights.in_order()

    def _give(self, due: Mapping[str, Sequence[int]], number: int, counted_anew: bool, out: Sink) -> None:
        """The rows of each table from what is due with this number to before the next one."""
        for table, bounds in due.items():
            first, until = bounds[number], bounds[number + 1]
            if until <= first:
                continue
            placed = self.tables[table]
            if counted_anew and placed.counted is not None:
                counts, publish = (column[first:until] for column in placed.counted)
                np.copyto(counts, self.in_flight.counts[publish], where=publish >= 0)
            out.block(table, placed.block, first, until)


def together(lefts: Sequence[Left], limits: Limits, out: Sink) -> list[Together | None]:
    """What was made of the frames of each connection; None where all of them are read one by one."""
    frames = in_columns([left.frames for left in lefts])
    state = _state(lefts)
    found = packets(frames, state.five, state.packet_limit)
    kind = found.kind
    by_itself = apart(frames, found, state, limits)
    ends = _ends(frames, by_itself)
    read = np.arange(len(frames)) < ends[frames.connection]
    taken = read & ~by_itself.alone
    if not taken.any():
        return [None] * len(lefts)
    connections = [left.connection for left in lefts]
    contents = Contents(frames, found)
    of_messages = handshakes(by_itself.steps, taken)
    of_pings = answered(frames, kind, taken, state.pings)
    with_publishes = out.rows("mqtt_publishes") is not None
    counts = of_senders(by_itself.counts, frames)
    after = afterwards(frames, found, taken, read, connections, of_messages, counts, contents, with_publishes)
    with_pings(after, frames, found, taken, of_pings, state.pings)
    told = Told(frames, found, Whose.of(connections), contents, taken)
    tables = dict[str, Placed]()
    over = landed(frames, found, taken, of_messages)
    if out.rows("messages") is not None:
        tables["messages"] = told.messages()
    if out.rows("exchanges") is not None:
        tables["exchanges"] = told.exchanges(over, of_pings)
    if with_publishes:
        tables["mqtt_publishes"] = told.publishes(over, of_messages, counts)
    shared = tables, InFlight(counts, frames.direction, taken & ((kind == PUBLISH_1) | (kind == PUBLISH_2)))
    spans = zip(frames.begins.tolist(), ends.tolist(), strict=True)
    return [
        Together(end - begin, int(taken[begin:end].sum()), begin, _alone(left, by_itself, begin, end), *shared, one)
        if end > begin
        else None
        for left, (begin, end), one in zip(lefts, spans, after, strict=True)
    ]


def _state(lefts: Sequence[Left]) -> State:
    return State(
        five=np.array([left.connection.level == LEVEL_50 for left in lefts], bool),
        packet_limit=np.array([left.connection.packet_limit for left in lefts], np.int64),
        receive_maximum=np.array([left.connection.receive_maximum for left in lefts], np.int64),
        flights=[left.flights.of for left in lefts],
        pings=[left.requests.pings for left in lefts],
        other_pings=np.array([left.requests.has_early or bool(left.losses) for left in lefts], bool),
        special=[(number, *key) for number, left in enumerate(lefts) for key in _waiting(left)],
    )


def _waiting(left: Left) -> list[tuple[int, int]]:
    """Publisher and packet identifier of what waits beside the messages in flight."""
    return left.flights.beside_flights + [(CLIENT_TO_SERVER, identifier) for identifier in left.requests.asked]


def _ends(frames: Frames, by_itself: Apart) -> Ints:
    """Behind the last packet of each connection that is read here; where it begins, if too few are read together."""
    read = np.arange(len(frames)) < by_itself.ends[frames.connection]
    count = len(by_itself.ends)
    alone = read & by_itself.alone
    begins = alone & ~np.append(False, alone[:-1])
    taken = np.bincount(frames.connection[read & ~alone], minlength=count)
    stretches_alone = np.bincount(frames.connection[begins], minlength=count)
    too_few = (taken < LEAST) | (taken < LEAST_BESIDE * stretches_alone)
    return np.where(too_few, frames.begins, by_itself.ends)


def _between(frames: Sequence[Frame], alone: Sequence[Alone]) -> list[list[Frame]]:
    """The frames of each stretch that the decoder reads; of columns all are made at once."""
    if isinstance(frames, CutFrames):
        places = [at for first, until, *_ in alone for at in range(first, until)]
        each = iter(frames.taken(places))
        return [list(islice(each, until - first)) for first, until, *_ in alone]
    return [list(frames[first:until]) for first, until, *_ in alone]


def _alone(left: Left, by_itself: Apart, begin: int, end: int) -> list[Alone]:
    """What the decoder of this connection reads between the others of its frames."""
    known = [len(of_side) for of_side in left.flights.of]
    counts = by_itself.counts
    return [
        Alone(*span, (int(counts[0, begin + span[0]]) - known[0], int(counts[1, begin + span[0]]) - known[1]))
        for span in stretches(by_itself.alone[begin:end], left.losses)
    ]
