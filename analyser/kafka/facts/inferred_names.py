"""Names of topic ids that nothing in the capture names: a capture that begins in the middle has no Metadata.

In: a connection with views of Kafka's commits, fetches and produced batches, without names of these ids. Out: topic id
-> name, with the evidence in words. No name is better than a wrong one, so only what fits alone is believed:

- Consumers: what a client committed by name are positions that it fetched by id, of the same partitions. At least
  HITS different ones, nine of ten of all that it committed while its fetches are seen, and no other id of its and no
  other name comes to half of that. Offset 0 tells nothing.
- Consumers that begin: the stored offsets that a client was told by name (OffsetFetch) are those at which its next
  fetches by id of the same partitions begin. At least TOLD different ones, at most one of ten was not, and no other id
  or name has as many.
- Producers: offsets that batches got by name lie between the high watermarks that fetches by id told before and after
  (the end of a log is only ever moved by its own batches). At least HITS batches touch one of both, none contradicts,
  and no other pair fits.

Where these say different things, neither is believed. A name that has an id in the capture is given to no other one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, NamedTuple

from wirewitness.analyser.kafka.facts.log_ends import STORED

if TYPE_CHECKING:
    import duckdb

HITS, TOLD = 5, 3
# So many ids, names, partitions of a topic, batches of a partition and offsets told of it are compared at most: pairs
# of all are tried.
_IDS, _NAMES, _PARTITIONS, _BATCHES, _BEGINS = 200, 200, 4, 30, 30
# So many names or ids may shard a position of a client; where there are more it tells nothing.
_SHARED = 20
_LISTED = 10

_CLIENT = "address, client_id"
_STEPS = {
    "named_ids": f"""
        SELECT topic_id, count(*) AS rows FROM kafka_fetch_partitions
        WHERE topic IS NULL AND topic_id IS NOT NULL GROUP BY ALL ORDER BY rows DESC, topic_id LIMIT {_IDS}""",
    "read": """
        SELECT coalesce(client_address, '') AS address, coalesce(client_id, '') AS client_id, topic_id, partition,
               ts, coalesce(ts_response, ts) AS answered, fetch_offset, next_offset, high_watermark
        FROM kafka_fetch_partitions SEMI JOIN named_ids USING (topic_id)
        WHERE topic IS NULL AND coalesce(replica_id, -1) < 0""",
    "positions": f"""
        SELECT DISTINCT {_CLIENT}, topic_id, partition, unnest([fetch_offset, next_offset]) AS "offset" FROM read""",
    "began": f"""
        SELECT {_CLIENT}, topic_id, partition, min("offset") AS first FROM positions GROUP BY ALL""",
    "stored": """
        SELECT DISTINCT coalesce(client_address, '') AS address, coalesce(client_id, '') AS client_id, topic, partition,
               committed_offset AS "offset"
        FROM kafka_offset_commits
        WHERE topic NOT IN (FROM taken_names) AND topic_id IS NULL AND committed_offset > 0
            AND coalesce(error_code, 0) = 0""",
    "readers": f"SELECT DISTINCT {_CLIENT}, topic_id FROM positions",
    "committed": """
        SELECT topic, topic_id, count(*) AS of, min(client_id) AS client_id
        FROM stored JOIN readers USING (address, client_id)
        LEFT JOIN began USING (address, client_id, topic_id, partition)
        WHERE "offset" >= coalesce(first, 0) GROUP BY ALL""",
    "matched": f"""
        SELECT topic, topic_id, count(*) AS hits FROM (
            SELECT topic, topic_id FROM stored JOIN positions USING ({_CLIENT}, partition, "offset")
            QUALIFY count(*) OVER (PARTITION BY {_CLIENT}, partition, "offset") <= {_SHARED}) GROUP BY ALL""",
    "consumed": f"""
        SELECT topic, topic_id, hits, of, client_id, hits >= {HITS} AND 10 * hits >= 9 * of AS fits
        FROM matched JOIN (SELECT topic, topic_id, sum(of)::BIGINT AS of, min(client_id) AS client_id
                           FROM committed GROUP BY ALL) USING (topic, topic_id)
        QUALIFY coalesce(2 * max(hits) OVER (PARTITION BY topic_id ORDER BY hits DESC, topic
                             ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) < hits, true)
            AND row_number() OVER (PARTITION BY topic_id ORDER BY hits DESC, topic) = 1
            AND coalesce(2 * max(hits) OVER (PARTITION BY topic ORDER BY hits DESC, topic_id
                             ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) < hits, true)
            AND row_number() OVER (PARTITION BY topic ORDER BY hits DESC, topic_id) = 1""",
    "told": f"""
        SELECT *, lead(ts) OVER (PARTITION BY {_CLIENT}, topic, partition ORDER BY ts, "offset") AS told_again
        FROM (SELECT coalesce(client_address, '') AS address, coalesce(client_id, '') AS client_id, topic, partition,
                     coalesce(ts_response, ts) AS ts, committed_offset AS "offset"
              FROM kafka_offset_fetches
              WHERE topic NOT IN (FROM taken_names) AND topic_id IS NULL AND coalesce(error_code, 0) = 0
                  AND partition < {_PARTITIONS})
        SEMI JOIN readers USING ({_CLIENT})
        SEMI JOIN (SELECT topic FROM kafka_offset_fetches GROUP BY ALL ORDER BY count(*) DESC, topic LIMIT {_NAMES})
            USING (topic)
        QUALIFY row_number() OVER (PARTITION BY {_CLIENT}, topic, partition ORDER BY hash("offset")) <= {_BEGINS}""",
    "began_at": f"""
        SELECT told.*, ids.topic_id, read.fetch_offset
        FROM told JOIN (SELECT DISTINCT {_CLIENT}, topic_id, partition FROM read) AS ids USING ({_CLIENT}, partition)
        ASOF JOIN (FROM read WHERE fetch_offset IS NOT NULL) AS read
            ON told.address = read.address AND told.client_id = read.client_id AND ids.topic_id = read.topic_id
            AND told.partition = read.partition AND told.ts <= read.ts
        WHERE told."offset" > 0 AND coalesce(read.ts < told_again, true)""",
    "taught": f"""
        SELECT topic, topic_id, min(client_id) AS client_id,
               count(DISTINCT (partition, "offset")) FILTER (fetch_offset = "offset") AS hits,
               count(DISTINCT (partition, "offset")) AS of
        FROM began_at GROUP BY topic, topic_id
        HAVING hits >= {TOLD} AND 10 * hits >= 9 * of
        QUALIFY count(*) OVER (PARTITION BY topic_id) = 1 AND count(*) OVER (PARTITION BY topic) = 1""",
    "written": f"""
        SELECT topic, partition, ts, ts_response AS answered, base_offset, base_offset + records_count AS ended
        FROM kafka_produce_batches
        SEMI JOIN (SELECT topic FROM kafka_produce_batches WHERE topic NOT IN (FROM taken_names) AND topic_id IS NULL
                   GROUP BY ALL ORDER BY count(*) DESC, topic LIMIT {_NAMES}) USING (topic)
        WHERE acks = -1 AND {STORED} AND ts_response IS NOT NULL AND partition < {_PARTITIONS}
        QUALIFY row_number() OVER (PARTITION BY topic, partition ORDER BY hash(base_offset)) <= {_BATCHES}""",
    "ends": "SELECT topic_id, partition, ts, answered, high_watermark FROM read WHERE high_watermark >= 0",
    "pairs": """
        SELECT written.*, topic_id
        FROM written JOIN (SELECT DISTINCT topic_id, partition FROM ends) USING (partition)""",
    "around": """
        SELECT pairs.topic, pairs.topic_id, before.high_watermark AS low, after.high_watermark AS high, base_offset,
               ended
        FROM pairs
        ASOF LEFT JOIN ends AS before ON pairs.topic_id = before.topic_id AND pairs.partition = before.partition
            AND pairs.ts >= before.answered
        ASOF LEFT JOIN ends AS after ON pairs.topic_id = after.topic_id AND pairs.partition = after.partition
            AND pairs.answered <= after.ts""",
    "fitting": """
        SELECT topic, topic_id, count(*) FILTER (low = base_offset OR high = ended) AS hits
        FROM around GROUP BY topic, topic_id
        HAVING count(*) FILTER (low > base_offset OR high < ended) = 0
            AND count(*) FILTER (low <= base_offset OR high >= ended) > 0""",
    "produced": f"""
        SELECT * FROM fitting
        QUALIFY hits >= {HITS} AND count(*) OVER (PARTITION BY topic_id) = 1
            AND count(*) OVER (PARTITION BY topic) = 1""",
}


class Inferred(NamedTuple):
    """A name that was inferred, and from what, in words."""

    topic: str
    evidence: str


def inferred_names(con: duckdb.DuckDBPyConnection, named: dict[str, str]) -> dict[str, Inferred]:
    """Topic id -> its inferred name. named: what is known, topic id -> name."""
    con.execute("CREATE OR REPLACE TEMP TABLE taken_names (topic VARCHAR)")
    con.executemany("INSERT INTO taken_names VALUES (?)", [(name,) for name in {"", *named.values()}])
    steps = ", ".join(f"{name} AS ({query})" for name, query in _STEPS.items())
    found = con.execute(
        f"WITH {steps} SELECT topic_id, topic, 'committed' AS how, hits, of, client_id FROM consumed WHERE fits "
        "UNION ALL SELECT topic_id, topic, 'told', hits, of, client_id FROM taught "
        "UNION ALL SELECT topic_id, topic, 'written', hits, NULL, NULL FROM produced ORDER BY ALL"
    ).fetchall()
    con.execute("DROP TABLE taken_names")
    said: dict[str, set[str]] = {}
    ids: dict[str, set[str]] = {}
    for topic_id, topic, *_ in found:
        said.setdefault(topic_id, set()).add(topic)
        ids.setdefault(topic, set()).add(topic_id)
    return {
        topic_id: Inferred(topic, _evidence(how, hits, of, client))
        for topic_id, topic, how, hits, of, client in reversed(found)
        if len(said[topic_id]) == 1 and len(ids[topic]) == 1
    }


def naming_remarks(inferred: Mapping[str, Inferred], unnamed: Collection[str]) -> list[str]:
    """What to say of names that were inferred, and of ids that have none."""
    said = [f"topic id {one} is taken for {name.topic}: {name.evidence}" for one, name in sorted(inferred.items())]
    if unnamed:
        listed = ", ".join(sorted(unnamed)[:_LISTED]) + (", ..." if len(unnamed) > _LISTED else "")
        are = "topic id without a name" if len(unnamed) == 1 else "topic ids without a name"
        said.append(f"{len(unnamed)} {are}: {listed}; --topic-id NAME=ID gives one")
    return said


def _evidence(how: str, hits: int, of: int | None, client: str | None) -> str:
    if how == "written":
        return f"offsets of {hits} produced batches fit the ends of its log alone"
    if how == "told":
        return f"{hits} of {of} stored offsets that {client or 'a client'} was told are where it began to fetch"
    return f"{hits} of {of} offsets that {client or 'a client'} committed are those that it fetched"
