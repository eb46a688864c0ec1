"""`table` does not import pandas, and says the same as where pandas is there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import wirewitness
from tests.app.program import environment
from tests.conftest import SAMPLES
from wirewitness.analyser.tables.tables import TABLES
from wirewitness.reports.base.formats.rows import csv_pieces

NAMES = [name for name in TABLES if name != "findings"]
PROGRAM = """
import sys
from pathlib import Path
from wirewitness.analyser.decoding.run.pandas_later import import_pandas_later
import_pandas_later()
from tests.app.test_tables_without_pandas import shown
sys.stdout.buffer.write(shown(Path(sys.argv[1])))
assert "pandas" not in sys.modules
"""


def shown(capture: Path) -> bytes:
    """All tables but the findings, as csv."""
    with wirewitness.read(capture, tables=NAMES) as analysis:
        return b"".join(
            piece
            for name in NAMES
            for piece in csv_pieces(analysis.batches(name), TABLES[name].column_names(), raw=True)
        )


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["kafka_stale_commit", "kafka_share_streams", "mongo_show_databases", "mqtt_resumed"])
def test_every_table_is_the_same(name: str) -> None:
    sample = SAMPLES / f"{name}.pcapng"
    said = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(sample)], capture_output=True, env=environment(), check=False
    )
    assert said.returncode == 0, said.stderr.decode()
    assert said.stdout == shown(sample)
