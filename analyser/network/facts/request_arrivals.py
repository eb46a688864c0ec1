"""How long the requests of each client take to come, from their first to their last packet: `request_arrivals`.

In: a connection with views of `messages`, `flows`, `exchanges`, `tcp_waits` and `expert_infos`. Out: the view. A row of
`messages` has the number of its first packet and no time of it; messages and connections beside it have both, so it
lies between the one that comes next and the one that came before. Where the capture is busy these are close together;
where nothing else is in it, the lower bound is 0 and nothing is concluded.
"""

from __future__ import annotations

import duckdb

from wirewitness.analyser.engine.facts.stage import ARRIVALS, NOTHING, Held
from wirewitness.analyser.engine.facts.steps import Made, make_wanted_tables

_CLIENT = "protocol, server_address, server_port, client_address"
_KEY = f"{_CLIENT}, client_id, operation"
_BYTES_OF_ONE_PACKET = 1460
_STEPS = {
    "arrival_flows": f"""
        SELECT flow_id, {_CLIENT}, handshake_ms FROM flows
        WHERE duplicate_of IS NULL AND protocol IS NOT NULL AND handshake_seen""",
    "arrival_points": """
        SELECT file, packet_last AS packet, ts FROM messages WHERE packet_last IS NOT NULL AND line IS NULL
        UNION ALL SELECT file, first_packet, ts_first FROM flows WHERE first_packet IS NOT NULL""",
    # Of each connection the time from the first response to the client's next message. No message of the client is
    # under way then, so it is a round trip or more, wherever on the way the capture was taken.
    "arrival_turns": f"""
        SELECT {_CLIENT}, min((epoch_ns(ts_next) - epoch_ns(ts_answered)) / 1e6 + handshake_ms) AS round_trip_ms
        FROM arrival_flows JOIN (
            SELECT flow_id, ts AS ts_answered, lead(ts) OVER turns AS ts_next, lag(direction) OVER turns AS before,
                   direction, lead(direction) OVER turns AS after, row_number() OVER turns AS place
            FROM messages WINDOW turns AS (PARTITION BY flow_id ORDER BY ts, message_id)) USING (flow_id)
        WHERE place = 2 AND before = 'client_to_server' AND direction = 'server_to_client'
            AND after = 'client_to_server'
        GROUP BY {_CLIENT}""",
    "arrival_sent": f"""
        SELECT message_id, flow_id, {_CLIENT}, client_id, operation, length_bytes, file, packet_first, packet_last, ts
        FROM messages JOIN arrival_flows USING (flow_id, protocol)
        WHERE direction = 'client_to_server' AND complete AND length_bytes > {_BYTES_OF_ONE_PACKET}
            AND packet_first < packet_last""",
    "arrival_bounds": """
        SELECT sent.*, before.ts AS ts_before,
               greatest((epoch_ns(sent.ts) - epoch_ns(after.ts)) / 1e6, 0) AS least_ms,
               (epoch_ns(sent.ts) - epoch_ns(before.ts)) / 1e6 AS most_ms
        FROM arrival_sent AS sent
        ASOF LEFT JOIN arrival_points AS after ON sent.file = after.file AND sent.packet_first <= after.packet
        ASOF LEFT JOIN arrival_points AS before ON sent.file = before.file AND sent.packet_first >= before.packet""",
    # Those that the server's TCP, or a loss, held up.
    "arrival_held": """
        SELECT sent.message_id, bool_or(why = 'window') AS by_window, bool_or(why = 'again') AS was_again
        FROM arrival_bounds AS sent JOIN (
            SELECT flow_id, ts, ts_last, 'window' AS why FROM tcp_waits WHERE direction = 'client_to_server'
            UNION ALL
            SELECT flow_id, ts, ts, CASE code WHEN 'zero_window' THEN 'window' ELSE 'again' END FROM expert_infos
            WHERE (code = 'zero_window' AND direction = 'server_to_client')
                OR (code = 'retransmission' AND direction = 'client_to_server')) AS held
            ON held.flow_id = sent.flow_id AND held.ts <= sent.ts AND held.ts_last >= coalesce(ts_before, sent.ts)
        GROUP BY sent.message_id""",
    "arrival_answers": """
        SELECT request_message_id AS message_id, latency_ms FROM exchanges
        WHERE request_message_id IN (SELECT message_id FROM arrival_sent)""",
}
_ROWS = f"""
    SELECT min(ts) AS ts, max(ts) AS ts_last, {_KEY}, count(*) AS requests,
           median(length_bytes)::DOUBLE AS median_bytes, median(least_ms) AS median_least_ms,
           median(most_ms) AS median_most_ms, count(*) FILTER (by_window) AS held_by_window,
           count(*) FILTER (was_again) AS sent_again, any_value(round_trip_ms) AS round_trip_ms,
           median(latency_ms) AS median_latency_ms,
           arg_min(message_id, (ts, message_id)) AS message_id,
           arg_max(message_id, (ts, message_id)) AS last_message_id,
           arg_min(file, (ts, message_id)) AS file, arg_max(file, (ts, message_id)) AS last_file,
           arg_min(packet_last, (ts, message_id)) AS packet, arg_max(packet_last, (ts, message_id)) AS last_packet
    FROM arrival_bounds
    LEFT JOIN arrival_held USING (message_id)
    LEFT JOIN arrival_answers USING (message_id)
    LEFT JOIN arrival_turns USING ({_CLIENT})
    GROUP BY {_KEY}"""
_MADE = {
    "request_arrivals": Made("EXISTS (FROM messages WHERE packet_first < packet_last)", _STEPS, _ROWS),
}


def add_arrivals(con: duckdb.DuckDBPyConnection, _: Held = NOTHING) -> Held:
    """Make the view; tables that it is made of may be missing. Call it once."""
    make_wanted_tables(con, _MADE, ARRIVALS.reads)
    return NOTHING
