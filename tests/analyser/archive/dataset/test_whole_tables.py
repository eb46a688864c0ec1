"""Tables that are read as a whole have no more rows than their files can hold of real ones."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wirewitness
from tests.conftest import SAMPLES
from tests.support.datasets import make_dataset
from wirewitness.analyser.archive.dataset.bounds import WHOLE, WHOLE_SLACK, whole_rows
from wirewitness.analyser.archive.dataset.place import DatasetError


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return make_dataset(tmp_path / "set", [SAMPLES / "mqtt_takeover_loop.pcapng"])


def repeat(place: Path, table: str, rows: int) -> int:
    """Each row of a table so often that they are about so many; the bytes of its parts."""
    paths = [*(place / table).rglob("*.parquet")]
    for path in paths:
        own = pq.ParquetFile(path).read()
        pq.write_table(pa.concat_tables([own] * (rows // own.num_rows // len(paths) + 1)), path, compression="zstd")
    return sum(path.stat().st_size for path in paths)


@pytest.mark.parametrize("table", WHOLE)
def test_more_rows_than_their_bytes_hold_are_refused(place: Path, table: str) -> None:
    size = repeat(place, table, 5 * WHOLE_SLACK)
    assert whole_rows(size) < 5 * WHOLE_SLACK
    with (
        wirewitness.read(place) as analysis,
        pytest.raises(DatasetError, match=f"{table} is damaged .it has 5"),
    ):
        analysis.arrow(table)


@pytest.mark.parametrize("table", WHOLE)
def test_some_thousand_rows_are_read(place: Path, table: str) -> None:
    repeat(place, table, WHOLE_SLACK // 2)
    with wirewitness.read(place) as analysis:
        assert analysis.arrow(table).num_rows > WHOLE_SLACK // 2
