"""Messages looked up in a dataset that somebody else wrote: one clear line and status 2, whatever its rows say."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.app.program import run
from tests.conftest import SAMPLES
from tests.support.datasets import make_dataset
from wirewitness.analyser.archive.dataset.place import MANIFEST


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tables = ["captures", "flows", "messages", "exchanges"]
    return make_dataset(tmp_path_factory.mktemp("data") / "set", [SAMPLES / "mongo_show_databases.pcapng"], tables)


@pytest.fixture
def place(dataset: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(dataset, tmp_path / "set"))


def set_values(place: Path, table: str, column: str, value: object) -> None:
    """All rows of the table have this value there."""
    for path in (place / table).rglob("*.parquet"):
        rows = pq.ParquetFile(path).read()
        at = rows.schema.names.index(column)
        values = pa.array([value] * rows.num_rows, rows.schema.field(at).type)
        pq.write_table(rows.set_column(at, rows.schema.field(at), values), path)


def first_message(dataset: Path) -> dict[str, Any]:
    """Its row."""
    row: dict[str, Any] = json.loads(run("table", "messages", dataset, "--limit", "1", "--format", "jsonl").stdout)
    return row


def look_up(dataset: Path, place: Path, command: str) -> CompletedProcess[bytes]:
    """What a command says of the first message of a dataset, or of its flow, asked of a copy that was changed."""
    row = first_message(dataset)
    if command == "show":
        return run("show", place, row["message_id"])
    return run("extract", place, "--flow", row["flow_id"], "-o", place.parent / "out.pcapng")


def test_looked_up_in_a_dataset_as_it_was(dataset: Path, place: Path) -> None:
    assert look_up(dataset, place, "show").returncode == 0
    assert look_up(dataset, place, "extract").returncode == 0


@pytest.mark.parametrize("command", ["show", "extract"])
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_nobody_waits_for_a_pipe_in_place_of_a_capture(dataset: Path, place: Path, command: str, kind: str) -> None:
    capture = place.parent / "capture" if kind == "pipe" else Path("/dev/zero")
    if kind == "pipe":
        os.mkfifo(capture)
    manifest = json.loads((place / MANIFEST).read_text())
    manifest["inputs"][0]["path"] = str(capture)
    (place / MANIFEST).write_text(json.dumps(manifest))
    for table in ("flows", "messages"):
        set_values(place, table, "file", str(capture))
    done = look_up(dataset, place, command)
    assert done.returncode == 2
    assert done.stderr.decode() == f"wirewitness: {capture} is no file, and a capture of this dataset was.\n"


@pytest.mark.parametrize("command", ["show", "extract"])
def test_rows_of_a_capture_that_the_dataset_has_not(dataset: Path, place: Path, command: str) -> None:
    for table in ("flows", "messages"):
        set_values(place, table, "file", "other\x1b[31m.pcapng")
    done = look_up(dataset, place, command)
    assert done.returncode == 2
    assert done.stderr.decode().startswith("wirewitness: ")
    assert "a capture that is none of these: other\\x1b[31m.pcapng" in done.stderr.decode()


FAR = 1 << 62
WRONG: list[tuple[str, str, object, str]] = [
    ("flows", "file", None, "a capture that is none of these: None"),
    ("flows", "first_packet", FAR, "such a first_packet"),
    ("messages", "packet_first", None, "such a packet_first"),
    ("messages", "packet_last", None, "such a packet_last"),
    ("messages", "packet_last", FAR, "such a packet_last"),
    ("messages", "line", FAR, "such a line"),
    ("messages", "length_bytes", -5, "such a length_bytes"),
    ("messages", "length_bytes", FAR, "such a length_bytes"),
    ("messages", "ts", (1 << 63) - 1, "such a ts_ns"),
    ("messages", "ts", -FAR, "rows of messages cannot be read"),
    ("flows", "ts_first", (1 << 63) - 1, "such a first_ns"),
    ("exchanges", "response_message_id", "a", "response_message_id is none"),
]


@pytest.mark.parametrize(("table", "column", "value", "told"), WRONG)
def test_rows_that_no_capture_has(
    dataset: Path, place: Path, table: str, column: str, value: object, told: str
) -> None:
    set_values(place, table, column, value)
    done = look_up(dataset, place, "show")
    lines = done.stderr.decode().splitlines()
    assert (done.returncode, len(lines)) == (2, 1), lines
    assert told in lines[0]


def test_an_end_that_no_flow_has(dataset: Path, place: Path) -> None:
    set_values(place, "flows", "client_port", None)
    assert look_up(dataset, place, "extract").returncode == 0


def test_a_direction_that_no_message_has(dataset: Path, place: Path) -> None:
    set_values(place, "messages", "direction", "a")
    done = run("show", place, "--packet", str(first_message(dataset)["packet_last"]))
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
