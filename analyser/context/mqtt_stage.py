"""The context of MQTT: deliveries.

In: a connection with views of the MQTT tables and of `flows`. Out: the views `mqtt_deliveries` and `mqtt_absences`, and
`mqtt_publishes` with the columns `expected_deliveries` and `deliveries`. What happened at all servers passes once,
sorted by time, through `mqtt_deliveries.Server`, one for each address; rows leave as they become certain, so memory
holds what waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import duckdb
import pyarrow as pa

from analyser.collector import collector_paused
from analyser.context.mqtt_deliveries import Server
from analyser.context.mqtt_delivery_sql import ABSENCES, DELIVERIES
from analyser.context.mqtt_memory import Memory
from analyser.context.mqtt_told import Delivery, Message
from analyser.context.stage import NOTHING, Held
from analyser.context.topics import views
from analyser.words import CUT_NAME

_BATCH_ROWS = 16_384
# Rows of one server that wait to be handed over: there may be many servers.
_SERVER_ROWS = 1_024
_NEEDS = {"mqtt_connections", "mqtt_publishes", "mqtt_subscriptions", "flows"}

# Kinds of events, in the order in which those of one time are taken.
_CONNECTED, _SUBSCRIBED, _PUBLISHED, _DELIVERED, _UNSUBSCRIBED, _ENDED = range(6)


def _whole(name: str) -> str:
    """SQL: this column has all of its name. Of one that is cut in tables nobody knows what it matches."""
    return f"NOT (ends_with({name}, ')') AND regexp_matches({name}, '{CUT_NAME}'))"


# One shape for all events: time, kind, server address, port, flow; a: client id, filter or topic; b: share name or
# message id; x, y: flags; sizes of a payload; QoS granted or sent; message expiry in ns; is the same sent on, which one
# hash join tells for less than it takes to wait for all that nobody gets. A subscription counts from the
# answer that grants it until it is given up; a connection until it was closed. A message of QoS 2 may be held back
# until it is released. Messages of one packet come in the order of their offsets, with which their ids end.
_EVENTS = f"""
    SELECT epoch_ns(coalesce(ts_response, ts)) AS at_ns, {_CONNECTED} AS kind, server_address, server_port, flow_id,
           client_id AS a, NULL AS b, session_present AS x, NULL AS y,
           NULL::BIGINT AS size, NULL::BIGINT AS crc, NULL::BIGINT AS qos, NULL::BIGINT AS expiry,
           NULL::BOOLEAN AS sent_on, packet
    FROM in_connections WHERE coalesce(error_code, 0) = 0
    UNION ALL
    SELECT epoch_ns(ts_response), {_SUBSCRIBED}, server_address, server_port, flow_id,
           CASE WHEN {_whole("matching_filter")} THEN matching_filter END, share_name,
           no_local, retain_as_published, NULL, NULL, granted_qos, NULL, NULL, response_packet
    FROM mqtt_subscriptions
    WHERE event = 'subscribe' AND granted_qos IS NOT NULL AND ts_response IS NOT NULL
    UNION ALL
    SELECT epoch_ns(ts), {_UNSUBSCRIBED}, server_address, server_port, flow_id, matching_filter, share_name,
           NULL, NULL, NULL, NULL, NULL, NULL, NULL, request_packet
    FROM mqtt_subscriptions WHERE event = 'unsubscribe' AND {_whole("matching_filter")}
    UNION ALL
    SELECT epoch_ns(ts), CASE direction WHEN 'client_to_server' THEN {_PUBLISHED} ELSE {_DELIVERED} END,
           server_address, server_port, flow_id, topic, message_id, retain, dup, payload_bytes, payload_crc32,
           qos, message_expiry_s * 1_000_000_000, got.sent_on IS NOT NULL, packet
    FROM in_publishes AS sent LEFT JOIN (
        SELECT DISTINCT server_address AS server, topic AS of_topic, payload_bytes AS size, payload_crc32 AS crc,
                        true AS sent_on
        FROM in_publishes WHERE direction = 'server_to_client') AS got
        ON server_address IS NOT DISTINCT FROM server AND topic IS NOT DISTINCT FROM of_topic
        AND payload_bytes IS NOT DISTINCT FROM size AND payload_crc32 IS NOT DISTINCT FROM crc
    WHERE {_whole("topic")} AND qos < 3 AND coalesce(reason_code, 0) < 128
        AND NOT (direction = 'client_to_server' AND first_message_id IS NOT NULL)
        AND NOT (direction = 'client_to_server' AND qos = 2
                 AND coalesce(handshake IN ('no_pubrec', 'no_pubrel'), false))
    UNION ALL
    SELECT epoch_ns(coalesce(flows.ts_closed, flows.ts_last)), {_ENDED}, flows.server_address, flows.server_port,
           flow_id, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
    FROM flows WHERE protocol = 'mqtt' AND (closed_by IS NOT NULL OR flow_id IN (
        SELECT flow_id FROM in_connections WHERE disconnected_by IS NOT NULL))
    ORDER BY at_ns, kind, packet, flow_id, length(b), b, a"""

_RAW = pa.schema(
    [
        ("message_id", pa.string()),
        ("subscriber_flow_id", pa.string()),
        ("share_name", pa.string()),
        ("topic_filter", pa.string()),
        ("status", pa.string()),
        ("delivered_message_id", pa.string()),
        ("delivered_ns", pa.int64()),
        ("waited_ns", pa.int64()),
        ("near_port", pa.int64()),
        ("far_port", pa.int64()),
        ("server", pa.string()),
        ("members", pa.list_(pa.string())),
    ]
)
_ABSENT = pa.schema(
    [
        ("flow_id", pa.string()),
        ("next_flow_id", pa.string()),
        ("client_id", pa.string()),
        ("left_ns", pa.int64()),
        ("back_ns", pa.int64()),
        ("session_present", pa.bool_()),
        ("messages", pa.int64()),
        ("expired", pa.int64()),
        ("complete", pa.bool_()),
        ("first_message_id", pa.string()),
        ("last_message_id", pa.string()),
        ("topics", pa.list_(pa.string())),
        ("server", pa.string()),
    ]
)
_COUNTS = pa.schema([("message_id", pa.string()), ("expected", pa.int64()), ("delivered", pa.int64())])
_COPIES = pa.schema([("message_id", pa.string()), ("subscriber_flow_id", pa.string())])
_JOINED = pa.schema([("server", pa.string()), ("near_port", pa.int64()), ("far_port", pa.int64())])

_PUBLISHES = """
    SELECT sent.* REPLACE (counts.expected AS expected_deliveries, counts.delivered AS deliveries)
    FROM in_publishes AS sent LEFT JOIN context_counts AS counts USING (message_id)"""


def add_deliveries(con: duckdb.DuckDBPyConnection, _: Held = NOTHING) -> Held:
    """Make `mqtt_deliveries` and fill the context columns of `mqtt_publishes`. Call it once."""
    there = views(con)
    if not there >= _NEEDS:
        return NOTHING
    con.execute("ALTER VIEW mqtt_publishes RENAME TO in_publishes")
    con.execute("CREATE TEMP VIEW in_connections AS FROM mqtt_connections")
    tables = {
        "context_deliveries": _Rows(con, "context_deliveries", _RAW),
        "context_counts": _Rows(con, "context_counts", _COUNTS),
        "context_copies": _Rows(con, "context_copies", _COPIES),
        "context_joined": _Rows(con, "context_joined", _JOINED),
        "context_absences": _Rows(con, "context_absences", _ABSENT),
    }
    servers: dict[str, Server] = {}
    memory = Memory()
    now_ns = 0
    with collector_paused():
        for events in _events(con):
            touched: dict[str, Server] = {}
            for now_ns, kind, address, port, flow, *details in events:
                server = servers.get(address)
                if server is None:
                    server = servers[address] = Server(memory=memory)
                touched[address] = server
                _TAKE[kind](server, now_ns, port, flow, *details)
                if memory.has_let_go:
                    memory.has_let_go = False
                    for each, one in servers.items():
                        _hand_over(each, one, tables)
                elif len(server.told.rows) >= _SERVER_ROWS:
                    _hand_over(address, server, tables)
            for address, server in touched.items():
                if len(server.told) >= _SERVER_ROWS:
                    _hand_over(address, server, tables)
    ends_ns = con.sql("SELECT max(epoch_ns(ts_last)) FROM flows").fetchall()[0][0] or now_ns
    for address, server in servers.items():
        server.finish(ends_ns)
        _hand_over(address, server, tables)
        tables["context_joined"].add([(address, *ports) for ports in server.joined_ports])
    for rows in tables.values():
        rows.flush()
    con.execute(f"CREATE OR REPLACE TEMP VIEW mqtt_deliveries AS {DELIVERIES}")
    con.execute(f"CREATE OR REPLACE TEMP VIEW mqtt_absences AS {ABSENCES}")
    con.execute(f"CREATE TEMP VIEW mqtt_publishes AS {_PUBLISHES}")
    return NOTHING


class _Rows:
    """A table in DuckDB that rows are appended to, a batch at a time."""

    def __init__(self, con: duckdb.DuckDBPyConnection, name: str, schema: pa.Schema) -> None:
        # A cursor of its own: the connection itself is still reading events.
        self._con = con.cursor()
        self._name = name
        self._schema = schema
        self._held: list[tuple[Any, ...]] = []
        self._con.register("columns_of", schema.empty_table())
        self._con.execute(f"CREATE TABLE {name} AS FROM columns_of")

    def add(self, rows: Sequence[tuple[Any, ...]]) -> None:
        self._held += rows
        if len(self._held) >= _BATCH_ROWS:
            self.flush()

    def flush(self) -> None:
        if not self._held:
            return
        columns = zip(*self._held, strict=True)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, self._schema, strict=True)]
        self._con.register("held", pa.table(arrays, schema=self._schema))
        self._con.execute(f"INSERT INTO {self._name} FROM held")
        self._con.unregister("held")
        self._held = []


def _events(con: duckdb.DuckDBPyConnection) -> Iterator[Iterator[tuple[Any, ...]]]:
    """A batch at a time."""
    for batch in con.sql(_EVENTS).to_arrow_reader(_BATCH_ROWS):
        yield zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _hand_over(address: str, server: Server, tables: dict[str, _Rows]) -> None:
    tables["context_deliveries"].add([_raw(row, address) for row in server.told.rows])
    tables["context_counts"].add(server.told.counts)
    tables["context_absences"].add([(*absence, address) for absence in server.told.absences])
    tables["context_copies"].add(server.told.copies)
    server.told.clear()


def _raw(row: Delivery, address: str) -> tuple[Any, ...]:
    near, far = row.ports or (None, None)
    return (
        row.message_id,
        row.subscriber_flow_id,
        row.share_name,
        row.topic_filter,
        row.status,
        row.delivered_message_id,
        row.ts_delivered,
        row.waited_ns,
        near,
        far,
        address,
        row.members,
    )


_Take = Callable[..., None]


def _connected(
    server: Server, now: int, port: int, flow: str, client: str | None, _: Any, x: bool | None, *__: Any
) -> None:
    server.connected(flow, port, client, x, now)


def _subscribed(
    server: Server, _: int, __: int, flow: str, name: str | None, share: str | None, x: Any, y: Any, *more: Any
) -> None:
    if name is None:
        server.subscribed_unknown()
        return
    server.subscribed(flow, name, share, bool(x), bool(y), int(more[2] or 0))


def _unsubscribed(server: Server, now: int, _: int, flow: str, name: str, share: str | None, *__: Any) -> None:
    server.unsubscribed(flow, name, share, now)


def _message(
    now: int,
    port: int,
    flow: str,
    topic: str,
    name: str,
    retain: bool,
    dup: bool,
    size: int | None,
    crc: int | None,
    qos: int,
    expiry: int | None,
    sent_on: bool,
    *_: Any,
) -> Message:
    return Message(name, flow, port, now, topic, (topic, size, crc), bool(retain), bool(dup), qos, expiry, sent_on)


def _published(server: Server, *event: Any) -> None:
    server.published(_message(*event))


def _delivered(server: Server, *event: Any) -> None:
    server.delivered(_message(*event))


def _ended(server: Server, now: int, _: int, flow: str, *__: Any) -> None:
    server.ended(flow, now)


_TAKE: dict[int, _Take] = {
    _CONNECTED: _connected,
    _SUBSCRIBED: _subscribed,
    _PUBLISHED: _published,
    _DELIVERED: _delivered,
    _UNSUBSCRIBED: _unsubscribed,
    _ENDED: _ended,
}
