"""Datasets on disk: changes are whole or never were, one writer at a time, and damage is one clear line."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from analyser.archive.dataset.dataset import Change, Dataset, DatasetBusy, InputFile, Part, write_parts
from analyser.archive.dataset.place import MANIFEST, DatasetError, is_dataset
from tests.support.rows import arrow_from_rows
from tests.support.shares import RUNS_THE_REST, proves_more
from tests.support.steps import killed_at

HOUR_NS = 3_600_000_000_000


def _batch(numbers: Iterable[int]) -> pa.RecordBatch:
    rows = [
        {"exchange_id": f"f-c-{n}", "flow_id": "f", "protocol": "kafka", "ts": n * HOUR_NS, "status": "ok"}
        for n in numbers
    ]
    return arrow_from_rows("exchanges", rows).to_batches()[0]


def _input(name: str, run: str) -> InputFile:
    return InputFile(name, f"key of {name}", 100, 10, 0, HOUR_NS, "read", None, run)


def _first(root: Path) -> None:
    with Change.begin(root) as change:
        change.add(*write_parts("exchanges", [_batch([1, 2])], change.staging, f"{change.run}-0"))
        change.add(*write_parts("exchanges", [_batch([3])], change.staging, f"{change.run}-1", provisional=True))
        (change.state / "share-0").write_text("one")
        change.commit([_input("a.pcap", change.run)], {"shares": 64})


def _second(root: Path) -> None:
    """Drops what was provisional, brings it anew with more."""
    with Change.begin(root) as change:
        change.remove(*(part for part in change.parts() if part.provisional))
        staged = _staged(root, change.run)
        change.staging.mkdir(parents=True, exist_ok=True)
        for part, data in staged:
            target = change.staging / part.path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
            change.add(part)
        (change.state / "share-0").write_text("two")
        change.commit([_input("b.pcap", change.run)])


def _staged(root: Path, run: str) -> list[tuple[Part, bytes]]:
    """Parts made before: Arrow's threads do not live on in a forked child."""
    folder = root.parent / "made"
    if not folder.exists():
        parts = write_parts("exchanges", [_batch([3, 4, 5])], folder, f"{run}-0")
        (folder / "parts.json").write_text(json.dumps(parts))
    made = [Part(*one) for one in json.loads((folder / "parts.json").read_text())]
    return [(part, (folder / part.path).read_bytes()) for part in made]


def _by_manifest(root: Path) -> list[str]:
    dataset = Dataset.open(root)
    paths = dataset.paths(dataset.parts("exchanges"))
    return _ids(f"read_parquet({paths})") if paths else []


def _by_folder(root: Path) -> list[str]:
    return _ids(f"read_parquet('{root}/exchanges/**/*.parquet')")


def _ids(source: str) -> list[str]:
    return [name for (name,) in duckdb.sql(f"SELECT exchange_id FROM {source} ORDER BY ts").fetchall()]


def _state(root: Path) -> str:
    state = Dataset.open(root).manifest.state
    assert state is not None
    assert [path.name for path in (root / "_state").iterdir()] == [state.removeprefix("_state/")]
    return (root / state / "share-0").read_text()


OLD, NEW = [f"f-c-{n}" for n in (1, 2, 3)], [f"f-c-{n}" for n in (1, 2, 3, 4, 5)]


def test_a_change_counts_at_once_and_readers_of_folders_see_the_same(tmp_path: Path) -> None:
    root = tmp_path / "d"
    _first(root)
    assert _by_manifest(root) == _by_folder(root) == OLD
    assert _state(root) == "one"
    _second(root)
    assert _by_manifest(root) == _by_folder(root) == NEW
    assert _state(root) == "two"
    manifest = Dataset.open(root).manifest
    assert [(one.path, one.run) for one in manifest.inputs] == [("a.pcap", "000001"), ("b.pcap", "000002")]
    assert manifest.settings == {"shares": 64}
    assert manifest.rows("exchanges") == 5
    assert not any(part.provisional for part in manifest.parts)
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


@proves_more
def test_killed_at_every_step_it_is_the_old_or_the_new_dataset(tmp_path: Path) -> None:
    reference = tmp_path / "reference"
    _first(reference)
    _staged(reference, "000002")
    steps = 0
    while True:
        root = tmp_path / f"d{steps}"
        shutil.copytree(reference, root)
        killed = killed_at(steps, root, lambda root=root: _second(root))
        repaired = steps % 2 == 0  # a reader that may write repairs, one that may not goes by the manifest
        if repaired:
            rows = _by_manifest(root)
            assert _by_folder(root) == rows
        else:
            rows = _ids_of_manifest(root)
        assert rows in (OLD, NEW)
        if not killed:
            assert rows == NEW
            break
        with Change.begin(root) as change:  # the next writer
            assert [part.path for part in change.parts()] == [p.path for p in Dataset.open(root).manifest.parts]
        assert _by_manifest(root) == _by_folder(root)
        assert _state(root) == {len(OLD): "one", len(NEW): "two"}[len(_by_manifest(root))]
        assert not (root / "_staging").exists()
        steps += 1 if RUNS_THE_REST else 3  # an odd number: readers of both kinds are met
    assert steps > 20


def _ids_of_manifest(root: Path) -> list[str]:
    """As a reader that cannot write sees it."""
    parts = json.loads((root / MANIFEST).read_text())["parts"]
    return _ids(f"read_parquet({[str(root / part['path']) for part in parts]})")


@proves_more
def test_the_first_change_of_a_new_dataset_can_be_killed_too(tmp_path: Path) -> None:
    made = tmp_path / "made"
    parts = write_parts("exchanges", [_batch([1])], made, "000001-0")
    data = (made / parts[0].path).read_bytes()

    def begin(root: Path) -> None:
        with Change.begin(root) as change:
            target = change.staging / parts[0].path
            target.parent.mkdir(parents=True)
            target.write_bytes(data)
            change.add(parts[0])
            change.commit([])

    seen = set()
    for step in range(0, 1000, 1 if RUNS_THE_REST else 2):
        root = tmp_path / f"n{step}"
        killed = killed_at(step, root, lambda root=root: begin(root))
        if is_dataset(root):
            assert _by_manifest(root) == ["f-c-1"]
            seen.add("new")
        else:
            begin(root)
            assert _by_manifest(root) == ["f-c-1"]
            seen.add("none")
        if not killed:
            break
    assert seen == {"none", "new"}


def test_leaving_without_commit_changes_nothing(tmp_path: Path) -> None:
    root = tmp_path / "d"
    _first(root)
    with Change.begin(root) as change:
        change.remove(*change.parts())
    assert _by_manifest(root) == _by_folder(root) == OLD


def test_one_writer_at_a_time_and_the_second_says_who(tmp_path: Path) -> None:
    root = tmp_path / "d"
    _first(root)
    code = "import sys; from analyser.archive.dataset.dataset import Change\nwith Change.begin(sys.argv[1]): pass"
    with Change.begin(root):
        tried = subprocess.run([sys.executable, "-c", code, root], capture_output=True, text=True, check=False)
        assert _by_manifest(root) == OLD
    last = tried.stderr.strip().splitlines()[-1]
    assert f"is being written by process {os.getpid()} on " in last
    assert DatasetBusy.__name__ in last
    subprocess.run([sys.executable, "-c", code, root], check=True)


def test_rebuild_leaves_nothing_of_what_was(tmp_path: Path) -> None:
    root = tmp_path / "d"
    _first(root)
    _rewrite(root, lambda text: text.replace('"schema_version": 1', '"schema_version": 99'))
    with Change.begin(root, rebuild=True) as change:
        assert change.previous is None
        assert change.previous_state is None
        change.add(*write_parts("exchanges", [_batch([9])], change.staging, f"{change.run}-0"))
        change.commit([])
    assert _by_manifest(root) == _by_folder(root) == ["f-c-9"]


def test_a_part_cannot_take_the_place_of_another(tmp_path: Path) -> None:
    root = tmp_path / "d"
    _first(root)
    with Change.begin(root, rebuild=True) as change:
        assert change.run == "000002"
        parts = write_parts("exchanges", [_batch([1])], change.staging, "000001-0")
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
        (lambda root: _rewrite(root, lambda t: t.replace('"exchanges/', '"../exchanges/')), "is damaged"),
        (lambda root: _rewrite(root, lambda t: t.replace("/day=1970-01-01/", "/day=today/")), "is damaged"),
        (lambda root: _rewrite(root, lambda t: t.replace('"schema_version": 1', '"schema_version": 2')),
         "is a dataset of version 2, and this program reads version 1"),
        (lambda root: next((root / "exchanges").rglob("part-000001-1*")).unlink(), "is missing"),
    ],
    ids=["no manifest", "cut", "other JSON", "key missing", "path outside", "path without a time", "version",
         "part missing"],
)  # fmt: skip
def test_damage_is_one_clear_line(tmp_path: Path, damage: Callable[[Path], None], said: str) -> None:
    root = tmp_path / "d"
    _first(root)
    damage(root)
    with pytest.raises(DatasetError) as raised:
        _by_manifest(root)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("path", ["../victim", "{victim}", "link/inner"], ids=["above", "absolute", "by a link"])
def test_a_journal_does_not_reach_outside(tmp_path: Path, path: str) -> None:
    root, victim = tmp_path / "d", tmp_path / "victim"
    _first(root)
    (victim / "inner").mkdir(parents=True)
    (root / "link").symlink_to(victim)
    (root / "_staging").mkdir()
    journal = {"moves": [], "removes": [path.format(victim=victim)]}
    (root / "_staging" / "journal.json").write_text(json.dumps(journal))
    with pytest.raises(DatasetError, match="is damaged"):
        Dataset.open(root)
    assert (victim / "inner").is_dir()


def test_a_dataset_is_not_made_among_other_files(tmp_path: Path) -> None:
    (tmp_path / "thesis.doc").write_text("dear")
    with pytest.raises(DatasetError, match="not empty"), Change.begin(tmp_path):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.doc"]
