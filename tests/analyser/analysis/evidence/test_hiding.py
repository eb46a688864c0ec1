"""Which bytes of a segment are overwritten, against counting byte by byte on a small circle of sequence numbers."""

from __future__ import annotations

import random

import pytest

from wirewitness.analyser.analysis.evidence import hiding
from wirewitness.analyser.analysis.evidence.hiding import Hidden

SMALL = 64


def spans(dice: random.Random, most: int) -> list[tuple[int, int]]:
    starts = [dice.randint(0, most) for _ in range(dice.randint(0, 6))]
    return [(start, start + dice.randint(0, 12)) for start in starts]


def bytes_in(found: list[tuple[int, int]]) -> list[int]:
    return [place for start, end in found for place in range(start, end)]


@pytest.mark.parametrize("most", [40, 150])
def test_as_if_counted(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(hiding, "CIRCLE", SMALL)
    for seed in range(300):
        dice = random.Random(seed)
        first, seen, secrets = dice.randint(0, SMALL - 1), spans(dice, most), spans(dice, most)
        inside = {place for start, end in seen for place in range(start, end)}
        end = max(inside, default=-1) + 1
        unseen = {place % SMALL for place in range(max(end, SMALL)) if place not in inside}
        secret = {place % SMALL for start, end in secrets for place in range(start, end)}
        hidden = Hidden(first, seen, secrets)
        for _ in range(20):
            seq, size = dice.randint(0, SMALL - 1), dice.randint(0, 20)
            places = [(seq - first + one) % SMALL for one in range(size)]
            expected = [at for at, place in enumerate(places) if place in unseen | secret]
            assert bytes_in(hidden.of_segment(seq, size)) == expected


def test_of_a_stream_that_nobody_saw_all_is_hidden() -> None:
    assert Hidden(None, [], []).of_segment(hiding.CIRCLE - 3, 10) == [(0, 3), (3, 10)]
