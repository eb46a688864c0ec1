"""Datasets on disk: changes are whole or never were, one writer at a time, and damage is one clear line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.changes import HOUR_NS, NEW, OLD, batch, first, second
from tests.support.deltas import delta_rows, pinned_rows
from tests.support.rows import arrow_from_rows
from tests.support.shares import RUNS_THE_REST, proves_more
from tests.support.steps import killed_at
from wirewitness.analyser.archive.dataset.dataset import Change, Dataset, DatasetBusy, write_parts
from wirewitness.analyser.archive.dataset.place import MANIFEST, DatasetError, is_dataset
from wirewitness.analyser.tables.tables import SCHEMA_VERSION

CHANGES = "tests.support.changes"
VERSION = f'"schema_version": {SCHEMA_VERSION}'


def _by_manifest(root: Path) -> list[str]:
    """The rows that our readers see; another program that goes by the manifest sees the same."""
    dataset = Dataset.open(root)
    paths = dataset.paths(dataset.parts("exchanges"))
    ours = _ids(pa.concat_tables(pq.read_table(path, partitioning=None) for path in paths))
    assert _ids(pinned_rows(root, "exchanges")) == ours
    return ours


def _by_delta(root: Path) -> list[str]:
    """What others see in the last version of the table."""
    return _ids(delta_rows(root, "exchanges"))


def _ids(rows: pa.Table) -> list[str]:
    found: list[str] = rows.sort_by("ts").column("exchange_id").to_pylist()
    return found


def _state(root: Path) -> str:
    state = Dataset.open(root).manifest.state
    assert state is not None
    assert [path.name for path in (root / "_state").iterdir()] == [state.removeprefix("_state/")]
    return (root / state / "share-0").read_text()


def test_a_change_counts_at_once_and_other_programs_see_the_same(tmp_path: Path) -> None:
    root = tmp_path / "d"
    first(root)
    assert _by_manifest(root) == _by_delta(root) == OLD
    assert _state(root) == "one"
    second(root)
    assert _by_manifest(root) == _by_delta(root) == NEW
    assert _state(root) == "two"
    manifest = Dataset.open(root).manifest
    assert [(one.path, one.run) for one in manifest.inputs] == [("a.pcap", "000001"), ("b.pcap", "000002")]
    assert manifest.settings == {"shares": 64}
    assert manifest.rows("exchanges") == 5
    assert not any(part.provisional for part in Dataset.open(root).parts("exchanges"))
    assert not (root / "_staging").exists()


def test_parts_lie_by_protocol_day_and_hour(tmp_path: Path) -> None:
    rows = [
        {"exchange_id": "x", "flow_id": "f", "protocol": "kafka", "ts": 1_795_179_600_000_000_000, "status": "ok"},
        {"exchange_id": "y", "flow_id": "g", "protocol": None, "ts": -1, "status": "ok"},
    ]
    parts = write_parts("exchanges", arrow_from_rows("exchanges", rows).to_batches(), tmp_path, "000001-7")
    assert [part.path for part in parts] == [
        "exchanges/protocol=__HIVE_DEFAULT_PARTITION__/day=1969-12-31/hour=23/part-000001-7-0000.parquet",
        "exchanges/protocol=kafka/day=2026-11-20/hour=13/part-000001-7-0000.parquet",
    ]
    assert [part.rows for part in parts] == [1, 1]
    source = f"read_parquet('{tmp_path}/**/*.parquet')"
    seen = duckdb.sql(f"SELECT exchange_id, protocol, day::VARCHAR, hour::INT FROM {source}")
    assert sorted(seen.fetchall()) == [("x", "kafka", "2026-11-20", 13), ("y", None, "1969-12-31", 23)]


def test_rows_without_a_time_and_in_no_order(tmp_path: Path) -> None:
    many = [{"code": "gap", "severity": "note", "group": "tcp", "text": str(n), "ts": (n * 7 % 40) * HOUR_NS}
            for n in range(400)]  # fmt: skip
    many[3]["ts"] = None
    batches = arrow_from_rows("expert_infos", many).to_batches(max_chunksize=50)
    parts = write_parts("expert_infos", batches, tmp_path, "n")
    assert sum(part.rows for part in parts) == 400
    assert parts[0].path.count("=__HIVE_DEFAULT_PARTITION__") >= 1
    seen = duckdb.sql(
        f"SELECT text, epoch_ns(ts), hour::VARCHAR FROM read_parquet('{tmp_path}/**/*.parquet')"
    ).fetchall()
    assert {text for text, *_ in seen} == {str(n) for n in range(400)}
    assert all(int(path) == ts_ns // HOUR_NS % 24 for text, ts_ns, path in seen if text != "3")
    assert not list(tmp_path.rglob(".*"))


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("reference") / "d"
    first(root)
    return root


def _check_killed(root: Path) -> list[str]:
    """A dataset whose second change was killed, before the next writer came and after; the rows that it has."""
    rows = _by_manifest(root)
    assert rows in (OLD, NEW)
    with Change.begin(root) as change:  # the next writer
        assert change.parts("exchanges") == [*Dataset.open(root).parts("exchanges")]
        assert change.run > Dataset.open(root).manifest.runs[-1].name
    assert rows == _by_manifest(root) == _by_delta(root)
    assert _state(root) == {len(OLD): "one", len(NEW): "two"}[len(rows)]
    assert not (root / "_staging").exists()
    assert (root / "messages").exists() == (rows == NEW)
    return rows


@proves_more
def test_killed_at_every_step_it_is_the_old_or_the_new_dataset(reference: Path, tmp_path: Path) -> None:
    steps = 0
    while True:
        root = tmp_path / f"d{steps}"
        shutil.copytree(reference, root)
        killed = killed_at(steps, CHANGES, "second", root)
        rows = _check_killed(root)
        if not killed:
            assert rows == NEW
            break
        _again(root)
        steps += 1 if RUNS_THE_REST else 9
    assert steps > 20


def _again(root: Path) -> None:
    """A run that goes on from what a killed one left takes no name twice."""
    before = {part.path for part in Dataset.open(root).parts("exchanges")}
    with Change.begin(root) as change:
        change.add(*write_parts("exchanges", [batch([9])], change.staging, f"{change.run}-0"))
        change.commit([])
    assert before < {part.path for part in Dataset.open(root).parts("exchanges")}
    assert _by_manifest(root) == _by_delta(root)


@proves_more
def test_killed_while_delta_lake_writes_a_version(reference: Path, tmp_path: Path) -> None:
    """At any time from the first new version on, which no step of ours divides."""
    for number in range(24 if RUNS_THE_REST else 3):
        root = tmp_path / f"d{number}"
        shutil.copytree(reference, root)
        killed_at(0, CHANGES, "second", root, later_us=200 + 700 * number)
        _check_killed(root)


def _begin(root: Path) -> None:
    with Change.begin(root) as change:
        change.add(*write_parts("exchanges", [batch([1])], change.staging, f"{change.run}-0"))
        change.commit([])


@proves_more
def test_the_first_change_of_a_new_dataset_can_be_killed_too(tmp_path: Path) -> None:
    seen = set()
    for step in range(0, 1000, 1 if RUNS_THE_REST else 9):
        root = tmp_path / f"n{step}"
        killed = killed_at(step, __name__, "_begin", root)
        if is_dataset(root):
            seen.add("new")
        else:
            _begin(root)
            seen.add("none")
        assert _by_manifest(root) == _by_delta(root) == ["f-c-1"]
        if not killed:
            break
    assert seen == {"none", "new"}


def test_leaving_without_commit_changes_nothing(tmp_path: Path) -> None:
    root = tmp_path / "d"
    first(root)
    with Change.begin(root) as change:
        change.remove(*change.parts())
    assert _by_manifest(root) == _by_delta(root) == OLD


def test_one_writer_at_a_time_and_the_second_says_who(tmp_path: Path) -> None:
    root = tmp_path / "d"
    first(root)
    module = "wirewitness.analyser.archive.dataset.dataset"
    code = f"import sys; from {module} import Change\nwith Change.begin(sys.argv[1]): pass"
    with Change.begin(root):
        tried = subprocess.run([sys.executable, "-c", code, root], capture_output=True, text=True, check=False)
        assert _by_manifest(root) == OLD
    last = tried.stderr.strip().splitlines()[-1]
    assert f"is being written by process {os.getpid()} on " in last
    assert DatasetBusy.__name__ in last
    subprocess.run([sys.executable, "-c", code, root], check=True)


def test_rebuild_leaves_nothing_of_what_was(tmp_path: Path) -> None:
    root = tmp_path / "d"
    first(root)
    _rewrite(root, lambda text: text.replace(VERSION, '"schema_version": 99'))
    with Change.begin(root, rebuild=True) as change:
        assert change.previous is None
        assert change.previous_state is None
        change.add(*write_parts("exchanges", [batch([9])], change.staging, f"{change.run}-0"))
        change.commit([])
    assert _by_manifest(root) == _by_delta(root) == ["f-c-9"]


def test_rebuild_removes_tables_that_have_another_name_now(tmp_path: Path) -> None:
    root, old = tmp_path / "d", "kafka_reading_runs"
    first(root)
    shutil.copytree(root / "exchanges", root / old)
    with Change.begin(root, rebuild=True) as change:
        change.add(*write_parts("exchanges", [batch([9])], change.staging, f"{change.run}-0"))
        change.commit([])
    assert _by_manifest(root) == ["f-c-9"]
    assert not (root / old).exists()


def test_a_part_cannot_take_the_place_of_another(tmp_path: Path) -> None:
    root = tmp_path / "d"
    first(root)
    with Change.begin(root, rebuild=True) as change:
        assert change.run == "000002"
        parts = write_parts("exchanges", [batch([1])], change.staging, "000001-0")
        with pytest.raises(DatasetError, match="already has a part"):
            change.add(*parts)
    assert _by_manifest(root) == OLD


def _rewrite(root: Path, edit: Callable[[str], str]) -> None:
    path = root / MANIFEST
    path.write_text(edit(path.read_text()))


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda root: (root / MANIFEST).unlink(), "is no dataset"),
        (lambda root: (root / MANIFEST).write_text("{"), "is damaged"),
        (lambda root: (root / MANIFEST).write_text("[]"), "is not the manifest of a dataset"),
        (lambda root: _rewrite(root, lambda t: t.replace('"runs"', '"ruins"')), "is damaged"),
        (lambda root: _rewrite(root, lambda t: t.replace('"exchanges"', '"../exchanges"')), "is damaged"),
        (lambda root: _relog(root, "protocol=kafka", "../protocol=kafka"), "is damaged"),
        (lambda root: _relog(root, "protocol=kafka", "/protocol=kafka"), "is damaged"),
        (lambda root: _relog(root, "/day=1970-01-01/", "/day=today/"), "is damaged"),
        (lambda root: _relog(root, '"numRecords', '"numOthers'), "is damaged"),
        (lambda root: _log(root).write_text("{"), "is damaged"),
        (lambda root: _log(root).write_text(""), "is damaged"),
        (lambda root: _log(root).unlink(), "is damaged"),
        (lambda root: _pipe(_log(root)), "is no file"),
        (lambda root: _rewrite(root, lambda t: t.replace('"version": 0', '"version": 7')), "is damaged"),
        (lambda root: _rewrite(root, lambda t: t.replace('"layout": 2', '"layout": 1')), "of another layout"),
        (lambda root: _rewrite(root, lambda t: t.replace(VERSION, '"schema_version": 1')),
         "is a dataset of version 1, and this program reads version 2"),
        (lambda root: next((root / "exchanges").rglob("part-000001-1*")).unlink(), "is missing"),
    ],
    ids=["no manifest", "cut", "other JSON", "key missing", "table outside", "path above", "path outside",
         "path without a time", "rows not told", "log cut", "log empty", "log gone", "log a pipe", "version not there",
         "layout", "schema version", "part missing"],
)  # fmt: skip
def test_damage_is_one_clear_line(tmp_path: Path, damage: Callable[[Path], None], said: str) -> None:
    root = tmp_path / "d"
    first(root)
    damage(root)
    with pytest.raises(DatasetError) as raised:
        _by_manifest(root)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def _log(root: Path) -> Path:
    return root / "exchanges/_delta_log/00000000000000000000.json"


def _relog(root: Path, old: str, new: str) -> None:
    text = _log(root).read_text()
    assert old in text
    _log(root).write_text(text.replace(old, new))


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize("link", ["_staging", "exchanges"])
def test_a_change_does_not_follow_links(tmp_path: Path, link: str) -> None:
    root, hers = tmp_path / "d", tmp_path / "hers"
    first(root)
    if link == "exchanges":
        (root / link).rename(hers)
    else:
        hers.mkdir()
        (hers / "000009").mkdir()
    (root / link).symlink_to(hers)
    before = sorted(hers.rglob("*"))
    with pytest.raises(DatasetError, match="is a link"), Change.begin(root):
        pass
    assert sorted(hers.rglob("*")) == before


def test_a_dataset_is_not_made_among_other_files(tmp_path: Path) -> None:
    (tmp_path / "thesis.doc").write_text("dear")
    with pytest.raises(DatasetError, match="not empty"), Change.begin(tmp_path):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.doc"]
