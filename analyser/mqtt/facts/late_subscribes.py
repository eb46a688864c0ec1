"""Clients that subscribe after the answer has come: `mqtt_late_subscribes`.

In: views of `mqtt_connections`, `mqtt_subscriptions` and `mqtt_publishes`. Out: STEPS and ROWS of the table.

On a connection without a session from before a client publishes, somebody else publishes on a topic that a filter of
the client matches, and only then the server grants the filter. The message was not retained, and the server sent it to
nobody. A row is a client id and filter to which that happened on LEAST connections or more.
"""

from __future__ import annotations

LEAST = 3

STEPS = {
    "late_asked": """
        SELECT own.flow_id, coalesce(own.server_address, '') AS server, own.server_port, own.client_id,
               own.client_address, own.client_port, own.version, own.matching_filter,
               min(epoch_ns(own.ts)) AS asked_ns, min(epoch_ns(coalesce(own.ts_response, own.ts))) AS granted_ns,
               arg_min(own.exchange_id, own.ts) AS exchange_id
        FROM mqtt_subscriptions AS own JOIN mqtt_connections AS there ON there.flow_id = own.flow_id
        WHERE own.event = 'subscribe' AND own.granted_qos IS NOT NULL AND own.share_name IS NULL
            AND own.client_id <> '' AND NOT regexp_matches(own.matching_filter, '[+#$]')
            AND there.connect_seen AND NOT coalesce(there.session_present, false) AND coalesce(there.gap_bytes, 0) = 0
        GROUP BY ALL""",
    "late_said": """
        SELECT flow_id, matching_filter, said_ns
        FROM late_asked JOIN (
            SELECT flow_id, min(epoch_ns(ts)) AS said_ns FROM mqtt_publishes
            WHERE direction = 'client_to_server' GROUP BY flow_id) USING (flow_id)
        WHERE said_ns < asked_ns""",
    "late_missed": """
        SELECT asked.*, sent.message_id, sent.client_id AS publisher, epoch_ns(sent.ts) AS sent_ns
        FROM late_asked AS asked JOIN late_said AS said USING (flow_id, matching_filter)
        JOIN mqtt_publishes AS sent ON sent.topic = asked.matching_filter
            AND coalesce(sent.server_address, '') = asked.server AND sent.server_port = asked.server_port
        WHERE sent.direction = 'client_to_server' AND sent.flow_id <> asked.flow_id
            AND epoch_ns(sent.ts) > said_ns AND epoch_ns(sent.ts) < granted_ns
            AND NOT coalesce(sent.retain, false) AND coalesce(sent.expected_deliveries, 0) = 0
            AND sent.payload_bytes > 0
        QUALIFY row_number() OVER (PARTITION BY asked.flow_id, asked.matching_filter ORDER BY sent.ts) = 1""",
    "late_got": """
        SELECT client_id, topic AS matching_filter, coalesce(server_address, '') AS server, count(*) AS got
        FROM mqtt_publishes WHERE direction = 'server_to_client' AND topic IS NOT NULL GROUP BY ALL""",
    "late_tries": """
        SELECT server, client_id, matching_filter, count(*) AS connections FROM late_asked GROUP BY ALL""",
}
ROWS = f"""
    SELECT make_timestamp_ns(min(sent_ns))::TIMESTAMPTZ_NS AS ts,
           make_timestamp_ns(max(granted_ns))::TIMESTAMPTZ_NS AS ts_last, client_id,
           arg_max(client_address, sent_ns) AS client_address, arg_max(client_port, sent_ns) AS client_port,
           any_value(version) AS version, matching_filter AS topic_filter, count(*) AS missed,
           any_value(connections) AS connections, coalesce(any_value(got), 0) AS got, min(publisher) AS publisher,
           median(granted_ns - sent_ns) / 1e6 AS late_ms, arg_min(message_id, sent_ns) AS message_id,
           arg_max(message_id, sent_ns) AS last_message_id, arg_min(exchange_id, sent_ns) AS exchange_id,
           nullif(server, '') AS server_address, server_port
    FROM late_missed JOIN late_tries USING (server, client_id, matching_filter)
    LEFT JOIN late_got USING (server, client_id, matching_filter)
    GROUP BY server, server_port, client_id, matching_filter HAVING count(*) >= {LEAST}
    ORDER BY ts, client_id, topic_filter"""
ASKS = """EXISTS (SELECT client_id FROM mqtt_subscriptions WHERE event = 'subscribe'
    GROUP BY client_id, matching_filter HAVING count(*) > 2)"""
