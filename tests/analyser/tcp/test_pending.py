"""Segments that wait for earlier ones cost what they take, and no more the more of them wait."""

from __future__ import annotations

import random

from wirewitness.analyser.tcp.streams import PENDING_BYTES, Half
from wirewitness.dissectors.core.limits import Limits


def half() -> Half:
    made = Half()
    made.start(1000)
    return made


def test_what_waits_is_counted_with_what_its_object_takes() -> None:
    one = half()
    for number in range(100):
        one.segment(1010 + 2 * number, memoryview(b"x"), 1, number, number)
    assert one.pending_bytes == 100 * (1 + PENDING_BYTES)
    one.give_up(200, 200)
    assert (one.pending_bytes, one.pending) == (0, [])


def test_small_segments_reach_the_limit_long_before_their_bytes_do() -> None:
    one, limits = half(), Limits(max_pending_bytes=64 * 1024)
    for number in range(1000):
        one.segment(1010 + 2 * number, memoryview(b"x"), 1, number, number)
        one.after_packet(number, number, limits)
        assert one.pending_bytes <= limits.max_pending_bytes + PENDING_BYTES + 1
    assert any(note.code == "pending_bytes" for note in one.notes or ())


def test_any_order_gives_the_same_stream() -> None:
    dice = random.Random(7)
    stream = dice.randbytes(600)
    for _ in range(200):
        one = half()
        pieces = [(at, dice.randrange(7, 40)) for at in range(0, 600, 7)] + [(590, 10)]
        dice.shuffle(pieces)
        for number, (at, size) in enumerate(pieces):
            data = stream[at : at + size]
            one.segment(1000 + at, memoryview(data), len(data), number, number)
        assert b"".join(bytes(part) for run in one.take() for part in run.pieces) == stream
        assert one.pending_bytes == 0
        assert not one.notes or {note.code for note in one.notes} <= {"retransmission"}
