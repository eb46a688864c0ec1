"""Commits as narrow arrays, and who fetched their partitions. In: the views of `commit_views.py`. Out: arrays.

Keys are numbers: a part is a partition of a group, a log a partition in one incarnation of its topic.
"""

from __future__ import annotations

from contextlib import closing

import duckdb

from wirewitness.analyser.engine.facts.columns import integers
from wirewitness.analyser.engine.facts.keys import Key
from wirewitness.analyser.engine.facts.topics import has_rows
from wirewitness.analyser.kafka.facts.log_ends import with_life
from wirewitness.analyser.tables.coded import BATCH_ROWS, coded_columns

_PART, _LOG = ("cluster", "group_id", "topic", "partition"), ("cluster", "topic", "partition", "incarnation")
# Without a partition or a time nothing can be told.
_COMMITS = """
    SELECT row, coalesce(cluster_id, '') AS cluster, coalesce(topic, topic_id, '') AS topic, topic_id, partition,
           coalesce(group_id, '') AS group_id, epoch_ns(ts) AS at_ns, nullif(member_id, '') AS member_id,
           client_address AS address
    FROM context_base WHERE partition IS NOT NULL AND ts IS NOT NULL"""
# Of the columns of a shard. Most of it are texts, where hardly any two rows have the same.
MOST_BYTES = 256 << 20
_COLUMNS = "row, cluster, topic, partition, group_id, incarnation, at_ns, member_id"


class Commits:
    """Commits of which anything can be told, in any order.

    rows: their numbers. at_ns: Unix ns. parts, logs: their numbers. part, log: the keys that these are numbers of.
    member_id: texts, null where there is none. address: the same where bytes of any client are missing, else None.
    """

    def __init__(self, con: duckdb.DuckDBPyConnection) -> None:
        """Raises TooManyBytes."""
        names = f"{_COLUMNS}, address" if has_rows(con, "context_gaps") else _COLUMNS
        query = f"SELECT {names} FROM ({in_lives(con, _COMMITS)})"
        with closing(con.sql(query).to_arrow_reader(BATCH_ROWS)) as reader:
            columns = coded_columns(reader, reader.schema, MOST_BYTES)
        self.rows, self.at_ns = integers(columns["row"]), integers(columns["at_ns"])
        self.part, self.log = Key(columns, _PART), Key(columns, _LOG)
        self.parts, self.logs = self.part.numbers, self.log.numbers
        self.member_id, self.address = columns["member_id"], columns.get("address")


def in_lives(con: duckdb.DuckDBPyConnection, told: str) -> str:
    """A SELECT of these rows with the `incarnation` of their topic; `told`: as of `with_life`."""
    if has_rows(con, "context_lives"):
        return with_life(told, "context_lives")
    return f"SELECT *, 1::BIGINT AS incarnation FROM ({told})"
