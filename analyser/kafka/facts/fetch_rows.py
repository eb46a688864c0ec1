"""Fetches of clients of groups as narrow arrays, and numbers for who reads what. In: a view of fetches. Out: Fetches.

A reader is a client (address and client id) in one partition of its group. An unknown cluster is a cluster of its own
(''), never a wildcard.
"""

from __future__ import annotations

from functools import cached_property

import duckdb
import numpy as np

from wirewitness.analyser.engine.facts.as_of import Integers
from wirewitness.analyser.engine.facts.columns import columns_of, integers
from wirewitness.analyser.engine.facts.keys import Columns, Key

TOPIC_PARTITION = ("cluster", "topic", "partition")
PART = ("cluster", "group_id", "topic", "partition")
CLIENT = ("address", "client_id")
# The same as SQL, of any table of Kafka that has these columns.
KEYS_SQL = """
    coalesce(cluster_id, '') AS cluster, coalesce(group_id, '') AS group_id, coalesce(topic, topic_id, '') AS topic,
    partition"""
CLIENT_SQL = "coalesce(client_address, '') AS address, coalesce(client_id, '') AS client_id"
ANSWERED_NS = "epoch_ns(coalesce(ts_response, ts))"

# position: where the answer leaves the reader; null where it is missing, or none of its batches is known whole.
# Without `beside` it is what tells runs apart.
_FETCHES = f"""
    SELECT {KEYS_SQL}, {CLIENT_SQL}, epoch_ns(ts) AS at_ns, flow_id, topic_id, coalesce(error_code, 0) AS error_code,
           fetch_offset,
           CASE WHEN next_offset IS NOT NULL THEN greatest(next_offset, coalesce(fetch_offset, 0))
                WHEN ts_response IS NOT NULL AND coalesce(records_bytes, 0) = 0 THEN fetch_offset END AS position
           {{beside}}
    FROM read_kafka_fetch_partitions WHERE group_id IS NOT NULL AND coalesce(replica_id, -1) < 0"""
_BESIDE = ", log_start_offset, high_watermark, records_count, exchange_id, file, request_packet"


class Readers:
    """Who reads what: clients in partitions of their groups.

    reader: their numbers. The others are of readers, by number: part of a partition of a group, member of a client in a
    group, host of an address, place of a partition, client of a client in a partition, whatever its group.
    """

    def __init__(self, fetches: Columns) -> None:
        self.reader = Key(fetches, (*PART, *CLIENT))
        self.columns = self.reader.columns
        self.count = self.reader.count
        self.part = Key(self.columns, PART)
        self.host = Key(self.columns, ("address",))

    @cached_property
    def member(self) -> Key:
        """Of a client in a group."""
        return Key(self.columns, ("cluster", "group_id", *CLIENT))

    @cached_property
    def place(self) -> Key:
        """Of a partition, whoever reads it."""
        return Key(self.columns, TOPIC_PARTITION)

    @cached_property
    def client(self) -> Key:
        """Of a client in a partition, whatever its group."""
        return Key(self.columns, (*TOPIC_PARTITION, *CLIENT))


class Fetches:
    """Fetches of groups in the order of their readers, then of time and offset, the unknown ones last; what is equal
    in all of that stays in the order in which it comes.

    rows: where each stands in `columns`, which has what is shown of it. in_group: the same rows in the order of
    partitions of groups, time and offset, as places in `rows`. Numbers are UNKNOWN where they are not there.
    """

    def __init__(self, con: duckdb.DuckDBPyConnection, *, whole: bool = True) -> None:
        """Of the view's rows. whole: with what is shown of a run."""
        self.columns = columns_of(con, _FETCHES.format(beside=_BESIDE if whole else ""))
        self.readers = Readers(self.columns)
        for name in (*PART, *CLIENT):
            del self.columns[name]
        reader = self.readers.reader.numbers
        part = self.readers.part.numbers[reader] if len(reader) else reader
        at_ns, offsets = self.numbers("at_ns"), self.numbers("fetch_offset")
        behind_all = np.where(offsets == np.iinfo(np.int64).min, np.iinfo(np.int64).max, offsets)
        in_group = np.lexsort((behind_all, at_ns, part))
        by_reader = np.argsort(reader[in_group], kind="stable")
        self.rows = in_group[by_reader]
        self.in_group = np.empty_like(by_reader)
        self.in_group[by_reader] = np.arange(len(by_reader))
        self.reader = reader[self.rows]

    def numbers(self, name: str) -> Integers:
        """A column of numbers as it comes, not in the order of `rows`."""
        return integers(self.columns[name])
