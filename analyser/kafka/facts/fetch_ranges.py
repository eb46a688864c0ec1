"""Rows of `kafka_fetch_ranges`. In: fetches of some partitions, views of what is known besides. Out: Arrow tables, some
rows at a time, texts as codes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import duckdb
import numpy as np
import pyarrow as pa

from wirewitness.analyser.base import compute as pc
from wirewitness.analyser.engine.facts.as_of import NOWHERE, Integers, Timeline, taken
from wirewitness.analyser.engine.facts.columns import (
    UNKNOWN,
    codes,
    integers,
    named_texts,
    number_column,
    taken_rows,
    text_column,
    time_column,
)
from wirewitness.analyser.engine.facts.gaps import losses
from wirewitness.analyser.engine.facts.keyed_rows import known_rows
from wirewitness.analyser.engine.facts.keys import Key
from wirewitness.analyser.kafka.facts.fetch_jumps import with_jumps
from wirewitness.analyser.kafka.facts.fetch_members import members_of
from wirewitness.analyser.kafka.facts.fetch_rows import CLIENT_SQL, Fetches, Readers
from wirewitness.analyser.kafka.facts.fetch_start_rows import Places, unseen
from wirewitness.analyser.kafka.facts.fetch_starts import Begun, Refused, Runs, refused
from wirewitness.analyser.kafka.facts.fetch_stored_offsets import (
    Answers,
    Changes,
    Stored,
    answers_of,
    changes_of,
    commits_of,
    stored_of,
)
from wirewitness.analyser.kafka.facts.log_ends import KEPT_S, LOG_STEPS, PARTITION, SECOND_NS
from wirewitness.analyser.tables.tables import arrow_schema

# What led readers to where they began: the last of each kind before a run, and behind the reader's fetch before it.
#
# In: runs, views of what groups were told and who was a member. Out: for each run the place of what led there, or
# NOWHERE. Of what came at one time the last one of its rows counts, unless something else is said.

# What ListOffsets told, wherever it was asked for.
_LISTED = f"""
    SELECT coalesce(cluster_id, '') AS cluster, coalesce(topic, '') AS topic, partition, {CLIENT_SQL},
           epoch_ns(ts) AS at_ns, "timestamp" AS listed, "offset" AS first_offset
    FROM read_kafka_list_offsets WHERE coalesce(error_code, 0) = 0 AND "offset" >= 0"""

# Offsets that responses gave a client, by the API that did: where it may go on without having chosen it by itself.
_REPORTED = f"""
    SELECT coalesce(cluster_id, '') AS cluster, coalesce(topic, '') AS topic, partition, {CLIENT_SQL},
           epoch_ns(ts) AS at_ns, "offset" AS reported_offset, 'ListOffsets' AS api
    FROM read_kafka_list_offsets WHERE coalesce(error_code, 0) = 0 AND "offset" >= 0
    UNION ALL
    SELECT coalesce(cluster_id, ''), coalesce(topic, ''), partition, {CLIENT_SQL}, epoch_ns(ts), end_offset,
           'OffsetForLeaderEpoch'
    FROM read_kafka_leader_epochs WHERE coalesce(error_code, 0) = 0 AND end_offset >= 0
    UNION ALL
    SELECT coalesce(cluster_id, ''), coalesce(topic, topic_id, ''), partition, {CLIENT_SQL}, epoch_ns(ts),
           committed_offset, 'OffsetFetch'
    FROM read_kafka_offset_fetches WHERE coalesce(error_code, 0) = 0 AND committed_offset >= 0"""

# The last known end of each log, the one of ten seconds before, and whether transactions write to it.
_ENDS = f"""
    WITH steps AS (FROM ({LOG_STEPS.replace("kafka_log_ends", "read_kafka_log_ends")})),
    lasting AS (SELECT {PARTITION}, max(last_ns) AS at_ns FROM steps GROUP BY ALL)
    SELECT {PARTITION}, arg_max(log_end, steps.at_ns) AS log_end, lasting.at_ns,
           arg_max(log_end, steps.at_ns) FILTER (steps.at_ns <= lasting.at_ns - {KEPT_S * SECOND_NS}) AS earlier_end
    FROM steps JOIN lasting USING ({PARTITION}) GROUP BY {PARTITION}, lasting.at_ns"""
_WRITTEN = """
    SELECT coalesce(cluster_id, '') AS cluster, coalesce(topic, topic_id, '') AS topic, partition,
           bool_or(transactional) AS transactional
    FROM read_kafka_produce_batches WHERE error_code = 0 GROUP BY ALL"""


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


class Reported(NamedTuple):
    """Which API gave each run's refused offset, and which the end of the reader's last epoch; NOWHERE without one."""

    apis: pa.DictionaryArray
    refused: Integers
    epoch_end: Integers
    at_ns: Integers
    offset: Integers


def reported_before(
    con: duckdb.DuckDBPyConnection, readers: Readers, begun: Begun, refused: Refused, refusals: Integers
) -> Reported:
    """What the client was given since its fetch before the run, up to the refused fetch, and up to the run."""
    rows = known_rows(con, _REPORTED, {"client": readers.client}, ("at_ns", "reported_offset", "api"))
    at_ns, given, apis = integers(rows["at_ns"]), integers(rows["reported_offset"]), rows["api"]
    client = readers.client.numbers[begun.reader]
    offsets = Key(rows, ("client", "reported_offset"))
    asked = taken(refused.fetch_offset, refusals, UNKNOWN)
    wanted = offsets.of({"client": pa.array(client), "reported_offset": pa.array(asked)})
    until = taken(refused.at_ns, refusals, UNKNOWN)
    of_refused = _since(begun, at_ns, Timeline(offsets.numbers, at_ns).latest(wanted, until))
    is_end = codes(apis) == pc.index(apis.dictionary, "OffsetForLeaderEpoch").as_py()
    ends = Timeline(np.where(is_end, integers(rows["client"]), NOWHERE), at_ns).latest(client, begun.at_ns)
    return Reported(apis, of_refused, _since(begun, at_ns, ends), at_ns, given)


class Gaps(NamedTuple):
    """Where flows of each run's address miss something: before it, and last of all. UNKNOWN where they do not."""

    before_ns: Integers
    last_ns: Integers


def gaps_of(con: duckdb.DuckDBPyConnection, readers: Readers, begun: Begun, unseen: pa.Table) -> Gaps:
    """unseen: address and time of connections that began unseen, which count like losses."""
    lost = known_rows(con, losses("read_gaps"), {"host": readers.host}, ("at_ns",))
    began = readers.host.of({"address": unseen.column("address").combine_chunks()})
    hosts = np.concatenate([integers(lost["host"]), began])
    at_ns = np.concatenate([integers(lost["at_ns"]), integers(unseen.column("at_ns").combine_chunks())])
    host = readers.host.numbers[begun.reader]
    last = np.full(int(readers.host.numbers.max(initial=0)) + 1, UNKNOWN)
    np.maximum.at(last, hosts[hosts >= 0], at_ns[hosts >= 0])
    places = Timeline(hosts, at_ns).latest(host, begun.at_ns)
    return Gaps(taken(at_ns, places, UNKNOWN), last[host])


class Ends(NamedTuple):
    """The ends of the logs and who writes to them, and for each reader the place of its partition's; NOWHERE where
    nobody told one."""

    columns: dict[str, pa.Array]
    place: Integers
    transactional: pa.Array
    written: Integers


def ends_of(con: duckdb.DuckDBPyConnection, readers: Readers) -> Ends:
    """The ends of the logs that are read."""
    rows = known_rows(con, _ENDS, {"place": readers.place}, ("at_ns", "log_end", "earlier_end"))
    written = known_rows(con, _WRITTEN, {"place": readers.place}, ("transactional",))

    def places(of: dict[str, pa.Array]) -> Integers:
        found = np.full(readers.place.count, NOWHERE)
        found[integers(of["place"])] = np.arange(len(of["place"]))
        return found[readers.place.numbers]

    return Ends(rows, places(rows), written["transactional"], places(written))


TABLE = "kafka_fetch_ranges"
_STARTED_BY = pa.array(["first", "topic id", "offset", "connection"])
# Makes a column of some runs, by their places among all.
_Column = Callable[[slice], pa.Array]


def run_pieces(con: duckdb.DuckDBPyConnection, unseen_connections: pa.Table | None, most: int) -> Iterator[pa.Table]:
    """All rows of what the views have, so many at a time; in `members_known`.

    unseen_connections: by all partitions; by those that the views have where there is none.
    """
    columns = _columns(con, unseen_connections)
    if columns is None:
        return
    names, runs = columns
    for start in range(0, runs, most):
        pa.default_memory_pool().release_unused()  # what the rows before left behind
        some = slice(start, start + most)
        piece = with_jumps(con, pa.table({name: column(some) for name, column in names.items()}))
        yield piece.select(arrow_schema(TABLE).names)


def unseen_of(con: duckdb.DuckDBPyConnection) -> pa.Table:
    """The connections that began unseen, of what the views have."""
    fetches = Fetches(con, whole=False)
    begun = Runs(fetches).begun
    return unseen(con, fetches, begun, Places(fetches, begun))


def _columns(
    con: duckdb.DuckDBPyConnection, unseen_connections: pa.Table | None
) -> tuple[dict[str, _Column], int] | None:
    """What makes each column of the table, and how many runs there are; None where nobody reads.

    unseen_connections: see `run_pieces`.
    """
    fetches = Fetches(con)
    if not fetches.readers.count:
        return None
    runs = Runs(fetches)
    begun, readers, places = runs.begun, fetches.readers, Places(fetches, runs.begun)
    if unseen_connections is None:
        unseen_connections = unseen(con, fetches, begun, places)
    commits, answers = commits_of(con, readers), answers_of(con, readers)
    stored, changes = stored_of(commits, answers), changes_of(con, readers, commits)
    asks = asked(begun, answers)
    came = stored_before(begun, stored, answers, asks)
    moved = changed_since(begun, changes, stored, came)
    came_by = taken(stored.commit, came, NOWHERE)
    out_of_range = refused(fetches)
    refusals = refused_before(begun, out_of_range)
    listed, gaps = listed_before(con, readers, begun), gaps_of(con, readers, begun, unseen_connections)
    reported = reported_before(con, readers, begun, out_of_range, refusals)
    found, ends = members_of(con, readers, begun), ends_of(con, readers)
    end, written = ends.place[begun.reader], ends.written[begun.reader]
    who = {name: named_texts(column) for name, column in readers.columns.items() if name != "partition"}
    changed = {name: named_texts(column) for name, column in changes.columns.items()}

    def shown(name: str) -> _Column:
        return _texts(fetches.columns[name], places.rows(name))

    columns = {
        "ts": _times(begun.at_ns),
        "ts_last": _times(begun.last_ns),
        "exchange_id": shown("exchange_id"),
        "cluster_id": _texts(who["cluster"], begun.reader),
        "group_id": _texts(who["group_id"], begun.reader),
        "topic": _texts(who["topic"], begun.reader),
        "topic_id": shown("topic_id"),
        "partition": _numbers(integers(readers.columns["partition"]), begun.reader),
        "client_id": _texts(who["client_id"], begun.reader),
        "client_address": _texts(who["address"], begun.reader),
        "member_id": _texts(found.names, found.place),
        "first_offset": _numbers(begun.first_offset),
        "next_offset": _numbers(begun.next_offset),
        "fetches": _numbers(begun.fetches),
        "records_count": _numbers(runs.total("records_count")),
        "log_start_offset": _numbers(runs.first("log_start_offset")),
        "log_end_offset": _numbers(runs.highest("high_watermark")),
        "started_by": _texts(pc.dictionary_encode(_STARTED_BY), _started_by(begun)),
        "ts_before": _times(begun.before_ns),
        "fetch_offset_before": _numbers(begun.fetched_before),
        "next_offset_before": _numbers(begun.position_before),
        "group_offset_before": _numbers(begun.group_position),
        "ts_stored": _times(stored.at_ns, came),
        "stored_offset": _numbers(stored.offset, came),
        "stored_client_id": _texts(commits.columns["client_id"], came_by),
        "stored_client_address": _texts(commits.columns["address"], came_by),
        "stored_member_id": _texts(commits.columns["member_id"], came_by),
        "stored_exchange_id": _texts(commits.columns["exchange_id"], came_by),
        "ts_change": _times(changes.at_ns, moved),
        "change": _texts(changed["change"], moved),
        "change_offset": _numbers(changes.offset, moved),
        "change_client_id": _texts(changed["client_id"], moved),
        "change_client_address": _texts(changed["address"], moved),
        "change_exchange_id": _texts(changes.columns["exchange_id"], moved),
        "ts_answered": _times(answers.at_ns, asks),
        "answered_offset": _numbers(answers.offset, asks),
        "ts_out_of_range": _times(out_of_range.at_ns, refusals),
        "out_of_range_offset": _numbers(out_of_range.fetch_offset, refusals),
        "out_of_range_reported_by": _texts(reported.apis, reported.refused),
        "ts_epoch_end": _times(reported.at_ns, reported.epoch_end),
        "epoch_end_offset": _numbers(reported.offset, reported.epoch_end),
        "ts_listed": _times(listed.at_ns),
        "listed_timestamp": _numbers(listed.asked),
        "last_log_end_offset": _numbers(integers(ends.columns["log_end"]), end),
        "ts_last_log_end": _times(integers(ends.columns["at_ns"]), end),
        "earlier_log_end_offset": _numbers(integers(ends.columns["earlier_end"]), end),
        "transactional": lambda some: taken_rows(ends.transactional, written[some]),
        "client_gap_ts": _times(gaps.before_ns),
        "ts_last_gap": _times(gaps.last_ns),
        "flow_id": shown("flow_id"),
        "file": shown("file"),
        "request_packet": _numbers(fetches.numbers("request_packet"), places.rows("request_packet")),
    }
    return columns, len(begun.reader)


def _started_by(begun: Begun) -> Integers:
    elsewhere = begun.first_offset != begun.position_before
    return np.select([begun.before_ns == UNKNOWN, begun.other_id, elsewhere], [0, 1, 2], 3)


def _times(times: Integers, places: Integers | None = None) -> _Column:
    return lambda some: time_column(_some(times, places, some))


def _numbers(numbers: Integers, places: Integers | None = None) -> _Column:
    return lambda some: number_column(_some(numbers, places, some))


def _some(numbers: Integers, places: Integers | None, some: slice) -> Integers:
    """Those of some runs. places: where each run has its number."""
    return numbers[some] if places is None else taken(numbers, places[some], UNKNOWN)


def _texts(column: pa.DictionaryArray, places: Integers) -> _Column:
    return lambda some: text_column(column, places[some])
