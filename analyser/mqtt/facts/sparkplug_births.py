"""Births of Sparkplug B: `mqtt_births`, which nodes tell all their metrics again, and whether a command asked for it.

In: a view of `mqtt_publishes`. Out: STEPS and ROWS of the table.

A node is an edge node by its topics, spBv1.0/GROUP/TYPE/NODE: NBIRTH is its birth, NDATA and DDATA what it sends then,
NCMD what a host asks of it. A row is a node with a birth at a server. A birth was asked for where it is the first
message of the node after a command for it, on the connection of a birth before: its session had begun, and only a
command asks for another one.
"""

from __future__ import annotations

_NODE = "spBv1.0/%/%/%"
_PARTS = "string_split(topic, '/')"

STEPS = {
    "birth_messages": f"""
        SELECT coalesce(server_address, '') AS server, {_PARTS}[2] || '/' || {_PARTS}[4] AS node, {_PARTS}[3] AS kind,
               epoch_ns(ts) AS at_ns, message_id, flow_id, client_id,
               struct_pack(client_address, client_port, version, server_port, client_id, topic) AS who
        FROM mqtt_publishes
        WHERE direction = 'client_to_server' AND topic LIKE '{_NODE}' AND NOT coalesce(dup, false)""",
    "birth_commands": "SELECT * FROM birth_messages WHERE kind = 'NCMD'",
    "birth_steps": """
        SELECT * FROM (
            SELECT *, lag(at_ns) OVER told AS before_ns,
                   count(*) FILTER (kind = 'NBIRTH') OVER (told ROWS UNBOUNDED PRECEDING) - 1 AS births_before
            FROM birth_messages WHERE kind IN ('NBIRTH', 'NDATA', 'DDATA')
            WINDOW told AS (PARTITION BY server, node, flow_id ORDER BY at_ns, message_id))
        WHERE kind = 'NBIRTH'""",
    "birth_asked": """
        SELECT births.*, commands.client_id AS host, commands.message_id AS command_id,
               coalesce(births_before > 0 AND commands.at_ns > before_ns, false) AS asked,
               births.at_ns - commands.at_ns AS late_ns
        FROM birth_steps AS births ASOF LEFT JOIN birth_commands AS commands
            ON births.server = commands.server AND births.node = commands.node AND births.at_ns >= commands.at_ns""",
    "birth_nodes": """
        SELECT server, node, count(*) AS births, count(*) FILTER (asked) AS asked, min(at_ns) AS first_ns,
               max(at_ns) AS last_ns, arg_max(who, at_ns) AS last, mode(host) FILTER (asked) AS host,
               median(late_ns) FILTER (asked) AS late_ns, arg_min(message_id, at_ns) FILTER (asked) AS message_id,
               arg_min(command_id, at_ns) FILTER (asked) AS command_id, arg_max(message_id, at_ns) AS last_message_id
        FROM birth_asked GROUP BY server, node""",
    "birth_data": """
        SELECT server, node, count(*) FILTER (kind IN ('NDATA', 'DDATA')) AS data,
               count(*) FILTER (kind = 'NCMD') AS commands
        FROM birth_messages GROUP BY server, node""",
}
ROWS = """
    SELECT make_timestamp_ns(first_ns)::TIMESTAMPTZ_NS AS ts, make_timestamp_ns(last_ns)::TIMESTAMPTZ_NS AS ts_last,
           last.client_id AS client_id, last.client_address AS client_address, last.client_port AS client_port,
           last.version AS version, node, last.topic AS topic, births, asked, data, commands, host,
           late_ns / 1e6 AS late_ms, count(*) OVER (PARTITION BY server) - 1 AS likes,
           sum(asked) OVER (PARTITION BY server)::BIGINT - asked AS likes_asked, message_id,
           command_id AS command_message_id, last_message_id, nullif(server, '') AS server_address,
           last.server_port AS server_port
    FROM birth_nodes JOIN birth_data USING (server, node)
    ORDER BY first_ns, node"""
ASKS = f"EXISTS (FROM mqtt_publishes WHERE direction = 'client_to_server' AND topic LIKE '{_NODE}')"
