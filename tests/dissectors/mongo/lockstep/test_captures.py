"""Whole captures of MongoDB: what is read together gives the tables of reading it one by one."""

from __future__ import annotations

import struct
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from tests.support.raw_rows import raw_tables_with_rows
from tests.support.replay import replay
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.capture import open_captures
from wirewitness.analyser.decoding.rows.fields import row_fields
from wirewitness.analyser.decoding.run.pipeline import Pipeline
from wirewitness.dissectors.mongo import decoder as mongo_decoder
from wirewitness.dissectors.mongo.lockstep import batch_decode
from wirewitness.dissectors.registry import dissectors

KNOWN = dissectors(())
TABLES = list(row_fields(KNOWN))
NEVER = 1 << 62
_FILE_HEADER, _RECORD_HEADER = 24, 16


def tables(path: Path) -> dict[str, pa.Table]:
    """The raw tables of a capture that have rows."""
    store = Pipeline(KNOWN, TABLES, ReadOptions()).run(open_captures([str(path)])).store
    return raw_tables_with_rows(store)


def without_some(data: bytes, share: float) -> bytes:
    """A capture that misses a share of its packets, but for the last tenth of it."""
    random, at, kept = Random(7), _FILE_HEADER, [data[:_FILE_HEADER]]
    while at < len(data) * 9 // 10:
        behind = at + _RECORD_HEADER + int(struct.unpack_from("<I", data, at + 8)[0])
        if random.random() >= share:
            kept.append(data[at:behind])
        at = behind
    return b"".join(kept)


@pytest.mark.parametrize(("share", "least"), [(0.0, 0.9), (0.001, 0.2)])
def test_tables_are_those_of_one_by_one(
    share: float, least: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "replay.pcap"
    replay(path, "mongo", packets=30_000)
    path.write_bytes(without_some(path.read_bytes(), share))
    read: list[int] = []
    exchanges = batch_decode.Reading.exchanges

    def counted(self, filled, *, with_lines):  # type: ignore[no-untyped-def]
        read.append(len(self.pairs.asked))
        return exchanges(self, filled, with_lines=with_lines)

    monkeypatch.setattr(batch_decode.Reading, "exchanges", counted)
    together = tables(path)
    monkeypatch.setattr(mongo_decoder, "LEAST_FRAMES", NEVER)
    alone = tables(path)
    assert together.keys() == alone.keys()
    assert sum(read) > least * together["exchanges"].num_rows
    assert [name for name in together if not together[name].equals(alone[name])] == []
