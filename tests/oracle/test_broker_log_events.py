"""Tables of transactions, API versions and admin changes, row by row, against the broker's request log alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dissectors.kafka.api_keys import API_KEYS
from tests.oracle.test_broker_log import LOGS
from tests.oracle.test_broker_log_tables import WHO, Case, Log, Row, log_of, our_rows


def transactions(log: Log) -> Iterator[Row]:
    for entry, who in log.of(22, 24, 25, 26, 28):
        asked, answer = entry.request, entry.response or {}
        old = "v3AndBelow" if "v3AndBelowTransactionalId" in asked else ""
        field = {name: _field(asked, old, name) for name in ("transactionalId", "producerId", "producerEpoch")}
        topics = (asked.get(old + "Topics") if old else asked.get("topics")) or []
        parts = [(log.topic(topic), part) for topic in topics for part in _indexes(topic["partitions"])]
        given = (None, None)
        if entry.api_key in (22, 26) and answer.get("producerId", -1) >= 0 and answer["errorCode"] == 0:
            given = (answer["producerId"], answer["producerEpoch"])
        yield (
            *who,
            EVENTS[entry.api_key],
            *(field[name] for name in ("transactionalId", "producerId", "producerEpoch")),
            *given,
            asked.get("groupId"),
            ",".join(dict.fromkeys(topic for topic, _ in parts)) or None,
            ",".join(f"{topic}-{part}" for topic, part in parts) or None,
            asked.get("committed"),
            asked.get("transactionTimeoutMs"),
            _code(answer),
        )


EVENTS = {
    22: "init_producer_id",
    24: "add_partitions_to_txn",
    25: "add_offsets_to_txn",
    26: "end_txn",
    28: "txn_offset_commit",
}


def _field(asked: dict[str, Any], old: str, name: str) -> Any:
    return asked.get(old + name[0].upper() + name[1:]) if old else asked.get(name, -1)


def _indexes(partitions: list[Any]) -> list[int]:
    return [part["partitionIndex"] if isinstance(part, dict) else part for part in partitions]


def _code(answer: dict[str, Any]) -> int:
    """The first error code that is not 0, wherever it stands in the answer."""
    waiting: list[Any] = [answer]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            codes = [int(value) for name, value in one.items() if name.lower().endswith("errorcode") and value]
            if codes:
                return codes[0]
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
    return 0


def offered(log: Log) -> Iterator[Row]:
    """Of each connection: what the last answer of ApiVersions lists, and the versions of its requests."""
    connections: dict[Any, list[Any]] = {}
    for entry in log.entries:
        connections.setdefault(entry.client, []).append(entry)
    for client, entries in connections.items():
        asked = [entry for entry in entries if entry.api_key == 18 and entry.response is not None]
        if not asked:
            continue
        last, used = asked[-1], {key: [e.version for e in entries if e.api_key == key] for key in API_KEYS}
        names = (last.request.get("clientSoftwareName"), last.request.get("clientSoftwareVersion"))
        for api in (last.response or {})["apiKeys"]:
            seen = used[api["apiKey"]]
            span = (min(seen), max(seen)) if seen else (None, None)
            versions = (api["apiKey"], api["minVersion"], api["maxVersion"], *span)
            yield (client.host, client.port, last.client_id, *names, *versions)


def changes(log: Log) -> Iterator[Row]:
    for entry, who in log.of(19):
        for topic in entry.request["topics"]:
            answered = {one["name"]: one["errorCode"] for one in (entry.response or {})["topics"]}
            size = f"partitions={topic['numPartitions']} replication_factor={topic['replicationFactor']}"
            settings = "".join(f" {one['name']}={one['value']}" for one in topic["configs"])
            code = answered[topic["name"]]
            yield (*who, "CreateTopics", "topic", topic["name"], f"create {size}{settings}", code)


CASES = (
    Case(
        "kafka_transactions",
        (
            *WHO,
            "event",
            "transactional_id",
            "producer_id",
            "producer_epoch",
            "answered_producer_id",
            "answered_producer_epoch",
            "group_id",
            "topics",
            "partitions",
            "committed",
            "transaction_timeout_ms",
            "error_code",
        ),
        transactions,
    ),
    Case(
        "kafka_api_versions",
        (
            *WHO,
            "software_name",
            "software_version",
            "api_key",
            "min_version",
            "max_version",
            "used_version_min",
            "used_version_max",
        ),
        offered,
    ),
    Case(
        "kafka_admin_changes",
        (*WHO, "operation", "resource_type", "resource_name", "change", "error_code"),
        changes,
    ),
)


LEAST_ROWS = {"kafka_transactions": 50, "kafka_api_versions": 1000, "kafka_admin_changes": 6}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.table)
@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.name.removesuffix(".jsonl.gz"))
def test_rows_equal_the_broker_log(path: Path, case: Case) -> None:
    name = path.name.removesuffix(".jsonl.gz")
    ours = Counter(tuple(row[column] for column in case.columns) for row in our_rows(name, case.table))
    logged = Counter(case.from_log(log_of(name)))
    assert not logged - ours
    assert not ours - logged
    print(f"{case.table}: {ours.total()} rows of {len(case.columns)} columns")
    if name == "kafka_healthy":
        assert ours.total() >= LEAST_ROWS[case.table]
