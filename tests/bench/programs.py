"""The programs that are compared: their commands, and what they found.

In: a capture and a place for the output. Out: command lines, and counts of messages or records read from the outputs.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pyarrow.compute as pc
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
RECORD_KEY = "kafka.message_key"
MQTT_FIELDS = ("mqtt.msgtype", "mqtt.msgid", "mqtt.topic")
MONGO_FIELDS = ("mongo.opcode", "mongo.request_id", "mongo.response_to")
# `-c` puts the working directory first: what is measured is this tree, whatever is installed.
WIREWITNESS = (sys.executable, "-c", "from wirewitness.app.start import main; main()")


class Found(NamedTuple):
    """Requests and responses that a program saw."""

    requests: int
    responses: int


@dataclass(frozen=True, slots=True)
class Program:
    """A command that writes OUTPUT, by its standard output or by itself, and how to count what is in there."""

    name: str
    command: list[str]
    output: Path
    prints: bool
    count: Callable[[Path], tuple[int, ...]]

    def found(self) -> tuple[int, ...]:
        """What the output holds after a run."""
        return self.count(self.output)


def tshark_version() -> str:
    """First line of `tshark --version`."""
    done = subprocess.run(["tshark", "--version"], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[0]


def tshark_fields() -> tuple[list[str], list[str]]:
    """The fields that this tshark knows, and those that it does not."""
    done = subprocess.run(["tshark", "-G", "fields"], capture_output=True, text=True, check=True)
    known = {columns[2] for line in done.stdout.splitlines() if len(columns := line.split("\t")) > 2}
    return [name for name in TSHARK_FIELDS if name in known], [name for name in TSHARK_FIELDS if name not in known]


def tshark(capture: Path, output: Path, fields: Sequence[str]) -> Program:
    """tshark decoding every message to the given fields."""
    return Program("tshark", _tshark_command(capture, fields), output, True, partial(count_tshark, fields=fields))


def tshark_records(capture: Path, output: Path) -> Program:
    """tshark decoding every record to its key."""
    return Program("tshark", _tshark_command(capture, [RECORD_KEY]), output, True, _count_keys)


def tshark_mongo(capture: Path, output: Path) -> Program:
    """tshark decoding every MongoDB message, printing opcode and ids."""
    command = ["tshark", "-r", str(capture), "-d", "tcp.port==27017,mongo", "-T", "fields"]
    for name in MONGO_FIELDS:
        command += ["-e", name]
    return Program("tshark", command, output, True, count_tshark_mongo)


def tshark_ordinary(capture: Path, output: Path, fields: Sequence[str]) -> Program:
    """tshark decoding every message of the three protocols: the given fields of Kafka, those of the others."""
    command = [*_tshark_command(capture, [*fields, *MQTT_FIELDS, *MONGO_FIELDS]), "-d", "tcp.port==27017,mongo"]
    return Program("tshark", command, output, True, partial(count_tshark_ordinary, fields=fields))


def tshark_tls(capture: Path, output: Path, fields: Sequence[str], keylog: Path) -> Program:
    """tshark decrypting every record and decoding every Kafka message inside to the given fields."""
    command = [*_tshark_command(capture, fields, encrypted=True), "-o", f"tls.keylog_file:{keylog}"]
    return Program("tshark", command, output, True, partial(count_tshark, fields=fields))


def analyse(capture: Path, output: Path, *options: str) -> Program:
    """wirewitness with all tables, context, rules and the report for programs."""
    command = [*WIREWITNESS, "analyse", str(capture), "--format", "json", "--output", str(output), *options]
    return Program("wirewitness analyse", command, output, False, count_analysed)


def wirewitness_commands(capture: Path, output: Path) -> Program:
    """wirewitness decoding every message to mongo_commands: shapes, counts, errors, sessions."""
    command = _table_command("mongo_commands", capture, output)
    return Program("wirewitness mongo_commands", command, output, False, count_wirewitness)


def wirewitness(capture: Path, output: Path, *options: str) -> Program:
    """wirewitness decoding every message to the exchanges table."""
    return Program(
        " ".join(["wirewitness", *options]),
        _table_command("exchanges", capture, output, *options),
        output,
        False,
        count_wirewitness,
    )


def shared_out(program: Program) -> Program:
    """The same by two processes."""
    return replace(program, name=f"{program.name}, two processes", command=[*program.command, "--processes", "2"])


def wirewitness_messages(capture: Path, output: Path) -> Program:
    """wirewitness decoding every message to the messages table; counted are the complete ones."""
    return Program("wirewitness", _table_command("messages", capture, output), output, False, count_complete)


def wirewitness_records(capture: Path, output: Path, *options: str) -> Program:
    """wirewitness decoding every record; without --payload it gives a key's size, not the key."""
    columns = "offset,key" if "--payload" in options else "offset,key_bytes"
    command = _table_command("kafka_records", capture, output, "--columns", columns, *options)
    return Program(" ".join(["wirewitness", *options]), command, output, False, _count_offsets)


def tshark_mqtt(capture: Path, output: Path) -> Program:
    """tshark decoding every MQTT message to its type, identifier and topic."""
    command = ["tshark", "-r", str(capture), "-T", "fields"]
    for name in MQTT_FIELDS:
        command += ["-e", name]
    return Program("tshark", command, output, True, count_tshark_mqtt)


def wirewitness_mqtt(capture: Path, output: Path) -> Program:
    """wirewitness decoding every MQTT message to the messages table, which has the topic in its summary."""
    return Program("wirewitness", _table_command("messages", capture, output), output, False, count_mqtt_messages)


def has_option(option: str) -> bool:
    """`wirewitness table` knows the option."""
    done = subprocess.run([*WIREWITNESS, "table", "--help"], capture_output=True, text=True, check=True)
    return option in done.stdout.split()


def has_table(name: str) -> bool:
    """wirewitness has a table of that name."""
    return not subprocess.run([*WIREWITNESS, "tables", name], capture_output=True, check=False).returncode


def count_tshark(output: Path, fields: Sequence[str]) -> Found:
    """Every message has one correlation id, a request an api_version too. Values of one frame are comma separated."""
    version_at, correlation_at = fields.index("kafka.api_version"), fields.index("kafka.correlation_id")
    requests = messages = 0
    with output.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            columns = line.rstrip("\n").split("\t")
            requests += _values(columns[version_at])
            messages += _values(columns[correlation_at])
    return Found(requests, messages - requests)


def count_tshark_mongo(output: Path) -> Found:
    """Every message has one request id; requests answer nothing."""
    requests = messages = 0
    with output.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            answers = [int(value, 16) for value in line.rstrip("\n").split("\t")[-1].split(",") if value]
            messages += len(answers)
            requests += answers.count(0)
    return Found(requests, messages - requests)


def count_tshark_ordinary(output: Path, fields: Sequence[str]) -> Found:
    """Messages of Kafka and MongoDB; of MQTT those that begin an exchange (1, 3) and those that end one (2, 4)."""
    places = (fields.index("kafka.api_version"), fields.index("kafka.correlation_id"), len(fields), -1)
    requests = responses = 0
    with output.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            columns = line.rstrip("\n").split("\t")
            versions, correlations, types, answers = (columns[place] for place in places)
            kinds, ids = types.split(","), [int(value, 16) for value in answers.split(",") if value]
            requests += _values(versions) + kinds.count("1") + kinds.count("3") + ids.count(0)
            responses += _values(correlations) - _values(versions) + kinds.count("2") + kinds.count("4")
            responses += len(ids) - ids.count(0)
    return Found(requests, responses)


def count_analysed(output: Path) -> tuple[int, ...]:
    """Exchanges, and publishes among them, as the report counts them by operation."""
    told = json.loads(output.read_text())["operations"]
    publishes = sum(one["exchanges"] for one in told if one["operation"] == "PUBLISH")
    return sum(one["exchanges"] for one in told), publishes


def count_wirewitness(output: Path) -> Found:
    """An exchange has a request_packet and a response_packet where it has the message."""
    table = pq.read_table(output, columns=["request_packet", "response_packet"])
    rows = table.num_rows
    return Found(rows - table["request_packet"].null_count, rows - table["response_packet"].null_count)


def count_rows(output: Path) -> tuple[int, ...]:
    """Rows of a table."""
    return (pq.read_metadata(output).num_rows,)


def count_complete(output: Path) -> Found:
    """Messages of the messages table that were decoded to their last byte, by role."""
    table = pq.read_table(output, columns=["role", "complete"])
    roles = pc.value_counts(table.filter(table["complete"])["role"]).to_pylist()
    counts = {entry["values"]: entry["counts"] for entry in roles}
    return Found(counts.get("request", 0), counts.get("response", 0))


def _table_command(table: str, capture: Path, output: Path, *options: str) -> list[str]:
    """The command that writes a table to a Parquet file."""
    return [*WIREWITNESS, "table", table, str(capture), "--format", "parquet", "--output", str(output), *options]


def _tshark_command(capture: Path, fields: Sequence[str], *, encrypted: bool = False) -> list[str]:
    spoken = ["-d", "tcp.port==9092,tls", "-d", "tls.port==9092,kafka"] if encrypted else ["-d", "tcp.port==9092,kafka"]
    command = ["tshark", "-r", str(capture), *spoken, "-T", "fields"]
    for name in fields:
        command += ["-e", name]
    return command


def _count_keys(output: Path) -> tuple[int, ...]:
    """Keys are printed as hex; all records of these captures have one."""
    with output.open(encoding="utf-8", errors="replace") as lines:
        return (sum(_values(line.rstrip("\n")) for line in lines),)


def _count_offsets(output: Path) -> tuple[int, ...]:
    """A row without an offset is about a batch that could not be read."""
    table = pq.read_table(output, columns=["offset"])
    return (table.num_rows - table["offset"].null_count,)


def count_tshark_mqtt(output: Path) -> tuple[int, ...]:
    """Messages and PUBLISH among them; types of one frame are comma separated."""
    messages = publishes = 0
    with output.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            types = line.split("\t", 1)[0].strip()
            if types:
                kinds = types.split(",")
                messages += len(kinds)
                publishes += kinds.count("3")
    return messages, publishes


def count_mqtt_messages(output: Path) -> tuple[int, ...]:
    """A PUBLISH counts when its topic was read."""
    table = pq.read_table(output, columns=["operation", "summary"])
    named = pc.and_(pc.equal(table["operation"], "PUBLISH"), pc.starts_with(table["summary"], "topic=plant/"))
    return table.num_rows, pc.sum(named).as_py()


def _values(cell: str) -> int:
    return cell.count(",") + 1 if cell else 0
