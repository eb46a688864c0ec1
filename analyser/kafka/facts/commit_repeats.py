"""Commits of an offset that its committer has often, and what was ahead of it meanwhile.

In: the views of `committed_views.py`, what clients fetched. Out: SELECTs of `row` and columns of `kafka_committed`.
What is furthest is looked for by numbers of 64 bits: `height` is a commit's place among the offsets of its part.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import duckdb

from wirewitness.analyser.engine.facts.topics import has_rows
from wirewitness.analyser.kafka.facts.commit_reading import FETCHED, Reading, made
from wirewitness.analyser.kafka.facts.committed_views import BASE

# So many committers of a partition are looked at that repeat offsets: a member gets a new id with every restart.
_MOST_STUCK = 16
# Half of the evidence of a finding.
_SHOWN = 12

_VALUES, _STUCK, _PLACED = "committed_values_again", "committed_stuck", "committed_placed"
_SAME, _OVER, _OVERTAKEN = "committed_same", "committed_over", "committed_overtaken"
_TURNED, _REPEATS = "committed_turned_same", "committed_repeats"


def _ahead(offset: str) -> str:
    """More than one further than a commit, or one while the log goes on: a log may end with a control record."""
    return f"({offset} > committed_offset + 1 OR ({offset} = committed_offset + 1 AND log_end_offset > {offset}))"


# Offsets that a committer commits more than five times, while something is further.
_VALUES_SQL = f"""
    SELECT part, committer, committed_offset, count(*) AS same_commits FROM {BASE} GROUP BY ALL
    HAVING count(*) > 5 AND (max(below_highest) > 0 OR max(furthest_fetch) > committed_offset)"""
# Of a partition those of few.
_STUCK_SQL = f"""
    SELECT part, committer AS who FROM (
        SELECT part, committer, sum(same_commits) AS commits FROM {_VALUES} GROUP BY part, committer)
    QUALIFY row_number() OVER (PARTITION BY part ORDER BY commits DESC, committer) <= {_MOST_STUCK}"""
# All commits of these partitions: the place of each in the order of the broker, and in that of offsets.
_PLACED_SQL = f"""
    SELECT row, part, committer, reader, step, committed_offset, sent_ns, furthest_fetch, log_end_offset,
           row_number() OVER (PARTITION BY part ORDER BY step) AS place,
           row_number() OVER (PARTITION BY part ORDER BY committed_offset, step) AS height
    FROM {BASE} SEMI JOIN {_STUCK} USING (part)"""
# Beside each of these the last one with its offset (_1), and the first (_0).
_SAME_SQL = f"""
    SELECT *, lag(place) OVER one AS place_1, lag(sent_ns) OVER one AS sent_ns_1, lag(reader) OVER one AS reader_1,
           first_value(place) OVER one AS place_0, row_number() OVER one IN (1, same_commits) AS is_edge
    FROM {_PLACED} JOIN {_VALUES} USING (part, committer, committed_offset)
    WINDOW one AS (PARTITION BY part, committer, committed_offset ORDER BY step)"""
# The highest commit of its own since the last time, and of others since the first.
_OVER_SQL = f"""
    SELECT row, max(CASE WHEN is_own THEN height END) OVER (stuck ROWS BETWEEN since_1 PRECEDING AND 1 PRECEDING)
               AS own,
           max(CASE WHEN NOT is_own THEN height END) OVER (stuck ROWS BETWEEN since_0 PRECEDING AND 1 PRECEDING)
               AS others
    FROM (SELECT placed.row, placed.part, who, placed.place, placed.height, placed.committer = who AS is_own,
                 greatest(placed.place - coalesce(place_1, placed.place - 1) - 1, 1) AS since_1,
                 greatest(placed.place - coalesce(place_0, placed.place - 1) - 1, 1) AS since_0
          FROM {_PLACED} AS placed JOIN {_STUCK} USING (part)
              LEFT JOIN {_SAME} AS same ON placed.row = same.row AND same.committer = who)
    WINDOW stuck AS (PARTITION BY part, who ORDER BY place)
    QUALIFY is_own"""
# Where no commit was ahead, the fetch position may have been, and moved on since the last time.
_OVERTAKEN_SQL = f"""
    WITH returned AS (
        SELECT same.row, same.part, same.committer, same.reader, same.step, same.committed_offset, same.sent_ns,
               same.sent_ns_1, same.reader_1, same.same_commits, same.furthest_fetch, same.log_end_offset,
               others.committed_offset AS others_offset, others.row AS others_row, others.step AS others_step,
               own.committed_offset AS own_offset, own.row AS own_row, own.step AS own_step,
               others.reader = same.reader AS by_itself
        FROM {_SAME} AS same JOIN {_OVER} AS over USING (row)
            LEFT JOIN {_PLACED} AS others ON others.part = same.part AND others.height = over.others
            LEFT JOIN {_PLACED} AS own ON own.part = same.part AND own.height = over.own
        WHERE place_1 IS NOT NULL),
    ahead AS (
        SELECT *, {_ahead("others_offset")} AS by_others, {_ahead("own_offset")} AS by_own
        FROM returned),
    fetches AS (
        SELECT reader, at_ns, max(fetched) AS fetched FROM {FETCHED}
        SEMI JOIN (SELECT reader FROM {_SAME}) USING (reader) GROUP BY reader, at_ns),
    waiting AS (
        FROM ahead WHERE NOT coalesce(by_others OR by_own, false) AND furthest_fetch > committed_offset),
    positions AS (
        SELECT later.*, before.fetched AS fetched_1
        FROM (SELECT waiting.*, fetches.fetched FROM waiting
              ASOF JOIN fetches ON waiting.reader = fetches.reader AND waiting.sent_ns >= fetches.at_ns) AS later
        ASOF JOIN fetches AS before ON later.reader_1 = before.reader AND later.sent_ns_1 >= before.at_ns)
    SELECT row, part, committer, reader, step, committed_offset, sent_ns, sent_ns_1, same_commits,
           CASE WHEN by_others THEN others_step ELSE own_step END AS ahead_step,
           CASE WHEN by_others THEN others_row ELSE own_row END AS ahead_row,
           CASE WHEN by_others THEN others_offset ELSE own_offset END AS ahead_offset,
           CASE WHEN by_others THEN by_itself ELSE true END AS by_itself
    FROM ahead WHERE by_others OR by_own
    UNION ALL BY NAME
    SELECT row, part, committer, reader, step, committed_offset, sent_ns, sent_ns_1, same_commits,
           fetched AS ahead_offset
    FROM positions WHERE fetched > fetched_1 AND {_ahead("fetched")}"""
# Of each offset the first and the last returns, and the one with the furthest ahead: a finding shows no more.
_REPEATS_SQL = f"""
    SELECT *, row_number() OVER own AS nth, count(*) OVER one AS same_returns,
           count(ahead_row) OVER one AS same_overtaken, row_number() OVER (one ORDER BY ahead_offset DESC, step) AS rank
    FROM {_OVERTAKEN} ANTI JOIN {_TURNED} USING (row)
    WINDOW one AS (PARTITION BY part, committer, committed_offset), own AS (one ORDER BY step)
    QUALIFY nth <= {_SHOWN} OR nth > same_returns - {_SHOWN} OR rank = 1"""


def repeats(con: duckdb.DuckDBPyConnection, stack: ExitStack, reading: Reading) -> Iterator[str]:
    """SELECTs; none where nobody repeats an offset. stack: drops what they read."""
    if not has_rows(con, made(con, stack, _VALUES, _VALUES_SQL)):
        return
    with ExitStack() as own:
        made(con, own, _STUCK, _STUCK_SQL)
        made(con, own, _PLACED, _PLACED_SQL)
        made(con, stack, _SAME, _SAME_SQL)
        made(con, own, _OVER, _OVER_SQL)
        reading.make()
        made(con, stack, _OVERTAKEN, _OVERTAKEN_SQL)
    asks = f"SELECT row, reader, sent_ns_1 AS since_ns, sent_ns AS at_ns, committed_offset AS stored FROM {_OVERTAKEN}"
    reading.turned(_TURNED, f"{asks} WHERE by_itself")
    made(con, stack, _REPEATS, _REPEATS_SQL)
    yield f"""
        SELECT row, ahead_step, ahead_offset, same_commits, same_returns, same_overtaken, true AS near_repeat
        FROM {_REPEATS}"""
    yield f"SELECT ahead_row AS row, true AS near_repeat FROM {_REPEATS} WHERE ahead_row IS NOT NULL"
    yield f"""
        SELECT row, true AS near_repeat FROM {_SAME} SEMI JOIN {_REPEATS} USING (part, committer, committed_offset)
        WHERE is_edge"""
