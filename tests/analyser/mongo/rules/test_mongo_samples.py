"""What the rules about MongoDB find in the samples is what the drivers did, as they themselves told."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from functools import cache
from typing import Any

import wirewitness
from tests.conftest import SAMPLES

COMPRESSED, ERRORS = "mongo_compressed.pcapng", "mongo_shapes_and_errors.pcapng"
MANIFEST: dict[str, dict[str, Any]] = {
    entry["file"]: entry for entry in tomllib.loads((SAMPLES / "MANIFEST.toml").read_text())["sample"]
}


@cache
def findings(name: str) -> list[dict[str, Any]]:
    with wirewitness.read(SAMPLES / name) as analysis:
        rows: list[dict[str, Any]] = analysis.findings().to_dict("records")
    return [row | {"numbers": json.loads(row["numbers"])} for row in rows]


def found(name: str, code: str) -> list[dict[str, Any]]:
    return [row for row in findings(name) if row["code"] == code]


def facts(name: str) -> dict[str, Any]:
    told: dict[str, Any] = MANIFEST[name]["facts"]
    return told


def client_of(name: str, row: dict[str, Any]) -> str:
    """The lab's name of the client that a finding names first."""
    [client] = [c["client"] for c in facts(name)["client"] if c["address"] == row["numbers"]["clients"][0]["address"]]
    return str(client)


def errors_told(name: str) -> Counter[int]:
    told: Counter[int] = Counter()
    for error in (*facts(name)["errors"], *facts(name)["write_errors"]):
        told[error["code"]] += error["count"]
    return told


def goodbyes(name: str) -> list[int]:
    """Codes of what servers answer to endSessions that do not know it."""
    with wirewitness.read(SAMPLES / name) as analysis:
        rows = analysis.arrow("mongo_commands", ["error_code"], "command = 'endSessions' AND status = 'error'")
    return [int(code) for code in rows["error_code"].to_pylist()]


def test_errors_are_those_that_the_drivers_met() -> None:
    for name in (COMPRESSED, ERRORS):
        counted: Counter[int] = Counter()
        for row in found(name, "MON102"):
            counted[row["numbers"]["code"]] += row["numbers"]["refused_writes"] or row["numbers"]["count"]
        counted.update(goodbyes(name))  # nobody needs to act on these
        assert counted == errors_told(name)


def test_cursors_left_open_are_those_of_the_drivers() -> None:
    for name in (COMPRESSED, ERRORS):
        left = {
            (client_of(name, row), number) for row in found(name, "MON104") for number in row["numbers"]["cursor_ids"]
        }
        assert left == {(one["client"], one["cursor_id"]) for one in facts(name)["left_open"]}


def test_the_transaction_left_open_is_named() -> None:
    left = {
        (client_of(COMPRESSED, row), row["numbers"]["lsid"].replace("-", "")) for row in found(COMPRESSED, "MON111")
    }
    assert left == {(one["client"], one["lsid"]) for one in facts(COMPRESSED)["open_transactions"]}


def test_retried_writes_are_counted() -> None:
    retried = {client_of(COMPRESSED, row): row["numbers"]["writes"] for row in found(COMPRESSED, "MON112")}
    assert retried == {one["client"]: one["retries"] for one in facts(COMPRESSED)["retried_writes"]}
    assert all(row["numbers"]["failed"] == 0 for row in found(COMPRESSED, "MON112"))


def test_rows_read_one_by_one_and_small_batches() -> None:
    rows = found(ERRORS, "MON105")
    clients = {(client_of(ERRORS, row), row["numbers"]["kind"]) for row in rows}
    assert clients == {(one["client"], "one by one") for one in facts(ERRORS)["one_by_one"]} | {
        (one["client"], "small batches") for one in facts(ERRORS)["small_batches"]
    }
    [small] = [row["numbers"]["get_mores"] for row in rows if row["numbers"]["kind"] == "small batches"]
    assert small == facts(ERRORS)["small_batches"][0]["get_mores"]


def test_the_slow_report_is_named() -> None:
    [slow] = found(ERRORS, "MON101")
    assert client_of(ERRORS, slow) == facts(ERRORS)["slow"][0]["client"]
    assert slow["severity"] == "info"
    assert "pymongo-report" in slow["sentence"]


def test_refused_compression_is_told_and_a_client_that_offers_none_is_not() -> None:
    assert {client_of(COMPRESSED, row) for row in found(COMPRESSED, "MON109")} == {"refused"}
