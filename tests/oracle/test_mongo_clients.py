"""Commands of the MongoDB samples, against what the drivers themselves said of them.

pymongo's and the Node driver's command monitoring and the driver's log under mongosh (tests/lab/command_log) tell each
command with its request id, names, result and duration. None of it comes from our decoder.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import wirewitness
from tests.conftest import SAMPLES
from tests.lab import command_log
from tests.lab.command_log import CommandRecord

ENTRIES: dict[str, dict[str, Any]] = {
    entry["file"]: entry
    for entry in tomllib.loads((SAMPLES / "MANIFEST.toml").read_text())["sample"]
    if entry["protocol"] == "mongo"
}
EVERY_SAMPLE = pytest.mark.parametrize("name", ENTRIES)
COMPRESSED = "mongo_compressed.pcapng"
# Drivers do not tell of the handshake; of an authentication pymongo tells what is left of it, the Node driver nothing.
NOT_TOLD = {"hello", "ismaster", "isMaster", "saslStart", "saslContinue"}
# Their replies have no n of their own: a count for each kind of write, one in lastErrorObject.
OTHER_COUNTS = {"bulkWrite", "findAndModify"}
# A driver's clock includes the way through the network; the Node driver counts whole milliseconds.
ROUNDING_US = 1_500
Row = dict[str, Any]


class Compared(NamedTuple):
    """What a comparison found: commands that were compared, and sentences about those that differ."""

    commands: int
    differences: list[str]


@cache
def rows_of(path: Path) -> list[Row]:
    """Return mongo_commands of a capture."""
    with wirewitness.read(path, tables=("mongo_commands",)) as analysis:
        found: list[Row] = analysis.arrow("mongo_commands").to_pylist()
        return found


def with_unasked_replies(records: Iterable[CommandRecord]) -> list[CommandRecord]:
    """Add replies that came unasked (request id 0) to the command before them: all of an exhaust stream is one."""
    found: list[CommandRecord] = []
    for one in records:
        if one.request_id:
            found.append(one)
            continue
        returned = (found[-1].returned or 0) + (one.returned or 0)
        found[-1] = found[-1]._replace(returned=returned, cursor_id=one.cursor_id)
    return found


def expected_values(record: CommandRecord) -> Row:
    """Return the columns of mongo_commands whose values the driver has told."""
    known: Row = {"command": record.command}
    if record.command != "bulkWrite":  # its database is the one that it writes to; drivers say where they sent it
        known["database"] = record.database
    for name in ("collection", "lsid", "txn_number"):
        if getattr(record, name) is not None:
            known[name] = getattr(record, name)
    if not record.acknowledged:
        return {**known, "unacknowledged": True}
    if not record.answered:
        return known
    known |= {"status": "ok" if record.ok and not record.write_errors else "error", "ok": record.ok}
    if record.ok or record.code is not None:
        known["error_code"] = record.code or 0
    if record.command not in OTHER_COUNTS:
        known["n"] = record.n
    known |= {"write_error_codes": sorted(set(record.write_errors))}
    if record.returned is not None:
        known |= {"documents_returned": record.returned, "cursor_exhausted": record.cursor_id == 0}
    if record.cursor_id:
        known["cursor_id"] = record.cursor_id
    return known


def values_of(row: Row) -> Row:
    """Return a row with lsid and codes as the drivers write them."""
    lsid = row["lsid"]
    codes = sorted(row["write_error_codes"] or ())
    if codes and row["ok"]:
        # Nothing but the writes failed; the row's own code may name the first of them.
        row = {**row, "error_code": 0}
    return {**row, "lsid": None if lsid is None else lsid.replace("-", ""), "write_error_codes": codes}


def compare(records: Iterable[CommandRecord], rows: Iterable[Row]) -> Compared:
    """Compare command by command; a command is named by its client's address and its request id."""
    by_name: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        by_name.setdefault((row["client_address"], row["request_id"]), []).append(row)
    differences = []
    compared = 0
    for record in with_unasked_replies(records):
        found = by_name.pop((record.address, record.request_id), [])
        if len(found) != 1:
            differences.append(f"{len(found)} rows for {record}")
            continue
        compared += 1
        row = values_of(found[0])
        wanted = expected_values(record)
        wrong = {name: (row[name], value) for name, value in wanted.items() if row[name] != value}
        if record.answered and record.duration_us is not None and row["latency_ms"] is not None:
            wire_us = row["latency_ms"] * 1000
            if wire_us > record.duration_us + ROUNDING_US:
                wrong["latency_ms"] = (row["latency_ms"], record.duration_us)
        if wrong:
            differences.append(f"{record.client} {record.command} {record.request_id}: {wrong}")
    untold = [row for left in by_name.values() for row in left if row["command"] not in NOT_TOLD]
    differences += [f"no driver told of {row['client_address']} {row['command']} {row['request_id']}" for row in untold]
    return Compared(compared, differences)


def log_of(name: str) -> list[CommandRecord]:
    return command_log.load(SAMPLES / ENTRIES[name]["client_log"])


@EVERY_SAMPLE
def test_every_command_is_what_its_driver_said(name: str) -> None:
    log = log_of(name)
    found = compare(log, rows_of(SAMPLES / name))
    assert found.differences == []
    assert found.commands == sum(1 for record in log if record.request_id) >= 10


@pytest.mark.parametrize(
    ("command", "change"),
    [
        pytest.param("insert", {"n": 1_000}, id="n"),
        pytest.param("find", {"cursor_exhausted": None}, id="cursor"),
        pytest.param("getMore", {"documents_returned": 2}, id="documents"),
        pytest.param("update", {"error_code": 112}, id="error code"),
        pytest.param("update", {"lsid": None}, id="session"),
        pytest.param("aggregate", {"latency_ms": 1e6}, id="latency"),
        pytest.param("distinct", {"request_id": 1}, id="request id"),
    ],
)
def test_a_wrong_value_would_be_found(command: str, change: Row) -> None:
    name = "mongo_healthy.pcapng"
    rows = rows_of(SAMPLES / name)
    at = next(index for index, row in enumerate(rows) if row["command"] == command)
    assert compare(log_of(name), [*rows[:at], {**rows[at], **change}, *rows[at + 1 :]]).differences


@EVERY_SAMPLE
def test_every_message_is_read(name: str) -> None:
    with wirewitness.read(SAMPLES / name, tables=("messages", "expert_infos")) as analysis:
        messages = analysis.arrow("messages").to_pylist()
        codes = Counter(row["code"] for row in analysis.arrow("expert_infos").to_pylist())
    assert not [row for row in messages if row["error"] or not row["complete"]]
    # FerretDB answers writes that want no answer.
    assert codes["unwanted_reply"] <= sum(not record.acknowledged for record in log_of(name))
    # A server that an application leaves without a word resets the connection.
    assert codes.keys() <= {"reset", "retransmission", "unwanted_reply"}


def test_each_client_is_compressed_as_it_asked() -> None:
    facts = ENTRIES[COMPRESSED]["facts"]
    address = {client["client"]: client["address"] for client in facts["client"]}
    wanted = {address[one["client"]]: {one["compressor"]} for one in facts["compressors"]}
    wanted |= {address[client]: {None} for client in facts["uncompressed"]}
    found: dict[str, set[str | None]] = {}
    for row in rows_of(SAMPLES / COMPRESSED):
        if row["command"] in NOT_TOLD:
            assert (row["compressor"], row["response_compressor"]) == (None, None)
            continue
        found.setdefault(row["client_address"], set()).add(row["compressor"])
        if row["response_packet"] is not None:
            assert row["response_compressor"] == row["compressor"]
    # Whoever has a wrong password never gets further than the authentication.
    assert found == {place: kinds for place, kinds in wanted.items() if place != address["wrong"]}


def test_awaited_hellos_and_exhaust_replies_are_counted() -> None:
    facts = ENTRIES[COMPRESSED]["facts"]
    address = {client["client"]: client["address"] for client in facts["client"]}
    rows = rows_of(SAMPLES / COMPRESSED)
    for client, replies in facts["exhaust_replies"].items():
        streams = [
            row["replies"] - 1
            for row in rows
            if row["client_address"] == address[client] and row["exhaust"] and row["command"] == "getMore"
        ]
        assert streams == [replies]
    for client, hellos in facts["awaited_hellos"].items():
        awaited = [row for row in rows if row["client_address"] == address[client] and row["awaitable"]]
        assert all(row["latency_ms"] is None for row in awaited)
        # The monitor may be told of an answer that it does not wait for any more.
        assert sum(row["replies"] for row in awaited) >= hellos


@pytest.mark.parametrize("name", [name for name in ENTRIES if "user_name" in ENTRIES[name]["facts"]])
def test_user_and_mechanism_are_shown_and_no_secret_of_the_authentication(name: str) -> None:
    raw = (SAMPLES / name).read_bytes()
    secrets = {match.decode() for match in re.findall(rb"r=([A-Za-z0-9+/]{20,})", raw)}
    secrets |= {match.decode() for match in re.findall(rb"[pvs]=([A-Za-z0-9+/]{30,}=*)", raw)}
    assert len(secrets) >= 6
    with wirewitness.read(SAMPLES / name, options=wirewitness.ReadOptions(payload=True)) as analysis:
        texts = [
            str(value)
            for table in analysis.tables()
            for row in analysis.arrow(table).to_pylist()
            for value in row.values()
            if value is not None
        ]
        starts = [row for row in analysis.arrow("mongo_commands").to_pylist() if row["mechanism"] is not None]
    assert not [secret for secret in secrets if any(secret in text for text in texts)]
    assert {(row["mechanism"], row["user_name"]) for row in starts} == {
        ("SCRAM-SHA-256", ENTRIES[name]["facts"]["user_name"])
    }
