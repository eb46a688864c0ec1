"""Rows of exchanges with what spans need from other tables: topics, groups, commands. In: an analysis; out: batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import duckdb
import pyarrow as pa

TABLES = (
    "flows",
    "exchanges",
    "kafka_offset_commits",
    "kafka_offset_fetches",
    "kafka_fetch_partitions",
    "kafka_produce_batches",
    "kafka_group_events",
    "mqtt_publishes",
    "mongo_commands",
)


WANTED = "wanted_exchanges"


class Queryable(Protocol):
    """The part of `analyser.Analysis` that is used here."""

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """Where the tables are."""
        ...

    def query(self, query: str) -> Iterator[pa.RecordBatch]:
        """One SELECT over the selected rows, in batches."""
        ...


# Of Kafka one row for each exchange: a topic or partition is only told where it is the only one.
_QUERY = """
    with parts as (
        select exchange_id, topic, partition, group_id, null::bigint as records, null::bigint as first_offset
        from kafka_offset_commits
        union all
        select exchange_id, topic, partition, group_id, null, null from kafka_offset_fetches
        union all
        select exchange_id, topic, partition, group_id, records_count, null from kafka_fetch_partitions
        union all
        select exchange_id, topic, partition, null, records_count, base_offset from kafka_produce_batches
        union all
        select exchange_id, null, null, group_id, null, null from kafka_group_events where event <> 'describe'
    ),
    kafka as (
        select exchange_id, count(distinct topic) as topics, any_value(topic) as topic,
               count(distinct coalesce(topic, '') || ':' || partition) as partitions,
               any_value(partition) as partition, sum(records)::bigint as records,
               any_value(first_offset) as first_offset, any_value(group_id) as group_id
        from parts group by exchange_id
    )
    select e.*, f.observed_until,
           case when k.topics = 1 then k.topic else p.topic end as topic,
           case when k.topics = 1 and k.partitions = 1 then k.partition end as partition,
           case when k.records = 1 then k.first_offset end as first_offset,
           k.records, k.group_id, p.qos, p.payload_bytes,
           c.database, c.collection, c.query_shape, c.documents_returned
    from exchanges e
    left join flows f using (flow_id)
    left join kafka k using (exchange_id)
    left join mqtt_publishes p on p.message_id = e.exchange_id
    left join mongo_commands c using (exchange_id)
    order by e.ts, e.exchange_id"""


def batches(analysis: Queryable) -> Iterator[pa.RecordBatch]:
    """The selected exchanges in the order of time, with the columns of other tables that `spans` knows."""
    return analysis.query(_QUERY)


def batches_of(analysis: Queryable, ids: Sequence[pa.Array]) -> Iterator[pa.RecordBatch]:
    """As `batches`, of the exchanges with these ids only."""
    if not ids:
        return
    analysis.connection.register(WANTED, pa.table({"exchange_id": pa.chunked_array(ids, pa.string())}))
    yield from analysis.query(
        f"SELECT * FROM ({_QUERY}) SEMI JOIN {WANTED} USING (exchange_id) ORDER BY ts, exchange_id"
    )
