"""Rows of the packets that are read together, in columns.

In: packets, messages and pings that are in turn. Out: for each table its rows in the order in which the decoder
would give them, and the frame at which each is due.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from wirewitness.dissectors.core.blocks import Block, Coded, Column, Numbers, Same
from wirewitness.dissectors.core.lockstep.frames import Flags, Frames, Ints
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER
from wirewitness.dissectors.core.payloads import PAYLOAD_KINDS
from wirewitness.dissectors.mqtt.connection import Connection
from wirewitness.dissectors.mqtt.handshake import COMPLETE, Flight
from wirewitness.dissectors.mqtt.levels import LEVEL_50
from wirewitness.dissectors.mqtt.lockstep.contents import Contents
from wirewitness.dissectors.mqtt.lockstep.handshakes import Handshakes
from wirewitness.dissectors.mqtt.lockstep.packets import (
    PINGREQ,
    PINGRESP,
    PUBACK,
    PUBLISH_0,
    PUBLISH_2,
    PUBREL,
    Packets,
)
from wirewitness.dissectors.mqtt.lockstep.pings import Pings
from wirewitness.dissectors.mqtt.lockstep.publish_columns import Landed
from wirewitness.dissectors.mqtt.packet_types import PUBACK as PUBACK_TYPE
from wirewitness.dissectors.mqtt.packet_types import PUBCOMP as PUBCOMP_TYPE
from wirewitness.dissectors.mqtt.reason_codes import reason_name
from wirewitness.dissectors.mqtt.subscriptions import Asked

_NS_PER_MS = 1e6
_NONE = Same(None)
# By kind of packet, in the order of `packets.py`.
_OPERATIONS = ("PUBLISH", "PUBLISH", "PUBLISH", "PUBACK", "PUBREC", "PUBREL", "PUBCOMP", "PINGREQ", "PINGRESP")
_REQUEST_KINDS = (PUBLISH_0 + 1, PUBLISH_2, PUBREL, PINGREQ)
_ROLES = tuple(
    "notification" if kind == PUBLISH_0 else "request" if kind in _REQUEST_KINDS else "response"
    for kind in range(len(_OPERATIONS))
)
# The name of code 0 by what carries it; by the first one those that carry none.
_REASONS = (None, reason_name(PUBACK_TYPE, 0, LEVEL_50), reason_name(PUBCOMP_TYPE, 0, LEVEL_50))
# message_expiry_s to payload_encoding.
_NO_TAIL = (_NONE,) * 9


class Placed(NamedTuple):
    """Rows of one table, and the frame at which each is due; these rise.

    counted: of rows that say how many messages were in flight, that column, and the PUBLISH packet of each, -1 for one
    before all frames.
    """

    block: Block
    due: Ints
    counted: tuple[Ints, Ints] | None = None


class Whose(NamedTuple):
    """Whose packets they are, by the number of the connection. five: is its level 5.0?"""

    five: Flags
    versions: Coded
    client_ids: Sequence[str | None]

    @classmethod
    def of(cls, connections: Sequence[Connection]) -> Whose:
        """Of these connections."""
        return cls(
            np.array([connection.level == LEVEL_50 for connection in connections], bool),
            Coded(np.arange(len(connections)), [connection.version for connection in connections]),
            [connection.client_id for connection in connections],
        )


class Told:
    """What is told of the packets that are taken."""

    def __init__(self, frames: Frames, packets: Packets, whose: Whose, contents: Contents, taken: Flags) -> None:
        self._frames, self._packets, self._contents, self._taken = frames, packets, contents, taken
        self._five, self._versions, self._client_ids = whose

    def messages(self) -> Placed:
        """Rows of `messages`, one for each packet."""
        frames, rows = self._frames, np.flatnonzero(self._taken)
        kind, identifier = self._packets.kind[rows], self._packets.identifier[rows]
        columns = (
            Numbers(frames.direction[rows]),
            Numbers(frames.offset[rows]),
            Numbers(frames.size[rows]),
            Numbers(frames.packet_first[rows]),
            Numbers(frames.packet_last[rows]),
            Numbers(frames.ts_ns[rows]),
            Coded(kind, _ROLES),
            Coded(kind, _OPERATIONS),
            self._version(frames.connection[rows]),
            Numbers(identifier, identifier > 0),
            self._client_id(frames.connection[rows]),
            Same(True),
            _NONE,
            self._contents.summaries(rows),
        )
        return Placed(Block(columns, len(rows)), rows)

    def exchanges(self, messages: Landed, pings: Pings) -> Placed:
        """Rows of `exchanges`: of messages that are over, and of pings that were answered."""
        frames = self._frames
        due = np.concatenate((messages.due, pings.response))
        order = np.argsort(due)
        due = due[order]
        answer = np.concatenate((messages.answer, pings.response))[order]
        ended_by = np.concatenate((messages.ended_by, pings.response))[order]
        answered = answer >= 0
        connection = frames.connection[due]

        def asked(of_messages: Ints, column: Ints, of_known: Callable[[Asked], int]) -> Numbers:
            of_pings = column[pings.request]
            for row, known in enumerate(pings.known):
                if known is not None:
                    of_pings[row] = of_known(known)
            return Numbers(np.concatenate((of_messages, of_pings))[order])

        def of_answer(column: Ints) -> Numbers:
            return Numbers(column[answer], answered)

        to_server = np.full(len(pings.response), CLIENT_TO_SERVER)
        columns = (
            Numbers(np.concatenate((messages.direction, to_server))[order]),
            asked(messages.offset, frames.offset, lambda known: known.offset),
            of_answer(frames.offset),
            asked(messages.packet, frames.packet_last, lambda known: known.packet),
            of_answer(frames.packet_last),
            asked(messages.ts_ns, frames.ts_ns, lambda known: known.ts_ns),
            of_answer(frames.ts_ns),
            Coded((self._packets.kind[due] == PINGRESP).astype(np.int64), ("PUBLISH", "PINGREQ")),
            self._version(connection),
            self._client_id(connection),
            Coded(answered.astype(np.int64), ("one_way", "ok")),
            Numbers(np.zeros(len(due), np.int64), answered),
            self._reason(ended_by),
            asked(messages.length, frames.size, lambda known: known.length),
            of_answer(frames.size),
            Same(False),
            _NONE,
        )
        return Placed(Block(columns, len(due)), due)

    def publishes(self, messages: Landed, found: Handshakes, in_flight: Ints) -> Placed:
        """Rows of `mqtt_publishes`, of messages that are over."""
        frames, answered = self._frames, messages.answered
        counted = messages.with_known(in_flight[messages.publish], lambda flight: flight.in_flight)
        columns = (
            Numbers(messages.direction),
            Numbers(messages.offset),
            _NONE,
            Numbers(messages.ts_ns),
            self._client_id(messages.connection),
            *self._head(messages, answered),
            Coded(answered.astype(np.int64), ("none", COMPLETE)),
            Numbers((frames.ts_ns[messages.answer] - messages.ts_ns) / _NS_PER_MS, answered),
            self._time(messages, found.puback, None),
            self._time(messages, found.pubrec, lambda flight: flight.ts_received),
            self._time(messages, found.pubrel, lambda flight: flight.ts_released),
            self._time(messages, found.pubcomp, None),
            Numbers(counted, answered),
            Numbers(np.zeros(len(messages), np.int64), answered & self._five[messages.connection]),
            self._reason(messages.ended_by),
            _NONE,
            self._version(messages.connection),
            *_NO_TAIL,
            Numbers(messages.packet),
            Numbers(frames.packet_last[messages.answer], answered),
        )
        return Placed(Block(columns, len(messages)), messages.due, (counted, messages.publish))

    def _head(self, messages: Landed, answered: Flags) -> tuple[Column, ...]:
        """topic to length_bytes."""
        contents, publishes = self._contents, self._contents.publishes
        row = contents.number[messages.publish]
        topics: list[str | None] = [topic for topic, _ in publishes.topics]
        topic = _at(publishes.topic, row)
        for place, flight in messages.known.items():
            topic[place] = len(topics)
            topics.append(_head_of(flight, 0))

        def column(values: Ints, position: int) -> Numbers:
            return Numbers(messages.with_known(values, lambda flight: _head_of(flight, position)))

        return (
            Coded(topic, topics),
            _NONE,
            column(_at(contents.qos, row), 2),
            column(_at(publishes.retain, row), 3),
            Same(False),
            Numbers(column(self._packets.identifier[messages.publish], 5).values, answered),
            column(_at(contents.payload_bytes, row), 6),
            column(_at(contents.crcs, row), 7),
            Coded(messages.with_known(_at(contents.kinds, row), _kind_of), PAYLOAD_KINDS),
            Numbers(messages.length),
        )

    def _time(self, messages: Landed, step: Ints, known: Callable[[Flight], int | None] | None) -> Numbers:
        """The time of a step, where it was made."""
        at = np.where(messages.handshake < 0, -1, _at(step, messages.handshake))
        values, valid = self._frames.ts_ns[at], at >= 0
        if known is not None:
            for row, flight in messages.known.items():
                made = known(flight)
                if not valid[row] and made is not None:
                    values[row], valid[row] = made, True
        return Numbers(values, valid)

    def _reason(self, ended_by: Ints) -> Coded:
        """The name of the code that ended a message, where it has one."""
        kind = self._packets.kind[ended_by]
        code = np.where(kind == PUBACK, 1, 2)
        without = (kind <= PUBLISH_2) | (kind >= PINGREQ) | ~self._five[self._frames.connection[ended_by]]
        return Coded(np.where(without, 0, code), _REASONS)

    def _version(self, connection: Ints) -> Coded:
        return Coded(self._versions.codes[connection], self._versions.values)

    def _client_id(self, connection: Ints) -> Coded:
        return Coded(connection, self._client_ids)


def _at(column: npt.NDArray[Any], row: Ints) -> npt.NDArray[Any]:
    """The values of these rows; any for -1, also where the column is empty."""
    return np.append(column, column.dtype.type(0))[row]


def _kind_of(flight: Flight) -> int:
    return PAYLOAD_KINDS.index(_head_of(flight, 8))


def _head_of(flight: Flight, position: int) -> Any:
    assert flight.head is not None
    return flight.head[position]
