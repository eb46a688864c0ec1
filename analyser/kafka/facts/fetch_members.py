"""Which members clients of groups were. In: views of group requests and commits. Out: for each run a member."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import duckdb
import numpy as np
import pyarrow as pa

from wirewitness.analyser.engine.facts.as_of import Integers, Timeline
from wirewitness.analyser.engine.facts.columns import integers
from wirewitness.analyser.engine.facts.keyed_rows import known_rows
from wirewitness.analyser.kafka.facts.fetch_rows import ANSWERED_NS, CLIENT_SQL, Readers
from wirewitness.analyser.kafka.facts.fetch_starts import Begun

_MEMBERS = "reading_members"
# Who committed any partition: of more of them than a shard has.
COMMITTERS = f"""
    SELECT coalesce(cluster_id, '') AS cluster, group_id, {CLIENT_SQL}, member_id, min({ANSWERED_NS}) AS at_ns
    FROM whole_kafka_offset_commits
    WHERE error_code = 0 AND member_id <> '' AND group_id IS NOT NULL GROUP BY ALL"""
# Since when each client was heard as that member.
_HEARD = f"""
    SELECT cluster, group_id, address, client_id, member_id, min(at_ns) AS at_ns
    FROM (SELECT coalesce(cluster_id, '') AS cluster, group_id, {CLIENT_SQL}, member_id, {ANSWERED_NS} AS at_ns
          FROM whole_kafka_group_events
          WHERE error_code = 0 AND event IN ('join', 'sync', 'heartbeat', 'consumer_heartbeat')
              AND member_id <> '' AND group_id IS NOT NULL
          UNION ALL
          ({{committers}}))
    GROUP BY ALL ORDER BY at_ns, member_id"""


@contextmanager
def members_known(con: duckdb.DuckDBPyConnection, committers: str) -> Iterator[None]:
    """The table that `members_of` reads, which is the same for all partitions, until the block ends.

    committers: COMMITTERS, or rows of it.
    """
    con.execute(f"CREATE TEMP TABLE {_MEMBERS} AS {_HEARD.format(committers=committers)}")
    try:
        yield
    finally:
        con.execute(f"DROP TABLE {_MEMBERS}")


class Members(NamedTuple):
    """Names of members, and for each run the place of its client's."""

    names: pa.DictionaryArray
    place: Integers


def members_of(con: duckdb.DuckDBPyConnection, readers: Readers, begun: Begun) -> Members:
    """The member that each run's client was last, else first after it; those of one time as their names sort."""
    rows = known_rows(con, f"FROM {_MEMBERS}", {"member": readers.member}, ("at_ns", "member_id"))
    line = Timeline(integers(rows["member"]), integers(rows["at_ns"]))
    member = readers.member.numbers[begun.reader]
    before = line.latest(member, begun.at_ns)
    return Members(rows["member_id"], np.where(before < 0, line.next(member, begun.at_ns), before))
