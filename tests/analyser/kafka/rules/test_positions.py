"""What is asked of many stretches of a client's positions at once is what is asked of each."""

from __future__ import annotations

from array import array
from random import Random

import numpy as np
import pytest

from wirewitness.analyser.kafka.rules.positions import Positions, Reads

CLIENT = ("10.0.0.1", "reader")


def drawn(dice: Random, most: int) -> Positions:
    times = sorted(dice.randrange(20) for _ in range(dice.randrange(most)))
    return Positions(array("q", times), array("q", [dice.randrange(6) for _ in times]))


@pytest.mark.parametrize("seed", range(20))
def test_many_at_once(seed: int) -> None:
    dice = Random(seed)
    reads = Reads({CLIENT: drawn(dice, 40)} if seed % 5 else {}, {CLIENT: drawn(dice, 10)} if seed % 3 else {})
    asked = [(dice.randrange(-1, 21), dice.randrange(-1, 21), dice.randrange(7)) for _ in range(200)]
    after, before, offsets = (np.array(column) for column in zip(*asked, strict=True))
    assert reads.turned_back(CLIENT, after, before, offsets).tolist() == [
        reads.went_back(CLIENT, *one) for one in asked
    ]
    held = reads.fetches.get(CLIENT, Positions(array("q"), array("q")))
    assert reads.lowest(CLIENT, after, before, offsets).tolist() == [
        min([*held.between(first, last), offset]) for first, last, offset in asked
    ]
