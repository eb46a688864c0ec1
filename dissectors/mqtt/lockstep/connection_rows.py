"""Rows of CONNECT, CONNACK and DISCONNECT of many connections, and of the connections themselves.

In: `Openings`. Out: for each table rows in columns, and the frame at which each is due. What all of a kind have in
common is taken from the rows that a decoder made of one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from wirewitness.dissectors.core.blocks import Block, Coded, Column, Numbers, Same
from wirewitness.dissectors.core.lockstep.column_ops import joined, rows_of
from wirewitness.dissectors.core.lockstep.frames import Frames, Ints
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, EXCHANGE_FIELDS, MESSAGE_FIELDS, Row
from wirewitness.dissectors.mqtt.levels import LEVEL_50
from wirewitness.dissectors.mqtt.lockstep.connections import Openings
from wirewitness.dissectors.mqtt.lockstep.packets import PINGREQ, PUBLISH_1, PUBLISH_2
from wirewitness.dissectors.mqtt.lockstep.rows import Placed, Whose
from wirewitness.dissectors.mqtt.rows import CONNECTIONS

_NS_PER_MS = 1e6


def ordered(parts: Sequence[Placed]) -> Placed:
    """The rows of all parts in the order in which they are due."""
    parts = [part for part in parts if len(part.due)] or parts[:1]
    due = np.concatenate([part.due for part in parts])
    order = np.argsort(due, kind="stable")
    return Placed(rows_of(joined([part.block for part in parts]), order), due[order])


class OpenedRows:
    """numbers: of the connections whose rows are made, rising."""

    def __init__(self, frames: Frames, opened: Openings, numbers: Ints) -> None:
        self._frames, self._opened, self._numbers = frames, opened, numbers
        self._begins, self._lasts = frames.begins[numbers], frames.ends[numbers] - 1
        self._goodbye = opened.goodbye[numbers]

    def whose(self) -> Whose:
        """Level and client of every connection; any of those whose rows are not made."""
        kind, connections = self._opened.kind, [kind.connection for kind in self._opened.kinds]
        five = np.array([one.level == LEVEL_50 for one in connections], bool)[kind]
        return Whose(
            five, Coded(kind % len(connections), [one.version for one in connections]), self._opened.client_ids
        )

    def messages(self) -> Iterator[Placed]:
        """Of CONNECT, CONNACK and DISCONNECT."""
        ids, words = self._opened.client_ids, [kind.words for kind in self._opened.kinds]
        kinds = self._opened.kind[self._numbers].tolist()
        lines = [f"client_id={ids[one]}{words[kind]}" for one, kind in zip(self._numbers.tolist(), kinds, strict=True)]
        yield self._messages(0, self._numbers, self._begins, {"summary": Coded(np.arange(len(lines)), lines)})
        yield self._messages(1, self._numbers, self._begins + 1, {})
        yield self._messages(2, self._numbers[self._goodbye], self._lasts[self._goodbye], {})

    def exchanges(self) -> Iterator[Placed]:
        """Of CONNECT with CONNACK, and of DISCONNECT."""
        frames, asked = self._frames, self._begins
        answer = {
            "response_offset": Numbers(frames.offset[asked + 1]),
            "response_packet": Numbers(frames.packet_last[asked + 1]),
            "ts_response": Numbers(frames.ts_ns[asked + 1]),
            "response_bytes": Numbers(frames.size[asked + 1]),
        }
        yield self._exchanges(0, self._numbers, asked, asked + 1, answer)
        last = self._lasts[self._goodbye]
        yield self._exchanges(1, self._numbers[self._goodbye], last, last, {})

    def connections(self, kind: Ints, in_flight: Ints) -> Placed:
        """Rows of `mqtt_connections`. kind, in_flight: of the packets, see `Packets` and `handshakes.in_flight`."""
        frames, numbers = self._frames, self._numbers
        side = frames.connection * 2 + frames.direction
        sides = 2 * len(frames.begins)
        acknowledged = (kind == PUBLISH_1) | (kind == PUBLISH_2)
        most = np.zeros(sides, np.int64)
        np.maximum.at(most, side[acknowledged], in_flight[acknowledged])
        last = np.zeros(sides, np.int64)
        last[side] = np.arange(len(frames))  # of several the last one stays
        mine, other = last[2 * numbers], last[2 * numbers + 1]
        columns: dict[str, Column] = {
            **_of_sides("messages", np.bincount(side, minlength=sides), numbers, "{side}_{name}"),
            **_of_sides("publishes", np.bincount(side[kind <= PUBLISH_2], minlength=sides), numbers),
            **_of_sides("max_in_flight", most, numbers),
            **self._silence(),
            "request_offset": Numbers(frames.offset[self._begins]),
            "response_offset": Numbers(frames.offset[self._begins + 1]),
            "ts": Numbers(frames.ts_ns[self._begins]),
            "ts_response": Numbers(frames.ts_ns[self._begins + 1]),
            "packet": Numbers(frames.packet_last[self._begins]),
            "response_packet": Numbers(frames.packet_last[self._begins + 1]),
            "ts_end": Numbers(np.maximum(frames.ts_ns[mine], frames.ts_ns[other])),
            "ts_last_from_client": Numbers(frames.ts_ns[mine]),
            "last_client_packet": Numbers(frames.packet_last[mine]),
            "ts_disconnect": Numbers(frames.ts_ns[self._lasts], self._goodbye),
            "disconnect_packet": Numbers(frames.packet_last[self._lasts], self._goodbye),
            "pings": Numbers(np.bincount(frames.connection[kind == PINGREQ], minlength=len(frames.begins))[numbers]),
        }
        return Placed(self._block(CONNECTIONS.names, "mqtt_connections", 0, numbers, columns), self._lasts)

    def _silence(self) -> dict[str, Column]:
        """The longest time between two messages of the client that follow each other: the first one of the longest."""
        frames = self._frames
        rows = np.flatnonzero(frames.direction == CLIENT_TO_SERVER)
        owner = frames.connection[rows]
        same = np.flatnonzero(owner[1:] == owner[:-1])
        gap, owner = frames.ts_ns[rows[same + 1]] - frames.ts_ns[rows[same]], owner[same]
        longest = np.full(len(frames.begins), -1)
        np.maximum.at(longest, owner, gap)
        since = np.zeros(len(frames.begins), np.int64)
        found = np.flatnonzero(gap == longest[owner])[::-1]
        since[owner[found]] = rows[same[found]]  # of several the first one stays
        longest, since = longest[self._numbers], since[self._numbers]
        there = longest >= 0
        return {
            "client_silence_ms": Numbers(longest / _NS_PER_MS, there),
            "client_silence_from": Numbers(frames.ts_ns[since], there),
            "client_silence_packet": Numbers(frames.packet_last[since], there),
        }

    def _messages(self, number: int, owners: Ints, at: Ints, more: Mapping[str, Column]) -> Placed:
        frames = self._frames
        columns: dict[str, Column] = {
            "stream_offset": Numbers(frames.offset[at]),
            "length_bytes": Numbers(frames.size[at]),
            "packet_first": Numbers(frames.packet_first[at]),
            "packet_last": Numbers(frames.packet_last[at]),
            "ts": Numbers(frames.ts_ns[at]),
            **more,
        }
        return Placed(self._block(MESSAGE_FIELDS, "messages", number, owners, columns), at)

    def _exchanges(self, number: int, owners: Ints, at: Ints, due: Ints, more: Mapping[str, Column]) -> Placed:
        frames = self._frames
        columns: dict[str, Column] = {
            "request_offset": Numbers(frames.offset[at]),
            "request_packet": Numbers(frames.packet_last[at]),
            "ts": Numbers(frames.ts_ns[at]),
            "request_bytes": Numbers(frames.size[at]),
            **more,
        }
        return Placed(self._block(EXCHANGE_FIELDS, "exchanges", number, owners, columns), due)

    def _block(
        self, names: Sequence[str], table: str, number: int, owners: Ints, columns: Mapping[str, Column]
    ) -> Block:
        """Rows as the one with this number of each kind, but for `columns` and the client's name."""
        kinds: list[Row | None] = [
            kind.rows[table][number] if number < len(kind.rows[table]) else None for kind in self._opened.kinds
        ]
        client = Coded(owners, self._opened.client_ids)
        made = {**columns, "client_id": client}
        codes = self._opened.kind[owners]
        return Block([made.get(name) or _common(kinds, place, codes) for place, name in enumerate(names)], len(owners))


def _common(rows: Sequence[Row | None], place: int, codes: Ints) -> Column:
    """A field of the rows of all kinds. Kinds of which there is no row are none of these."""
    values: list[Any] = [None if row is None else row[place] for row in rows]
    used = {values[row] for row in np.unique(codes).tolist()}
    return Same(used.pop()) if len(used) == 1 else Coded(codes, values)


def _of_sides(name: str, counts: Ints, numbers: Ints, form: str = "{name}_from_{side}") -> dict[str, Column]:
    return {
        form.format(name=name, side=side): Numbers(counts[2 * numbers + place])
        for place, side in enumerate(("client", "server"))
    }
