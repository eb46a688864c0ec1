"""Rows of `kafka_reading_runs`. In: fetches of some partitions, views of what is known besides. Out: Arrow tables, some
rows at a time, texts as codes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import duckdb
import numpy as np
import pyarrow as pa

from wirewitness.analyser.base import compute as pc
from wirewitness.analyser.engine.facts.as_of import NOWHERE, Integers, taken
from wirewitness.analyser.engine.facts.columns import (
    UNKNOWN,
    integers,
    number_column,
    taken_rows,
    text_column,
    time_column,
)
from wirewitness.analyser.kafka.facts.fetch_members import members_of
from wirewitness.analyser.kafka.facts.fetch_rows import Fetches
from wirewitness.analyser.kafka.facts.fetch_start_cause import (
    asked,
    changed_since,
    ends_of,
    gaps_of,
    listed_before,
    refused_before,
    stored_before,
)
from wirewitness.analyser.kafka.facts.fetch_start_rows import Places, unseen
from wirewitness.analyser.kafka.facts.fetch_starts import Begun, Runs, refused
from wirewitness.analyser.kafka.facts.fetch_stored_offsets import answers_of, changes_of, commits_of, stored_of
from wirewitness.analyser.tables.tables import arrow_schema

TABLE = "kafka_reading_runs"
_BEGAN_BY = pa.array(["first", "topic id", "offset", "connection"])
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
        yield pa.table({field.name: names[field.name](some) for field in arrow_schema(TABLE)})


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
    found, ends = members_of(con, readers, begun), ends_of(con, readers)
    end = ends.place[begun.reader]
    who = {name: _named(column) for name, column in readers.columns.items() if name != "partition"}
    changed = {name: _named(column) for name, column in changes.columns.items()}

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
        "began_by": _texts(pc.dictionary_encode(_BEGAN_BY), _began_by(begun)),
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
        "ts_listed": _times(listed.at_ns),
        "listed_timestamp": _numbers(listed.asked),
        "last_log_end_offset": _numbers(integers(ends.columns["log_end"]), end),
        "ts_last_log_end": _times(integers(ends.columns["at_ns"]), end),
        "earlier_log_end_offset": _numbers(integers(ends.columns["earlier_end"]), end),
        "transactional": lambda some: taken_rows(ends.columns["transactional"], end[some]),
        "client_gap_ts": _times(gaps.before_ns),
        "ts_last_gap": _times(gaps.last_ns),
        "flow_id": shown("flow_id"),
        "file": shown("file"),
        "request_packet": _numbers(fetches.numbers("request_packet"), places.rows("request_packet")),
    }
    return columns, len(begun.reader)


def _began_by(begun: Begun) -> Integers:
    elsewhere = begun.first_offset != begun.position_before
    return np.select([begun.before_ns == UNKNOWN, begun.other_id, elsewhere], [0, 1, 2], 3)


def _named(column: pa.DictionaryArray) -> pa.DictionaryArray:
    """The texts; null for an empty one."""
    nameless = pc.index(column.dictionary, "")
    indices = pc.if_else(pc.equal(column.indices, nameless), None, column.indices)
    return pa.DictionaryArray.from_arrays(indices, column.dictionary)


def _times(times: Integers, places: Integers | None = None) -> _Column:
    return lambda some: time_column(_some(times, places, some))


def _numbers(numbers: Integers, places: Integers | None = None) -> _Column:
    return lambda some: number_column(_some(numbers, places, some))


def _some(numbers: Integers, places: Integers | None, some: slice) -> Integers:
    """Those of some runs. places: where each run has its number."""
    return numbers[some] if places is None else taken(numbers, places[some], UNKNOWN)


def _texts(column: pa.DictionaryArray, places: Integers) -> _Column:
    return lambda some: text_column(column, places[some])
