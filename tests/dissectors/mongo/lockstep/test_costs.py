"""What is made to differ everywhere is not compared for ever."""

from __future__ import annotations

import bson
import numpy as np
import pytest

from wirewitness.dissectors.core.lockstep.frames import SLACK, Flags, Ints
from wirewitness.dissectors.mongo.bson_fields import DOCUMENT
from wirewitness.dissectors.mongo.lockstep import layouts as layouts_module
from wirewitness.dissectors.mongo.lockstep import same_values as alike_module
from wirewitness.dissectors.mongo.lockstep.buffer import Buffer
from wirewitness.dissectors.mongo.lockstep.layouts import Values, layouts
from wirewitness.dissectors.mongo.lockstep.literals import none
from wirewitness.dissectors.mongo.lockstep.same_values import alike

NEVER = 1 << 40


class Counting(Buffer):
    """Counts the places that were compared, and the bytes that were taken to be."""

    compared = taken = 0

    def equal(self, at: Ints, expected: bytes) -> Flags:
        self.compared += len(at)
        return super().equal(at, expected)

    def table(self, at: Ints, size: int) -> np.ndarray:
        self.taken += len(at) * size
        return super().table(at, size)


def placed(parts: list[bytes]) -> tuple[Counting, Values]:
    ends = np.cumsum([len(part) for part in parts])
    return Counting(b"".join(parts) + bytes(SLACK)), Values(DOCUMENT, ends - [len(part) for part in parts], ends)


def decoys() -> list[bytes]:
    """Documents of 38 keys, and at each key 40 others that differ from there on."""
    keys = [f"key{number}" for number in range(38)]
    found = [
        bson.encode({**dict.fromkeys(keys[:number], 1), f"other{other}": 1})
        for number in range(len(keys))
        for other in range(40)
    ]
    return found + [bson.encode(dict.fromkeys(keys, 1))] * 500


def test_documents_are_compared_so_often_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = decoys()
    compared = []
    for most in (layouts_module.MAX_COMPARED, NEVER):
        monkeypatch.setattr(layouts_module, "MAX_COMPARED", most)
        buffer, where = placed(parts)
        layouts(buffer, where.start, where.end, (), 20)
        compared.append(buffer.compared // len(parts))
    bounded, free = compared
    assert bounded <= layouts_module.MAX_BRANCHES + 128 < free


def test_values_are_compared_so_often_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [b"%064d" % (number // 8) for number in range(8000)]
    taken = []
    for most in (64, NEVER):
        monkeypatch.setattr(alike_module, "_MAX_COMPARED", most)
        buffer, where = placed(parts)
        codes, firsts = alike(buffer, where, none)
        assert len(firsts) >= 1000
        assert all(parts[firsts[code]] == part for code, part in zip(codes.tolist(), parts, strict=True))
        taken.append(buffer.taken // len(buffer.data))
    bounded, free = taken
    assert bounded <= 65 < free
