"""Two clients that publish the same: `mqtt_twin_publishers`, pairs with the same payloads on the same topics.

In: views of `mqtt_publishes`. Out: STEPS and ROWS of the table.

A value is a topic with a payload (size and CRC-32); one sent again with DUP is left out, and so is a client that also
got the topic from the server: it may copy what it gets. A row is a pair of client ids that are both there, with LEAST
values or more in common, each of which came from both within the longer of their usual gaps on that topic. Values are
counted in the time in which both published, on topics of both. Of each client the _MOST_PAIRS pairs with the most in
common count.
"""

from __future__ import annotations

LEAST = 5
# What so many clients publish alike is a state, no reading of one thing.
_MOST_CLIENTS = 3
# All that a client published is compared with each of its pairs.
_MOST_PAIRS = 16
# Two copies of one program read the same source at about the same time; counters that began elsewhere meet later.
_STEPS = 5
# What has fewer bytes is often equal by chance.
_LEAST_BYTES = 5
_VALUE = "server, topic, payload_crc32, payload_bytes"
_NEXT = ", ".join(
    f"lead(struct_pack(client_id, at_ns, message_id, place, first_ns, last_ns, gap_ns), {step}) OVER value"
    for step in range(1, _MOST_CLIENTS)
)

STEPS = {
    "twin_sent": f"""
        SELECT coalesce(server_address, '') AS server, topic, client_id, payload_crc32, payload_bytes,
               epoch_ns(ts) AS at_ns, message_id, flow_id, client_address, client_port, version, server_port,
               epoch_ns(ts) - epoch_ns(lag(ts) OVER steps) AS gap_ns, row_number() OVER steps AS place
        FROM mqtt_publishes
        WHERE direction = 'client_to_server' AND topic IS NOT NULL AND client_id <> ''
            AND payload_bytes >= {_LEAST_BYTES} AND payload_crc32 IS NOT NULL AND NOT coalesce(dup, false)
            AND (coalesce(server_address, ''), topic) IN (
                SELECT (coalesce(server_address, ''), topic) FROM mqtt_publishes
                WHERE direction = 'client_to_server' AND client_id <> '' AND topic IS NOT NULL
                GROUP BY ALL HAVING min(client_id) <> max(client_id))
        WINDOW steps AS (PARTITION BY server_address, topic, client_id ORDER BY ts, message_id)""",
    "twin_topics": """
        SELECT server, topic, client_id, min(at_ns) AS first_ns, max(at_ns) AS last_ns, median(gap_ns) AS gap_ns
        FROM twin_sent GROUP BY ALL""",
    "twin_values": """
        SELECT server, topic, payload_crc32, payload_bytes, client_id, min(at_ns) AS at_ns,
               arg_min(message_id, at_ns) AS message_id, min(place) AS place
        FROM twin_sent GROUP BY ALL""",
    "twin_got": """
        SELECT DISTINCT coalesce(server_address, '') AS server, client_id FROM mqtt_publishes
        WHERE direction = 'server_to_client' AND client_id <> '' AND (coalesce(server_address, ''), topic) IN (
            SELECT (server, topic) FROM twin_topics)""",
    # Beside each one those of the same value whose client ids come later.
    "twin_shared": f"""
        SELECT *, unnest([{_NEXT}]) AS other
        FROM (FROM twin_values QUALIFY count(*) OVER (PARTITION BY {_VALUE}) BETWEEN 2 AND {_MOST_CLIENTS})
        JOIN twin_topics USING (server, topic, client_id) ANTI JOIN twin_got USING (server, client_id)
        WINDOW value AS (PARTITION BY {_VALUE} ORDER BY client_id)""",
    "twin_pairs": f"""
        SELECT server, one.client_id AS client_id, other.client_id AS other_client_id, count(*) AS common,
               count(DISTINCT topic) AS topics, min(topic) AS topic, min(one.at_ns) AS first_ns,
               max(one.at_ns) AS last_ns, median(abs(other.at_ns - one.at_ns)) AS apart_ns,
               median(greatest(one.gap_ns, other.gap_ns)) AS gap_ns, median(one.place - other.place) AS ahead,
               count(*) FILTER (one.at_ns <= other.at_ns) AS first_here,
               arg_min(one.message_id, one.at_ns) AS message_id,
               arg_min(other.message_id, one.at_ns) AS other_message_id,
               arg_max(other.message_id, one.at_ns) AS last_message_id
        FROM twin_shared AS one
        WHERE least(one.at_ns, other.at_ns) >= greatest(one.first_ns, other.first_ns)
            AND greatest(one.at_ns, other.at_ns) <= least(one.last_ns, other.last_ns)
            AND abs(other.at_ns - one.at_ns) <= {_STEPS} * greatest(one.gap_ns, other.gap_ns)
        GROUP BY server, one.client_id, other.client_id HAVING count(*) >= {LEAST}
        QUALIFY greatest(
            row_number() OVER (PARTITION BY server, one.client_id ORDER BY count(*) DESC, other.client_id),
            row_number() OVER (PARTITION BY server, other.client_id ORDER BY count(*) DESC, one.client_id))
            <= {_MOST_PAIRS}""",
    # What each published while both were there, on topics of both.
    "twin_counts": """
        SELECT pair, client_id, count(*) FILTER (by_both) AS messages,
               count(DISTINCT (topic, payload_crc32, payload_bytes)) FILTER (by_both) AS contents,
               arg_max(struct_pack(client_address, client_port, version, server_port), at_ns) FILTER (by_both) AS last
        FROM (
            SELECT sent.*, pair, at_ns BETWEEN greatest(mine.first_ns, theirs.first_ns)
                                      AND least(mine.last_ns, theirs.last_ns) AS by_both
            FROM (SELECT *, rowid AS pair, unnest([client_id, other_client_id]) AS who FROM twin_pairs) AS pairs
            JOIN twin_topics AS mine ON mine.server = pairs.server AND mine.client_id = pairs.client_id
            JOIN twin_topics AS theirs ON theirs.server = pairs.server AND theirs.client_id = pairs.other_client_id
                AND theirs.topic = mine.topic
            JOIN twin_sent AS sent ON sent.server = pairs.server AND sent.topic = mine.topic
                AND sent.client_id = who)
        GROUP BY pair, client_id""",
}
ROWS = """
    SELECT make_timestamp_ns(first_ns)::TIMESTAMPTZ_NS AS ts, make_timestamp_ns(last_ns)::TIMESTAMPTZ_NS AS ts_last,
           pairs.client_id AS client_id, mine.last.client_address AS client_address,
           mine.last.client_port AS client_port, mine.last.version AS version,
           pairs.other_client_id AS other_client_id, theirs.last.client_address AS other_client_address,
           theirs.last.client_port AS other_client_port, topic, topics, common, mine.messages AS messages,
           mine.contents AS contents, theirs.messages AS other_messages, theirs.contents AS other_contents,
           first_here, apart_ns / 1e6 AS apart_ms, pairs.gap_ns / 1e6 AS gap_ms, ahead, message_id,
           other_message_id, last_message_id,
           nullif(pairs.server, '') AS server_address, mine.last.server_port AS server_port
    FROM twin_pairs AS pairs
    JOIN twin_counts AS mine ON mine.pair = pairs.rowid AND mine.client_id = pairs.client_id
    JOIN twin_counts AS theirs ON theirs.pair = pairs.rowid AND theirs.client_id = pairs.other_client_id
    ORDER BY first_ns, pairs.client_id, pairs.other_client_id"""
ASKS = """EXISTS (SELECT topic FROM mqtt_publishes
    WHERE direction = 'client_to_server' AND topic IS NOT NULL AND client_id <> ''
    GROUP BY server_address, topic HAVING min(client_id) <> max(client_id))"""
