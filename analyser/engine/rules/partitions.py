"""The partitions of rules of one key, each with the frames that its rules want.

In: a DuckDB connection, and rules of one key. Out: key by key the rows of all tables, read and sorted once for all of
these rules. DuckDB sorts (and spills); what it gives is held up to `MOST_HELD_BYTES` a table, beyond that it lies in
a file meanwhile, so that memory holds one partition and a batch of each table.
"""

from __future__ import annotations

import heapq
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from wirewitness.analyser.engine.rules.columns import held_rows
from wirewitness.analyser.engine.rules.frame import Frame, Span
from wirewitness.analyser.engine.rules.partition_sql import (
    ALL_BUCKETS,
    SUSPECTED,
    conditions,
    key_kind,
    rows_sql,
    suspects_sql,
)
from wirewitness.analyser.engine.rules.rule import Rule
from wirewitness.analyser.tables.parquet import TEMPORARY
from wirewitness.analyser.tables.queries import fetched
from wirewitness.analyser.tables.tables import ARROW_TYPES, TABLES

Key = tuple[Any, ...]
Wanted = tuple[Key, list[tuple[Rule, dict[str, Frame]]]]

BATCH_ROWS = 16_384
# Of one table; more go to a file while the other tables are asked.
MOST_HELD_BYTES = 24 << 20
# Of tables of so many rows what is wanted is fetched as a whole.
FEW_ROWS = 1 << 15
# More keys go into a table of DuckDB, which may spill them, for the price of asking twice.
MOST_KEYS = 10_000
_SUSPECTS = "wirewitness_suspects"


class Suspects(NamedTuple):
    """Whom some rules suspect.

    name: of the table of `suspects_sql`, None where no rule suspects. rules: numbers of those that suspect anybody, and
    of those that look at everybody. always: the latter alone.
    """

    name: str | None
    rules: frozenset[int]
    always: frozenset[int]


@contextmanager
def suspected(
    con: duckdb.DuckDBPyConnection,
    rules: Sequence[Rule],
    buckets: Sequence[int] = ALL_BUCKETS,
    most_keys: int = MOST_KEYS,
) -> Iterator[Suspects]:
    """Whom rules of one key suspect, asked with one statement; its table is there until the end of the block.

    Most rules suspect nobody in most captures, and to make a table and drop it takes as long as to plan the statement:
    few keys are registered as they come.
    """
    always = frozenset(number for number, rule in enumerate(rules) if rule.suspects is None)
    if len(always) == len(rules):
        yield Suspects(None, always, always)
        return
    query = suspects_sql(rules, buckets)
    keys = con.execute(query).fetchmany(most_keys + 1)
    if len(keys) > most_keys:
        con.execute(f"CREATE TEMP TABLE {_SUSPECTS} AS {query}")
        try:
            bits = con.execute(f'SELECT bit_or("{SUSPECTED}") FROM {_SUSPECTS}').fetchall()[0][0]
            yield Suspects(_SUSPECTS, always | _numbers(bits), always)
        finally:
            con.execute(f"DROP TABLE {_SUSPECTS}")
        return
    bits = 0
    for *_, bit in keys:
        bits |= bit
    con.register(_SUSPECTS, _table(rules[0], keys))
    try:
        yield Suspects(_SUSPECTS, always | _numbers(bits), always)
    finally:
        con.unregister(_SUSPECTS)


def _numbers(bits: int) -> frozenset[int]:
    return frozenset(number for number in range(bits.bit_length()) if bits >> number & 1)


def _table(rule: Rule, keys: Sequence[tuple[Any, ...]]) -> pa.Table:
    types = [*(ARROW_TYPES[key_kind(rule, key)] for key in rule.partition_by), pa.int64()]
    names = [*rule.partition_by, SUSPECTED]
    columns = [*zip(*keys, strict=True)] if keys else [()] * len(names)
    return pa.table([pa.array(column, kind) for column, kind in zip(columns, types, strict=True)], names=names)


def _many(_: str) -> int:
    return FEW_ROWS + 1


def partitions(
    con: duckdb.DuckDBPyConnection,
    rules: Sequence[Rule],
    suspects: Suspects,
    buckets: Sequence[int] = ALL_BUCKETS,
    folder: Path | None = None,
    rows: Callable[[str], int] = _many,
) -> Iterator[Wanted]:
    """Key, and each rule that looks at this partition with its frames, in the order of keys (null first).

    suspects: of `suspected`, over the same rules. folder: for temporary files; without one all rows are held. rows: how
    many a table has.
    """
    keys, looking = rules[0].partition_by, {number: rules[number] for number in sorted(suspects.rules)}
    tables = [*dict.fromkeys(table for rule in looking.values() for table in rule.reads)]
    makers = {number: _FrameMaker(rule, [*looking.values()]) for number, rule in looking.items()}
    statements = {table: rows_sql(looking, suspects.always, table, suspects.name, buckets) for table in tables}
    streams = [
        _of_table(_sorted_rows(con, query, folder, few=rows(table) <= FEW_ROWS), table, keys)
        for table, query in statements.items()
    ]
    for key, some in groupby(heapq.merge(*streams, key=lambda one: _null_first(one[0])), key=itemgetter(0)):
        spans = {table: found for _, table, found in some}
        first = next(iter(spans.values()))[0]
        bits = first.held[SUSPECTED].values(first.start, first.start + 1)[0]
        yield (
            key,
            [
                (looking[number], frames)
                for number, maker in makers.items()
                if bits >> number & 1 and (frames := maker.frames(spans))
            ],
        )


def _null_first(key: Key) -> tuple[tuple[bool, Any], ...]:
    return tuple((value is not None, value) for value in key)


def _sorted_rows(
    con: duckdb.DuckDBPyConnection, query: str, folder: Path | None, *, few: bool
) -> Iterator[pa.RecordBatch]:
    """The rows of a statement, which has ended when this returns: a connection has one statement at a time."""
    if few:
        return iter(fetched(con, query).to_batches(BATCH_ROWS))
    reader = con.sql(query).to_arrow_reader(BATCH_ROWS)
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in reader:
        held.append(batch)
        size += batch.nbytes
        if size > MOST_HELD_BYTES and folder is not None:
            return _from_file(chain(held, reader), reader.schema, folder / f"rows-{uuid.uuid4().hex}")
    return iter(held)


def _from_file(batches: Iterable[pa.RecordBatch], schema: pa.Schema, path: Path) -> Iterator[pa.RecordBatch]:
    try:
        options = pa.ipc.IpcWriteOptions(compression=TEMPORARY)
        with pa.ipc.new_stream(path, schema, options=options) as file:
            for batch in batches:
                file.write_batch(batch)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return _read(path)


def _read(path: Path) -> Iterator[pa.RecordBatch]:
    try:
        with pa.OSFile(str(path), "rb") as file, pa.ipc.open_stream(file) as batches:
            yield from batches
    finally:
        path.unlink(missing_ok=True)


def _of_table(
    batches: Iterator[pa.RecordBatch], table: str, keys: Sequence[str]
) -> Iterator[tuple[Key, str, list[Span]]]:
    """Key, table and rows of every partition of sorted rows."""
    runs = (run for batch in batches for run in _runs(batch, keys))
    for key, some in groupby(runs, key=itemgetter(0)):
        yield key, table, [span for _, span in some]


def _runs(batch: pa.RecordBatch, keys: Sequence[str]) -> Iterator[tuple[Key, Span]]:
    """Key and rows of every run of rows with one key."""
    if not batch.num_rows:
        return
    held = held_rows(batch)
    changed: npt.NDArray[np.bool_] = np.zeros(batch.num_rows, dtype=bool)
    changed[0] = True
    for name in keys:
        codes = batch.column(name).dictionary_encode(null_encoding="encode").indices.to_numpy()
        changed[1:] |= codes[1:] != codes[:-1]
    starts = np.flatnonzero(changed)
    values = [batch.column(name).take(pa.array(starts)).to_pylist() for name in keys]
    for number, (start, end) in enumerate(pairwise([*starts.tolist(), batch.num_rows])):
        yield tuple(column[number] for column in values), Span(held, start, end)


class _FrameMaker:
    """Frames of one rule out of rows that other rules want, too."""

    def __init__(self, rule: Rule, others: Sequence[Rule]) -> None:
        self._empty = {table: empty(rule, table) for table in rule.reads}
        self._flags: dict[str, str] = {}
        for table in rule.reads:
            names = conditions([one for one in others if table in one.reads], table)
            self._flags[table] = names[rule.rows.get(table, "true")]

    def frames(self, spans: Mapping[str, Sequence[Span]]) -> dict[str, Frame] | None:
        """One frame per table, those without rows the same in all partitions; None where no row is wanted."""
        found = dict(self._empty)
        for table, nothing in self._empty.items():
            if table in spans:
                found[table] = self._wanted(Frame(nothing.schema, spans[table]), table, spans[table])
        return found if any(map(len, found.values())) else None

    def _wanted(self, frame: Frame, table: str, spans: Sequence[Span]) -> Frame:
        if not (flag := self._flags[table]):
            return frame
        parts = [held[flag].array(start, end).to_numpy(zero_copy_only=False) for held, start, end in spans]
        wanted = np.concatenate(parts)
        return frame if wanted.all() else frame.take(wanted)


def empty(rule: Rule, table: str) -> Frame:
    """A frame without rows, with the registered column types."""
    names = rule.keys.get(table, {})
    kinds = {column: TABLES[table].column(names.get(column, column)).kind for column in rule.columns(table)}
    return Frame(pa.schema([(column, ARROW_TYPES[kind]) for column, kind in kinds.items()]), [])
