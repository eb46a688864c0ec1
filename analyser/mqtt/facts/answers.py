"""How clients answer requests of 5.0: `mqtt_answers`, with what of the request in the answer.

In: a view of `mqtt_publishes`. Out: STEPS and ROWS of the table.

A request is a message with a response topic; an answer is what a client publishes on it after it got the request. A row
is a client id and shape of the requests' topics (digits, and its own id, do not count) of which LEAST or more came to
it, all with correlation data, and LEAST or more were answered. A request is asked again where the same client publishes
the same payload on the same topic once more after the request had come.
"""

from __future__ import annotations

from wirewitness.analyser.mqtt.facts.shapes import shape_of

LEAST = 3

STEPS = {
    "answer_asked": f"""
        SELECT coalesce(server_address, '') AS server, client_id, {shape_of()} AS shape, topic, response_topic,
               payload_crc32, payload_bytes, epoch_ns(ts) AS at_ns, message_id,
               coalesce(correlation_data_bytes, 0) > 0 AS correlates
        FROM mqtt_publishes
        WHERE direction = 'server_to_client' AND response_topic IS NOT NULL AND client_id <> '' AND topic IS NOT NULL
            AND NOT coalesce(dup, false) AND NOT coalesce(retain, false)""",
    "answer_told": """
        SELECT coalesce(server_address, '') AS server, client_id, topic AS response_topic, epoch_ns(ts) AS at_ns,
               message_id, coalesce(correlation_data_bytes, 0) > 0 AS correlates,
               struct_pack(client_address, client_port, version, server_port) AS who
        FROM mqtt_publishes
        WHERE direction = 'client_to_server' AND client_id <> '' AND NOT coalesce(dup, false)
            AND topic IN (SELECT response_topic FROM answer_asked)""",
    "answer_pairs": """
        SELECT told.*, asked.shape, asked.topic AS topic
        FROM answer_told AS told ASOF JOIN answer_asked AS asked
            ON told.server = asked.server AND told.client_id = asked.client_id
            AND told.response_topic = asked.response_topic AND told.at_ns >= asked.at_ns""",
    "answer_latest": """
        SELECT coalesce(server_address, '') AS server, topic, response_topic, payload_crc32, payload_bytes,
               max(epoch_ns(ts)) AS latest_ns, arg_max(client_id, ts) AS asker
        FROM mqtt_publishes
        WHERE direction = 'client_to_server' AND response_topic IS NOT NULL AND NOT coalesce(dup, false)
        GROUP BY ALL""",
    "answer_requests": f"""
        SELECT server, client_id, shape, count(*) AS requests, count(*) FILTER (latest_ns > at_ns) AS asked_again,
               arg_min(message_id, at_ns) AS message_id, arg_max(asker, at_ns) AS asker
        FROM answer_asked LEFT JOIN answer_latest USING (server, topic, response_topic, payload_crc32, payload_bytes)
        GROUP BY server, client_id, shape HAVING count(*) >= {LEAST} AND bool_and(correlates)""",
    "answer_counts": f"""
        SELECT server, client_id, shape, count(*) AS answers, count(*) FILTER (NOT correlates) AS without,
               min(at_ns) AS first_ns, max(at_ns) AS last_ns, min(topic) AS topic,
               min(response_topic) AS response_topic, arg_max(who, at_ns) AS last,
               coalesce(arg_min(message_id, at_ns) FILTER (NOT correlates), arg_min(message_id, at_ns)) AS answer_id,
               arg_max(message_id, at_ns) AS last_message_id
        FROM answer_pairs GROUP BY server, client_id, shape HAVING count(*) >= {LEAST}""",
}
ROWS = """
    SELECT make_timestamp_ns(first_ns)::TIMESTAMPTZ_NS AS ts, make_timestamp_ns(last_ns)::TIMESTAMPTZ_NS AS ts_last,
           client_id, last.client_address AS client_address, last.client_port AS client_port, last.version AS version,
           shape, topic, response_topic, asker, requests, asked_again, answers, without AS without_correlation,
           message_id, answer_id AS answer_message_id, last_message_id, nullif(server, '') AS server_address,
           last.server_port AS server_port
    FROM answer_counts JOIN answer_requests USING (server, client_id, shape)
    ORDER BY first_ns, client_id, shape"""
ASKS = "EXISTS (FROM mqtt_publishes WHERE response_topic IS NOT NULL)"
