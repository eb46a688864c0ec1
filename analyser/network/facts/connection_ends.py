"""The context of connections: who ended each one, how, and what was pending then.

In: a connection with views of `flows` and `exchanges`. Out: the view `connection_ends`. A side ends a connection with a
FIN or an RST (RFC 9293, 3.5 and 3.6); bytes that the other side's TCP never ACKed may never have arrived.
"""

from __future__ import annotations

import duckdb

from wirewitness.analyser.engine.facts.stage import ENDS, NOTHING, Held
from wirewitness.analyser.engine.facts.topics import views
from wirewitness.analyser.tables.queries import keep, name_list, null_columns
from wirewitness.analyser.tables.tables import TABLES

TABLE = "connection_ends"

# Where the request ends in its stream; more than its sender sent: it was cut.
_SENT = "CASE WHEN asked.direction = 'server_to_client' THEN flows.bytes_to_client ELSE flows.bytes_to_server END"
_END = "try_cast(split_part(asked.request_message_id, '-', 3) AS BIGINT) + asked.request_bytes"
_OPEN = f"""
    SELECT asked.flow_id, count(*) FILTER (NOT cut AND NOT by_server) AS pending,
           count(*) FILTER (NOT cut AND NOT by_server AND answer_due) AS pending_due,
           count(*) FILTER (cut) AS pending_cut, count(*) FILTER (NOT cut AND by_server) AS pending_of_server,
           string_agg(DISTINCT operation, ',' ORDER BY operation) AS pending_operations,
           min(asked.ts) AS ts_pending
    FROM (SELECT asked.flow_id, asked.operation, asked.ts, asked.answer_due,
                 coalesce({_END} > {_SENT}, false) AS cut,
                 coalesce(asked.direction = 'server_to_client', false) AS by_server
          FROM use_exchanges AS asked JOIN use_flows AS flows USING (flow_id)
          WHERE asked.status = 'unanswered') AS asked
    GROUP BY asked.flow_id"""
_LATE = "SELECT flow_id, count(*) AS late FROM use_exchanges WHERE late GROUP BY flow_id"
_HEARD = """
    SELECT flow_id, max(ts) AS ts_heard FROM (
        SELECT heard.flow_id, unnest([heard.ts, heard.ts_response]) AS ts, flows.ts_closed
        FROM use_exchanges AS heard JOIN use_flows AS flows USING (flow_id) WHERE flows.ts_closed IS NOT NULL)
    WHERE ts <= ts_closed GROUP BY flow_id"""
_ROWS = f"""
    SELECT coalesce(flows.ts_closed, flows.observed_until, flows.ts_last) AS ts, flows.flow_id, flows.protocol,
           flows.client_address, flows.client_port, flows.server_address, flows.server_port,
           flows.closed_by AS ended_by,
           CASE WHEN flows.closed_by IS NULL THEN NULL
                WHEN flows.reset_by = flows.closed_by AND coalesce(CASE flows.closed_by
                         WHEN 'client' THEN flows.ts_last_from_client ELSE flows.ts_last_from_server END
                         < flows.ts_closed, true) THEN 'reset' ELSE 'fin' END AS how,
           coalesce(open.pending, 0) AS pending, coalesce(open.pending_due, 0) AS pending_due,
           coalesce(open.pending_cut, 0) AS pending_cut, coalesce(open.pending_of_server, 0) AS pending_of_server,
           open.pending_operations, open.ts_pending, coalesce(late.late, 0) AS late_responses,
           greatest(flows.bytes_to_server - flows.acked_by_server, 0) AS unacked_by_server,
           greatest(flows.bytes_to_client - flows.acked_by_client, 0) AS unacked_by_client,
           flows.unheard_sends_to_server, flows.unheard_sends_to_client, flows.gap_bytes,
           round((epoch_ns(flows.ts_closed) - epoch_ns(heard.ts_heard)) / 1e6, 6) AS idle_ms
    FROM use_flows AS flows
    LEFT JOIN ({_OPEN}) AS open USING (flow_id)
    LEFT JOIN ({_LATE}) AS late USING (flow_id)
    LEFT JOIN ({_HEARD}) AS heard USING (flow_id)
    WHERE flows.duplicate_of IS NULL AND flows.protocol IS NOT NULL"""


def add_ends(con: duckdb.DuckDBPyConnection, _: Held = NOTHING) -> Held:
    """Replace the view of the table, which is empty before. Call it once."""
    there = views(con)
    for table in ENDS.reads:
        source = f"FROM {table}" if table in there else f"SELECT {null_columns(table)} LIMIT 0"
        con.execute(f"CREATE OR REPLACE TEMP VIEW use_{table} AS {source}")
    made = keep(con, TABLE, _ROWS)
    con.execute(f"DROP VIEW IF EXISTS {TABLE}")
    con.execute(f"CREATE TEMP VIEW {TABLE} AS SELECT {name_list(TABLES[TABLE].column_names())} FROM {made}")
    return NOTHING
