"""Conversations as bytes that can be broken: what each side says, piece by piece, in a form that any bytes have.

In: bytes. Out: what is sent (`said`), as packets (`packets`) or as turns of a flow (`turns`). The first byte holds
options; then come pieces: what happens, two bytes of length, payload. FRAMED writes a frame around the payload with a
right length, so that a changed body is still a frame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.support.packets import Captured
from wirewitness.dissectors.core.inspect import Asked

SAMPLES = Path(__file__).resolve().parents[2] / "sample_pcaps"
MAX_INPUT_BYTES = 4096
SEED_CONNECTIONS, SEED_STRETCHES, SEED_SEGMENTS = 12, 10, 8

FORCED, WITH_PAYLOAD, MID_STREAM, CARRIED, TOGETHER = 1, 2, 4, 8, 16
FROM_CLIENT, LOST, FRAMED, TWICE = 1, 2, 4, 8
PIECE_HEAD_BYTES = 3
_MOST_PIECE_BYTES = 0xFFFF


class Spoken(NamedTuple):
    """A protocol.

    framed: a frame around any body, with a right length; bare: the body of one whole frame, or None.
    asked: what `show` may know of a message. talk: the pieces of a made-up decoder, with broken fields.
    message: one made-up frame, and the place of what is known of it in `asked`.
    """

    protocol: str
    port: int
    samples: Sequence[str]
    framed: Callable[[bytes], bytes]
    bare: Callable[[bytes], bytes | None]
    asked: Sequence[Asked]
    talk: Callable[[Random], list[Piece]]
    message: Callable[[Random], tuple[int, bytes]]


class Piece(NamedTuple):
    """What happens, and the payload."""

    what: int
    payload: bytes


class Said(NamedTuple):
    """What one side sends at once. is_frame: it goes into one frame of a carrier."""

    from_client: bool
    payload: bytes
    is_lost: bool
    is_twice: bool
    is_frame: bool


def joined(options: int, pieces: Iterable[Piece]) -> bytes:
    """The bytes of a decoder."""
    parts = [bytes([options])]
    for what, payload in pieces:
        kept = payload[:_MOST_PIECE_BYTES]
        parts.append(bytes([what & 0xFF]) + len(kept).to_bytes(2, "big") + kept)
    return b"".join(parts)


def cut(data: bytes) -> list[Piece]:
    """The pieces of a decoder's bytes."""
    pieces, at = [], 1
    while at + PIECE_HEAD_BYTES <= len(data):
        length = int.from_bytes(data[at + 1 : at + 3], "big")
        pieces.append(Piece(data[at], data[at + PIECE_HEAD_BYTES :][:length]))
        at += PIECE_HEAD_BYTES + len(pieces[-1].payload)
    return pieces


def said(spoken: Spoken, data: bytes) -> Iterator[Said]:
    """What both sides send, one after the other; inside WebSocket where the options say so."""
    from tests.dissectors.carriers.test_upgrade import END, REQUEST, RESPONSE
    from tests.dissectors.carriers.test_websocket import MASK, frame

    options = data[0] if data else 0
    is_carried = bool(options & CARRIED)
    if is_carried and not options & MID_STREAM:
        yield Said(True, REQUEST + END, False, False, False)
        yield Said(False, RESPONSE + END, False, False, False)
    for what, payload in cut(data):
        from_client, is_frame = bool(what & FROM_CLIENT), bool(what & FRAMED)
        if is_frame:
            payload = spoken.framed(payload)
        if is_carried and is_frame:
            payload = frame(payload, mask=MASK if from_client else None)
        yield Said(from_client, payload, bool(what & LOST), bool(what & TWICE), is_frame)


def packets(spoken: Spoken, data: bytes) -> list[Captured]:
    """The decoder that DATA describes as packets; every DATA describes one."""
    from tests.support.wire import Talk

    talk, sent = Talk(server=("10.0.0.2", spoken.port)), [0, 0]
    if not (data and data[0] & MID_STREAM):
        talk.handshake()
    for from_client, payload, is_lost, is_twice, _ in said(spoken, data):
        for _ in range(0 if is_lost else 2 if is_twice else 1):
            talk.send(from_client, sent[from_client], payload[:65_000], ack=sent[not from_client])
        sent[from_client] += len(payload[:65_000])
    return talk.packets


def conversation_seeds(spoken: Spoken) -> Iterator[bytes]:
    """The beginnings of the lab's connections, each segment a piece."""
    for segments in _connections(spoken):
        for start in range(0, min(len(segments), SEED_STRETCHES * SEED_SEGMENTS), SEED_SEGMENTS):
            carried = CARRIED if start // SEED_SEGMENTS % 3 == 2 else 0
            pieces = [_piece(spoken, *segment) for segment in segments[start : start + SEED_SEGMENTS]]
            yield joined(FORCED | WITH_PAYLOAD | carried, pieces)[:MAX_INPUT_BYTES]


def message_seeds(spoken: Spoken) -> Iterator[bytes]:
    """The first segments of the lab's connections that are a message each; two bytes in front choose what is known."""
    for segments in _connections(spoken):
        whole = (payload for _, payload in segments if spoken.bare(payload) is not None)
        for number, payload in enumerate(islice(whole, SEED_STRETCHES)):
            yield (number.to_bytes(2, "big") + payload)[:MAX_INPUT_BYTES]


def _connections(spoken: Spoken) -> Iterator[list[tuple[bool, bytes]]]:
    """Whether the client sent it, and the payload of every segment."""
    from tests.support.lab_exchanges import lab_streams

    for name in spoken.samples:
        for to_server, to_client in islice(lab_streams(SAMPLES / f"{name}.pcapng", spoken.port), SEED_CONNECTIONS):
            sent = [(one.ts_ns, side, one.payload) for side, held in ((1, to_server), (0, to_client)) for one in held]
            yield [(bool(side), payload) for _, side, payload in sorted(sent) if payload]


def _piece(spoken: Spoken, from_client: bool, payload: bytes) -> Piece:
    body = spoken.bare(payload)
    what = FROM_CLIENT if from_client else 0
    return Piece(what, payload) if body is None else Piece(what | FRAMED, body)
