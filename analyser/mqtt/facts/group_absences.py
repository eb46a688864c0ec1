"""Times without a member of a shared subscription: `mqtt_group_absences`, and what was published meanwhile.

In: views of `mqtt_active_subscriptions`, `mqtt_publishes` and `mqtt_connections`. Out: STEPS and ROWS of the table.

A group is a name of a shared subscription and its topic filter. It is absent from the end of the last subscription that
was in force until the next one is granted, both in the capture: a session that is kept is a subscription in force. A
row is a group that was absent with messages of QoS 1 or 2 meanwhile that match the filter. A server with a client that
may have a subscription from before the capture is left out for as long as that one is connected.
"""

from __future__ import annotations

from wirewitness.analyser.mqtt.facts.dropped_filters import PATTERN

_MOST = 200

STEPS = {
    "absent_spans": """
        SELECT coalesce(subscriptions.server_address, '') AS server, subscriptions.server_port AS server_port,
               share_name, matching_filter, subscriptions.client_id AS client_id,
               epoch_ns(subscriptions.ts) AS at_ns,
               max(coalesce(epoch_ns(ts_until), 9223372036854775807)) OVER groups AS before_ns,
               lag(subscriptions.client_id) OVER groups AS left_id
        FROM mqtt_active_subscriptions AS subscriptions
        WHERE share_name IS NOT NULL AND matching_filter IS NOT NULL
        WINDOW groups AS (PARTITION BY subscriptions.server_address, subscriptions.server_port, share_name,
                          matching_filter ORDER BY subscriptions.ts, exchange_id
                          ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)""",
    "absent_times": f"""
        SELECT server, server_port, share_name, matching_filter, before_ns AS from_ns, at_ns AS until_ns,
               {PATTERN} AS pattern
        FROM absent_spans WHERE before_ns < at_ns AND NOT EXISTS (
            FROM mqtt_connections AS others
            WHERE coalesce(others.server_address, '') = server AND others.server_port = absent_spans.server_port
                AND coalesce(others.publishes_from_server, 0) > 0
                AND (coalesce(others.gap_bytes, 0) > 0 OR NOT coalesce(others.connect_seen, false)
                     OR (others.session_present AND others.flow_id NOT IN (
                         SELECT flow_id FROM mqtt_subscriptions WHERE share_name IS NOT NULL)))
                AND epoch_ns(others.ts) < at_ns
                AND epoch_ns(coalesce(others.ts_closed, others.observed_until, others.ts_end)) > before_ns)
        QUALIFY row_number() OVER (ORDER BY at_ns) <= {_MOST}""",
    "absent_messages": """
        SELECT times.*, epoch_ns(sent.ts) AS at_ns, sent.message_id AS message_id, sent.topic AS topic,
               coalesce(sent.client_id, sent.client_address) AS publisher
        FROM absent_times AS times JOIN mqtt_publishes AS sent
            ON coalesce(sent.server_address, '') = server AND sent.server_port = times.server_port
            AND epoch_ns(sent.ts) > from_ns AND epoch_ns(sent.ts) < until_ns
            AND regexp_full_match(sent.topic, pattern)
        WHERE sent.direction = 'client_to_server' AND sent.qos > 0 AND sent.topic IS NOT NULL
            AND NOT coalesce(sent.dup, false) AND NOT coalesce(sent.retain, false)""",
    "absent_members": """
        SELECT server, server_port, share_name, matching_filter, count(DISTINCT client_id) AS members,
               array_to_string(list_sort(list(DISTINCT client_id))[:5], ', ') AS member_ids
        FROM absent_spans GROUP BY ALL""",
}
ROWS = """
    SELECT make_timestamp_ns(min(at_ns))::TIMESTAMPTZ_NS AS ts,
           make_timestamp_ns(max(at_ns))::TIMESTAMPTZ_NS AS ts_last, share_name, matching_filter AS topic_filter,
           any_value(members) AS members,
           any_value(member_ids) AS member_ids, count(DISTINCT from_ns) AS absences, count(*) AS messages,
           max(until_ns - from_ns) / 1e6 AS longest_ms, min(topic) AS topic, count(DISTINCT topic) AS topics,
           min(publisher) AS publisher, arg_min(message_id, at_ns) AS message_id,
           arg_max(message_id, at_ns) AS last_message_id, nullif(server, '') AS server_address, server_port
    FROM absent_messages JOIN absent_members USING (server, server_port, share_name, matching_filter)
    GROUP BY server, server_port, share_name, matching_filter
    ORDER BY ts, share_name, topic_filter"""
ASKS = "EXISTS (FROM mqtt_subscriptions WHERE share_name IS NOT NULL)"
