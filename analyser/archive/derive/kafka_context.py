"""The context of commits and fetches over months: only hours are read whose rows can come out otherwise.

In: a change that has all base rows, and who works. Out: hours, and the commits and fetches of such hours made anew by
`analyser/context/enrich.py`, some hours of one of both tables in each task.

What a row takes from far away is little, and each hour tells it in few rows (SUMMARIES): which generations were heard
of and when, last heartbeats, assignments, log ends, lost bytes, who committed and fetched under which name. A row comes
out otherwise only
- in an hour with other parts, or beside one with other fetches, since they count for some seconds;
- behind a log end or lost bytes that are new;
- while another member owns the partition than the last run thought (a later heartbeat can take back a doubt);
- where its client was taken for one of another group.
So owners, clients and lost bytes of the whole dataset are kept and compared with those of the next run.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import duckdb

from analyser.archive.dataset.change import Change
from analyser.archive.dataset.part import Part
from analyser.archive.dataset.sight import Sight
from analyser.archive.derive.derived import (
    Hour,
    among,
    change_connection,
    hour_of,
    hour_of_ns,
    parts_by_hour,
    replace_changed_hours,
    rows_of,
    together,
    view_of,
)
from analyser.archive.derive.hour_summaries import (
    Anew,
    HourSummary,
    differing,
    kept,
    make_summaries,
    remember,
    summarised,
)
from analyser.archive.derive.lags import DELETED_OF_HOURS, ENDS_OF_HOURS, TOPICS_OF_HOURS
from analyser.archive.derive.tasks import each_of
from analyser.archive.spark.workers import HERE, Workers
from analyser.context.commit_steps import CLIENTS_SQL, FETCHES_SQL, GAPS_SQL
from analyser.context.enrich import enrich
from analyser.context.losses import is_lost
from analyser.context.ownership import OWNERSHIP_SQL
from analyser.context.stage import OFFSETS, TITLES
from analyser.registry.queries import literal

# As it is seen in Spark.
STAGE = f"context: {TITLES[OFFSETS.makes]}"
COMMITS, FETCHES = "kafka_offset_commits", "kafka_fetch_partitions"
_EVER = 2**63 - 1
# Of what DuckDB has of memory in a task, beside what it has in `analyse`.
_MEMORY = 3
_HOUR = hour_of("ts")
_AT = "coalesce(ts_response, ts)"
_MEMBER = "cluster_id, group_id, member_id"
_BEAT = "event = 'consumer_heartbeat' AND coalesce(error_code = 0, false) AND member_id IS NOT NULL"
_STEP = f"coalesce(error_code = 0, false) AND (event = 'leave' OR ({_BEAT} AND generation < 0))"

_ASSIGNMENTS = HourSummary(
    "context_assignments_of_hours",
    ("kafka_assignments",),
    f"""
    SELECT {_HOUR} AS hour, ts, exchange_id, cluster_id, group_id, generation, member_id, topic, topic_id, partition,
           source
    FROM kafka_assignments""",
)
# Of heartbeats those count that tell of a generation or a client first, and the last two before lost bytes: those of
# the hour for bytes that are lost later. Answers that come in another hour stay.
_EVENTS = HourSummary(
    "context_events_of_hours",
    ("kafka_group_events", "expert_infos"),
    f"""
    WITH events AS (
        SELECT *, {_HOUR} AS hour, {_AT} AS answered, {hour_of(_AT)} <> {_HOUR} AS late FROM kafka_group_events
        WHERE group_id IS NOT NULL AND event <> 'describe'),
    gaps AS (SELECT DISTINCT ts AS gap FROM expert_infos WHERE {is_lost("expert_infos")}),
    beats AS (
        SELECT *, lead(answered, 2) OVER own AS next_but_one FROM events WHERE {_BEAT} AND NOT ({_STEP})
        WINDOW own AS (PARTITION BY hour, {_MEMBER}, late ORDER BY answered))
    SELECT hour, min(answered) AS ts, NULL::TIMESTAMPTZ_NS AS ts_response, NULL AS exchange_id, cluster_id, group_id,
           event, member_id, client_id, client_address, generation, CASE WHEN error_code = 0 THEN 0 END AS error_code
    FROM events WHERE NOT ({_BEAT}) AND NOT ({_STEP})
    GROUP BY ALL
    UNION ALL
    SELECT hour, ts, ts_response, exchange_id, cluster_id, group_id, event, member_id, client_id, client_address,
           generation, error_code
    FROM events WHERE {_STEP}
    UNION ALL
    SELECT hour, ts, ts_response, NULL, cluster_id, group_id, event, member_id, client_id, client_address, generation,
           error_code
    FROM beats ASOF LEFT JOIN gaps ON coalesce(next_but_one, answered) > gap
    QUALIFY late OR next_but_one IS NULL OR gap >= answered OR row_number() OVER (
        PARTITION BY hour, {_MEMBER}, client_id, client_address, generation ORDER BY answered) = 1""",
)
_COMMITS = HourSummary(
    "context_commits_of_hours",
    (COMMITS,),
    f"""
    SELECT {_HOUR} AS hour, min(ts) AS ts, cluster_id, group_id, member_id, client_id, client_address, generation,
           CASE WHEN error_code = 0 THEN 0 END AS error_code
    FROM {COMMITS} WHERE group_id IS NOT NULL GROUP BY ALL""",
)
_FETCHERS = HourSummary(
    "context_fetchers_of_hours",
    (FETCHES,),
    f"""
    SELECT DISTINCT {_HOUR} AS hour, coalesce(cluster_id, '') AS cluster, coalesce(client_address, '') AS address,
           coalesce(client_id, '') AS client_id
    FROM {FETCHES}""",
)
_LOST = HourSummary(
    "context_lost_of_hours",
    ("expert_infos",),
    f"""
    SELECT DISTINCT {_HOUR} AS hour, ts, "group", code, flow_id FROM expert_infos WHERE {is_lost("expert_infos")}""",
)
SUMMARIES = (_ASSIGNMENTS, _EVENTS, _COMMITS, _FETCHERS, _LOST, ENDS_OF_HOURS, TOPICS_OF_HOURS, DELETED_OF_HOURS)
TABLES = tuple(dict.fromkeys(table for summary in SUMMARIES for table in summary.tables))

# The rows of the log ends as fetches of a broker, which nobody takes for a consumer.
_ENDS_AS_FETCHES = f"""
    SELECT hour, make_timestamp_ns(at_ns)::TIMESTAMPTZ_NS AS ts, nullif(cluster, '') AS cluster_id,
           nullif(topic, '') AS topic, topic_id, partition, log_end AS high_watermark, 0 AS replica_id
    FROM {ENDS_OF_HOURS.name}"""

# What the whole dataset tells of: kept, and compared with what the last run kept.
_KNOWN = {
    "context_known_gaps": GAPS_SQL,
    "context_known_clients": CLIENTS_SQL,
    "context_known_owners": OWNERSHIP_SQL,
}
_CLIENT = "cluster, address, client_id"
_OTHER_CLIENTS = f"""
    SELECT DISTINCT hour FROM {_FETCHERS.name} SEMI JOIN (
        (FROM context_known_clients EXCEPT FROM context_known_clients_before) UNION ALL
        (FROM context_known_clients_before EXCEPT FROM context_known_clients)) USING ({_CLIENT})"""
_OWNED = "cluster, group_id, topic, partition, member_id, began"
# An interval that ends at another time matters between both ends; one that is new or gone, from its begin.
_OTHER_OWNERS = f"""
    SELECT DISTINCT {hour_of_ns("since")} AS first, {hour_of_ns("until")} AS last FROM (
        SELECT CASE WHEN was.here AND now.here THEN least(was.until, now.until) ELSE began END AS since,
               CASE WHEN was.here AND now.here THEN greatest(was.until, now.until) ELSE {_EVER} END AS until
        FROM (SELECT {_OWNED}, coalesce(ended, {_EVER}) AS until, true AS here
              FROM (FROM context_known_owners_before EXCEPT FROM context_known_owners)) AS was
        FULL JOIN (SELECT {_OWNED}, coalesce(ended, {_EVER}) AS until, true AS here
                   FROM (FROM context_known_owners EXCEPT FROM context_known_owners_before)) AS now USING ({_OWNED}))"""


def hours_to_make(change: Change, workers: Workers = HERE) -> list[set[Hour]]:
    """Hours whose commits or fetches can come out otherwise than they lie there, as many at a time as is good."""
    anew = summarised(change, workers, STAGE, SUMMARIES)
    (hours,) = each_of(change, workers, f"{STAGE}, what all hours tell", _hours_to_make, [anew])
    return hours


def make_hours(change: Change, workers: Workers, made: Sequence[set[Hour]]) -> dict[str, set[Hour]]:
    """Make commits and fetches of these hours anew; table -> hours that were written."""
    units = [(table, hours) for hours in made for table in OFFSETS.makes]
    written: dict[str, set[Hour]] = {table: set() for table in OFFSETS.makes}
    for (table, _), hours in zip(units, each_of(change, workers, STAGE, _make_hours, units), strict=True):
        written[table] |= hours
    return written


def _hours_to_make(sight: Sight, anew: Anew) -> list[set[Hour]]:
    parts = parts_by_hour(sight.parts(), (COMMITS, FETCHES))
    with change_connection(sight) as con:
        make_summaries(con, sight, anew)
        con.execute(f"CREATE TEMP VIEW in_flows AS {rows_of(sight, 'flows')}")
        _knowledge(con, "in_")
        con.execute(f"CREATE TEMP VIEW context_base AS FROM in_{COMMITS}")
        for name, query in _KNOWN.items():
            con.execute(f"CREATE TEMP TABLE {name} AS {query.replace('context_gaps', 'context_known_gaps')}")
        known = [remember(con, sight, name) for name in _KNOWN]
        if not all(known):
            hours = set(parts)
        else:
            hours = anew[_COMMITS] | _beside(anew[_FETCHERS] | anew[ENDS_OF_HOURS] | _hours(con, _OTHER_CLIENTS))
            hours |= _behind(con, anew, set(parts)) | _while_owned(con, set(parts))
    return [made for made, _ in together({hour: parts[hour] for hour in hours if hour in parts})]


def _make_hours(sight: Sight, unit: tuple[str, set[Hour]]) -> set[Hour]:
    """One of both tables. A fetch gets the group of its client, a commit what the stage joins to it."""
    table, made = unit
    parts = parts_by_hour(sight.parts(), (*TABLES, "flows"))
    own = [part for hour in made for part in parts.get(hour, ()) if part.table == table]
    with change_connection(sight) as con:
        if table == FETCHES:
            clients = f"read_parquet({literal(kept(sight, 'context_known_clients'))})"
            con.execute(f"CREATE TEMP VIEW context_clients AS FROM {clients}")
            con.execute(f"CREATE TEMP VIEW in_{FETCHES} AS {rows_of(sight, FETCHES, own, hidden=True)}")
            return replace_changed_hours(con, sight, table, f"FROM ({FETCHES_SQL})", made, is_cheap=True)
        _make_views(con, sight, parts, made)
        enrich(con, memory=_MEMORY)
        rows = f"FROM {table} WHERE filename IS NOT NULL AND {among(_HOUR, made)}"
        return replace_changed_hours(con, sight, table, rows, made, is_cheap=True)


def _make_views(
    con: duckdb.DuckDBPyConnection, sight: Sight, parts: Mapping[Hour, Sequence[Part]], made: set[Hour]
) -> None:
    """The views that `enrich` reads, with whole rows of these hours. Whole rows have a `filename`."""
    for summary in SUMMARIES:
        source = f"FROM read_parquet({literal(kept(sight, summary.name))})"
        con.execute(f"CREATE TEMP VIEW {summary.name} AS {source}")
    near = _beside(made)
    commits, around = ([part for hour in some for part in parts.get(hour, ())] for some in (made, near))
    _knowledge(con, whole=rows_of(sight, COMMITS, commits, hidden=True), without=made)
    con.execute(
        f"CREATE TEMP VIEW {FETCHES} AS FROM ({rows_of(sight, FETCHES, around)}) UNION ALL BY NAME "
        f"SELECT * EXCLUDE hour FROM ({_ENDS_AS_FETCHES}) WHERE NOT {among('hour', near)}"
    )
    for table in ("kafka_list_offsets", "kafka_produce_batches", "kafka_transactions"):
        view_of(con, sight, table, around)
    view_of(con, sight, "flows")


def _knowledge(
    con: duckdb.DuckDBPyConnection, prefix: str = "", *, whole: str | None = None, without: Collection[Hour] = ()
) -> None:
    """Views of what the summaries hold, as the context reads it. whole: commits that stand for those of some hours."""
    for name, summary in (
        ("kafka_assignments", _ASSIGNMENTS),
        ("kafka_group_events", _EVENTS),
        ("expert_infos", _LOST),
        ("kafka_partitions", TOPICS_OF_HOURS),
        ("kafka_admin_changes", DELETED_OF_HOURS),
    ):
        con.execute(f"CREATE TEMP VIEW {prefix}{name} AS SELECT * EXCLUDE hour FROM {summary.name}")
    commits = f"SELECT * EXCLUDE hour FROM {_COMMITS.name} WHERE NOT {among('hour', without)}"
    both = commits if whole is None else f"FROM ({whole}) UNION ALL BY NAME {commits}"
    con.execute(f"CREATE TEMP VIEW {prefix}{COMMITS} AS {both}")


def _beside(hours: set[Hour]) -> set[Hour]:
    return hours | {hour + by for hour in hours if hour is not None for by in (-1, 1)}


def _behind(con: duckdb.DuckDBPyConnection, anew: Anew, there: set[Hour]) -> set[Hour]:
    """Hours from the first log end or lost bytes on that the last run did not know."""
    gaps = " UNION ALL ".join(
        f"(SELECT {hour_of_ns('at_ns')} AS at_hour FROM (FROM {one} EXCEPT FROM {other}))"
        for one, other in (
            ("context_known_gaps", "context_known_gaps_before"),
            ("context_known_gaps_before", "context_known_gaps"),
        )
    )
    ends = " UNION ALL ".join(
        f"SELECT at_hour FROM ({differing(summary, anew[summary])})"
        for summary in (ENDS_OF_HOURS, TOPICS_OF_HOURS, DELETED_OF_HOURS)
    )
    first = con.execute(f"SELECT min(at_hour) FROM ({ends} UNION ALL {gaps})").fetchall()[0][0]
    return set() if first is None else {hour for hour in there if hour is not None and hour >= first}


def _while_owned(con: duckdb.DuckDBPyConnection, there: set[Hour]) -> set[Hour]:
    """Hours in which the owner of a partition may be another than the last run knew."""
    ranges = con.execute(f"SELECT first, max(last) FROM ({_OTHER_OWNERS}) GROUP BY first").fetchall()
    return {hour for hour in there if hour is not None and any(first <= hour <= last for first, last in ranges)}


def _hours(con: duckdb.DuckDBPyConnection, query: str) -> set[Hour]:
    return {None if hour is None else int(hour) for (hour,) in con.execute(query).fetchall()}
