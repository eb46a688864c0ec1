"""What rises while an application asks the same: `mongo_trends`.

In: nothing. Out: how the table is made. Time, the skips or the sizes of the commands of one shape are cut into
eighths; their medians are ranked. Eighths of time are of the clock, not of the rows: what comes faster is no trend.
"""

from __future__ import annotations

from wirewitness.analyser.engine.facts.steps import Made
from wirewitness.analyser.mongo.facts.client_commands import ASKED, KEY

# Four in each eighth.
LEAST = 32
RISING = 0.7
_MEASURES = {"latency": "latency_ms", "reply": "response_bytes", "request": "request_bytes"}
# Of these the server or the driver decides what they bring.
_LEFT_OUT = "('hello', 'isMaster', 'ismaster', 'saslStart', 'saslContinue', 'getMore', 'killCursors', 'endSessions')"
# That more documents take longer is no news.
_BATCHES = "('insert', 'bulkWrite')"
_SERVER = "server_address, server_port"
_ROW = f"{KEY}, measure, along"


def _eighths(measure: str, over: str, eighth: str) -> str:
    column = _MEASURES[measure]
    return f"""
        SELECT {KEY}, '{measure}' AS measure, '{over}' AS along, {eighth} AS eighth, median({column})::DOUBLE AS middle,
               min(ts) AS from_ts, max(ts) AS to_ts,
               arg_min(exchange_id, ts) AS first_id, arg_max(exchange_id, ts) AS last_id
        FROM trend_rows WHERE {column} IS NOT NULL AND {eighth} IS NOT NULL GROUP BY ALL"""


def _same(one: str, other: str, columns: str) -> str:
    return " AND ".join(f"{one}.{name} IS NOT DISTINCT FROM {other}.{name}" for name in columns.split(", "))


_STEPS = {
    "trend_rows": f"""
        SELECT {KEY}, query_shape, driver_version, ts, exchange_id, latency_ms, skip,
               coalesce(response_uncompressed_bytes, response_bytes) AS response_bytes,
               coalesce(request_uncompressed_bytes, request_bytes) AS request_bytes,
               (epoch_ns(ts) - min(epoch_ns(ts)) OVER shape)
                   // ((max(epoch_ns(ts)) OVER shape - min(epoch_ns(ts)) OVER shape) // 8 + 1) AS time_eighth,
               CASE WHEN max(skip) OVER shape > coalesce(min(skip) OVER shape, 0)
                    THEN floor(percent_rank() OVER (PARTITION BY {KEY} ORDER BY coalesce(skip, 0)) * 7.999)::BIGINT
                    END AS skip_eighth,
               CASE WHEN command NOT IN {_BATCHES} AND max(request_bytes) OVER shape > 2 * min(request_bytes) OVER shape
                    THEN floor(percent_rank() OVER (PARTITION BY {KEY} ORDER BY request_bytes) * 7.999)::BIGINT
                    END AS size_eighth
        FROM mongo_commands WHERE {ASKED} AND status = 'ok' AND command NOT IN {_LEFT_OUT}
        WINDOW shape AS (PARTITION BY {KEY}) QUALIFY count(*) OVER shape >= {LEAST}""",
    "trend_eighths": " UNION ALL ".join(
        (*(_eighths(measure, "time", "time_eighth") for measure in _MEASURES),
         _eighths("latency", "skip", "skip_eighth"), _eighths("latency", "request", "size_eighth"))
    ),
    "trend_found": f"""
        SELECT {_ROW}, nullif(corr(eighth, place), 'nan') AS rising,
               median(middle) FILTER (eighth < 2) AS began, median(middle) FILTER (eighth >= 6) AS ended,
               min(from_ts) AS ts, max(to_ts) AS ts_last, arg_min(first_id, eighth) AS exchange_id,
               arg_max(last_id, eighth) AS last_exchange_id
        FROM (SELECT *, rank() OVER (PARTITION BY {_ROW} ORDER BY middle) AS place FROM trend_eighths)
        GROUP BY {_ROW} HAVING count(*) >= 6""",
    "trend_shapes": f"""
        SELECT {KEY}, any_value(query_shape) AS query_shape, any_value(driver_version) AS driver_version,
               count(*) AS commands, max(skip)::DOUBLE AS skip_most,
                   sum(round(latency_ms * 1e6)::HUGEINT) / 1e6 AS latency_sum_ms
        FROM trend_rows GROUP BY {KEY}""",
    # Of two shapes nobody knows which is usual.
    "trend_servers": f"""
        SELECT {_SERVER}, median(ended / nullif(began, 0)) AS others FROM trend_found
        WHERE measure = 'latency' AND along = 'time' GROUP BY {_SERVER} HAVING count(*) >= 3""",
    "trend_inserted": f"""
        SELECT {_ROW}, try_cast(sum(inserts.n) AS BIGINT) AS inserted
        FROM (FROM trend_found WHERE rising >= {RISING} AND ended > began) AS found
        JOIN (SELECT database AS d, collection AS c, ts AS ts_insert, n FROM mongo_commands
              WHERE command = 'insert') AS inserts
            ON found.database = d AND found.collection = c AND ts_insert BETWEEN found.ts AND found.ts_last
        GROUP BY {_ROW}""",
}  # fmt: skip
_FINAL = f"""
    SELECT found.*, shapes.* EXCLUDE ({KEY}), servers.others, coalesce(inserted.inserted, 0) AS inserted
    FROM (FROM trend_found WHERE rising >= {RISING} AND ended > began) AS found
    JOIN trend_shapes AS shapes ON {_same("found", "shapes", KEY)}
    LEFT JOIN trend_servers AS servers ON {_same("found", "servers", _SERVER)}
    LEFT JOIN trend_inserted AS inserted ON {_same("found", "inserted", _ROW)}"""

TRENDS = Made(f"(SELECT count(*) FROM mongo_commands) >= {LEAST}", _STEPS, _FINAL)
