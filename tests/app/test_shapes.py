"""`wirewitness shapes` on what real drivers did."""

from __future__ import annotations

import csv
import io
import json

import pytest
from click.testing import CliRunner, Result

from tests.conftest import SAMPLES
from wirewitness.app.cli.main import cli

CAPTURE = str(SAMPLES / "mongo_shapes_and_errors.pcapng")


def shapes(*options: str, capture: str = CAPTURE) -> Result:
    return CliRunner().invoke(cli, ["shapes", capture, "--quiet", *options])


def rows(*options: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(shapes("--format", "csv", *options).stdout)))


def test_the_columns_of_mloginfo_are_there() -> None:
    assert set(rows()[0]) >= {
        "namespace", "operation", "pattern", "count", "min_ms", "max_ms", "p95_ms", "sum_ms", "mean_ms",
    }  # fmt: skip


def test_commands_that_differ_in_values_only_are_one_shape() -> None:
    one_by_one = [row for row in rows() if row["namespace"] == "shop.customers" and row["operation"] == "find"]
    assert [(row["count"], row["pattern"]) for row in one_by_one] == [("26", '{"filter":{"_id":"?number"}}')]


@pytest.mark.parametrize(
    ("sort", "column"),
    [("sum", "sum_ms"), ("count", "count"), ("max", "max_ms"), ("mean", "mean_ms"), ("p95", "p95_ms")],
)
def test_sorted_by_what_is_asked_for(sort: str, column: str) -> None:
    found = [float(row[column]) for row in rows("--sort", sort) if row[column]]
    assert found == sorted(found, reverse=True)
    assert len(found) > 5


def test_numbers_agree_with_the_commands() -> None:
    sql = "select count(*) as n, sum(latency_ms) as ms from mongo_commands where collection is not null"
    done = CliRunner().invoke(cli, ["query", CAPTURE, sql, "--format", "jsonl", "--quiet"])
    whole = json.loads(done.stdout)
    found = rows()
    assert sum(int(row["count"]) for row in found) == whole["n"]
    assert sum(float(row["sum_ms"] or 0) for row in found) == pytest.approx(whole["ms"], abs=0.01)


def test_all_includes_commands_without_a_collection() -> None:
    assert "endSessions" not in {row["operation"] for row in rows()}
    assert "endSessions" in {row["operation"] for row in rows("--all")}


@pytest.mark.parametrize("width", [70, 200])
def test_the_table_for_people_names_the_slowest_first(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    text = shapes("--limit", "3").stdout
    assert "shop.sales" in text
    assert '{"pipeline":[{"$match"' in text


def test_other_captures_say_that_there_is_nothing() -> None:
    done = shapes(capture=str(SAMPLES / "kafka_sasl.pcapng"))
    assert (done.exit_code, done.stdout) == (0, "No MongoDB command on a collection was seen.\n")
