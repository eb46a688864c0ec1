"""Series of messages that come to a client again and again: `mqtt_repeated_transfers`.

In: a view of `mqtt_publishes`. Out: STEPS and ROWS of the table.

A row is a client id and shape of topics (digits, and its own id, do not count) of which LEAST different messages or
more (topic and payload) came to it ROUNDS times or more each, in the middle, or fewer ones SINGLE times; retained
messages and those sent again with DUP aside. A round begins where the first of them comes. What the client published
last before most rounds is what it asks with. They come in order where what follows each is always the same.
"""

from __future__ import annotations

from wirewitness.analyser.mqtt.facts.shapes import shape_of

LEAST, ROUNDS, SINGLE = 5, 3, 10
# Of the rounds, so many come after a message on one topic.
_MOST = 0.6
_CAME = """direction = 'server_to_client' AND client_id <> '' AND topic IS NOT NULL AND payload_bytes > 0
    AND payload_crc32 IS NOT NULL AND NOT coalesce(dup, false) AND NOT coalesce(retain, false)"""

STEPS = {
    "transfer_contents": f"""
        SELECT coalesce(server_address, '') AS server, client_id, topic, payload_crc32, payload_bytes, count(*) AS came,
               min(epoch_ns(ts)) AS first_ns, max(epoch_ns(ts)) AS last_ns, arg_min(message_id, ts) AS message_id,
               arg_max(message_id, ts) AS last_message_id,
               arg_max(struct_pack(client_address, client_port, version, server_port), ts) AS who
        FROM mqtt_publishes WHERE {_CAME} GROUP BY ALL""",
    "transfer_shapes": f"""
        SELECT server, client_id, {shape_of()} AS shape, count(*) AS contents, sum(came)::BIGINT AS messages,
               sum(came * payload_bytes)::BIGINT AS bytes, quantile_disc(came, 0.5) AS rounds,
               min(first_ns) AS first_ns, max(last_ns) AS last_ns, arg_max(last_message_id, last_ns) AS last_message_id,
               arg_min(struct_pack(topic, payload_crc32, payload_bytes, message_id, who),
                       (first_ns, message_id)) AS first
        FROM transfer_contents GROUP BY ALL""",
    # Likes have half as many contents, or more.
    "transfer_rows": f"""
        SELECT *, count(*) OVER likes AS likes, max(rounds) OVER likes AS likes_rounds FROM transfer_shapes
        WINDOW likes AS (PARTITION BY server, shape ORDER BY contents
                         RANGE BETWEEN contents // 2 PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW)
        QUALIFY (rounds >= {ROUNDS} AND contents >= {LEAST}) OR rounds >= {SINGLE}""",
    "transfer_follows": f"""
        SELECT server, client_id, shape, content, next, count(*) AS times
        FROM (SELECT server, client_id, shape, content, lead(content) OVER (
                         PARTITION BY server, client_id, shape ORDER BY at_ns, message_id) AS next
              FROM (SELECT coalesce(server_address, '') AS server, client_id, {shape_of()} AS shape,
                           hash(topic, payload_crc32, payload_bytes) AS content, epoch_ns(ts) AS at_ns, message_id
                    FROM mqtt_publishes
                    WHERE {_CAME} AND (server_address, client_id) IN (
                        SELECT (nullif(server, ''), client_id) FROM transfer_rows))
              SEMI JOIN transfer_rows USING (server, client_id, shape))
        WHERE next IS NOT NULL GROUP BY ALL""",
    "transfer_order": """
        SELECT server, client_id, shape, sum(most) / sum(times) AS in_order
        FROM (SELECT server, client_id, shape, content, max(times) AS most, sum(times) AS times
              FROM transfer_follows GROUP BY ALL)
        GROUP BY ALL""",
    "transfer_begins": """
        SELECT own.server, own.client_id, own.shape, epoch_ns(ts) AS at_ns
        FROM transfer_rows AS own JOIN mqtt_publishes AS came
            ON coalesce(server_address, '') = own.server AND came.client_id = own.client_id
            AND came.topic = own.first.topic AND came.payload_crc32 = own.first.payload_crc32
            AND came.payload_bytes = own.first.payload_bytes
        WHERE direction = 'server_to_client' AND NOT coalesce(dup, false) AND NOT coalesce(retain, false)""",
    "transfer_own": """
        SELECT coalesce(server_address, '') AS server, client_id, topic, epoch_ns(ts) AS at_ns, message_id,
               payload_crc32
        FROM mqtt_publishes
        WHERE direction = 'client_to_server' AND topic IS NOT NULL AND NOT coalesce(dup, false)
            AND client_id IN (SELECT client_id FROM transfer_rows)""",
    "transfer_before": """
        SELECT begins.server, begins.client_id, shape, own.topic AS asked_topic, count(*) AS rounds,
               median(begins.at_ns - own.at_ns) AS after_ns
        FROM transfer_begins AS begins ASOF JOIN transfer_own AS own
            ON own.server = begins.server AND own.client_id = begins.client_id AND own.at_ns <= begins.at_ns
        GROUP BY ALL""",
    "transfer_turns": """
        SELECT server, client_id, shape, count(*) AS all_rounds,
               (max(at_ns) - min(at_ns)) / nullif(count(*) - 1, 0) AS each_ns
        FROM transfer_begins GROUP BY ALL""",
    "transfer_asked": f"""
        SELECT server, client_id, shape, asked_topic, any_value(after_ns) AS after_ns, count(*) AS asked,
               count(DISTINCT payload_crc32) AS asked_contents, arg_max(message_id, at_ns) AS asked_message_id
        FROM (SELECT before.* FROM transfer_before AS before JOIN transfer_turns USING (server, client_id, shape)
              WHERE before.rounds >= {_MOST} * all_rounds)
        JOIN transfer_own AS own USING (server, client_id)
        WHERE own.topic = asked_topic GROUP BY ALL""",
    "transfer_senders": """
        SELECT own.server, own.client_id, own.shape, sender
        FROM transfer_rows AS own JOIN (
            SELECT coalesce(server_address, '') AS server, topic, payload_crc32, payload_bytes,
                   arg_min(client_id, ts) AS sender
            FROM mqtt_publishes
            WHERE direction = 'client_to_server' AND topic IN (SELECT first.topic FROM transfer_rows)
            GROUP BY ALL) AS sent
            ON sent.server = own.server AND sent.topic = own.first.topic
            AND sent.payload_crc32 = own.first.payload_crc32 AND sent.payload_bytes = own.first.payload_bytes""",
}
ROWS = """
    SELECT make_timestamp_ns(first_ns)::TIMESTAMPTZ_NS AS ts, make_timestamp_ns(last_ns)::TIMESTAMPTZ_NS AS ts_last,
           client_id, first.who.client_address AS client_address, first.who.client_port AS client_port,
           first.who.version AS version, shape, first.topic AS topic, contents, rounds, messages, bytes, sender,
           asked_topic, asked, asked_contents, after_ns / 1e6 AS after_ms, each_ns / 1e6 AS each_ms, in_order, likes,
           likes_rounds, first.message_id AS message_id, last_message_id,
           asked_message_id, nullif(server, '') AS server_address, first.who.server_port AS server_port
    FROM transfer_rows LEFT JOIN transfer_order USING (server, client_id, shape)
    LEFT JOIN transfer_turns USING (server, client_id, shape)
    LEFT JOIN transfer_asked USING (server, client_id, shape)
    LEFT JOIN transfer_senders USING (server, client_id, shape)
    ORDER BY first_ns, client_id, shape"""
ASKS = f"""EXISTS (SELECT client_id FROM mqtt_publishes WHERE {_CAME}
    GROUP BY server_address, client_id, topic, payload_crc32, payload_bytes HAVING count(*) >= {ROUNDS})"""
