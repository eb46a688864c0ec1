"""What the rules about producers share: how producers, places and times are named, and refused batches.

In: rows of a detector's frames as dicts. Out: words, and parts of a finding's numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from analyser.detectors.findings import Evidence
from analyser.detectors.frame_rows import Row
from analyser.words import printable

MAX_NAME = 120
MAX_PARTITIONS = 100
NS_PER_MS, NS_PER_S = 1_000_000, 1_000_000_000

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


def client_text(row: Mapping[str, Any]) -> str:
    """`client shop-1 at 10.0.0.3`."""
    name = printable(row["client_id"], MAX_NAME) if row["client_id"] else "(no client id)"
    return f"client {name} at {row['client_address'] or '(unknown address)'}"


def transactional_text(name: str | None) -> str:
    """`transactional id payouts-1`, to stand in a sentence."""
    return f"transactional id {printable(name, MAX_NAME)}" if name else "an unknown transactional id"


def place(row: Mapping[str, Any]) -> str:
    """`orders-3`: topic and partition as Kafka's own tools write them."""
    return f"{printable(row['topic'], MAX_NAME) if row['topic'] else '(unknown topic)'}-{row['partition']}"


def places_text(rows: Iterable[Mapping[str, Any]], most: int = 5) -> str:
    """Their partitions, each once; what is too much is counted."""
    return names_text(sorted({place(row) for row in rows}), most)


def names_text(names: Sequence[str], most: int = 5) -> str:
    """`a, b and 3 more`."""
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return ", ".join(names)


def clock_text(ts_ns: int) -> str:
    """`2026-11-20 12:28:24 UTC`."""
    return f"{datetime.fromtimestamp(ts_ns // NS_PER_S, UTC):%Y-%m-%d %H:%M:%S} UTC"


def seconds_text(ns: int) -> str:
    """`0.04 s`, `30.1 s`, `1,260 s`."""
    seconds = ns / NS_PER_S
    return f"{seconds:.2f} s" if seconds < 1 else f"{seconds:.1f} s" if seconds < 100 else f"{seconds:,.0f} s"


def period_text(first_ns: int, last_ns: int) -> str:
    """`at 2026-11-20 12:28:24 UTC`, or `from ... on, for 30.1 s`."""
    if last_ns <= first_ns:
        return f"at {clock_text(first_ns)}"
    return f"from {clock_text(first_ns)} on, for {seconds_text(last_ns - first_ns)}"


def time_text(ns: int) -> str:
    """A Unix time as ISO 8601 with milliseconds, for numbers."""
    second, rest = divmod(ns, NS_PER_S)
    return f"{datetime.fromtimestamp(second, UTC):%Y-%m-%dT%H:%M:%S}.{rest // NS_PER_MS:03d}Z"


def client_numbers(row: Mapping[str, Any], **more: Any) -> Row:
    """An element of `clients` in a finding's numbers."""
    return {"address": row["client_address"], "client_id": row["client_id"], **more}


def server_text(row: Mapping[str, Any]) -> str | None:
    """`10.0.0.9:9092`; IPv6 addresses stand in brackets. None where it is not known."""
    address = row["server_address"]
    if not address:
        return None
    return f"[{address}]:{row['server_port']}" if ":" in address else f"{address}:{row['server_port']}"


def partitions_of(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """`partitions` of a finding's numbers."""
    return sorted({f"{row['topic']}-{row['partition']}" for row in rows})[:MAX_PARTITIONS]


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
