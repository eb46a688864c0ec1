"""How often each client sent each API, and what came of it: `kafka_client_requests`.

In: a connection with views of `exchanges` and `kafka_group_events`. Out: the view of that table. A client is an address
and a client id. A JoinGroup is without effect when it brought a member into a generation in which it was already, or
when it is one more on its connection that was refused for its member id (25, 79): two of these belong to a start.
"""

from __future__ import annotations

import duckdb

from wirewitness.analyser.engine.facts.stage import CLIENT_REQUESTS, NOTHING, Held
from wirewitness.analyser.engine.facts.steps import Made, make_wanted_tables
from wirewitness.analyser.kafka.facts.clients import SENDER

_BY = "cluster, address, client"
_REFUSED_AT_START = 2
# What a client sends at a pace of its own.
_PACED = "Produce"
_STEPS = {
    "req_joins": f"""
        SELECT {_BY}, sum(without) AS without_effect FROM (
            SELECT {SENDER}, count(*) - 1 AS without FROM kafka_group_events
            WHERE event = 'join' AND error_code = 0 AND member_id <> '' AND generation >= 0
            GROUP BY cluster, address, client, group_id, member_id, generation
            UNION ALL
            SELECT {SENDER}, greatest(count(*) - {_REFUSED_AT_START}, 0) FROM kafka_group_events
            WHERE event = 'join' AND error_code IN (25, 79)
            GROUP BY cluster, address, client, flow_id)
        GROUP BY ALL""",
    "req_gaps": f"""
        SELECT {_BY}, max(gap_ns) / 1e6 AS longest_gap_ms
        FROM (SELECT {_BY}, at_ns - lag(at_ns) OVER (PARTITION BY {_BY} ORDER BY at_ns) AS gap_ns
              FROM (SELECT {SENDER}, epoch_ns(ts) AS at_ns FROM exchanges
                    WHERE protocol = 'kafka' AND operation = '{_PACED}' AND request_message_id IS NOT NULL))
        GROUP BY ALL""",
}
_ROWS = f"""
    SELECT min(ts) AS ts, max(ts) AS ts_last, nullif(cluster, '') AS cluster_id, nullif(client, '') AS client_id,
           nullif(address, '') AS client_address, operation, count(*) AS requests,
           count(*) FILTER (status = 'ok') AS succeeded, count(*) FILTER (status = 'error') AS errors,
           count(DISTINCT flow_id) AS connections,
           any_value(CASE WHEN operation = 'JoinGroup' THEN coalesce(without_effect, 0) END)::BIGINT AS without_effect,
           median(latency_ms) AS median_latency_ms,
           min(response_bytes) FILTER (operation = 'Fetch') AS least_response_bytes,
           quantile_disc(response_bytes, 0.9) FILTER (operation = 'Fetch') AS p90_response_bytes,
           any_value(CASE WHEN operation = '{_PACED}' THEN longest_gap_ms END) AS longest_gap_ms,
           arg_min(exchange_id, ts) AS exchange_id,
           arg_max(exchange_id, ts) AS last_exchange_id
    FROM (SELECT {SENDER}, * FROM exchanges WHERE protocol = 'kafka' AND request_message_id IS NOT NULL
          AND operation IS NOT NULL)
    LEFT JOIN req_joins USING ({_BY}) LEFT JOIN req_gaps USING ({_BY})
    GROUP BY {_BY}, operation"""
_MADE = {"kafka_client_requests": Made("EXISTS (FROM exchanges WHERE protocol = 'kafka')", _STEPS, _ROWS)}


def add_client_requests(con: duckdb.DuckDBPyConnection, _: Held = NOTHING) -> Held:
    """Make the view; tables that it is made of may be missing. Call it once."""
    make_wanted_tables(con, _MADE, CLIENT_REQUESTS.reads)
    return NOTHING
