"""What proves who somebody is leaves the program in no format; who it is does where content is asked for."""

from __future__ import annotations

import base64
import re
from functools import cache
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import wirewitness
from tests.app.program import run
from tests.conftest import ROOT
from tests.support.shares import pairs, share, smallest, turns
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.tables.tables import TABLES

SAMPLES = ROOT / "sample_pcaps"
# User names, and patterns of secrets as they are on the wire: passwords, tokens and SCRAM's proofs and signatures.
CASES = {
    "kafka_sasl.pcapng": (
        ("paula", "sam"),
        (
            rb"lab-plain-7Qx2",
            rb"lab-wrong-3Vb8",
            rb"eyJhbGciOiJub25lIn0[\w.-]*",
            rb"p=([\w+/=]{40,})",
            rb"v=([\w+/=]{40,})",
        ),
    ),
    "kafka_admin.pcapng": (("operator", "billing"), (rb"lab-only-password",)),
    "mqtt_v5_features.pcapng": (("plant", "guest"), (rb"lab-plant-5Tz8", rb"lab-guest-2Wn6", rb"lab-wrong-3Vb8")),
    "mongo_healthy.pcapng": (("ada",), (rb"p=([\w+/=]{40,})", rb"v=([\w+/=]{40,})")),
}
FORMATS = ("table", "csv", "jsonl")
REPORTS = ("text", "json")


@cache
def secrets(file: str) -> frozenset[bytes]:
    """Every secret of the capture, each way in which an output might write it."""
    raw = (SAMPLES / file).read_bytes()
    found: set[bytes] = set()
    for pattern in CASES[file][1]:
        matches = {match[match.lastindex or 0] for match in re.finditer(pattern, raw)}
        assert matches, f"{pattern!r} is not in {file}: this test would prove nothing"
        found |= matches
    return frozenset(
        written
        for secret in found
        for written in (secret, secret.hex().encode(), secret.hex(" ").encode(), base64.b64encode(secret).rstrip(b"="))
    )


def check(file: str, output: bytes) -> None:
    leaked = [secret for secret in secrets(file) if secret in output]
    assert not leaked


@pytest.mark.parametrize("file", share(CASES, smallest(CASES)))
def test_no_table_holds_a_secret(file: str) -> None:
    names = list(TABLES)
    with wirewitness.read(SAMPLES / file, tables=names, options=ReadOptions(payload=True)) as analysis:
        shown = repr({name: analysis.arrow(name).to_pylist() for name in names})
    check(file, shown.encode())
    for user in CASES[file][0]:
        assert user in shown


@pytest.mark.parametrize(
    ("format_", "file"), pairs([(form, file) for form in REPORTS for file in CASES], turns(REPORTS, CASES))
)
def test_no_report_holds_a_secret(file: str, format_: str) -> None:
    result = run("analyse", SAMPLES / file, "--format", format_)
    assert result.returncode == 0, result.stderr
    check(file, result.stdout + result.stderr)


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("table", ["messages", "kafka_authentications"])
def test_no_format_holds_a_secret(table: str, format_: str) -> None:
    file = "kafka_sasl.pcapng"
    result = run("table", table, SAMPLES / file, "--format", format_, COLUMNS="500")
    assert result.returncode == 0, result.stderr
    check(file, result.stdout + result.stderr)
    assert b"paula" not in result.stdout
    assert b"PLAIN" in result.stdout


def test_no_parquet_file_holds_a_secret(tmp_path: Path) -> None:
    file = "kafka_sasl.pcapng"
    target = tmp_path / "messages.parquet"
    result = run("table", "messages", SAMPLES / file, "--format", "parquet", "--output", target)
    assert result.returncode == 0, result.stderr
    shown = repr(pq.read_table(target).to_pylist()).encode()
    check(file, shown + target.read_bytes())
    assert b"paula" not in shown
    assert b"PLAIN" in shown


def test_neither_trees_nor_hex_nor_redacted_packets_of_mongodb_hold_a_secret(tmp_path: Path) -> None:
    file = "mongo_healthy.pcapng"
    with wirewitness.read(SAMPLES / file, tables=["messages"]) as analysis:
        rows = analysis.arrow("messages", ["message_id", "flow_id"], "operation = 'saslContinue'").to_pylist()
    assert len(rows) == 8
    for row in rows[:2]:
        result = run("show", SAMPLES / file, row["message_id"], "--payload")
        assert result.returncode == 0, result.stderr
        assert b"***" in result.stdout
        check(file, result.stdout + result.stderr)
    target = tmp_path / "redacted.pcapng"
    for flow in {row["flow_id"] for row in rows}:
        assert run("extract", SAMPLES / file, "--flow", flow, "-o", target, "--redact").returncode == 0
        check(file, target.read_bytes())
        assert b"saslContinue" in target.read_bytes()
