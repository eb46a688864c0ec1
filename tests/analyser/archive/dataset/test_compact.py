"""Small parts become few: the same rows in the same order, and no row is written again and again."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import wirewitness
from tests.conftest import SAMPLES
from tests.support.datasets import flow_keys, inputs_of, with_flow
from tests.support.deltas import delta_rows
from wirewitness.analyser.archive.dataset.compact import (
    LARGE_ROWS,
    MOST_PARTS,
    MergeJob,
    compact,
    merge_parts,
    plan_merges,
)
from wirewitness.analyser.archive.dataset.dataset import Change, Dataset, Part, write_parts
from wirewitness.analyser.archive.run import compact_dataset

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RUNS = 40
NOW, PAST = "day=2026-11-20/hour=13", "day=2026-11-20/hour=02"


def part(name: str, size: int = 1000, *, hour: str = NOW, provisional: bool = False, table: str = "exchanges") -> Part:
    return Part(table, f"{table}/protocol=kafka/{hour}/part-{name}-0000.parquet", 10, size, provisional)


def parts(*sizes: int, hour: str = NOW) -> list[Part]:
    return [part(f"{number:06d}-0000-1settled", size, hour=hour) for number, size in enumerate(sizes, 1)]


def with_rows(rows: int, given: list[Part]) -> list[Part]:
    return [one._replace(rows=rows) for one in given]


@pytest.mark.parametrize(
    ("given", "whole", "merged"),
    [
        pytest.param(parts(*[9] * (MOST_PARTS - 1)), False, [], id="few"),
        pytest.param(parts(*[9] * MOST_PARTS), False, [MOST_PARTS], id="many"),
        pytest.param(parts(9000, *[9] * MOST_PARTS), False, [MOST_PARTS], id="a large one stays"),
        pytest.param(parts(100, *[9] * MOST_PARTS), False, [MOST_PARTS + 1], id="a small one is taken along"),
        pytest.param(
            parts(90, 90, *[9] * MOST_PARTS, 90, 9), False, [MOST_PARTS + 4], id="small ones between large ones"
        ),
        pytest.param(parts(9, 9), True, [2], id="whole"),
        pytest.param(parts(900, 9), True, [2], id="whole, of different sizes"),
        pytest.param([*parts(9), *parts(9, 9, hour=PAST)], False, [2], id="an hour that is past"),
        pytest.param([*parts(9), *parts(900, 9, hour=PAST)], False, [], id="a late row of an hour that is past"),
        pytest.param(parts(300 << 20, 1 << 20), True, [], id="large enough"),
        pytest.param(with_rows(LARGE_ROWS // 10, parts(*[9] * 25)), False, [10], id="no more rows than can be sorted"),
        pytest.param(with_rows(LARGE_ROWS // 6, parts(*[9] * 25)), True, [6], id="whole, no more than can be sorted"),
        pytest.param([part(f"00000{n}-2open", provisional=True) for n in range(9)], True, [], id="provisional"),
        pytest.param([*parts(9), part("1", table="messages")], True, [], id="another table"),
    ],
)
def test_which_parts_are_put_together(given: list[Part], whole: bool, merged: list[int]) -> None:
    assert [len(merge.parts) for merge in plan_merges(given, whole=whole)] == merged


@pytest.mark.parametrize(
    "sizes",
    [
        pytest.param([1000] * 4, id="equal shares"),
        pytest.param([100_000, 100_000, 1000, 1000], id="the last shares have little"),
        pytest.param([1000, 1000, 100_000, 100_000], id="the first shares have little"),
    ],
)
def test_a_row_is_written_a_few_times_only(sizes: list[int]) -> None:
    """500 runs of four parts each into one hour: how many bytes are written for each that comes, and how many parts
    lie there at most."""
    there: list[Part] = []
    written = most = 0
    for run in range(1, 501):
        there += [part(f"{run:06d}-{shard:04d}-1settled", size) for shard, size in enumerate(sizes)]
        for merge in plan_merges(there):
            size = sum(one.bytes for one in merge.parts)
            written += size
            last = merge.parts[-1].path.rpartition("part-")[2][:6]
            there = [one for one in there if one not in merge.parts] + [part(f"{last}-0000-0merged{run:06d}", size)]
        most = max(most, len(there))
    assert most <= 2 * MOST_PARTS + 10
    assert written / (500 * sum(sizes)) < 12


def test_the_rows_and_their_order_stay(tmp_path: Path) -> None:
    """All tables of a sample, in many parts whose rows of one time and connection lie in several."""
    root = tmp_path / "dataset"
    make_in_parts(root, SAMPLES / "mqtt_takeover_loop.pcapng")
    with wirewitness.read(root) as dataset:
        before = {name: dataset.arrow(name) for name in dataset.tables()}
    with Change.begin(root) as change:
        merges = plan_merges(change.parts(), whole=True)
        locations = {one.path: change.location(one) for one in change.parts()}
        for merge in merges:
            change.remove(*merge.parts)
            change.add(*merge_parts(MergeJob(change.staging, change.run, merges, locations, change.work), merge))
        change.commit(())
    dataset_after = Dataset.open(root)
    assert max(pinned.parts for pinned in dataset_after.manifest.tables.values()) <= 2
    with wirewitness.read(root) as dataset:
        for name, rows in before.items():
            assert dataset.arrow(name).equals(rows), name


def test_merging_runs_and_compacting_all(spark: SparkSession, tmp_path: Path) -> None:
    """What is automatic, then the command; the state stays; other programs see the same rows."""
    root = tmp_path / "dataset"
    make_in_parts(root, SAMPLES / "mqtt_takeover_loop.pcapng")
    with Change.begin(root) as change:
        rows = analyser_rows(root, "messages")
        assert compact(spark, change) > 0
        (change.state / "share-0").write_text("kept")
        change.commit(())
    assert analyser_rows(root, "messages") == rows
    before, after = compact_dataset(root, spark)
    assert after < before
    assert compact_dataset(root, spark) == (after, after)
    assert analyser_rows(root, "messages") == rows
    dataset = Dataset.open(root)
    state = dataset.manifest.state
    assert state is not None
    assert (root / state / "share-0").read_text() == "kept"
    assert delta_rows(root, "messages").num_rows == dataset.manifest.rows("messages")


def analyser_rows(root: Path, table: str) -> str:
    with wirewitness.read(root, tables=[table]) as dataset:
        return repr(dataset.arrow(table).to_pylist())


def make_in_parts(root: Path, capture: Path) -> None:
    """A dataset in which each table has come in RUNS pieces of neighbouring rows."""
    cuts = random.Random(5)
    with wirewitness.read([capture]) as analysis, Change.begin(root) as change:
        keys = flow_keys(analysis)
        for table in analysis.tables():
            for batch in analysis.arrow(table).combine_chunks().to_batches():
                edges = [0, *sorted(cuts.sample(range(batch.num_rows + 1), min(RUNS, batch.num_rows))), batch.num_rows]
                for run, (start, end) in enumerate(pairwise(edges), 1):
                    rows = with_flow(batch.slice(start, end - start), keys)
                    change.add(*write_parts(table, [rows], change.staging, f"{run:06d}-0000-1settled"))
        change.commit(inputs_of(analysis, change.run), {"shares": 1})
