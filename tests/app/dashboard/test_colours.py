"""Colours that stand beside each other are told apart by people with any of the common colour vision deficiencies.

Simulation: Machado, Oliveira and Fernandes (2009), severity 1, in linear RGB. Difference: CIE 1976, in L*a*b* (D65).
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest

from wirewitness.app.dashboard.charts.mqtt import END_COLOURS
from wirewitness.app.dashboard.charts.theme import BAD, PALETTE, PROTOCOL, QUIET
from wirewitness.dissectors.registry import PROTOCOLS

Vector = npt.NDArray[np.float64]

VISIONS = {
    "usual": np.eye(3),
    "protanopia": np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
                            [-0.003882, -0.048116, 1.051998]]),
    "deuteranopia": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                              [-0.011820, 0.042940, 0.968881]]),
    "tritanopia": np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
                            [0.004733, 0.691367, 0.303900]]),
}  # fmt: skip
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
WHITE = np.array([0.9505, 1.0, 1.089])
# Some five times what is just noticed when both lie side by side.
LEAST = 12.0
PAGES = ("#ffffff", "#181715")


def linear(colour: str) -> Vector:
    parts = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def lab(rgb: Vector) -> Vector:
    xyz = TO_XYZ @ np.clip(rgb, 0, 1) / WHITE
    root = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * root[1] - 16, 500 * (root[0] - root[1]), 200 * (root[1] - root[2])])


def difference(one: str, other: str, vision: str) -> float:
    seen = [lab(VISIONS[vision] @ linear(colour)) for colour in (one, other)]
    return float(np.linalg.norm(seen[0] - seen[1]))


SETS = {
    "palette": PALETTE,
    "protocols": tuple(PROTOCOL[name] for name in PROTOCOLS),
    "ends of connections": tuple(END_COLOURS.values()),
    "errors and missing answers": (BAD, QUIET),
}


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("name", SETS)
def test_colours_are_told_apart(name: str, vision: str) -> None:
    alike = [
        (one, other, round(difference(one, other, vision), 1))
        for one, other in combinations(SETS[name], 2)
        if difference(one, other, vision) < LEAST
    ]
    assert alike == []


@pytest.mark.parametrize("page", PAGES)
def test_colours_stand_out_on_the_page(page: str) -> None:
    ground = float(linear(page) @ TO_XYZ[1])
    for colour in (*PALETTE, *END_COLOURS.values()):
        own = float(linear(colour) @ TO_XYZ[1])
        low, high = sorted((ground, own))
        assert (high + 0.05) / (low + 0.05) >= 1.9, colour


def test_the_check_sees_colours_that_look_alike() -> None:
    """Orange and olive, which differ for most people only."""
    assert difference("#e07b00", "#b59a00", "usual") > LEAST
    assert difference("#e07b00", "#b59a00", "deuteranopia") < LEAST
