"""MQTT packets that are read together give the tables of reading them one by one, and their rows need no tuples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.support.raw_rows import raw_tables_with_rows
from tests.support.replay_mqtt import write_publishes
from tests.support.shares import SAMPLES, share, smallest
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.capture import open_captures
from wirewitness.analyser.decoding.rows.column_rows import Claims
from wirewitness.analyser.decoding.rows.fields import row_fields
from wirewitness.analyser.decoding.run.pipeline import Pipeline
from wirewitness.dissectors.core.blocks import Block
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.mqtt import decoder as mqtt_decoder
from wirewitness.dissectors.mqtt.lockstep import batch_decode as together_module
from wirewitness.dissectors.mqtt.lockstep.batch_decode import Together
from wirewitness.dissectors.registry import dissectors

KNOWN = dissectors(())
TABLES = [table for table in row_fields(KNOWN) if table != "kafka_records"]
NEVER = 1 << 62
MQTT_SAMPLES = sorted(SAMPLES.glob("mqtt_*.pcapng"))


def tables(path: Path, limits: Limits | None = None) -> dict[str, pa.Table]:
    """The raw tables of a capture that have rows."""
    store = Pipeline(KNOWN, TABLES, ReadOptions(), limits).run(open_captures([str(path)])).store
    return raw_tables_with_rows(store)


def different(path: Path, monkeypatch: pytest.MonkeyPatch, limits: Limits | None = None) -> list[str]:
    """The tables that differ between both ways."""
    together = tables(path, limits)
    monkeypatch.setattr(mqtt_decoder, "LEAST_FRAMES", NEVER)
    alone = tables(path, limits)
    assert together.keys() == alone.keys()
    return [name for name in alone if not together[name].equals(alone[name])]


def of_a_replay(path: Path) -> Path:
    """A replay that ends in the middle."""
    write_publishes(path, 6_000, flows=12)
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 9 // 10])
    return path


def test_tables_are_those_of_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    claimed = list[int]()
    add = Claims.add

    def counted(self: Claims, flow: int, first: int, until: int, number: int) -> None:
        claimed.append(until - first)
        add(self, flow, first, until, number)

    monkeypatch.setattr(Claims, "add", counted)
    assert different(of_a_replay(tmp_path / "replay.pcap"), monkeypatch) == []
    assert sum(claimed) > 15_000  # of exchanges, messages and mqtt_publishes


def test_tables_of_a_capture_with_losses_are_those_of_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of the packets are read together: those whose identifiers no gap touches."""
    taken = list[int]()
    together = together_module.together

    def counted(*given: Any) -> list[Together | None]:
        found = together(*given)
        taken.extend(one.taken for one in found if one is not None)
        return found

    monkeypatch.setattr(together_module, "together", counted)
    path = tmp_path / "lossy.pcap"
    told = write_publishes(path, 8_000, flows=12, lossy=True)
    assert different(path, monkeypatch) == []
    assert sum(taken) > 0.45 * (told.requests + told.responses)


def test_names_too_long_are_cut_as_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = Limits(max_name_characters=20)
    path = of_a_replay(tmp_path / "replay.pcap")
    assert different(path, monkeypatch, limits) == []
    codes = tables(path, limits)["expert_infos"]["code"].to_pylist()
    assert "long_names" in codes


def test_values_that_do_not_fit_are_found_in_the_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A block that Arrow refuses becomes rows, of which those that do fit stay."""

    def refused(block: Block, types: object) -> list[pa.Array]:
        raise pa.ArrowInvalid("a value that does not fit")

    path = of_a_replay(tmp_path / "replay.pcap")
    expected = tables(path)
    monkeypatch.setattr("wirewitness.analyser.decoding.rows.column_rows.arrays_of", refused)
    assert [name for name, table in tables(path).items() if not table.equals(expected[name])] == []


@pytest.mark.parametrize("sample", share(MQTT_SAMPLES, smallest(MQTT_SAMPLES, 4)), ids=lambda path: path.stem)
def test_samples_give_the_same(sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in ((mqtt_decoder, "MANY_FRAMES"), (mqtt_decoder, "LEAST_FRAMES")):
        monkeypatch.setattr(module, name, 1)
    monkeypatch.setattr(together_module, "LEAST", 1)
    assert different(sample, monkeypatch) == []
