"""A request log read as a capture, beside the capture of the same run: equal tables, the same faults named.

The samples' logs are what the broker wrote; the lab keeps them as records, of which lines are made again here. What
only one of both can say: packets, sizes, and times to the ns; records, of which a log has the size; logins and what a
client says before them; requests without an answer.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import wirewitness
from tests.conftest import SAMPLES
from tests.support.request_log import write_sample_log
from wirewitness.analyser.analysis.analysis import Analysis
from wirewitness.analyser.tables.tables import TABLES
from wirewitness.dissectors.core.closed import closed_user

Row = tuple[str, ...]

STALE, FENCED = "kafka_stale_commit", "kafka_fenced_commit"
LONG = ("kafka_admin", "kafka_healthy", "kafka_share_streams")
# Columns of packets, ids made of streams, and times.
OF_PACKETS = {
    "exchange_id", "flow_id", "message_id", "request_message_id", "response_message_id", "ts", "ts_response", "file",
    "request_file", "line", "request_packet", "response_packet", "packet_first", "packet_last", "stream_offset",
    "length_bytes", "request_bytes", "response_bytes", "latency_ms", "client_gap_ts",
}  # fmt: skip
# What depends on which of two exchanges within one ms was first.
OF_ORDER = {"log_end_offset"}
COMPARED = {
    **dict.fromkeys(
        ("messages", "exchanges", "kafka_offset_commits", "kafka_offset_fetches", "kafka_group_events",
         "kafka_assignments", "kafka_brokers", "kafka_partitions", "kafka_list_offsets", "kafka_transactions",
         "kafka_admin_changes", "kafka_api_versions", "kafka_share_fetches", "kafka_share_acknowledges"),
        frozenset[str](),
    ),
    "kafka_fetch_partitions": frozenset({"records_count", "next_offset", "crc_ok"}),
    "kafka_produce_batches": frozenset(
        {"last_offset", "records_count", "codec", "uncompressed_bytes", "producer_id", "producer_epoch",
         "base_sequence", "base_timestamp", "max_timestamp", "transactional", "crc_ok", "content_crc",
         "first_key_bytes", "first_key_crc", "first_value_kind"}
    ),
}  # fmt: skip
# Of so many rows one may be in one of both only: what was said before a login, the last answer to a client that left,
# which the capture has cut or not at all, and ApiVersions requests of a version that the broker cannot read.
ONE_OF = 20


class Both(NamedTuple):
    """One run, seen both ways."""

    name: str
    log: Analysis
    capture: Analysis


@pytest.fixture(
    scope="module", params=[FENCED, *(pytest.param(one, marks=pytest.mark.cases) for one in (STALE, *LONG))]
)
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    name: str = request.param
    log = write_sample_log(SAMPLES, name, tmp_path_factory.mktemp("log") / f"{name}.log")
    tables = [*COMPARED, "findings", "kafka_request_times"]
    with (
        wirewitness.read(log, tables=tables) as ours,
        wirewitness.read(SAMPLES / f"{name}.pcapng", tables=tables) as theirs,
    ):
        yield Both(name, ours, theirs)


def rows(analysis: Analysis, table: str) -> Counter[Row]:
    """The rows of a table, in the columns that both ways have."""
    names = [one for one in TABLES[table].column_names() if one not in OF_PACKETS | OF_ORDER | COMPARED[table]]
    found: Counter[Row] = Counter()
    for row in analysis.arrow(table, columns=names).to_pylist():
        found[tuple(map(str, row.values()))] += 1
    return found


def test_tables_of_both_ways_are_equal(both: Both) -> None:
    compared = 0
    for table in COMPARED:
        ours, theirs = rows(both.log, table), rows(both.capture, table)
        only_log, only_capture = (ours - theirs).total(), (theirs - ours).total()
        print(f"{both.name} {table}: {ours.total()} rows, only in the log {only_log}, in the capture {only_capture}")
        if both.name in (STALE, FENCED):
            assert ours == theirs, table
        assert max(only_log, only_capture) <= ours.total() / ONE_OF, table
        compared += (ours & theirs).total()
    assert compared > 500


def test_of_records_a_log_knows_the_size_and_nothing_else(both: Both) -> None:
    sizes = {"kafka_fetch_partitions": "records_bytes", "kafka_produce_batches": "batch_bytes"}
    for table, size in sizes.items():
        columns = [size, *sorted(COMPARED[table])]
        found = [row for row in both.log.arrow(table, columns=columns).to_pylist() if row[size]]
        assert found
        assert {row[name] for row in found for name in COMPARED[table] - {"next_offset"}} == {None}


def test_the_next_fetch_tells_where_a_reader_went_on(both: Both) -> None:
    """Never further than the records led it, as the capture has them."""
    columns = ["client_id", "client_address", "topic", "partition", "fetch_offset", "next_offset", "records_bytes"]
    ways = []
    for analysis in (both.log, both.capture):
        read = [
            row for row in analysis.arrow("kafka_fetch_partitions", columns=columns).to_pylist() if row["records_bytes"]
        ]
        ways.append(Counter(tuple(map(str, row.values())) for row in read if row["next_offset"] is not None))
    log, capture = ways
    print(f"{both.name}: {log.total()} of {capture.total()} positions, {(log & capture).total()} as captured")
    assert log.total() > capture.total() / 2
    assert (log & capture).total() >= log.total() * 0.99


def subjects(analysis: Analysis) -> set[tuple[str, str]]:
    """Code and subject of all findings."""
    found: list[dict[str, Any]] = analysis.arrow("findings", columns=["code", "subject"]).to_pylist()
    return {(row["code"], row["subject"]) for row in found}


# What rests on records that a response held, of which a log tells nothing.
OF_RECORDS = {"KAF130"}


def test_the_log_alone_names_the_same_faults(both: Both) -> None:
    of_both = {one for one in subjects(both.capture) if one[0] not in OF_RECORDS}
    assert subjects(both.log) == of_both


def test_a_log_without_some_of_its_lines_accuses_nobody(tmp_path: Path) -> None:
    """Nothing in a log tells that lines are missing: what looks like a reader's jump is no finding."""
    log = write_sample_log(SAMPLES, FENCED, tmp_path / "whole.log")
    part = tmp_path / "part.log"
    part.write_bytes(b"".join(line for at, line in enumerate(log.read_bytes().splitlines(keepends=True)) if at % 4))
    with wirewitness.read(log, tables=["findings"]) as whole, wirewitness.read(part, tables=["findings"]) as some:
        assert {code for code, _ in subjects(some)} <= {code for code, _ in subjects(whole)}


def test_every_exchange_says_who_asked(both: Both) -> None:
    columns = ["exchange_id", "principal", "line", "total_ms"]
    times = both.log.arrow("kafka_request_times", columns=columns).to_pylist()
    latencies = both.log.arrow("exchanges", columns=["exchange_id", "latency_ms"]).to_pylist()
    exchanges = {row["exchange_id"]: row for row in latencies}
    assert sorted(row["exchange_id"] for row in times) == sorted(exchanges)
    assert {row["principal"] for row in times} == {closed_user("User:billing")}
    assert sorted(row["line"] for row in times) == [*range(1, len(times) + 1)]
    for row in times:
        latency_ms = exchanges[row["exchange_id"]]["latency_ms"]
        assert latency_ms is None or row["total_ms"] == pytest.approx(latency_ms)


@pytest.mark.parametrize("name", [STALE, FENCED, "kafka_cluster", *LONG])
def test_times_of_whole_seconds_accuse_nobody_else(name: str, tmp_path: Path) -> None:
    """The layout `%d{yyyy-MM-dd HH:mm:ss}`, beside Kafka's own of the same lines."""
    whole = write_sample_log(SAMPLES, name, tmp_path / "ms.log")
    cut = tmp_path / "s.log"
    cut.write_bytes(re.sub(rb"(?m)^(\[[0-9-]{10} [0-9:]{8}),[0-9]{3}", rb"\1", whole.read_bytes()))
    found = []
    for path in (whole, cut):
        with wirewitness.read(path) as analysis:
            told = analysis.findings().query("severity != 'info'")
        found.append(set(zip(told.code, told.severity, told.subject, strict=True)))
    assert found[0] == found[1]
