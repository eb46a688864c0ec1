"""Datasets and folders of `live` that somebody else wrote, functions that are not there: one clear line, status 2."""

from __future__ import annotations

import json
import os
import shutil
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.app.captures import write_capture
from tests.app.program import run
from tests.conftest import ROOT
from tests.support.datasets import make_dataset
from wirewitness.analyser.archive.dataset.dataset import Dataset
from wirewitness.analyser.archive.dataset.delta import LOG
from wirewitness.analyser.archive.dataset.manifest import FORMAT, LAYOUT
from wirewitness.analyser.archive.dataset.place import MANIFEST, DatasetError
from wirewitness.analyser.tables.tables import SCHEMA_VERSION
from wirewitness.app.dashboard.opened import META, Opened, TablesDamaged
from wirewitness.app.dashboard.snapshots import MARK, is_running, newest, title_of

PINNED = {"version": 0, "rows": 1, "bytes": 1, "parts": 1}
INPUT = {
    "path": "a", "key": "k", "bytes": 1, "packets": 1, "first_ns": None, "last_ns": 1, "status": "read", "reason": None,
    "run": "1",
}  # fmt: skip
GOOD: dict[str, Any] = {
    "format": FORMAT, "layout": LAYOUT, "schema_version": SCHEMA_VERSION, "runs": [], "inputs": [], "settings": {},
    "state": None, "tables": {}, "hidden": {},
}  # fmt: skip
WRONG = [
    {"state": 5},
    {"inputs": {"a": 1}},
    {"inputs": 3},
    {"inputs": [{**INPUT, "path": "a\0b"}]},
    {"tables": [1]},
    {"hidden": {"../messages": PINNED}},
    {"tables": {"messages": 1}},
    {"runs": [[]]},
    {"settings": 3},
    *({"inputs": [{**INPUT, name: [1]}]} for name in INPUT),
    *({"tables": {"messages": {**PINNED, name: value}}} for name in PINNED for value in ({"a": 1}, True, -1)),
    {"tables": {"messages": {**PINNED, "version": 10**30}}},
    {"runs": [{"name": "1", "ended_ns": float("inf")}]},
    {"settings": {"tables": 5}},
    {"settings": {"topic_ids": ["a"]}},
    {"settings": {"shares": "3"}},
    {"runs": [{"name": str(10**300), "ended_ns": 1}]},
    {"runs": [{"name": "-5", "ended_ns": 1}]},
]


@pytest.mark.parametrize("change", WRONG, ids=str)
def test_wrong_types_in_a_manifest(tmp_path: Path, change: dict[str, Any]) -> None:
    (tmp_path / MANIFEST).write_text(json.dumps({**GOOD, **change}))
    done = run("analyse", tmp_path)
    lines = done.stderr.decode().splitlines()
    assert (done.returncode, len(lines)) == (2, 1), lines
    assert "is damaged" in lines[0]


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "[]", "3", "null", '{"format": []}'])
def test_json_that_is_no_manifest(tmp_path: Path, text: str) -> None:
    (tmp_path / MANIFEST).write_text(text)
    done = run("analyse", tmp_path)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_dataset(tmp_path_factory.mktemp("data") / "set", [ROOT / "sample_pcaps/mongo_show_databases.pcapng"])


@pytest.mark.parametrize("damage", ["gone", "another name", "text", "list"])
@pytest.mark.parametrize(
    "words", [["table", "messages", "SET"], ["analyse", "SET"], ["query", "SET", "select max(ts) from messages"]]
)
def test_parts_with_other_columns(dataset: Path, tmp_path: Path, words: list[str], damage: str) -> None:
    place = Path(shutil.copytree(dataset, tmp_path / "set"))
    for path in (place / "messages").rglob("*.parquet"):
        rows = pq.read_table(path)
        at = rows.schema.names.index("stream_offset")
        if damage == "gone":
            rows = rows.remove_column(at)
        elif damage == "another name":
            rows = rows.rename_columns(["x" if name == "stream_offset" else name for name in rows.schema.names])
        else:
            values = ["text" if damage == "text" else [1]] * rows.num_rows
            rows = rows.set_column(at, "stream_offset", pa.array(values))
        pq.write_table(rows, path)
    done = run(*(place if word == "SET" else word for word in words))
    lines = done.stderr.decode().splitlines()
    assert (done.returncode, len(lines)) == (2, 1), lines
    assert "is damaged" in lines[0]
    assert "stream_offset" in lines[0]


@pytest.mark.parametrize(
    "words", [["table", "messages", "SET"], ["analyse", "SET"], ["query", "SET", "select max(ts) from messages"]]
)
def test_nobody_waits_for_a_pipe_in_place_of_a_part(dataset: Path, tmp_path: Path, words: list[str]) -> None:
    place = Path(shutil.copytree(dataset, tmp_path / "set"))
    for path in (place / "messages").rglob("*.parquet"):
        path.unlink()
        os.mkfifo(path)
    done = run(*(place if word == "SET" else word for word in words))
    lines = done.stderr.decode().splitlines()
    assert (done.returncode, len(lines)) == (2, 1), lines
    assert "it is no file" in lines[0]


def test_nobody_waits_for_a_pipe_in_place_of_a_manifest_or_log(dataset: Path, tmp_path: Path) -> None:
    place = Path(shutil.copytree(dataset, tmp_path / "set"))
    (log,) = (place / "messages" / LOG).glob("*.json")
    log.unlink()
    os.mkfifo(log)
    with pytest.raises(DatasetError, match="no file"):
        Dataset.open(place).parts("messages")
    (place / MANIFEST).unlink()
    os.mkfifo(place / MANIFEST)
    with pytest.raises(DatasetError, match="no file"):
        Dataset.open(place)


def test_nobody_waits_for_a_pipe_in_a_folder_of_live(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "current")
    assert newest(tmp_path) is None
    (tmp_path / META).write_text(json.dumps({"tables": ["messages"]}))
    os.mkfifo(tmp_path / "messages.parquet")
    with pytest.raises(TablesDamaged, match="no file"):
        Opened.kept(tmp_path)


@pytest.mark.parametrize(
    "text", ["{}", "[]", "", "[" * 100_000, '{"process": "x"}', '{"process": 1e99}', '{"process": -1}']
)
def test_a_folder_of_live_that_says_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / MARK).write_text(text)
    assert not is_running(tmp_path)
    assert title_of(tmp_path) == tmp_path.name


@pytest.mark.parametrize("text", [b"\xff\xfe", b"../..", b"a\0b", b""])
def test_a_folder_of_live_whose_newest_tables_are_nowhere(tmp_path: Path, text: bytes) -> None:
    (tmp_path / MARK).write_text("{}")
    (tmp_path / "current").write_bytes(text)
    assert newest(tmp_path) is None


@pytest.mark.parametrize("damaged", ["places.json", "messages.parquet", "flows.parquet", "digest"])
def test_what_show_keeps_is_made_anew_when_it_is_damaged(tmp_path: Path, damaged: str) -> None:
    capture = write_capture(tmp_path / "a.pcap")
    before = run("show", capture, "--packet", "4", XDG_CACHE_HOME=str(tmp_path))
    (file,) = tmp_path.rglob(damaged)
    for held in (b"[1]", b"[" * 100_000, file.read_bytes()[:-1] + b"!"):
        file.write_bytes(held)
        done = run("show", capture, "--packet", "4", XDG_CACHE_HOME=str(tmp_path))
        assert (done.returncode, done.stdout, done.stderr) == (before.returncode, before.stdout, before.stderr)
        assert file.read_bytes() != held


@pytest.mark.parametrize(
    "query", ["select excel_text(1, 'h')", "select * from read_xlsx('a.xlsx')", "select stem('a', 'porter')"]
)
def test_functions_of_extensions(tmp_path: Path, query: str) -> None:
    done = run("query", write_capture(tmp_path / "a.pcap"), query)
    lines = done.stderr.decode().splitlines()
    assert (done.returncode, len(lines)) == (2, 1), lines


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, "{}", "5", "not json", '[{"file": 5, "packet": 1}]', '[{"packet": "1"}]'],
)
def test_what_findings_of_a_dataset_hold(tmp_path: Path, text: str) -> None:
    capture = ROOT / "sample_pcaps/mqtt_qos2_stuck.pcapng"
    place = make_dataset(tmp_path / "set", [capture], tables=["captures", "flows", "messages", "exchanges", "findings"])
    for path in (place / "findings").rglob("*.parquet"):
        rows = pq.read_table(path)
        for name in ("evidence", "numbers"):
            at = rows.schema.names.index(name)
            rows = rows.set_column(at, rows.schema.field(at), pa.array([text] * rows.num_rows))
        pq.write_table(rows, path)
    told = run("table", "findings", place, "--format", "jsonl")
    assert told.returncode == 0, told.stderr
    first = json.loads(told.stdout.splitlines()[0])["finding_id"]
    done = run("extract", place, "--finding", first, "--output", tmp_path / "out.pcapng")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
    assert run("analyse", place, "--format", "json").returncode == 0


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset with rows in all that reports read first."""
    return make_dataset(tmp_path_factory.mktemp("found") / "set", [ROOT / "sample_pcaps/mqtt_qos2_stuck.pcapng"])


READERS = [
    ["table", "TABLE", "SET"],
    ["table", "TABLE", "SET", "--format", "jsonl"],
    ["analyse", "SET"],
    ["analyse", "SET", "--format", "json"],
    ["query", "SET", "select * from TABLE"],
]


@pytest.mark.parametrize(
    ("table", "words"),
    [*product(("exchanges", "findings", "messages"), READERS), ("exchanges", ["otel", "SET"])],
    ids=lambda one: one if isinstance(one, str) else " ".join(one),
)
def test_no_value_where_one_must_be(findings: Path, tmp_path: Path, table: str, words: list[str]) -> None:
    """Also in a part that is not the first, and with statistics that tell nothing of it."""
    place = Path(shutil.copytree(findings, tmp_path / "set"))
    last = max((place / table).rglob("*.parquet"))
    rows = pq.ParquetFile(last).read()
    for at, field in enumerate(rows.schema):
        if not field.nullable:
            rows = rows.set_column(at, field.with_nullable(True), pa.nulls(rows.num_rows, field.type))
    pq.write_table(rows, last, write_statistics=False)
    done = run(*({"SET": str(place)}.get(word, word.replace("TABLE", table)) for word in words))
    lines = done.stderr.decode().splitlines()
    assert (done.returncode, len(lines)) == (2, 1), lines
    assert "lacks values" in lines[0]


def test_a_part_that_another_program_wrote_again(findings: Path, tmp_path: Path) -> None:
    """It declares nothing of values, and has all of them."""
    place = Path(shutil.copytree(findings, tmp_path / "set"))
    before = run("table", "exchanges", place, "--format", "jsonl").stdout
    for path in (place / "exchanges").rglob("*.parquet"):
        rows = pq.ParquetFile(path).read()
        pq.write_table(rows.cast(pa.schema([field.with_nullable(True) for field in rows.schema])), path)
    done = run("table", "exchanges", place, "--format", "jsonl")
    assert (done.returncode, done.stdout) == (0, before)


def test_a_time_range_does_not_read_what_lies_outside(findings: Path, tmp_path: Path) -> None:
    place = Path(shutil.copytree(findings, tmp_path / "set"))
    last = max((place / "exchanges").rglob("*.parquet"))
    rows = pq.ParquetFile(last).read()
    at = rows.schema.names.index("flow_id")
    pq.write_table(rows.set_column(at, pa.field("flow_id", pa.string()), pa.nulls(rows.num_rows, pa.string())), last)
    assert run("table", "exchanges", place, "--to", "1990-01-01").returncode == 0
    assert run("table", "exchanges", place).returncode == 2


@pytest.mark.parametrize("held", [b"", b"PAR1" + b"\xff" * 100 + b"PAR1"])
def test_a_part_that_is_no_parquet_behind_one_that_is(findings: Path, tmp_path: Path, held: bytes) -> None:
    place = Path(shutil.copytree(findings, tmp_path / "set"))
    max((place / "messages").rglob("*.parquet")).write_bytes(held)
    done = run("table", "messages", place)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
