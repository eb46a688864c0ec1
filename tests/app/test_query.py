"""`wirewitness query`: what it answers, what it refuses, and what it cannot see."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from tests.conftest import SAMPLES
from wirewitness.app.cli.main import cli

CAPTURE = str(SAMPLES / "kafka_fenced_commit.pcapng")


def ask(sql: str, *options: str) -> Result:
    return CliRunner().invoke(cli, ["query", CAPTURE, sql, "--quiet", *options])


def rows(sql: str, *options: str) -> list[dict[str, object]]:
    done = ask(sql, "--format", "jsonl", *options)
    assert (done.exit_code, done.stderr) == (0, "")
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_tables_are_joined() -> None:
    found = rows(
        "with fenced as (select * from kafka_offset_commits where error_code = 22) "
        "select distinct operation, error_name from fenced join exchanges using (exchange_id, error_name)"
    )
    assert found == [{"operation": "OffsetCommit", "error_name": "ILLEGAL_GENERATION"}]


def test_findings_are_there() -> None:
    assert {row["code"] for row in rows("select distinct code from findings")} >= {"KAF105"}


TYPES = [
    pytest.param("sum(request_bytes) > 0 from exchanges", True, id="bool"),
    pytest.param("sum(0) from flows", 0, id="a sum is an integer"),
    pytest.param("1.25::decimal(9, 2)", 1.25, id="decimal"),
    pytest.param("2::hugeint * 9223372036854775807", "18446744073709551614", id="more than 64 bits"),
    pytest.param("date '2026-11-18'", "2026-11-18", id="date"),
    pytest.param("{'a': [1, 2]}", '{"a": [1, 2]}', id="struct"),
    pytest.param("[1, 2]", [1, 2], id="list of integers"),
    pytest.param("['x']", '["x"]', id="list of texts"),
    pytest.param("null", None, id="null"),
    pytest.param("timestamp '2026-11-18 11:06:40'", "2026-11-18T11:06:40.000000000Z", id="time"),
    pytest.param("'\\x00'::blob", "00", id="bytes"),
    pytest.param("union_value(a := 1)", "1", id="union"),
    pytest.param("{'a': [union_value(x := 1)]}", '{"a":[{"x":1}]}', id="union in a part"),
    pytest.param("'101'::bit", "101", id="bits"),
    pytest.param("(10::bignum || repeat('0', 39))::bignum", f"{10**40}", id="bignum"),
    pytest.param("340282366920938463463374607431768211455::uhugeint", f"{2**128 - 1}", id="128 bits without a sign"),
    pytest.param("'24:00:00'::time", "24:00:00", id="the end of a day"),
    pytest.param("'12:00:00+02'::timetz", "12:00:00+02", id="time of day with its zone"),
    pytest.param("date 'infinity'", "infinity", id="no date"),
    pytest.param("date '290000-01-01'", "290000-01-01", id="a far date"),
    pytest.param("timestamp '-infinity'", "-infinity", id="no time"),
    pytest.param("timestamptz '290000-01-01 00:00:00+00'", "290000-01-01 00:00:00+00", id="a far time"),
    pytest.param("timestamp '1500-01-01'", "1500-01-01 00:00:00", id="a time before nanoseconds"),
    pytest.param("[date 'infinity']", '["infinity"]', id="a list of no dates"),
]


@pytest.mark.parametrize(("expression", "expected"), TYPES)
def test_values_of_any_type(expression: str, expected: object) -> None:
    (row,) = rows(f"select {expression}")
    assert list(row.values()) == [expected]


def test_a_file_has_one_type_for_each_column(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    done = ask("select sum(2::hugeint * 9223372036854775807) as n", "--format", "parquet", "--output", str(path))
    assert (done.exit_code, path.exists()) == (2, False)
    assert "n::VARCHAR" in done.stderr
    assert ask("select date 'infinity' as d", "--format", "parquet", "--output", str(path)).exit_code == 0
    assert pq.read_table(path).to_pylist() == [{"d": "infinity"}]


CALCULATIONS = [
    pytest.param("max(ts) - min(ts)", "00:00:00.002500", id="a difference"),
    pytest.param("min(ts) - max(ts)", "-00:00:00.002500", id="a difference below zero"),
    pytest.param("epoch(max(ts)) > 1e9", True, id="epoch"),
    pytest.param("epoch_ms(max(ts)) > 1e12", True, id="epoch_ms"),
    pytest.param("date_trunc('hour', min(ts)) <= min(ts)", True, id="date_trunc"),
    pytest.param("time_bucket(interval '10 minutes', min(ts)) <= min(ts)", True, id="time_bucket"),
    pytest.param("min(ts)::timestamp + interval '1 hour' > max(ts)", True, id="a cast"),
    pytest.param("min(ts)::date > '2020-01-01'", True, id="the date"),
    pytest.param("cast(min(ts) as time) = min(ts)::timestamp::time", True, id="the time of day"),
    pytest.param("count(*) filter ('ä' <> ts::time::text and (ts)::TIME >= '00:00'::time)", 2, id="times of day"),
    pytest.param("max(ts)::time - interval '1 hour' <> max(ts)::time", True, id="a time of day, and calculated with"),
    pytest.param("extract(year from min(ts)) > 2020", True, id="a part of it"),
    pytest.param("count(*) filter (ts < now()) > 0", True, id="the time of today"),
    pytest.param("max(ts) - interval '1 second' > '2020-01-01 02:00:00+02:00'", True, id="text with a time zone"),
]


@pytest.mark.parametrize(("expression", "expected"), CALCULATIONS)
def test_times_can_be_calculated_with(expression: str, expected: object) -> None:
    two = "(select ts from exchanges order by ts limit 1)"
    later = f"(select to_timestamp(epoch(ts) + 0.0025) as ts from {two})"
    (row,) = rows(f"select {expression} from (from {two} union all from {later})")
    assert list(row.values()) == [expected]


def test_times_that_are_not_calculated_with_keep_their_nanoseconds() -> None:
    (row,) = rows("select ts::varchar as t, epoch_ns(ts) as ns from exchanges where epoch_ns(ts) % 1000 <> 0 limit 1")
    assert str(row["ns"])[-9:] in str(row["t"])


def test_options_narrow_the_rows_of_calculations() -> None:
    (whole,) = rows("select min(ts) + interval '50 ms' as cut, count(*) as n from exchanges")
    (later,) = rows(
        f"select min(ts - timestamptz '{whole['cut']}') as d, count(*) as n from exchanges", "--from", str(whole["cut"])
    )
    assert str(later["d"]) >= "00:00:00.000000"
    assert int(str(later["n"])) < int(str(whole["n"]))


def test_equal_names_get_numbers() -> None:
    assert rows("select 1 as a, 2 as a") == [{"a": 1, "a_2": 2}]


def test_options_narrow_the_rows() -> None:
    (whole,) = rows("select count(*) as n, min(epoch_ns(ts)) as first, max(epoch_ns(ts)) as last from exchanges")
    middle = (int(str(whole["first"])) + int(str(whole["last"]))) // 2
    text = rows(f"select make_timestamp_ns({middle}) as t")[0]["t"]
    (later,) = rows("select count(*) as n, min(epoch_ns(ts)) as first from exchanges;", "--from", str(text))
    assert 0 < int(str(later["n"])) < int(str(whole["n"]))
    assert int(str(later["first"])) >= middle
    assert rows("select count(*) as n from exchanges", "--protocol", "kafka") == [{"n": whole["n"]}]


def test_limit_and_order() -> None:
    assert rows("select n from range(100) as t(n) order by n desc -- all", "--limit", "2") == [{"n": 99}, {"n": 98}]


def test_no_rows_still_have_columns() -> None:
    assert ask("select ts, operation from exchanges where false", "--format", "csv").stdout == "ts,operation\n"


def test_parquet(tmp_path) -> None:
    out = tmp_path / "q.parquet"
    assert (
        ask(
            "select operation, count(*) as n from exchanges group by all", "--format", "parquet", "--output", str(out)
        ).exit_code
        == 0
    )
    assert pq.read_table(out).column_names == ["operation", "n"]


REFUSED = [
    pytest.param("select * from exchange", "unknown table 'exchange'; did you mean exchanges", id="unknown table"),
    pytest.param("select foo from exchanges", 'Referenced column "foo" not found', id="unknown column"),
    pytest.param("selec 1", "syntax error", id="syntax"),
    pytest.param("drop table exchanges", "exactly one SELECT is possible here", id="no select"),
    pytest.param("select 1; select 2", "exactly one SELECT is possible here", id="two statements"),
    pytest.param("select * from read_csv('/etc/passwd')", "disabled", id="files"),
    pytest.param("select * from '/etc/passwd'", "unknown table", id="a file as a table"),
    pytest.param("copy (select 1) to '/tmp/x'", "exactly one SELECT", id="writing files"),
    pytest.param("install httpfs", "exactly one SELECT", id="extensions"),
    pytest.param("set memory_limit = '100GB'", "exactly one SELECT", id="settings"),
    pytest.param("select getenv('HOME')", "getenv", id="environment"),
    pytest.param("select nosuch from exchanges", 'Candidate bindings: "', id="no such column"),
    pytest.param("select epoch(1, 2)", "No function matches", id="functions that could have been meant"),
    pytest.param("select ts + client_id from exchanges", "No function matches", id="times and texts"),
]


@pytest.mark.parametrize(("sql", "words"), REFUSED)
def test_what_is_refused_is_one_sentence_and_status_2(sql: str, words: str) -> None:
    done = ask(sql)
    assert (done.exit_code, done.stdout) == (2, "")
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    lines = [line for line in done.stderr.splitlines() if not line.startswith("known: ")]  # tables there are
    assert len(lines) == 1


def test_what_fails_while_running_is_a_sentence_too() -> None:
    done = ask("select error_name::int from kafka_offset_commits where error_name is not null")
    assert done.exit_code == 2
    assert "Could not convert string 'NONE'" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(["query", CAPTURE, "select '\udcff'"], "query: the SQL is no text in UTF-8", id="query"),
        pytest.param(["query", CAPTURE, f"select {'(' * 500}"], "query: the SQL has 500 brackets", id="brackets"),
        pytest.param(["table", "exchanges", CAPTURE, "--where", "'\udcff'"], "--where: the SQL is no text", id="table"),
        pytest.param(["table", "exchanges", CAPTURE, "--where", "(" * 500], "--where: the SQL has 501", id="condition"),
        pytest.param(["differ", CAPTURE, "--where", "(" * 500], "the SQL has 50", id="differ"),
        pytest.param(
            ["query", CAPTURE, f"select ts::time, {'1+' * 900}1 from exchanges"],
            "TIMESTAMP WITH TIME ZONE -> TIME",
            id="sum",
        ),
        pytest.param(["query", CAPTURE, f"select {'[' * 80}1{']' * 80}"], "that are too many to show", id="lists"),
        pytest.param(["groups", CAPTURE, "--group", "\udcff"], "", id="a name"),
    ],
)
def test_what_cannot_be_asked_is_no_fault_of_the_program(words: list[str], said: str) -> None:
    done = CliRunner().invoke(cli, [*words, "--quiet"])
    assert said in done.stderr
    assert done.exit_code == (2 if said else 0), done.stderr
