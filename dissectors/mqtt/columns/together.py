"""Frames that many connections left: those in the ordinary course are read together, from the first one of each
connection up to one that is not; from there on the conversation reads them by itself.

In: frames of many connections and what is known of these. Out: for each of them a `Together`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from dissectors.core.columns.frames import Flags, Frames, Ints, in_columns
from dissectors.core.limits import Limits
from dissectors.core.model import Frame
from dissectors.core.protocol import Sink
from dissectors.mqtt.columns.afterwards import Afterwards, afterwards, with_pings
from dissectors.mqtt.columns.contents import Contents
from dissectors.mqtt.columns.course import State, course
from dissectors.mqtt.columns.handshakes import handshakes
from dissectors.mqtt.columns.landed import landed
from dissectors.mqtt.columns.pings import answered
from dissectors.mqtt.columns.rows import Placed, Told, Whose
from dissectors.mqtt.connection import Connection
from dissectors.mqtt.flights import Flights
from dissectors.mqtt.levels import LEVEL_50
from dissectors.mqtt.requests import Requests

# Fewer frames of a connection than these are not worth the Python that each connection costs.
LEAST = 32


class Left(NamedTuple):
    """A connection in its ordinary course, and the frames that it left."""

    frames: Sequence[Frame]
    connection: Connection
    flights: Flights
    requests: Requests


class Together(NamedTuple):
    """What was made of the first frames of a connection. frames: how many.

    tables: rows of all connections; begin: the place of its first frame among those of all.
    """

    frames: int
    begin: int
    tables: Mapping[str, Placed]
    afterwards: Afterwards

    def follow(self, left: Left, out: Sink) -> None:
        """Give the rows of these frames, and change what is known of the connection."""
        self.afterwards.change(left.connection, left.flights.of, left.requests)
        for table, placed in self.tables.items():
            first, until = np.searchsorted(placed.due, (self.begin, self.begin + self.frames)).tolist()
            if until > first:
                out.block(table, placed.block, first, until)


def together(lefts: Sequence[Left], limits: Limits, out: Sink) -> list[Together | None]:
    """What was made of the frames of each connection; None where all of them are read one by one."""
    frames = in_columns([left.frames for left in lefts])
    state = _state(lefts)
    found, steps, of_sender, odd = course(frames, state, limits)
    pings = state.pings
    ends = _ends(frames, odd)
    taken = np.arange(len(frames)) < ends[frames.connection]
    if not taken.any():
        return [None] * len(lefts)
    connections = [left.connection for left in lefts]
    contents = Contents(frames, found)
    of_messages = handshakes(steps, taken)
    of_pings = answered(frames, found.kind, taken, pings)
    with_publishes = out.rows("mqtt_publishes") is not None
    after = afterwards(frames, found, taken, connections, of_messages, of_sender, contents, with_publishes)
    with_pings(after, frames, found, taken, of_pings, pings)
    told = Told(frames, found, Whose.of(connections), contents, taken)
    tables = dict[str, Placed]()
    over = landed(frames, found, taken, of_messages)
    if out.rows("messages") is not None:
        tables["messages"] = told.messages()
    if out.rows("exchanges") is not None:
        tables["exchanges"] = told.exchanges(over, of_pings)
    if with_publishes:
        tables["mqtt_publishes"] = told.publishes(over, of_messages, of_sender)
    counts = (ends - frames.begins).tolist()
    return [
        Together(count, begin, tables, one) if count else None
        for count, begin, one in zip(counts, frames.begins.tolist(), after, strict=True)
    ]


def _state(lefts: Sequence[Left]) -> State:
    return State(
        five=np.array([left.connection.level == LEVEL_50 for left in lefts], bool),
        packet_limit=np.array([left.connection.packet_limit for left in lefts], np.int64),
        receive_maximum=np.array([left.connection.receive_maximum for left in lefts], np.int64),
        flights=[left.flights.of for left in lefts],
        pings=[left.requests.pings for left in lefts],
        has_early=np.array([left.requests.has_early for left in lefts], bool),
    )


def _ends(frames: Frames, odd: Flags) -> Ints:
    """Behind the last packet of each connection that is read here; where it begins, if these are too few."""
    places = np.append(np.flatnonzero(odd), len(frames))
    ends = np.minimum(places[np.searchsorted(places, frames.begins)], frames.ends)
    return np.where(ends - frames.begins < LEAST, frames.begins, ends)
