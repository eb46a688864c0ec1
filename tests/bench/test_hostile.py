"""Captures of irregular messages are identified, and lock-step is tried over them in vain."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.hostile import write_irregular
from tests.bench.irregular import IRREGULAR
from tests.support.mutated_captures import tables
from wirewitness.dissectors.core.batch_backoff import Trust

PACKETS = 4_000
BLOCK = 16 << 20


@pytest.mark.parametrize(
    "name", ["kafka: a byte too many", "mqtt: sent again", "mongo: keys of its own, new connections"]
)
def test_lock_step_is_tried_in_vain(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, told = tmp_path / "hostile.pcap", Trust.told
    tried = {True: 0, False: 0}

    def counted(self: Trust, frames: int, *, in_vain: bool) -> None:
        tried[in_vain] += frames
        told(self, frames, in_vain=in_vain)

    monkeypatch.setattr(Trust, "told", counted)
    made = write_irregular(path, IRREGULAR[name], PACKETS)
    found = tables(path, BLOCK)
    assert set(found["flows"]["protocol"].to_pylist()) == {IRREGULAR[name].protocol}
    assert found["messages"].num_rows > 0.9 * PACKETS
    assert made.packets >= PACKETS
    assert tried[True] > 0.9 * PACKETS
    assert not tried[False]
