"""The tables of an analysis: types, order, selection, queries, and what happens when a rule breaks."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import wirewitness
from tests.conftest import SAMPLES
from wirewitness.analyser.analysis import findings_table
from wirewitness.analyser.analysis.all_rules import RULES
from wirewitness.analyser.analysis.analysis import Analysis, UnknownTable
from wirewitness.analyser.engine.facts.stages import Stage
from wirewitness.analyser.tables.queries import QueryError
from wirewitness.analyser.tables.tables import PANDAS_TYPES, TABLES, arrow_schema

FENCED = SAMPLES / "kafka_fenced_commit.pcapng"


@pytest.fixture(scope="module")
def fenced() -> Iterator[Analysis]:
    with wirewitness.read(FENCED) as analysis:
        yield analysis


@pytest.mark.parametrize("name", TABLES)
def test_every_table_has_its_registered_columns_and_types(fenced: Analysis, name: str) -> None:
    assert fenced.arrow(name).schema == arrow_schema(name)
    frame = fenced.table(name)
    assert {column.name: str(frame[column.name].dtype) for column in TABLES[name].columns} == {
        column.name: str(pd.Series(dtype=PANDAS_TYPES[column.kind]).dtype) for column in TABLES[name].columns
    }
    for column in TABLES[name].columns:
        if not column.nullable:
            assert not frame[column.name].isna().any(), column.name


@pytest.mark.parametrize("name", [name for name, table in TABLES.items() if "ts" in table.column_names()])
def test_rows_leave_in_the_order_of_time(fenced: Analysis, name: str) -> None:
    assert fenced.table(name)["ts"].is_monotonic_increasing


@pytest.mark.parametrize(
    ("sample", "stages"),
    [
        pytest.param("kafka_fenced_commit", {"kafka_offset_commits"}, id="Kafka"),
        pytest.param("mqtt_resumed", {"mqtt_deliveries"}, id="MQTT"),
        pytest.param("mongo_show_databases", {"mongo_cursors"}, id="MongoDB"),
    ],
)
def test_the_context_of_a_protocol_that_is_not_there_is_not_made(
    sample: str, stages: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    one_of_each = ("kafka_offset_commits", "mqtt_deliveries", "mongo_cursors")
    ran: set[str] = set()
    run = Stage.run

    def noted(stage: Stage, *given: Any) -> Any:
        ran.update(stage.makes)
        return run(stage, *given)

    monkeypatch.setattr(Stage, "run", noted)
    with wirewitness.read(SAMPLES / f"{sample}.pcapng") as analysis:
        rows = {name: analysis.arrow(name) for name in one_of_each}
    assert all(rows[name].schema == arrow_schema(name) for name in one_of_each)
    assert ran & {*one_of_each} == stages


def test_columns_where_and_limit_select(fenced: Analysis) -> None:
    got = fenced.arrow("exchanges", ["operation", "ts"], "operation = 'Heartbeat' AND status = 'ok'", 3)
    assert got.schema.names == ["operation", "ts"]
    assert got.column("operation").to_pylist() == ["Heartbeat"] * 3


def test_batches_and_parquet_hold_what_the_table_holds(fenced: Analysis, tmp_path: object) -> None:
    whole = fenced.arrow("messages")
    assert pa.Table.from_batches(list(fenced.batches("messages"))).equals(whole)
    path = f"{tmp_path}/messages.parquet"
    assert fenced.write_parquet("messages", path) == whole.num_rows
    with wirewitness.read(FENCED, tables=["messages"]) as again:
        straight = f"{tmp_path}/straight.parquet"
        again.write_parquet("messages", straight)
    assert pd.read_parquet(path).equals(pd.read_parquet(straight))


@pytest.mark.parametrize(
    "where",
    ["nonsense = 1", "1 = 1) ; DROP VIEW exchanges --", "operation IN (FROM read_csv('/etc/passwd'))", "1 ="],
    ids=["unknown column", "second statement", "other files", "syntax"],
)
def test_a_condition_that_cannot_be_is_one_clear_error(fenced: Analysis, where: str) -> None:
    with pytest.raises(QueryError) as caught:
        fenced.arrow("exchanges", where=where)
    assert "\n\n" not in str(caught.value)


@pytest.mark.parametrize(
    "query",
    ["SELECT * FROM '/etc/passwd'", "COPY exchanges TO '/tmp/stolen.csv'", "SELECT 1; SELECT 2", "SET threads = 9"],
)
def test_queries_reach_nothing_outside(fenced: Analysis, query: str) -> None:
    with pytest.raises(QueryError):
        fenced.sql(query)


def test_a_query_sees_every_table(fenced: Analysis) -> None:
    got = fenced.sql("SELECT count(*) AS n FROM exchanges e JOIN messages m ON m.message_id = e.request_message_id")
    assert got.column("n").to_pylist()[0] > 400


def test_unknown_tables_are_refused() -> None:
    with pytest.raises(UnknownTable):
        wirewitness.read(FENCED, tables=["no_such_table"])


def test_time_selects_rows_and_never_changes_ids() -> None:
    with wirewitness.read(FENCED, tables=["exchanges"]) as analysis:
        whole = analysis.table("exchanges")
    middle = whole["ts"].iloc[len(whole) // 2].value
    with wirewitness.read(FENCED, tables=["exchanges"], options=wirewitness.ReadOptions(from_ns=middle)) as analysis:
        later = analysis.table("exchanges")
    expected = whole[whole["ts"] >= pd.Timestamp(middle, tz="UTC")].reset_index(drop=True)
    pd.testing.assert_frame_equal(later, expected)


def test_a_broken_rule_costs_no_other_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(frames: object) -> list[object]:
        raise ZeroDivisionError("a fault of ours")

    every = [*RULES.values()]
    every[[*RULES].index("KAF103")] = dataclasses.replace(RULES["KAF103"], detect=broken, suspects=None)
    monkeypatch.setattr(findings_table, "rules_about", lambda _: every)
    with wirewitness.read(FENCED) as analysis:
        assert set(analysis.findings()["code"]) >= {"KAF105"}
        assert {failure.code for failure in analysis.failures} == {"KAF103"}
