"""What the rules about producers share: how a producer is named, and refused batches.

In: rows of a rule's frames as dicts. Out: words, and parts of a finding's numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from wirewitness.analyser.base.words import printable
from wirewitness.analyser.engine.rules.findings import Evidence
from wirewitness.analyser.engine.rules.frame_rows import Row
from wirewitness.analyser.kafka.rules.names import MAX_NAME

REFUSED = "kafka_refused_batches"
REFUSED_COLUMNS = (
    "ts", "exchange_id", "cluster_id", "client_id", "client_address", "server_address", "server_port", "topic",
    "partition", "records_count", "batch_bytes", "producer_id", "producer_epoch", "base_sequence", "base_timestamp",
    "transactional", "transactional_id", "error_code", "error_name", "ts_stored", "ts_accepted_before",
    "ts_accepted_after", "sequence_before", "leader_id", "replicas", "isr", "missing", "flow_id", "file",
    "request_packet",
)  # fmt: skip
TOO_LARGE = 10
# What sequences and epochs of producers are about: KAF201 judges these, KAF205 all others.
SEQUENCE_ERRORS = (45, 46, 47, 48, 59, 90, 120)


def topic_text(row: Row) -> str:
    """The topic, to stand in a sentence."""
    return printable(row["topic"] or "?", MAX_NAME)


def topic_subject(row: Row) -> Row:
    """Standard keys of a finding about what one client writes to a topic."""
    return {**topic_keys(row), "client": row["client_id"], "address": row["client_address"]}


def topic_keys(row: Row) -> Row:
    """The topic among subject and numbers."""
    return {"cluster": row["cluster_id"], "topic": row["topic"]}


def transactional_text(name: str | None) -> str:
    """`transactional id payouts-1`, to stand in a sentence."""
    return f"transactional id {printable(name, MAX_NAME)}" if name else "an unknown transactional id"


def batch_of(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """What tells a batch from others: it is the same one when a client sends it again."""
    own = (row["topic"], row["partition"], row["records_count"], row["batch_bytes"], row["base_timestamp"])
    if row["base_timestamp"] is not None:
        return own  # sequences begin anew behind a new epoch
    return (*own, row["producer_id"], row["producer_epoch"], row["base_sequence"])


def batches_of(rows: Sequence[Row]) -> list[Row]:
    """The last refusal of each batch, in the order of the first; one that was cut counts by its parts."""
    least: dict[tuple[Any, ...], int] = {}
    for row in rows:
        start = (row["topic"], row["partition"], row["base_timestamp"])
        least[start] = min(least.get(start, row["records_count"] or 0), row["records_count"] or 0)
    found = {batch_of(row): row for row in rows}.values()
    return [row for row in found if not _was_cut(row, least[row["topic"], row["partition"], row["base_timestamp"]])]


def _was_cut(row: Row, least: int) -> bool:
    return row["error_code"] == TOO_LARGE and row["base_timestamp"] is not None and (row["records_count"] or 0) > least


def records_in(rows: Iterable[Mapping[str, Any]]) -> int:
    """How many records these batches have."""
    return sum(row["records_count"] or 0 for row in rows)


def evidence_of(rows: Iterable[Mapping[str, Any]]) -> list[Evidence]:
    """The requests of these rows; tables without a packet name the message alone."""
    return [Evidence(row.get("file"), row.get("request_packet"), row["exchange_id"]) for row in rows]
