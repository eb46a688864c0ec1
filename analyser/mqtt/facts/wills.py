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
# A client id, or a connection without one.
_WHO = "concat(client_id IS NULL, coalesce(client_id, flow_id))"
# So many connections after it, or messages before it, are looked at: the first of them is the one that counts.
_MOST_NEXT = 20

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
    "will_published": "FROM will_messages WHERE NOT out",
    # What the server sent without that anybody had published it just before: of one time and size one.
    "will_strange": f"""
        SELECT sent.* FROM (FROM will_messages WHERE out) AS sent ASOF LEFT JOIN will_published AS own
            ON sent.server = own.server AND sent.topic = own.topic AND sent.payload_crc32 = own.payload_crc32
            AND sent.at_ns >= own.at_ns
        WHERE coalesce(own.at_ns < sent.at_ns - {_OWN_NS}, true)
        QUALIFY row_number() OVER (PARTITION BY sent.server, sent.topic, sent.payload_bytes, sent.at_ns
                                   ORDER BY sent.message_id) = 1""",
    "will_sent": f"""
        SELECT fired.flow_id, arg_min(sent, sent.at_ns) AS sent
        FROM (SELECT flow_id, server, topic, payload_bytes, unnest([due_ns, closed_ns]) - {_BEFORE_NS} AS from_ns
              FROM will_fired) AS fired
        ASOF JOIN will_strange AS sent
            ON fired.server = sent.server AND fired.topic = sent.topic AND fired.payload_bytes = sent.payload_bytes
            AND from_ns <= sent.at_ns
        WHERE sent.at_ns <= from_ns + {_BEFORE_NS + _AFTER_NS}
        GROUP BY fired.flow_id""",
    # place: among those of its client id; begun: so many of them had begun by then.
    "will_others": f"""
        SELECT *, {_WHO} AS who, row_number() OVER (own ORDER BY began_ns, flow_id) AS place,
               count(*) OVER (own ORDER BY began_ns) AS begun
        FROM (SELECT flow_id, client_id, client_address, client_port, version, coalesce(server_address, '') AS server,
                     will_topic AS topic, epoch_ns(ts) AS began_ns, epoch_ns(coalesce(ts_response, ts)) AS accepted_ns,
                     coalesce(epoch_ns(coalesce(ts_closed, ts_disconnect)), 9223372036854775807) AS until_ns,
                     epoch_ns(coalesce(ts_closed, ts_disconnect, observed_until, ts_end)) AS seen_ns
              FROM mqtt_connections WHERE connect_seen AND error_code = 0)
        WINDOW own AS (PARTITION BY server, client_id)""",
    # The next ones of the same client id that lived when it was due.
    "will_own": f"""
        SELECT fired.flow_id AS will_flow, other
        FROM (SELECT fired.flow_id, due_ns, own.server, own.client_id, begun + ahead AS next_place
              FROM will_fired AS fired ASOF JOIN will_others AS own
                  ON fired.server = own.server AND fired.client_id = own.client_id AND fired.began_ns >= own.began_ns
              CROSS JOIN (SELECT unnest(range(1, {_MOST_NEXT} + 1)) AS ahead)) AS fired
        JOIN will_others AS other ON fired.server = other.server AND fired.client_id = other.client_id
            AND next_place = other.place
        WHERE other.until_ns > due_ns AND other.flow_id <> fired.flow_id""",
    # Of each will topic the two client ids whose connections lived longest.
    "will_latest": """
        SELECT server, topic, other, who,
               row_number() OVER (PARTITION BY server, topic ORDER BY until_ns DESC, who) AS nth
        FROM (SELECT server, topic, who, max(until_ns) AS until_ns, arg_max(others, until_ns) AS other
              FROM will_others AS others WHERE topic IS NOT NULL GROUP BY server, topic, who)
        QUALIFY nth <= 2""",
    # The only other one with its topic that lived when it was due: then it is the one that lived longest.
    "will_stranger": f"""
        WITH fired AS (SELECT *, {_WHO} AS who FROM will_fired),
        living AS (
            SELECT server, topic, who, until_ns,
                   count(*) OVER (PARTITION BY server, topic ORDER BY until_ns DESC) AS living,
                   count(*) OVER (PARTITION BY server, topic, who ORDER BY until_ns DESC) AS own
            FROM will_others WHERE topic IS NOT NULL)
        SELECT fired.flow_id AS will_flow,
               CASE WHEN first.who = fired.who THEN second.other ELSE first.other END AS other
        FROM fired ASOF JOIN living
            ON fired.server = living.server AND fired.topic = living.topic AND due_ns < living.until_ns
        ASOF LEFT JOIN living AS own
            ON fired.server = own.server AND fired.topic = own.topic AND fired.who = own.who AND due_ns < own.until_ns
        JOIN (FROM will_latest WHERE nth = 1) AS first
            ON fired.server = first.server AND fired.topic = first.topic
        LEFT JOIN (FROM will_latest WHERE nth = 2) AS second
            ON fired.server = second.server AND fired.topic = second.topic
        WHERE living.living - coalesce(own.own, 0) = 1
            AND CASE WHEN first.who = fired.who THEN second.other ELSE first.other END.began_ns > heard_ns""",
    "will_next": """
        SELECT will_flow, arg_min(other, other.began_ns) AS next
        FROM (FROM will_own UNION ALL FROM will_stranger) GROUP BY will_flow""",
    # The newest ones before the will that the next connection published, and whoever got the will had got.
    "will_newer": f"""
        WITH published AS (
            SELECT *, row_number() OVER (own ORDER BY at_ns, message_id) AS place,
                   count(*) OVER (own ORDER BY at_ns) AS so_many
            FROM will_published SEMI JOIN (SELECT next.flow_id AS flow_id FROM will_next) USING (flow_id)
            WINDOW own AS (PARTITION BY flow_id, topic)),
        newest AS (
            SELECT will_flow, sent, published.flow_id, published.topic, so_many - back AS place
            FROM (SELECT will_flow, sent, next.flow_id AS flow_id, sent.topic AS topic, sent.at_ns AS at_ns
                  FROM will_next JOIN will_sent ON will_flow = will_sent.flow_id) AS asked
            ASOF JOIN published
                ON asked.flow_id = published.flow_id AND asked.topic = published.topic
                AND asked.at_ns >= published.at_ns
            CROSS JOIN (SELECT unnest(range({_MOST_NEXT})) AS back)),
        may_be AS (
            SELECT will_flow, newer, sent.flow_id AS flow_id, sent.at_ns AS sent_ns, sent.payload_crc32 AS crc,
                   newest.topic, newer.payload_crc32 AS newer_crc, newer.at_ns AS newer_ns
            FROM newest JOIN published AS newer USING (flow_id, topic, place))
        SELECT will_flow, arg_max(newer, newer_ns) AS newer
        FROM may_be ASOF JOIN (FROM will_messages WHERE out) AS got
            ON may_be.flow_id = got.flow_id AND may_be.topic = got.topic AND newer_crc = got.payload_crc32
            AND sent_ns >= got.at_ns
        WHERE newer_crc <> crc AND got.at_ns >= newer_ns
        GROUP BY will_flow""",
    # Who publishes on the topic after the will puts it right.
    "will_after": """
        SELECT asked.flow_id, min(after.at_ns) AS corrected_ns, sum(coalesce(own.births, 0))::BIGINT AS births
        FROM (SELECT will_fired.*, coalesce(sent.at_ns, due_ns) AS from_ns
              FROM will_fired LEFT JOIN will_sent USING (flow_id)
              SEMI JOIN will_published USING (server, topic)) AS asked
        ASOF LEFT JOIN will_published AS after
            ON asked.server = after.server AND asked.topic = after.topic AND from_ns < after.at_ns
        ASOF LEFT JOIN (SELECT server, topic, client_id, at_ns, count(*) OVER (
                            PARTITION BY server, topic, client_id ORDER BY at_ns) AS births FROM will_published) AS own
            ON asked.server = own.server AND asked.topic = own.topic AND asked.client_id = own.client_id
            AND due_ns > own.at_ns
        GROUP BY asked.flow_id""",
    # Retained messages that no client ever published, by content and by size alone (crc -1), of each time one.
    "will_retained": """
        SELECT *, (sum(messages) OVER (PARTITION BY server, topic, payload_bytes, crc ORDER BY at_ns))::BIGINT AS so_far
        FROM (SELECT server, topic, payload_bytes, crc, at_ns, count(*) AS messages, min(message_id) AS message_id
              FROM (SELECT *, unnest([-1, payload_crc32]) AS crc FROM will_messages WHERE out AND retain)
              ANTI JOIN will_published USING (topic, payload_crc32)
              GROUP BY ALL)""",
    "will_served": f"""
        WITH asked AS (
            SELECT will_fired.*, greatest(due_ns, next.accepted_ns + {BACK_NS}) AS from_ns,
                   least(coalesce(corrected_ns, 9223372036854775807), next.until_ns) AS until_ns,
                   coalesce(sent.payload_crc32, -1) AS crc
            FROM will_fired JOIN will_next ON will_flow = will_fired.flow_id LEFT JOIN will_after USING (flow_id)
            LEFT JOIN will_sent USING (flow_id))
        SELECT asked.flow_id, last.so_far - first.so_far + first.messages AS served, first.message_id AS served_id,
               first.at_ns AS served_ns
        FROM asked ASOF JOIN will_retained AS first
            ON asked.server = first.server AND asked.topic = first.topic AND asked.payload_bytes = first.payload_bytes
            AND asked.crc = first.crc AND from_ns < first.at_ns
        ASOF JOIN will_retained AS last
            ON asked.server = last.server AND asked.topic = last.topic AND asked.payload_bytes = last.payload_bytes
            AND asked.crc = last.crc AND until_ns > last.at_ns
        WHERE first.at_ns < until_ns""",
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
