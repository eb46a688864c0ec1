"""A real capture of an idle connection that a firewall dropped, without its client's other connections."""

from __future__ import annotations

import pyarrow as pa
import pytest

import wirewitness
from tests.conftest import SAMPLES
from tests.support.rows import connection_from_rows
from wirewitness.analyser.analysis.all_rules import RULES
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.running import run

CAPTURE = SAMPLES / "incidents" / "idle_dropped-3" / "capture.pcapng.zst"
TABLES = ("flows", "expert_infos", "exchanges")
CLIENT, PORT = "10.77.0.14", 54754
OTHERS = f"SELECT flow_id FROM real_flows WHERE client_address = '{CLIENT}' AND client_port <> {PORT}"


@pytest.fixture(scope="module")
def tables() -> dict[str, pa.Table]:
    with wirewitness.read(CAPTURE) as analysis:
        return {name: pa.Table.from_batches(analysis.batches(name)) for name in TABLES}


def found(tables: dict[str, pa.Table], left_out: str) -> list[Finding]:
    """What NET101 says of these tables without the flows that an SQL query names."""
    con = connection_from_rows({}, own=True)
    for name, rows in tables.items():
        con.register(f"real_{name}", rows)
        con.execute(
            f"CREATE OR REPLACE TEMP VIEW {name} AS FROM real_{name} "
            f"WHERE flow_id IS NULL OR flow_id NOT IN ({left_out})"
        )
    return run(con, [RULES["NET101"]])


def test_the_only_connection_of_a_client_is_told_by_answers_to_others(tables: dict[str, pa.Table]) -> None:
    (one,) = found(tables, OTHERS)
    assert (one.numbers["kind"], one.confidence, one.numbers["address"]) == ("alone", "medium", CLIENT)
    assert "after 20.4 s of silence" in one.sentence
    assert "was sent 8 times and never ACKed, while the server responded to other clients." in one.sentence


def test_with_its_other_connections_these_tell(tables: dict[str, pa.Table]) -> None:
    (one,) = found(tables, "SELECT flow_id FROM real_flows WHERE false")
    assert (one.numbers["kind"], one.confidence) == ("unheard", "high")


def test_with_nobody_else_on_the_server_nothing_is_said(tables: dict[str, pa.Table]) -> None:
    assert found(tables, f"SELECT flow_id FROM real_flows WHERE client_port <> {PORT}") == []
