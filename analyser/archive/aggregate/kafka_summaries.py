"""What hours tell in few rows of the context of commits and fetches elsewhere in months; see `kafka_context.py`.

In: the tables of a change. Out: SUMMARIES, and views of what they hold as the context reads it.
"""

from __future__ import annotations

import duckdb

from wirewitness.analyser.archive.aggregate.derived import hour_of
from wirewitness.analyser.archive.aggregate.hour_summaries import HourSummary
from wirewitness.analyser.archive.aggregate.lags import ENDS_OF_HOURS, TOPICS_OF_HOURS
from wirewitness.analyser.engine.facts.gaps import IS_LOSS

COMMITS, FETCHES = "kafka_offset_commits", "kafka_fetch_partitions"
_HOUR = hour_of("ts")
COMMITS_OF_HOURS = HourSummary(
    "context_commits_of_hours", (COMMITS,), f"SELECT DISTINCT {_HOUR} AS hour FROM {COMMITS}"
)
FETCHERS = HourSummary(
    "context_fetchers_of_hours",
    (FETCHES,),
    f"""
    SELECT DISTINCT {_HOUR} AS hour, coalesce(cluster_id, '') AS cluster, coalesce(client_address, '') AS address,
           coalesce(client_id, '') AS client_id
    FROM {FETCHES}""",
)
LOST = HourSummary(
    "context_lost_of_hours",
    ("gaps",),
    f"SELECT DISTINCT {_HOUR} AS hour, ts, client_address, reason FROM gaps WHERE {IS_LOSS}",
)
SUMMARIES = (COMMITS_OF_HOURS, FETCHERS, LOST, ENDS_OF_HOURS, TOPICS_OF_HOURS)
TABLES = tuple(dict.fromkeys(table for summary in SUMMARIES for table in summary.tables))

# The last steps of hours as rows of `kafka_log_ends`.
LAST_STEPS = f"""
    SELECT hour, make_timestamp_ns(at_ns)::TIMESTAMPTZ_NS AS ts, nullif(cluster, '') AS cluster_id,
           nullif(topic, '') AS topic, partition, incarnation, log_end AS log_end_offset
    FROM {ENDS_OF_HOURS.name}"""


def knowledge(con: duckdb.DuckDBPyConnection, prefix: str = "") -> None:
    """Views of what the summaries hold, as the context reads it."""
    for name, summary in (
        ("gaps", LOST),
        ("kafka_topics", TOPICS_OF_HOURS),
    ):
        con.execute(f"CREATE TEMP VIEW {prefix}{name} AS SELECT * EXCLUDE hour FROM {summary.name}")
