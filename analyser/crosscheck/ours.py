"""Our tables to messages: one query for each capture file, its rows in the order of the packets.

In: an analysis that holds TABLES. Out: messages of kafka, mqtt and mongo with the values that tshark shows too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import duckdb

from analyser.crosscheck.message import Endpoint, Flow, Key, Ours, partition_order
from analyser.crosscheck.tshark import PROTOCOLS
from analyser.options import ReadOptions
from analyser.registry.queries import literal

TABLES = (
    "captures",
    "flows",
    "messages",
    "exchanges",
    "kafka_offset_commits",
    "kafka_offset_fetches",
    "kafka_fetch_partitions",
    "kafka_produce_batches",
    "kafka_group_events",
    "mqtt_connections",
    "mqtt_publishes",
    "mqtt_subscriptions",
    "mongo_commands",
)
BATCH_ROWS = 1 << 13


class FlowState(NamedTuple):
    """What of a flow can explain a difference."""

    gap: bool = False
    midstream: bool = False
    encrypted: bool = False


def continued_flows(tables: Tables, file: str) -> frozenset[frozenset[Endpoint]]:
    """Endpoints of flows with messages in a file that began before its first packet; none of the first file."""
    query = f"""
        select distinct client_address, client_port, server_address, server_port
        from flows semi join (select flow_id from messages where file = {literal(file)}) using (flow_id)
        where ts_first < (select min(ts_first) from captures where file = {literal(file)})"""
    return frozenset(
        frozenset(((row[0], row[1]), (row[2], row[3]))) for row in tables.connection.execute(query).fetchall()
    )


class Tables(Protocol):
    """The part of `analyser.Analysis` that is used here."""

    options: ReadOptions

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """A connection with a view of every table."""
        ...


# Topics and partitions of an exchange: those of the request, and those of the response where these are others.
_PARTITIONS = """
    partitions as (
        select exchange_id, any_value(group_id) as group_id,
               list(distinct [topic, partition, committed_offset]) as asked,
               list(distinct [topic, partition, null]) as answered
        from (select exchange_id, group_id, topic, partition::varchar as partition,
                     committed_offset::varchar as committed_offset from kafka_offset_commits) group by exchange_id
        union all
        select exchange_id, any_value(group_id), null,
               list(distinct [topic, partition::varchar, committed_offset::varchar])
        from kafka_offset_fetches group by exchange_id
        union all
        select exchange_id, null, list(distinct [topic, partition::varchar, null]),
               list(distinct [topic, partition::varchar, null])
        from kafka_produce_batches group by exchange_id
        union all
        select exchange_id, null, null, list(distinct [topic, partition::varchar, null])
        from kafka_fetch_partitions where error_code is not null group by exchange_id
        union all
        select exchange_id, any_value(group_id), null, null
        from kafka_group_events where event <> 'describe' group by exchange_id)"""

_MESSAGES = """
    select m.packet_last, m.protocol, m.src_address, m.src_port, m.dst_address, m.dst_port, m.length_bytes,
           m.correlation_id, m.operation, m.role, m.version, m.message_id, m.flow_id, m.complete, m.error, m.client_id,
           f.carrier,
           f.out_of_order_segments + f.retransmitted_segments > 0 as disorder,
           a.exchange_id is not null as answers, a.request_packet, q.correlation_id as request_number,
           coalesce(a.error_code, 0) as error_code, a.error_code is not null as error_known,
           p.group_id, p.asked, p.answered,
           u.topic, u.qos, u.retain, u.dup, s.filters, c.connection_client_id, c.protocol_level,
           k.database, k.ok, k.compressor, k.response_compressor
    from messages m join flows f using (flow_id)
    left join exchanges r on r.request_message_id = m.message_id
    left join exchanges a on a.response_message_id = m.message_id and a.request_message_id is not null
    left join messages q on q.message_id = a.request_message_id
    left join partitions p on p.exchange_id = coalesce(r.exchange_id, a.exchange_id)
    left join mqtt_publishes u on u.message_id = m.message_id
    left join (select exchange_id, list(topic_filter order by position) as filters from mqtt_subscriptions
               group by exchange_id) s on s.exchange_id = r.exchange_id
    left join (select exchange_id, case when client_id_assigned then '' else client_id end as connection_client_id,
                      protocol_level from mqtt_connections where connect_seen) c on c.exchange_id = r.exchange_id
    left join mongo_commands k on k.exchange_id = coalesce(r.exchange_id, a.exchange_id)
    where {condition}
    order by m.packet_last, m.stream_offset"""


def files(tables: Tables) -> list[str]:
    """The files in which messages end."""
    condition = _selected(tables.options)
    query = f"select distinct m.file from messages m where {condition} order by 1"
    return [str(row[0]) for row in tables.connection.execute(query).fetchall()]


class Ports(NamedTuple):
    """Server port -> protocol, for tshark; and ports on which several protocols are spoken, which it cannot be told."""

    protocol_of: dict[int, str]
    shared: frozenset[int]


def server_ports(tables: Tables, file: str) -> Ports:
    """The ports of flows with messages in a file; of a shared one the protocol of most messages."""
    query = f"""
        select f.server_port, f.protocol, count(*) as n from flows f join messages m using (flow_id)
        where m.file = {literal(file)} and f.protocol in ({", ".join(map(literal, PROTOCOLS))}) and f.carrier is null
              and f.server_port is not null
        group by all order by n, f.protocol"""
    rows = tables.connection.execute(query).fetchall()
    counts = Counter(int(port) for port, _, _ in rows)
    shared = frozenset(port for port, protocols in counts.items() if protocols > 1)
    return Ports({int(port): str(protocol) for port, protocol, _ in rows}, shared)


def odd_flows(tables: Tables) -> dict[frozenset[Endpoint], FlowState]:
    """Flows that have gaps, began before the capture or are encrypted, by their endpoints."""
    query = """
        select client_address, client_port, server_address, server_port, max(gap_bytes) > 0,
               not bool_and(handshake_seen), bool_or(encrypted)
        from flows where gap_bytes > 0 or not handshake_seen or encrypted group by 1, 2, 3, 4"""
    return {
        frozenset(((row[0], row[1]), (row[2], row[3]))): FlowState(*row[4:])
        for row in tables.connection.execute(query).fetchall()
    }


def messages(tables: Tables, file: str) -> Iterator[Ours]:
    """The messages that end in a file, by packet and place in the stream; memory stays within DuckDB's limit."""
    condition = f"m.file = {literal(file)} and {_selected(tables.options)}"
    query = f"with {_PARTITIONS.strip()} {_MESSAGES.format(condition=condition)}"
    reader = tables.connection.sql(query).to_arrow_reader(BATCH_ROWS)
    for batch in reader:
        for row in batch.to_pylist():
            yield _made(row)


def _selected(options: ReadOptions) -> str:
    wanted = [name for name in PROTOCOLS if not options.protocols or name in options.protocols]
    conditions = [f"m.protocol in ({', '.join(map(literal, wanted)) or 'null'})"]
    if options.from_ns is not None:
        conditions.append(f"epoch_ns(m.ts) >= {options.from_ns}")
    if options.to_ns is not None:
        conditions.append(f"epoch_ns(m.ts) < {options.to_ns}")
    return " and ".join(conditions)


def _made(row: dict[str, Any]) -> Ours:
    protocol, number = row["protocol"], row["correlation_id"]
    operation = row["operation"]
    known = (operation, number) if protocol == "mqtt" else number
    key = Key(
        protocol,
        (row["src_address"], row["src_port"]),
        (row["dst_address"], row["dst_port"]),
        row["length_bytes"],
        known,
    )
    values = {"length_bytes": row["length_bytes"], "number": number, **_VALUES[protocol](row)}
    flow = Flow(bool(row["disorder"]), row["carrier"])
    return Ours(
        row["packet_last"],
        key,
        operation,
        row["role"],
        row["version"],
        {name: value for name, value in values.items() if value is not None or name in _MAY_BE_NULL},
        row["message_id"],
        row["flow_id"],
        flow,
        not row["complete"],
        row["error"],
    )


_MAY_BE_NULL = frozenset({"client_id"})


def _kafka(row: dict[str, Any]) -> dict[str, Any]:
    asks = row["role"] == "request"
    values: dict[str, Any] = {"operation": row["operation"], "version": row["version"]}
    values["partitions"] = _sorted(row["asked"] if asks else row["answered"])
    if asks:
        values |= {"client_id": row["client_id"], "group_id": row["group_id"]}
    elif row["answers"]:
        values["request"] = row["request_packet"]
        values["error_code"] = row["error_code"] if row["error_known"] else None
    return values


def _mqtt(row: dict[str, Any]) -> dict[str, Any]:
    values = {name: row[name] for name in ("operation", "qos", "retain", "dup", "filters")}
    if row["qos"] is not None:
        values["topic"] = row["topic"]
    if row["operation"] == "CONNECT":
        values["version"] = row["version"]
        if row["connection_client_id"] is not None:
            values["client_id"] = row["connection_client_id"] or None
    if row["operation"] == "CONNACK" and row["error_known"]:
        values["error_code"] = row["error_code"]
    return values


def _mongo(row: dict[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {"version": row["version"]}
    if row["role"] == "request":
        values |= {
            "operation": row["operation"],
            "database": row["database"],
            "compressor": row["compressor"] or "none",
        }
    elif row["answers"]:
        values |= {"request": row["request_number"], "ok": row["ok"]}
        values["compressor"] = row["response_compressor"] or "none"
    return values


_VALUES = {"kafka": _kafka, "mqtt": _mqtt, "mongo": _mongo}


def _sorted(rows: list[list[str | None]] | None) -> list[tuple[Any, ...]] | None:
    """Rows of topic, partition and perhaps offset, which DuckDB holds as text in one list, as tshark's are."""
    if rows is None:
        return None
    found = [
        (topic, int(partition or 0)) if offset is None else (topic, int(partition or 0), int(offset))
        for topic, partition, offset in rows
    ]
    return sorted(found, key=partition_order)
