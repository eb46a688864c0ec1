"""Messages that come back: `mqtt_topic_rounds`, who publishes again what the server has just sent to it, on what topic.

In: a view of `mqtt_publishes`. Out: STEPS and ROWS of the table. The only place that says it of several topics.

- A value is a payload (size and CRC-32). A copy is a publish of it by a client, not one sent again with DUP, nor a
  request or a response of 5.0, which may well be equal.
- A copy was caused by the one before when the server sent that one (topic and value) to the copy's client after it was
  published, and the copy left after that.
- A value goes round when each of its topics gets copies that were caused so from another topic: LEAST_ROUNDS of them,
  and SHARE of its copies there. So a value that is copied from one topic to the next and made anew at the first goes
  nowhere round. Or each copy has a longer topic that holds the one before, on LEAST_ROUNDS topics: a ring of bridges
  that put a prefix before it. There it is a copy as well where one client published both, whoever got the first: a
  bridge may have a connection for each direction.
- Of a client that copies its own publishes, somebody else has to have published the value first.
"""

from __future__ import annotations

LEAST_ROUNDS = 20
SHARE = 0.8
# What has fewer bytes is often equal by chance, but for topics that get longer each time.
_LEAST_BYTES = 4
# Longer topics are cut, so that nobody sees whether they hold the one before.
_CUT = 990
_OF_A_ROUND = """topic IS NOT NULL AND payload_crc32 IS NOT NULL AND payload_bytes > 0
    AND NOT coalesce(dup, false) AND first_message_id IS NULL AND response_topic IS NULL
    AND coalesce(correlation_data_bytes, 0) = 0"""
_WHO = "coalesce(client_id, flow_id) || ' ' || coalesce(client_address, '') AS who"
_VALUE = "payload_crc32, payload_bytes"
# One topic only is what MQT120 looks for by itself.
_OFTEN = f"""
    SELECT {_VALUE} FROM mqtt_publishes WHERE direction = 'client_to_server' AND {_OF_A_ROUND}
    GROUP BY ALL HAVING count(*) > {LEAST_ROUNDS} AND min(topic) <> max(topic)
        AND (payload_bytes >= {_LEAST_BYTES} OR max(length(topic)) - min(length(topic)) >= 2 * {LEAST_ROUNDS})"""

STEPS = {
    "round_often": _OFTEN,
    "round_copies": f"""
        SELECT *, lag(struct_pack(topic, at_ns, who)) OVER value_steps AS prior,
               first_value(who) OVER value_steps AS maker
        FROM (SELECT coalesce(server_address, '') AS server, server_port, {_VALUE}, topic, {_WHO},
                     epoch_ns(ts) AS at_ns, client_id, client_address, client_port, version, message_id, file, packet
              FROM mqtt_publishes SEMI JOIN round_often USING ({_VALUE})
              WHERE direction = 'client_to_server' AND {_OF_A_ROUND})
        WINDOW value_steps AS (PARTITION BY server, {_VALUE} ORDER BY at_ns, packet, length(message_id), message_id)""",
    "round_got": f"""
        SELECT coalesce(server_address, '') AS server, {_VALUE}, topic, {_WHO}, epoch_ns(ts) AS got_ns
        FROM mqtt_publishes SEMI JOIN round_often USING ({_VALUE})
        WHERE direction = 'server_to_client' AND topic IS NOT NULL AND NOT coalesce(retain, false)""",
    "round_caused": """
        SELECT copies.*, (copies.at_ns - coalesce(got_ns, prior.at_ns)) / 1e6 AS handled_ms,
               coalesce(got_ns >= prior.at_ns AND prior.topic <> copies.topic
                        AND (prior.who <> copies.who OR maker <> copies.who), false)
                   OR coalesce(prior.who = copies.who AND prior.topic <> copies.topic
                               AND contains(copies.topic, prior.topic), false) AS caused
        FROM round_copies AS copies ASOF LEFT JOIN round_got AS got
            ON copies.server = got.server AND copies.payload_crc32 = got.payload_crc32
            AND copies.payload_bytes = got.payload_bytes AND prior.topic = got.topic AND copies.who = got.who
            AND copies.at_ns >= got.got_ns""",
    "round_values": f"""
        SELECT server, {_VALUE} FROM (
            SELECT server, {_VALUE}, topic, count(*) AS copies, count(*) FILTER (caused) AS caused,
                   count(*) FILTER (caused AND contains(topic, prior.topic) AND topic <> prior.topic) AS longer
            FROM round_caused GROUP BY ALL)
        GROUP BY ALL
        HAVING (payload_bytes >= {_LEAST_BYTES} AND min(caused) >= {LEAST_ROUNDS} AND min(caused / copies) >= {SHARE})
            OR (count(*) FILTER (longer > 0) >= {LEAST_ROUNDS}
                AND sum(longer) >= {SHARE} * sum(copies) FILTER (length(topic) < {_CUT}))""",
}
ROWS = f"""
    SELECT first.message_id AS message_id, make_timestamp_ns(first_ns)::TIMESTAMPTZ_NS AS ts,
           make_timestamp_ns(last_ns)::TIMESTAMPTZ_NS AS ts_last, ring AS topic, to_topic, from_topic, topics,
           values_count, copies_count, rounds_most, handled_ms, first.client_id AS client_id,
           first.client_address AS client_address, first.client_port AS client_port, first.version AS version,
           nullif(server, '') AS server_address, first.server_port AS server_port, first.file AS file,
           first.packet AS packet
    FROM (
        SELECT server, who, min(ring) AS ring, arg_min(topic, at_ns) AS to_topic,
               arg_min(prior.topic, at_ns) AS from_topic,
               count(DISTINCT topic) AS topics,
               min(at_ns) AS first_ns, max(at_ns) AS last_ns, count(DISTINCT ({_VALUE})) AS values_count,
               count(*) AS copies_count, max(rounds) AS rounds_most, median(handled_ms) AS handled_ms,
               arg_min(struct_pack(message_id, client_id, client_address, client_port, version, server_port, file,
                                   packet), (at_ns, message_id)) AS first
        FROM (SELECT *, count(*) OVER (PARTITION BY server, {_VALUE}, topic, who) AS rounds,
                     first_value(topic) OVER (
                         PARTITION BY server, {_VALUE} ORDER BY at_ns, message_id) AS ring,
                     CASE WHEN contains(topic, prior.topic) THEN '' ELSE topic END AS place
              FROM round_caused SEMI JOIN round_values USING (server, {_VALUE}) WHERE caused)
        GROUP BY server, who, place)
    ORDER BY first_ns, message_id"""
ASKS = f"EXISTS ({_OFTEN})"
