"""Old names of tables and columns: what can still be read by them, and what says the names of now."""

from __future__ import annotations

import json
from itertools import chain

import pytest
from click.testing import CliRunner, Result

import wirewitness
from tests.conftest import SAMPLES
from wirewitness.analyser.analysis.analysis import Analysis
from wirewitness.analyser.tables.queries import QueryError
from wirewitness.analyser.tables.renamed import RENAMED_COLUMNS, RENAMED_TABLES
from wirewitness.analyser.tables.tables import ALL_TABLES, OLD_TABLES
from wirewitness.app.cli.main import cli

pytestmark = pytest.mark.filterwarnings("ignore:table kafka_reading_runs is now:DeprecationWarning")
CAPTURE = str(SAMPLES / "kafka_fenced_commit.pcapng")
OLD, NEW = "kafka_reading_runs", "kafka_fetch_ranges"
NOTE = f"note: table {OLD} is now {NEW}; the old name goes with the next release\n"
PAIRS = [(table, old, new) for table, columns in RENAMED_COLUMNS.items() for old, new in columns.items()]


@pytest.fixture(scope="module")
def analysis() -> Analysis:
    return wirewitness.read(CAPTURE)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


def rows(*arguments: str) -> list[dict[str, object]]:
    done = run(*arguments, "--format", "jsonl")
    assert (done.exit_code, done.stderr) == (0, NOTE)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_every_name_of_now_is_registered_and_no_old_one_is() -> None:
    assert set(RENAMED_TABLES.values()) <= set(ALL_TABLES)
    assert not set(RENAMED_TABLES) & set(ALL_TABLES)
    for table, old, new in PAIRS:
        assert new in ALL_TABLES[table].column_names()
        assert old not in ALL_TABLES[table].column_names()


@pytest.mark.parametrize(("old", "new"), RENAMED_TABLES.items())
def test_a_renamed_table_has_its_old_columns_and_the_same_rows(analysis: Analysis, old: str, new: str) -> None:
    then = RENAMED_COLUMNS.get(new, {})
    with pytest.warns(DeprecationWarning, match=f"table {old} is now {new}"):
        found = analysis.arrow(old)
    assert tuple(found.schema.names) == OLD_TABLES[old].column_names()
    assert found.rename_columns([then.get(name, name) for name in found.schema.names]).equals(analysis.arrow(new))


def test_the_command_table_reads_it_with_columns_and_conditions_of_then() -> None:
    found = rows("table", OLD, CAPTURE, "--columns", "began_by,first_offset", "--where", "began_by = 'offset'")
    assert found
    assert {tuple(row) for row in found} == {("began_by", "first_offset")}


def test_queries_read_it_also_beside_its_name_of_now() -> None:
    (row,) = rows(
        "query", CAPTURE, f"select count(began_by) as n, (select count(started_by) from {NEW}) as m from {OLD}"
    )
    assert row["n"] == row["m"] != 0


def test_quiet_says_nothing() -> None:
    assert run("table", OLD, CAPTURE, "--quiet", "--limit", "1").stderr == ""


def test_the_list_of_tables_says_what_was_renamed_and_the_columns_are_those_of_now() -> None:
    listed = run("tables").stdout
    assert "Renamed" in listed
    assert not [line for line in listed.splitlines() if line.startswith(f"{OLD} ")]
    assert "started_by" in run("tables", OLD).stdout


@pytest.mark.parametrize(("table", "old", "new"), PAIRS)
def test_an_old_column_is_answered_with_its_name_of_now(table: str, old: str, new: str) -> None:
    said = f"column {old} is now {new}"
    for arguments in (
        ("table", table, CAPTURE, "--columns", old),
        ("table", table, CAPTURE, "--where", f"{old} is null"),
        ("query", CAPTURE, f"select {old} from {table}"),
        ("query", CAPTURE, f"select t.{old} from {table} as t"),
    ):
        done = run(*arguments)
        assert done.exit_code == 2
        assert said in done.stderr.splitlines()[0]


def test_python_is_told_the_same(analysis: Analysis) -> None:
    with pytest.raises(QueryError, match="column story_id is now incident_id"):
        analysis.arrow("findings", ["story_id"])
    with pytest.raises(QueryError, match="column story_id is now incident_id"):
        list(analysis.query("select story_id from findings"))
    with pytest.warns(DeprecationWarning, match=NEW):
        assert list(chain.from_iterable(b.to_pylist() for b in analysis.query(f"select began_by from {OLD}")))
