"""The retained message of each topic of an MQTT server, as steps: who set it, until when it is kept.

In: the views `in_publishes`, `mqtt_connections`, `mqtt_subscriptions`, `flows`. Out: RETAINED, a SELECT of the rows of
`mqtt_retained`.

A PUBLISH with RETAIN replaces what the server keeps for its topic, one without payload removes it (MQTT 3.1.1 and 5.0:
section 3.3.1.3); a message expiry interval ends it (5.0: 3.3.2.3.3). A will with Will Retain is set when it is due
(`wills.py`): that step is what the specification asks of the server, since its own acts are not on the wire. What a
server sends as retained and nobody in the capture had set is a step from then on (set_by unseen), but for connections
that ask for RETAIN as published, and those of bridges, where the flag means something else. The same content set again
is no other step.
"""

from __future__ import annotations

from wirewitness.analyser.mqtt.facts.events import TAKEN
from wirewitness.analyser.mqtt.facts.wills import FIRED

_PUBLISHED = f"""
    SELECT server_address, server_port, topic, epoch_ns(ts) AS at_ns, 'publish' AS set_by, payload_bytes, payload_crc32,
           qos, message_expiry_s, client_id, client_address, client_port, flow_id, message_id, file, packet
    FROM in_publishes WHERE direction = 'client_to_server' AND retain AND topic IS NOT NULL AND {TAKEN}"""

# When the server has to publish a will.
_WILLS = f"""
    SELECT server_address, server_port, will_topic AS topic, fires AS at_ns, 'will' AS set_by,
           will_payload_bytes AS payload_bytes, NULL::BIGINT AS payload_crc32, will_qos AS qos,
           NULL::BIGINT AS message_expiry_s, client_id, client_address, client_port, flow_id,
           NULL::VARCHAR AS message_id, file, packet
    FROM ({FIRED}) WHERE will_retain AND fires <= (SELECT max(epoch_ns(ts_last)) FROM flows)"""

# What a server sent as retained and nobody had published, the first time that it did with this content.
_SENT = """
    SELECT server_address, server_port, topic, epoch_ns(ts) AS at_ns, 'unseen' AS set_by, payload_bytes, payload_crc32,
           qos,
           NULL::BIGINT AS message_expiry_s, NULL::VARCHAR AS client_id, NULL::VARCHAR AS client_address,
           NULL::BIGINT AS client_port, NULL::VARCHAR AS flow_id, message_id, file, packet
    FROM in_publishes AS sent ANTI JOIN contents ON sent.server_address IS NOT DISTINCT FROM contents.server_address
        AND sent.topic = contents.topic AND sent.payload_bytes = contents.payload_bytes
        AND sent.payload_crc32 = contents.payload_crc32 AND contents.since <= epoch_ns(sent.ts)
    WHERE direction = 'server_to_client' AND retain AND topic IS NOT NULL AND payload_bytes > 0
        AND payload_crc32 IS NOT NULL AND flow_id NOT IN (
            SELECT flow_id FROM mqtt_subscriptions WHERE retain_as_published
            UNION ALL SELECT flow_id FROM mqtt_connections WHERE bridge
            UNION ALL SELECT flow_id FROM mqtt_connections
            WHERE coalesce(version, '5.0') = '5.0' AND session_present IS DISTINCT FROM false)
    QUALIFY row_number() OVER (
        PARTITION BY server_address, topic, payload_bytes, payload_crc32 ORDER BY ts, file, packet, message_id) = 1"""

RETAINED = f"""
    WITH published AS ({_PUBLISHED}), wills AS ({_WILLS}),
    contents AS (
        SELECT server_address, topic, payload_bytes, payload_crc32, min(at_ns) AS since FROM published GROUP BY ALL),
    sent AS ({_SENT}), sets AS (FROM published UNION ALL FROM wills UNION ALL FROM sent),
    marked AS (
        SELECT *, NOT coalesce(payload_bytes = lag(payload_bytes) OVER steps
                               AND payload_crc32 = lag(payload_crc32) OVER steps
                               AND message_expiry_s IS NOT DISTINCT FROM lag(message_expiry_s) OVER steps, false)
               AS changes
        FROM sets
        WINDOW steps AS (PARTITION BY server_address, topic ORDER BY at_ns, file, packet, message_id)),
    numbered AS (
        SELECT *, sum(changes::INTEGER) OVER (
            PARTITION BY server_address, topic ORDER BY at_ns, file, packet, message_id
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS step
        FROM marked),
    counted AS (
        SELECT *, count(*) OVER same AS sets, max(at_ns) OVER same AS last_ns FROM numbered
        WINDOW same AS (PARTITION BY server_address, topic, step) QUALIFY changes),
    followed AS (
        SELECT *, lead(at_ns) OVER steps AS next_ns, lead(payload_bytes) OVER steps = 0 AS is_cleared,
               lead(client_id) OVER steps AS next_client_id, lead(client_address) OVER steps AS next_client_address,
               lead(client_port) OVER steps AS next_client_port, lead(message_id) OVER steps AS next_message_id,
               lead(packet) OVER steps AS next_packet, lead(file) OVER steps AS next_file,
               last_ns + 1_000_000_000 * message_expiry_s AS expires_ns
        FROM counted
        WINDOW steps AS (PARTITION BY server_address, topic ORDER BY step))
    SELECT topic, make_timestamp_ns(at_ns)::TIMESTAMPTZ_NS AS ts,
           make_timestamp_ns(CASE WHEN is_expired THEN expires_ns ELSE next_ns END)::TIMESTAMPTZ_NS AS ts_until, set_by,
           CASE WHEN is_expired THEN 'expired' WHEN is_cleared THEN 'cleared' WHEN next_ns IS NOT NULL THEN 'replaced'
                END AS ended_by,
           payload_bytes, payload_crc32, qos, sets, make_timestamp_ns(last_ns)::TIMESTAMPTZ_NS AS ts_last, client_id,
           client_address, client_port, flow_id, message_id, next_client_id, next_client_address, next_client_port,
           next_message_id, server_address, server_port, file, packet, next_file, next_packet
    FROM (
        SELECT *, coalesce(expires_ns < coalesce(next_ns, (SELECT max(epoch_ns(ts_last)) FROM flows)), false)
               AS is_expired
        FROM followed)
    WHERE payload_bytes IS DISTINCT FROM 0
    ORDER BY at_ns, topic, message_id"""
