"""Whether what a client publishes goes on changing, and keeps its size: `mqtt_publisher_contents`.

In: a view of `mqtt_publishes`. Out: STEPS and ROWS of the table.

A row is a client id and topic with LEAST messages or more, those sent again with DUP aside. Its likes are other client
ids of the server whose topic has the same shape: digits, and the client's own id in it, do not count. The last run are
the messages at the end whose payload is the same. Sizes turn at a new connection when all payloads before are smaller,
or all are larger, than all since.
"""

from __future__ import annotations

from wirewitness.analyser.mqtt.facts.publisher_habits import OFTEN_SENT
from wirewitness.analyser.mqtt.facts.shapes import shape_of

LEAST = 10
_ALL = "PARTITION BY server, client_id, topic ORDER BY at_ns, message_id"

STEPS = {
    **OFTEN_SENT,
    "content_sent": """
        SELECT coalesce(server_address, '') AS server, client_id, topic, flow_id, epoch_ns(ts) AS at_ns, message_id,
               (payload_crc32, payload_bytes) AS content, payload_bytes AS bytes, client_address, client_port, version,
               server_port
        FROM mqtt_publishes AS sent SEMI JOIN often_sent AS often ON coalesce(sent.server_address, '') = often.server
            AND sent.client_id = often.client_id AND sent.topic = often.topic
        WHERE direction = 'client_to_server' AND NOT coalesce(dup, false) AND payload_bytes > 0
            AND payload_crc32 IS NOT NULL""",
    "content_rows": f"""
        SELECT server, client_id, topic, any_value({shape_of()}) AS shape, count(*) AS messages,
               count(DISTINCT content) AS contents, min(at_ns) AS first_ns, max(at_ns) AS last_ns,
               max(bytes) - min(bytes) AS spread,
               arg_max(struct_pack(client_address, client_port, version, server_port, message_id), at_ns) AS last
        FROM content_sent GROUP BY server, client_id, topic HAVING count(*) >= {LEAST}""",
    "content_steps": f"""
        SELECT *, sum((content IS DISTINCT FROM before)::INT) OVER ({_ALL}) AS run,
               min(bytes) OVER ({_ALL} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS least_before,
               max(bytes) OVER ({_ALL} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS most_before,
               min(bytes) OVER ({_ALL} ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS least_since,
               max(bytes) OVER ({_ALL} ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS most_since,
               row_number() OVER ({_ALL}) AS place
        FROM (SELECT *, lag(content) OVER ({_ALL}) AS before, lag(flow_id) OVER ({_ALL}) AS flow_before
              FROM content_sent SEMI JOIN content_rows USING (server, client_id, topic))""",
    "content_runs": """
        SELECT server, client_id, topic, run, count(*) AS messages, min(at_ns) AS first_ns,
               arg_min(message_id, at_ns) AS message_id
        FROM content_steps GROUP BY ALL""",
    "content_ends": """
        SELECT server, client_id, topic, arg_max(struct_pack(messages, first_ns, message_id), run) AS last_run,
               coalesce(max(messages) FILTER (NOT is_last), 0) AS longest_before, max(messages) AS longest
        FROM (SELECT *, run = max(run) OVER (PARTITION BY server, client_id, topic) AS is_last FROM content_runs)
        GROUP BY ALL""",
    # The one with the most between the sizes before and since.
    "content_turns": """
        SELECT server, client_id, topic,
               arg_max(struct_pack(at_ns, place, message_id, least_before, most_before, least_since, most_since),
                       (greatest(least_since - most_before, least_before - most_since), -place)) AS turn
        FROM content_steps
        WHERE flow_id <> flow_before AND (least_since > most_before OR least_before > most_since) GROUP BY ALL""",
}
ROWS = """
    SELECT make_timestamp_ns(rows.first_ns)::TIMESTAMPTZ_NS AS ts,
           make_timestamp_ns(rows.last_ns)::TIMESTAMPTZ_NS AS ts_last, client_id,
           rows.last.client_address AS client_address, rows.last.client_port AS client_port,
           rows.last.version AS version, topic, shape, rows.messages AS messages, contents, spread,
           longest AS longest_run, last_run.messages AS last_run, longest_before AS longest_before,
           make_timestamp_ns(last_run.first_ns)::TIMESTAMPTZ_NS AS ts_run, last_run.message_id AS run_message_id,
           turn.place - 1 AS before_turn, make_timestamp_ns(turn.at_ns)::TIMESTAMPTZ_NS AS ts_turned,
           turn.message_id AS turned_message_id, turn.least_before AS least_before, turn.most_before AS most_before,
           turn.least_since AS least_since, turn.most_since AS most_since, rows.last.message_id AS last_message_id,
           nullif(server, '') AS server_address, rows.last.server_port AS server_port
    FROM content_rows AS rows JOIN content_ends USING (server, client_id, topic)
    LEFT JOIN content_turns USING (server, client_id, topic)
    ORDER BY rows.first_ns, client_id, topic"""
ASKS = "EXISTS (FROM mqtt_publishes WHERE direction = 'client_to_server')"
