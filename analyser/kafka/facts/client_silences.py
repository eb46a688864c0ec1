"""Members of groups that stood still as a whole, again and again: `kafka_client_silences`.

In: a connection with views of `exchanges` and `gaps`. Out: the view of the table. The only place that says it.

A client is an address and a client id that sends heartbeats, on all of its connections. It is silent from its last
request, or from the last response that it waited for, to its next request; who waits for a response is not. A silence
counts where not even a heartbeat came: BEATS of its usual times between heartbeats, and TIMES what 19 of 20 of its
silences last. Others got responses in the second in its middle (so neither the broker nor the capture stood still), and
no bytes of the client are missing. Clients with LEAST silences have a row.

Memory is DuckDB's limit, and it may spill: a row for each request of such clients.
"""

from __future__ import annotations

import duckdb

from wirewitness.analyser.engine.facts.gaps import losses
from wirewitness.analyser.engine.facts.stage import NOTHING, SILENCES, Held
from wirewitness.analyser.engine.facts.steps import Made, make_wanted_tables
from wirewitness.analyser.kafka.facts.clients import SENDER

LEAST = 3
BEATS = 2
TIMES = 10
_LEAST_BEATS = 5
# A request without a response is waited for that long.
_PATIENCE_NS = 30_000_000_000
_BEATS = "operation IN ('Heartbeat', 'ConsumerGroupHeartbeat', 'ShareGroupHeartbeat')"
_SENT = "protocol = 'kafka' AND request_message_id IS NOT NULL AND ts IS NOT NULL"

_STEPS = {
    "silent_beats": f"""
        SELECT cluster, address, client, median(gap_ns) AS beat_ns, row_number() OVER () AS sender
        FROM (SELECT {SENDER}, epoch_ns(ts) - lag(epoch_ns(ts)) OVER (
                  PARTITION BY cluster_id, client_address, client_id ORDER BY ts) AS gap_ns
              FROM exchanges WHERE {_SENT} AND {_BEATS} AND client_id IS NOT NULL)
        GROUP BY ALL HAVING count(gap_ns) >= {_LEAST_BEATS}""",
    "silent_gaps": f"""
        SELECT sender, address, at_ns, before_ns, at_ns - before_ns AS gap_ns, exchange_id, before_id
        FROM (SELECT *, max(done_ns) OVER before AS before_ns, lag(exchange_id) OVER own AS before_id
              FROM (SELECT {SENDER}, epoch_ns(ts) AS at_ns, exchange_id,
                           coalesce(epoch_ns(ts_response),
                                    epoch_ns(ts) + CASE WHEN status = 'unanswered' THEN {_PATIENCE_NS} ELSE 0 END)
                               AS done_ns
                    FROM exchanges WHERE {_SENT}) JOIN silent_beats USING (cluster, address, client)
              WINDOW own AS (PARTITION BY sender ORDER BY at_ns, exchange_id),
                     before AS (PARTITION BY sender ORDER BY at_ns, exchange_id
                                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING))
        WHERE at_ns > before_ns""",
    "silent_long": f"""
        SELECT gaps.*
        FROM silent_gaps AS gaps JOIN silent_beats USING (sender)
        JOIN (SELECT sender, quantile_cont(gap_ns, 0.95) AS usual_ns FROM silent_gaps GROUP BY sender) AS usual
            USING (sender)
        WHERE gap_ns >= {BEATS} * beat_ns AND gap_ns >= {TIMES} * usual_ns""",
    # Who got a response in the second in the middle of a silence.
    "silent_heard": """
        SELECT DISTINCT epoch_ns(ts_response) // 1_000_000_000 AS second, coalesce(client_address, '') AS address
        FROM exchanges
        WHERE protocol = 'kafka' AND epoch_ns(ts_response) // 1_000_000_000 IN (
            SELECT (before_ns + gap_ns // 2) // 1_000_000_000 FROM silent_long)""",
    "silent_found": f"""
        SELECT long.* FROM silent_long AS long
        SEMI JOIN silent_heard AS heard
            ON heard.second = (before_ns + gap_ns // 2) // 1_000_000_000 AND heard.address <> long.address
        ANTI JOIN ({losses()}) AS lost
            ON lost.address = long.address AND lost.at_ns BETWEEN long.before_ns AND long.at_ns""",
}
_ROWS = f"""
    SELECT arg_min(before_id, at_ns) AS exchange_id, make_timestamp_ns(min(before_ns))::TIMESTAMPTZ_NS AS ts,
           make_timestamp_ns(max(at_ns))::TIMESTAMPTZ_NS AS ts_last, nullif(cluster, '') AS cluster_id,
           nullif(client, '') AS client_id, nullif(address, '') AS client_address, count(*) AS silences,
           max(gap_ns) / 1e6 AS longest_ms, sum(gap_ns) / 1e6 AS total_ms, any_value(beat_ns) / 1e6 AS usual_beat_ms,
           any_value(seen_ns) / 1e6 AS seen_ms, list(exchange_id ORDER BY gap_ns DESC)[1] AS longest_exchange_id
    FROM silent_found JOIN (SELECT * EXCLUDE (address) FROM silent_beats) USING (sender)
    JOIN (SELECT sender, max(at_ns) - min(before_ns) AS seen_ns FROM silent_gaps GROUP BY sender) USING (sender)
    GROUP BY sender, cluster, address, client HAVING count(*) >= {LEAST}"""
_MADE = {
    "kafka_client_silences": Made(
        f"(SELECT count(*) FROM exchanges WHERE protocol = 'kafka' AND {_BEATS}) > {_LEAST_BEATS}",
        _STEPS,
        _ROWS,
        of="silent_long",
    )
}


def add_silences(con: duckdb.DuckDBPyConnection, _: Held = NOTHING) -> Held:
    """Make the view; tables that it is made of may be missing. Call it once."""
    make_wanted_tables(con, _MADE, SILENCES.reads)
    return NOTHING
