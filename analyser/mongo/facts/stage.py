"""The context of MongoDB: cursors, transactions, servers.

In: a connection with a view `mongo_commands`. Out: the views `mongo_cursors`, `mongo_transactions` and `mongo_servers`.
A driver sends getMore, commitTransaction and their like over any connection of its pool, so the first two are put
together by server and cursor id, and by session and transaction number, not by flow. All of it is SQL: memory is
DuckDB's limit, and it may spill.
Sources: find, getMore, killCursors (manual), driver transactions specification.
"""

from __future__ import annotations

import duckdb

from wirewitness.analyser.engine.facts.stage import NOTHING, Held
from wirewitness.analyser.engine.facts.topics import views
from wirewitness.analyser.tables.tables import TABLES

# What happened to cursors: open, get, kill. An id that is opened again (a restarted server) is another cursor.
_EVENTS = """
    SELECT server_address, server_port, cursor_id, ts, ts_last_response, exchange_id, flow_id, status, error_code,
           error_name, documents_returned, response_bytes, cursor_exhausted,
           CASE command WHEN 'getMore' THEN 'get' ELSE 'open' END AS event
    FROM mongo_commands WHERE cursor_id IS NOT NULL AND command IS NOT NULL AND command <> 'killCursors'
    UNION ALL
    SELECT server_address, server_port, unnest(cursors_killed), ts, ts_last_response, exchange_id, flow_id, status,
           error_code, error_name, NULL, NULL, NULL, 'kill'
    FROM mongo_commands WHERE len(cursors_killed) > 0"""
_LIVES = f"""
    SELECT *, coalesce(ts_last_response, ts) AS ts_seen, count(*) FILTER (event = 'open') OVER (
        PARTITION BY server_address, server_port, cursor_id ORDER BY ts, exchange_id ROWS UNBOUNDED PRECEDING) AS life
    FROM ({_EVENTS})"""
# A getMore that fails ends a cursor unless it is heard of again; what happens behind its end changes nothing.
_ENDS = """
    SELECT *, CASE WHEN event = 'kill' THEN 'killed' WHEN cursor_exhausted THEN 'exhausted'
                   WHEN status = 'error' AND event = 'get' AND lead(event) OVER (
                       PARTITION BY server_address, server_port, cursor_id, life ORDER BY ts, exchange_id) IS NULL
                   THEN 'error' END AS ending
    FROM mongo_cursor_events"""
_CURSORS = f"""
    SELECT cursors.* REPLACE (
               CASE ended_by WHEN 'error' THEN cursors.error_code END AS error_code,
               CASE ended_by WHEN 'error' THEN cursors.error_name END AS error_name),
           opened.command, opened.database, opened.collection, opened.query_shape, opened.shape_id,
           opened.batch_size, opened.no_cursor_timeout, opened.tailable, opened.txn_number
    FROM (
        SELECT server_address, server_port, cursor_id, life,
               arg_min(exchange_id, ts) FILTER (event = 'open') AS exchange_id, min(ts) AS ts,
               min(ts) FILTER (event = 'open') AS ts_opened, max(ts_seen) AS ts_last,
               min(ts_seen) FILTER (ending IS NOT NULL) AS ts_ended,
               arg_min(ending, ts_seen) FILTER (ending IS NOT NULL) AS ended_by,
               arg_min(exchange_id, ts_seen) FILTER (ending IS NOT NULL) AS ended_exchange_id,
               arg_min(error_code, ts_seen) FILTER (ending = 'error') AS error_code,
               arg_min(error_name, ts_seen) FILTER (ending = 'error') AS error_name,
               count(*) FILTER (event = 'get') AS get_mores,
               coalesce(try_cast(sum(documents_returned) AS BIGINT), 0) AS documents,
               coalesce(try_cast(sum(response_bytes) AS BIGINT), 0) AS response_bytes,
               count(DISTINCT flow_id) AS connections, arg_max(exchange_id, ts) AS last_exchange_id,
               arg_min(flow_id, ts) AS flow_id, arg_min(exchange_id, ts) AS first_exchange_id
        FROM ({_ENDS}) GROUP BY ALL) AS cursors
    LEFT JOIN mongo_commands AS opened ON opened.exchange_id = cursors.exchange_id"""
# Session, driver and client are those of the first command that is seen; namespaces of getMore are right as well.
_CURSOR_ROWS = f"""
    SELECT made.* REPLACE (
               coalesce(made.database, first.database) AS database,
               coalesce(made.collection, first.collection) AS collection),
           first.lsid, first.driver, first.driver_version, first.app_name, first.client_address, first.client_port
    FROM ({_CURSORS}) AS made LEFT JOIN mongo_commands AS first ON first.exchange_id = made.first_exchange_id"""

# A transaction of several statements says autocommit: false; a retryable write has a number, too, but says nothing.
WRITES = ("insert", "update", "delete", "findAndModify", "findandmodify", "bulkWrite")
_STATEMENTS = f"""
    SELECT *, coalesce(ts_last_response, ts) AS ts_seen, command = 'commitTransaction' AS commits,
           command = 'abortTransaction' AS aborts, coalesce(command IN {WRITES} AND status <> 'error', false) AS writes,
           status = 'error' AND (ok IS NOT TRUE OR coalesce(write_errors, 0) > 0) AS failed,
           coalesce(error_code, 0) = 251 OR contains(coalesce(error_labels, ''), 'TransientTransactionError') AS gone
    FROM mongo_commands
    WHERE lsid IS NOT NULL AND txn_number IS NOT NULL AND (autocommit = false OR start_transaction)"""
# What a session does under a higher number ends what was open under a lower one.
_LATER = """
    SELECT lsid, txn_number, min(ts) OVER (
        PARTITION BY lsid ORDER BY txn_number ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS ts_later
    FROM (SELECT lsid, txn_number, min(ts) AS ts FROM mongo_commands
          WHERE lsid IS NOT NULL AND txn_number IS NOT NULL GROUP BY ALL)"""
_TRANSACTIONS = f"""
    SELECT lsid, txn_number, arg_min(exchange_id, ts) AS exchange_id, min(ts) AS ts,
           min(ts) FILTER (start_transaction) AS ts_started, max(ts_seen) AS ts_last,
           min(ts_seen) FILTER (commits AND status = 'ok') AS ts_committed,
           min(ts_seen) FILTER (aborts AND (status = 'ok' OR gone)) AS ts_aborted,
           min(ts_seen) FILTER (failed AND NOT aborts AND (gone OR NOT commits)) AS ts_failed,
           arg_min(exchange_id, ts_seen) FILTER (commits AND status = 'ok') AS committed_by,
           arg_min(exchange_id, ts_seen) FILTER (aborts AND (status = 'ok' OR gone)) AS aborted_by,
           arg_min(exchange_id, ts_seen) FILTER (failed AND NOT aborts AND (gone OR NOT commits)) AS failed_by,
           count(*) FILTER (NOT commits AND NOT aborts) AS commands,
           string_agg(DISTINCT command, ',' ORDER BY command) FILTER (NOT commits AND NOT aborts) AS command_names,
           string_agg(DISTINCT database || '.' || collection, ',' ORDER BY database || '.' || collection) AS namespaces,
           string_agg(DISTINCT database || '.' || collection, ',' ORDER BY database || '.' || collection)
               FILTER (writes) AS namespaces_written,
           list_sort(list_distinct(flatten(list(document_ids) FILTER (writes AND document_ids IS NOT NULL))))[:1000]
               AS document_ids,
           string_agg(DISTINCT command || ' ' || literals_id, ',' ORDER BY command || ' ' || literals_id)
               FILTER (writes AND literals_id IS NOT NULL) AS filters_written,
           count(*) FILTER (status = 'error') AS errors,
           arg_min(error_code, ts) FILTER (status = 'error') AS error_code,
           arg_min(error_name, ts) FILTER (status = 'error') AS error_name,
           count(*) FILTER (commits) AS commit_attempts,
           arg_min(read_concern, ts) AS read_concern, arg_min(write_concern, ts) FILTER (commits) AS write_concern,
           count(DISTINCT flow_id) AS connections, arg_min(driver, ts) AS driver, arg_min(app_name, ts) AS app_name,
           arg_min(client_address, ts) AS client_address, arg_min(client_port, ts) AS client_port,
           arg_min(server_address, ts) AS server_address, arg_min(server_port, ts) AS server_port,
           arg_max(exchange_id, ts) AS last_exchange_id, arg_min(flow_id, ts) AS flow_id
    FROM ({_STATEMENTS}) GROUP BY lsid, txn_number"""
_OUTCOMES = f"""
    SELECT made.*,
           CASE WHEN ts_committed IS NOT NULL THEN 'committed'
                WHEN ts_aborted IS NOT NULL OR ts_failed IS NOT NULL THEN 'aborted'
                WHEN commit_attempts > 0 THEN 'unknown'
                WHEN ts_later IS NOT NULL THEN 'aborted' ELSE 'open' END AS outcome,
           CASE WHEN ts_committed IS NOT NULL THEN ts_committed
                WHEN ts_aborted IS NOT NULL OR ts_failed IS NOT NULL THEN least(ts_aborted, ts_failed)
                WHEN commit_attempts = 0 THEN ts_later END AS ts_ended,
           CASE WHEN ts_committed IS NOT NULL THEN committed_by
                WHEN ts_failed IS NULL OR ts_aborted < ts_failed THEN aborted_by ELSE failed_by END AS ended_exchange_id
    FROM ({_TRANSACTIONS}) AS made LEFT JOIN ({_LATER}) AS later USING (lsid, txn_number)"""
_TRANSACTION_ROWS = f"""
    SELECT *, round((epoch_ns(ts_ended) - epoch_ns(ts_started)) / 1e6, 6) AS duration_ms FROM ({_OUTCOMES})"""

# What a server said of itself, in steps: a reply that says the same goes on, another one begins the next period.
_SAID = "server_role, set_name, advertised_hosts, primary_host, own_host, max_wire_version"
_SERVER = "server_address, server_port"
_SERVER_ROWS = f"""
    WITH hellos AS (
        SELECT {_SERVER}, {_SAID}, exchange_id, flow_id, coalesce(ts_response, ts) AS ts,
               hash({_SAID}) IS DISTINCT FROM lag(hash({_SAID})) OVER of_server AS is_new
        FROM mongo_commands
        WHERE command IN ('hello', 'isMaster', 'ismaster') AND status = 'ok' AND server_role IS NOT NULL
        WINDOW of_server AS (PARTITION BY {_SERVER} ORDER BY coalesce(ts_response, ts), exchange_id)
    ), numbered AS (
        SELECT *, count(*) FILTER (is_new) OVER (
            PARTITION BY {_SERVER} ORDER BY ts, exchange_id ROWS UNBOUNDED PRECEDING) AS period
        FROM hellos
    ), periods AS (
        SELECT {_SERVER}, period, {_SAID}, min(ts) AS ts, count(*) AS hellos,
               arg_min(exchange_id, (ts, exchange_id)) AS exchange_id, arg_min(flow_id, (ts, exchange_id)) AS flow_id
        FROM numbered GROUP BY ALL)
    SELECT *, lead(ts) OVER (PARTITION BY {_SERVER} ORDER BY period) AS ts_until FROM periods"""


def add_mongo_facts(con: duckdb.DuckDBPyConnection, _: Held = NOTHING) -> Held:
    """Make the views; nothing happens where there are no commands. Call it once."""
    if "mongo_commands" not in views(con):
        return NOTHING
    con.execute(f"CREATE TEMP TABLE mongo_cursor_events AS {_LIVES}")
    for name, query in _MADE:
        if name in views(con):
            con.execute(f"CREATE TEMP TABLE made_{name} AS {query}")
            con.execute(f"DROP VIEW IF EXISTS {name}")
            con.execute(f"CREATE TEMP VIEW {name} AS {_select(name)} FROM made_{name}")
    con.execute("DROP TABLE mongo_cursor_events")
    return NOTHING


_MADE = (
    ("mongo_cursors", _CURSOR_ROWS), ("mongo_transactions", _TRANSACTION_ROWS), ("mongo_servers", _SERVER_ROWS),
)  # fmt: skip


def _select(name: str) -> str:
    """The registered columns, in their order."""
    return "SELECT " + ", ".join(f'"{column}"' for column in TABLES[name].column_names())
