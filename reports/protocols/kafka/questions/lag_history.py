"""How far behind a group was at every moment. In: a source and a group; out: rows to draw, one per partition and bin.

The stored offset is a step function in the order in which the broker applied commits, the log end one in the order of
the answers that tell it; both hold until the next step (`analyser/kafka/facts/lag.py` says what they are). A bin
tells the least and the most lag that stood in it, so two writers that take turns within a bin are seen. How things
stood before the time range counts: a partition that is quiet in it has a lag all the same.

Of very many steps each quarter of a bin has bounds: the lowest offset that stood in it against the furthest log end,
the highest one against the log end that it began with.
"""

from __future__ import annotations

from typing import Any

from wirewitness.analyser.kafka.facts.committed_steps import GROUP
from wirewitness.analyser.kafka.facts.lag import DELETED, LAG_ROWS, LAG_STEPS, MOST_CARRIED, lag_steps
from wirewitness.analyser.kafka.facts.time_lag import PASSED_STEPS
from wirewitness.analyser.tables.queries import literal
from wirewitness.reports.base.questions.source import Source, all_rows
from wirewitness.reports.protocols.kafka.questions.commits import same

# So many steps are followed one by one.
EXACT_STEPS = 20_000
_PARTS = 4
_STEP_COUNT = """
    select (select count(*) from kafka_offset_commits where {group})
           + (select count(*) from kafka_fetch_partitions where {cluster}) as steps"""

# Every moment at which something changed, and the begin of every bin, so that what stands is told in each.
_MOMENTS = f"""
    WITH told AS ({LAG_STEPS["lag_bins"]}),
         firsts AS (SELECT {GROUP}, min(bin) AS first FROM told GROUP BY ALL),
         gone AS ({" UNION ALL ".join(f"SELECT bin FROM lag_gone_{name}" for name in DELETED)}),
         ends AS (SELECT greatest(coalesce((SELECT max(bin) FROM told), 0), coalesce((SELECT max(bin) FROM gone), 0),
                                  coalesce((SELECT max(bin) FROM lag_log_ends), 0), {{last_ns}}) AS last)
    FROM told
    UNION SELECT {GROUP}, bin FROM firsts, gone WHERE bin >= first
    UNION SELECT {GROUP}, unnest(range(first // {{width}} * {{width}} + {{width}}, last + 1, {{width}}))
    FROM firsts, ends WHERE (last - first) // {{width}} < {MOST_CARRIED}"""

_STEPS = {
    "moments": f"""
        SELECT *, coalesce(cluster_id, '') AS cluster, coalesce(topic, '') AS of_topic,
               bin // {{width}} * {{width}} AS begin, lead(bin) OVER (
                   PARTITION BY topic, partition, bin // {{width}} ORDER BY bin) AS next_ns
        FROM (SELECT *, lag AS low, lag AS high FROM ({LAG_ROWS}))""",
    # The moment of each bin at which the lag was greatest, and how things stood at its end.
    "stands": """
        SELECT cluster, of_topic, any_value(topic) AS topic, partition, begin, row_number() OVER () AS row,
               min(low) AS least, max(high) AS most, arg_max_null(lag, bin) AS lag_at_end,
               arg_max_null(committed_offset, bin) AS stored, arg_max_null(log_end_offset, bin) AS log_end,
               max(lag) AS lag, arg_max(committed_offset, lag) AS committed_offset, arg_max(end_ns, lag) AS end_ns,
               arg_max(coalesce(next_ns, least(begin + {width}, greatest({last_ns}, bin))), lag) AS until_ns
        FROM moments WHERE begin + {width} > {from_ns} GROUP BY cluster, of_topic, partition, begin""",
    **PASSED_STEPS,
}
# Instead of `moments` and every change in it: parts of bins with what may have stood in them.
_BOUNDS = f"""
    SELECT *, coalesce(cluster_id, '') AS cluster, coalesce(topic, '') AS of_topic,
           bin // {{width}} * {{width}} AS begin, bin + {{part}} AS next_ns,
           least(lag, greatest(least(end_before, log_end_offset) - highest
                               - greatest(coalesce(log_start_offset, 0) - highest, 0), 0)) AS low,
           greatest(lag, greatest(end_before, log_end_offset) - lowest
                         - greatest(coalesce(start_before, 0) - lowest, 0)) AS high
    FROM (SELECT *, greatest(highest_offset, stored_before) AS highest, least(lowest_offset, stored_before) AS lowest
          FROM (SELECT *, lag(log_end_offset) OVER own AS end_before, lag(log_start_offset) OVER own AS start_before,
                       lag(committed_offset) OVER own AS stored_before
                FROM ({LAG_ROWS}) WINDOW own AS (PARTITION BY cluster_id, topic, partition ORDER BY bin)))"""
_ANSWER = """
    SELECT greatest(begin, {from_ns}) / 1e6 AS t, topic, partition, lag_at_end AS lag, least, most, stored, log_end,
           CASE WHEN most = 0 THEN 0.0 ELSE greatest(until_ns - passed_ns, 0) / 1e6 END AS behind_ms
    FROM stands LEFT JOIN lag_passed USING (row) ORDER BY topic, partition, t"""
_LAST = "select max(epoch_ns(ts)) as last_ns from exchanges"


def lag_over_time(source: Source, cluster_id: str | None, group_id: str | None, width_ns: int) -> list[dict[str, Any]]:
    """t, topic, partition, lag, least, most, stored, log_end, behind_ms of each bin up to the end of the time range.

    lag, stored and log_end: at the end of the bin; null where one of them is not known then. least, most: the lag in
    the bin. behind_ms: how long the record at the stored offset had been in the log when the lag was greatest.
    """
    chosen = source.options
    last_ns = all_rows(source, _LAST)[0]["last_ns"] or 0
    cluster = f"cluster = {literal(cluster_id or '')}"
    exact = _step_count(source, cluster_id, group_id) <= EXACT_STEPS
    part = 1 if exact else max(int(width_ns) // _PARTS, 1)
    steps = lag_steps(
        str(part), until="true" if chosen.to_ns is None else f"at_ns < {chosen.to_ns}",
        group=f"{cluster} and group_id = {literal(group_id or '')}", commits="(taken or refused)", ends=cluster,
    )  # fmt: skip
    bounds = {
        "width": int(width_ns),
        "part": part,
        "from_ns": chosen.from_ns or 0,
        "last_ns": last_ns if chosen.to_ns is None else min(chosen.to_ns - 1, last_ns),
    }
    if exact:
        steps["lag_bins"] = _MOMENTS.format(**bounds)
    own = _STEPS if exact else {**_STEPS, "moments": _BOUNDS}
    steps |= {name: query.format(**bounds) for name, query in own.items()}
    named = ", ".join(f"{name} as ({query})" for name, query in steps.items())
    return all_rows(source, f"with {named} {_ANSWER.format(**bounds)}")


def _step_count(source: Source, cluster_id: str | None, group_id: str | None) -> int:
    cluster = same("cluster_id", cluster_id)
    count = _STEP_COUNT.format(cluster=cluster, group=f"{cluster} and {same('group_id', group_id)}")
    return int(all_rows(source, count)[0]["steps"])
