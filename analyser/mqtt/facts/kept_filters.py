"""Filters that a session keeps and its client does not ask for any more: `mqtt_kept_filters`.

In: views of `mqtt_active_subscriptions`, `mqtt_subscriptions`, `mqtt_connections` and `mqtt_deliveries`. Out: STEPS and
ROWS of the table.

A client asked for a filter on an earlier connection. On a later one, which began in the capture with its session, it
asks for others and not for that one, nor gives it up, and LEAST messages or more come to it by the old filter. Likes
are other clients that gave the old filter up with UNSUBSCRIBE and asked for a new one of these.
"""

from __future__ import annotations

LEAST = 5

STEPS = {
    "kept_now": """
        SELECT now.flow_id, coalesce(now.server_address, '') AS server, now.server_port, now.client_id,
               now.client_address, now.client_port, now.version, epoch_ns(coalesce(now.ts_response, now.ts)) AS at_ns,
               min(asked.topic_filter) AS new_filter, arg_min(asked.exchange_id, asked.ts) AS exchange_id
        FROM mqtt_connections AS now JOIN mqtt_subscriptions AS asked ON asked.flow_id = now.flow_id
        WHERE now.connect_seen AND now.session_present AND coalesce(now.gap_bytes, 0) = 0 AND now.client_id <> ''
            AND asked.event = 'subscribe' AND asked.granted_qos IS NOT NULL
        GROUP BY ALL""",
    "kept_old": """
        SELECT now.*, old.matching_filter, min(epoch_ns(old.ts)) AS old_ns, arg_min(old.exchange_id, old.ts) AS old_id
        FROM kept_now AS now JOIN mqtt_active_subscriptions AS old
            ON old.client_id = now.client_id AND coalesce(old.server_address, '') = now.server
            AND old.server_port = now.server_port AND epoch_ns(old.ts) < now.at_ns AND old.flow_id <> now.flow_id
        WHERE old.share_name IS NULL AND (old.ts_until IS NULL OR epoch_ns(old.ts_until) > now.at_ns)
            AND NOT EXISTS (FROM mqtt_subscriptions AS own WHERE own.flow_id = now.flow_id
                            AND own.matching_filter = old.matching_filter)
        GROUP BY ALL""",
    "kept_got": f"""
        SELECT kept_old.*, count(*) AS messages, min(topic) AS topic, max(epoch_ns(ts_delivered)) AS last_ns,
               arg_min(delivered_message_id, ts_delivered) AS message_id,
               arg_max(delivered_message_id, ts_delivered) AS last_message_id
        FROM kept_old JOIN mqtt_deliveries AS got
            ON got.subscriber_flow_id = kept_old.flow_id AND got.topic_filter = kept_old.matching_filter
        WHERE ts_delivered IS NOT NULL AND NOT coalesce(queued, false)
        GROUP BY ALL HAVING count(*) >= {LEAST}""",
    "kept_likes": """
        SELECT got.flow_id, got.matching_filter, count(DISTINCT gave.client_id) AS likes,
               min(gave.client_id) AS like_client_id, arg_min(gave.exchange_id, gave.ts) AS like_id
        FROM kept_got AS got JOIN mqtt_subscriptions AS gave
            ON gave.matching_filter = got.matching_filter AND coalesce(gave.server_address, '') = got.server
        JOIN mqtt_subscriptions AS took ON took.client_id = gave.client_id AND took.topic_filter = got.new_filter
        WHERE gave.event = 'unsubscribe' AND took.event = 'subscribe' AND gave.client_id <> got.client_id
        GROUP BY ALL""",
}
ROWS = """
    SELECT make_timestamp_ns(at_ns)::TIMESTAMPTZ_NS AS ts, make_timestamp_ns(last_ns)::TIMESTAMPTZ_NS AS ts_last,
           client_id, client_address, client_port, version, flow_id, matching_filter AS topic_filter, new_filter,
           make_timestamp_ns(old_ns)::TIMESTAMPTZ_NS AS ts_asked, topic, messages, coalesce(likes, 0) AS likes,
           like_client_id, exchange_id, old_id AS old_exchange_id, like_id AS like_exchange_id, message_id,
           last_message_id, nullif(server, '') AS server_address, server_port
    FROM kept_got LEFT JOIN kept_likes USING (flow_id, matching_filter)
    ORDER BY at_ns, client_id, topic_filter"""
ASKS = "EXISTS (FROM mqtt_connections WHERE session_present)"
