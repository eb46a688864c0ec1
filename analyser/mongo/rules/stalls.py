"""When a server of MongoDB stood still, and who waited: SQL over `mongo_commands` that MON101 and MON116 share.

In: nothing. Out: a SELECT of exchange ids: requests of shapes that are usually quick, on two connections or more, that
waited while the server answered nobody, and that were answered together afterwards.
"""

from __future__ import annotations

from wirewitness.analyser.base.times import NS_PER_MS, NS_PER_S

# Pauses of garbage collectors and schedulers are shorter.
SILENT_S = 1.0
# One connection alone may be held up for reasons of its own.
CONNECTIONS = 2
# What usually takes a fifth of that time or longer may have been at work.
QUICK_PART = 0.2
# What waited for the same thing is answered together.
TOGETHER_S = 1.0
# Requests of a shape from which on its usual time is known.
_USUAL_LEAST = 3
# Something must come in so long before the end: else it may be the capture that stood still.
_EDGE_MS = 500.0
_SERVER = "server_address, server_port"

# Answers are looked at by so long a time: one gap between two of them that is longer than a silence spans several.
_PART_NS = round(SILENT_S * NS_PER_S / 2)
_SHAPE = "server_address, server_port, command, shape_id"

# Servers at which nobody waited for long are left out first; what is usual is asked only of shapes that waited.
SILENCES = f"""
    WITH slow_servers AS (
        SELECT {_SERVER} FROM mongo_commands WHERE latency_ms > {_EDGE_MS}
        GROUP BY {_SERVER} HAVING count(DISTINCT flow_id) >= {CONNECTIONS}),
    answers AS (
        SELECT {_SERVER}, max(ended) AS since, lead(min(ended)) OVER (PARTITION BY {_SERVER} ORDER BY part) AS until
        FROM (SELECT {_SERVER}, epoch_ns(ts_response) AS ended, epoch_ns(ts_response) // {_PART_NS} AS part
              FROM mongo_commands SEMI JOIN slow_servers USING ({_SERVER}) WHERE ts_response IS NOT NULL)
        GROUP BY {_SERVER}, part),
    silent AS MATERIALIZED (SELECT * FROM answers WHERE until - since >= {round(SILENT_S * NS_PER_S)}),
    held AS MATERIALIZED (
        SELECT asked.*, since, until
        FROM (SELECT {_SHAPE}, flow_id, client_address, app_name, exchange_id, latency_ms,
                     epoch_ns(ts) AS begun, epoch_ns(ts_response) AS ended
              FROM mongo_commands SEMI JOIN silent USING ({_SERVER})
              WHERE latency_ms > 100 AND ts_response IS NOT NULL) AS asked
        ASOF JOIN silent
            ON asked.server_address = silent.server_address AND asked.server_port = silent.server_port
            AND asked.ended > silent.since
        WHERE begun < until AND ended < until + {round(TOGETHER_S * NS_PER_S)}),
    usual AS (
        SELECT {_SHAPE}, median(latency_ms) AS usual_ms
        FROM mongo_commands AS every SEMI JOIN held
            ON every.server_address = held.server_address AND every.server_port = held.server_port
               AND every.command IS NOT DISTINCT FROM held.command
               AND every.shape_id IS NOT DISTINCT FROM held.shape_id
        WHERE latency_ms IS NOT NULL AND ts_response IS NOT NULL GROUP BY ALL HAVING count(*) >= {_USUAL_LEAST}),
    waiting AS (
        SELECT held.*
        FROM held JOIN usual
            ON held.server_address = usual.server_address AND held.server_port = usual.server_port
               AND held.command IS NOT DISTINCT FROM usual.command
               AND held.shape_id IS NOT DISTINCT FROM usual.shape_id
        WHERE usual_ms < {QUICK_PART} * (until - since) / {NS_PER_MS})
    SELECT exchange_id FROM waiting SEMI JOIN (
        SELECT {_SERVER}, since FROM waiting GROUP BY {_SERVER}, since
        HAVING count(DISTINCT flow_id) >= {CONNECTIONS} AND max(latency_ms) > {_EDGE_MS}
            AND (count(DISTINCT shape_id) >= 2 OR count(DISTINCT (client_address, app_name)) >= 2)) AS still
    USING ({_SERVER}, since)"""
