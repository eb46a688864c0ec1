"""MQTT connections of which every byte is there, many at once. In: `Streams`. Out: `WholeRead`.

A connection is MQTT for certain if it begins with CONNECT, or if the probe says so of its first segment. Where all its
packets are in the ordinary course from CONNACK to the end, and every message is acknowledged, it has no decoder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.lockstep.complete_connections import First, by_themselves
from wirewitness.dissectors.core.lockstep.frame_scan import frames_of
from wirewitness.dissectors.core.lockstep.frames import Flags, Frames, Ints
from wirewitness.dissectors.core.lockstep.streams import Gives, Rows, Streams, WholeRead
from wirewitness.dissectors.core.model import Frame
from wirewitness.dissectors.core.protocol import DECIDES, Sink
from wirewitness.dissectors.mqtt.connection import NO_LIMIT
from wirewitness.dissectors.mqtt.levels import LEVEL_50
from wirewitness.dissectors.mqtt.lockstep.connection_rows import OpenedRows, ordered
from wirewitness.dissectors.mqtt.lockstep.connections import Openings, Opens, openings
from wirewitness.dissectors.mqtt.lockstep.contents import Contents
from wirewitness.dissectors.mqtt.lockstep.handshakes import (
    Handshakes,
    events,
    handshakes,
    in_flight,
    of_senders,
    out_of_turn,
)
from wirewitness.dissectors.mqtt.lockstep.irregular_frames import State, most_in_flight, pings_out_of_turn
from wirewitness.dissectors.mqtt.lockstep.packets import ODD, PINGREQ, PINGRESP, Packets, packets
from wirewitness.dissectors.mqtt.lockstep.pings import answered
from wirewitness.dissectors.mqtt.lockstep.publish_columns import landed
from wirewitness.dissectors.mqtt.lockstep.rows import Placed, Told
from wirewitness.dissectors.mqtt.probe import probe

# Longest fixed header, with four bytes of length.
_LENGTH_BYTES = 4
_MORE = 0x80
_NO_ODD = np.zeros((3, 0), np.int64)


def read_whole(streams: Streams, limits: Limits, begin: Callable[[], Opens], out: Sink, together: bool) -> WholeRead:
    """See `Dissector.whole`. begin: makes the decoder of a connection that needs one. together: read what can be
    read together so; payloads that are to be shown cannot."""
    frames, odd = frames_of(streams, partial(_sizes, streams, limits))
    asked = First.of(streams, frames, limits)
    may = ~odd & asked.comes_first
    known, rows = np.zeros(len(may), bool), list[Rows]()
    if together and len(frames):
        opened = openings(frames, may, begin)
        plain = opened.kind >= 0
        if plain.any():
            rows = _read(frames, opened, plain, limits, out)
            known |= plain
    single = _probed(streams, asked, may & ~known)
    return WholeRead(known | single, rows, [*_single(frames, single, begin)])


def _sizes(streams: Streams, limits: Limits, of: Ints, starts: Ints) -> Ints:
    """See `Sizes`: the first byte, up to four bytes of length, and what they count."""
    octets = streams.octets
    size, behind, going_on = np.zeros(len(starts), np.int64), starts + 1, np.ones(len(starts), bool)
    for place in range(_LENGTH_BYTES):
        byte = octets[np.minimum(behind, len(octets) - 1)].astype(np.int64)
        size += np.where(going_on, (byte & ~_MORE) << 7 * place, 0)
        behind += going_on
        going_on &= byte >= _MORE
    whole = size + behind - starts
    return np.where(~going_on & (whole <= limits.max_frame_bytes), whole, 0)


def _read(frames: Frames, opened: Openings, plain: Flags, limits: Limits, out: Sink) -> list[Rows]:
    """Rows of the connections that are plain; others are none any more behind this."""
    state = _state(opened)
    found = packets(frames, state.five, state.packet_limit)
    kind, between = found.kind, _between(frames, opened)
    steps = events(frames, found, _NO_ODD, state.flights, state.five)
    in_flight_by_sender = of_senders(in_flight(frames, kind, state.flights), frames)
    odd = (kind == ODD) | pings_out_of_turn(frames, kind, state, limits)
    odd |= in_flight_by_sender > most_in_flight(frames, state, limits)
    odd[steps.at[out_of_turn(steps)]] = True
    plain[frames.connection[between & odd]] = False
    of_messages = handshakes(steps, between & plain[frames.connection])
    plain[frames.connection[of_messages.latest[of_messages.last < 0]]] = False
    waits = np.bincount(frames.connection, (kind == PINGREQ).astype(int) - (kind == PINGRESP), len(plain))
    plain &= waits == 0
    taken = between & plain[frames.connection]
    return _rows(frames, opened, plain, found, taken, handshakes(steps, taken), in_flight_by_sender, out)


def _state(opened: Openings) -> State:
    """What is known of each connection behind CONNACK; of those without a kind nothing that counts."""
    connections = [kind.connection for kind in opened.kinds]
    no_limits = [NO_LIMIT, NO_LIMIT]
    return State(
        five=np.array([*(one.level == LEVEL_50 for one in connections), False])[opened.kind],
        packet_limit=np.array([*(one.packet_limit for one in connections), no_limits], np.int64)[opened.kind],
        receive_maximum=np.array([*(one.receive_maximum for one in connections), no_limits], np.int64)[opened.kind],
        flights=[({}, {})] * len(opened.kind),
        pings=[()] * len(opened.kind),
        other_pings=np.zeros(len(opened.kind), bool),
        special=(),
    )


def _between(frames: Frames, opened: Openings) -> Flags:
    """The frames behind CONNACK and before the last DISCONNECT."""
    place = np.arange(len(frames))
    found: Flags = place >= frames.begins[frames.connection] + 2
    return found & (place < (frames.ends - opened.goodbye)[frames.connection])


def _rows(
    frames: Frames,
    opened: Openings,
    plain: Flags,
    found: Packets,
    taken: Flags,
    of_messages: Handshakes,
    in_flight_by_sender: Ints,
    out: Sink,
) -> list[Rows]:
    rows = OpenedRows(frames, opened, np.flatnonzero(plain))
    contents = Contents(frames, found)
    told = Told(frames, found, rows.whose(), contents, taken)
    of_pings = answered(frames, found.kind, taken, [()] * len(plain))
    over = landed(frames, found, taken, of_messages)
    tables: dict[str, Placed] = {}
    if out.rows("messages") is not None:
        tables["messages"] = ordered([told.messages(), *rows.messages()])
    if out.rows("exchanges") is not None:
        tables["exchanges"] = ordered([told.exchanges(over, of_pings), *rows.exchanges()])
    if out.rows("mqtt_publishes") is not None:
        tables["mqtt_publishes"] = told.publishes(over, of_messages, in_flight_by_sender)
    if out.rows("mqtt_connections") is not None:
        tables["mqtt_connections"] = rows.connections(found.kind, in_flight_by_sender)
    return [
        Rows(table, placed.block, np.arange(len(placed.due)), frames.connection[placed.due])
        for table, placed in tables.items()
    ]


def _probed(streams: Streams, asked: First, doubtful: Flags) -> Flags:
    """Which of these the probe knows."""
    known = np.zeros(len(doubtful), bool)
    numbers = np.flatnonzero(doubtful)
    begins, ends = streams.begin[2 * numbers].tolist(), asked.head_end[numbers].tolist()
    for number, begin, end in zip(numbers.tolist(), begins, ends, strict=True):
        known[number] = probe(streams.data[begin:end], b"", True) >= DECIDES
    return known


def _single(frames: Frames, own: Flags, begin: Callable[[], Opens]) -> Iterator[Gives]:
    """The connections that are read one by one."""

    def give(_: int, mine: Callable[[], Sequence[Frame]], out: Sink) -> None:
        begin().whole(mine(), out)

    yield from by_themselves(frames, own, give)
