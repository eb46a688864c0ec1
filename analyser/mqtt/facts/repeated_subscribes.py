"""How often each client subscribed, and what of it changed nothing: `mqtt_client_subscribes`.

In: views of `mqtt_subscriptions` and `mqtt_publishes`. Out: STEPS and ROWS of the table. A client is a client id at an
address. A SUBSCRIBE is without effect where each of its filters was granted on the same connection before, with the
same options, and was not given up since. One that was given up and is asked for again is counted apart.
"""

from __future__ import annotations

_WHO = """coalesce(server_address, '') AS server, coalesce(client_address, '') AS address,
    coalesce(client_id, flow_id) AS client"""
_OPTIONS = "struct_pack(requested_qos, no_local, retain_as_published, retain_handling)"

STEPS = {
    "asked_filters": f"""
        SELECT {_WHO}, *, {_OPTIONS} AS options, lag(event) OVER of_filter AS event_before,
               lag({_OPTIONS}) OVER of_filter AS options_before,
               lag(granted_qos) OVER of_filter AS granted_before
        FROM mqtt_subscriptions WHERE topic_filter IS NOT NULL
        WINDOW of_filter AS (PARTITION BY flow_id, topic_filter ORDER BY ts, exchange_id, position)""",
    "asked_packets": """
        SELECT server, address, client, flow_id, exchange_id, min(ts) AS ts, any_value(client_id) AS client_id,
               any_value(client_port) AS client_port, any_value(version) AS version,
               any_value(server_port) AS server_port,
               bool_and(event_before = 'subscribe' AND granted_before IS NOT NULL
                        AND options_before IS NOT DISTINCT FROM options) AS without_effect,
               bool_and(event_before = 'unsubscribe') AS again, min(topic_filter) AS topic_filter
        FROM asked_filters WHERE event = 'subscribe' GROUP BY ALL""",
    "asked_sent": f"""
        SELECT {_WHO}, count(*) AS retained FROM mqtt_publishes
        WHERE direction = 'server_to_client' AND retain GROUP BY ALL""",
}
ROWS = """
    SELECT min(ts) AS ts, max(ts) AS ts_last, any_value(client_id) AS client_id, nullif(address, '') AS client_address,
           any_value(client_port) AS client_port, any_value(version) AS version, count(*) AS subscribes,
           count(*) FILTER (without_effect) AS without_effect, count(*) FILTER (again) AS again,
           count(DISTINCT flow_id) AS connections,
           coalesce(arg_min(topic_filter, (ts, exchange_id)) FILTER (without_effect),
                    arg_min(topic_filter, (ts, exchange_id)) FILTER (again)) AS topic_filter,
           coalesce(any_value(retained), 0) AS retained,
           coalesce(arg_min(exchange_id, (ts, exchange_id)) FILTER (without_effect OR again),
                    arg_min(exchange_id, (ts, exchange_id))) AS exchange_id,
           arg_max(exchange_id, (ts, exchange_id)) AS last_exchange_id, nullif(server, '') AS server_address,
           any_value(server_port) AS server_port
    FROM asked_packets LEFT JOIN asked_sent USING (server, address, client)
    GROUP BY server, address, client ORDER BY ts, client_address, client_id"""
ASKS = "EXISTS (FROM mqtt_subscriptions WHERE event = 'subscribe')"
