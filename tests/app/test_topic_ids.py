"""Topics that a capture knows by their ids only: `--topic-id`, and names that are inferred from real clients."""

from __future__ import annotations

import csv
import io
import struct
from pathlib import Path
from uuid import UUID

import pytest
from click.testing import CliRunner, Result

import wirewitness
from tests.conftest import SAMPLES
from wirewitness.app.cli.main import cli

ORDERS = "JfAby0DYTx2xEcibbJlTcA"
PACKET = 6  # enhanced packet block of pcapng


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


def topics(capture: Path, *options: str) -> set[str]:
    done = run("query", str(capture), "select distinct topic from kafka_fetch_partitions where topic_id is not null",
               "--format", "csv", "--quiet", *options)  # fmt: skip
    assert done.exit_code == 0, done.stderr
    return {row["topic"] for row in csv.DictReader(io.StringIO(done.stdout))}


def without_names(capture: Path, target: Path) -> Path:
    """The capture without the packets of exchanges that name topic ids, as if it had begun after them."""
    with wirewitness.read(capture, tables=["exchanges", "kafka_partitions"]) as analysis:
        told = analysis.sql("""
            select request_packet, response_packet from exchanges
            where operation = 'Metadata' or exchange_id in (select exchange_id from kafka_partitions)""").to_pylist()
    gone = {packet for row in told for packet in row.values()}
    data, place, number, kept = capture.read_bytes(), 0, 0, []
    while place < len(data):
        kind, length = struct.unpack_from("<II", data, place)
        number += kind == PACKET
        if kind != PACKET or number not in gone:
            kept.append(data[place : place + length])
        place += length
    target.write_bytes(b"".join(kept))
    return target


@pytest.mark.parametrize(
    "topic_id", [ORDERS, str(UUID("25f01bcb-40d8-4f1d-b111-c89b6c99537" + "0"))], ids=["Kafka's form", "UUID"]
)
def test_a_name_that_is_given_counts(topic_id: str) -> None:
    assert topics(SAMPLES / "kafka_admin.pcapng") == {"orders"}
    assert topics(SAMPLES / "kafka_admin.pcapng", "--topic-id", f"renamed={topic_id}") == {"renamed"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["orders"], "NAME=ID"),
        (["orders=9092"], "NAME=ID"),
        ([f"={ORDERS}"], "NAME=ID"),
        ([f"a={ORDERS}", f"b={ORDERS}"], "at once"),
    ],
)
def test_wrong_usage(given: list[str], said: str) -> None:
    done = run("topics", "x", *(word for one in given for word in ("--topic-id", one)))
    assert done.exit_code == 2
    assert said in done.stderr


def test_a_capture_that_begins_in_the_middle_gets_the_names_that_fit(tmp_path: Path) -> None:
    whole = SAMPLES / "kafka_healthy.pcapng"
    cut = without_names(whole, tmp_path / "cut.pcapng")
    done = run("groups", str(cut), "--format", "csv")
    assert "is taken for clicks: " in done.stderr
    assert "topic ids without a name: " in done.stderr
    lags = {
        (row["group_id"], row["topic"], row["partition"]): row["lag"]
        for row in csv.DictReader(io.StringIO(done.stdout))
    }
    told = csv.DictReader(io.StringIO(run("groups", str(whole), "--format", "csv", "--quiet").stdout))
    true = {(row["group_id"], row["topic"], row["partition"]): row["lag"] for row in told}
    inferred = {key: lag for key, lag in lags.items() if key[1] in ("clicks", "events")}
    assert inferred
    assert inferred == {key: true[key] for key in inferred}
