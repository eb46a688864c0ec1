"""Tables of transactions, API versions and admin changes, row by row, against the broker's request log alone."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lab.scenarios.kafka.admin import SASL_PORT
from tests.oracle.test_broker_log import LOGS
from tests.oracle.test_broker_log_tables import WHO, Case, Log, Row, log_of, our_rows
from wirewitness.dissectors.kafka.schema.api_keys import API_KEYS


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


def markers(log: Log) -> Iterator[Row]:
    for entry, who in log.of(27):
        for marker in entry.request["markers"]:
            parts = [(topic["name"], part) for topic in marker["topics"] for part in topic["partitionIndexes"]]
            answer = next(one for one in (entry.response or {})["markers"] if one["producerId"] == marker["producerId"])
            yield (
                *who,
                "write_txn_markers",
                *(None, marker["producerId"], marker["producerEpoch"]),
                *(None, None, None),
                ",".join(dict.fromkeys(topic for topic, _ in parts)),
                ",".join(f"{topic}-{part}" for topic, part in parts),
                marker["transactionResult"],
                None,
                _code(answer),
            )


# What the broker does not log: authentication, and the first ApiVersions on a listener with SASL.
NOT_LOGGED = (17, 18, 36)


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
            if last.server.port == SASL_PORT and api["apiKey"] in NOT_LOGGED:
                continue
            seen = used[api["apiKey"]]
            span = (min(seen), max(seen)) if seen else (None, None)
            versions = (api["apiKey"], api["minVersion"], api["maxVersion"], *span)
            yield (client.host, client.port, last.client_id, *names, *versions)


# Of an API: where the request names things (fields of the struct behind the colon), and where the answer has its
# errors: by the field behind the colon, else in the order of the request.
CHANGES = {
    19: ("topics:name", "topics:name"),
    20: ("topics:name", "responses:name"),
    21: ("topics:name", "topics:name"),
    30: ("creations:resourceName", "results"),
    31: ("filters:resourceNameFilter", "filterResults"),
    37: ("topics:name", "results:name"),
    42: ("groupsNames", "results:groupId"),
    43: ("topicPartitions:topic", "replicaElectionResults:topic"),
    44: ("resources:resourceName", "responses:resourceName"),
    45: ("topics:name", "responses:name"),
    47: (":groupId", ""),
    49: ("entries:entity", "entries:entity"),
    51: ("deletions:name upsertions:name", "results:user"),
    57: ("featureUpdates:feature", ""),
    64: (":brokerId", ""),
    39: ("", ""),
    40: ("", ""),
}


def changes(log: Log) -> Iterator[Row]:
    for entry, who in log.of(*CHANGES, 34, 38):
        asked, answer = entry.request, entry.response or {}
        operation = API_KEYS[entry.api_key].name
        if entry.api_key == 34:
            for one in (topic for folder in asked["dirs"] for topic in folder["topics"]):
                yield (*who, operation, one["name"], _code(answer))
        elif entry.api_key == 38:
            yield (*who, operation, answer["tokenId"] or None, answer["errorCode"])
        else:
            where, errors = CHANGES[entry.api_key]
            if "topicNames" in asked:  # DeleteTopics before version 6
                where = "topicNames"
            things = [name for words in where.split() or [""] for name in _names(asked, words)]
            found, _, field = errors.partition(":")
            answers = answer[found] if found else [answer]
            for number, name in enumerate(things):
                same = [one for one in answers if field and _name(one[field]) == name] or answers[number : number + 1]
                yield (*who, operation, name, _code(same[0] if same else answer))


def _names(asked: dict[str, Any], words: str) -> list[str | None]:
    field, _, inner = words.partition(":")
    if not words or asked.get(field, ()) is None:
        return [None]
    return [_name(one[inner] if inner else one) for one in (asked[field] if field else [asked])]


def _name(value: Any) -> str | None:
    if not isinstance(value, list):
        return None if value is None else str(value)
    return ",".join(sorted(f"{one['entityType']}={one['entityName']}" for one in value))


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
        lambda log: itertools.chain(transactions(log), markers(log)),
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
        (*WHO, "operation", "resource_name", "error_code"),
        changes,
    ),
)


LEAST_ROWS = {
    ("kafka_healthy", "kafka_transactions"): 50,
    ("kafka_healthy", "kafka_api_versions"): 1000,
    ("kafka_admin", "kafka_admin_changes"): 30,
}


# Brokers among themselves (Envelope, batched AddPartitionsToTxn, voters) are not made into rows here.
OF_CLIENTS = [path for path in LOGS if not path.name.startswith(("kafka_cluster.", "kafka_share_streams."))]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.table)
@pytest.mark.parametrize("path", OF_CLIENTS, ids=lambda path: path.name.removesuffix(".jsonl.gz"))
def test_rows_equal_the_broker_log(path: Path, case: Case) -> None:
    name = path.name.removesuffix(".jsonl.gz")
    rows = our_rows(name, case.table)
    if case.table == "kafka_api_versions":
        rows = [row for row in rows if row["server_port"] != SASL_PORT or row["api_key"] not in NOT_LOGGED]
        rows = [row for row in rows if row["max_version"] is not None]  # the others: of clients that did not ask
    ours = Counter(tuple(row[column] for column in case.columns) for row in rows)
    logged = Counter(case.from_log(log_of(name)))
    assert not logged - ours
    assert not ours - logged
    print(f"{case.table}: {ours.total()} rows of {len(case.columns)} columns")
    assert ours.total() >= LEAST_ROWS.get((name, case.table), 0)
