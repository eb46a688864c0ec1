"""Which messages a client missed that has a filter no more: steps of `mqtt_dropped_filters`, as SQL.

In: `drop_found`, and a view of `mqtt_publishes`. Out: STEPS, of which the last is `drop_missed`.

Each filter asks each topic that it matches once: how many messages had come by the two ends of its time, less the
client's own. The first and last message of others are found in runs of messages that one client sent in turn.
"""

from __future__ import annotations

_OF_TOPIC = "PARTITION BY number ORDER BY at_ns"


def _so_far(name: str, table: str, at: str, *, keys: str = "") -> str:
    """A join to the last row of a pair's topic by a time of the pair, and its comparison."""
    return f"ASOF LEFT JOIN {table} AS {name} ON pairs.number = {name}.number {keys} AND pairs.{at} {name}.at_ns"


STEPS = {
    "missed_topics": """
        SELECT row_number() OVER (ORDER BY server, topic) AS number, server, topic
        FROM (SELECT DISTINCT coalesce(server_address, '') AS server, topic FROM mqtt_publishes
              WHERE direction = 'client_to_server' AND NOT starts_with(topic, '$'))
        WHERE server IN (SELECT server FROM drop_found)""",
    "missed_pairs": """
        SELECT found.rowid AS found, client_id, at_ns, until_ns, due_ns, number
        FROM drop_found AS found JOIN (
            SELECT server, pattern, number
            FROM (SELECT DISTINCT server, pattern FROM drop_found) JOIN missed_topics USING (server)
            WHERE regexp_matches(topic, pattern)) USING (server, pattern)""",
    "missed_messages": """
        SELECT number, publisher, at_ns, id
        FROM (SELECT coalesce(server_address, '') AS server, topic, coalesce(client_id, flow_id) AS publisher,
                     epoch_ns(ts) AS at_ns, message_id AS id
              FROM mqtt_publishes WHERE direction = 'client_to_server')
        JOIN missed_topics USING (server, topic)
        WHERE number IN (SELECT number FROM missed_pairs) AND publisher IS NOT NULL
            AND at_ns > (SELECT min(at_ns) FROM drop_found) AND at_ns <= (SELECT max(until_ns) FROM drop_found)""",
    # Each time of a topic: one who published then and, where there are several, another; by it the messages so far.
    # Where one has all of it, and of the times around it: when another one publishes next, and did before.
    "missed_times": f"""
        SELECT number, at_ns, low, high, messages, sum(messages) OVER topics AS so_far,
               min(at_ns) FILTER (turns) OVER (
                   {_OF_TOPIC} ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS next_ns,
               max(before_ns) FILTER (turns) OVER topics AS before_ns
        FROM (SELECT *, lag(at_ns) OVER topics AS before_ns,
                     (low = high AND low = lag(low) OVER topics AND low = lag(high) OVER topics) IS NOT TRUE AS turns
              FROM (SELECT number, at_ns, min(publisher) AS low, max(publisher) AS high, count(*) AS messages
                    FROM missed_messages GROUP BY number, at_ns)
              WINDOW topics AS ({_OF_TOPIC}))
        WINDOW topics AS ({_OF_TOPIC})""",
    "missed_own": """
        SELECT number, publisher, at_ns,
               sum(count(*)) OVER (PARTITION BY number, publisher ORDER BY at_ns) AS so_far
        FROM missed_messages WHERE publisher IN (SELECT client_id FROM drop_found)
        GROUP BY number, publisher, at_ns""",
    "missed_ends": f"""
        SELECT pairs.found, pairs.number,
               CASE WHEN first.low = client_id AND first.high = client_id THEN first.next_ns ELSE first.at_ns END
                   AS first_ns,
               CASE WHEN last.low = client_id AND last.high = client_id THEN last.before_ns ELSE last.at_ns END
                   AS last_ns,
               last.so_far - first.so_far + first.messages
                   - coalesce(own_last.so_far, 0) + coalesce(own_before.so_far, 0) AS messages,
               last.so_far - coalesce(due.so_far, 0)
                   - coalesce(own_last.so_far, 0) + coalesce(own_due.so_far, 0) AS messages_late
        FROM missed_pairs AS pairs
        ASOF JOIN missed_times AS first ON pairs.number = first.number AND pairs.at_ns <= first.at_ns
        {_so_far("last", "missed_times", "until_ns >=")}
        {_so_far("due", "missed_times", "due_ns >=")}
        {_so_far("own_last", "missed_own", "until_ns >=", keys="AND client_id = own_last.publisher")}
        {_so_far("own_due", "missed_own", "due_ns >=", keys="AND client_id = own_due.publisher")}
        {_so_far("own_before", "missed_own", "at_ns >", keys="AND client_id = own_before.publisher")}""",
    "missed_all": """
        SELECT found, sum(messages)::BIGINT AS messages, sum(messages_late)::BIGINT AS messages_late,
               min(topic) AS topic, min(first_ns) AS first_ns, max(last_ns) AS last_ns,
               arg_min(number, (first_ns, number)) AS first_number, arg_max(number, (last_ns, number)) AS last_number
        FROM missed_ends JOIN missed_topics USING (number) WHERE first_ns <= last_ns GROUP BY found""",
    "missed_at_ends": """
        SELECT found, min(id) FILTER (is_first) AS first_id, max(id) FILTER (NOT is_first) AS last_id
        FROM (SELECT found, first_number AS number, first_ns AS at_ns, true AS is_first FROM missed_all
              UNION ALL SELECT found, last_number, last_ns, false FROM missed_all)
        JOIN missed_messages USING (number, at_ns)
        JOIN (SELECT rowid AS found, client_id FROM drop_found) USING (found)
        WHERE publisher <> client_id
        GROUP BY found""",
    "drop_missed": """
        SELECT flow_id, topic_filter, messages, messages_late, topic, first_id, last_id
        FROM missed_all JOIN missed_at_ends USING (found) JOIN drop_found ON drop_found.rowid = found""",
}
