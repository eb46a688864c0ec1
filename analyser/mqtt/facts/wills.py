"""Wills that a server published, and what became of them: `mqtt_wills`.

In: views of `mqtt_connections` and `mqtt_publishes`. Out: FIRED, a SELECT of connections whose will the server has to
publish and when, which `retained.py` reads too; STEPS and ROWS of the table.

A will is due when its connection ends without a DISCONNECT of the client, or with one of reason 0x04, after the Will
Delay Interval, unless the session goes on by then (MQTT 5.0: 3.1.2.5, 3.1.3.2.2). Some servers keep the old connection
beside the new one, and send it when they close that, due or not. It was seen where the server sent a message of its
topic and size to somebody at that time, and no client had published that content just before. Who comes after it is the
next connection of its client id, or the only other one with the same will topic: it began when the old one was silent
already, and lived when the will was due or later.
"""

from __future__ import annotations

_ENDED = """
    SELECT * FROM (
        SELECT *, CASE WHEN next_ns < due THEN CASE WHEN NOT next_present THEN next_ns END ELSE due END AS fires
        FROM (
            SELECT *, epoch_ns(coalesce(ts_closed, ts_disconnect)) + 1_000_000_000 * CASE WHEN version = '5.0' THEN
                       least(coalesce(will_delay_s, 0), coalesce(server_session_expiry_s, session_expiry_s, 0))
                       ELSE 0 END AS due,
                   epoch_ns(lead(ts) OVER of_client) AS next_ns, lead(session_present) OVER of_client AS next_present
            FROM mqtt_connections WHERE connect_seen AND error_code = 0
            WINDOW of_client AS (PARTITION BY server_address, coalesce(nullif(client_id, ''), flow_id) ORDER BY ts))
        WHERE will_topic IS NOT NULL
            AND (disconnected_by IS DISTINCT FROM 'client' OR disconnect_reason_code = 4))"""
FIRED = f"FROM ({_ENDED}) WHERE fires IS NOT NULL"

# A server publishes a will so soon after the end that is seen, or so much before it.
_BEFORE_NS, _AFTER_NS = 1_000_000_000, 5_000_000_000
# A server gives a connection up after one and a half times the keep-alive (3.1.2.10): its end may not be seen.
_GIVEN_UP_NS = 1_500_000_000
# Who is back so long would have said so.
BACK_NS = 3_000_000_000
# Who published the same content so short before sent it himself.
_OWN_NS = 5_000_000_000

STEPS = {
    # Until when the server heard of a client whose last bytes its TCP never ACKed: its last request with an answer.
    "will_heard": """
        SELECT flow_id, max(epoch_ns(asked.ts)) AS answered_ns
        FROM mqtt_connections JOIN flows USING (flow_id) JOIN exchanges AS asked USING (flow_id)
        WHERE flows.acked_by_server < flows.bytes_to_server AND asked.ts_response IS NOT NULL
            AND asked.direction IS DISTINCT FROM 'server_to_client' AND will_topic IS NOT NULL
        GROUP BY flow_id""",
    "will_fired": f"""
        SELECT flow_id, coalesce(server_address, '') AS server, server_port, will_topic AS topic, will_retain,
               will_payload_bytes AS payload_bytes, client_id, client_address, client_port, version,
               fires IS NOT NULL AS is_due, coalesce(fires, closed_ns) AS due_ns, closed_ns,
               epoch_ns(ts) AS began_ns, heard_ns, file, packet
        FROM (
            SELECT *, coalesce(answered_ns, epoch_ns(coalesce(ts_last_from_client, ts))) AS heard_ns, coalesce(
                epoch_ns(coalesce(ts_closed, ts_disconnect)), coalesce(answered_ns, epoch_ns(ts_last_from_client))
                    + nullif(coalesce(server_keep_alive_s, keep_alive_s), 0) * {_GIVEN_UP_NS}) AS closed_ns
            FROM ({_ENDED}) LEFT JOIN will_heard USING (flow_id))
        WHERE coalesce(fires, closed_ns) IS NOT NULL""",
    "will_messages": """
        SELECT coalesce(server_address, '') AS server, topic, flow_id, client_id, direction = 'server_to_client' AS out,
               epoch_ns(ts) AS at_ns, payload_bytes, payload_crc32, coalesce(retain, false) AS retain, message_id
        FROM mqtt_publishes
        WHERE topic IN (SELECT topic FROM will_fired) AND payload_crc32 IS NOT NULL AND qos < 3""",
    "will_sent": f"""
        SELECT will_fired.flow_id, arg_min(sent, sent.at_ns) AS sent
        FROM will_fired JOIN will_messages AS sent USING (server, topic, payload_bytes)
        WHERE sent.out AND (sent.at_ns BETWEEN due_ns - {_BEFORE_NS} AND due_ns + {_AFTER_NS}
                OR sent.at_ns BETWEEN closed_ns - {_BEFORE_NS} AND closed_ns + {_AFTER_NS})
            AND NOT EXISTS (
                FROM will_messages AS own WHERE NOT own.out AND own.server = will_fired.server
                    AND own.topic = will_fired.topic AND own.payload_crc32 = sent.payload_crc32
                    AND own.at_ns BETWEEN sent.at_ns - {_OWN_NS} AND sent.at_ns)
        GROUP BY will_fired.flow_id""",
    "will_others": """
        SELECT flow_id, client_id, client_address, client_port, version, coalesce(server_address, '') AS server,
               will_topic AS topic, epoch_ns(ts) AS began_ns, epoch_ns(coalesce(ts_response, ts)) AS accepted_ns,
               coalesce(epoch_ns(coalesce(ts_closed, ts_disconnect)), 9223372036854775807) AS until_ns,
               epoch_ns(coalesce(ts_closed, ts_disconnect, observed_until, ts_end)) AS seen_ns
        FROM mqtt_connections WHERE connect_seen AND error_code = 0""",
    "will_next": """
        SELECT will_flow, arg_min(other, other.began_ns) AS next
        FROM (
            SELECT will_fired.flow_id AS will_flow, other, own,
                   count(*) FILTER (NOT own) OVER (PARTITION BY will_fired.flow_id) AS strangers
            FROM (SELECT *, 1 AS one FROM will_fired) AS will_fired JOIN will_others AS other USING (server)
            CROSS JOIN LATERAL (SELECT coalesce(other.client_id = will_fired.client_id, false) AS own) AS owned
            WHERE other.flow_id <> will_fired.flow_id AND other.until_ns > due_ns
                AND ((own AND other.began_ns > will_fired.began_ns)
                     OR (NOT own AND other.topic = will_fired.topic)))
        WHERE own OR (strangers = 1 AND other.began_ns > (
            SELECT heard_ns FROM will_fired WHERE will_fired.flow_id = will_flow))
        GROUP BY will_flow""",
    "will_newer": """
        SELECT will_flow, arg_max(newer, newer.at_ns) AS newer
        FROM will_next JOIN will_sent ON will_flow = will_sent.flow_id
        JOIN will_messages AS newer ON newer.flow_id = next.flow_id AND NOT newer.out
            AND newer.topic = sent.topic AND newer.payload_crc32 <> sent.payload_crc32
        WHERE EXISTS (
            FROM will_messages AS got WHERE got.out AND got.flow_id = sent.flow_id AND got.topic = newer.topic
                AND got.payload_crc32 = newer.payload_crc32 AND got.at_ns BETWEEN newer.at_ns AND sent.at_ns)
        GROUP BY will_flow""",
    # Who publishes on the topic after the will puts it right.
    "will_after": """
        SELECT will_fired.flow_id, min(after.at_ns) FILTER (after.at_ns > coalesce(sent.at_ns, due_ns)) AS corrected_ns,
               count(*) FILTER (after.at_ns < due_ns AND after.client_id = will_fired.client_id) AS births
        FROM will_fired LEFT JOIN will_sent USING (flow_id) JOIN will_messages AS after USING (server, topic)
        WHERE NOT after.out GROUP BY will_fired.flow_id""",
    "will_served": f"""
        SELECT will_fired.flow_id, count(*) AS served, arg_min(got.message_id, got.at_ns) AS served_id,
               min(got.at_ns) AS served_ns
        FROM will_fired JOIN will_next ON will_flow = will_fired.flow_id LEFT JOIN will_after USING (flow_id)
        LEFT JOIN will_sent USING (flow_id)
        JOIN will_messages AS got USING (server, topic, payload_bytes)
        WHERE got.out AND got.retain AND got.at_ns > greatest(due_ns, next.accepted_ns + {BACK_NS})
            AND got.at_ns < least(coalesce(corrected_ns, 9223372036854775807), next.until_ns)
            AND got.payload_crc32 = coalesce(sent.payload_crc32, got.payload_crc32)
            AND got.payload_crc32 NOT IN (SELECT payload_crc32 FROM will_messages AS own
                                          WHERE NOT own.out AND own.topic = got.topic)
        GROUP BY will_fired.flow_id""",
}
ROWS = """
    SELECT flow_id, make_timestamp_ns(due_ns)::TIMESTAMPTZ_NS AS ts, topic, will_retain AS retain, payload_bytes,
           client_id, client_address, client_port, version, births,
           make_timestamp_ns(sent.at_ns)::TIMESTAMPTZ_NS AS ts_sent, sent.message_id AS sent_message_id,
           next.flow_id AS next_flow_id, next.client_id AS next_client_id, next.client_address AS next_client_address,
           next.client_port AS next_client_port, make_timestamp_ns(next.accepted_ns)::TIMESTAMPTZ_NS AS ts_next,
           make_timestamp_ns(next.seen_ns)::TIMESTAMPTZ_NS AS ts_next_until,
           newer.message_id AS newer_message_id, make_timestamp_ns(newer.at_ns)::TIMESTAMPTZ_NS AS ts_newer,
           make_timestamp_ns(corrected_ns)::TIMESTAMPTZ_NS AS ts_corrected, coalesce(served, 0) AS served,
           served_id AS served_message_id, make_timestamp_ns(served_ns)::TIMESTAMPTZ_NS AS ts_served,
           nullif(server, '') AS server_address, server_port, file, packet
    FROM will_fired LEFT JOIN will_sent USING (flow_id) LEFT JOIN will_next ON will_next.will_flow = flow_id
    LEFT JOIN will_newer ON will_newer.will_flow = flow_id LEFT JOIN will_after USING (flow_id)
    LEFT JOIN will_served USING (flow_id)
    WHERE is_due OR sent IS NOT NULL
    ORDER BY due_ns, flow_id"""
ASKS = "EXISTS (FROM mqtt_connections WHERE will_topic IS NOT NULL)"
