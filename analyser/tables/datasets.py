"""Tables that only datasets have: what months of traffic come down to."""

from __future__ import annotations

from wirewitness.analyser.tables.model import Column, Table
from wirewitness.analyser.tables.shared import CLIENT_ADDRESS, CLIENT_ID, CLUSTER, PROTOCOL_NAMES, ts_column

_LATENCY_MINUTES = Table(
    "latency_minutes",
    "one row per minute, operation, client and topic: exchanges and their latencies",
    (
        ts_column("begin of the minute of the requests", "derived"),
        Column("protocol", "string", PROTOCOL_NAMES),
        CLUSTER,
        Column("operation", "string", "API, packet type or command name"),
        Column("topic", "string", "topic, where the exchanges are about exactly one", "derived"),
        CLIENT_ID,
        CLIENT_ADDRESS,
        Column("exchanges", "int64", "exchanges of that minute", "derived", nullable=False),
        Column("errors", "int64", "those whose status is error", "derived", nullable=False),
        Column("unanswered", "int64", "those whose status is unanswered", "derived", nullable=False),
        Column(
            "latencies",
            "int64",
            "those that have a latency and are no long polls",
            "derived",
            nullable=False,
        ),
        Column("latency_sum_ms", "float64", "sum of these latencies", "derived", "ms"),
        Column("latency_min_ms", "float64", "the smallest", "derived", "ms"),
        Column("latency_p50_ms", "float64", "median, from the sketch", "derived", "ms"),
        Column("latency_p90_ms", "float64", "90th percentile, from the sketch", "derived", "ms"),
        Column("latency_p99_ms", "float64", "99th percentile, from the sketch", "derived", "ms"),
        Column("latency_max_ms", "float64", "the largest", "derived", "ms"),
        Column("sketch", "bytes", "Apache DataSketches REQ sketch of floats (ms), can be merged", "derived"),
    ),
    ("ts", "protocol", "cluster_id", "operation", "topic", "client_id", "client_address"),
)

_FINDINGS_HISTORY = Table(
    "findings_history",
    "one row per finding that any run came to, those that later packets overturned too",
    (
        Column("finding_id", "string", "findings.finding_id", nullable=False),
        Column("code", "string", "detector code", nullable=False),
        Column("name", "string", "detector name", nullable=False),
        Column("severity", "string", "info, warning or critical", nullable=False),
        Column("confidence", "string", "low, medium or high", nullable=False),
        Column("subject", "string", "what it is about, key=value pairs", nullable=False),
        Column("sentence", "string", "the conclusion in one sentence, as it was last said", nullable=False),
        Column("ts_first", "time", "time of the first evidence", unit="UTC"),
        Column("ts_last", "time", "time of the last evidence", unit="UTC"),
        Column("first_run", "string", "the run that came to it first", nullable=False),
        Column("ts_found", "time", "when that run ended", unit="UTC", nullable=False),
        Column("superseded_run", "string", "the run that came to it no more; null while it holds"),
        Column("ts_superseded", "time", "when that run ended", unit="UTC"),
    ),
    ("code", "subject", "finding_id"),
)

DATASET_TABLES = (_LATENCY_MINUTES, _FINDINGS_HISTORY)
