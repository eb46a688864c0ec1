"""`archive` goes on with a dataset that somebody else wrote: one clear line and status 2, and no link is followed."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyarrow import feather

from tests.app.program import run
from tests.conftest import SAMPLES
from tests.support.packets import pcap
from tests.support.wire import packets_of
from wirewitness.analyser.archive.dataset.place import MANIFEST, DatasetError
from wirewitness.analyser.archive.dataset.state_files import check_files, kept_table
from wirewitness.analyser.decoding.rows.timeorder import FLOW

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SAMPLE = SAMPLES / "kafka_sasl.pcapng"
SHARES = 2


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A capture in two files, so that connections go on from one run to the next."""
    packets = packets_of(SAMPLE)
    ends = [0, len(packets) // 2, len(packets)]
    folder = tmp_path_factory.mktemp("captures")
    paths = [folder / f"{number}.pcap" for number in range(2)]
    for path, (begin, end) in zip(paths, pairwise(ends), strict=True):
        path.write_bytes(pcap(packets[begin:end]))
    return paths


@pytest.fixture(scope="module")
def dataset(spark: SparkSession, captures: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first of them is in it."""
    place = tmp_path_factory.mktemp("data") / "set"
    done = run("archive", captures[0], "--output", place, "--shares", str(SHARES), "--quiet")
    assert done.returncode == 0, done.stderr
    return place


def files(place: Path, name: str) -> Iterator[Path]:
    found = sorted(place.glob(f"_state/*/share-*/{name}"))
    assert found
    return iter(found)


def state_values(change: Callable[[str], str]) -> Callable[[Path], None]:
    """Another JSON in every row of what is known of open connections."""

    def changed(place: Path) -> None:
        for path in files(place, "state.arrow"):
            table = feather.read_table(path)
            values = [change(text) for text in table.column("value").to_pylist()]
            table = table.set_column(0, table.schema.field(0), pa.array(values, pa.string()))
            feather.write_feather(table, str(path))

    return changed


def packed(place: Path) -> None:
    """Zeros: a gigabyte of them in each file of some kilobytes."""
    for path in files(place, "state.arrow"):
        table = feather.read_table(path)
        rows = pa.table([pa.array([None], pa.string()), pa.array([bytes(1 << 30)], pa.binary())], schema=table.schema)
        feather.write_feather(rows, str(path), compression="zstd")


def unmarked(name: str) -> Callable[[Path], None]:
    """As earlier versions left it."""

    def changed(place: Path) -> None:
        for path in files(place, name):
            feather.write_feather(feather.read_table(path).replace_schema_metadata(None), str(path))

    return changed


def other_columns(name: str) -> Callable[[Path], None]:
    def changed(place: Path) -> None:
        for path in files(place, name):
            rows = feather.read_table(path).num_rows
            feather.write_feather(pa.table({"x": pa.array([{"a": 1}] * rows)}), str(path))

    return changed


def same_names(name: str) -> Callable[[Path], None]:
    """Every column holds text, or lacks its values."""

    def changed(place: Path) -> None:
        for path in files(place, name):
            table = feather.read_table(path)
            columns = [column.cast(pa.string()) for column in table.columns]
            feather.write_feather(pa.table(columns, table.schema.names), str(path))

    return changed


def nobodys_rows(name: str) -> Callable[[Path], None]:
    def changed(place: Path) -> None:
        for path in files(place, name):
            table = feather.read_table(path)
            at = table.schema.get_field_index(FLOW)
            nothing = pa.nulls(table.num_rows, pa.int64())
            feather.write_feather(table.set_column(at, table.schema.field(at), nothing), str(path))

    return changed


def bytes_of(name: str, held: bytes) -> Callable[[Path], None]:
    def changed(place: Path) -> None:
        for path in files(place, name):
            path.write_bytes(held)

    return changed


def gone(place: Path) -> None:
    shutil.rmtree(next((place / "_state").iterdir()))


def settings(**changes: object) -> Callable[[Path], None]:
    def changed(place: Path) -> None:
        document = json.loads((place / MANIFEST).read_text())
        document["settings"] |= changes
        (place / MANIFEST).write_text(json.dumps(document))

    return changed


def objects_of_numbers(text: str) -> str:
    """What an object knows of itself is of another kind."""
    told = json.loads(text)
    if told[0] == "dict":
        return json.dumps(["dict", *(5 if number % 2 else one for number, one in enumerate(told[1:]))])
    return text


HOSTILE = {
    "numbers where objects were": state_values(objects_of_numbers),
    "deep JSON": state_values(lambda _: "[" * 100_000),
    "huge numbers": state_values(lambda text: text.replace("0", str(10**30)) if '"object"' not in text else text),
    "a state of other columns": other_columns("state.arrow"),
    "flows of other columns": other_columns("flows.arrow"),
    "flows of the same names": same_names("flows.arrow"),
    "flows without a key": nobodys_rows("flows.arrow"),
    "what brokers told, as other columns": other_columns("told-kafka_brokers.arrow"),
    "what brokers told, as text": same_names("told-kafka_brokers.arrow"),
    "a gigabyte of zeros": packed,
    "flows of an earlier version": unmarked("flows.arrow"),
    "the manifest of an earlier version's state": settings(state_format=6),
    "no Arrow": bytes_of("flows.arrow", b"ARROW1\0\0" + b"\xff" * 4000 + b"ARROW1"),
    "no state": gone,
    "a million shares": settings(shares=1_000_000),
    "no shares": settings(shares=-1),
    "names that are none": settings(topic_ids={"a": [1]}),
}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_state(
    spark: SparkSession, dataset: Path, captures: list[Path], tmp_path: Path, change: Callable[[Path], None]
) -> None:
    place = Path(shutil.copytree(dataset, tmp_path / "set"))
    change(place)
    before = (place / MANIFEST).read_bytes()
    done = run("archive", *captures, "--output", place, "--quiet")
    lines = done.stderr.decode().splitlines()
    assert (done.returncode, len(lines)) == (2, 1), lines
    assert "wirewitness archive --rebuild" in lines[0] or "(archive --rebuild)" in lines[0]
    assert (place / MANIFEST).read_bytes() == before


@pytest.mark.parametrize("words", [["CAPTURE"], ["--compact"]])
@pytest.mark.parametrize("planted", ["file", "folder", "state", "part"])
def test_links_in_what_an_archive_goes_on_from(
    spark: SparkSession, dataset: Path, captures: list[Path], tmp_path: Path, planted: str, words: list[str]
) -> None:
    place = Path(shutil.copytree(dataset, tmp_path / "set"))
    told = next(files(place, "state.arrow"))
    path = {
        "file": told, "folder": told.parent, "state": place / "_state", "part": next(place.rglob("part-*.parquet")),
    }[planted]  # fmt: skip
    hers = tmp_path / "hers"
    shutil.move(path, hers)
    path.symlink_to(hers)
    before = sorted(tmp_path.rglob("*"))
    done = run("archive", *(captures[1] if word == "CAPTURE" else word for word in words), "--output", place, "--quiet")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
    assert "link" in done.stderr.decode() or "is no file" in done.stderr.decode()
    assert {*sorted(tmp_path.rglob("*"))} - {place / "_lock", place / "_staging"} == {*before} - {place / "_lock"}


def test_a_pipe_in_place_of_a_part_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "part-1.parquet")
    with pytest.raises(DatasetError, match="is no file"):
        check_files(tmp_path, None, ["part-1.parquet"])
    with pytest.raises(DatasetError, match="is no file"):
        kept_table(tmp_path / "part-1.parquet", pa.schema([]))
