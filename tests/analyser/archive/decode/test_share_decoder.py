"""Shares decoded one after the other from chunks give exactly the tables of the offline reader."""

from __future__ import annotations

from pathlib import Path

import pytest

import wirewitness
from tests.conftest import SAMPLES
from tests.support.by_shards import read_by_shards
from tests.support.lock_step import NEVER, lock_step
from tests.support.shares import long_cases
from tests.support.whole import differences, whole_of

QUICK = ("kafka_sasl", "mongo_healthy", "mqtt_takeover_loop", "mqtt_qos2_stuck")
ALL = sorted(path.stem for path in SAMPLES.glob("*.pcapng"))


def compare(name: str, folder: Path, **cut: int) -> list[str]:
    path = SAMPLES / f"{name}.pcapng"
    with wirewitness.read(path) as offline, read_by_shards([path], folder, **cut) as shared:
        return differences(whole_of(offline, str(path)), whole_of(shared, str(path)))


@pytest.mark.parametrize("name", QUICK)
def test_shards_of_byte_ranges_give_the_same_tables(name: str, tmp_path: Path) -> None:
    assert compare(name, tmp_path, shards=5, range_bytes=10_000, block_bytes=4096) == []


@pytest.mark.parametrize("name", ["kafka_fenced_commit", "mongo_healthy", "mqtt_qos2_stuck"])
def test_shards_in_lock_step_give_the_tables_of_one_by_one(name: str, tmp_path: Path) -> None:
    """Streams are cut by ranges and by blocks, and read together wherever that is possible."""
    path = SAMPLES / f"{name}.pcapng"
    cut = {"shards": 2, "range_bytes": 40_000, "block_bytes": 16_384}
    with lock_step(1) as read, read_by_shards([path], tmp_path, **cut) as shared:
        together = whole_of(shared, str(path))
    with lock_step(NEVER) as none, wirewitness.read(path) as offline:
        assert differences(whole_of(offline, str(path)), together) == []
        assert sum(read.values()) > offline.arrow("messages").num_rows // 10
    assert not sum(none.values())


@pytest.mark.lab
@pytest.mark.parametrize("name", long_cases(ALL))
def test_every_sample_gives_the_same_tables(name: str, tmp_path: Path) -> None:
    assert compare(name, tmp_path, shards=3) == []
