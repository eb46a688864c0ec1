"""Breaking bytes: what any level does to an input, without knowing what it means, and what decoders do to pieces.

In: bytes and dice. Out: other bytes. The same dice give the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from tests.fuzz.pieces import FRAMED, FROM_CLIENT, LOST, TWICE, Piece, Spoken, cut, joined

Mutator = Callable[[bytes, Random], bytes]

# Values at which sizes, counts and numbers turn over.
EDGES = [0, 1, -1, 2, 127, 128, 255, 256, 32767, 32768, 65535, 65536, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, -(2**31)]
_WORDS = [
    b"\x00",
    b"\xff",
    b"\x80",
    b"\x7f",
    b"\xc3\x28",
    b"\xed\xa0\x80",
    b"\x1b[2J",
    "\u202e".encode(),
    b"://u:p@",
    b"NaN",
]
MOST_PIECES = 64


def broken(data: bytes, dice: Random) -> bytes:
    """One to four small damages."""
    changed = bytearray(data)
    for _ in range(dice.choice([1, 1, 1, 2, 4])):
        dice.choice(_DAMAGES)(changed, dice)
    return bytes(changed)


def _flip(data: bytearray, dice: Random) -> None:
    if data:
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)


def _set(data: bytearray, dice: Random) -> None:
    if data:
        data[dice.randrange(len(data))] = dice.choice([0, 1, 0x7F, 0x80, 0xFF, dice.randrange(256)])


def _number(data: bytearray, dice: Random) -> None:
    width = dice.choice([1, 2, 4, 4, 8])
    if len(data) >= width:
        at = dice.randrange(len(data) - width + 1)
        value = dice.choice(EDGES) if dice.random() < 0.7 else len(data) - at + dice.randrange(-4, 5)
        data[at : at + width] = (value % (1 << 8 * width)).to_bytes(width, dice.choice(["big", "little"]))


def _insert(data: bytearray, dice: Random) -> None:
    at = dice.randrange(len(data) + 1)
    data[at:at] = dice.choice(_WORDS) if dice.random() < 0.6 else dice.randbytes(dice.choice([1, 2, 4, 16]))


def _delete(data: bytearray, dice: Random) -> None:
    at = dice.randrange(len(data) + 1)
    del data[at : at + dice.choice([1, 2, 4, 8, 64])]


def _copy(data: bytearray, dice: Random) -> None:
    start = dice.randrange(len(data) + 1)
    part = data[start : start + dice.choice([1, 4, 16, 64])] * dice.choice([1, 1, 2, 8])
    at = dice.randrange(len(data) + 1)
    data[at:at] = part


def _cut_off(data: bytearray, dice: Random) -> None:
    del data[dice.randrange(len(data) + 1) :]


_DAMAGES = [_flip, _set, _set, _number, _number, _insert, _delete, _copy, _cut_off]


def broken_talk(spoken: Spoken, seeds: Callable[[], Sequence[bytes]]) -> Mutator:
    """Damage of a decoder: its pieces in another order, lost, cut, broken, with others or made-up ones between."""

    def change(data: bytes, dice: Random) -> bytes:
        options, pieces = (data[0] if data else 0), cut(data)
        if dice.random() < 0.25 or not pieces:
            pieces = spoken.talk(dice)
        for _ in range(dice.choice([0, 1, 1, 2, 3])):
            _change_pieces(pieces, spoken, seeds(), dice)
        if dice.random() < 0.2:
            options ^= 1 << dice.randrange(5)
        return joined(options, pieces[:MOST_PIECES])

    return change


def _change_pieces(pieces: list[Piece], spoken: Spoken, others: Sequence[bytes], dice: Random) -> None:
    if not pieces:
        return
    at = dice.randrange(len(pieces))
    what, payload = pieces[at]
    match dice.randrange(10):
        case 0:
            pieces.insert(dice.randrange(len(pieces)), pieces.pop(at))
        case 1:
            pieces[at:at] = pieces[at : at + dice.choice([1, 2, 4])]
        case 2:
            del pieces[at]
        case 3:
            pieces[at] = Piece(what ^ dice.choice([FROM_CLIENT, LOST, FRAMED, TWICE]), payload)
        case 4:
            whole = spoken.framed(payload) if what & FRAMED else payload
            edge = dice.randrange(len(whole) + 1)
            bare = what & ~FRAMED
            pieces[at : at + 1] = [Piece(bare, whole[:edge]), Piece(bare, whole[edge:])]
        case 5:
            pieces[at:at] = cut(dice.choice(others))[: dice.choice([1, 4])] if others else []
        case 6:
            pieces[at:at] = spoken.talk(dice)
        case _:
            pieces[at] = Piece(what, broken(payload, dice))


def repeated(data: bytes, dice: Random, most_bytes: int) -> bytes:
    """A decoder of which some pieces come again and again, or a piece of which a part does, up to MOST_BYTES."""
    pieces = cut(data)
    if not pieces:
        return data
    at = dice.randrange(len(pieces))
    part = pieces[at : at + dice.choice([1, 1, 2, 4])]
    if dice.random() < 0.5:
        what, payload = pieces[at]
        start = dice.randrange(len(payload) + 1)
        unit = payload[start : start + dice.choice([1, 2, 4, 8, 16, 64])]
        times = min(most_bytes, 60_000) // max(len(unit), 1)
        part = [Piece(what, payload[:start] + unit * times + payload[start:])]
    size = sum(len(piece.payload) + 60 for piece in part)
    return joined(data[0], [*pieces[:at], *(part * max(1, most_bytes // size)), *pieces[at + 1 :]])
