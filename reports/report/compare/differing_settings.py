"""Settings of two sources side by side, as requests tell them: of clients, of topics and topic filters of MQTT, of
query shapes of MongoDB. In: two sources; out: rows.

Only what changed for sure: a client (or topic, ...) that both sides have, and none of the values that one side saw was
seen on the other. Those whose setting changed alike share a row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from wirewitness.reports.base.questions.source import Source, rows
from wirewitness.reports.report.compare.differing_clients import NAME
from wirewitness.reports.report.compare.differing_shapes import SHAPE_NAME

Key = tuple[str, str, str, str]
CLIENT = "client"
_VALUES_SHOWN = 4
# Of each table at most; who is left out of so many is no news.
_MOST = 50_000


class _Told(NamedTuple):
    """A table whose rows tell settings. where: of which rows. settings: name as the client's documentation has it, and
    the column, or SQL of it. of: whose settings they are. name: SQL of whose."""

    protocol: str
    table: str
    where: str
    settings: Mapping[str, str]
    of: str = CLIENT
    name: str = NAME


# 0 says the same as none.
_AS_NUMBER = "coalesce(nullif({}, 0)::varchar, 'none')"
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
    }, name=NAME.replace("client_id", "app_name")),
    _Told("mqtt", "mqtt_publishes", "direction = 'client_to_server'", {
        "QoS": "qos", "retain": "retain",
    }, "topic", "topic"),
    _Told("mqtt", "mqtt_subscriptions", "event = 'subscribe'", {
        "requested QoS": "requested_qos", "granted QoS": "granted_qos", "retain handling": "retain_handling",
    }, "topic filter", "topic_filter"),
    _Told("mongo", "mongo_commands", "collection is not null and command in ('find', 'count')", {
        "limit": _AS_NUMBER.format("\"limit\""), "skip": "skip", "batchSize": _AS_NUMBER.format("batch_size"),
    }, "query shape", SHAPE_NAME),
)  # fmt: skip
# What these read.
SETTINGS_TABLES = tuple(dict.fromkeys(told.table for told in _TOLD))


def settings_between(a: Source, b: Source) -> list[dict[str, Any]]:
    """protocol, of (client, topic, topic filter, query shape), setting, names (sorted), before, after: the values of
    both sides in words."""
    before, after = _values(a), _values(b)
    alike: dict[tuple[str, str, str, str, str], list[str]] = {}
    for key, old in before.items():
        new = after.get(key, set())
        if new and not old & new:
            protocol, of, name, setting = key
            alike.setdefault((protocol, of, setting, _words(old), _words(new)), []).append(name)
    made = [
        {"protocol": protocol, "of": of, "setting": setting, "names": sorted(names), "before": old, "after": new}
        for (protocol, of, setting, old, new), names in alike.items()
    ]
    return sorted(made, key=lambda row: (-len(row["names"]), row["protocol"], row["setting"], row["before"]))


def _values(source: Source) -> dict[Key, set[str]]:
    found: dict[Key, set[str]] = {}
    for told in _TOLD:
        for row in rows(source, _query(told)):
            for setting in told.settings:
                if row[setting] is not None:
                    found.setdefault((told.protocol, told.of, row["name"], setting), set()).add(str(row[setting]))
    return found


def _query(told: _Told) -> str:
    columns = ", ".join(f'({sql})::varchar as "{name}"' for name, sql in told.settings.items())
    return f"""
        select distinct {told.name} as name, {columns} from {told.table}
        where ({told.where}) and {told.name} is not null limit {_MOST}"""


def _words(values: set[str]) -> str:
    listed = sorted(values)
    more = f" and {len(listed) - _VALUES_SHOWN:,} more" if len(listed) > _VALUES_SHOWN else ""
    return ", ".join(listed[:_VALUES_SHOWN]) + more
