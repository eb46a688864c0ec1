"""Our tables to messages: one query for each capture file, its rows in the order of the packets.

In: an analysis that holds TABLES. Out: messages of the compared protocols with the values that tshark shows too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import duckdb

from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.tables.queries import literal
from wirewitness.reports.report.tshark.message import Endpoint, Flow, Key, Ours
from wirewitness.reports.report.tshark.protocols import COMPARED

TABLES = (
    "captures",
    "flows",
    "messages",
    "exchanges",
    *(table for compared in COMPARED.values() for table in compared.tables),
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


_MESSAGES = """
    select m.packet_last, m.protocol, m.src_address, m.src_port, m.dst_address, m.dst_port, m.length_bytes,
           m.correlation_id, m.operation, m.role, m.version, m.message_id, m.flow_id, m.complete, m.error, m.client_id,
           f.carrier,
           f.out_of_order_segments + f.retransmitted_segments > 0 as disorder,
           a.exchange_id is not null as answers, a.request_packet, q.correlation_id as request_number,
           coalesce(a.error_code, 0) as error_code, a.error_code is not null as error_known,
           {columns}
    from messages m join flows f using (flow_id)
    left join exchanges r on r.request_message_id = m.message_id
    left join exchanges a on a.response_message_id = m.message_id and a.request_message_id is not null
        -- Of the two that a CONNACK may answer, CONNECT and AUTH (MQTT 5.0, 4.12), CONNECT counts.
        and not (m.operation = 'CONNACK' and coalesce(a.operation = 'AUTH', false))
    left join messages q on q.message_id = a.request_message_id
    {joins}
    where {condition}
    order by m.packet_last, m.stream_offset"""


def files(tables: Tables) -> list[str]:
    """The files in which messages end."""
    condition = _selected(tables.options)
    query = f"select distinct m.file from messages m where {condition} order by 1"
    return [str(row[0]) for row in tables.connection.execute(query).fetchall()]


class Ports(NamedTuple):
    """Server port -> protocol, for tshark; ports on which several protocols are spoken, which it cannot be told; and
    those on which they are spoken inside TLS."""

    protocol_of: dict[int, str]
    shared: frozenset[int]
    encrypted: frozenset[int]


def server_ports(tables: Tables, file: str) -> Ports:
    """The ports of flows with messages in a file; of a shared one the protocol of most messages."""
    names = ", ".join(map(literal, COMPARED))
    query = f"""
        select f.server_port, f.protocol, bool_or(f.encrypted), count(*) as n
        from flows f join messages m using (flow_id)
        where m.file = {literal(file)} and f.protocol in ({names}) and f.server_port is not null
              and (f.carrier is null or f.encrypted)
        group by f.server_port, f.protocol order by n, f.protocol"""
    rows = tables.connection.execute(query).fetchall()
    counts = Counter(int(port) for port, *_ in rows)
    shared = frozenset(port for port, protocols in counts.items() if protocols > 1)
    encrypted = frozenset(int(port) for port, _, is_encrypted, _ in rows if is_encrypted)
    return Ports({int(port): str(protocol) for port, protocol, *_ in rows}, shared, encrypted)


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
    compared = COMPARED.values()
    columns = ", ".join(column for one in compared for column in one.columns)
    joins = "\n    ".join(one.joins.strip() for one in compared)
    subqueries = ",".join(subquery for one in compared for subquery in one.subqueries)
    query = f"with {subqueries} {_MESSAGES.format(columns=columns, joins=joins, condition=condition)}"
    reader = tables.connection.sql(query).to_arrow_reader(BATCH_ROWS)
    for batch in reader:
        for row in batch.to_pylist():
            yield _made(row)


def _selected(options: ReadOptions) -> str:
    wanted = [name for name in COMPARED if not options.protocols or name in options.protocols]
    conditions = [f"m.protocol in ({', '.join(map(literal, wanted)) or 'null'})"]
    if options.from_ns is not None:
        conditions.append(f"epoch_ns(m.ts) >= {options.from_ns}")
    if options.to_ns is not None:
        conditions.append(f"epoch_ns(m.ts) < {options.to_ns}")
    return " and ".join(conditions)


def _made(row: dict[str, Any]) -> Ours:
    protocol, number = row["protocol"], row["correlation_id"]
    operation = row["operation"]
    known = (operation, number) if COMPARED[protocol].by_operation else number
    key = Key(
        protocol,
        (row["src_address"], row["src_port"]),
        (row["dst_address"], row["dst_port"]),
        row["length_bytes"],
        known,
    )
    values = {"length_bytes": row["length_bytes"], "number": number, **COMPARED[protocol].values(row)}
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
