"""The examples of docs/spark.md, run as they stand there."""

from __future__ import annotations

import doctest
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from tests.conftest import ROOT, SAMPLES
from wirewitness.analyser.archive.decode.stream import AT_ONCE, CAPTURES, LOST, SETTLED, TAKEN, stream_of
from wirewitness.analyser.archive.decode.table_reader import SHARDS, SourceOptions
from wirewitness.analyser.archive.ingest.arriving import SETTLED_S

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = (ROOT / "docs" / "spark.md").read_text()
PLACES = ("CAPTURES", "NOTES", "CHECKPOINT", "ROWS")


@pytest.mark.exhaustive
@pytest.mark.timeout(900)
def test_the_page_shows_what_spark_says(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "CAPTURES").mkdir()
    shutil.copy(SAMPLES / "kafka_fenced_commit.pcapng", tmp_path / "CAPTURES")
    text = re.sub(rf'"({"|".join(PLACES)})"', lambda found: repr(str(tmp_path / found[1])), PAGE)
    examples = doctest.DocTestParser().get_doctest(text, {"spark": spark}, "spark.md", None, None)
    assert len(examples.examples) >= 7
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE, verbose=False)
    assert runner.run(examples, out=said.append).failed == 0, "".join(said)


def test_the_page_has_every_option_and_its_default(tmp_path: Path) -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \|.*\| ([^|]*?) ?\|$", PAGE, re.MULTILINE))
    assert (rows["settled"], rows["captures"], rows["shares"]) == (f"{SETTLED_S:g}", str(CAPTURES), str(SHARDS))
    assert {TAKEN, SETTLED, AT_ONCE, LOST} <= rows.keys()
    given = {"table": "exchanges", "path": str(tmp_path), "taken": str(tmp_path / "taken")}
    assert stream_of(SourceOptions.of(given), pa.schema([]), [str(tmp_path)], given).initialOffset() == {"batch": 0}
