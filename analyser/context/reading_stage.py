"""The context of reading: `kafka_reading_runs`, a row for each time that a client of a group began to read a partition.

In: a connection with views of the Kafka tables, fetches with their group (`enrich.py`). Out: the view of that table.
Everything is done by DuckDB within its memory limit.
"""

from __future__ import annotations

import duckdb
import pyarrow as pa

from analyser.context.reading_causes import CAUSES
from analyser.context.reading_runs import RUNS
from analyser.context.stage import READING
from analyser.context.topics import has_rows, views
from analyser.registry.coded import BATCH_ROWS, coded_table
from analyser.registry.queries import keep, name_list, null_columns
from analyser.registry.tables import TABLES

TABLE = "kafka_reading_runs"
# So many rows take some 30 MiB as codes.
FEW_ROWS = 1 << 17


def _time(column: str, name: str) -> str:
    return f"make_timestamp_ns({column})::TIMESTAMPTZ_NS AS {name}"


_ROWS = f"""
    SELECT {_time("begun.at_ns", "ts")}, {_time("begun.last_ns", "ts_last")}, places.exchange_id,
           nullif(readers.cluster, '') AS cluster_id, nullif(readers.group_id, '') AS group_id,
           nullif(readers.topic, '') AS topic, places.topic_id, readers.partition,
           nullif(readers.client_id, '') AS client_id, nullif(readers.address, '') AS client_address,
           members.member_id, begun.first_offset, begun.next_offset, begun.fetches, begun.records AS records_count,
           begun.log_start_offset, begun.log_end_offset,
           CASE WHEN begun.before_ns IS NULL THEN 'first' WHEN begun.other_id THEN 'topic id'
                WHEN begun.first_offset IS DISTINCT FROM begun.position_before THEN 'offset' ELSE 'connection' END
               AS began_by,
           {_time("begun.before_ns", "ts_before")}, begun.fetched_before AS fetch_offset_before,
           begun.position_before AS next_offset_before, begun.group_position AS group_offset_before,
           {_time("stored.at_ns", "ts_stored")}, stored.stored_offset, stored.client_id AS stored_client_id,
           stored.address AS stored_client_address, stored.member_id AS stored_member_id,
           stored.exchange_id AS stored_exchange_id,
           {_time("moved.at_ns", "ts_change")}, moved.change, moved.change_offset,
           nullif(moved.client_id, '') AS change_client_id, nullif(moved.address, '') AS change_client_address,
           moved.exchange_id AS change_exchange_id,
           {_time("asks.at_ns", "ts_answered")}, asks.answered_offset,
           {_time("refused.at_ns", "ts_out_of_range")}, refused.fetch_offset AS out_of_range_offset,
           {_time("listed.at_ns", "ts_listed")}, listed.listed AS listed_timestamp,
           ends.log_end AS last_log_end_offset, ends.earlier_end AS earlier_log_end_offset,
           {_time("ends.at_ns", "ts_last_log_end")},
           ends.transactional, {_time("gaps.at_ns", "client_gap_ts")},
           {_time("gaps.last_ns", "ts_last_gap")},
           places.flow_id, places.file, places.request_packet
    FROM reading_begun AS begun
    JOIN reading_readers AS readers USING (reader, part)
    LEFT JOIN reading_ends AS ends USING (cluster, topic, partition)
    LEFT JOIN reading_places AS places USING (row)
    LEFT JOIN reading_members AS members USING (row)
    LEFT JOIN reading_from AS stored USING (row)
    LEFT JOIN reading_moved AS moved USING (row)
    LEFT JOIN reading_asks AS asks USING (row)
    LEFT JOIN reading_refused AS refused USING (row)
    LEFT JOIN reading_listed AS listed USING (row)
    LEFT JOIN reading_gaps AS gaps USING (row)"""


def add_reading_runs(con: duckdb.DuckDBPyConnection, *, in_memory: bool = False) -> dict[str, pa.Table]:
    """Replace the view of the table, which is empty before; other tables may be missing. Call it once.

    in_memory: where there are few rows give them back, and leave the view to the caller.
    """
    there = views(con)
    for table in (*READING.reads, *READING.uses, "flows"):
        source = f"FROM {table}" if table in there else f"SELECT {null_columns(table)} LIMIT 0"
        con.execute(f"CREATE OR REPLACE TEMP VIEW read_{table} AS {source}")
    steps = {**RUNS, **CAUSES}
    made = {}
    for number, (name, query) in enumerate(steps.items()):
        con.execute(f"CREATE TEMP TABLE {name} AS {query}")
        if number == 0 and not has_rows(con, name):
            con.execute(f"DROP TABLE {name}")
            return {}
    columns = name_list(TABLES[TABLE].column_names())
    if in_memory and con.execute("SELECT count(*) FROM reading_begun").fetchall()[0][0] <= FEW_ROWS:
        made[TABLE] = coded_table(con.sql(f"SELECT {columns} FROM ({_ROWS})").to_arrow_reader(BATCH_ROWS))
    else:
        rows = keep(con, TABLE, _ROWS)
        con.execute(f"DROP VIEW IF EXISTS {TABLE}")
        con.execute(f"CREATE TEMP VIEW {TABLE} AS SELECT {columns} FROM {rows}")
    for name in steps:
        con.execute(f"DROP TABLE {name}")
    return made
