"""The two programs that are compared: their commands, and what they found.

In: a capture and a place for the output. Out: command lines, and counts of Kafka messages read from the outputs.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq

TSHARK_FIELDS = (
    "frame.number",
    "frame.time_epoch",
    "tcp.stream",
    "kafka.api_key",
    "kafka.api_version",
    "kafka.correlation_id",
    "kafka.client_id",
    "kafka.consumer_group",
    "kafka.topic_name",
    "kafka.partition_id",
    "kafka.offset",
    "kafka.error",
)


class Found(NamedTuple):
    """Requests and responses that a program saw."""

    requests: int
    responses: int


def tshark_version() -> str:
    """First line of `tshark --version`."""
    done = subprocess.run(["tshark", "--version"], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[0]


def tshark_fields() -> tuple[list[str], list[str]]:
    """The fields that this tshark knows, and those that it does not."""
    done = subprocess.run(["tshark", "-G", "fields"], capture_output=True, text=True, check=True)
    known = {columns[2] for line in done.stdout.splitlines() if len(columns := line.split("\t")) > 2}
    return [name for name in TSHARK_FIELDS if name in known], [name for name in TSHARK_FIELDS if name not in known]


def tshark_command(capture: Path, fields: list[str]) -> list[str]:
    """tshark decoding every message to the given fields; it writes to standard output."""
    command = ["tshark", "-r", str(capture), "-d", "tcp.port==9092,kafka", "-T", "fields"]
    for name in fields:
        command += ["-e", name]
    return command


def wirewitness_command(capture: Path, output: Path) -> list[str]:
    """wirewitness decoding every message to the exchanges table."""
    installed = Path(sys.executable).with_name("wirewitness")
    start = [str(installed)] if installed.exists() else [sys.executable, "-c", "from app.cli.main import main; main()"]
    return [*start, "table", "exchanges", str(capture), "--format", "parquet", "--output", str(output)]


def count_tshark(output: Path, fields: list[str]) -> Found:
    """Every message has one correlation id, a request an api_version too. Values of one frame are comma separated."""
    version_at, correlation_at = fields.index("kafka.api_version"), fields.index("kafka.correlation_id")
    requests = messages = 0
    with output.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            columns = line.rstrip("\n").split("\t")
            requests += _values(columns[version_at])
            messages += _values(columns[correlation_at])
    return Found(requests, messages - requests)


def count_wirewitness(output: Path) -> Found:
    """An exchange has a request_packet and a response_packet where it has the message."""
    table = pq.read_table(output, columns=["request_packet", "response_packet"])
    rows = table.num_rows
    return Found(rows - table["request_packet"].null_count, rows - table["response_packet"].null_count)


def _values(cell: str) -> int:
    return cell.count(",") + 1 if cell else 0
