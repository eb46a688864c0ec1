"""What became of deliveries, as SQL: acknowledged or only sent, not the server's to send, and why they are missing.

In: the tables that `search.py` fills and those of numbers (`events.py`), the views `in_publishes` and
`mqtt_connections`, and `flows`.
Out: steps that lead to the rows of `mqtt_deliveries`, SELECTs of these rows and of those of
`mqtt_offline_periods`. Rows of publishes and flows are told by their numbers until the last of them.
"""

from __future__ import annotations

# So long a message is waited for before it counts as missing, and an acknowledgement before it holds others up.
WAIT_MS = 10_000
_WAIT_NS = WAIT_MS * 1_000_000
# What a session kept is passed over when later ones came, and so long after nothing else.
_PASSED_OVER_NS = 1_000_000_000
# A subscriber that takes so long for each acknowledgement, in the median, holds up what comes faster.
SLOW_MS = 1_000
# A sender that hears nothing sends again after 0.2 s or more, then after twice that (RFC 6298): so often is no lost
# packet.
LEAST_UNHEARD = 4

# It reads nothing: its TCP took no byte for so long.
_READS_NOTHING = "coalesce(flows.client_zero_window_ms, 0) >= 1000"

# How far each subscriber is behind with acknowledgements: what it never acknowledged, or only after long.
_OPEN = f"""
    SELECT flow, count(*) AS open_messages, min(ts) AS open_since, arg_min(qos, ts) AS open_qos,
           count(*) FILTER (handshake IN ('no_puback', 'no_pubrec', 'no_pubcomp')) AS never
    FROM in_publishes JOIN context_flows USING (flow_id)
    WHERE direction = 'server_to_client' AND qos IN (1, 2)
        AND (handshake IN ('no_puback', 'no_pubrec', 'no_pubcomp', 'resent') OR completed_ms >= {WAIT_MS})
    GROUP BY flow"""

# Subscribers that miss something and acknowledge slowly: a median needs five.
_SLOW = f"""
    SELECT flow FROM in_publishes JOIN context_flows USING (flow_id)
    WHERE direction = 'server_to_client' AND completed_ms IS NOT NULL AND flow IN (
        SELECT subscriber FROM context_deliveries WHERE status IN ('missing', 'left'))
    GROUP BY flow HAVING median(completed_ms) >= {SLOW_MS} AND count(*) >= 5"""

# Messages that a subscriber took long to acknowledge, from when until when each was open; of those that are open at one
# time the one that stays so longest: steps of `rank`, none of which another one covers.
_BUSY = f"""
    SELECT flow, begins_ns, ends_ns FROM (
        SELECT flow, epoch_ns(ts) AS begins_ns, epoch_ns(ts) + (completed_ms * 1e6)::BIGINT AS ends_ns,
               max(ends_ns) OVER (PARTITION BY flow ORDER BY begins_ns, ends_ns DESC
                                  ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before_ns
        FROM in_publishes JOIN context_flows USING (flow_id)
        WHERE direction = 'server_to_client' AND completed_ms >= {SLOW_MS} AND flow IN (
            SELECT subscriber FROM context_deliveries WHERE status IN ('missing', 'left')))
    WHERE before_ns IS NULL OR ends_ns > before_ns"""

# The last message of a topic, publisher and QoS that each subscriber got at least a second before its connection ended:
# what was published before it cannot come any more (4.6).
_REACHED = f"""
    SELECT subscriber, sent.topic, sent.flow_id, sent.qos, max(sent.ts) AS ts
    FROM context_deliveries AS made JOIN in_publishes AS sent ON sent.row = made.message
    JOIN delivery_flows AS flows ON flows.flow = made.subscriber
    WHERE status = 'delivered' AND got_ns <= epoch_ns(flows.observed_until) - {_PASSED_OVER_NS}
        AND subscriber IN (SELECT subscriber FROM context_deliveries WHERE status IN ('missing', 'left'))
    GROUP BY ALL"""

_OVERTAKEN = """
    SELECT DISTINCT made.message, made.subscriber
    FROM context_deliveries AS made JOIN in_publishes AS sent ON sent.row = made.message
    JOIN delivery_reached AS reached ON reached.subscriber = made.subscriber AND reached.topic = sent.topic
        AND reached.flow_id = sent.flow_id AND reached.qos = sent.qos AND reached.ts > sent.ts
    WHERE made.status IN ('missing', 'left') AND made.share_name IS NULL"""

# When each subscriber got something last: a queue is being sent as long as what comes is older than what waits.
_GOT = """
    SELECT subscriber, max(got_ns) AS got_ns, max(sent.ts) AS ts
    FROM context_deliveries AS made JOIN in_publishes AS sent ON sent.row = made.message
    WHERE status = 'delivered' AND subscriber IN (
        SELECT subscriber FROM context_deliveries WHERE status IN ('missing', 'left'))
    GROUP BY subscriber"""

# Of the members of a group that nobody of got a message: the one that stands still, or the only one.
_GUILTY = f"""
    SELECT message, share_name, topic_filter,
           CASE WHEN count(*) = 1 OR max(stands) > 0 THEN arg_max(member, stands) END AS guilty
    FROM (SELECT each.*, coalesce(open.open_messages, 0)
                 + CASE WHEN {_READS_NOTHING} THEN 1000000 ELSE 0 END AS stands
          FROM (SELECT message, share_name, topic_filter, unnest(members) AS member FROM context_deliveries
                WHERE members IS NOT NULL) AS each
          LEFT JOIN delivery_open AS open ON open.flow = each.member
          LEFT JOIN delivery_flows AS flows ON flows.flow = each.member)
    GROUP BY ALL"""

# Bytes of the connection are missing: what is not seen may have been sent.
_LACKS = "(coalesce(gap_bytes, 0) + coalesce(truncated_packets, 0) > 0)"

# Groups of which bytes of a member are missing: that one may have got what the others did not. Members that left count.
_LACKING = f"""
    SELECT DISTINCT share_name, matching_filter AS topic_filter
    FROM mqtt_subscriptions JOIN flows USING (flow_id)
    WHERE share_name IS NOT NULL AND {_LACKS}"""

# The subscriber holds others up, whatever the other members of its group got.
_STANDS = f"(open.open_messages IS NOT NULL OR {_READS_NOTHING})"

# The server did not say that it took it, as far as was seen: nothing says that it owes it to anybody.
_UNCONFIRMED = "(sent.qos > 0 AND coalesce(sent.handshake IN ('no_puback', 'no_pubrec'), true))"

# Not all of its payload is in the capture: what was delivered cannot be told to be the same.
_CUT = "sent.payload_crc32 IS NULL"

# The server never took it: refused, larger than it takes, or the connection ended before it said so.
_REFUSED = f"""(
    sent.length_bytes > publisher.server_maximum_packet_size_bytes
    OR ({_UNCONFIRMED} AND its_flow.closed_by IS NOT NULL)
    OR (sent.qos = 0 AND publisher.disconnected_by = 'server'
        AND epoch_ns(sent.ts) >= epoch_ns(publisher.ts_disconnect) - 1000000000)
    OR (sent.qos = 0 AND publisher.disconnected_by IS NULL AND its_flow.closed_by = 'server'
        AND epoch_ns(sent.ts) >= epoch_ns(its_flow.ts_closed) - 1000000000))"""

# Acknowledged by the subscriber, or with QoS 0 by its TCP, as far as that would have been seen.
_ACKNOWLEDGED = """CASE
    WHEN got.qos > 0 THEN got.handshake NOT IN ('no_puback', 'no_pubrec')
        AND (got.handshake <> 'resent' OR later.first_message_id IS NOT NULL)
    ELSE coalesce(try_cast(regexp_extract(got.message_id, '([0-9]+)$', 1) AS BIGINT) + got.length_bytes
                  <= flows.acked_by_client, true)
         OR epoch_ns(got.ts) + 1000000000 > epoch_ns(flows.observed_until) END"""

# Its connection carries nothing any more: what the server sent again and again was never confirmed, and it is not from
# long before that.
_DEAD = f"""(flows.unheard_sends_to_client >= {LEAST_UNHEARD}
    AND epoch_ns(sent.ts) >= epoch_ns(flows.ts_unheard_to_client) - {_WAIT_NS})"""

# It never waits for the subscriber: the server drops it at once.
_TOO_LARGE = "there.maximum_packet_size_bytes < coalesce(sent.payload_bytes, 0) + strlen(sent.topic) + 4"

_IS_OPEN = f"epoch_ns(open.open_since) <= epoch_ns(sent.ts) + {_WAIT_NS}"
_IS_BUSY = "busy.ends_ns > epoch_ns(sent.ts)"

# Why the server could not send it at once: the subscriber did not go on.
_HELD_UP = f"""CASE
    WHEN {_DEAD} THEN 'dead_path'
    WHEN {_READS_NOTHING} THEN 'zero_window'
    WHEN {_IS_OPEN} AND open.open_qos = 2 THEN 'unfinished_qos2'
    WHEN {_IS_OPEN} THEN 'unacknowledged'
    WHEN slow.flow IS NOT NULL THEN 'slow'
    WHEN {_IS_BUSY} THEN 'unacknowledged' END"""

# From when until when. What was never acknowledged stays so until the end.
_BLOCKED = f"""CASE
    WHEN {_DEAD} THEN [epoch_ns(flows.ts_unheard_to_client), epoch_ns(flows.observed_until)]
    WHEN {_READS_NOTHING} THEN NULL
    WHEN {_IS_OPEN} THEN [epoch_ns(open.open_since), epoch_ns(flows.observed_until)]
    WHEN {_IS_BUSY} THEN [busy.begins_ns, busy.ends_ns] END"""

# Nothing held it up, and its turn had not come: what the subscriber got last is older.
_IN_TURN = f"""(reached.ts < sent.ts
    AND reached.got_ns > epoch_ns(flows.observed_until) - {_WAIT_NS} AND {_HELD_UP} IS NULL)"""

# What is over its message expiry interval the server deletes, whatever held it up [MQTT-3.3.2-5].
_CAUSE = f"""CASE
    WHEN {_TOO_LARGE} THEN 'packet_too_large'
    WHEN sent.message_expiry_s * 1000 < made.waited_ns / 1e6 THEN 'expired'
    ELSE {_HELD_UP} END"""

_FLOWS = f"""
    SELECT flow, flow_id, client_address, client_zero_window_ms, acked_by_client, observed_until, closed_by, ts_closed,
           unheard_sends_to_client, ts_unheard_to_client,
           {_LACKS} AS has_gaps
    FROM context_flows LEFT JOIN flows USING (flow_id)"""

_CONNECTIONS = """
    SELECT flow, any_value(client_id) AS client_id, min(epoch_ns(ts_response)) AS since_ns,
           any_value(maximum_packet_size_bytes) AS maximum_packet_size_bytes,
           any_value(server_maximum_packet_size_bytes) AS server_maximum_packet_size_bytes,
           any_value(disconnected_by) AS disconnected_by, any_value(ts_disconnect) AS ts_disconnect
    FROM mqtt_connections JOIN context_flows USING (flow_id) GROUP BY flow"""

_LATER = """
    SELECT DISTINCT first_message_id FROM in_publishes
    WHERE first_message_id IS NOT NULL AND coalesce(ts_acknowledged, ts_received) IS NOT NULL"""

_COPIES = "SELECT message, subscriber, 1 + count(*) AS copies FROM context_copies GROUP BY ALL"

# Published before its subscriber's connection began: it was in its session.
_IS_QUEUED = "coalesce(epoch_ns(sent.ts) < there.since_ns, false)"
# Of what a session kept later ones came, and the subscriber acknowledged all that it got.
_PASSED_OVER = f"""overtaken.message IS NOT NULL AND sent.qos > 0 AND coalesce(open.never, 0) = 0 AND {_IS_QUEUED}"""

# A message that is missing on another port means something only where the two ports are of one server. place: where it
# stands in the order of publishes, by which pieces are cut; the rows of a piece come in any order.
_JUDGED = f"""
    SELECT row_number() OVER (ORDER BY made.message, made.subscriber, made.topic_filter) - 1 AS place, made.message,
           coalesce(made.subscriber, guilty.guilty) AS subscriber, made.share_name, made.topic_filter, made.got,
           made.got_ns, made.waited_ns,
           CASE WHEN made.status = 'left' AND made.waited_ns >= {_WAIT_NS} THEN 'missing'
                WHEN made.status IN ('left', 'missing') AND {_PASSED_OVER} THEN 'missing'
                WHEN made.status = 'missing' AND made.waited_ns < {_WAIT_NS} THEN 'unknown'
                ELSE made.status END AS status,
           overtaken.message IS NOT NULL AS overtaken, {_IS_QUEUED} AS queued
    FROM context_deliveries AS made LEFT JOIN delivery_guilty AS guilty
        ON made.members IS NOT NULL AND guilty.message = made.message
        AND guilty.share_name = made.share_name AND guilty.topic_filter = made.topic_filter
    LEFT JOIN delivery_overtaken AS overtaken
        ON overtaken.message = made.message AND overtaken.subscriber = made.subscriber
    LEFT JOIN in_publishes AS sent ON sent.row = made.message
    LEFT JOIN delivery_connections AS there ON there.flow = made.subscriber
    LEFT JOIN delivery_open AS open ON open.flow = made.subscriber
    WHERE made.status = 'delivered' OR made.near_port IS NULL OR EXISTS (
        FROM context_joined AS joined
        WHERE joined.server = made.server AND joined.near_port = made.near_port AND joined.far_port = made.far_port)"""

STEPS = {
    "delivery_flows": _FLOWS,
    "delivery_open": _OPEN,
    "delivery_slow": _SLOW,
    "delivery_busy": _BUSY,
    "delivery_reached": _REACHED,
    "delivery_overtaken": _OVERTAKEN,
    "delivery_got": _GOT,
    "delivery_guilty": _GUILTY,
    "delivery_lacking": _LACKING,
    "delivery_connections": _CONNECTIONS,
    "delivery_later": _LATER,
    "delivery_copies": _COPIES,
    "delivery_judged": _JUDGED,
}

# Of places from {first} to before {end}. Where bytes of the subscriber's flow are missing, so may be the delivery.
DELIVERIES = f"""
    SELECT sent.message_id, sent.flow_id, sent.ts, sent.topic, sent.client_id, sent.client_address, sent.qos,
           CASE WHEN made.share_name IS NULL THEN flows.flow_id
                ELSE '$share/' || made.share_name || '/' || made.topic_filter END AS subscriber,
           flows.flow_id AS subscriber_flow_id, there.client_id AS subscriber_client_id,
           flows.client_address AS subscriber_address, made.share_name, made.topic_filter,
           CASE WHEN made.status IN ('missing', 'left', 'lost', 'expired', 'not_kept')
                     AND (flows.has_gaps OR (lacking.share_name IS NOT NULL AND NOT {_STANDS})) THEN 'unknown'
                WHEN made.status IN ('missing', 'left', 'lost', 'not_kept', 'unknown') AND coalesce({_REFUSED}, false)
                THEN 'refused'
                WHEN made.status IN ('missing', 'left', 'lost', 'not_kept') AND ({_UNCONFIRMED} OR {_CUT})
                THEN 'unknown'
                WHEN made.status = 'missing' AND {_IN_TURN} THEN 'unknown'
                WHEN made.status = 'delivered' AND NOT coalesce({_ACKNOWLEDGED}, true) THEN 'sent'
                ELSE made.status END AS status,
           CASE WHEN made.status = 'missing' THEN {_CAUSE} END AS cause,
           CASE WHEN made.status = 'missing' AND NOT coalesce({_TOO_LARGE}, false) THEN {_HELD_UP} END AS blocked_by,
           CASE WHEN made.status = 'missing'
                THEN coalesce(open.open_messages, CASE WHEN {_IS_BUSY} THEN 1 END) END AS open_messages,
           CASE WHEN made.status = 'missing' THEN make_timestamp_ns({_BLOCKED}[1])::TIMESTAMPTZ_NS END AS ts_blocked,
           CASE WHEN made.status = 'missing' THEN ({_BLOCKED}[2] - {_BLOCKED}[1]) / 1e6 END AS blocked_ms,
           CASE WHEN made.status = 'missing' THEN made.overtaken END AS overtaken, made.queued,
           got.message_id AS delivered_message_id, make_timestamp_ns(made.got_ns)::TIMESTAMPTZ_NS AS ts_delivered,
           CASE WHEN made.status = 'delivered' THEN coalesce(copies.copies, 1) END AS copies,
           CASE WHEN made.status = 'delivered' THEN got.completed_ms END AS acknowledged_ms,
           CASE WHEN made.status = 'delivered' THEN made.waited_ns / 1e6 END AS latency_ms,
           CASE WHEN made.status <> 'delivered' THEN made.waited_ns / 1e6 END AS waited_ms,
           sent.server_address, sent.server_port, sent.file, sent.packet
    FROM (FROM delivery_judged WHERE place >= {{first}} AND place < {{end}}) AS made
    JOIN in_publishes AS sent ON sent.row = made.message
    LEFT JOIN in_publishes AS got ON got.row = made.got
    LEFT JOIN delivery_copies AS copies
        ON made.got IS NOT NULL AND copies.message = made.message AND copies.subscriber = made.subscriber
    LEFT JOIN delivery_later AS later ON later.first_message_id = got.message_id
    LEFT JOIN delivery_flows AS flows ON flows.flow = made.subscriber
    LEFT JOIN delivery_flows AS its_flow ON its_flow.flow_id = sent.flow_id
    LEFT JOIN delivery_connections AS there ON there.flow = made.subscriber
    LEFT JOIN delivery_connections AS publisher ON publisher.flow = its_flow.flow
    LEFT JOIN delivery_lacking AS lacking
        ON lacking.share_name = made.share_name AND lacking.topic_filter = made.topic_filter
    LEFT JOIN delivery_open AS open ON open.flow = made.subscriber
    LEFT JOIN delivery_slow AS slow ON slow.flow = made.subscriber
    LEFT JOIN delivery_got AS reached ON reached.subscriber = made.subscriber
    ASOF LEFT JOIN delivery_busy AS busy ON busy.flow = made.subscriber AND busy.begins_ns <= epoch_ns(sent.ts)"""

ABSENCES = """
    WITH unfinished AS (
        SELECT flow_id, count(*) AS messages FROM in_publishes
        WHERE direction = 'server_to_client' AND handshake IN ('no_puback', 'no_pubrec') GROUP BY flow_id)
    SELECT before.flow_id, make_timestamp_ns(made.left_ns)::TIMESTAMPTZ_NS AS ts, made.client_id,
           before.client_address, before.client_port, before.version, before.clean_start,
           coalesce(before.server_session_expiry_s, before.session_expiry_s) AS session_expiry_s,
           before.disconnected_by, before.closed_by, coalesce(before.gap_bytes, 0) + coalesce(after.gap_bytes, 0)
               AS gap_bytes,
           after.flow_id AS next_flow_id, make_timestamp_ns(made.back_ns)::TIMESTAMPTZ_NS AS ts_back,
           after.client_address AS next_client_address, after.client_port AS next_client_port,
           after.clean_start AS next_clean_start, made.session_present,
           made.messages, made.expired, made.qos_0_subscription, made.qos_0_publish,
           coalesce(unfinished.messages, 0) AS unacknowledged, made.complete,
           to_json(made.topics)::VARCHAR AS topics, first.message_id AS first_message_id,
           last.message_id AS last_message_id, first.client_id AS publisher_client_id,
           first.client_address AS publisher_address, before.server_address, before.server_port,
           after.exchange_id AS next_exchange_id, after.file, after.packet
    FROM context_absences AS made
    JOIN context_flows AS left_by ON left_by.flow = made.flow
    JOIN context_flows AS back_by ON back_by.flow = made.next_flow
    JOIN mqtt_connections AS before ON before.flow_id = left_by.flow_id
    JOIN mqtt_connections AS after ON after.flow_id = back_by.flow_id
    LEFT JOIN unfinished ON unfinished.flow_id = before.flow_id
    LEFT JOIN in_publishes AS first ON first.row = made.first_message
    LEFT JOIN in_publishes AS last ON last.row = made.last_message
    ORDER BY left_ns, made.client_id, before.flow_id"""
