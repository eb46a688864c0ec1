"""Names that are used once, and topics with two writers: `mqtt_names_used` and `mqtt_topic_writers`.

In: views of `mqtt_publishes`, `mqtt_subscriptions`. Out: STEPS and ROWS of both tables. Names of a client are its
topics with RETAIN and its topic filters: each of them stays at the server until somebody clears it or gives it up.
"""

from __future__ import annotations

LEAST_NAMES = 20
# What a start asks for at once is a list, no growth: new ones come for half of the time that is left of the capture.
_SPREAD_NS, _OF_THE_REST = 5_000_000_000, 0.5
_GROWS = f"""count(*) >= {LEAST_NAMES} AND max(at_ns) - min(at_ns) > greatest(
        {_SPREAD_NS}, {_OF_THE_REST} * ((SELECT max(epoch_ns(ts_last)) FROM flows) - min(at_ns)))"""

_USES = """
    SELECT 'retained topic' AS kind, coalesce(server_address, '') AS server, server_port, client_id,
           client_address, client_port, version, topic AS name, epoch_ns(ts) AS at_ns, message_id AS id,
           payload_bytes = 0 AS is_over
    FROM mqtt_publishes WHERE direction = 'client_to_server' AND retain AND topic IS NOT NULL AND client_id <> ''
    UNION ALL
    SELECT 'filter', coalesce(server_address, ''), server_port, client_id, client_address, client_port, version,
           topic_filter, epoch_ns(ts), exchange_id, event = 'unsubscribe'
    FROM mqtt_subscriptions WHERE topic_filter IS NOT NULL AND client_id <> '' AND coalesce(error_code, 0) = 0"""
# Of other topics there is nothing to tell.
_OF_TWO = """SELECT topic FROM mqtt_publishes WHERE direction = 'client_to_server' AND retain AND client_id <> ''
    GROUP BY topic HAVING min(client_id) <> max(client_id)"""

NAMES_STEPS = {
    # Whose names may grow: there are no more of these than uses, and they come no later.
    "name_clients": f"""
        SELECT kind, server, client_id FROM ({_USES}) GROUP BY ALL HAVING {_GROWS}""",
    "name_first": f"""
        SELECT kind, server, client_id, name, min(at_ns) AS at_ns, count(*) FILTER (NOT is_over) AS uses,
               bool_or(is_over) AS is_over, arg_min(id, at_ns) AS id,
               any_value(struct_pack(server_port, client_address, client_port, version)) AS who
        FROM ({_USES}) SEMI JOIN name_clients USING (kind, server, client_id) GROUP BY ALL""",
}
NAMES_ROWS = f"""
    SELECT make_timestamp_ns(min(at_ns))::TIMESTAMPTZ_NS AS ts,
           make_timestamp_ns(max(at_ns))::TIMESTAMPTZ_NS AS ts_last,
           client_id, any_value(who.client_address) AS client_address, any_value(who.client_port) AS client_port,
           any_value(who.version) AS version, kind, count(*) AS names, count(*) FILTER (uses = 1) AS used_once,
           count(*) FILTER (is_over) AS given_up, arg_min(name, at_ns) AS first_name, arg_max(name, at_ns) AS last_name,
           nullif(corr(row_number, at_ns / 1e9), 'nan') AS steady, arg_min(id, at_ns) AS first_id,
           arg_max(id, at_ns) AS last_id,
           nullif(server, '') AS server_address, any_value(who.server_port) AS server_port
    FROM (SELECT *, row_number() OVER (PARTITION BY kind, server, client_id ORDER BY at_ns, name) AS row_number
          FROM name_first)
    GROUP BY kind, server, client_id
    HAVING {_GROWS}
    ORDER BY ts, client_id, kind"""
NAMES_ASKS = "EXISTS (FROM mqtt_publishes WHERE retain) OR EXISTS (FROM mqtt_subscriptions)"

WRITERS_STEPS = {
    "writer_sets": f"""
        SELECT coalesce(server_address, '') AS server, server_port, topic, client_id, client_address, client_port,
               version, epoch_ns(ts) AS at_ns, payload_crc32, message_id,
               client_id <> lag(client_id) OVER sets AND payload_crc32 <> lag(payload_crc32) OVER sets AS turns
        FROM mqtt_publishes
        WHERE direction = 'client_to_server' AND retain AND client_id <> '' AND payload_bytes > 0
            AND NOT coalesce(dup, false) AND topic IN ({_OF_TWO})
        WINDOW sets AS (PARTITION BY server_address, topic ORDER BY ts, message_id)""",
    "writer_clients": """
        SELECT server, topic, client_id, count(*) AS sets, count(DISTINCT payload_crc32) AS contents,
               any_value(struct_pack(client_address, client_port, version, server_port)) AS who
        FROM writer_sets
        WHERE (server, topic) IN (SELECT (server, topic) FROM writer_sets WHERE turns) GROUP BY ALL""",
}
WRITERS_ROWS = """
    SELECT make_timestamp_ns(first_ns)::TIMESTAMPTZ_NS AS ts, make_timestamp_ns(last_ns)::TIMESTAMPTZ_NS AS ts_last,
           turned.topic, turned.sets, turns, writers, one.client_id AS client_id,
           one.who.client_address AS client_address, one.who.client_port AS client_port, one.who.version AS version,
           one.sets AS own_sets, other.client_id AS other_client_id, other.who.client_address AS other_client_address,
           other.who.client_port AS other_client_port, other.sets AS other_sets, message_id, last_message_id,
           nullif(turned.server, '') AS server_address, one.who.server_port AS server_port
    FROM (
        SELECT server, topic, count(*) AS sets, count(*) FILTER (turns) AS turns, count(DISTINCT client_id) AS writers,
               min(at_ns) AS first_ns, max(at_ns) AS last_ns, arg_min(message_id, at_ns) FILTER (turns) AS message_id,
               arg_max(message_id, at_ns) FILTER (turns) AS last_message_id
        FROM writer_sets GROUP BY server, topic HAVING count(*) FILTER (turns) > 0) AS turned
    JOIN (SELECT server, topic, arg_max(writer_clients, (sets, client_id), 2) AS two FROM writer_clients GROUP BY ALL)
        AS found USING (server, topic)
    CROSS JOIN LATERAL (SELECT two[1] AS one, two[2] AS other) AS pair
    ORDER BY first_ns, turned.topic"""
WRITERS_ASKS = f"EXISTS ({_OF_TWO})"
