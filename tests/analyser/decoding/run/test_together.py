"""What decoders leave for later, so that it is decoded together, gives the tables of decoding it at once."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from tests.support.raw_rows import raw_tables_with_rows
from tests.support.replay import replay
from wirewitness.analyser.base.faults import CODE, FAULTS
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.capture import open_captures
from wirewitness.analyser.decoding.rows.fields import row_fields
from wirewitness.analyser.decoding.run.pipeline import Pipeline
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import Frame, Row
from wirewitness.dissectors.core.protocol import Cut, Dissector, Plausible, Sink
from wirewitness.dissectors.kafka import decoder as kafka_decoder
from wirewitness.dissectors.kafka.decoder import KafkaDecoder
from wirewitness.dissectors.kafka.dissector import KAFKA
from wirewitness.dissectors.kafka.lockstep import batch_decode as together_module
from wirewitness.dissectors.kafka.lockstep import groups
from wirewitness.dissectors.kafka.lockstep.groups import Group
from wirewitness.dissectors.registry import dissectors

KNOWN = dissectors(())
TABLES = list(row_fields(KNOWN))
NEVER = 1 << 62


def tables(path: Path, wanted: list[str] = TABLES, known: Mapping[str, Dissector] = KNOWN) -> dict[str, pa.Table]:
    """The raw tables of a capture that have rows."""
    store = Pipeline(known, wanted, ReadOptions()).run(open_captures([str(path)])).store
    return raw_tables_with_rows(store)


def going_on(path: Path, profile: str, packets: int) -> Path:
    """A replay whose connections do not end: what a connection left is decoded alone when it ends."""
    replay(path, profile, packets=packets)
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 9 // 10])
    return path


@pytest.mark.parametrize("profile", ["small", "lossy"])
def test_tables_are_those_of_one_by_one(profile: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = going_on(tmp_path / "replay.pcap", profile, 12_000)
    monkeypatch.setattr(groups, "LEAST", 4)
    read = list[int]()
    exchange_rows = together_module.exchange_rows

    def counted(group: Group, codes: list[int]) -> list[Row]:
        read.append(len(group))
        return exchange_rows(group, codes)

    monkeypatch.setattr(together_module, "exchange_rows", counted)
    together = tables(path)
    monkeypatch.setattr(kafka_decoder, "LEAST_FRAMES", NEVER)
    alone = tables(path)
    assert together.keys() == alone.keys()
    assert sum(read) > together["exchanges"].num_rows // 5
    assert [name for name in together if not together[name].equals(alone[name])] == []


def test_a_fault_in_reading_together_leaves_reading_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = going_on(tmp_path / "replay.pcap", "small", 8_000)
    wanted = ["exchanges", "expert_infos"]
    expected = tables(path, wanted)["exchanges"]

    def broken(*_: object) -> None:
        raise RuntimeError("secret of a stranger")

    monkeypatch.setenv(FAULTS, "")
    monkeypatch.setattr("wirewitness.dissectors.kafka.lockstep.batch_decode.together", broken)
    found = tables(path, wanted)
    assert found["exchanges"].equals(expected)
    (remark, *_) = found["expert_infos"].to_pylist()
    assert remark["code"] == CODE
    assert "RuntimeError" in remark["text"]
    assert "stranger" not in remark["text"]


# The header of a commit that some of the connections send in the middle.
MARK = struct.pack(">hhi", 8, 8, 40)


class BrokenFramer:
    """A framer with a fault, at the mark."""

    def __init__(self, direction: int, synchronised: bool, limits: Limits) -> None:
        self._right = KAFKA.framer(direction, synchronised, limits)
        self.lost = self._right.lost

    @property
    def synchronised(self) -> bool:
        return self._right.synchronised

    def feed(self, data: bytes, hints: Sequence[int], plausible: Plausible | None) -> Cut:
        if MARK in data:
            raise RuntimeError
        return self._right.feed(data, hints, plausible)


def test_frames_before_a_fault_are_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = going_on(tmp_path / "replay.pcap", "small", 12_000)
    monkeypatch.setenv(FAULTS, "")
    broken = {"kafka": replace(KAFKA, framer=BrokenFramer)}
    whole = tables(path)["exchanges"].num_rows
    together = tables(path, known=broken)
    assert 0 < together["exchanges"].num_rows < whole
    assert CODE in together["expert_infos"]["code"].to_pylist()
    monkeypatch.setattr(kafka_decoder, "LEAST_FRAMES", NEVER)
    alone = tables(path, known=broken)
    assert [name for name in together if not together[name].equals(alone[name])] == []
    feed = KafkaDecoder.feed

    def at_once(self: KafkaDecoder, frames: Sequence[Frame], out: Sink) -> None:
        out.later = None
        feed(self, frames, out)

    monkeypatch.setattr(KafkaDecoder, "feed", at_once)
    assert [name for name, table in tables(path, known=broken).items() if not table.equals(alone[name])] == []
