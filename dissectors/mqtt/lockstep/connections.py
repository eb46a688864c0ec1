"""How many connections begin and end: CONNECT, CONNACK, and DISCONNECT if there is one.

In: frames of whole connections. Out: `Openings`. Most clients say the same but for their names: what a decoder
makes of one of a kind, `Kind`, holds for all of them, but for names, numbers and times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from wirewitness.dissectors.core.lockstep.complete_connections import frames_between
from wirewitness.dissectors.core.lockstep.frames import Flags, Frames, Ints
from wirewitness.dissectors.core.model import (
    CLIENT_TO_SERVER,
    EXCHANGE_FIELDS,
    MESSAGE_FIELDS,
    SERVER_TO_CLIENT,
    Frame,
    Row,
)
from wirewitness.dissectors.core.protocol import Sink
from wirewitness.dissectors.mqtt.connection import Connection
from wirewitness.dissectors.mqtt.packet_types import CONNACK, CONNECT, DISCONNECT
from wirewitness.dissectors.mqtt.text import string

# More kinds in a batch are more than there should be; connections of the others are read one by one.
MOST_KINDS = 256
_TABLES = ("messages", "exchanges", "mqtt_connections")
_GOODBYE = bytes((DISCONNECT << 4, 0))
# Protocol name and level of 3.1.1 and 5.0; flags and keep alive follow.
_HEADS = (b"\0\4MQTT\4", b"\0\4MQTT\5")
_HEAD_BYTES, _FIXED_BYTES = 7, 3
_NO_KIND = -1
_WORDS, _STATUS = MESSAGE_FIELDS.index("summary"), EXCHANGE_FIELDS.index("status")


class Opens(Protocol):
    """A decoder that has not begun; see `MqttConversation`."""

    def opened(self, frames: Sequence[Frame], out: Sink) -> Connection | None:
        """The first frames."""

    def whole(self, frames: Sequence[Frame], out: Sink) -> None:
        """All frames, or the last ones."""


class Kind(NamedTuple):
    """What one connection gave. connection: what is known of it behind CONNACK. rows: by table.

    words: the line for people of its CONNECT, behind the client's name.
    """

    connection: Connection
    rows: dict[str, list[Row]]
    words: str


class Openings(NamedTuple):
    """Connections that begin with CONNECT and CONNACK and go on in the ordinary course, at first sight.

    kind: the number of each one's kind in `kinds`, -1 for all others. client_ids: "" of those. goodbye: does its last
    frame, of the client, say so?
    """

    kind: Ints
    kinds: Sequence[Kind]
    client_ids: Sequence[str]
    goodbye: Flags


def openings(frames: Frames, may: Flags, begin: Callable[[], Opens]) -> Openings:
    """Of all connections. may: those that come into question; begin: makes a decoder."""
    count = len(may)
    kind, client_ids, goodbye = np.full(count, _NO_KIND), [""] * count, np.zeros(count, bool)
    known: dict[tuple[bytes, bytes, bytes, bool], int] = {}
    kinds: list[Kind] = []
    begins = frames.begins[may & (frames.ends - frames.begins >= 2)]
    begins = begins[_answers(frames, begins + 1)]
    numbers = frames.connection[begins]
    last = frames.ends[numbers] - 1
    goodbye[numbers] = (last > begins + 1) & _says_goodbye(frames, last)
    columns = (
        numbers,
        frames.start[begins],
        frames.end[begins],
        frames.start[begins + 1],
        frames.end[begins + 1],
        goodbye[numbers],
    )
    data = frames.data
    for number, start, end, answer, answer_end, ends in zip(*(one.tolist() for one in columns), strict=True):
        place = _client_id(data, start, end)
        if place is None:
            continue
        body, id_start, id_end = place
        client_id, problems = string(data[id_start:id_end])
        if problems:
            continue
        key = (data[body : id_start - 2], data[id_end:end], data[answer:answer_end], ends)
        code = known.get(key)
        if code is None:
            code = known[key] = _NO_KIND
            made = _kind(_frames(frames, number, ends), client_id, begin()) if len(known) <= MOST_KINDS else None
            if made is not None:
                code = known[key] = len(kinds)
                kinds.append(made)
        kind[number] = code
        client_ids[number] = client_id
    return Openings(kind, kinds, client_ids, goodbye)


def _answers(frames: Frames, places: Ints) -> Flags:
    """Which of these frames are CONNACK of the server?"""
    found: Flags = frames.octets_at(frames.start[places]) == CONNACK << 4
    found &= frames.direction[places] == SERVER_TO_CLIENT
    return found


def _says_goodbye(frames: Frames, places: Ints) -> Flags:
    """Which of these frames are the shortest DISCONNECT of the client?"""
    start = frames.start[places]
    found: Flags = (frames.direction[places] == CLIENT_TO_SERVER) & (frames.size[places] == len(_GOODBYE))
    for place, byte in enumerate(_GOODBYE):
        found &= frames.octets_at(start + place) == byte
    return found


def _client_id(data: bytes, start: int, end: int) -> tuple[int, int, int] | None:
    """Where the fields of a CONNECT begin, its client's name, and what is behind it; None for one that is unusual."""
    body = start + 2
    if data[start + 1] >= 0x80:
        body += 1
        if not 0 < data[start + 2] < 0x80:
            return None
    head = data[body : body + _HEAD_BYTES]
    if data[start] != CONNECT << 4 or head not in _HEADS:
        return None
    at = body + _HEAD_BYTES + _FIXED_BYTES
    if head == _HEADS[1]:
        at += 1 + data[at]
    id_start = at + 2
    id_end = id_start + (data[at] << 8 | data[at + 1])
    return (body, id_start, id_end) if id_start < id_end <= end else None


def _frames(frames: Frames, number: int, ends: bool) -> list[Frame]:
    """CONNECT and CONNACK of this connection, and its last frame if it `ends` with DISCONNECT."""
    begin, last = int(frames.begins[number]), int(frames.ends[number]) - 1
    found = frames_between(frames, begin, begin + 2)
    return [*found, *frames_between(frames, last, last + 1)] if ends else found


def _kind(frames: Sequence[Frame], client_id: str, decoder: Opens) -> Kind | None:
    """What a decoder makes of these frames; None if it remarks on anything, or if they mean more."""
    out = Sink((*_TABLES, "expert_infos", "mqtt_subscriptions", "mqtt_publishes"))
    connection = decoder.opened(frames[:2], out)
    if connection is None:
        return None
    decoder.whole(frames[2:], out)
    rows = out.tables()
    words, name = rows["messages"][0][_WORDS] or "", f"client_id={client_id}"
    told = [len(rows[table]) for table in rows] == [len(frames), len(frames) - 1, 1, 0, 0, 0]
    if not told or connection.client_id != client_id or not words.startswith(name):
        return None
    if rows["exchanges"][0][_STATUS] != "ok":
        return None
    return Kind(connection, {table: rows[table] for table in _TABLES}, words[len(name) :])
