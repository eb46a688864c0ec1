"""The table `kafka_lag_minutes`: how far each group was behind on each partition, minute by minute, and who committed.

In: a change whose commits have their context, and who works. Out: the table's parts of the hours that came out
otherwise. A minute has a row where the group committed, was told its offset, or the log's end was seen, so a group that
stopped committing shows as growing lag.

What an hour needs of those before it are the last commits, told offsets and log ends, and what was deleted. They are
kept for each hour, so that a run reads the hours that changed and those behind the first change that matters to them.
"""

from __future__ import annotations

from typing import TypeAlias

import duckdb

from wirewitness.analyser.archive.aggregate.derived import (
    Hour,
    among,
    change_connection,
    hour_of,
    hour_of_ns,
    parts_by_hour,
    replace_changed_hours,
    together,
    view_of,
)
from wirewitness.analyser.archive.aggregate.hour_summaries import (
    Anew,
    HourSummary,
    differing,
    make_summaries,
    summarised,
)
from wirewitness.analyser.archive.aggregate.tasks import each_of
from wirewitness.analyser.archive.dataset.change import Change
from wirewitness.analyser.archive.dataset.snapshot import Snapshot
from wirewitness.analyser.archive.spark.workers import HERE, Workers
from wirewitness.analyser.kafka.facts.committed import COMMITS, LAST_READ, READS, STORED, STORED_TABLES
from wirewitness.analyser.kafka.facts.committed_steps import GROUP
from wirewitness.analyser.kafka.facts.lag import LAG_ROWS, LAG_STEPS, gone_steps
from wirewitness.analyser.kafka.facts.log_ends import LIVES, LOG_STEPS, PARTITION

TABLE = "kafka_lag_minutes"
# As it is seen in Spark.
STAGE = "aggregates: lag of groups, minute by minute"
MINUTE_NS = 60_000_000_000
_MINUTE = f"(at_ns - at_ns % {MINUTE_NS})"
# What the context adds to a commit can be taken back by later packets; nothing here shows it.
_COMMITS = f"""
    SELECT * REPLACE (NULL::BIGINT AS log_end_offset, NULL::VARCHAR AS owner_member_id), {hour_of("ts")} AS hour
    FROM ({COMMITS}) WHERE (taken OR refused) AND partition IS NOT NULL"""
_READS = f"SELECT *, {hour_of('ts')} AS hour FROM ({READS}) WHERE partition IS NOT NULL"

# `at_hour` is the hour of the answer; the rows lie in the hour of the request.
COMMITS_OF_HOURS = HourSummary(
    "lag_commits_of_hours",
    ("kafka_offset_commits",),
    f"""
    SELECT hour, {hour_of_ns("at_ns")} AS at_hour, {GROUP}, {STORED} FILTER (taken) AS stored
    FROM ({_COMMITS}) GROUP BY ALL""",
)
READS_OF_HOURS = HourSummary(
    "lag_reads_of_hours",
    ("kafka_offset_fetches",),
    f"SELECT hour, {hour_of_ns('at_ns')} AS at_hour, {GROUP}, {LAST_READ} AS read FROM ({_READS}) GROUP BY ALL",
)
# The last step of each hour, which holds in those behind it.
ENDS_OF_HOURS = HourSummary(
    "log_ends_of_hours",
    ("kafka_log_ends",),
    f"""
    SELECT {hour_of_ns("at_ns")} AS hour, hour AS at_hour, {PARTITION},
           unnest(arg_max(struct_pack(incarnation, at_ns, last_ns, log_end, log_start), at_ns))
    FROM ({LOG_STEPS}) GROUP BY {hour_of_ns("at_ns")}, {PARTITION}""",
)
TOPICS_OF_HOURS = HourSummary(
    "topics_of_hours", ("kafka_topics",), f"SELECT {hour_of('ts')} AS hour, hour AS at_hour, * FROM kafka_topics"
)
# All that DELETED_GROUPS and DELETED_OFFSETS need.
DELETED_OF_HOURS = HourSummary(
    "deleted_of_hours",
    ("kafka_admin_changes",),
    f"""
    SELECT {hour_of("ts")} AS hour, {hour_of("coalesce(ts_response, ts)")} AS at_hour, ts, ts_response, cluster_id,
           operation, resource_name, change, error_code, validate_only
    FROM kafka_admin_changes
    WHERE error_code = 0 AND operation IN ('DeleteGroups', 'OffsetDelete')""",
)
_SUMMARIES = (COMMITS_OF_HOURS, READS_OF_HOURS, ENDS_OF_HOURS, TOPICS_OF_HOURS, DELETED_OF_HOURS)

_STEP = f"{PARTITION}, incarnation, at_ns, last_ns, log_end, log_start"
_TOLD = f"""
    SELECT {_STEP}, true AS here FROM ({LOG_STEPS}) WHERE {{made}}
    UNION ALL
    SELECT {_STEP}, false FROM {ENDS_OF_HOURS.name} WHERE {{earlier}}"""
# What minutes of the hours that are made need: their own rows, and the last ones of each hour before.
_ROWS_READ = {
    "lag_commits": f"""
        SELECT * EXCLUDE (hour), {_MINUTE} AS bin, true AS here FROM ({_COMMITS}) WHERE {{made}}
        UNION ALL BY NAME
        SELECT *, {_MINUTE} AS bin FROM (
            SELECT {GROUP}, true AS accepted, true AS taken, false AS here, unnest(stored)
            FROM {COMMITS_OF_HOURS.name} WHERE {{earlier}} AND stored IS NOT NULL)""",
    "lag_reads": f"""
        SELECT * EXCLUDE (hour), {_MINUTE} AS bin, true AS here FROM ({_READS}) WHERE {{made}}
        UNION ALL BY NAME
        SELECT *, {_MINUTE} AS bin FROM (
            SELECT {GROUP}, false AS here, unnest(read) FROM {READS_OF_HOURS.name} WHERE {{earlier}})""",
    "lag_ends": f"SELECT *, {_MINUTE} AS bin FROM ({_TOLD})",
}
_ROWS = f"""
    SELECT make_timestamp_ns(bin)::TIMESTAMPTZ_NS AS ts, cluster_id, group_id, topic, partition, committed_offset,
           make_timestamp_ns(stored_ns)::TIMESTAMPTZ_NS AS ts_commit, log_end_offset, lag, member_id, client_id,
           client_address, generation, accepted AS commits, refused AS rejected, committers, lowest_offset,
           highest_offset
    FROM ({LAG_ROWS}) WHERE committed_offset IS NOT NULL"""


def run_lags(change: Change, workers: Workers = HERE) -> set[Hour]:
    """Make the rows of all hours anew that can have changed; the hours that were written."""
    if not any(change.parts(table) for table in (*STORED_TABLES, TABLE)):
        return set()
    anew = summarised(change, workers, STAGE, _SUMMARIES)
    (units,) = each_of(change, workers, f"{STAGE}, what all hours tell", _hours_to_make, [anew])
    return set().union(*each_of(change, workers, STAGE, _make_hours, units))


# Hours to make, with the hours of the parts that hold what they are made of.
_Unit: TypeAlias = tuple[set[Hour], set[Hour]]
_TABLES = tuple(table for summary in _SUMMARIES for table in summary.tables)


def _hours_to_make(snapshot: Snapshot, anew: Anew) -> list[_Unit]:
    with change_connection(snapshot) as con:
        make_summaries(con, snapshot, anew)
        hours, lie_in = _touched(con, snapshot, anew), _lie_in(con)
    sources = parts_by_hour(snapshot.parts(), _TABLES)
    needed = {hour: [part for one in lie_in.get(hour, ()) for part in sources[one]] for hour in hours}
    made = [some for some, _ in together(needed)]
    return [(some, set().union(*(lie_in.get(hour, ()) for hour in some))) for some in made]


def _make_hours(snapshot: Snapshot, unit: _Unit) -> set[Hour]:
    made, lie_in = unit
    whole = f"""
        WITH kafka_topics AS (FROM {TOPICS_OF_HOURS.name}),
        kafka_admin_changes AS (FROM {DELETED_OF_HOURS.name})"""
    sources = parts_by_hour(snapshot.parts(), _TABLES)
    parts = [part for hour in lie_in for part in sources[hour]]
    with change_connection(snapshot) as con:
        make_summaries(con, snapshot, {one: set() for one in _SUMMARIES})
        for name, query in {"lag_lives": LIVES, **gone_steps(_MINUTE)}.items():
            con.execute(f"CREATE TEMP TABLE {name} AS {whole} {query}")
        for table in _TABLES:
            view_of(con, snapshot, table, parts)
        for name, query in _ROWS_READ.items():
            con.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS {query.format_map(_conditions(made))}")
        for name, query in LAG_STEPS.items():
            con.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {query}")
        return replace_changed_hours(con, snapshot, TABLE, _ROWS, made)


def _touched(con: duckdb.DuckDBPyConnection, change: Snapshot, anew: Anew) -> set[Hour]:
    """Hours whose rows can have changed: those of answers of changed hours, and all behind another last row."""
    found: set[Hour] = set()
    for summary, hours in anew.items():
        both = f"(SELECT * FROM {summary.name} WHERE {among('hour', hours)} UNION ALL FROM {summary.before})"
        found |= {int(one) for (one,) in con.execute(f"SELECT DISTINCT at_hour FROM {both}").fetchall()}
    others = " UNION ALL ".join(f"SELECT at_hour FROM ({differing(*one)})" for one in anew.items())
    first = con.execute(f"SELECT min(at_hour) FROM ({others})").fetchall()[0][0]
    if first is not None:
        there = parts_by_hour(change.parts(TABLE), [TABLE]).keys()
        found |= {hour for hour in there | _lie_in(con).keys() if hour is not None and hour >= first}
    return found


def _lie_in(con: duckdb.DuckDBPyConnection) -> dict[Hour, set[Hour]]:
    """Hours of answers -> hours of the parts that hold them."""
    every = " UNION ".join(f"SELECT at_hour, hour FROM {summary.name}" for summary in _SUMMARIES)
    found: dict[Hour, set[Hour]] = {}
    for at_hour, hour in con.execute(every).fetchall():
        found.setdefault(int(at_hour), set()).add(None if hour is None else int(hour))
    return found


def _conditions(made: set[Hour]) -> dict[str, str]:
    last = max(hour for hour in made if hour is not None)
    return {
        "made": among(hour_of_ns("at_ns"), made),
        "earlier": f"at_hour < {last} AND NOT {among('at_hour', made)}",
    }
