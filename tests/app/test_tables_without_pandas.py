"""`table` does not import pandas, and says the same as where pandas is there."""

from __future__ import annotations

import subprocess
import sys

import pytest

from analyser.registry.tables import TABLES
from tests.app.program import environment, run
from tests.conftest import SAMPLES

PROGRAM = """
import sys
from click.testing import CliRunner
from app.cli.main import cli
for name in sys.argv[2:]:
    result = CliRunner().invoke(cli, ["table", name, sys.argv[1], "--format", "csv"])
    assert result.exit_code == 0, (name, result.output, result.stderr)
    sys.stdout.write(result.stdout)
    assert "pandas" not in sys.modules, name
"""
NAMES = [name for name in TABLES if name != "findings"]


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["kafka_stale_commit", "kafka_share_streams", "mongo_show_databases", "mqtt_resumed"])
def test_every_table_is_the_same(name: str) -> None:
    sample = SAMPLES / f"{name}.pcapng"
    said = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(sample), *NAMES], capture_output=True, text=True, env=environment(),
        check=False,
    )  # fmt: skip
    assert said.returncode == 0, said.stderr
    expected = [run("table", name, sample, "--format", "csv").stdout.decode() for name in NAMES]
    assert said.stdout == "".join(expected)
