"""Keys that a client puts elsewhere from one moment on: `kafka_moved_keys`, as SQL.

In: a SELECT of batches with the keys of their first records, and the columns that tell a client and topic. Out: steps,
and the SELECT of the table. The moment is the first at which a key that has moved once did so. A key that went to
more than two partitions in turn has no place at all; one that went to its old partition after that moment moved late.
"""

from __future__ import annotations

from collections.abc import Mapping


def moved_steps(rows: str, who: str) -> Mapping[str, str]:
    """What the table is made of, by name."""
    return {
        "moved_turns": f"""
            SELECT {who}, key, partition, at_ns, place, partition <> lag(partition) OVER steps AS turned,
                   lag(at_ns) OVER steps AS before_ns
            FROM ({rows}) WHERE key IS NOT NULL
            WINDOW steps AS (PARTITION BY {who}, key ORDER BY at_ns, place)""",
        "moved_each": f"""
            SELECT {who}, key, count(*) FILTER (turned) AS turns, min(at_ns) AS first_ns, max(at_ns) AS last_ns,
                   min(at_ns) FILTER (turned) AS turn_ns, max(before_ns) FILTER (turned) AS before_ns,
                   arg_min(place, (at_ns, place)) FILTER (turned) AS place
            FROM moved_turns GROUP BY ALL""",
        "moved_when": f"""
            SELECT {who}, min(turn_ns) AS moment_ns, arg_min(place, (turn_ns, place)) AS place
            FROM moved_each WHERE turns = 1 GROUP BY ALL""",
        "moved_highest": f"""
            SELECT {who}, max(partition) FILTER (at_ns < moment_ns) AS before,
                   max(partition) FILTER (at_ns >= moment_ns) AS after
            FROM moved_turns JOIN moved_when USING ({who}) GROUP BY ALL""",
    }


def moved_rows(who: str) -> str:
    """The table."""
    return f"""
        SELECT place.exchange_id AS exchange_id, make_timestamp_ns(moment_ns)::TIMESTAMPTZ_NS AS ts,
               make_timestamp_ns(last_ns)::TIMESTAMPTZ_NS AS ts_last, nullif(cluster, '') AS cluster_id,
               nullif(client, '') AS client_id, nullif(address, '') AS client_address, nullif(topic, '') AS topic,
               keys AS keys_count, moved AS moved_count, late AS late_count, unsteady AS unsteady_count,
               before AS highest_before, after AS highest_after, place.file AS file,
               place.request_packet AS request_packet
        FROM (SELECT {who}, moment_ns, own.place AS place, max(last_ns) AS last_ns,
                     count(*) FILTER (first_ns < moment_ns AND last_ns >= moment_ns) AS keys,
                     count(*) FILTER (turns = 1) AS moved,
                     count(*) FILTER (turns = 1 AND before_ns > moment_ns) AS late,
                     count(*) FILTER (turns > 1) AS unsteady
              FROM moved_each JOIN moved_when AS own USING ({who}) GROUP BY ALL)
        JOIN moved_highest USING ({who})"""
