"""Did the client of a commit turn back: what it fetched, or was told of offsets, between two times.

In: the views of `committed_views.py`, Kafka's tables. Out: tables of the offsets that clients of commits fetched and
were told, each made when it is asked for first, and answers to asks.
"""

from __future__ import annotations

from contextlib import ExitStack

import duckdb

from wirewitness.analyser.engine.facts.topics import has_rows
from wirewitness.analyser.kafka.facts.committed_steps import CLIENT, CONSUMERS, OWN_CLIENT
from wirewitness.analyser.kafka.facts.committed_views import READERS

FETCHED, _TOLD = "committed_fetched", "committed_told_offsets"
_FETCHED_SQL = f"""
    SELECT reader, at_ns, fetched FROM (
        SELECT coalesce(cluster_id, '') AS cluster, coalesce(topic, topic_id, '') AS topic, partition, {OWN_CLIENT},
               epoch_ns(ts) AS at_ns, fetch_offset AS fetched {CONSUMERS} AND fetch_offset >= 0)
    JOIN {READERS} USING ({CLIENT})"""
_TOLD_SQL = f"""
    SELECT reader, at_ns, told FROM (
        SELECT coalesce(cluster_id, '') AS cluster, coalesce(topic, '') AS topic, partition, {OWN_CLIENT},
               epoch_ns(ts) AS at_ns, "offset" AS told FROM kafka_list_offsets WHERE "offset" >= 0
        UNION ALL BY NAME
        SELECT coalesce(cluster_id, '') AS cluster, coalesce(topic, topic_id, '') AS topic, partition, {OWN_CLIENT},
               epoch_ns(ts) AS at_ns, committed_offset AS told FROM kafka_offset_fetches WHERE committed_offset >= 0)
    JOIN {READERS} USING ({CLIENT})"""
# Between two times, both left out.
_BETWEEN = "ORDER BY at_ns RANGE BETWEEN coalesce(span, 1) PRECEDING AND 1 PRECEDING"
_ASKS = "committed_asks"


class Reading:
    """What clients of commits read. stack: drops the tables."""

    def __init__(self, con: duckdb.DuckDBPyConnection, stack: ExitStack) -> None:
        self._con, self._stack, self._made = con, stack, False

    def make(self) -> None:
        """Make the table FETCHED (reader, at_ns, fetched), if it is not there yet."""
        if not self._made:
            made(self._con, self._stack, FETCHED, _FETCHED_SQL)
            made(self._con, self._stack, _TOLD, _TOLD_SQL)
            self._made = True

    def turned(self, name: str, asks: str) -> str:
        """A new table of `row` and `read_from` of those whose client turned back. In: its name.

        asks: a SELECT of `row`, `reader`, between which times, and which offset is stored: since_ns, at_ns, stored.
        """
        self.make()
        with ExitStack() as own:
            made(self._con, own, _ASKS, f"""
                SELECT *, least(at_ns::HUGEINT - since_ns - 1, {2**63 - 1})::BIGINT AS span FROM ({asks})
                WHERE at_ns::HUGEINT - since_ns > 1""")  # fmt: skip
            return made(self._con, self._stack, name, _TURNED if has_rows(self._con, _TOLD) else _FETCHED_BACK)


def made(con: duckdb.DuckDBPyConnection, stack: ExitStack, name: str, query: str) -> str:
    """The name of a new temporary table of these rows, which the stack drops."""
    con.execute(f"CREATE TEMP TABLE {name} AS {query}")
    stack.callback(con.execute, f"DROP TABLE {name}")
    return name


_LOWEST = f"""
    SELECT row, stored, fetched FROM (
        SELECT row, stored, min(fetched) OVER (PARTITION BY reader {_BETWEEN}) AS fetched
        FROM (SELECT reader, at_ns, fetched FROM {FETCHED} SEMI JOIN {_ASKS} USING (reader)
              UNION ALL BY NAME FROM {_ASKS}))
    WHERE row IS NOT NULL"""
_READ_FROM = "least(stored, coalesce(fetched, stored)) AS read_from"
_FETCHED_BACK = f"SELECT row, {_READ_FROM} FROM ({_LOWEST}) WHERE fetched <= stored"
# Hardly anybody is told offsets as often as it fetches: apart, only asks of those are sorted with what they were told.
_TURNED = f"""
    WITH lowest AS ({_LOWEST}),
    told AS (
        SELECT row, told FROM (
            SELECT row, min(told) OVER (PARTITION BY reader {_BETWEEN}) AS told
            FROM (FROM {_TOLD} SEMI JOIN {_ASKS} USING (reader)
                  UNION ALL BY NAME FROM {_ASKS} SEMI JOIN {_TOLD} USING (reader)))
        WHERE row IS NOT NULL AND told IS NOT NULL),
    same AS (
        SELECT row FROM (
            SELECT row, count(told) OVER (PARTITION BY reader, coalesce(told, stored) {_BETWEEN}) AS times
            FROM (FROM {_TOLD} SEMI JOIN {_ASKS} USING (reader)
                  UNION ALL BY NAME
                  SELECT asks.* FROM {_ASKS} AS asks
                  SEMI JOIN {_TOLD} AS told ON asks.reader = told.reader AND asks.stored = told.told))
        WHERE row IS NOT NULL AND times > 0)
    SELECT lowest.row, {_READ_FROM} FROM lowest LEFT JOIN told USING (row) LEFT JOIN same ON lowest.row = same.row
    WHERE coalesce(fetched, told) <= stored OR same.row IS NOT NULL"""
