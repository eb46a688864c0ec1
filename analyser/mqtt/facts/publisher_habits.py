"""How each client publishes on each topic, and whether that changed: `mqtt_publisher_habits`.

In: views of `mqtt_publishes` and `mqtt_connections`. Out: STEPS and ROWS of the table.

A row is a client id and topic with LEAST messages or more, those sent again with DUP aside. The likes of a row are
those of other client ids of the same server whose topic has the same shape: digits, and the client's own id in it, do
not count. `plain_shape` is the shape without what nobody tells apart on purpose: case and empty levels.
"""

from __future__ import annotations

from wirewitness.analyser.mqtt.facts.shapes import shape_of

LEAST = 5
# Ids of so many letters that differ so little are one device's, made anew, where an address has no more of them.
_LONG_ID, _LONGEST_ID, _ID_LETTERS, _MOST_IDS = 6, 100, 2, 100
_WELL = 1.4
# The shape of a name whose id is empty.
_BLANK = "replace({}, '<id>', '')"
_PLAIN = r"trim(regexp_replace(lower({}), '/+', '/', 'g'), '/')"

# Whose rows may be enough for one: of most topics there are fewer.
OFTEN_SENT = {
    "often_sent": f"""
        SELECT coalesce(server_address, '') AS server, client_id, topic FROM mqtt_publishes
        WHERE direction = 'client_to_server' AND topic IS NOT NULL AND client_id <> '' AND payload_bytes > 0
        GROUP BY ALL HAVING count(*) >= {LEAST}"""
}
STEPS = {
    **OFTEN_SENT,
    "habit_gaps": """
        SELECT coalesce(server_address, '') AS server, server_port, client_id, client_address, client_port, version,
               topic, flow_id, epoch_ns(ts) AS at_ns, coalesce(retain, false) AS retain, payload_bytes, message_id,
               length_bytes - payload_bytes AS around_bytes,
               payload_crc32 = lag(payload_crc32) OVER steps AS same_again,
               epoch_ns(ts) - lag(epoch_ns(ts)) OVER steps AS gap_ns,
               coalesce(retain, false) <> lag(coalesce(retain, false)) OVER steps AS retain_turns,
               payload_kind, payload_kind <> lag(payload_kind) OVER steps AS kind_turns,
               row_number() OVER steps AS place
        FROM mqtt_publishes AS sent SEMI JOIN often_sent AS often ON coalesce(sent.server_address, '') = often.server
            AND sent.client_id = often.client_id AND sent.topic = often.topic
        WHERE direction = 'client_to_server' AND NOT coalesce(dup, false) AND payload_bytes > 0
        WINDOW steps AS (PARTITION BY server_address, client_id, topic ORDER BY ts, message_id)""",
    "habit_rows": f"""
        SELECT server, client_id, topic, count(*) AS messages, min(at_ns) AS first_ns, max(at_ns) AS last_ns,
               median(gap_ns) AS gap_ns, max(gap_ns) AS longest_ns,
               count(*) FILTER (same_again) AS same_again, median(gap_ns) FILTER (same_again) AS same_gap_ns,
               median(gap_ns) FILTER (NOT same_again) AS other_gap_ns,
               nullif(corr(place, payload_bytes), 'nan') AS rising,
               nullif(corr(place, around_bytes), 'nan') AS around_rising, count(*) FILTER (retain) AS retained,
               count(*) FILTER (retain_turns) AS retain_turns, min(place) FILTER (retain_turns) AS turned_place,
               min(at_ns) FILTER (retain_turns) AS turned_ns, arg_min(message_id, at_ns) AS message_id,
               arg_max(message_id, at_ns) AS last_message_id,
               arg_min(message_id, at_ns) FILTER (retain_turns) AS turned_message_id,
               count(*) FILTER (kind_turns) AS kind_turns, arg_min(payload_kind, at_ns) AS first_kind,
               min(struct_pack(place, at_ns, message_id)) FILTER (kind_turns) AS kind_turned,
               count(*) FILTER (payload_kind = 'json') AS json, count(*) FILTER (payload_kind = 'json_cut') AS json_cut,
               min(struct_pack(place, at_ns, message_id)) FILTER (payload_kind = 'json_cut') AS first_cut,
               arg_max(struct_pack(server_port, client_address, client_port, version, flow_id, retain, payload_kind),
                       at_ns) AS last,
               any_value({shape_of()}) AS shape
        FROM habit_gaps GROUP BY server, client_id, topic HAVING count(*) >= {LEAST}""",
    "habit_rates": """
        SELECT server, client_id, topic,
               median(gaps.gap_ns) FILTER (at_ns <= first_ns + (last_ns - first_ns) // 4) AS began_ns,
               median(gaps.gap_ns) FILTER (at_ns > last_ns - (last_ns - first_ns) // 4) AS ended_ns,
               median(payload_bytes) FILTER (place <= messages // 4) AS began_bytes,
               median(payload_bytes) FILTER (place > messages - messages // 4) AS ended_bytes,
               median(around_bytes) FILTER (place <= messages // 4) AS began_around_bytes,
               median(around_bytes) FILTER (place > messages - messages // 4) AS ended_around_bytes
        FROM habit_gaps AS gaps JOIN habit_rows USING (server, client_id, topic) WHERE messages >= 40 GROUP BY ALL""",
    # Of a change at one moment no gap lies well between those before and those after it.
    "habit_between": f"""
        SELECT server, client_id, topic,
               count(*) FILTER (gap_ns BETWEEN {_WELL} * least(began_ns, ended_ns)
                                AND greatest(began_ns, ended_ns) / {_WELL}) / count(*) AS between_gaps
        FROM habit_gaps JOIN habit_rates USING (server, client_id, topic)
        WHERE gap_ns IS NOT NULL AND began_ns IS NOT NULL AND ended_ns IS NOT NULL GROUP BY ALL""",
    "habit_shapes": f"""
        SELECT server, shape, any_value({_PLAIN.format("shape")}) AS plain_shape, count(DISTINCT client_id) AS clients,
               median(gap_ns) AS usual_gap_ns, max(last_ns) AS last_of_shape_ns,
               count(*) FILTER (retain_turns = 0 AND retained > 0) AS always_retained,
               sum(retained)::BIGINT AS shape_retained, sum(same_again)::BIGINT AS shape_again,
               histogram(first_kind) FILTER (kind_turns = 0) AS kinds_kept
        FROM habit_rows GROUP BY server, shape""",
    # The shape that most clients have of those that differ by case or a slash only.
    "habit_usual": """
        SELECT server, plain_shape, arg_max(shape, (clients, shape)) AS usual_shape, max(clients) AS usual_clients
        FROM habit_shapes GROUP BY server, plain_shape HAVING count(*) > 1""",
    # Likewise of those that have their client's id where this one has nothing.
    "habit_blank": f"""
        SELECT server, {_BLANK.format("shape")} AS shape, arg_max(shape, (clients, shape)) AS named_shape,
               max(clients) AS named_clients
        FROM habit_shapes WHERE contains(shape, '<id>') GROUP BY ALL""",
    # Its latest topic before this one that is the same but for these. No plain topic begins with a slash.
    "habit_before": f"""
        SELECT now.server, now.client_id, now.topic, arg_max(before.topic, before.last_ns) AS topic_before
        FROM (SELECT server, client_id, topic, first_ns, unnest([{_PLAIN.format("topic")}, '/' || shape]) AS same
              FROM habit_rows) AS now
        ASOF JOIN (
            SELECT server, client_id, min(topic) AS topic, last_ns, same
            FROM (SELECT *, unnest([
                             {_PLAIN.format("topic")},
                             CASE WHEN contains(shape, '<id>') THEN '/' || {_BLANK.format("shape")} END]) AS same
                  FROM habit_rows)
            GROUP BY ALL) AS before
            ON now.server = before.server AND now.client_id = before.client_id AND now.same = before.same
            AND now.first_ns > before.last_ns
        GROUP BY ALL""",
    # What it publishes on instead: the only topic that begins where this one ends, of those that last.
    "habit_after": """
        SELECT left_one.server, left_one.client_id, left_one.topic, lasting[1].topic AS topic_after,
               lasting[1].first_ns AS after_ns
        FROM habit_rows AS left_one ASOF JOIN (
            SELECT server, client_id, first_ns, max(struct_pack(last_ns, first_ns, topic), 2) OVER (
                       PARTITION BY server, client_id ORDER BY first_ns DESC) AS lasting
            FROM habit_rows) AS after
            ON left_one.server = after.server AND left_one.client_id = after.client_id
            AND left_one.last_ns < after.first_ns
        WHERE lasting[1].last_ns - left_one.last_ns > 5 * longest_ns
            AND coalesce(lasting[2].last_ns - left_one.last_ns <= 5 * longest_ns, true)""",
    # Messages on topics of which it has few, that it sent, or got while they were new.
    "habit_asides": f"""
        SELECT coalesce(server_address, '') AS server, client_id, epoch_ns(ts) AS at_ns, message_id
        FROM mqtt_publishes
        WHERE client_id IN (SELECT client_id FROM habit_rows) AND topic IS NOT NULL
            AND (direction = 'client_to_server' OR NOT coalesce(retain, false))
        QUALIFY count(*) OVER (PARTITION BY server_address, client_id, direction, topic) < {LEAST}""",
    "habit_told": """
        SELECT own.server, own.client_id, topic, aside.message_id AS aside_message_id
        FROM habit_rows AS own ASOF JOIN (
            SELECT server, client_id, at_ns, min(message_id) AS message_id FROM habit_asides GROUP BY ALL) AS aside
            ON own.server = aside.server AND own.client_id = aside.client_id AND last_ns - 2 * longest_ns <= at_ns
        WHERE at_ns <= last_ns + 2 * longest_ns""",
    "habit_ends": "SELECT server, max(last_ns) AS end_ns FROM habit_rows GROUP BY server",
    "habit_ids": f"""
        SELECT server, client_address, list(DISTINCT client_id) AS ids
        FROM (SELECT coalesce(server_address, '') AS server, client_address, client_id FROM mqtt_connections
              WHERE client_id <> ''
              UNION ALL SELECT server, last.client_address, client_id FROM habit_rows)
        GROUP BY ALL HAVING count(DISTINCT client_id) BETWEEN 2 AND {_MOST_IDS}""",
    "habit_alive": """
        SELECT server, shape, last.client_address AS client_address, client_id AS successor, max(first_ns) AS began_ns
        FROM habit_rows JOIN habit_ends USING (server) WHERE end_ns - last_ns <= 3 * longest_ns GROUP BY ALL""",
    # When it was gone for good, the ids at its address that are nearly its own. Devices behind one address that wake
    # in turn are more than two.
    "habit_gone": f"""
        SELECT server, client_id, topic, shape, client_address, greatest(last_ns, alive_ns) AS gone_ns,
               list_filter(ids, lambda id: levenshtein(id, client_id) <= {_ID_LETTERS}) AS near
        FROM (SELECT *, last.client_address AS client_address FROM habit_rows)
        JOIN habit_ends USING (server) JOIN habit_ids USING (server, client_address)
        SEMI JOIN habit_alive USING (server, shape, client_address)
        LEFT JOIN (SELECT client_id, max(epoch_ns(coalesce(ts_last_from_client, ts))) AS alive_ns
                   FROM mqtt_connections GROUP BY client_id) USING (client_id)
        WHERE end_ns - last_ns > last_ns - first_ns AND length(client_id) BETWEEN {_LONG_ID} AND {_LONGEST_ID}""",
    # The other one came in its place, and is not gone as well.
    "habit_successors": """
        SELECT server, client_id, topic, successor
        FROM (SELECT *, near[CASE WHEN near[1] = client_id THEN 2 ELSE 1 END] AS successor FROM habit_gone
              WHERE len(near) = 2)
        JOIN habit_alive USING (server, shape, client_address, successor) WHERE began_ns > gone_ns""",
    "habit_lives": """
        SELECT flow_id, epoch_ns(ts_last_from_client) AS heard_ns, coalesce(gap_bytes, 0) = 0 AS whole
        FROM mqtt_connections""",
}
ROWS = """
    SELECT make_timestamp_ns(first_ns)::TIMESTAMPTZ_NS AS ts, make_timestamp_ns(last_ns)::TIMESTAMPTZ_NS AS ts_last,
           client_id, last.client_address AS client_address, last.client_port AS client_port, last.version AS version,
           topic, topic_before, topic_after,
           make_timestamp_ns(after_ns)::TIMESTAMPTZ_NS AS ts_after,
           habit_rows.shape, plain_shape, coalesce(usual_shape, named_shape) AS usual_shape,
           coalesce(usual_clients, named_clients, 0) AS usual_clients,
           clients - 1 AS likes, messages, retained, retain_turns, always_retained,
           CASE WHEN retain_turns = 1 THEN turned_place - 1 END AS before_turn, last.retain AS retains_now,
           make_timestamp_ns(turned_ns)::TIMESTAMPTZ_NS AS ts_turned, gap_ns / 1e6 AS gap_ms,
           longest_ns / 1e6 AS longest_gap_ms, usual_gap_ns / 1e6 AS usual_gap_ms, began_ns / 1e6 AS began_gap_ms,
           same_again, same_gap_ns / 1e6 AS same_gap_ms, other_gap_ns / 1e6 AS other_gap_ms, between_gaps, rising,
           began_bytes, ended_bytes, around_rising, began_around_bytes, ended_around_bytes,
           first_kind, last.payload_kind AS last_kind, kind_turns, kind_turned.place - 1 AS before_kind_turn,
           make_timestamp_ns(kind_turned.at_ns)::TIMESTAMPTZ_NS AS ts_kind_turned,
           kind_turned.message_id AS kind_turned_message_id, json, json_cut,
           make_timestamp_ns(first_cut.at_ns)::TIMESTAMPTZ_NS AS ts_cut, first_cut.message_id AS cut_message_id,
           coalesce(kinds_kept[first_kind], 0)::BIGINT - (kind_turns = 0)::BIGINT AS likes_of_kind,
           coalesce(kinds_kept['json'], 0)::BIGINT - (kind_turns = 0 AND first_kind = 'json')::BIGINT AS likes_json,
           shape_retained - retained AS likes_retained, shape_again - same_again AS likes_again, successor,
           aside_message_id, ended_ns / 1e6 AS ended_gap_ms, last.flow_id AS flow_id,
           make_timestamp_ns(heard_ns)::TIMESTAMPTZ_NS AS ts_heard, coalesce(whole, false) AS whole,
           make_timestamp_ns(last_of_shape_ns)::TIMESTAMPTZ_NS AS ts_last_of_shape, message_id, last_message_id,
           turned_message_id, nullif(server, '') AS server_address, last.server_port AS server_port
    FROM habit_rows JOIN habit_shapes USING (server, shape) LEFT JOIN habit_usual USING (server, plain_shape)
    LEFT JOIN habit_blank USING (server, shape)
    LEFT JOIN habit_rates USING (server, client_id, topic) LEFT JOIN habit_before USING (server, client_id, topic)
    LEFT JOIN habit_between USING (server, client_id, topic) LEFT JOIN habit_told USING (server, client_id, topic)
    LEFT JOIN habit_after USING (server, client_id, topic)
    LEFT JOIN habit_successors USING (server, client_id, topic)
    LEFT JOIN habit_lives ON habit_lives.flow_id = last.flow_id
    ORDER BY first_ns, client_id, topic"""
ASKS = "EXISTS (FROM mqtt_publishes WHERE direction = 'client_to_server')"
