"""Where a consumer group stands: its stored offsets and its lag behind the log ends (`log_ends.py`).

In: a connection with views of the Kafka tables. Out: the view of `kafka_lag`, which has the lag of every stored offset;
and SQL for the lag at any time or in bins of time, which reads the tables of both. No other place says what these words
mean.

- Stored offset: the one of the last accepted commit, in the order in which the broker took them. On one connection that
  is the order of the stream, between connections the time of the answer. A TxnOffsetCommit counts from its own answer,
  as if its transaction were committed.
- It is gone with an answered OffsetDelete, with its group (DeleteGroups), with its topic, which is deleted or made
  anew, and with a commit of an offset below 0. What comes then counts again.
- An answered OffsetFetch that was sent after all these says what is stored, -1 that nothing is; who committed it is
  known only where it is what the last commit stored. While a transaction is open the broker tells the offset before
  it (KIP-447), so behind a TxnOffsetCommit only an answer that waits for it counts (require_stable).
- Lag: from the stored offset to the log end, and from the log start where the stored offset is below it: nobody can
  read what retention removed. 0 where the stored offset is ahead, since then the log end is an old one; null where
  stored offset or log end is not known.
- Time lag: since the log end passed the stored offset (`time_lag.py`); 0 without lag, null where that is not known.
An unknown cluster is a cluster of its own (''), never a wildcard, and so are an unknown group and topic.
"""

from __future__ import annotations

import duckdb

from wirewitness.analyser.engine.facts.chunk_files import show_made
from wirewitness.analyser.engine.facts.stage import LAG as LAG_STAGE
from wirewitness.analyser.engine.facts.stage import NOTHING, Held
from wirewitness.analyser.engine.facts.topics import has_rows, views
from wirewitness.analyser.kafka.facts.committed import (
    COMMITS,
    DELETED_GROUPS,
    DELETED_OFFSETS,
    LAST_READ,
    READS,
    STORED,
    STORED_TABLES,
)
from wirewitness.analyser.kafka.facts.committed_steps import GROUP
from wirewitness.analyser.kafka.facts.log_ends import (
    LIVES,
    LOG_STEPS,
    PARTITION,
    TOPICS_ANEW,
    ends_of_bins,
    with_life,
)
from wirewitness.analyser.kafka.facts.time_lag import rises

# What `lag_query` reads, beside `exchanges` for bins.
LAG_TABLES = (*STORED_TABLES, "kafka_log_ends", "kafka_topics", "kafka_admin_changes")


def lag_behind(log_end: str, log_start: str = "committed_offset") -> str:
    """The lag of `committed_offset` behind this end of a log that starts there, as SQL."""
    return f"""
        CASE WHEN committed_offset IS NULL OR {log_end} IS NULL THEN NULL
             WHEN {log_end} < greatest(committed_offset, {log_start}) THEN 0
             ELSE try_cast({log_end}::HUGEINT - greatest(committed_offset, {log_start}) AS BIGINT) END"""


def _time_lag(lag: str, at_ns: str) -> str:
    """The time lag in ms at a time, when the lag was that, as SQL. passed_ns: when the log end passed the offset."""
    return f"CASE WHEN {lag} = 0 THEN 0.0 WHEN passed_ns < until_ns THEN greatest({at_ns} - passed_ns, 0) / 1e6 END"


_EVER = 2**63 - 1
# A stored offset counts until the next change, or until its topic is another one. What counts until then is the last
# log end before; of one that still counts, the last of all.
_LAGS = f"""
    WITH lives AS ({LIVES}), ends AS ({LOG_STEPS}), rises AS ({rises("ends", f"{PARTITION}, incarnation")}),
    every AS (
        SELECT coalesce(cluster_id, '') AS cluster, coalesce(group_id, '') AS group_id, coalesce(topic, '') AS topic,
               partition, incarnation, step, epoch_ns(ts) AS at_ns, committed_offset
        FROM kafka_committed),
    stored AS (
        SELECT every.*, least(next_ns, coalesce(ended, {_EVER})) AS until_ns
        FROM (SELECT *, lead(at_ns, 1, {_EVER}) OVER (PARTITION BY {GROUP} ORDER BY step) AS next_ns FROM every)
            AS every LEFT JOIN lives USING (cluster, topic, incarnation)
        WHERE committed_offset IS NOT NULL),
    -- The next one may count from the same time on: then this one counted at that time only.
    lags AS (
        SELECT stored.*, first.log_end AS log_end_offset, first.log_start, last.log_end AS last_log_end_offset,
               last.log_start AS last_log_start, last.last_ns,
               CASE WHEN coalesce(first_end <= committed_offset, true) THEN passed_ns END AS passed_ns
        FROM stored
        ASOF LEFT JOIN ends AS first ON stored.cluster = first.cluster AND stored.topic = first.topic
            AND stored.partition = first.partition AND stored.incarnation = first.incarnation
            AND stored.at_ns >= first.at_ns
        ASOF LEFT JOIN ends AS last ON stored.cluster = last.cluster AND stored.topic = last.topic
            AND stored.partition = last.partition AND stored.incarnation = last.incarnation
            AND greatest(stored.until_ns - 1, stored.at_ns) >= last.at_ns
        ASOF LEFT JOIN rises ON stored.cluster = rises.cluster AND stored.topic = rises.topic
            AND stored.partition = rises.partition AND stored.incarnation = rises.incarnation
            AND committed_offset < rises.least)
    SELECT make_timestamp_ns(at_ns)::TIMESTAMPTZ_NS AS ts, nullif(cluster, '') AS cluster_id,
           nullif(group_id, '') AS group_id, nullif(topic, '') AS topic, partition, incarnation, step,
           CASE WHEN until_ns < {_EVER} THEN make_timestamp_ns(until_ns)::TIMESTAMPTZ_NS END AS ts_until,
           committed_offset, log_end_offset, lag, {_time_lag("lag", "at_ns")} AS time_lag_ms, last_log_end_offset,
           last_lag, {_time_lag("last_lag", f"CASE WHEN until_ns < {_EVER} THEN until_ns ELSE last_ns END")}
               AS last_time_lag_ms
    FROM (SELECT *, {lag_behind("log_end_offset", "log_start")} AS lag,
                 {lag_behind("last_log_end_offset", "last_log_start")} AS last_lag
          FROM lags)
"""


def add_lag(con: duckdb.DuckDBPyConnection, _: Held = NOTHING) -> Held:
    """Make the view of `kafka_lag`, which is empty before. Call it once."""
    if views(con) >= {*LAG_STAGE.reads} and has_rows(con, "kafka_committed"):
        show_made(con, "kafka_lag", _LAGS)
    return NOTHING


# Lag by bins of time, step by step. `lag_lives` are LIVES, `lag_commits` rows of COMMITS, `lag_reads` rows of
# READS and `lag_ends` rows of LOG_STEPS, all with the begin of their `bin`, and `here`:
# false for rows of earlier times, which say how things stood but make no row. `lag_gone_*` are rows of DELETED_* with
# their `bin`.
LAG_STEPS = {
    "lag_counts": f"""
        SELECT {GROUP}, bin, bool_or(here) AS here, max(at_ns) FILTER (taken) AS stored_ns,
               count(*) FILTER (accepted) AS accepted, count(*) FILTER (refused) AS refused,
               count(DISTINCT struct_pack(client_address, client_id, member_id)) FILTER (accepted) AS committers,
               min(committed_offset) FILTER (accepted) AS lowest_offset,
               max(committed_offset) FILTER (accepted) AS highest_offset
        FROM lag_commits GROUP BY ALL""",
    # Rows are compared in full only where the last answers came at one time: that costs much more than numbers.
    "lag_stored": with_life(
        f"""
        SELECT {GROUP}, bin, unnest({STORED})
        FROM lag_commits JOIN (SELECT {GROUP}, bin, stored_ns AS at_ns FROM lag_counts) USING ({GROUP}, bin, at_ns)
        WHERE taken GROUP BY {GROUP}, bin""",
        "lag_lives",
    ),
    "lag_last_reads": with_life(
        f"SELECT {GROUP}, bin, bool_or(here) AS here, unnest({LAST_READ}) FROM lag_reads GROUP BY {GROUP}, bin",
        "lag_lives",
    ),
    "lag_log_ends": ends_of_bins("lag_ends"),
    # A row where the group committed, was told an offset, or the log's end was seen: a group that stopped committing
    # shows as growing lag.
    "lag_bins": f"""
        SELECT {GROUP}, bin FROM lag_counts WHERE here
        UNION
        SELECT {GROUP}, bin FROM lag_last_reads WHERE here AND committed_offset >= 0
        UNION
        SELECT {GROUP}, ends.bin
        FROM (SELECT {GROUP}, min(bin) AS first
              FROM (SELECT {GROUP}, bin FROM lag_stored
                    UNION ALL SELECT {GROUP}, bin FROM lag_last_reads WHERE committed_offset >= 0)
              GROUP BY ALL) AS groups
        JOIN lag_log_ends AS ends USING ({PARTITION}) WHERE ends.bin >= groups.first AND ends.here""",
}
_GONE = {"offsets": GROUP, "groups": "cluster, group_id", "topics": "cluster, topic"}
DELETED = {"offsets": DELETED_OFFSETS, "groups": DELETED_GROUPS, "topics": TOPICS_ANEW}


def _as_of(table: str, name: str, keys: str) -> str:
    """The last row of a table up to a row of `bins`."""
    same = " AND ".join(f"bins.{key} = {name}.{key}" for key in keys.split(", "))
    return f"ASOF LEFT JOIN {table} AS {name} ON {same} AND bins.bin >= {name}.bin"


def gone_steps(begin: str, until: str = "true") -> dict[str, str]:
    """The steps `lag_gone_*`. begin: of the bin of `at_ns`. until: a condition on `at_ns`."""
    return {
        f"lag_gone_{name}": f"""
            SELECT {keys}, {begin} AS bin, max(at_ns) AS at_ns{", max(incarnation) AS incarnation" * (name == "topics")}
            FROM ({DELETED[name]}) WHERE {until} GROUP BY ALL"""
        for name, keys in _GONE.items()
    }


# What holds at the end of each bin. by_read: the last OffsetFetch says it, not the last commit.
_HELD = f"""
    SELECT *, coalesce(stored.at_ns > gone_ns, false) AS by_commit,
           coalesce(epoch_ns(reads.ts) > greatest(gone_ns, coalesce(stored.at_ns, 0))
                    AND (reads.stable OR NOT coalesce(stored.transactional, false)), false) AS by_read
    FROM (
        SELECT bins.*, stored, reads, ends.log_end, ends.log_start, ends.end_ns, ends.incarnation AS end_life,
               gone_topics.incarnation AS gone_life,
               greatest(coalesce(gone_offsets.at_ns, 0), coalesce(gone_groups.at_ns, 0), coalesce(gone_topics.at_ns, 0))
                   AS gone_ns
        FROM lag_bins AS bins
        {_as_of("lag_stored", "stored", GROUP)}
        {_as_of("lag_last_reads", "reads", GROUP)}
        {_as_of("lag_log_ends", "ends", PARTITION)}
        {" ".join(_as_of(f"lag_gone_{name}", f"gone_{name}", keys) for name, keys in _GONE.items())})"""
_STANDS = f"""
    SELECT * EXCLUDE (stored, reads, log_end, log_start, end_ns), stored.log_end_offset AS known_end,
           CASE WHEN by_read THEN reads.incarnation WHEN by_commit THEN stored.incarnation END AS life,
           CASE WHEN by_read THEN nullif(reads.committed_offset, -1)
                WHEN by_commit THEN stored.committed_offset END AS committed_offset,
           CASE WHEN by_commit AND (NOT by_read OR reads.committed_offset = stored.committed_offset) THEN stored END
               AS last,
           CASE WHEN coalesce(end_life >= gone_life, true) THEN log_end END AS log_end,
           CASE WHEN coalesce(end_life >= gone_life, true) THEN log_start END AS log_start,
           CASE WHEN coalesce(end_life >= gone_life, true) THEN end_ns END AS end_ns
    FROM ({_HELD})"""
# How things stand at the end of each bin: what LAG_STEPS come to.
LAG_ROWS = f"""
    SELECT *, {lag_behind("log_end_offset", "log_start_offset")} AS lag FROM (
        SELECT nullif(stands.cluster, '') AS cluster_id, nullif(stands.group_id, '') AS group_id,
               nullif(stands.topic, '') AS topic, stands.partition, stands.bin,
               CASE WHEN coalesce(life >= end_life, true) THEN stands.committed_offset END AS committed_offset,
               CASE WHEN end_life IS NULL THEN CASE WHEN by_commit THEN known_end END
                    WHEN coalesce(life <= end_life, true) THEN log_end END AS log_end_offset,
               CASE WHEN coalesce(life <= end_life, true) THEN log_start END AS log_start_offset,
               CASE WHEN coalesce(life <= end_life, true) THEN end_ns END AS end_ns,
               last.member_id, last.client_id, last.client_address, last.generation, last.owner_member_id,
               epoch_ns(last.ts) AS sent_ns, last.at_ns AS stored_ns,
               coalesce(counts.accepted, 0) AS accepted, coalesce(counts.refused, 0) AS refused,
               coalesce(counts.committers, 0) AS committers, counts.lowest_offset, counts.highest_offset
        FROM ({_STANDS}) AS stands
        LEFT JOIN lag_counts AS counts USING ({GROUP}, bin))"""


# So many bins of a partition are made at most where it was quiet.
MOST_CARRIED = 100_000
# Instead of `lag_bins`: all bins from a partition's first on until the last request of the capture, so that what stands
# is told while nobody commits or fetches.
_CARRIED = f"""
    WITH told AS ({LAG_STEPS["lag_bins"]})
    FROM told
    UNION
    SELECT {GROUP}, unnest(range(first, last + {{width}}, {{width}}))
    FROM (SELECT {GROUP}, min(bin) AS first FROM told GROUP BY ALL),
         (SELECT max(bin) AS last FROM (
             SELECT max(bin) AS bin FROM lag_counts UNION ALL SELECT max(bin) FROM lag_log_ends
             UNION ALL SELECT max(bin) FROM lag_last_reads
             {" ".join(f"UNION ALL SELECT max(bin) FROM lag_gone_{name}" for name in _GONE)}
             UNION ALL SELECT {{begin}} FROM (SELECT max(epoch_ns(ts)) AS at_ns FROM exchanges)))
    WHERE (last - first) // {{width}} < {MOST_CARRIED}"""


def lag_query(
    width: str = "",
    *,
    until: str = "true",
    group: str = "true",
    commits: str = "true",
    ends: str = "true",
) -> str:
    """A SELECT of LAG_ROWS over `lag_steps`, which says what the arguments are."""
    steps = lag_steps(width, until=until, group=group, commits=commits, ends=ends)
    named = ", ".join(f"{name} AS ({query})" for name, query in steps.items())
    return f"with {named} {LAG_ROWS}"


def lag_steps(
    width: str = "",
    *,
    until: str = "true",
    group: str = "true",
    commits: str = "true",
    ends: str = "true",
) -> dict[str, str]:
    """What LAG_ROWS reads, step by step: in the end, or at the end of bins of `width` ns (SQL; reads `exchanges`).

    until: a condition on `at_ns` of all that is told. group: one on COMMITS and READS; commits, ends: on COMMITS and
    LOG_STEPS.
    """
    begin = f"at_ns // {width} * {width}" if width else "0"
    # The answers of a row come until the next one, up to a minute later.
    told = f"""
        SELECT * REPLACE (CASE WHEN {until.replace("at_ns", "last_ns")} THEN last_ns ELSE at_ns END AS last_ns)
        FROM ({LOG_STEPS}) WHERE {ends} AND {until}"""
    row = f"{begin} AS bin, true AS here"
    steps = {
        "lag_lives": LIVES,
        "lag_commits": f"SELECT *, {row} FROM ({COMMITS}) WHERE {until} AND {group} AND {commits}",
        "lag_reads": f"SELECT *, {row} FROM ({READS}) WHERE {until} AND {group}",
        "lag_ends": f"SELECT *, {row} FROM ({told})",
        **gone_steps(begin, until),
        **LAG_STEPS,
    }
    if width:
        steps["lag_bins"] = _CARRIED.format(width=width, begin=begin)
    return steps
