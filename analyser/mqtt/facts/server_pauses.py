"""When a server sent nothing to anybody while clients waited: `mqtt_server_pauses`.

In: views of `exchanges`, `mqtt_publishes`, `mqtt_connections` and `flows`. Out: STEPS and ROWS of the table.

A pause lies between two messages of a server, to whichever client, or between its last one and the end of the capture.
Who waits has sent a request to which a response is due, on a connection of which both sides are in the capture, without
gaps, that the server did not end, and got none before the pause was over. Some are answered then, unless the capture
ends with the pause: what is never answered by a server that goes on was dropped. Where all of them are at one address,
the server's TCP has to have confirmed what they sent, without a retransmission: else it may be the way to them that was
down. It is measured from the first of these requests on: a server that nobody asks may be silent as long as it likes.
"""

from __future__ import annotations

from wirewitness.analyser.engine.facts.gaps import IS_ONE_SIDED

LEAST_NS = 1_000_000_000
# A pause is so many times as long as the server usually takes.
TIMES = 20
LEAST_CLIENTS = 2
_LONGEST = 100

_ASKED = """protocol = 'mqtt' AND coalesce(direction, 'client_to_server') = 'client_to_server'
    AND operation IN ('CONNECT', 'PUBLISH', 'SUBSCRIBE', 'UNSUBSCRIBE', 'PINGREQ')"""
_SERVER = "coalesce(server_address, '') AS server, server_port"

STEPS = {
    # Those for which a response was waited for that long.
    "pause_asked": f"""
        SELECT {_SERVER}, flow_id, client_id, client_address, operation, exchange_id, epoch_ns(ts) AS at_ns,
               epoch_ns(ts_response) AS answered_ns
        FROM exchanges WHERE {_ASKED} AND (epoch_ns(ts_response) - epoch_ns(ts) >= {LEAST_NS} / 2
            OR (ts_response IS NULL AND coalesce(answer_due, true)))""",
    "pause_lengths": f"""
        SELECT server, server_port, from_ns, until_ns FROM (
            SELECT server, server_port, at_ns AS from_ns,
                   coalesce(lead(at_ns) OVER steps, (SELECT max(epoch_ns(ts_last)) FROM flows)) AS until_ns
            FROM (
                SELECT {_SERVER}, epoch_ns(ts_response) AS at_ns FROM exchanges
                WHERE {_ASKED} AND ts_response IS NOT NULL
                UNION ALL
                SELECT {_SERVER}, epoch_ns(ts) FROM mqtt_publishes WHERE direction = 'server_to_client')
            WINDOW steps AS (PARTITION BY server, server_port ORDER BY at_ns))
        WHERE until_ns - from_ns >= {LEAST_NS}
        QUALIFY row_number() OVER (PARTITION BY server, server_port ORDER BY until_ns - from_ns DESC, from_ns)
            <= {_LONGEST}""",
    "pause_waiting": f"""
        SELECT lengths.server, lengths.server_port, from_ns, until_ns, asked.* EXCLUDE (server, server_port),
               coalesce(flows.retransmitted_segments, 0) = 0
                   AND coalesce(flows.acked_by_server >= flows.bytes_to_server, false) AS heard
        FROM pause_lengths AS lengths JOIN pause_asked AS asked
            ON asked.server = lengths.server AND asked.server_port IS NOT DISTINCT FROM lengths.server_port
            AND asked.at_ns < until_ns AND asked.at_ns >= from_ns - 1_000_000_000
            AND (asked.answered_ns >= until_ns OR asked.answered_ns IS NULL)
        JOIN flows USING (flow_id)
        WHERE coalesce(flows.gap_bytes, 0) = 0 AND NOT ({IS_ONE_SIDED})
            AND (flows.closed_by IS NULL OR flows.closed_by = 'client' OR epoch_ns(flows.ts_closed) > until_ns)
            AND until_ns - at_ns >= {LEAST_NS} / 2""",
    "pause_usual": f"""
        SELECT {_SERVER}, median(latency_ms) AS usual_ms FROM exchanges WHERE {_ASKED} GROUP BY ALL""",
}
ROWS = f"""
    SELECT make_timestamp_ns(first_ns)::TIMESTAMPTZ_NS AS ts, make_timestamp_ns(until_ns)::TIMESTAMPTZ_NS AS ts_until,
           (until_ns - first_ns) / 1e6 AS waited_ms, usual_ms, clients, heard, addresses,
           requests, answered, names, operations,
           exchange_id, last_exchange_id, nullif(server, '') AS server_address, server_port
    FROM (
        SELECT server, server_port, from_ns, until_ns, greatest(min(at_ns), from_ns) AS first_ns,
               count(DISTINCT coalesce(client_id, flow_id)) AS clients, count(*) AS requests,
               count(answered_ns) AS answered,
               count(DISTINCT coalesce(client_id, flow_id)) FILTER (heard) AS heard,
               count(DISTINCT client_address) AS addresses,
               to_json(list_sort(list(DISTINCT coalesce(client_id, client_address, '?')))[:20])::VARCHAR AS names,
               string_agg(DISTINCT operation, ', ' ORDER BY operation) AS operations,
               arg_min(exchange_id, (at_ns, exchange_id)) AS exchange_id,
               arg_max(exchange_id, (at_ns, exchange_id)) AS last_exchange_id
        FROM pause_waiting
        GROUP BY server, server_port, from_ns, until_ns)
    JOIN pause_usual USING (server, server_port)
    WHERE clients >= {LEAST_CLIENTS} AND greatest(heard, addresses) >= 2
        AND (answered > 0 OR until_ns >= (SELECT max(epoch_ns(ts_last)) FROM flows))
        AND until_ns - first_ns >= greatest({LEAST_NS}, {TIMES} * 1e6 * usual_ms)
    ORDER BY first_ns, server"""
ASKS = f"""EXISTS (FROM exchanges WHERE protocol = 'mqtt'
    AND (latency_ms >= {LEAST_NS} / 2e6 OR (latency_ms IS NULL AND coalesce(answer_due, true))))"""
