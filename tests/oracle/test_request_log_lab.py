"""Fresh runs of the lab, captured and logged at once, say the same both ways; and the log is switched on and off."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import wirewitness
from tests.lab import kafka, net
from tests.lab.processes import run
from tests.lab.shared_runs import outcome_of, require_lab
from tests.oracle.test_request_log import COMPARED, OF_ORDER, OF_PACKETS, Row
from wirewitness.analyser.analysis.analysis import Analysis
from wirewitness.analyser.tables.tables import TABLES

pytestmark = [pytest.mark.lab, pytest.mark.timeout(1200)]
# The rules that say what became of a group's offsets: of those the log knows all that the wire says.
OF_OFFSETS = ("KAF101", "KAF102", "KAF103", "KAF104")


def rows(analysis: Analysis, table: str) -> Counter[Row]:
    """Rows of what came from other hosts, in the columns that both ways have."""
    names = [one for one in TABLES[table].column_names() if one not in OF_PACKETS | OF_ORDER | COMPARED[table]]
    flows = "(SELECT flow_id FROM flows WHERE client_address NOT IN (server_address, '127.0.0.1'))"
    where = f"split_part(exchange_id, '-', 1) IN {flows}"
    found: Counter[Row] = Counter()
    for batch in analysis.query(f"SELECT {', '.join(names)} FROM {table} WHERE {where}"):
        found.update(tuple(map(str, row.values())) for row in batch.to_pylist())
    return found


def told(analysis: Analysis) -> set[tuple[str, str]]:
    """What the rules about offsets say, and of what."""
    found = analysis.arrow("findings", columns=["code", "subject"]).to_pylist()
    return {(row["code"], row["subject"]) for row in found if row["code"] in OF_OFFSETS}


def test_a_fresh_run_says_the_same_both_ways() -> None:
    outcome = outcome_of("kafka_stale_commit")
    tables = ["kafka_offset_commits", "kafka_group_events", "kafka_offset_fetches", "exchanges", "findings"]
    with (
        wirewitness.read(list(outcome.server_logs), tables=tables) as log,
        wirewitness.read(outcome.pcap, tables=tables) as capture,
    ):
        for table in tables[:-1]:
            ours, theirs = rows(log, table), rows(capture, table)
            print(f"{table}: {ours.total()} rows, {(ours & theirs).total()} equal")
            # A client that left has a request without a whole answer in the capture, at the end of its connection.
            assert max((ours - theirs).total(), (theirs - ours).total()) <= max(2, ours.total() // 200), table
        assert told(log) == told(capture)
        assert {code for code, _ in told(log)} == {*OF_OFFSETS}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[tuple[kafka.Node, net.Host]]:
    """A running node, and a host from which it is administrated."""
    require_lab()
    kind = kafka.Kafka()
    kind.prepare()
    with net.network(kind.host_names, ("admin",)) as hosts, kind.running([hosts["broker"]], tmp_path) as cluster:
        yield cluster.nodes[0], hosts["admin"]


def lines(node: kafka.Node) -> int:
    return node.request_log.read_bytes().count(b"Completed request:")


def alter(node: kafka.Node, host: net.Host, *words: str) -> None:
    """Kafka's own tool, as docs/request-log.md has it."""
    command = kafka.java(
        kafka.LIBRARIES, "kafka.admin.ConfigCommand", "--bootstrap-server", node.endpoint,
        "--entity-type", "broker-loggers", "--entity-name", "1", "--alter", *words,
    )  # fmt: skip
    run([*host.command(*command)])


def test_the_log_is_switched_on_and_off_without_a_restart(broker: tuple[kafka.Node, net.Host]) -> None:
    node, host = broker
    grown = []
    for words in (
        ("--add-config", "kafka.request.logger=WARN"),
        ("--add-config", "kafka.request.logger=DEBUG"),
        ("--delete-config", "kafka.request.logger"),
    ):
        alter(node, host, *words)
        before = lines(node)
        time.sleep(3)  # the node's controller and broker ask each other all the time
        grown.append(lines(node) > before)
    assert grown == [False, True, False]
