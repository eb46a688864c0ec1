"""How often each application sent each shape of command, and what came of it: `mongo_client_commands`.

In: nothing. Out: how the table is made. Commands that wait for news are left out.
"""

from __future__ import annotations

from wirewitness.analyser.engine.facts.steps import Made

WHO = "server_address, server_port, client_address, app_name, driver"
SHAPE = "database, collection, command, shape_id"
KEY = f"{WHO}, {SHAPE}"
WRITES = "('insert', 'update', 'delete', 'findAndModify', 'findandmodify', 'bulkWrite')"
# SQL on mongo_commands: a request that does not wait for news.
ASKED = (
    "command IS NOT NULL AND awaitable IS NOT TRUE AND await_time_ms IS NULL AND tailable IS NOT TRUE "
    "AND status IS DISTINCT FROM 'orphan'"
)

_UPSERT = "coalesce(contains(query_shape, '\"upsert\":true'), false)"
# An update in the course of an upsert has its effect when the document is there.
_WITHOUT_EFFECT = f"""CASE
    WHEN status <> 'ok' OR unacknowledged THEN false
    WHEN command = 'update' THEN coalesce(upserted, 0) = 0
        AND (n = 0 OR (n_modified = 0 AND NOT {_UPSERT}))
    WHEN command IN ('delete', 'findAndModify', 'findandmodify') THEN n = 0
    WHEN command IN ('find', 'aggregate', 'distinct')
        THEN documents_returned = 0 AND cursor_exhausted IS NOT false
    ELSE false END"""
_UNTRIED = """CASE WHEN command = 'bulkWrite' THEN coalesce(untried, 0)
    WHEN command = 'insert' AND unacknowledged IS NOT TRUE AND ts_response IS NOT NULL AND ok
    THEN greatest(documents_sent::HUGEINT - coalesce(n, 0) - coalesce(write_errors, 0), 0) ELSE 0 END"""
_STEPS = {
    "use_asked": f"""
        SELECT {KEY}, query_shape, driver_version, ts, ts_response, exchange_id, flow_id, lsid, literals_id, status,
               latency_ms, document_shape, documents_sent, documents_returned, n, unacknowledged, request_bytes,
               response_bytes,
               coalesce(response_uncompressed_bytes, response_bytes) AS answer_bytes,
               read_preference, read_concern, write_concern,
               coalesce({_WITHOUT_EFFECT}, false) AS idle, {_UNTRIED} AS untried
        FROM mongo_commands WHERE {ASKED}""",
    "use_same": f"""
        SELECT {KEY}, max(times) AS same FROM (
            SELECT {KEY}, count(*) AS times FROM use_asked
            WHERE literals_id IS NOT NULL AND status = 'ok'
            GROUP BY {KEY}, literals_id, answer_bytes, documents_returned)
        GROUP BY {KEY}""",
    "use_documents": f"""
        SELECT {KEY}, to_json(list({{'shape': document_shape, 'commands': times}} ORDER BY times DESC, document_shape))
                   ::VARCHAR AS document_shapes
        FROM (SELECT {KEY}, document_shape, count(*) AS times FROM use_asked WHERE document_shape IS NOT NULL
              GROUP BY {KEY}, document_shape
              QUALIFY row_number() OVER (PARTITION BY {KEY} ORDER BY count(*) DESC, document_shape) <= 20)
        GROUP BY {KEY}""",
}


def _equal(other: str) -> str:
    return " AND ".join(f"made.{name} IS NOT DISTINCT FROM {other}.{name}" for name in KEY.split(", "))


_ROWS = f"""
    SELECT made.*, coalesce(same, 0) AS same, document_shapes FROM (
        SELECT {KEY}, any_value(query_shape) AS query_shape, any_value(driver_version) AS driver_version,
               min(ts) AS ts, max(ts) AS ts_last, count(*) AS commands,
               count(*) FILTER (status = 'ok' AND ts_response IS NOT NULL) AS succeeded,
               count(*) FILTER (status = 'error') AS errors,
               max(ts) FILTER (status = 'ok' AND ts_response IS NOT NULL) AS ts_succeeded,
               count(*) FILTER (idle) AS without_effect,
               count(*) FILTER (idle AND command = 'update' AND n = 0) AS unmatched,
               median(documents_sent) AS median_documents_sent,
               coalesce(max(documents_sent), 0)::BIGINT AS most_documents_sent,
               median(documents_returned) AS median_documents_returned,
               coalesce(try_cast(sum(untried) AS BIGINT), 0) AS untried,
               count(*) FILTER (unacknowledged) AS unacknowledged,
               count(DISTINCT lsid) AS sessions, count(DISTINCT flow_id) AS connections,
               median(latency_ms) AS median_latency_ms,
               coalesce(sum(round(latency_ms * 1e6)::HUGEINT), 0) / 1e6 AS latency_sum_ms,
               coalesce(try_cast(sum(request_bytes) AS BIGINT), 0) AS request_bytes,
               coalesce(try_cast(sum(response_bytes) AS BIGINT), 0) AS response_bytes,
               arg_max(read_preference, ts) AS read_preference, arg_max(read_concern, ts) AS read_concern,
               arg_max(write_concern, ts) AS write_concern,
               arg_min(exchange_id, ts) AS exchange_id, arg_max(exchange_id, ts) AS last_exchange_id
        FROM use_asked GROUP BY {KEY}) AS made
    LEFT JOIN use_same AS same ON {_equal("same")}
    LEFT JOIN use_documents AS documents ON {_equal("documents")}"""

CLIENT_COMMANDS = Made("EXISTS (FROM mongo_commands)", _STEPS, _ROWS)
