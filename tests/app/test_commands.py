"""The commands from arguments to output and exit status, in one process."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from tests.app.captures import write_capture
from tests.conftest import SAMPLES
from tests.support.packets import pcap
from tests.support.shares import every, share
from wirewitness.analyser.analysis.all_rules import RULES
from wirewitness.analyser.tables.tables import DATASET_TABLES, TABLES, arrow_schema
from wirewitness.app.cli.commands import COMMANDS
from wirewitness.app.cli.main import cli
from wirewitness.dissectors.registry import PROTOCOLS, titles_of


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


def shown_help(command: str) -> str:
    return invoke(command, "--help").stdout


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_capture(tmp_path_factory.mktemp("captures") / "three.pcap")


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    path = tmp_path / "empty.pcap"
    path.write_bytes(pcap([]))
    return path


def test_csv_has_every_column_and_row(capture: Path) -> None:
    result = invoke("table", "exchanges", capture, "--format", "csv")
    assert (result.exit_code, result.stderr) == (0, "")
    found = list(csv.DictReader(io.StringIO(result.stdout)))
    assert tuple(found[0]) == TABLES["exchanges"].column_names()
    shown = {(row["operation"], row["latency_ms"], row["client_port"]) for row in found}
    assert (len(found), shown) == (3, {("ApiVersions", "2.000", "40000")})
    assert found[0]["ts"] == "2026-11-18T11:06:40.010000000Z"


def test_jsonl_columns_where_and_limit(capture: Path) -> None:
    result = invoke(
        "table", "exchanges", capture, "--format", "jsonl", "--columns", "latency_ms, request_packet", "--where",
        "request_packet > 3 -- not the first", "--limit", 1,
    )  # fmt: skip
    assert result.exit_code == 0
    assert [json.loads(line) for line in result.stdout.splitlines()] == [{"latency_ms": 2.0, "request_packet": 5}]


def test_table_is_the_default_format(capture: Path) -> None:
    result = invoke("table", "exchanges", capture, "--columns", "operation,client_id")
    assert result.stdout.splitlines() == ["operation    client_id", *["ApiVersions  app"] * 3]


def test_parquet_holds_the_registered_types(capture: Path, tmp_path: Path) -> None:
    target = tmp_path / "exchanges.parquet"
    result = invoke("table", "exchanges", capture, "--format", "parquet", "--output", target)
    assert (result.exit_code, result.stdout) == (0, "")
    read = pq.read_table(target)
    assert read.num_rows == 3
    assert read.schema.equals(arrow_schema("exchanges"))


def test_output_dash_is_standard_output(capture: Path) -> None:
    columns = ("--columns", "operation")
    assert invoke("table", "exchanges", capture, *columns, "--output", "-").stdout.count("ApiVersions") == 3


@pytest.mark.parametrize("form", ["table", "csv", "jsonl"])
def test_output_file_equals_standard_output(capture: Path, tmp_path: Path, form: str) -> None:
    target = tmp_path / "rows"
    columns = ("--columns", "operation,ts", "--format", form)
    assert invoke("table", "exchanges", capture, *columns, "--output", target).stdout == ""
    assert target.read_text() == invoke("table", "exchanges", capture, *columns).stdout


@pytest.mark.parametrize(
    ("options", "rows"),
    [
        pytest.param(["--from", "2026-11-18T11:06:40.020"], 2, id="from, the time itself included"),
        pytest.param(["--to", "2026-11-18T11:06:40.020000000Z"], 1, id="to, the time itself not"),
        pytest.param(["--from", "2026-11-18T12:06:40.020000001+01:00"], 1, id="from with ns and zone"),
        pytest.param(["--protocol", "kafka"], 3, id="protocol"),
        pytest.param(["--decode-as", "9092=kafka"], 3, id="decode as"),
        pytest.param(["--limit", "0"], 0, id="no rows"),
    ],
)
def test_options_select_rows(capture: Path, options: list[str], rows: int) -> None:
    result = invoke("table", "exchanges", capture, "--format", "csv", "--columns", "ts", *options)
    assert (result.exit_code, len(result.stdout.splitlines())) == (0, rows + 1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(["table", "exchange", "x"], ["unknown table 'exchange'", "did you mean exchanges"], id="table"),
        pytest.param(["table", "flows", "x", "--columns", "packts"], ["did you mean packets"], id="column"),
        pytest.param(["table", "flows", "x", "--columns", "packets,packets"], ["packets twice"], id="doubled column"),
        pytest.param(["table", "flows", "x", "--columns", ","], ["at least one"], id="no column"),
        pytest.param(
            ["table", "flows", "x", "--where", "packts > 1"],
            ['"packts"', "columns of flows: flow_id"],
            id="where name",
        ),
        pytest.param(
            ["table", "expert_infos", "x", "--where", "group = 'tcp'"], ['in double quotes: "group"'], id="where word"
        ),
        pytest.param(["table", "flows", "x", "--where", "packets >"], ["--where: Parser Error"], id="where syntax"),
        pytest.param(["table", "flows", "x", "--where", "1=1) or (1=1"], ["--where"], id="where leaves its brackets"),
        pytest.param(["table", "flows", "x", "--where", "true order by 1"], ["--where"], id="where with an order"),
        pytest.param(
            ["table", "flows", "x", "--where", "(select count(*) from read_text('/etc/hostname')) > 0"],
            ["--where", "disabled"],
            id="where reads no files",
        ),
        pytest.param(["table", "flows", "x", "--limit", "-1"], ["--limit"], id="limit"),
        pytest.param(["table", "flows", "x", "--format", "parquet"], ["needs --output"], id="parquet to a terminal"),
        pytest.param(
            ["table", "flows", "x", "--format", "parquet", "--output", "-"], ["needs --output"], id="parquet to -"
        ),
        pytest.param(["table", "flows", "x", "--output", "/no/such/dir/y"], ["there is no directory"], id="output"),
        pytest.param(["table", "flows"], ["CAPTURE"], id="no capture"),
        pytest.param(["table", __file__, "flows"], ["table's name comes first"], id="arguments the wrong way round"),
        pytest.param(
            ["table", "flows", "x", "--where", "bytes_lost ="], ["syntax error at its end"], id="half a where"
        ),
        pytest.param(["query", "x"], ["CAPTURE... SQL"], id="query without SQL"),
        pytest.param(["query"], ["CAPTURE... SQL"], id="query without anything"),
        pytest.param(["brokers", "x", "--server", "y"], ["--server goes with --endpoints, --over-time"], id="server"),
        pytest.param(["tables", "flow"], ["did you mean flows"], id="tables"),
        pytest.param(["detectors", "KAF110x"], ["unknown rule"], id="detector"),
        pytest.param(["analyse", "x", "--decode-as", "9092=kafak"], ["did you mean kafka"], id="decode as: protocol"),
        pytest.param(["analyse", "x", "--decode-as", "kafka"], ["PORT=PROTOCOL"], id="decode as: form"),
        pytest.param(["analyse", "x", "--decode-as", "70000=kafka"], ["1 to 65535"], id="decode as: port"),
        pytest.param(["analyse", "x", "--protocol", "kafkaa"], ["did you mean kafka"], id="protocol"),
        pytest.param(["analyse", "x", "--enable", "redis"], ["unknown optional dissector"], id="enable"),
        pytest.param(["analyse", "x", "--from", "noon"], ["is not a time"], id="from"),
        pytest.param(["analyse", "x", "--from", "2026-01-02", "--to", "2026-01-01"], ["later than --to"], id="times"),
        pytest.param(["analyse", "x", "--fail-on", "error"], ["'critical'"], id="fail on"),
        pytest.param(["analyse", "/no/such/capture.pcap"], ["/no/such/capture.pcap"], id="no such capture"),
        pytest.param(["analyse", __file__], ["not a capture"], id="not a capture"),
    ],
)
def test_callers_mistakes(arguments: list[str], words: list[str]) -> None:
    result = invoke(*arguments)
    assert (result.exit_code, result.stdout) == (2, ""), result.stderr
    assert "Traceback" not in result.stderr
    for word in words:
        assert word in result.stderr


def test_some_inputs_unread(capture: Path, tmp_path: Path) -> None:
    result = invoke("table", "exchanges", capture, tmp_path / "gone.pcap", "--format", "csv", "--columns", "ts")
    assert result.exit_code == 3
    assert len(result.stdout.splitlines()) == 4
    assert "gone.pcap" in result.stderr


def test_quiet_still_names_unread_inputs(capture: Path, tmp_path: Path) -> None:
    assert "gone.pcap" in invoke("table", "flows", capture, tmp_path / "gone.pcap", "--quiet").stderr


def test_an_empty_capture_is_done_with_a_remark(empty: Path) -> None:
    result = invoke("analyse", empty)
    assert result.exit_code == 0
    assert "empty.pcap" in result.stderr
    assert "There is no TCP connection in 0 packets." in result.stdout
    assert invoke("analyse", empty, "--quiet").stderr == ""


@pytest.mark.parametrize("name", share(sorted(TABLES), every(4, sorted(TABLES))))
def test_every_table_in_every_text_format(capture: Path, empty: Path, name: str) -> None:
    for path, form in ((capture, "table"), (capture, "csv"), (capture, "jsonl"), (empty, "table")):
        result = invoke("table", name, path, "--format", form, "--quiet")
        assert (result.exit_code, result.stderr) == (0, "")
        if form == "jsonl":
            names = {tuple(json.loads(line)) for line in result.stdout.splitlines()}
            assert names <= {TABLES[name].column_names()}


@pytest.mark.parametrize(("form", "begins"), [("html", "<!doctype html>"), ("markdown", "# wirewitness: ")])
def test_report_for_browsers_and_tickets(capture: Path, form: str, begins: str) -> None:
    done = invoke("analyse", capture, "--format", form)
    assert done.exit_code == 0
    assert done.stdout.startswith(begins)
    assert capture.stem in done.stdout


def test_analyse_json_is_the_contract(capture: Path) -> None:
    made = json.loads(invoke("analyse", capture, "--format", "json").stdout)
    assert list(made) == [
        "schema_version",
        "captures",
        "quality",
        "flows",
        "operations",
        "groups",
        "stored_offsets",
        "unseen_commits",
        "mqtt",
        "mongo",
        "encrypted_connections",
        "unjudged_errors",
        "stands_out",
        "findings",
    ]
    assert made["captures"][0]["packets"] == 8
    assert made["operations"][0] | {"latency_ms": None} == {
        "protocol": "kafka", "operation": "ApiVersions", "exchanges": 3, "errors": 0, "unanswered": 0, "orphans": 0,
        "waiting": 0, "latency_ms": None, "error_names": {},
    }  # fmt: skip


def test_analyse_times_narrow_the_report(capture: Path) -> None:
    made = json.loads(invoke("analyse", capture, "--format", "json", "--from", "2026-11-18T11:06:40.020").stdout)
    assert made["operations"][0]["exchanges"] == 2


def test_another_protocol_has_no_findings_of_this_one() -> None:
    sample = SAMPLES / "mqtt_takeover_loop.pcapng"
    codes = {row["code"] for row in json.loads(invoke("analyse", sample, "--format", "json").stdout)["findings"]}
    assert codes == {"MQT102"}
    kafka = invoke("analyse", sample, "--protocol", "kafka", "--fail-on", "info")
    assert kafka.exit_code == 0
    assert "No findings." in kafka.stdout
    assert "None of the connections in 313 packets is selected." in kafka.stdout
    assert "rows of kafka." in kafka.stdout
    assert "MQT102" not in invoke("table", "findings", sample, "--protocol", "kafka").stdout
    assert "MQT102" in invoke("table", "findings", sample, "--protocol", "mqtt").stdout


@pytest.mark.parametrize("command", [name for name in COMMANDS if "--output" in shown_help(name)])
def test_output_has_its_short_form_everywhere(command: str) -> None:
    assert "-o, --output " in shown_help(command)


@pytest.mark.parametrize("severity", ["info", "warning", "critical"])
def test_fail_on_is_not_met_without_findings(capture: Path, severity: str) -> None:
    assert invoke("analyse", capture, "--fail-on", severity).exit_code == 0


def test_tables_lists_all() -> None:
    shown = invoke("tables").stdout
    assert all(name in shown for name in TABLES)
    listed = json.loads(invoke("tables", "--format", "json").stdout)
    assert [table["name"] for table in listed["tables"]] == [*TABLES, *DATASET_TABLES]
    assert [table["name"] for table in listed["tables"] if table["only_in_datasets"]] == list(DATASET_TABLES)


def test_tables_of_one_name_lists_its_columns() -> None:
    shown = invoke("tables", "kafka_offset_commits").stdout
    assert all(column in shown for column in TABLES["kafka_offset_commits"].column_names())
    (table,) = json.loads(invoke("tables", "flows", "--format", "json").stdout)["tables"]
    assert {"name": "gap_bytes", "type": "int64", "unit": "bytes", "nullable": True}.items() <= next(
        c for c in table["columns"] if c["name"] == "gap_bytes"
    ).items()


def test_rules_lists_all() -> None:
    shown = invoke("detectors").stdout
    assert all(code in shown and rule.name in shown for code, rule in RULES.items())
    assert [d["code"] for d in json.loads(invoke("detectors", "--format", "json").stdout)] == sorted(RULES)


@pytest.mark.parametrize("code", sorted(RULES))
def test_every_rule_has_a_page(code: str) -> None:
    shown = invoke("detectors", code.lower()).stdout
    assert shown.startswith(f"{code} {RULES[code].name}")
    for heading in ("Finds", "Why it matters", "How it decides", "False alarms", "References", "Thresholds", "Reads"):
        assert f"\n{heading}\n" in shown
    assert invoke("detectors", RULES[code].name).stdout == shown


def test_the_help_names_the_protocols_that_are_on() -> None:
    """Written out there: help that asks the registry would load every dissector first."""
    assert f"captures of {titles_of(PROTOCOLS.values(), 'and')} and says" in invoke("--help").stdout


def test_examples_of_the_main_help_name_commands_that_are_there() -> None:
    examples = re.findall(r"^ +wirewitness (\S+) ", invoke("--help").stdout, re.MULTILINE)
    assert len(examples) >= 5
    assert {*examples} <= {*COMMANDS}


@pytest.mark.parametrize("command", ["analyse", "table", "tables", "detectors"])
def test_help_has_examples(command: str) -> None:
    shown = invoke(command, "--help").stdout
    assert shown.count(f"wirewitness {command} ") + shown.count(f"wirewitness {command}\n") - 1 >= 2
    assert "Examples:" in shown


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        pytest.param(["--from", "2026-11-18T11:06:40.015", "--to", "2026-11-18T11:06:40.018"], True, id="inside"),
        pytest.param(["--from", "2026-11-18T11:06:40.015"], True, id="from the middle on"),
        pytest.param(["--to", "2026-11-18T11:06:40.015"], True, id="to the middle"),
        pytest.param(["--from", "2026-11-18T11:06:41"], False, id="after it"),
        pytest.param(["--to", "2026-11-18T11:06:39"], False, id="before it"),
    ],
)
def test_a_flow_is_shown_when_it_touches_the_time(capture: Path, options: list[str], shown: bool) -> None:
    result = invoke("table", "flows", capture, "--format", "csv", "--columns", "protocol", *options)
    assert result.stdout.splitlines() == ["protocol", *(["kafka"] if shown else [])]


@pytest.mark.parametrize(
    ("words", "option"),
    [
        pytest.param(["table", "exchanges", "--where", "true", "--where", "false"], "--where", id="where"),
        pytest.param(["findings", "--format", "csv", "--format", "csv"], "--format", id="the same value"),
        pytest.param(["findings", "-o", "a", "--output", "b"], "--output", id="both names"),
        pytest.param(["compare", "--at", "2026-01-01", "--at", "2026-01-02"], "--at", id="compare"),
    ],
)
def test_an_option_of_one_value_is_given_once(words: list[str], option: str, capture: Path) -> None:
    result = invoke(*words, capture)
    assert result.exit_code == 2
    assert f"{option} takes one value, and is given more than once" in result.stderr


def test_options_that_are_repeatable_and_switches_may_be_given_again(capture: Path) -> None:
    words = ("--quiet", "--quiet", "--protocol", "kafka", "--protocol", "mqtt", "--decode-as", "1=kafka")
    assert invoke("table", "exchanges", capture, "--limit", 1, *words, "--decode-as", "2=mqtt").exit_code == 0
