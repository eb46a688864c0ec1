"""What happened at MQTT servers, in the order of time.

In: a connection with views of the MQTT tables and of `flows`, publishes with the numbers of their rows. Out: numbers of
flows and of contents, as tables; events of each server, a batch at a time. Messages and flows have numbers here, since
ids are long texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from wirewitness.analyser.base import compute as pc
from wirewitness.analyser.base.words import CUT_NAME
from wirewitness.analyser.mqtt.facts.publishes_without_subscriber import MESSAGE_COLUMNS, Unheard

BATCH_ROWS = 16_384
# Of fewer publishes in a row that are not sent on columns are not worth it.
_FEW_UNHEARD = 32

# Kinds of events, in the order in which those of one time are taken.
CONNECTED, SUBSCRIBED, PUBLISHED, DELIVERED, UNSUBSCRIBED, ENDED = range(6)

# An event has these columns in this order; those of one that is no message stand for what `_EVENTS` says.
_EVENT_COLUMNS = (*MESSAGE_COLUMNS, "share_name", "kind")
KIND = len(_EVENT_COLUMNS) - 1
Event = tuple[Any, ...]


def _whole(name: str) -> str:
    """SQL: this column has all of its name. Of one that is cut in tables nobody knows what it matches."""
    return f"NOT (ends_with({name}, ')') AND regexp_matches({name}, '{CUT_NAME}'))"


_READ_FLOWS = " UNION ".join(
    f"SELECT flow_id FROM {table}" for table in ("flows", "mqtt_connections", "in_publishes", "mqtt_subscriptions")
)
# DUP says that it may have been sent before, which it need not (3.3.1.1): the same one was, with this identifier.
_IS_REPEATED = """row_number() OVER (
    PARTITION BY server_address, client_id, packet_identifier, topic, payload_bytes, payload_crc32
    ORDER BY ts, row) > 1"""

# A bridge of Mosquitto does not get back what it sent, and gets RETAIN as published (try_private; in 5.0 by options).
_OF_BRIDGE = "flow_id IN (SELECT flow_id FROM mqtt_connections WHERE bridge)"

# Numbers of flows, in the order of their ids, and of what servers sent.
NUMBERS = {
    "context_flows": f"SELECT row_number() OVER (ORDER BY flow_id) AS flow, flow_id FROM ({_READ_FLOWS})",
    "context_contents": """
        SELECT row_number() OVER () AS content, * FROM (
            SELECT DISTINCT server_address AS server, topic AS of_topic, payload_bytes AS size, payload_crc32 AS crc
            FROM in_publishes WHERE direction = 'server_to_client')""",
    "context_repeated": f"""
        SELECT row FROM (
            SELECT row, dup, {_IS_REPEATED} AS repeated FROM in_publishes
            WHERE direction = 'server_to_client' AND qos > 0 AND packet_identifier IS NOT NULL
                AND (server_address, client_id) IN (
                    SELECT server_address, client_id FROM in_publishes WHERE dup AND direction = 'server_to_client'))
        WHERE dup AND repeated""",
    # What the client's TCP sent again and the server's never confirmed did not reach it.
    "context_unconfirmed": """
        SELECT row FROM in_publishes JOIN flows USING (flow_id)
        WHERE direction = 'client_to_server' AND flows.unheard_sends_to_server > 0
            AND flows.bytes_to_server > flows.acked_by_server
            AND try_cast(regexp_extract(message_id, '[0-9]+$') AS BIGINT) + length_bytes > flows.acked_by_server""",
    "context_subscriptions": """
        SELECT row_number() OVER () AS number, * FROM mqtt_subscriptions
        WHERE event = 'subscribe' AND granted_qos IS NOT NULL AND ts_response IS NOT NULL""",
}

# How long a session outlives its connection, in ns: 0 for not at all, -1 for without an end, null where CONNECT is
# missing. 3.1.1: section 3.1.2.4; 5.0: 3.1.2.11.2, where an interval that is absent is 0.
_LASTS_NS = """CASE
    WHEN NOT connect_seen OR version IS NULL THEN NULL
    WHEN version <> '5.0' THEN CASE WHEN clean_start THEN 0 WHEN NOT clean_start THEN -1 END
    WHEN coalesce(server_session_expiry_s, session_expiry_s, 0) = 4294967295 THEN -1
    ELSE coalesce(server_session_expiry_s, session_expiry_s, 0) * 1_000_000_000 END"""

# A client's message that the server may keep or send on: not refused, not sent again, not waiting for its release.
TAKEN = f"""{_whole("topic")} AND qos < 3 AND coalesce(reason_code, 0) < 128
    AND NOT (direction = 'client_to_server' AND first_message_id IS NOT NULL)
    AND NOT (direction = 'client_to_server' AND qos = 2
             AND coalesce(handshake IN ('no_pubrec', 'no_pubrel'), false))"""

# One shape for all events. name: client id, filter or topic. x, y: flags. A subscription counts from the
# answer that grants it until it is given up; a connection until it was closed. A message of QoS 2 may be held back
# until it is released. What came in one packet has the order of the offsets with which ids end. A filter that a
# SUBSCRIBE names twice counts as if it came in two of them (MQTT 5.0, 3.8.4), so the last one holds. DuckDB sorts more
# rows than memory holds where they lie in a table; of a UNION ALL it holds them.
_EVENTS = f"""
    WITH events AS MATERIALIZED (FROM (
        SELECT {CONNECTED} AS kind, NULL::BIGINT AS row, flow_id, server_port AS port,
               epoch_ns(coalesce(ts_response, ts)) AS at_ns, nullif(client_id, '') AS name, NULL::BIGINT AS content,
               session_present AS x, clean_start AS y, NULL::BIGINT AS qos, {_LASTS_NS} AS expiry_ns,
               NULL AS share_name, server_address AS server, NULL AS id, packet,
               NULL::BIGINT AS position
        FROM mqtt_connections WHERE coalesce(error_code, 0) = 0
        UNION ALL
        SELECT {SUBSCRIBED}, number, flow_id, server_port, epoch_ns(ts_response),
               CASE WHEN {_whole("matching_filter")} THEN matching_filter END, NULL,
               coalesce(no_local, false) OR {_OF_BRIDGE}, coalesce(retain_as_published, false) OR {_OF_BRIDGE},
               granted_qos, NULL, share_name, server_address, coalesce(response_message_id, exchange_id),
               response_packet, position
        FROM context_subscriptions
        UNION ALL
        SELECT {UNSUBSCRIBED}, NULL, flow_id, server_port, epoch_ns(ts), matching_filter, NULL,
               NULL, NULL, NULL, NULL, share_name, server_address, exchange_id, request_packet, position
        FROM mqtt_subscriptions WHERE event = 'unsubscribe' AND {_whole("matching_filter")}
        UNION ALL
        SELECT CASE direction WHEN 'client_to_server' THEN {PUBLISHED} ELSE {DELIVERED} END, row, flow_id, server_port,
               epoch_ns(ts), topic, content, coalesce(retain, false), coalesce(dup, false), qos,
               message_expiry_s * 1_000_000_000, NULL, server_address, message_id, packet, NULL
        FROM in_publishes LEFT JOIN context_contents
            ON server_address IS NOT DISTINCT FROM server AND topic IS NOT DISTINCT FROM of_topic
            AND payload_bytes IS NOT DISTINCT FROM size AND payload_crc32 IS NOT DISTINCT FROM crc
        WHERE row NOT IN (FROM context_repeated) AND row NOT IN (FROM context_unconfirmed) AND {TAKEN}
        UNION ALL
        SELECT {ENDED}, NULL, flow_id, flows.server_port, epoch_ns(coalesce(flows.ts_closed, flows.ts_last)), NULL,
               NULL, NULL, NULL, NULL, NULL, NULL, flows.server_address, NULL, NULL, NULL
        FROM flows WHERE protocol = 'mqtt' AND (closed_by IS NOT NULL OR flow_id IN (
            SELECT flow_id FROM mqtt_connections WHERE disconnected_by IS NOT NULL)))
        JOIN context_flows USING (flow_id))
    SELECT * EXCLUDE (flow_id, id, packet, position) REPLACE (coalesce(server, '') AS server) FROM events
    ORDER BY at_ns, kind, packet, flow, length(id), id, position, name"""


def events_of_servers(con: duckdb.DuckDBPyConnection) -> Iterator[tuple[str, Unheard | Iterator[Event]]]:
    """The server's address with what happened there, in the order of time for each server."""
    for batch in con.sql(_EVENTS).to_arrow_reader(BATCH_ROWS):
        for address, events in _by_server(batch):
            for part in _parts(events):
                yield address, part


def _by_server(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    servers = pc.dictionary_encode(batch.column("server"))
    codes = servers.indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    if len(servers.dictionary) > 1:
        batch = pc.take(batch, pa.array(order))
    ends = np.searchsorted(codes[order], np.arange(len(servers.dictionary)), "right").tolist()
    for address, (start, end) in zip(servers.dictionary.to_pylist(), pairwise([0, *ends]), strict=True):
        yield address, batch.slice(start, end - start)


def _parts(events: pa.RecordBatch) -> Iterator[Unheard | Iterator[Event]]:
    """Many publishes in a row that are not sent on, and all that is between."""
    unheard = (events.column("kind").to_numpy() == PUBLISHED) & pc.is_null(events.column("content")).to_numpy(False)
    edges = np.flatnonzero(np.diff(unheard, prepend=False, append=False)).reshape(-1, 2)
    behind = 0
    for start, end in edges[edges[:, 1] - edges[:, 0] >= _FEW_UNHEARD].tolist():
        if start > behind:
            yield _one_by_one(events.slice(behind, start - behind))
        some = events.slice(start, end - start)
        yield Unheard({name: some.column(name) for name in MESSAGE_COLUMNS})
        behind = end
    if behind < events.num_rows:
        yield _one_by_one(events.slice(behind))


def _one_by_one(events: pa.RecordBatch) -> Iterator[Event]:
    return zip(*(_values(events.column(name)) for name in _EVENT_COLUMNS), strict=True)


def _values(column: pa.Array) -> list[Any]:
    """Plain values; of equal texts one object."""
    if not pa.types.is_string(column.type):
        values: list[Any] = column.to_pylist()
        return values
    coded = pc.dictionary_encode(column)
    names = [*coded.dictionary.to_pylist(), None]
    return [names[code] for code in pc.fill_null(coded.indices, -1).to_pylist()]
