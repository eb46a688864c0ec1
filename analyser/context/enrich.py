"""The context columns of commits and fetches.

In: a connection with views of the Kafka tables, `cluster_id` and `topic` filled in. Out: the views
`kafka_offset_commits` and `kafka_fetch_partitions` replaced by ones whose context columns are filled in. Rows that the
caller holds are never joined for that: they get other columns (`added.py`).

Everything is a join in DuckDB, as of the time of the row, so memory is DuckDB's limit and it may spill. Times are
compared as Unix ns. An unknown cluster is a cluster of its own (''), never a wildcard.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa

from analyser.context.added import numbered, with_columns
from analyser.context.log_ends import END_TABLES, KEPT_BEFORE, LOG_ENDS, SECOND, TOPIC_LIVES, with_life
from analyser.context.losses import is_lost
from analyser.context.ownership import OWNERSHIP_SQL
from analyser.context.stage import NOTHING, Held
from analyser.context.steps import steps_made
from analyser.context.topics import has_rows, views
from analyser.registry.queries import keep, null_columns

# A member that fetched a partition this long before a commit counts as reading it then: an idle Fetch waits at the
# broker for half a second (fetch.max.wait.ms), and processing takes its time. The committer itself counts as reading if
# it fetches this long after the commit, too: the capture may lack what it did before.
FETCHED_LATELY_NS = 5_000_000_000

COMMITS, FETCHES = "kafka_offset_commits", "kafka_fetch_partitions"

_READS = (
    "flows",
    "expert_infos",
    "kafka_assignments",
    "kafka_group_events",
    "kafka_offset_commits",
    *END_TABLES,
)

# Where bytes of clients are missing.
GAPS_SQL = f"""
    SELECT DISTINCT flows.client_address AS address, epoch_ns(gaps.ts) AS at_ns, gaps.ts
    FROM in_expert_infos AS gaps JOIN in_flows AS flows USING (flow_id)
    WHERE {is_lost("gaps")}"""
# Clients that belong to one group only: their Fetch requests, which name no group, are this group's.
CLIENTS_SQL = """
    SELECT cluster, coalesce(client_address, '') AS address, coalesce(client_id, '') AS client_id,
           min(group_id) AS group_id, CASE WHEN count(DISTINCT member_id) = 1 THEN min(member_id) END AS member_id
    FROM (
        SELECT coalesce(cluster_id, '') AS cluster, client_address, client_id, group_id,
               nullif(member_id, '') AS member_id
        FROM context_base
        UNION ALL
        SELECT coalesce(cluster_id, ''), client_address, client_id, group_id, nullif(member_id, '')
        FROM in_kafka_group_events WHERE event <> 'describe')
    WHERE group_id IS NOT NULL
    GROUP BY 1, 2, 3 HAVING count(DISTINCT group_id) = 1"""

_KEYS_SQL = with_life(
    """
    SELECT base.row, part, log, cluster, parts.topic, base.topic_id, epoch_ns(ts) AS at_ns
    FROM context_base AS base JOIN context_parts AS parts
        ON coalesce(base.cluster_id, '') = parts.cluster AND coalesce(base.group_id, '') = parts.group_id
        AND coalesce(base.topic, base.topic_id, '') = parts.topic AND base.partition = parts.partition""",
    "context_lives",
)

# Every step makes one temporary table; `in_<table>` is the view of a table before this stage. Keys become numbers
# (`part` for a partition of a group, `log` for a partition) and rows are joined by number, so that what must be sorted
# is narrow: whole rows through five joins would not fit into a small memory limit.
_STEPS = {
    "context_parts": """
        SELECT row_number() OVER () AS part, dense_rank() OVER (ORDER BY cluster, topic, partition) AS log, *
        FROM (SELECT DISTINCT coalesce(cluster_id, '') AS cluster, coalesce(group_id, '') AS group_id,
                     coalesce(topic, topic_id, '') AS topic, partition FROM context_base)""",
    "context_lives": f"""
        WITH kafka_partitions AS (FROM in_kafka_partitions),
        kafka_admin_changes AS (FROM in_kafka_admin_changes) {TOPIC_LIVES}""",
    "context_keys": f"SELECT row, part, log, life, at_ns FROM ({_KEYS_SQL})",
    "context_gaps": GAPS_SQL,
    "context_ownership": f"""
        SELECT part, began, min(member_id) AS member_id, arg_min(coalesce(ended, {2**63 - 1}), member_id) AS ended
        FROM ({OWNERSHIP_SQL}) JOIN context_parts USING (cluster, group_id, topic, partition) GROUP BY part, began""",
    "context_owners": """
        SELECT keys.row, owners.member_id
        FROM context_keys AS keys ASOF JOIN context_ownership AS owners
            ON keys.part = owners.part AND keys.at_ns >= owners.began
        WHERE keys.at_ns < owners.ended""",
    # Only for commits whose owner no assignment tells: consumers that are one member of the group, and what they fetch.
    # The committer's own fetches decide, so nothing is concluded where some of them may be missing.
    "context_unowned": """
        SELECT keys.*, nullif(base.member_id, '') AS member_id
        FROM context_keys AS keys JOIN context_base AS base ON keys.row = base.row
        ANTI JOIN context_owners AS owners ON keys.row = owners.row""",
    "context_fetchers": """
        SELECT DISTINCT part, clients.member_id, epoch_ns(ts) AS at_ns
        FROM in_kafka_fetch_partitions AS fetches
        JOIN context_clients AS clients
            ON coalesce(fetches.cluster_id, '') = clients.cluster AND clients.member_id IS NOT NULL
            AND coalesce(fetches.client_address, '') = clients.address
            AND coalesce(fetches.client_id, '') = clients.client_id
        JOIN (FROM context_parts SEMI JOIN context_unowned USING (part)) AS parts
            ON clients.cluster = parts.cluster AND clients.group_id = parts.group_id
            AND coalesce(fetches.topic, fetches.topic_id, '') = parts.topic AND fetches.partition = parts.partition
        WHERE coalesce(replica_id, -1) < 0""",
    "context_client_gaps": """
        SELECT keys.row, gaps.ts
        FROM (SELECT keys.row, keys.at_ns, base.client_address AS address
              FROM context_keys AS keys JOIN context_base AS base ON keys.row = base.row
              WHERE EXISTS (FROM context_gaps)) AS keys
        ASOF JOIN context_gaps AS gaps ON keys.address = gaps.address AND keys.at_ns >= gaps.at_ns""",
    "context_others": f"""
        SELECT keys.row, keys.part, keys.at_ns, keys.member_id, others.member_id AS other_id
        FROM context_unowned AS keys
        ASOF JOIN (SELECT part, at_ns, min(member_id) AS member_id FROM context_fetchers GROUP BY ALL) AS others
            ON keys.part = others.part AND keys.at_ns >= others.at_ns
        LEFT JOIN context_client_gaps AS gaps ON keys.row = gaps.row
        WHERE others.at_ns >= keys.at_ns - {FETCHED_LATELY_NS}
            AND coalesce(epoch_ns(gaps.ts) < keys.at_ns - {FETCHED_LATELY_NS}, true)""",
    "context_own_before": """
        SELECT keys.*, own.at_ns AS before_ns
        FROM context_others AS keys
        ASOF LEFT JOIN context_fetchers AS own
            ON keys.part = own.part AND keys.member_id = own.member_id AND keys.at_ns >= own.at_ns""",
    "context_readers": f"""
        SELECT keys.row, CASE WHEN before_ns >= keys.at_ns - {FETCHED_LATELY_NS}
                                OR next.at_ns <= keys.at_ns + {FETCHED_LATELY_NS} THEN keys.member_id
                              ELSE other_id END AS member_id
        FROM context_own_before AS keys
        ASOF LEFT JOIN context_fetchers AS next
            ON keys.part = next.part AND keys.member_id = next.member_id AND keys.at_ns < next.at_ns""",
    # An answer that repeats an end of its second changes nothing.
    "context_told_ends": f"""
        WITH {", ".join(f"{table} AS (FROM in_{table})" for table in END_TABLES)}
        SELECT log, life, {SECOND} AS second, log_end, min(at_ns) AS at_ns
        FROM ({with_life(LOG_ENDS, "context_lives")})
            JOIN (SELECT DISTINCT log, cluster, topic, partition FROM context_parts) USING (cluster, topic, partition)
        GROUP BY ALL""",
    "context_kept_ends": f"""
        SELECT log, life, second, max(highest) OVER (PARTITION BY log, life {KEPT_BEFORE}) AS kept
        FROM (SELECT log, life, second, max(log_end) AS highest FROM context_told_ends GROUP BY ALL)""",
    "context_known_ends": """
        SELECT log, life, at_ns,
               greatest(kept, max(log_end) OVER (PARTITION BY log, life, second ORDER BY at_ns)) AS log_end
        FROM context_told_ends JOIN context_kept_ends USING (log, life, second)""",
    "context_log_ends": """
        SELECT keys.row, ends.log_end
        FROM context_keys AS keys ASOF JOIN context_known_ends AS ends
            ON keys.log = ends.log AND keys.life = ends.life AND keys.at_ns >= ends.at_ns""",
}
# So many rows of commits get their columns at a time: what is joined for them takes some 50 MiB.
ROWS_AT_A_TIME = 1 << 18
# What each row of `context_base` gets, in its order, of those rows that `some` says.
_COLUMNS = """
    SELECT coalesce(owners.member_id, readers.member_id) AS owner_member_id,
           CASE WHEN owners.row IS NOT NULL THEN 'high' WHEN readers.row IS NOT NULL THEN 'low' END
               AS ownership_confidence,
           ends.log_end AS log_end_offset,
           gaps.ts::TIMESTAMPTZ_NS AS client_gap_ts
    FROM (SELECT row FROM context_base WHERE {some}) AS base
    LEFT JOIN (FROM context_owners WHERE {some}) AS owners ON base.row = owners.row
    LEFT JOIN (FROM context_readers WHERE {some}) AS readers ON base.row = readers.row
    LEFT JOIN (FROM context_log_ends WHERE {some}) AS ends ON base.row = ends.row
    LEFT JOIN (FROM context_client_gaps WHERE {some}) AS gaps ON base.row = gaps.row
    ORDER BY base.row"""
_ALL_COLUMNS = _COLUMNS.format(some="true")
_CONTEXT = ("owner_member_id", "ownership_confidence", "log_end_offset", "client_gap_ts")
# Planning takes longer than running on a small capture: without assignments nobody owns anything.
_NO_OWNERS = "SELECT part, 0::BIGINT AS began, '' AS member_id, 0::BIGINT AS ended FROM context_parts LIMIT 0"

_MAKE_CLIENTS = f"CREATE TEMP TABLE context_clients AS {CLIENTS_SQL}"
_CLIENTS = """
    LEFT JOIN context_clients AS clients
        ON clients.cluster = coalesce(fetches.cluster_id, '') AND clients.address = coalesce(fetches.client_address, '')
        AND clients.client_id = coalesce(fetches.client_id, '')"""
# Fetches with the group of their client; reads `context_clients` (CLIENTS_SQL).
FETCHES_SQL = f"SELECT fetches.* REPLACE (clients.group_id AS group_id) FROM in_{FETCHES} AS fetches {_CLIENTS}"
_GROUPS = f"SELECT clients.group_id FROM context_fetches AS fetches {_CLIENTS} ORDER BY fetches.row"


def enrich(con: duckdb.DuckDBPyConnection, held: Held = NOTHING) -> Held:
    """Replace the views of commits and fetches by enriched ones; other tables may be missing. Call it once.

    held: those of both whose rows are known. They are given back with their new columns, all else as it is, and the
    caller makes their views.
    """
    there = views(con)
    for table in _READS:
        _set_aside(con, table, table in there)
    made: dict[str, pa.Table | Path] = {}
    if not has_rows(con, f"in_{COMMITS}"):
        con.execute(f"CREATE TEMP VIEW context_base AS FROM in_{COMMITS}")
        con.execute(_MAKE_CLIENTS)
        commits = "FROM context_base"
    elif COMMITS in held:
        with numbered(con, "context_base", held[COMMITS]), _steps_made(con):
            made[COMMITS] = with_columns(con, held[COMMITS], _some_at_a_time(con))
    else:
        commits = _of_commits(con)
    if COMMITS in there and COMMITS not in made:
        con.execute(f"CREATE TEMP VIEW {COMMITS} AS {commits}")
    if FETCHES in held:
        with numbered(con, "context_fetches", held[FETCHES]):
            made[FETCHES] = with_columns(con, held[FETCHES], [_GROUPS])
    elif FETCHES in there:
        con.execute(f"CREATE TEMP VIEW {FETCHES} AS {FETCHES_SQL}")
    for table in made:  # else it would name what nobody holds any more
        con.execute(f"DROP VIEW in_{table}")
    return made


@contextmanager
def _steps_made(con: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """What the columns of commits are made of. `context_clients` stays: fetches are told by it, too."""
    con.execute(_MAKE_CLIENTS)
    steps = _STEPS if has_rows(con, "in_kafka_assignments") else {**_STEPS, "context_ownership": _NO_OWNERS}
    with steps_made(con, steps, _ALL_COLUMNS):
        yield


def _some_at_a_time(con: duckdb.DuckDBPyConnection) -> list[str]:
    """The columns of all rows: to join everything to all of them at once takes more memory than DuckDB can spill."""
    (rows,) = con.execute("SELECT count(*) FROM context_base").fetchall()[0]
    starts = range(0, max(rows, 1), ROWS_AT_A_TIME)
    return [_COLUMNS.format(some=f"row >= {start} AND row < {start + ROWS_AT_A_TIME}") for start in starts]


def _of_commits(con: duckdb.DuckDBPyConnection) -> str:
    """A SELECT of the commits with their context.

    Whole rows are compressed before what the context adds is put beside them: two plain copies take much memory.
    """
    rows = keep(con, "commits_as_decoded", f"FROM in_{COMMITS}")
    con.execute(f"CREATE TEMP VIEW context_base AS SELECT rowid AS row, * FROM {rows}")
    with _steps_made(con):
        added = keep(con, "commits_context", _ALL_COLUMNS)
    columns = ", ".join(f"added.{name} AS {name}" for name in _CONTEXT)
    both = keep(
        con, "commits", f"SELECT base.* REPLACE ({columns}) FROM {rows} AS base POSITIONAL JOIN {added} AS added"
    )
    con.execute(f"DROP VIEW context_base; DROP TABLE {rows}; DROP TABLE {added}")
    return f"FROM {both}"


def _set_aside(con: duckdb.DuckDBPyConnection, table: str, there: bool) -> None:
    """Make `in_<table>`: the view itself under another name where it is replaced, an empty one where it is missing."""
    if there and table in (COMMITS, FETCHES):
        con.execute(f"ALTER VIEW {table} RENAME TO in_{table}")
    elif there:
        con.execute(f"CREATE TEMP VIEW in_{table} AS FROM {table}")
    else:
        con.execute(f"CREATE TEMP VIEW in_{table} AS SELECT {null_columns(table)} LIMIT 0")
