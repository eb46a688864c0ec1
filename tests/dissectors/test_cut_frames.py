"""Frames as columns are the same sequence as a list of them."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np

from wirewitness.dissectors.core.deferred import DeferredFrames, Later
from wirewitness.dissectors.core.lockstep.cut_frames import CutFrames, in_one, joined
from wirewitness.dissectors.core.lockstep.frames import in_columns
from wirewitness.dissectors.core.model import Frame
from wirewitness.dissectors.core.protocol import Sink

DICE = random.Random(11)
BUFFERS = [DICE.randbytes(500) for _ in range(3)]


def frames_of(count: int) -> list[Frame]:
    frames = []
    for _ in range(count):
        start = DICE.randrange(400)
        end = start + DICE.randrange(1, 100)
        numbers = [DICE.randrange(1 << 50) for _ in range(4)]
        complete = DICE.random() < 0.9
        frames.append(Frame(DICE.randrange(9), DICE.randrange(2), DICE.choice(BUFFERS), start, end, *numbers, complete))
    return frames


def test_columns_are_a_sequence_of_frames() -> None:
    frames = frames_of(100)
    cut = CutFrames.of(frames)
    assert list(cut) == frames
    assert [type(frame.complete) for frame in cut] == [bool] * 100
    assert (len(cut), cut[3], cut[-1]) == (100, frames[3], frames[-1])
    assert list(cut[7:90]) == frames[7:90]
    assert list(cut[-2:]) == frames[-2:]
    assert list(cut.taken([5, 5, 1])) == [frames[5], frames[5], frames[1]]
    assert cut.size_bytes == sum(frame.size for frame in frames)
    assert cut.first_octets().tolist() == [frame.data[frame.start] for frame in frames]
    assert list(cut.in_order()) == sorted(frames, key=lambda frame: frame.order)


def test_parts_follow_each_other() -> None:
    parts = [frames_of(count) for count in (5, 1, 8)]
    whole = [frame for part in parts for frame in part]
    assert list(in_one([CutFrames.of(part) for part in parts])) == whole
    assert isinstance(joined([CutFrames.of(part) for part in parts]), CutFrames)
    assert joined([CutFrames.of(parts[0]), *parts[1:]]) == whole
    assert joined([parts[0], CutFrames.of(parts[1]), parts[2]]) == whole


def test_frames_of_connections_are_the_same_from_columns_and_lists() -> None:
    connections = [frames_of(count) for count in (40, 1, 0, 70)]
    mixed: list[Sequence[Frame]] = [CutFrames.of(connections[0])[3:], *connections[1:3], CutFrames.of(connections[3])]
    from_lists, from_columns = in_columns([connections[0][3:], *connections[1:]]), in_columns(mixed)
    for name in from_lists._fields:
        one, other = getattr(from_lists, name), getattr(from_columns, name)
        if name not in ("data", "octets", "start", "end"):
            np.testing.assert_array_equal(one, other, name)
    told = [
        [found.data[a:z] for a, z in zip(found.start.tolist(), found.end.tolist(), strict=True)]
        for found in (from_lists, from_columns)
    ]
    assert told[0] == told[1] == [frame.data[frame.start : frame.end] for part in mixed for frame in part]


class _Waits:
    @staticmethod
    def read_together(decoders: Sequence[object], out: object) -> None:
        raise AssertionError

    def settle(self, out: object) -> None:
        raise AssertionError


def test_frames_are_left_in_any_form() -> None:
    out = Sink([])
    out.later = Later()
    left: DeferredFrames[object] = DeferredFrames()
    parts = [frames_of(count) for count in (100, 3, 2, 70, 5)]
    for number, part in enumerate(parts):
        left.leave(_Waits(), part if number == 1 else CutFrames.of(part), out)
    whole = [frame for part in parts for frame in part]
    assert left.count == out.later.frames == len(whole)
    assert list(left.in_columns()) == whole
    assert list(left.frames) == whole
    taken, _ = left.take()
    assert list(taken) == whole
    assert (left.count, left.frames) == (0, [])
