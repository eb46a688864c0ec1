"""What the offsets of groups were, and who changed that, for the partitions that somebody reads.

In: commits, answers of OffsetFetch, changes that somebody asked for. Out: arrays of what was known when. A commit
without member id by a client that does not read the partition is a tool's: it moves the offset. What a transaction
stored last counts from its end on.
"""

from __future__ import annotations

from typing import NamedTuple

import duckdb
import numpy as np
import pyarrow as pa

from wirewitness.analyser.base import compute as pc
from wirewitness.analyser.engine.facts.as_of import NOWHERE, Integers, Timeline, taken
from wirewitness.analyser.engine.facts.columns import UNKNOWN, Booleans, booleans, codes, columns_of, integers
from wirewitness.analyser.engine.facts.keyed_rows import known_rows
from wirewitness.analyser.engine.facts.keys import Columns
from wirewitness.analyser.kafka.facts.committed import DELETED_PARTITIONS, DELETED_TOPIC
from wirewitness.analyser.kafka.facts.fetch_rows import ANSWERED_NS, CLIENT, CLIENT_SQL, KEYS_SQL, PART, Readers
from wirewitness.analyser.tables.coded import coded_array

_COMMITTED = f"""
    {KEYS_SQL}, {CLIENT_SQL}, {ANSWERED_NS} AS at_ns, committed_offset, nullif(member_id, '') AS member_id,
    exchange_id"""
_ACCEPTED = "error_code = 0 AND committed_offset >= 0"
# A transaction that ended twice at one time was committed if one of them says so. Of offsets of one transaction the
# last one counts, in the order in which the broker took them.
_COMMITS = f"""
    WITH ends AS (
        SELECT coalesce(cluster_id, '') AS cluster, producer_id, {ANSWERED_NS} AS at_ns, bool_or(committed) AS committed
        FROM read_kafka_transactions WHERE event = 'end_txn' AND error_code = 0 GROUP BY ALL),
    sent AS (
        SELECT {_COMMITTED}, producer_id FROM read_kafka_offset_commits
        WHERE {_ACCEPTED} AND api = 'TxnOffsetCommit')
    SELECT {_COMMITTED}, true AS plain FROM read_kafka_offset_commits WHERE {_ACCEPTED} AND api = 'OffsetCommit'
    UNION ALL
    SELECT sent.* EXCLUDE producer_id REPLACE (ends.at_ns AS at_ns), false
    FROM sent ASOF JOIN ends
        ON sent.cluster = ends.cluster AND sent.producer_id = ends.producer_id AND sent.at_ns <= ends.at_ns
    WHERE ends.committed
    QUALIFY row_number() OVER (
        PARTITION BY sent.producer_id, ends.at_ns, {", ".join(f"sent.{name}" for name in PART)}
        ORDER BY sent.at_ns DESC, length(exchange_id) DESC, exchange_id DESC, committed_offset DESC) = 1"""
_ANSWERS = f"""
    SELECT {KEYS_SQL}, {CLIENT_SQL}, epoch_ns(ts) AS at_ns, committed_offset
    FROM read_kafka_offset_fetches WHERE coalesce(error_code, 0) = 0 AND committed_offset IS NOT NULL"""

# Who changed what, so that the group reads on elsewhere; the texts of `change` are those of the rows of admin changes.
_ASKED = f"""
    SELECT coalesce(cluster_id, '') AS cluster, {CLIENT_SQL}, {ANSWERED_NS} AS at_ns, exchange_id, resource_type,
           coalesce(resource_name, '') AS name, change
    FROM read_kafka_admin_changes
    WHERE error_code = 0 AND NOT coalesce(validate_only, false) AND resource_type IN ('group', 'topic')
        AND (starts_with(change, 'delete') OR starts_with(change, 'partitions='))"""
_PARTS = "reading_parts"
_CHANGED = f"""
    WITH asked AS MATERIALIZED ({_ASKED})
    SELECT part, at_ns, 'group deleted' AS change, NULL::BIGINT AS change_offset, address, client_id, exchange_id
    FROM asked JOIN {_PARTS} AS parts ON asked.cluster = parts.cluster AND asked.name = parts.group_id
    WHERE resource_type = 'group' AND change = 'delete'
    UNION ALL
    SELECT part, at_ns, 'offsets deleted', NULL, address, client_id, exchange_id
    FROM (SELECT *, {DELETED_TOPIC} AS topic, unnest({DELETED_PARTITIONS}) AS number
          FROM asked WHERE resource_type = 'group' AND starts_with(change, 'delete offsets of ')) AS asked
    JOIN {_PARTS} AS parts
        ON asked.cluster = parts.cluster AND asked.name = parts.group_id AND asked.topic = parts.topic
        AND try_cast(asked.number AS BIGINT) = parts.partition
    UNION ALL
    SELECT part, at_ns, 'topic deleted', NULL, address, client_id, exchange_id
    FROM asked JOIN {_PARTS} AS parts ON asked.cluster = parts.cluster AND asked.name = parts.topic
    WHERE resource_type = 'topic' AND (change = 'delete' OR starts_with(change, 'delete topic_id='))
    UNION ALL
    SELECT part, at_ns, 'partitions added', NULL, address, client_id, exchange_id
    FROM asked JOIN {_PARTS} AS parts
        ON asked.cluster = parts.cluster AND asked.name = parts.topic
        AND try_cast(regexp_extract(change, '^partitions=([0-9]+)', 1) AS BIGINT) > parts.partition
    WHERE resource_type = 'topic'
    UNION ALL
    SELECT part, at_ns, 'records deleted', try_cast(split_part(cut, '<', 2) AS BIGINT), address, client_id, exchange_id
    FROM (SELECT *, unnest(string_split(substr(change, 16), ',')) AS cut
          FROM asked WHERE resource_type = 'topic' AND starts_with(change, 'delete records ')) AS asked
    JOIN {_PARTS} AS parts
        ON asked.cluster = parts.cluster AND asked.name = parts.topic
        AND try_cast(split_part(asked.cut, '<', 1) AS BIGINT) = parts.partition
    ORDER BY at_ns, exchange_id, change, change_offset"""


class Commits(NamedTuple):
    """Commits of partitions that are read. columns: who they are of, as codes. moves: is it a tool's?"""

    part: Integers
    at_ns: Integers
    offset: Integers
    moves: Booleans
    columns: Columns


class Answers(NamedTuple):
    """What OffsetFetch told. reader: NOWHERE where the client read nothing of that partition."""

    part: Integers
    reader: Integers
    at_ns: Integers
    offset: Integers


class Stored(NamedTuple):
    """What was stored, as far as the capture shows. commit: its place among the commits; NOWHERE where only an answer
    tells of it."""

    part: Integers
    at_ns: Integers
    offset: Integers
    commit: Integers


class Changes(NamedTuple):
    """What else led groups elsewhere. columns: change, address, client_id, exchange_id."""

    part: Integers
    at_ns: Integers
    offset: Integers
    columns: Columns


def commits_of(con: duckdb.DuckDBPyConnection, readers: Readers) -> Commits:
    """Accepted commits, each from when it counts; those of transactions are behind the others."""
    rows = known_rows(
        con,
        _COMMITS,
        {"part": readers.part, "reader": readers.reader},
        ("at_ns", "committed_offset", "plain", *CLIENT, "member_id", "exchange_id"),
    )
    nobody = (integers(rows["reader"]) < 0) & (codes(rows["member_id"]) < 0)
    return Commits(
        integers(rows["part"]),
        integers(rows["at_ns"]),
        integers(rows["committed_offset"]),
        booleans(rows["plain"]) & nobody,
        {name: rows[name] for name in (*CLIENT, "member_id", "exchange_id")},
    )


def answers_of(con: duckdb.DuckDBPyConnection, readers: Readers) -> Answers:
    """Answers of OffsetFetch, -1 for no offset; they are known when they are asked for."""
    names = ("at_ns", "committed_offset")
    rows = known_rows(con, _ANSWERS, {"part": readers.part, "reader": readers.reader}, names)
    return Answers(*(integers(rows[name]) for name in ("part", "reader", *names)))


def stored_of(commits: Commits, answers: Answers) -> Stored:
    """What stands when. An answer tells of a commit that the capture is without, unless it repeats the last one.

    Of one time a commit counts, and of commits of one time the last one of their rows.
    """
    last = Timeline(commits.part, commits.at_ns).latest(answers.part, answers.at_ns)
    news = (answers.offset >= 0) & ((last < 0) | (taken(commits.offset, last, UNKNOWN) != answers.offset))
    plain = np.flatnonzero(~commits.moves)
    return Stored(
        np.concatenate([answers.part[news], commits.part[plain]]),
        np.concatenate([answers.at_ns[news], commits.at_ns[plain]]),
        np.concatenate([answers.offset[news], commits.offset[plain]]),
        np.concatenate([np.full(int(news.sum()), NOWHERE), plain]),
    )


def changes_of(con: duckdb.DuckDBPyConnection, readers: Readers, commits: Commits) -> Changes:
    """Resets by tools, and behind them what somebody asked for, in the order of time."""
    con.register(_PARTS, pa.table({"part": np.arange(readers.part.count), **readers.part.columns}))
    asked = columns_of(con, _CHANGED)
    con.unregister(_PARTS)
    moves = np.flatnonzero(commits.moves)
    resets = {name: pc.take(commits.columns[name], pa.array(moves)) for name in (*CLIENT, "exchange_id")}
    resets["change"] = pc.dictionary_encode(pa.array(["reset"] * len(moves), pa.string()))
    parts = [pa.table({name: rows[name] for name in resets}) for rows in (resets, asked)]
    together = pa.concat_tables(parts)
    return Changes(
        np.concatenate([commits.part[moves], integers(asked["part"])]),
        np.concatenate([commits.at_ns[moves], integers(asked["at_ns"])]),
        np.concatenate([commits.offset[moves], integers(asked["change_offset"])]),
        {name: coded_array(together.column(name)) for name in together.schema.names},
    )
