"""Every command that reads captures gives the same output for a dataset of them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.conftest import SAMPLES
from tests.support.datasets import make_dataset
from tests.support.shares import every, share
from wirewitness.app.cli.main import cli

SAMPLE = SAMPLES / "mongo_shapes_and_errors.pcapng"


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_dataset(tmp_path_factory.mktemp("datasets") / "mongo", [SAMPLE])


COMMANDS = [
    ("analyse", "*"),
    ("analyse", "*", "--format", "json"),
    ("table", "exchanges", "*", "--format", "csv"),
    ("table", "mongo_cursors", "*", "--where", "documents > 1", "--limit", "3"),
    ("query", "*", "select operation, count(*), median(latency_ms) from exchanges group by all order by all"),
    ("shapes", "*"),
    ("shapes", "*", "--format", "jsonl", "--sort", "count"),
    ("records", "*"),
]


@pytest.mark.parametrize("command", share(COMMANDS, every(2, COMMANDS)), ids=lambda command: " ".join(command[:3:2]))
def test_the_same_output(dataset: Path, command: tuple[str, ...]) -> None:
    of_capture, of_dataset = (
        invoke(*(path if argument == "*" else argument for argument in command)) for path in (SAMPLE, dataset)
    )
    assert of_dataset.stdout == of_capture.stdout
    assert of_dataset.stderr == of_capture.stderr
    assert of_dataset.exit_code == of_capture.exit_code
    assert of_capture.stdout


def _ids(table: str, column: str) -> list[str]:
    lines = invoke("table", table, SAMPLE, "--columns", column, "--format", "jsonl").stdout.splitlines()
    return [json.loads(line)[column] for line in lines]


def test_show_reads_the_packets_where_they_are(dataset: Path) -> None:
    for wanted in _ids("exchanges", "exchange_id")[::40]:
        shown = [invoke("show", path, wanted, "--exchange") for path in (SAMPLE, dataset)]
        assert shown[0].stdout == shown[1].stdout
        assert (shown[0].exit_code, shown[1].exit_code) == (0, 0)
    by_packet = [invoke("show", path, "--packet", "20", "--format", "json") for path in (SAMPLE, dataset)]
    assert by_packet[0].stdout == by_packet[1].stdout
    assert by_packet[0].exit_code == by_packet[1].exit_code


@pytest.mark.parametrize("kind", share(["finding", "flow", "exchange"], ["finding"]))
def test_extract_writes_the_same_packets(dataset: Path, tmp_path: Path, kind: str) -> None:
    table = {"finding": "findings", "flow": "flows", "exchange": "exchanges"}[kind]
    wanted = _ids(table, f"{kind}_id")[-1]
    for path, name in ((SAMPLE, "a"), (dataset, "b")):
        result = invoke("extract", path, f"--{kind}", wanted, "-o", tmp_path / f"{name}.pcapng", "--redact",
                        "--bundle", tmp_path / name)  # fmt: skip
        assert result.exit_code == 0, result.stderr
    assert (tmp_path / "a.pcapng").read_bytes() == (tmp_path / "b.pcapng").read_bytes()
    rows = {path.name: path.read_bytes() for path in (tmp_path / "a").iterdir()}
    assert rows == {path.name: path.read_bytes() for path in (tmp_path / "b").iterdir()}


def test_captures_that_are_gone_are_one_clear_line(tmp_path: Path) -> None:
    capture = tmp_path / "gone.pcapng"
    capture.write_bytes((SAMPLES / "mongo_healthy.pcapng").read_bytes())
    root = make_dataset(tmp_path / "d", [capture], ["captures", "flows", "messages", "exchanges"])
    wanted = json.loads(invoke("table", "messages", root, "--limit", "1", "--format", "jsonl").stdout)["message_id"]
    capture.unlink()
    result = invoke("show", root, wanted)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"wirewitness: {capture}: no such file or directory.\n"


@pytest.mark.parametrize(
    "command",
    [("analyse", "*", SAMPLE), ("show", SAMPLE, "*", "0-c-0"), ("query", "*", SAMPLE, "from flows")],
    ids=["analyse", "show", "query"],
)
def test_datasets_and_captures_do_not_go_together(dataset: Path, command: tuple[str, ...]) -> None:
    result = invoke(*(dataset if argument == "*" else argument for argument in command))
    assert result.exit_code == 2
    assert result.stderr == (
        f"wirewitness: {dataset} is a dataset, which is read alone: no captures or datasets beside it.\n"
    )


@pytest.mark.parametrize(
    "command",
    [
        ("analyse", "*"),
        ("table", "exchanges", "*", "--where", "true"),
        ("query", "*", "from exchanges"),
        ("shapes", "*"),
    ],
    ids=lambda command: command[0],
)
@pytest.mark.parametrize("damage", ["garbage", "gone"])
def test_damaged_parts_are_one_clear_line(dataset: Path, tmp_path: Path, command: tuple[str, ...], damage: str) -> None:
    root = tmp_path / "d"
    shutil.copytree(dataset, root)
    for table in ("exchanges", "mongo_commands"):
        part = next((root / table).rglob("*.parquet"))
        if damage == "gone":
            part.unlink()
        else:
            part.write_bytes(b"no Parquet")
    result = invoke(*(root if argument == "*" else argument for argument in command))
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("wirewitness: ")
    assert ("is missing" if damage == "gone" else "cannot be read") in result.stderr
    assert len(result.stderr.splitlines()) == 1
