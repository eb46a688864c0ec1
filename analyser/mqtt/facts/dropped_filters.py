"""Filters that a client had, and has no more after a reconnect: `mqtt_dropped_filters`.

In: views of `mqtt_connections`, `mqtt_subscriptions` and `mqtt_publishes`. Out: STEPS and ROWS of the table.

A client had a filter on one connection: the server granted it, and the client did not give it up. The next connection
of its client id began in the capture, the server had no session for it (session present 0), and none of its SUBSCRIBE
packets names the filter, but for one that covers it. It is told from when the client would have subscribed: AS_LONG
times as long after the CONNACK as before, FLOOR_NS at least. Until then it may come. What matched it and was published
by others from the CONNACK on did not reach the client.
"""

from __future__ import annotations

from wirewitness.analyser.mqtt.facts import missed_messages

AS_LONG = 5
FLOOR_NS = 3_000_000_000
# So many of them are compared with the topics of their server.
_MOST = 500
_SPECIAL = r"([.^$*?()\[\]{}|\\])"
# A filter as a regular expression over topics: MQTT 3.1.1 and 5.0, section 4.7.
PATTERN = f"""'^' || replace(replace(replace(replace(
    regexp_replace(matching_filter, '{_SPECIAL}', '\\\\\\1', 'g'), '+', '[^/]*'), '/#', '(/.*)?'), '#', '.*'),
    '\\$', '[$]') || '$'"""

STEPS = {
    "drop_connections": """
        SELECT flow_id, coalesce(server_address, '') AS server, client_id, epoch_ns(coalesce(ts_response, ts)) AS at_ns,
               coalesce(session_present, NOT clean_start) AS resumed,
               epoch_ns(coalesce(ts_closed, ts_disconnect, observed_until, ts_end)) AS until_ns,
               coalesce(gap_bytes, 0) = 0 AND server_messages > 0 AND client_messages > 0 AS whole,
               lag(flow_id) OVER of_client AS flow_before
        FROM mqtt_connections WHERE connect_seen AND error_code = 0 AND client_id <> ''
        WINDOW of_client AS (PARTITION BY server_address, client_id ORDER BY ts, flow_id)""",
    "drop_held": """
        SELECT flow_id, topic_filter, any_value(matching_filter) AS matching_filter,
               any_value(share_name) AS share_name,
               arg_max(event, (ts, exchange_id)) AS event, min(ts) FILTER (event = 'subscribe') AS first,
               arg_max(granted_qos, (ts, exchange_id)) FILTER (event = 'subscribe') AS qos,
               arg_max(exchange_id, (ts, exchange_id)) FILTER (event = 'subscribe') AS exchange_id
        FROM mqtt_subscriptions WHERE topic_filter IS NOT NULL AND coalesce(error_code, 0) = 0
        GROUP BY flow_id, topic_filter""",
    "drop_found": f"""
        SELECT next.*, held.topic_filter, held.matching_filter, held.qos, held.exchange_id,
               next.at_ns + greatest({AS_LONG} * (epoch_ns(held.first) - before.at_ns), {FLOOR_NS}) AS due_ns,
               (SELECT count(*) FROM drop_held AS own WHERE own.flow_id = next.flow_id) AS filters_now,
               (SELECT count(*) FROM drop_held AS own WHERE own.flow_id = next.flow_id AND own.topic_filter NOT IN (
                    SELECT topic_filter FROM drop_held AS old WHERE old.flow_id = next.flow_before)) AS filters_new,
               {PATTERN.replace("matching_filter", "held.matching_filter")} AS pattern
        FROM drop_connections AS next JOIN drop_connections AS before ON before.flow_id = next.flow_before
        JOIN drop_held AS held ON held.flow_id = next.flow_before
        WHERE NOT next.resumed AND next.whole AND before.whole AND held.event = 'subscribe' AND held.qos IS NOT NULL
            AND held.share_name IS NULL AND held.matching_filter IS NOT NULL
            AND NOT EXISTS (FROM drop_held AS own WHERE own.flow_id = next.flow_id AND (
                own.topic_filter = held.topic_filter
                OR (ends_with(own.matching_filter, '#')
                    AND starts_with(held.matching_filter, rtrim(own.matching_filter, '#')))))
        QUALIFY next.until_ns > due_ns
            AND row_number() OVER (ORDER BY next.at_ns, next.flow_id, topic_filter) <= {_MOST}""",
    **missed_messages.STEPS,
}
ROWS = """
    SELECT found.flow_id, make_timestamp_ns(at_ns)::TIMESTAMPTZ_NS AS ts,
           make_timestamp_ns(until_ns)::TIMESTAMPTZ_NS AS ts_until, connections.client_id, connections.client_address,
           connections.client_port, connections.version, connections.clean_start, connections.session_present,
           flow_before, found.topic_filter, matching_filter, qos, filters_now, filters_new,
           coalesce(messages, 0) AS messages, coalesce(messages_late, 0) AS messages_late, topic,
           first_id AS first_message_id, last_id AS last_message_id, found.exchange_id,
           connections.server_address, connections.server_port, connections.file, connections.packet
    FROM drop_found AS found JOIN mqtt_connections AS connections USING (flow_id)
    LEFT JOIN drop_missed AS missed
        ON missed.flow_id = found.flow_id AND missed.topic_filter = found.topic_filter
    ORDER BY at_ns, found.flow_id, found.topic_filter"""
ASKS = """EXISTS (FROM (
    SELECT 1 FROM mqtt_connections WHERE connect_seen AND error_code = 0 AND client_id <> ''
    GROUP BY server_address, client_id HAVING count(*) > 1))"""
