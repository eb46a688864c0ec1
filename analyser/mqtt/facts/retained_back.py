"""Retained messages that went back: `mqtt_retained_back`, an earlier one that a server sends in place of the last.

In: views of `mqtt_retained` and `mqtt_publishes`. Out: STEPS and ROWS of the table.

A row is a topic whose retained message was set anew, and that the server sends, PAUSE_NS or more after that, with the
payload of an earlier one of the capture. That payload was there once only, and no step of the topic is like another, so
nobody set it again by chance; in between nobody did in the capture.
"""

from __future__ import annotations

PAUSE_NS = 5_000_000_000
# So many values without a repetition are readings, no states.
LEAST_STEPS = 4

STEPS = {
    "back_topics": f"""
        SELECT coalesce(server_address, '') AS server, server_port, topic
        FROM mqtt_retained WHERE set_by = 'publish' AND payload_crc32 IS NOT NULL
        GROUP BY ALL HAVING count(*) >= {LEAST_STEPS} AND count(DISTINCT payload_crc32) = count(*)
            AND (coalesce(server_address, ''), server_port, topic) NOT IN (
                SELECT (coalesce(server_address, ''), server_port, topic) FROM mqtt_retained
                WHERE set_by <> 'publish' AND server_port IS NOT NULL)""",
    "back_sets": """
        SELECT coalesce(server_address, '') AS server, server_port, topic, epoch_ns(ts_last) AS at_ns, payload_crc32,
               client_id, client_address, client_port, message_id
        FROM mqtt_retained SEMI JOIN back_topics
            ON coalesce(mqtt_retained.server_address, '') = back_topics.server
            AND mqtt_retained.server_port = back_topics.server_port AND mqtt_retained.topic = back_topics.topic""",
    "back_sent": """
        SELECT coalesce(sent.server_address, '') AS server, sent.server_port AS server_port, sent.topic AS topic,
               epoch_ns(sent.ts) AS at_ns, sent.payload_crc32 AS payload_crc32, sent.message_id AS message_id,
               sent.client_id AS client_id, sent.client_address AS client_address
        FROM mqtt_publishes AS sent SEMI JOIN back_topics
            ON coalesce(sent.server_address, '') = back_topics.server AND sent.server_port = back_topics.server_port
            AND sent.topic = back_topics.topic
        WHERE sent.direction = 'server_to_client' AND sent.retain AND sent.payload_bytes > 0""",
    "back_found": f"""
        SELECT sent.*, last.at_ns AS set_ns, last.message_id AS set_message_id, last.client_id AS set_by_id,
               last.client_address AS set_by_address, last.client_port AS set_by_port,
               old.at_ns AS old_ns, old.message_id AS old_message_id
        FROM back_sent AS sent ASOF JOIN back_sets AS last
            ON last.server = sent.server AND last.server_port = sent.server_port AND last.topic = sent.topic
            AND sent.at_ns >= last.at_ns
        JOIN back_sets AS old ON old.server = sent.server AND old.server_port = sent.server_port
            AND old.topic = sent.topic AND old.payload_crc32 = sent.payload_crc32
        WHERE sent.payload_crc32 <> last.payload_crc32 AND old.at_ns < last.at_ns
            AND sent.at_ns - last.at_ns >= {PAUSE_NS}""",
}
ROWS = """
    SELECT make_timestamp_ns(first_ns)::TIMESTAMPTZ_NS AS ts, make_timestamp_ns(last_ns)::TIMESTAMPTZ_NS AS ts_last,
           topic, served, subscribers, make_timestamp_ns(first.set_ns)::TIMESTAMPTZ_NS AS ts_set,
           first.set_by_id AS client_id, first.set_by_address AS client_address, first.set_by_port AS client_port,
           make_timestamp_ns(first.old_ns)::TIMESTAMPTZ_NS AS ts_old, first.client_id AS to_client_id,
           first.client_address AS to_client_address, first.message_id AS message_id,
           first.set_message_id AS set_message_id, first.old_message_id AS old_message_id,
           nullif(server, '') AS server_address, server_port
    FROM (
        SELECT server, server_port, topic, count(*) AS served, count(DISTINCT client_id) AS subscribers,
               min(at_ns) AS first_ns, max(at_ns) AS last_ns,
               arg_min(struct_pack(set_ns, set_by_id, set_by_address, set_by_port, old_ns, client_id, client_address,
                                   message_id, set_message_id, old_message_id), (at_ns, message_id)) AS first
        FROM back_found GROUP BY server, server_port, topic)
    ORDER BY first_ns, topic"""
ASKS = """EXISTS (FROM mqtt_publishes WHERE direction = 'server_to_client' AND retain
    AND topic IN (SELECT topic FROM mqtt_publishes WHERE direction = 'client_to_server' AND retain))"""
