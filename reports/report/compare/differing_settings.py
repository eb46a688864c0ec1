"""Settings of clients of two sources side by side, as their requests tell them. In: two sources; out: rows.

Only what changed for sure: a client that both sides have, and none of the values that one side saw was seen on the
other. Clients whose setting changed alike share a row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from wirewitness.reports.base.questions.source import Source, rows
from wirewitness.reports.report.compare.differing_clients import NAME

Key = tuple[str, str, str]
_VALUES_SHOWN = 4


class _Told(NamedTuple):
    """A table whose rows tell settings. where: of which rows. settings: name as the client's documentation has it, and
    the column."""

    protocol: str
    table: str
    where: str
    settings: Mapping[str, str]


_TOLD = (
    _Told("kafka", "kafka_fetch_partitions", "coalesce(replica_id, -1) < 0", {
        "fetch.max.wait.ms": "max_wait_ms", "fetch.min.bytes": "min_bytes", "fetch.max.bytes": "max_bytes",
        "max.partition.fetch.bytes": "partition_max_bytes", "isolation.level": "isolation_level",
    }),
    _Told("kafka", "kafka_produce_batches", "true", {
        "acks": "acks", "request.timeout.ms": "timeout_ms", "compression.type": "codec",
        "transactional": "transactional",
    }),
    _Told("kafka", "kafka_group_events", "event in ('join', 'consumer_heartbeat')", {
        "session.timeout.ms": "session_timeout_ms", "max.poll.interval.ms": "rebalance_timeout_ms",
        "partition.assignment.strategy": "protocols_offered", "group.protocol": "group_protocol",
    }),
    _Told("mqtt", "mqtt_connections", "connect_seen", {
        "keep alive (s)": "keep_alive_s", "clean start": "clean_start", "session expiry (s)": "session_expiry_s",
        "receive maximum": "receive_maximum", "version": "version", "transport": "transport",
    }),
    _Told("mongo", "mongo_commands", "true", {
        "readPreference": "read_preference", "readConcern": "read_concern", "writeConcern": "write_concern",
        "maxTimeMS": "max_time_ms", "compressors": "compressors_agreed",
    }),
)  # fmt: skip
# What these read.
SETTINGS_TABLES = tuple(told.table for told in _TOLD)
_NAMES = {"mongo_commands": NAME.replace("client_id", "app_name")}


def settings_between(a: Source, b: Source) -> list[dict[str, Any]]:
    """protocol, setting, clients (names, sorted), before, after: the values of both sides in words."""
    before, after = _values(a), _values(b)
    alike: dict[tuple[str, str, str, str], list[str]] = {}
    for key, old in before.items():
        new = after.get(key, set())
        if new and not old & new:
            protocol, client, setting = key
            alike.setdefault((protocol, setting, _words(old), _words(new)), []).append(client)
    made = [
        {"protocol": protocol, "setting": setting, "clients": sorted(clients), "before": old, "after": new}
        for (protocol, setting, old, new), clients in alike.items()
    ]
    return sorted(made, key=lambda row: (-len(row["clients"]), row["protocol"], row["setting"], row["before"]))


def _values(source: Source) -> dict[Key, set[str]]:
    found: dict[Key, set[str]] = {}
    for told in _TOLD:
        for row in rows(source, _query(told)):
            for setting in told.settings:
                if row[setting] is not None:
                    found.setdefault((told.protocol, row["client"], setting), set()).add(str(row[setting]))
    return found


def _query(told: _Told) -> str:
    columns = ", ".join(f'{column}::varchar as "{name}"' for name, column in told.settings.items())
    client = _NAMES.get(told.table, NAME)
    return f"select distinct {client} as client, {columns} from {told.table} where {told.where} and client is not null"


def _words(values: set[str]) -> str:
    listed = sorted(values)
    more = f" and {len(listed) - _VALUES_SHOWN:,} more" if len(listed) > _VALUES_SHOWN else ""
    return ", ".join(listed[:_VALUES_SHOWN]) + more
