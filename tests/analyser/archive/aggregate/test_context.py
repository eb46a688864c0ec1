"""The context of a dataset equals that of its captures, in one run or in several."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import wirewitness
from tests.conftest import SAMPLES
from tests.support.datasets import flow_keys, inputs_of, with_flow
from tests.support.shares import pairs, turns
from wirewitness.analyser.analysis.analysis import Analysis
from wirewitness.analyser.archive.aggregate.context import run_context
from wirewitness.analyser.archive.dataset.dataset import Change, Dataset, write_parts
from wirewitness.analyser.engine.facts.stages import STAGE_OF, STAGES
from wirewitness.analyser.tables.tables import TABLES

MADE = {table for stage in STAGES for table in stage.new}
# Context columns that are there before the stages run.
KNOWN_BEFORE = {"cluster_id", "topic"}


def _base(analysis: Analysis, table: str) -> Iterator[pa.RecordBatch]:
    """Rows as they are before the context."""
    keys = flow_keys(analysis)
    for batch in analysis.batches(table):
        for column in TABLES[table].columns if table in STAGE_OF else ():
            if column.source == "context" and column.name not in KNOWN_BEFORE:
                place = batch.schema.get_field_index(column.name)
                field = batch.schema.field(place)
                batch = batch.set_column(place, field, pa.nulls(batch.num_rows, field.type))
        yield with_flow(batch, keys)


def _add_run(analysis: Analysis, root: Path, first: float, last: float) -> dict[str, set[int | None]]:
    """Base rows between two parts of the capture's time, then the context. What comes behind is open for a while."""
    times = analysis.arrow("exchanges")["ts"].cast(pa.int64()).to_pylist()
    begin, length = min(times), max(times) - min(times) + 1
    with Change.begin(root) as change:
        change.remove(*(part for part in change.parts() if part.provisional))
        for table in TABLES:
            if table in MADE or table == "findings":
                continue
            column = "ts_first" if table in ("flows", "captures") else "ts"
            for number, batch in enumerate(_base(analysis, table)):
                at = pc.fill_null(batch.column(column).cast(pa.int64()), begin)
                place = pc.divide(pc.cast(pc.subtract(at, begin), pa.float64()), float(length))
                name = f"{change.run}-{number}"
                for low, high, provisional in ((first, last, False), (last, last + 0.1, True)):
                    rows = batch.filter(pc.and_(pc.greater_equal(place, low), pc.less(place, high)))
                    change.add(*write_parts(table, [rows], change.staging, f"{name}-{provisional}".lower(),
                                            provisional=provisional))  # fmt: skip
        written = run_context(change)
        change.commit(inputs_of(analysis, change.run))
    return written


NAMES = ["kafka_fenced_commit", "kafka_admin", "mqtt_qos2_stuck", "mqtt_takeover_loop", "mongo_shapes_and_errors"]


@pytest.mark.parametrize(("name", "shards"), pairs(product(NAMES, [1, 3]), turns(NAMES, [1, 3])))
def test_in_three_runs_as_in_one(name: str, shards: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wirewitness.analyser.archive.aggregate.derived.SORTED_ROWS", 40)
    monkeypatch.setattr("wirewitness.analyser.archive.aggregate.partitioning.DEALT_ROWS", 50)
    for module in ("context", "kafka_context"):
        monkeypatch.setattr(
            f"wirewitness.analyser.archive.aggregate.{module}.shards_for", lambda rows: min(rows, shards)
        )
    capture = SAMPLES / f"{name}.pcapng"
    protocol = name.split("_", maxsplit=1)[0]
    stage_tables = [table for table in STAGE_OF if TABLES[table].protocol == protocol]
    with wirewitness.read(capture) as offline:
        for first, last in ((-9.0, 0.3), (0.3, 0.7), (0.7, 9.0)):
            _add_run(offline, tmp_path / "d", first, last)
        with wirewitness.read(tmp_path / "d", tables=stage_tables) as kept:
            for table in stage_tables:
                assert kept.arrow(table).num_rows == offline.arrow(table).num_rows, table
                assert kept.arrow(table).equals(offline.arrow(table)), table
            assert any(kept.arrow(table).num_rows for table in stage_tables)


def test_hours_that_come_out_the_same_are_not_written(tmp_path: Path) -> None:
    root = tmp_path / "d"
    with wirewitness.read(SAMPLES / "kafka_fenced_commit.pcapng") as offline:
        assert _add_run(offline, root, -9.0, 9.0)["kafka_offset_commits"]
        before = Dataset.open(root).parts("kafka_offset_commits")
        with Change.begin(root) as change:
            assert run_context(change)["kafka_offset_commits"] == set()
            change.commit([])
    assert Dataset.open(root).parts("kafka_offset_commits") == before
