"""Who waits at a server where nothing passes: `mqtt_lone_subscribers`, what passes elsewhere for the same filter.

In: views of `mqtt_active_subscriptions`, `mqtt_connections` and `mqtt_deliveries`. Out: STEPS and ROWS of the table.

A client is alone at a server (address and port) where no other client is seen and no message passes in the capture. A
row is such a client and filter of which another client got LEAST messages meanwhile at another server that the capture
sees. A client whose address also subscribes to the filter there reads from all servers, and is left out; so are
filters that begin with a wildcard, which watch a server.
"""

from __future__ import annotations

LEAST = 5

STEPS = {
    "lone_servers": """
        SELECT server_address, server_port, min(client_id) AS client_id
        FROM mqtt_connections WHERE server_address IS NOT NULL
        GROUP BY ALL
        HAVING sum(coalesce(publishes_from_client, 0) + coalesce(publishes_from_server, 0)) = 0
            AND count(DISTINCT coalesce(client_id, flow_id)) = 1 AND sum(coalesce(gap_bytes, 0)) = 0
            AND bool_and(connect_seen)""",
    "lone_filters": """
        SELECT lone.*, epoch_ns(lone.ts) AS from_ns,
               coalesce(epoch_ns(lone.ts_until), epoch_ns(observed_until), 9223372036854775807) AS until_ns
        FROM mqtt_active_subscriptions AS lone SEMI JOIN lone_servers USING (server_address, server_port)
        JOIN (SELECT flow_id, observed_until FROM mqtt_connections) USING (flow_id)
        WHERE share_name IS NULL AND NOT regexp_matches(matching_filter, '^[+#$]')""",
    "lone_elsewhere": f"""
        SELECT lone.flow_id, lone.exchange_id, lone.matching_filter, elsewhere.server_address AS other_server_address,
               elsewhere.server_port AS other_server_port, elsewhere.subscriber_client_id AS other_client_id,
               elsewhere.subscriber_address AS other_client_address, count(DISTINCT elsewhere.message_id) AS messages,
               arg_min(elsewhere.message_id, elsewhere.ts) AS message_id,
               arg_max(elsewhere.message_id, elsewhere.ts) AS last_message_id,
               min(epoch_ns(elsewhere.ts)) AS first_ns, max(epoch_ns(elsewhere.ts)) AS last_ns,
               min(elsewhere.topic) AS topic
        FROM lone_filters AS lone JOIN mqtt_deliveries AS elsewhere
            ON elsewhere.topic_filter = lone.matching_filter AND elsewhere.share_name IS NULL
            AND epoch_ns(elsewhere.ts) BETWEEN from_ns AND until_ns
        WHERE elsewhere.subscriber_client_id <> lone.client_id AND elsewhere.ts_delivered IS NOT NULL
            AND (elsewhere.server_address, elsewhere.server_port) <> (lone.server_address, lone.server_port)
            AND NOT EXISTS (FROM mqtt_active_subscriptions AS same
                            WHERE same.client_address = lone.client_address
                                AND same.matching_filter = lone.matching_filter
                                AND (same.server_address, same.server_port)
                                    <> (lone.server_address, lone.server_port))
        GROUP BY ALL HAVING count(DISTINCT elsewhere.message_id) >= {LEAST}""",
    "lone_most": """
        SELECT * FROM lone_elsewhere
        QUALIFY row_number() OVER (
            PARTITION BY flow_id, matching_filter ORDER BY messages DESC, other_client_id) = 1""",
}
ROWS = """
    SELECT lone.ts, make_timestamp_ns(last_ns)::TIMESTAMPTZ_NS AS ts_last, lone.client_id, lone.client_address,
           lone.client_port, lone.version, lone.matching_filter AS topic_filter, topic, other_server_address,
           other_server_port, other_client_id, other_client_address, messages, message_id, last_message_id,
           lone.exchange_id, lone.server_address, lone.server_port
    FROM lone_filters AS lone JOIN lone_most USING (flow_id, exchange_id, matching_filter)
    ORDER BY lone.ts, lone.client_id, topic_filter"""
ASKS = "(SELECT count(DISTINCT (server_address, server_port)) > 1 FROM mqtt_connections)"
