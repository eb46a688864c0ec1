"""Many frames come as columns, few as objects: both say the same."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from wirewitness.analyser.decoding.framed import framed
from wirewitness.analyser.decoding.readable import as_readable, begun_at, behind, readable_before
from wirewitness.analyser.tcp.chunks import Segments
from wirewitness.dissectors.core.lockstep.cut_frames import MANY, CutFrames
from wirewitness.dissectors.core.model import Frame
from wirewitness.dissectors.core.protocol import Cut

DATA = bytes(range(256)) * 40


def cut_of(dice: random.Random, count: int) -> Cut:
    edges = sorted(dice.sample(range(1, len(DATA)), 2 * count))
    return Cut(edges[::2], [edge + dice.randrange(2) for edge in edges[1::2]], edges[-1], 0, [])


def segments_of(dice: random.Random, count: int, *, rising: bool) -> Segments:
    positions = [dice.choice((0, -3)), *sorted(dice.sample(range(1, len(DATA)), count - 1))]
    packets = [dice.randrange(count) for _ in positions]
    order = sorted(dice.randrange(count) for _ in positions)
    packets = sorted(packets) if rising else packets
    return Segments(positions, packets, [packet * 10 for packet in packets], order)


@pytest.mark.parametrize("rising", [True, False])
@pytest.mark.parametrize("seed", range(10))
def test_many_frames_have_the_packets_of_few(seed: int, rising: bool) -> None:
    dice = random.Random(seed)
    cut, segments = cut_of(dice, MANY + 9), segments_of(dice, dice.choice((2, 60, 900)), rising=rising)
    many = framed(1, DATA, 77, cut, segments)
    assert isinstance(many, CutFrames) is rising
    few = [
        frame
        for start, end in zip(cut.starts, cut.ends, strict=True)
        for frame in framed(1, DATA, 77, cut._replace(starts=[start], ends=[end]), segments)
    ]
    assert list(many) == few


def _side(direction: int, count: int) -> list[Frame]:
    dice = random.Random(direction)
    orders = sorted(dice.randrange(30) for _ in range(count))
    return [Frame(order, direction, DATA, at, at + 5, at, at, at, at, True) for at, order in enumerate(orders)]


@pytest.mark.parametrize("as_columns", [(), (0,), (1,), (0, 1)])
def test_both_directions_become_readable_in_order(as_columns: Sequence[int]) -> None:
    lists = [_side(0, 40), _side(1, 30)]
    sides = [CutFrames.of(frames) if side in as_columns else frames for side, frames in enumerate(lists)]
    wanted = sorted(lists[0] + lists[1], key=lambda frame: frame.order)
    both = as_readable(*sides)
    assert list(both) == wanted
    assert list(as_readable(sides[0], [])) == lists[0]
    for order in range(32):
        assert [readable_before(side, order) for side in sides] == [
            sum(frame.order < order for frame in side) for side in lists
        ]
    where = begun_at(both, [{7, 99}, {7, 0}])
    assert [(wanted[at].direction, wanted[at].stream_offset) for at, _, _ in where] == [
        (direction, offset) for _, direction, offset in where
    ]
    assert sorted((direction, offset) for _, direction, offset in where) == [(0, 7), (1, 0), (1, 7)]
    assert where == sorted(where)
    assert list(behind(sides[0], sides[1])) == _side(0, 40) + lists[1]


@pytest.mark.parametrize(("held", "more"), [(300, 300), (300, 1), (1, 300), (3, 2)])
@pytest.mark.parametrize("as_columns", [(), (0,), (1,), (0, 1)])
def test_frames_stand_behind_each_other(held: int, more: int, as_columns: Sequence[int]) -> None:
    parts = [_side(0, held), _side(1, more)]
    wanted = parts[0] + parts[1]
    assert list(behind(*(CutFrames.of(part) if at in as_columns else part for at, part in enumerate(parts)))) == wanted


def test_single_frames_behind_many_columns_do_not_copy_them_each() -> None:
    frames = behind(CutFrames.of(_side(0, 300)), _side(1, 1))
    assert behind(frames, _side(1, 1)) is frames
    assert len(frames) == 302
