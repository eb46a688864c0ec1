"""Messages that a client sends again on a live connection: `mqtt_early_resends`.

In: views of `mqtt_publishes` and `mqtt_connections`. Out: STEPS and ROWS of the table.

A PUBLISH of QoS 1 or 2 with DUP is sent again on a live connection where one with its packet identifier, topic and
content came before it there: after a reconnect the first of these would be on another connection. A row is a connection
with LEAST of them.
"""

from __future__ import annotations

LEAST = 5

STEPS = {
    "early_sent": f"""
        SELECT flow_id, topic, message_id, epoch_ns(ts) AS at_ns, handshake,
               dup AND row_number() OVER (PARTITION BY flow_id, packet_identifier, topic, payload_crc32, payload_bytes
                                          ORDER BY ts, length(message_id), message_id) > 1 AS again
        FROM mqtt_publishes
        WHERE direction = 'client_to_server' AND qos > 0 AND packet_identifier IS NOT NULL AND flow_id IN (
            SELECT flow_id FROM mqtt_publishes WHERE direction = 'client_to_server' AND dup GROUP BY flow_id
            HAVING count(*) >= {LEAST})""",
    "early_flows": f"""
        SELECT flow_id, min(at_ns) FILTER (again) AS first_ns, max(at_ns) FILTER (again) AS last_ns,
               count(*) FILTER (again) AS sent_again, count(*) FILTER (NOT again) AS messages,
               count(*) FILTER (handshake NOT IN ('complete', 'resent')) AS unfinished,
               arg_min(topic, at_ns) FILTER (again) AS topic, arg_min(message_id, at_ns) FILTER (again) AS message_id,
               arg_max(message_id, at_ns) FILTER (again) AS last_message_id
        FROM early_sent GROUP BY flow_id HAVING count(*) FILTER (again) >= {LEAST}""",
}
ROWS = """
    SELECT make_timestamp_ns(first_ns)::TIMESTAMPTZ_NS AS ts, make_timestamp_ns(last_ns)::TIMESTAMPTZ_NS AS ts_last,
           client_id, client_address, client_port, version, flow_id, topic, messages, sent_again, unfinished,
           message_id, last_message_id, server_address, server_port
    FROM early_flows JOIN (
        SELECT flow_id, client_id, client_address, client_port, version, server_address, server_port
        FROM mqtt_connections WHERE coalesce(gap_bytes, 0) = 0) USING (flow_id)
    ORDER BY first_ns, flow_id"""
ASKS = "EXISTS (FROM mqtt_publishes WHERE direction = 'client_to_server' AND dup)"
