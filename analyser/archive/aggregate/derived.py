"""Tables of a dataset that are made from its other tables: only hours whose rows came out otherwise are written.

In: what a task sees of a change, views in DuckDB. Out: parts added and removed. Comparing costs one pass over old and
new rows, writing would cost months of files in every run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType

import duckdb
import pyarrow as pa

from wirewitness.analyser.archive.dataset.part import Part, Place
from wirewitness.analyser.archive.dataset.parts import HOUR_NS, time_column, write_parts
from wirewitness.analyser.archive.dataset.snapshot import Snapshot
from wirewitness.analyser.archive.dataset.stored_types import part_schema, stored_rows
from wirewitness.analyser.base.storage.exchange_files import NewFile, scratch_in
from wirewitness.analyser.base.storage.files import let_reach
from wirewitness.analyser.base.storage.folders import FolderPath
from wirewitness.analyser.decoding.rows.timeorder import FLOW
from wirewitness.analyser.tables.queries import literal, name_list, null_columns, open_connection, quoted, select
from wirewitness.analyser.tables.tables import ALL_TABLES, arrow_schema

PROVISIONAL = "_provisional"
# Where a row lies.
ARRIVAL = (FLOW, "filename", "file_row_number")
# Hours of about so many rows are worked on together, from at most so many files.
TOGETHER_ROWS = 1_000_000
TOGETHER_PARTS = 2_000
_BATCH_ROWS = 1 << 15
# Sorting ten million wide rows at once takes more memory than there is, however much is spilled.
SORTED_ROWS = 500_000
# Of DuckDB in a task: beside it and Python's own there is to be room within a gigabyte.
TASK_MEMORY = "512MB"

# Hours since 1970 of a part; None for no time.
Hour = int | None
# How many rows, and the sum of their hashes.
Digest = tuple[int, int]
_NEW = "FROM derived_new"


@contextmanager
def change_connection(change: Snapshot) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection within fixed memory that reads a change's parts and spills where a task can."""
    with scratch_in(change.work) as scratch, connection_over(change, scratch, TASK_MEMORY) as con:
        yield con


@contextmanager
def connection_over(change: Snapshot, scratch: Path, memory: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """The same within so much memory, and with a folder for temporary files, which it reads, too."""
    places = [place for place in (change.root, change.staging, change.previous_state) if place is not None]
    readable = [place.resolve() for place in places]
    with closing(open_connection(scratch, readable, memory)) as con:
        let_reach(con, places)
        yield con


def keep_rows(
    con: duckdb.DuckDBPyConnection,
    query: str,
    path: FolderPath,
    group_rows: int = 122_880,
    mark: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Write the rows of a SELECT to a Parquet file, which is there at once: a task may be done twice at a time.

    group_rows: in a row group. mark: metadata of the file.
    """
    told = ", ".join(f"{name}: {literal(value)}" for name, value in mark.items())
    ((spills_to,),) = con.execute("SELECT current_setting('temp_directory')").fetchall()
    with NewFile(path, Path(spills_to)) as written:
        con.execute(
            f"COPY ({query}) TO {literal(str(written.resolve()))} (FORMAT parquet, COMPRESSION zstd, "
            f"ROW_GROUP_SIZE {group_rows}{f', KV_METADATA {{{told}}}' if told else ''})"
        )


def view_of(
    con: duckdb.DuckDBPyConnection,
    change: Snapshot,
    table: str,
    chosen: Iterable[Part] | None = None,
    *,
    hidden: bool = False,
) -> None:
    """Make the view of a table over those of the chosen parts that are its own, or over all its parts.

    hidden: with FLOW, PROVISIONAL and where a row lies, which `replace_changed_hours` needs.
    """
    con.execute(f"CREATE OR REPLACE TEMP VIEW {quoted(table)} AS {rows_of(change, table, chosen, hidden=hidden)}")


def parts_by_hour(parts: Iterable[Part], tables: Collection[str]) -> dict[Hour, list[Part]]:
    """The parts of some tables by the hour of their rows."""
    found: dict[Hour, list[Part]] = {}
    for part in parts:
        if part.table in tables:
            found.setdefault(Place.of(part).hour, []).append(part)
    return found


def rows_of(change: Snapshot, table: str, chosen: Iterable[Part] | None = None, *, hidden: bool = False) -> str:
    """The rows of a table as a SELECT: of those of the chosen parts that are its own, or of all."""
    parts = change.parts(table) if chosen is None else [part for part in chosen if part.table == table]
    columns = name_list(arrow_schema(table).names)
    if hidden:
        columns += f", {FLOW}, {PROVISIONAL}, filename, file_row_number"
    if not parts:
        return f"SELECT {columns} FROM ({_no_rows(table)})"
    kinds = {flag: [part for part in parts if part.provisional == flag] for flag in (False, True)}
    return " UNION ALL ".join(
        f"SELECT {columns.replace(PROVISIONAL, f'{literal(flag)} AS {PROVISIONAL}')} "
        f"FROM {_files(change, table, files)}"
        for flag, files in kinds.items()
        if files
    )


def together(hours: Mapping[Hour, Sequence[Part]]) -> Iterator[tuple[set[Hour], list[Part]]]:
    """Hours in their order, as many at a time as are worked on together, with their parts."""
    held: set[Hour] = set()
    parts: list[Part] = []
    rows = 0
    for hour in sorted(hours, key=lambda hour: (hour is not None, hour or 0)):
        more = sum(part.rows for part in hours[hour])
        if held and (rows + more > TOGETHER_ROWS or len(parts) + len(hours[hour]) > TOGETHER_PARTS):
            yield held, parts
            held, parts, rows = set(), [], 0
        held.add(hour)
        parts.extend(hours[hour])
        rows += more
    if held:
        yield held, parts


def parts_together(parts: Iterable[Part], most_rows: int) -> Iterator[list[Part]]:
    """Parts in their order, as many at a time as have so many rows, or a larger one."""
    held: list[Part] = []
    rows = 0
    for part in parts:
        if held and rows + part.rows > most_rows:
            yield held
            held, rows = [], 0
        held.append(part)
        rows += part.rows
    if held:
        yield held


def hour_of(column: str) -> str:
    """Hours since 1970 of a time, as `Place.hour`."""
    return hour_of_ns(f"epoch_ns({column})")


def hour_of_ns(time: str) -> str:
    """Hours since 1970 of Unix ns."""
    return f"(({time} - (({time} % {HOUR_NS}) + {HOUR_NS}) % {HOUR_NS}) // {HOUR_NS})"


def among(column: str, hours: Collection[Hour]) -> str:
    """A condition that is never null: the column is one of these hours."""
    numbers = ", ".join(str(one) for one in sorted(one for one in hours if one is not None))
    either = [*([f"{column} IN ({numbers})"] if numbers else []), *([f"{column} IS NULL"] if None in hours else [])]
    return f"coalesce({' OR '.join(either)}, false)" if either else "false"


def replace_changed_hours(
    con: duckdb.DuckDBPyConnection,
    change: Snapshot,
    table: str,
    new: str,
    only: Collection[Hour] | None = None,
    *,
    is_cheap: bool = False,
) -> set[Hour]:
    """Make the rows of a table those of the SELECT `new`; the hours that were written.

    new: gives the registered columns; with PROVISIONAL, FLOW, filename and file_row_number where rows keep these.
    only: hours that `new` has rows of; others stay. None for all. is_cheap: `new` costs little more than reading what
    it makes, so it is read several times; else its rows are held, which for wide ones takes much of the disk.
    """
    parts = [part for part in change.parts(table) if only is None or Place.of(part).hour in only]
    kind = "VIEW" if is_cheap else "TABLE"
    con.execute(f"CREATE TEMP {kind} derived_new AS {new}")
    try:
        hours = differing_hours(digests(con, table, rows_of(change, table, parts)), digests(con, table, _NEW))
        if hours:
            change.remove(*(part for part in parts if Place.of(part).hour in hours))
            _write(con, change, table, hours, "")
    finally:
        con.execute(f"DROP {kind} derived_new")
    return hours


def write_hours(
    con: duckdb.DuckDBPyConnection, change: Snapshot, table: str, new: str, hours: Collection[Hour], name: str
) -> None:
    """Write the rows of the SELECT `new` that are of these hours, in parts that have this in their names.

    Where nobody else writes parts of these hours it is empty.
    """
    con.execute(f"CREATE TEMP VIEW derived_new AS {new}")
    try:
        _write(con, change, table, hours, name)
    finally:
        con.execute("DROP VIEW derived_new")


def digests(con: duckdb.DuckDBPyConnection, table: str, rows: str) -> dict[Hour, Digest]:
    """What rows of a table come down to, hour by hour, whatever their order. rows: a SELECT of its columns."""
    found = con.execute(
        f"SELECT {hour_of(quoted(time_column(table) or ''))} AS hour, count(*), "
        f"sum(hash({name_list(arrow_schema(table).names)})) FROM ({rows}) GROUP BY hour"
    ).fetchall()
    return {None if hour is None else int(hour): (count, int(total)) for hour, count, total in found}


def together_of(told: Iterable[Mapping[Hour, Digest]]) -> dict[Hour, Digest]:
    """The digests of rows of which these are parts."""
    found: dict[Hour, Digest] = {}
    for one in told:
        for hour, (count, total) in one.items():
            before = found.get(hour, (0, 0))
            found[hour] = before[0] + count, before[1] + total
    return found


def differing_hours(old: Mapping[Hour, Digest], new: Mapping[Hour, Digest]) -> set[Hour]:
    """Hours whose rows are not the same."""
    return {hour for hour in {*old, *new} if old.get(hour) != new.get(hour)}


def _write(con: duckdb.DuckDBPyConnection, change: Snapshot, table: str, hours: Collection[Hour], name: str) -> None:
    """Write the rows of `derived_new` that are of these hours. name: what sets the names of the parts apart."""
    kept = {column for (column, *_) in con.execute("DESCRIBE derived_new").fetchall()}
    hour = hour_of(quoted(time_column(table) or ""))
    arrival = [name for name in ARRIVAL if name in kept]
    columns = [name for name in part_schema(table).names if name in kept]
    order = f"{hour}, {name_list([*ALL_TABLES[table].order, *arrival])}"
    for provisional in (False, True) if PROVISIONAL in kept else (False,):
        of_kind = f" AND {PROVISIONAL} = {literal(provisional)}" if PROVISIONAL in kept else ""
        chosen = f"{among(hour, hours)}{of_kind}"
        rows = (
            batch
            for stretch in _stretches(con, table, chosen)
            for batch in _batches(
                con, f"SELECT {name_list(columns)} FROM derived_new WHERE {chosen}{stretch} ORDER BY {order}"
            )
        )
        names = f"{change.run}-{'open' if provisional else 'made'}{name}"
        change.add(*write_parts(table, rows, change.staging, names, provisional=provisional))


def _stretches(con: duckdb.DuckDBPyConnection, table: str, chosen: str) -> list[str]:
    """Conditions that cut the chosen rows by their time, in its order: each is sorted on its own."""
    column = time_column(table)
    if column is None or ALL_TABLES[table].order[0] != column:
        return [""]
    ((rows,),) = con.execute(f"SELECT count(*) FROM derived_new WHERE {chosen}").fetchall()
    pieces = -(-rows // SORTED_ROWS)
    if pieces < 2:
        return [""]
    shards = [number / pieces for number in range(1, pieces)]
    times = f"SELECT quantile_disc(epoch_ns({quoted(column)}), {shards}) FROM derived_new WHERE {chosen}"
    cuts = sorted({cut for (held,) in con.execute(times).fetchall() for cut in held or () if cut is not None})
    return [_between(quoted(column), low, high) for low, high in pairwise([None, *cuts, None])]


def _between(column: str, low: int | None, high: int | None) -> str:
    """From low on, before high; without a time at the end, where the order has them."""

    def time(ns: int) -> str:
        return f"make_timestamp_ns({ns})::TIMESTAMPTZ_NS"

    if high is None:
        return "" if low is None else f" AND ({column} >= {time(low)} OR {column} IS NULL)"
    return f" AND {column} < {time(high)}" + ("" if low is None else f" AND {column} >= {time(low)}")


def _batches(con: duckdb.DuckDBPyConnection, query: str) -> Iterator[pa.RecordBatch]:
    yield from select(con, query).to_arrow_reader(_BATCH_ROWS)


def _files(change: Snapshot, table: str, parts: Iterable[Part]) -> str:
    return stored_rows(table, [change.location(part).resolve() for part in parts])


def _no_rows(table: str) -> str:
    """A SELECT without rows that has all columns, hidden ones too."""
    columns = [null_columns(table), f"NULL::BIGINT AS {FLOW}", f"NULL::BOOLEAN AS {PROVISIONAL}"]
    columns += ["NULL::VARCHAR AS filename", "NULL::BIGINT AS file_row_number"]
    return f"SELECT {', '.join(columns)} LIMIT 0"
