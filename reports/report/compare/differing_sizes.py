"""Sizes of two sources side by side: requests and responses by operation, records and payloads by topic. In: two
sources; out: rows, what differs most first.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from wirewitness.reports.base.questions.source import Source
from wirewitness.reports.report.compare.differing_operations import pairs
from wirewitness.reports.report.compare.quantiles import QUANTILES, quantile_factor, quantiles_of


class _Told(NamedTuple):
    """What has a size. protocol: its SQL. name: SQL of what it is by, an operation or a topic. bytes: SQL of one.
    where: of which rows."""

    what: str
    table: str
    protocol: str
    name: str
    bytes: str
    where: str


_OPERATION = "coalesce(operation, 'not decoded')"
_TOPIC = "coalesce(topic, topic_id)"
_TOLD = (
    _Told("request", "exchanges", "protocol", _OPERATION, "request_bytes", "true"),
    _Told("response", "exchanges", "protocol", _OPERATION, "response_bytes", "status = 'ok'"),
    _Told("record", "kafka_produce_batches", "'kafka'", _TOPIC, "batch_bytes / records_count", "records_count > 0"),
    _Told("payload", "mqtt_publishes", "'mqtt'", "topic", "payload_bytes", "direction = 'client_to_server'"),
)
SIZE_TABLES = tuple(dict.fromkeys(told.table for told in _TOLD))
# A header more or less is next to nothing.
_BLUR_BYTES = 64.0
_KEYS = ("protocol", "name")


def sizes_between(a: Source, b: Source) -> list[dict[str, Any]]:
    """protocol, what (request, response, record, payload), name (an operation or a topic); p50_bytes, p99_bytes of
    both; p50, p99 (least factors), differs."""
    made = []
    for told in _TOLD:
        query = f"""
            select {told.protocol} as protocol, {told.name} as name, ({told.bytes})::double as bytes
            from {told.table} where {told.where} and {told.name} is not null"""
        for key, sides in pairs(a, b, quantiles_of(query, _KEYS, "bytes"), _KEYS).items():
            row: dict[str, Any] = {"protocol": key[0], "what": told.what, "name": key[1]}
            for side, found in zip("ab", sides, strict=True):
                row |= {f"{name}_bytes_{side}": found.get(f"{name}_bytes") for name in QUANTILES}
            row |= {name: quantile_factor(sides, name, "bytes", _BLUR_BYTES) for name in QUANTILES}
            made.append(row | {"differs": max(row[name] for name in QUANTILES)})
    return sorted(made, key=lambda row: (-row["differs"], row["what"], row["name"]))
