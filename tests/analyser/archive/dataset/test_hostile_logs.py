"""Logs of Delta tables that somebody else wrote: refused in one line, before delta-rs counts or keeps what they say."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from tests.conftest import SAMPLES
from tests.support.datasets import make_dataset
from wirewitness.analyser.archive.dataset import bounds
from wirewitness.analyser.archive.dataset.delta import LOG, DeltaFolder
from wirewitness.analyser.archive.dataset.part import HIDDEN
from wirewitness.analyser.archive.dataset.place import DatasetError


@pytest.fixture
def folder(tmp_path: Path) -> DeltaFolder:
    make_dataset(tmp_path / "set", [SAMPLES / "mqtt_takeover_loop.pcapng"])
    return DeltaFolder(tmp_path / "set", "exchanges")


def test_a_version_that_the_log_has_not(folder: DeltaFolder) -> None:
    """delta-rs looks for each version before it: up to 2**62 there is no end."""
    with pytest.raises(DatasetError, match=f"no version {1 << 62}"):
        folder.parts(1 << 62)


def test_a_path_that_no_file_has(folder: DeltaFolder) -> None:
    (log,) = (folder.root / folder.prefix / LOG).glob("*.json")
    log.write_text(log.read_text().replace("-0000.parquet", "-\\u0000.parquet"))
    with pytest.raises(DatasetError, match="names a file"):
        folder.parts(0)


def checkpoint(folder: DeltaFolder) -> Path:
    """That of version 0, without the file that it was made of."""
    DeltaTable(str(folder.root / folder.prefix)).create_checkpoint()
    (made,) = (folder.root / folder.prefix / LOG).glob("*.parquet")
    return made


def test_a_checkpoint_is_read(folder: DeltaFolder) -> None:
    before = folder.parts(0)
    checkpoint(folder)
    assert folder.parts(0) == before


def test_a_checkpoint_that_names_a_file_twice(folder: DeltaFolder) -> None:
    file = checkpoint(folder)
    rows = pq.ParquetFile(file).read()
    pq.write_table(pa.concat_tables([rows, rows.filter(rows.column("add").is_valid())]), file)
    with pytest.raises(DatasetError, match="twice"):
        folder.parts(0)


def test_a_checkpoint_of_more_files_than_its_size_allows(folder: DeltaFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    file = checkpoint(folder)
    rows = pq.ParquetFile(file).read()
    last = rows.slice(rows.num_rows - 1)
    pq.write_table(pa.concat_tables([rows, *[last] * 10_000]), file, compression="zstd")
    monkeypatch.setattr(bounds, "CHECKPOINT_SLACK", 5)
    assert rows.num_rows < bounds.checkpoint_rows(file.stat().st_size) < 10_000
    with pytest.raises(DatasetError, match="rows, more than"):
        folder.parts(0)


@pytest.mark.parametrize(
    "place", ["", LOG, f"{LOG}/00000000000000000000.json"], ids=["table", "log", "file of the log"]
)
def test_links_are_not_followed(folder: DeltaFolder, tmp_path: Path, place: str) -> None:
    path = folder.root / folder.prefix / place
    path.rename(tmp_path / "hers")
    path.symlink_to(tmp_path / "hers")
    with pytest.raises(DatasetError, match=f"{path} is (a link|no file); "):
        folder.parts(0)


def test_a_link_to_all_hidden_tables_is_not_followed(folder: DeltaFolder, tmp_path: Path) -> None:
    (tmp_path / "hers").mkdir()
    (folder.root / folder.prefix).rename(tmp_path / "hers" / folder.table)
    (folder.root / HIDDEN).symlink_to(tmp_path / "hers")
    with pytest.raises(DatasetError, match=f"{HIDDEN} is a link; "):
        folder._replace(hidden=True).parts(0)


def test_a_link_to_a_dataset_is_followed(folder: DeltaFolder, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folder.root)
    assert folder._replace(root=tmp_path / "link").parts(0) == folder.parts(0)
