"""`wirewitness records` on a sample capture and on hostile ones."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from tests.app.captures import write_capture
from tests.conftest import SAMPLES
from tests.support.record_batches import Sent, batch
from tests.support.replay import START_NS, client_at
from tests.support.replay_bulk import produce_exchanges
from tests.support.replay_wire import write_connections
from wirewitness.app.cli.main import cli

HEALTHY = SAMPLES / "kafka_healthy.pcapng"
SHARE = SAMPLES / "kafka_share_streams.pcapng"
ONE = ("--topic", "logins", "--partition", "0", "--api", "fetch")


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["records", *map(str, arguments)])


def rows(*arguments: str | Path) -> list[dict[str, str]]:
    result = invoke(*arguments, "--format", "csv")
    assert (result.exit_code, result.stderr) == (0, "")
    return list(csv.DictReader(io.StringIO(result.stdout)))


def capture_of(path: Path, *batches: bytes) -> Path:
    """Produce requests with these batches."""
    script = produce_exchanges(b"shop", [(one, 1) for one in batches])
    with path.open("wb") as file:
        write_connections([client_at(0, script)], file, START_NS, lambda _: True)
    return path


def test_sizes_are_shown_and_content_only_on_request() -> None:
    plain = rows(HEALTHY, *ONE, "--limit", "3")
    assert tuple(plain[0]) == (
        "api", "topic", "partition", "offset", "timestamp", "key_bytes", "value_bytes", "headers_count", "codec",
        "control",
    )  # fmt: skip
    assert "user-" not in invoke(HEALTHY, *ONE).stdout
    shown = rows(HEALTHY, *ONE, "--limit", "3", "--payload")
    assert [(len(row["key"]), len(row["value"])) for row in shown] == [
        (int(row["key_bytes"]), int(row["value_bytes"])) for row in plain
    ]
    assert shown[0]["value"] == "login login login login " + shown[0]["key"].removeprefix("user-")


@pytest.mark.parametrize("payload", [(), ("--payload",)], ids=["sizes", "payload"])
def test_markers_of_transactions_say_what_they_are(payload: tuple[str, ...]) -> None:
    """Without it they look like messages that nobody sent."""
    found = rows(SHARE, "--api", "fetch", *payload)
    assert {row["control"] for row in found} >= {"", "commit"}


def test_hidden_content_is_null_in_every_column() -> None:
    columns = "key,key_encoding,value,value_encoding,headers"
    result = invoke(HEALTHY, "--columns", columns, "--format", "jsonl", "--limit", "2")
    assert [json.loads(line) for line in result.stdout.splitlines()] == [dict.fromkeys(columns.split(","))] * 2


def test_offsets_are_a_range_and_rows_are_in_the_order_of_time() -> None:
    found = rows(HEALTHY, *ONE, "--from-offset", "5", "--to-offset", "8", "--columns", "topic,partition,offset,api")
    assert {(row["topic"], row["partition"], row["api"]) for row in found} == {("logins", "0", "Fetch")}
    assert {row["offset"] for row in found} == {"5", "6", "7"}
    times = [row["ts"] for row in rows(HEALTHY, "--columns", "ts")]
    assert times == sorted(times)
    assert rows(HEALTHY, "--topic", "it's none of these") == []


@pytest.mark.parametrize(
    "filters", [(), ("--where", "codec <> 'none'"), ("--limit", "700")], ids=["all", "where", "limit"]
)
def test_formats_hold_the_same(tmp_path: Path, filters: tuple[str, ...]) -> None:
    target = tmp_path / "records.parquet"
    assert invoke(HEALTHY, "--payload", *filters, "--format", "parquet", "--output", target).exit_code == 0
    table = pq.read_table(target)
    lines = invoke(HEALTHY, "--payload", *filters, "--format", "jsonl").stdout.splitlines()
    objects = [json.loads(line) for line in lines]
    assert [(row["offset"], row["key"]) for row in objects] == list(
        zip(table.column("offset").to_pylist(), table.column("key").to_pylist(), strict=True)
    )
    assert [row["headers"] for row in objects] == [json.loads(text) for text in table.column("headers").to_pylist()]
    assert len(lines) > 600


def test_payload_of_the_table_command() -> None:
    arguments = ["table", "kafka_records", str(HEALTHY), "--columns", "key", "--limit", "1", "--format", "csv"]
    assert CliRunner().invoke(cli, arguments).stdout == 'key\n""\n'
    assert "user-" in CliRunner().invoke(cli, [*arguments, "--payload"]).stdout


def test_bytes_headers_and_terminal_sequences(tmp_path: Path) -> None:
    sent = [
        Sent(1, b"\xff\x00", b"\x1b[31mred", [("bin", b"\x80"), ("none", None), ("text", b'"x"')]),
        Sent(2, None, None),
    ]
    path = capture_of(tmp_path / "bytes.pcap", batch(sent))
    found = invoke(path, "--payload", "--limit", "2", "--format", "jsonl", "--columns", "key,key_encoding,headers")
    assert [json.loads(line) for line in found.stdout.splitlines()] == [
        {"key": "ff00", "key_encoding": "hex", "headers": [["bin", "80", "hex"], ["none", None], ["text", '"x"']]},
        {"key": None, "key_encoding": None, "headers": []},
    ]
    shown = invoke(path, "--payload", "--limit", "2").stdout
    assert "\\x1b[31mred" in shown
    assert "\x1b" not in shown


def test_damage_and_bombs_are_rows_and_remarks(tmp_path: Path) -> None:
    bomb = batch([Sent(1, None, bytes(70 << 20))], "zstd")
    good = batch([Sent(1, b"k", b"v")], "lz4")
    damaged = good[:17] + b"\0\0\0\0" + good[21:]
    path = capture_of(tmp_path / "bomb.pcap", bomb, damaged, good)
    found = rows(path, "--columns", "partition,offset,codec,crc_ok,error", "--where", "partition < 3")
    assert [(row["partition"], row["crc_ok"], bool(row["error"])) for row in found] == [
        ("0", "true", True),
        ("1", "false", False),
        ("2", "true", False),
    ]
    assert found[0]["offset"] == ""
    arguments = ["table", "expert_infos", str(path), "--columns", "group,code,severity", "--format", "csv"]
    remarks = CliRunner().invoke(cli, arguments).stdout.splitlines()
    assert "malformed,corrupt_batch,error" in remarks


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--format", "parquet"), "parquet needs --output"),
        (("--columns", "keys"), "did you mean key"),
        (("--where", "offsett > 3"), "columns of kafka_records"),
        (("--partition", "-1"), "partition"),
        (("--api", "Metadata"), "api"),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...], message: str) -> None:
    result = invoke(HEALTHY, *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_capture_without_records(tmp_path: Path) -> None:
    result = invoke(write_capture(tmp_path / "no.pcap"))
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.split() == [
        "api",
        "topic",
        "partition",
        "offset",
        "timestamp",
        "key_bytes",
        "value_bytes",
        "headers_count",
        "codec",
        "control",
    ]
