"""Planning statements is what `analyse` does most of the time on a small capture: their characters are counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner

from wirewitness.app.cli.main import cli

SAMPLES = Path(__file__).resolve().parents[2] / "sample_pcaps"
# At most so many characters; who makes them fewer lowers the number here.
MOST = {"mqtt_enhanced_auth": 62_000, "mongo_show_databases": 84_000, "mqtt_takeover_loop": 107_000,
        "kafka_admin": 326_000}  # fmt: skip


class _Counting:
    """A connection of DuckDB that adds up the statements it is given."""

    def __init__(self, connection: Any, sizes: list[int]) -> None:
        self._connection, self._sizes = connection, sizes

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._connection, name)
        if name not in ("execute", "sql", "query"):
            return real

        def counted(statement: Any, *more: Any) -> Any:
            self._sizes.append(len(statement) if isinstance(statement, str) else len(statement.query))
            given = real(statement, *more)
            return self if given is self._connection else given

        return counted


@pytest.mark.parametrize("name", MOST)
def test_a_small_capture_is_asked_little(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    connect = duckdb.connect
    monkeypatch.setattr(duckdb, "connect", lambda *some, **more: _Counting(connect(*some, **more), sizes))
    assert CliRunner().invoke(cli, ["analyse", str(SAMPLES / f"{name}.pcapng")]).exit_code in (0, 1)
    assert 10_000 < sum(sizes) <= MOST[name]
