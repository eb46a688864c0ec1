"""Which independent encoder proves which message; `python -m tests.oracle.test_kio_coverage` writes it to docs.

An empty cell is a message with a schema that no encoder but our own has written. There may be no more of them than
docs/kafka-coverage.md says.
"""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.lab import broker_log
from tests.oracle.test_broker_log import LOGS
from tests.oracle.test_kio_gaps import CASES
from tests.support import kafka_encode, kio_messages
from wirewitness.dissectors.kafka.schema.api_keys import API_KEYS, api_name
from wirewitness.dissectors.kafka.schema.definitions import Direction

PAGE = Path(__file__).parents[2] / "docs" / "kafka-coverage.md"
EMPTY = re.compile(r"^Empty cells: (\d+)$", re.MULTILINE)
INTRODUCTION = """\
# Kafka messages and what proves them

Every message that `dissectors/kafka/apis` describes, and the encoder whose bytes our decoder has to read field by
field: kio, a Python library, with random values, or the Java client of the release named. Neither shares a line with
our decoder; both are made from the definitions of Apache Kafka. Numbers are API versions. The last column has the
versions whose requests and responses in `sample_pcaps` equal, field by field, what a real broker logged of them.
`python -m tests.oracle.test_kio_coverage` writes this page.
"""


class Proof(NamedTuple):
    """The encoder whose bytes prove our decoder of one message; "" if none does."""

    key: int
    version: int
    direction: Direction
    oracle: str


def coverage() -> list[Proof]:
    """One row for each message that has a schema, ordered by key, direction and version."""
    java = {(case.key, case.version, case.direction): f"kafka-clients {case.release}" for case in CASES}
    rows = [
        Proof(*message, "kio" if kio_messages.entity_type(*message) else java.get(message, ""))
        for message in kafka_encode.MESSAGES
    ]
    return sorted(rows, key=lambda row: (row.key, row.direction, row.version))


def span(versions: list[int]) -> str:
    return str(versions[0]) if len(versions) == 1 else f"{versions[0]}-{versions[-1]}"


def cells(rows: list[Proof]) -> str:
    """The oracles of one message in version order, neighbouring versions of one oracle together."""
    runs = [(oracle, [row.version for row in run]) for oracle, run in groupby(rows, key=lambda row: row.oracle)]
    return ", ".join(f"{span(versions)} {oracle or 'none'}" for oracle, versions in runs)


def logged() -> dict[int, set[int]]:
    """Versions of each key that brokers logged in the runs that made the samples."""
    found: dict[int, set[int]] = {}
    for path in LOGS:
        for entry in broker_log.load(path):
            found.setdefault(entry.api_key, set()).add(entry.version)
    return found


def spans(versions: set[int]) -> str:
    """Versions in order, neighbours together: 0-3, 7."""
    runs: list[list[int]] = []
    for version in sorted(versions):
        if runs and version == runs[-1][-1] + 1:
            runs[-1].append(version)
        else:
            runs.append([version])
    return ", ".join(span(run) for run in runs)


def page(rows: list[Proof], in_logs: dict[int, set[int]]) -> str:
    """The coverage as Markdown: how many cells are empty and which, then one line for each API."""
    empty = [row for row in rows if not row.oracle]
    missing = [f"- {api_name(row.key)} v{row.version} {row.direction}" for row in empty]
    lines = ["| key | API | request | response | broker log |", "| --: | --- | --- | --- | --- |"]
    for key, group in groupby(rows, key=lambda row: row.key):
        ways = {way: cells(list(some)) for way, some in groupby(group, key=lambda row: row.direction)}
        seen = spans(in_logs.get(key, set()))
        lines.append(f"| {key} | {api_name(key)} | {ways['request']} | {ways['response']} | {seen} |")
    known = {(row.key, row.version) for row in rows}
    in_log = sum((key, version) in known for key, versions in in_logs.items() for version in versions)
    amounts = f"In the broker logs: {in_log} of {len(known)} versions, {len(in_logs)} keys"
    head = [INTRODUCTION, f"Messages: {len(rows)}", "", amounts, "", f"Empty cells: {len(empty)}", "", *missing]
    return "\n".join([*head, *([""] if missing else []), *lines]) + "\n"


@pytest.mark.exhaustive
def test_no_more_messages_without_an_oracle_than_the_page_says() -> None:
    written = EMPTY.search(PAGE.read_text(encoding="utf-8"))
    assert written is not None
    empty = [row for row in coverage() if not row.oracle]
    assert len(empty) <= int(written[1]), empty


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(coverage(), logged())


def test_every_version_of_every_key_is_in_the_matrix() -> None:
    assert {(row.key, row.version, row.direction) for row in coverage()} == {
        (key, version, direction)
        for key, known in API_KEYS.items()
        for version in range(known.newest + 1)
        for direction in ("request", "response")
    }


def test_an_empty_cell_is_named() -> None:
    rows = [Proof(12, 0, "request", "kio"), Proof(12, 1, "request", ""), Proof(12, 0, "response", "kio")]
    text = page(rows, {12: {0, 1, 3}})
    assert "Empty cells: 1\n\n- Heartbeat v1 request\n" in text
    assert "| 12 | Heartbeat | 0 kio, 1 none | 0 kio | 0-1, 3 |" in text
    assert "In the broker logs: 2 of 2 versions, 1 keys" in text


if __name__ == "__main__":
    PAGE.write_text(page(coverage(), logged()), encoding="utf-8")
