"""Who works on what it gets: `mqtt_workers`, what each client got by a filter, and what it published since.

In: views of `mqtt_deliveries`, `mqtt_publishes` and `mqtt_connections`. Out: STEPS and ROWS of the table.

A row is a client id and a topic filter, or a filter of a shared subscription, by which LEAST messages or more came to
it. Its results are what it published from the first of these on, on the topics of the shape on which it published most:
digits, and its own id, do not count. It works one for one where these are about as many as the messages. Clients of a
plain filter are of a kind where each has its own id in the filter; those of a shared subscription always are. Clients
with many filters are left out.
"""

from __future__ import annotations

from wirewitness.analyser.mqtt.facts.shapes import shape_of

LEAST = 5
# Who has more filters than that is no worker, and each of them is compared with all that the client published.
_MOST_FILTERS = 20

STEPS = {
    "worker_filters": f"""
        SELECT coalesce(server_address, '') AS server, subscriber_client_id AS client_id,
               coalesce(share_name, '') AS share, topic_filter, count(DISTINCT message_id) AS got,
               min(epoch_ns(ts_delivered)) AS first_ns, max(epoch_ns(ts_delivered)) AS last_ns,
               arg_min(delivered_message_id, ts_delivered) AS message_id,
               arg_max(delivered_message_id, ts_delivered) AS last_message_id,
               arg_max(subscriber_flow_id, ts_delivered) AS flow_id
        FROM mqtt_deliveries
        WHERE subscriber_client_id <> '' AND topic_filter IS NOT NULL AND ts_delivered IS NOT NULL
        GROUP BY ALL HAVING count(DISTINCT message_id) >= {LEAST}""",
    "worker_got": f"""
        SELECT * FROM worker_filters QUALIFY count(*) OVER (PARTITION BY server, client_id) <= {_MOST_FILTERS}""",
    "worker_results": f"""
        SELECT server, client_id, share, topic_filter, {shape_of("topic")} AS result_shape,
               count(*) FILTER (is_since) AS results,
               arg_max(sent_message_id, ts) FILTER (is_since) AS result_message_id
        FROM (SELECT worker_got.*, topic, sent.ts AS ts, sent.message_id AS sent_message_id,
                     epoch_ns(sent.ts) >= first_ns AS is_since
              FROM worker_got JOIN mqtt_publishes AS sent USING (client_id)
              WHERE sent.direction = 'client_to_server' AND coalesce(sent.server_address, '') = server
                  AND sent.topic IS NOT NULL AND NOT coalesce(sent.dup, false))
        GROUP BY server, client_id, share, topic_filter, result_shape HAVING count(*) FILTER (is_since) > 0""",
    "worker_most": """
        SELECT server, client_id, share, topic_filter, sum(results)::BIGINT AS published,
               arg_max(struct_pack(result_shape, results, result_message_id), (results, result_shape)) AS most
        FROM worker_results GROUP BY ALL""",
}
ROWS = f"""
    SELECT make_timestamp_ns(first_ns)::TIMESTAMPTZ_NS AS ts, make_timestamp_ns(last_ns)::TIMESTAMPTZ_NS AS ts_last,
           client_id, client_address, client_port, version, topic_filter, nullif(share, '') AS share_name,
           {shape_of("topic_filter")} AS filter_shape, got, coalesce(published, 0) AS published,
           most.result_shape AS result_shape, coalesce(most.results, 0) AS results,
           worker_got.message_id AS message_id, last_message_id, most.result_message_id AS result_message_id,
           nullif(server, '') AS server_address, server_port
    FROM worker_got LEFT JOIN worker_most USING (server, client_id, share, topic_filter)
    LEFT JOIN (SELECT flow_id, client_address, client_port, version, server_port FROM mqtt_connections)
        USING (flow_id)
    ORDER BY first_ns, client_id, topic_filter, share"""
ASKS = "EXISTS (FROM mqtt_deliveries)"
