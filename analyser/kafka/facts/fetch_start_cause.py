"""What led readers to where they began: the last of each kind before a run, and behind the reader's fetch before it.

In: runs, views of what groups were told and who was a member. Out: for each run the place of what led there, or
NOWHERE. Of what came at one time the last one of its rows counts, unless something else is said.
"""

from __future__ import annotations

from typing import NamedTuple

import duckdb
import numpy as np
import pyarrow as pa

from wirewitness.analyser.engine.facts.as_of import NOWHERE, Integers, Timeline, taken
from wirewitness.analyser.engine.facts.columns import UNKNOWN, integers
from wirewitness.analyser.engine.facts.gaps import is_lost
from wirewitness.analyser.engine.facts.keyed_rows import known_rows
from wirewitness.analyser.engine.facts.keys import Key
from wirewitness.analyser.kafka.facts.fetch_rows import CLIENT_SQL, Readers
from wirewitness.analyser.kafka.facts.fetch_starts import Begun, Refused
from wirewitness.analyser.kafka.facts.fetch_stored_offsets import Answers, Changes, Stored
from wirewitness.analyser.kafka.facts.log_ends import LONGEST_LOG

# What ListOffsets told, wherever it was asked for.
_LISTED = f"""
    SELECT coalesce(cluster_id, '') AS cluster, coalesce(topic, '') AS topic, partition, {CLIENT_SQL},
           epoch_ns(ts) AS at_ns, "timestamp" AS listed, "offset" AS first_offset
    FROM read_kafka_list_offsets WHERE coalesce(error_code, 0) = 0 AND "offset" >= 0"""

# Where a part of a connection is missing, by its client. `unseen` are connections that began unseen.
_GAPS = f"""
    SELECT DISTINCT flows.client_address AS address, epoch_ns(gaps.ts) AS at_ns
    FROM read_expert_infos AS gaps JOIN read_flows AS flows USING (flow_id)
    WHERE {is_lost("gaps")} AND flows.client_address IS NOT NULL"""

# The last end of the log that anybody was told, of one time the highest, one that was told ten seconds before at least,
# and whether transactions write to it.
_ENDS = f"""
    SELECT cluster, topic, partition, arg_max(log_end, at_ns) AS log_end, max(at_ns) AS at_ns,
           arg_max(log_end, at_ns, 3)[3] AS earlier_end, bool_or(transactional) AS transactional
    FROM (SELECT cluster, topic, partition, arg_max(log_end, row(at_ns, log_end)) AS log_end, max(at_ns) AS at_ns,
                 bool_or(transactional) AS transactional
          FROM (SELECT coalesce(cluster_id, '') AS cluster, coalesce(topic, topic_id, '') AS topic, partition,
                       epoch_ns(coalesce(ts_response, ts)) AS at_ns, high_watermark AS log_end, NULL AS transactional
                FROM read_kafka_fetch_partitions WHERE high_watermark >= 0
                UNION ALL
                SELECT coalesce(cluster_id, ''), coalesce(topic, topic_id, ''), partition,
                       epoch_ns(coalesce(ts_response, ts)), last_offset + 1, transactional
                FROM read_kafka_produce_batches
                WHERE error_code = 0 AND last_offset BETWEEN 0 AND {LONGEST_LOG}) AS told
          GROUP BY cluster, topic, partition, told.at_ns // 10000000000)
    GROUP BY ALL"""


def asked(begun: Begun, answers: Answers) -> Integers:
    """The reader's last OffsetFetch."""
    return _since(begun, answers.at_ns, Timeline(answers.reader, answers.at_ns).latest(begun.reader, begun.at_ns))


def refused_before(begun: Begun, refused: Refused) -> Integers:
    """The reader's last fetch that was refused as out of range."""
    return _since(begun, refused.at_ns, Timeline(refused.reader, refused.at_ns).latest(begun.reader, begun.at_ns))


def stored_before(begun: Begun, stored: Stored, answers: Answers, asks: Integers) -> Integers:
    """What was stored last: as of the answer of OffsetFetch where there is one, since that is what the reader could
    know."""
    until = np.where(asks < 0, begun.at_ns, taken(answers.at_ns, asks, 0) - 1)
    return Timeline(stored.part, stored.at_ns).latest(begun.part, until)


def changed_since(begun: Begun, changes: Changes, stored: Stored, came: Integers) -> Integers:
    """The last change before the run, and behind what was stored then."""
    places = Timeline(changes.part, changes.at_ns).latest(begun.part, begun.at_ns)
    return np.where(taken(changes.at_ns, places, 0) > taken(stored.at_ns, came, 0), places, NOWHERE)


def _since(begun: Begun, at_ns: Integers, places: Integers) -> Integers:
    """These places, where they came after the reader's fetch before the run."""
    return np.where(taken(at_ns, places, UNKNOWN) > begun.since_ns, places, NOWHERE)


class Listed(NamedTuple):
    """ListOffsets that told a run's first offset, by run. asked: its timestamp. UNKNOWN without one."""

    at_ns: Integers
    asked: Integers


def listed_before(con: duckdb.DuckDBPyConnection, readers: Readers, begun: Begun) -> Listed:
    """The client's last ListOffsets that told the run's first offset."""
    rows = known_rows(con, _LISTED, {"client": readers.client}, ("at_ns", "listed", "first_offset"))
    offsets = Key(rows, ("client", "first_offset"))
    at_ns, listed = integers(rows["at_ns"]), integers(rows["listed"])
    client = readers.client.numbers[begun.reader]
    wanted = offsets.of({"client": pa.array(client), "first_offset": pa.array(begun.first_offset)})
    places = _since(begun, at_ns, Timeline(offsets.numbers, at_ns).latest(wanted, begun.at_ns))
    return Listed(taken(at_ns, places, UNKNOWN), taken(listed, places, UNKNOWN))


class Gaps(NamedTuple):
    """Where flows of each run's address miss something: before it, and last of all. UNKNOWN where they do not."""

    before_ns: Integers
    last_ns: Integers


def gaps_of(con: duckdb.DuckDBPyConnection, readers: Readers, begun: Begun, unseen: pa.Table) -> Gaps:
    """unseen: address and time of connections that began unseen, which count like losses."""
    lost = known_rows(con, _GAPS, {"host": readers.host}, ("at_ns",))
    began = readers.host.of({"address": unseen.column("address").combine_chunks()})
    hosts = np.concatenate([integers(lost["host"]), began])
    at_ns = np.concatenate([integers(lost["at_ns"]), integers(unseen.column("at_ns").combine_chunks())])
    host = readers.host.numbers[begun.reader]
    last = np.full(int(readers.host.numbers.max(initial=0)) + 1, UNKNOWN)
    np.maximum.at(last, hosts[hosts >= 0], at_ns[hosts >= 0])
    places = Timeline(hosts, at_ns).latest(host, begun.at_ns)
    return Gaps(taken(at_ns, places, UNKNOWN), last[host])


class Ends(NamedTuple):
    """The ends of the logs, and for each reader the place of its partition's; NOWHERE where nobody told one."""

    columns: dict[str, pa.Array]
    place: Integers


def ends_of(con: duckdb.DuckDBPyConnection, readers: Readers) -> Ends:
    """The ends of the logs that are read."""
    rows = known_rows(con, _ENDS, {"place": readers.place}, ("at_ns", "log_end", "earlier_end", "transactional"))
    places = np.full(readers.place.count, NOWHERE)
    places[integers(rows["place"])] = np.arange(len(rows["place"]))
    return Ends(rows, places[readers.place.numbers])
