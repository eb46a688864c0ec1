"""Clients that subscribe after the answer has come: `mqtt_late_subscribes`.

In: views of `mqtt_connections`, `mqtt_subscriptions` and `mqtt_publishes`. Out: STEPS and ROWS of the table.

On a connection without a session from before a client publishes, somebody else publishes on a topic that a filter of
the client matches, and only then the server grants the filter. The message was not retained, and the server sent it to
nobody. A row is a client id and filter to which that happened on LEAST connections or more.
"""

from __future__ import annotations

LEAST = 3
_TOPIC = "server, server_port, matching_filter"
_IN_ORDER = f"sent AS (PARTITION BY {_TOPIC} ORDER BY sent_ns, message_id)"
_MESSAGE = "struct_pack(message_id, publisher, sent_ns)"

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
        SELECT flow_id, min(epoch_ns(ts)) AS said_ns FROM mqtt_publishes
        WHERE direction = 'client_to_server' GROUP BY flow_id""",
    # What was sent to nobody on these topics; turn: of one connection, until another one sends there.
    "late_sent": f"""
        SELECT *, count(*) FILTER (is_other) OVER sent AS turn
        FROM (
            SELECT *, lag(sender) OVER sent IS DISTINCT FROM sender AS is_other
            FROM (
                SELECT coalesce(server_address, '') AS server, server_port, topic AS matching_filter, flow_id AS sender,
                       client_id AS publisher, message_id, epoch_ns(ts) AS sent_ns
                FROM mqtt_publishes
                WHERE direction = 'client_to_server' AND NOT coalesce(retain, false)
                    AND coalesce(expected_deliveries, 0) = 0 AND payload_bytes > 0
                    AND topic IN (SELECT matching_filter FROM late_asked))
            WINDOW {_IN_ORDER})
        WINDOW {_IN_ORDER}""",
    "late_turns": f"""
        SELECT {_TOPIC}, turn - 1 AS turn, arg_min({_MESSAGE}, sent_ns) AS next FROM late_sent GROUP BY ALL""",
    "late_missed": f"""
        SELECT * EXCLUDE (sent), sent.message_id AS message_id, sent.publisher AS publisher, sent.sent_ns AS sent_ns
        FROM (
            SELECT asked.*, CASE WHEN sender <> asked.flow_id THEN {_MESSAGE} ELSE next END AS sent
            FROM (
                SELECT late_asked.*, said_ns
                FROM late_asked ASOF JOIN late_said
                    ON late_asked.flow_id = late_said.flow_id AND asked_ns > said_ns) AS asked
            ASOF JOIN late_sent AS first ON asked.server = first.server AND asked.server_port = first.server_port
                AND asked.matching_filter = first.matching_filter AND said_ns < first.sent_ns
            LEFT JOIN late_turns AS turns ON turns.server = first.server AND turns.server_port = first.server_port
                AND turns.matching_filter = first.matching_filter AND turns.turn = first.turn)
        WHERE sent.sent_ns < granted_ns""",
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
