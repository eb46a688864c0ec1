"""The context of connections: `kafka_connections`, what became of each connection of a Kafka client.

In: a connection with views of `flows`, `exchanges` and the Kafka tables of brokers and authentications. Out: the view
of that table. A flow that nobody could read (refused, never answered, TLS, HTTP) is there when it goes where Kafka is
spoken, where a client was sent, or to a usual port of Kafka. Its cluster is the one that answers there, or that sent
clients there; with two such clusters it is not known.
"""

from __future__ import annotations

import duckdb

from wirewitness.analyser.engine.facts.chunk_files import show_made
from wirewitness.analyser.engine.facts.stage import CONNECTIONS, NOTHING, Held
from wirewitness.analyser.engine.facts.steps import steps_made
from wirewitness.analyser.engine.facts.topics import views
from wirewitness.analyser.tables.kafka_connections import OF_FLOWS
from wirewitness.analyser.tables.queries import null_columns

TABLE = "kafka_connections"
# Why applications connect at all: they write, read, commit, or are members of a group.
WORK = (
    "Produce", "Fetch", "ShareFetch", "OffsetCommit", "TxnOffsetCommit", "JoinGroup", "Heartbeat",
    "ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "StreamsGroupHeartbeat",
)  # fmt: skip
# What a client asks on its way in.
ON_THE_WAY = (
    "ApiVersions", "Metadata", "FindCoordinator", "SaslHandshake", "SaslAuthenticate", "GetTelemetrySubscriptions",
    "PushTelemetry", "InitProducerId",
)  # fmt: skip
_USUAL_PORTS = (9092, 9093, 9094)

_IS_REQUEST = "request_message_id IS NOT NULL"
# One packet may bring several requests; the numbers in their ids rise.
_SENT = "(ts, request_packet, length(exchange_id), exchange_id)"
# Since KIP-219 a broker responds at once and reads nothing of the connection for so long; what is sent meanwhile waits.
_MUTED = """max(make_timestamp_ns(epoch_ns(ts_response) + throttle_time_ms * 1000000)::TIMESTAMPTZ_NS)
                   FILTER (throttle_time_ms > 0)"""
# From Kafka 2.1 brokers can be told by address; by name, the packets of who goes there show another text.
_IS_ADDRESS = "regexp_matches(host, '^[0-9.]+$') OR contains(host, ':')"

_STEPS = {
    "connection_uses": f"""
        SELECT flow_id, min(cluster_id) AS cluster_id, arg_min(client_id, ts) AS client_id,
               count(*) FILTER ({_IS_REQUEST}) AS requests,
               count(*) FILTER ({_IS_REQUEST} AND response_message_id IS NOT NULL) AS answered,
               count(*) FILTER (status = 'unanswered') AS unanswered, count(*) FILTER (status = 'error') AS errors,
               count(*) FILTER (throttle_time_ms > 0) AS throttled, {_MUTED} AS ts_muted_until,
               count(*) FILTER ({_IS_REQUEST} AND operation IN {WORK}) AS work,
               count(*) FILTER ({_IS_REQUEST} AND operation NOT IN {(*WORK, *ON_THE_WAY)}) AS others,
               arg_min(struct_pack(operation, exchange_id), {_SENT}) FILTER ({_IS_REQUEST}) AS first,
               arg_max(struct_pack(operation, exchange_id, status, ts), {_SENT}) FILTER ({_IS_REQUEST})
                   AS last
        FROM use_exchanges WHERE protocol = 'kafka' GROUP BY flow_id""",
    "connection_fetches": """
        SELECT flow_id, max(max_wait_ms) AS max_wait_ms FROM use_kafka_fetch_partitions
        WHERE coalesce(replica_id, -1) < 0 GROUP BY flow_id""",
    "connection_logins": """
        SELECT flow_id, arg_max(struct_pack(mechanism, user_name, accepted), ts) AS login
        FROM use_kafka_authentications GROUP BY flow_id""",
    "connection_servers": """
        SELECT server_address, server_port, max(cluster_id) AS cluster_id, count(response_message_id) > 0 AS answers
        FROM use_exchanges WHERE protocol = 'kafka'
        GROUP BY server_address, server_port HAVING count(DISTINCT cluster_id) <= 1""",
    "connection_told": """
        SELECT host, port, max(cluster_id) AS cluster_id
        FROM use_kafka_brokers WHERE host <> '' GROUP BY ALL HAVING count(DISTINCT cluster_id) <= 1""",
    "connection_named": f"""
        SELECT client_address, port, max(cluster_id) AS cluster_id
        FROM use_kafka_brokers WHERE host <> '' AND NOT ({_IS_ADDRESS})
        GROUP BY ALL HAVING count(DISTINCT cluster_id) <= 1""",
}
_ROWS = f"""
    SELECT flows.ts_first AS ts, flows.flow_id,
           coalesce(uses.cluster_id, servers.cluster_id, told.cluster_id, named.cluster_id) AS cluster_id,
           uses.client_id, flows.client_address, flows.client_port, flows.server_address, flows.server_port,
           {", ".join(f"flows.{name}" for name in OF_FLOWS)},
           coalesce(uses.requests, 0) AS requests, coalesce(uses.answered, 0) AS answered,
           coalesce(uses.unanswered, 0) AS unanswered, coalesce(uses.errors, 0) AS errors,
           coalesce(uses.throttled, 0) AS throttled, uses.ts_muted_until, fetches.max_wait_ms,
           coalesce(uses.work, 0) AS work, coalesce(uses.others, 0) AS others, uses.first.operation AS first_operation,
           uses.last.operation AS last_operation, uses.first.exchange_id AS first_exchange_id,
           uses.last.exchange_id AS last_exchange_id, uses.last.status AS last_status, uses.last.ts AS ts_last_request,
           max(flows.ts_last) OVER () AS all_seen_until,
           logins.login.mechanism AS mechanism, logins.login.user_name AS user_name, logins.login.accepted AS accepted,
           told.host IS NOT NULL OR named.port IS NOT NULL AS advertised, coalesce(servers.answers, false) AS served
    FROM use_flows AS flows
    LEFT JOIN connection_uses AS uses USING (flow_id)
    LEFT JOIN connection_logins AS logins USING (flow_id)
    LEFT JOIN connection_fetches AS fetches USING (flow_id)
    LEFT JOIN connection_servers AS servers USING (server_address, server_port)
    LEFT JOIN connection_told AS told ON flows.server_address = told.host AND flows.server_port = told.port
    LEFT JOIN connection_named AS named
        ON flows.client_address = named.client_address AND flows.server_port = named.port
    WHERE flows.duplicate_of IS NULL AND (flows.protocol = 'kafka' OR flows.protocol IS NULL AND (
        servers.server_port IS NOT NULL OR told.port IS NOT NULL OR named.port IS NOT NULL
        OR flows.server_port IN {_USUAL_PORTS}))"""


def add_connections(con: duckdb.DuckDBPyConnection, _: Held = NOTHING) -> Held:
    """Replace the view of the table, which is empty before; other tables may be missing. Call it once."""
    there = views(con)
    for table in (*CONNECTIONS.reads, "flows"):
        source = f"FROM {table}" if table in there else f"SELECT {null_columns(table)} LIMIT 0"
        con.execute(f"CREATE OR REPLACE TEMP VIEW use_{table} AS {source}")
    with steps_made(con, _STEPS, _ROWS):
        show_made(con, TABLE, _ROWS)
    return NOTHING
