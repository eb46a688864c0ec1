"""The DuckDB connection behind an analysis, and SQL text for it.

In: a folder for temporary files, a query. Out: a connection that reaches nothing else, and a relation, or QueryError.
DuckDB is imported by whoever opens the first connection: tables that are only shown do without it.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import pyarrow as pa

from wirewitness.analyser.capture.errors import CaptureError
from wirewitness.analyser.tables.model import SQL_TYPES
from wirewitness.analyser.tables.refused import why_refused
from wirewitness.analyser.tables.renamed import column_note, old_rows, renamed_tables_in, table_now
from wirewitness.analyser.tables.tables import ALL_TABLES, OLD_TABLES, arrow_schema

if TYPE_CHECKING:
    import duckdb

# Of a dataset's queries.
DUCKDB_MEMORY = "1GB"
# Of each process that helps with the rules of captures.
HELPER_MEMORY = "192MB"
# The catalog of tables that `keep` made, and their numbers: cursors of one database share it.
_KEPT, _NUMBERS = "kept", count()

# What one thread hides of warnings would come back with what another restores.
_QUIET = Lock()

# Of `exchanges`, for percentiles and charts: latency_ms, null where the request asked the server to wait.
UNAWAITED_MS = "(case when awaitable is not true then latency_ms end)"
# Of rows of exchanges, or of commands: those that have such a latency.
IS_TIMED = "(awaitable is not true and latency_ms is not null)"


class QueryError(ValueError):
    """A condition or query that DuckDB refuses; the text is one sentence for the user."""


class QueryTooLarge(QueryError):
    """A query, not wrong, that needs more memory or temporary files than it may take."""


class UnreadableRows(CaptureError):
    """The files of a table are damaged, or gone since they were opened; the text is one line for people."""


# What it adds to its message that helps.
_HINTS = ("Candidate bindings", "Did you mean")
# What it says of a column that is not there.
_MISSING_COLUMN = re.compile(r'(?i)column (?:named )?"(\w+)"')
# What DuckDB says of a Parquet file that is none.
_OF_A_FILE = re.compile(r"(?i)file '[^']+\.parquet'")


def open_connection(
    folder: Path,
    readable: Iterable[object] = (),
    memory: str = DUCKDB_MEMORY,
    threads: int = 2,
    temporary_bytes: int | None = None,
    *,
    statistics: bool = True,
) -> duckdb.DuckDBPyConnection:
    """A connection within fixed memory that reaches no Python variables and no files outside these folders.

    folder: for its temporary files. readable: folders, or addresses of them, with files to read. memory: what it may
    take before it spills. threads: one takes a tenth less processor time than two, where other processes are at work.
    temporary_bytes: what it may spill, by default nine tenths of the free space. statistics: believe what files say of
    their values in place of reading these, but for conditions, which always do.
    """
    import duckdb

    connection = duckdb.connect(":memory:")
    if temporary_bytes is not None:
        connection.execute(f"SET max_temp_directory_size = {literal(f'{temporary_bytes}B')}")
    for setting, value in (
        ("memory_limit", memory),
        ("temp_directory", str(folder)),
        ("TimeZone", "UTC"),
        ("threads", str(threads)),
        # What queries leave behind goes back soon: it would stay beside the limit, 100 MiB after the context alone. A
        # threshold of 1 MB is reached by every statement, which then takes its memory anew: a fifth of a small capture.
        ("allocator_flush_threshold", "16MB"),
        ("allocator_bulk_deallocation_flush_threshold", "16MB"),
        ("enable_progress_bar", False),
        ("disabled_optimizers", "" if statistics else "statistics_propagation"),
        ("python_enable_replacements", False),
        ("autoinstall_known_extensions", False),
        ("autoload_known_extensions", False),
        ("allowed_directories", [str(folder), *map(str, readable)]),
        ("enable_external_access", False),
        ("lock_configuration", True),
    ):
        connection.execute(f"SET {setting} = {literal(value)}")
    return connection


def keep(connection: duckdb.DuckDBPyConnection, name: str, query: str) -> str:
    """A new table of rows that stay, compressed: of texts that repeat a twentieth is left. What stands behind FROM."""
    table = f"{_KEPT}.{name}_{next(_NUMBERS)}"
    connection.execute(f"ATTACH IF NOT EXISTS ':memory:' AS {_KEPT} (COMPRESS)")
    connection.execute(f"CREATE TABLE {table} AS {query}")
    connection.execute(f"CHECKPOINT {_KEPT}")
    return table


def keep_more(connection: duckdb.DuckDBPyConnection, table: str, query: str) -> None:
    """More rows for a table of `keep`, behind those that it has."""
    connection.execute(f"INSERT INTO {table} {query}")
    connection.execute(f"CHECKPOINT {_KEPT}")


def select(connection: duckdb.DuckDBPyConnection, query: str) -> duckdb.DuckDBPyRelation:
    """The relation of one SELECT. Raises QueryError."""
    with failures_told():
        return connection.sql(_one_select(connection, query))


def answer(connection: duckdb.DuckDBPyConnection, query: str) -> pa.Table:
    """The rows of one SELECT, of which there are not many. Raises QueryError, UnreadableRows."""
    with failures_told():
        return fetched(connection, _one_select(connection, query))


def fetched(connection: duckdb.DuckDBPyConnection, query: str | duckdb.Statement) -> pa.Table:
    """The rows of one SELECT, of which there are not many: they are copied once more.

    A relation would be planned twice, once for its columns: of a large query over few rows that is most of its time.
    """
    connection.execute(query)
    with _QUIET, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Arrow output on a DB-API result", UserWarning)
        return connection.to_arrow_table()


def _one_select(connection: duckdb.DuckDBPyConnection, query: str) -> duckdb.Statement:
    import duckdb

    why = why_refused(query)
    if why is not None:
        raise QueryError(why)
    statements = connection.extract_statements(query)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise QueryError("exactly one SELECT is possible here")
    return statements[0]


@contextmanager
def failures_told() -> Iterator[None]:
    """Errors of DuckDB become QueryError or UnreadableRows."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        raise failed(error) from error
    except pa.ArrowInvalid as error:
        if "Recursion level" not in str(error):
            raise
        raise QueryError("the rows have lists or structs within each other that are too many to show") from error


def failed(error: duckdb.Error) -> Exception:
    """What to raise for an error of DuckDB: QueryError, or UnreadableRows where not the query is to blame."""
    import duckdb

    if isinstance(error, duckdb.OutOfMemoryException):
        return QueryTooLarge(sentence(error))
    if isinstance(error, duckdb.IOException) or type(error) is duckdb.Error or _OF_A_FILE.search(str(error)):
        return UnreadableRows(f"rows cannot be read: {sentence(error)}")
    return QueryError(sentence(error))


def needs_microseconds(error: Exception) -> bool:
    """Is it refused only because DuckDB cannot calculate with times in nanoseconds?"""
    return SQL_TYPES["time"] in str(error)


def in_microseconds(name: str, source: str) -> str:
    """A SELECT of a table's rows whose times DuckDB can calculate with. source: what stands behind FROM."""
    times = [quoted(column.name) for column in ALL_TABLES[name].columns if column.kind == "time"]
    replaced = ", ".join(f"{column}::TIMESTAMPTZ AS {column}" for column in times)
    return f"SELECT * REPLACE ({replaced}) FROM {source}" if times else f"SELECT * FROM {source}"


def tables_in(query: str) -> list[str]:
    """Tables that one SELECT may read: those whose name it holds as a word. QueryError when it cannot be answered."""
    columns_in(query)
    words = words_of_tables(query)
    return [name for name in ALL_TABLES if name in words]


def words_of_tables(query: str) -> set[str]:
    """Words of a query that may be names of tables, old ones as they are called now."""
    return {table_now(word) for word in re.findall(r"\w+", query.lower())}


def old_tables(query: str) -> list[tuple[str, str]]:
    """Old names of tables that a query uses, each with what it stands for, as a part of a WITH."""
    return [
        (table_now(old), f"{quoted(old)} AS (FROM {old_rows(old, table_now(old))})") for old in renamed_tables_in(query)
    ]


def columns_in(query: str) -> tuple[str, ...]:
    """Columns that the rows of one SELECT have. QueryError when it cannot be answered.

    It is bound to empty tables, so that names and types are checked before any capture is read.
    """
    try:
        return _bind(query, pa.timestamp("ns", tz="UTC"))
    except QueryError as error:
        if not needs_microseconds(error):
            raise QueryError(renamed_column(error, query) or str(error)) from error
        return _bind(query, pa.timestamp("us", tz="UTC"))


def _bind(query: str, time: pa.DataType) -> tuple[str, ...]:
    import duckdb

    with duckdb.connect(":memory:") as connection:
        for name in (*ALL_TABLES, *OLD_TABLES):
            fields = [f.with_type(time) if pa.types.is_timestamp(f.type) else f for f in arrow_schema(name)]
            connection.register(name, pa.schema(fields).empty_table())
        for setting, value in (
            ("TimeZone", "UTC"),
            ("python_enable_replacements", False),
            ("autoinstall_known_extensions", False),
            ("autoload_known_extensions", False),
            ("enable_external_access", False),
            ("lock_configuration", True),
        ):
            connection.execute(f"SET {setting} = {literal(value)}")
        return tuple(select(connection, query).columns)


def missing_table(error: QueryError) -> str | None:
    """Name of the table that does not exist, where that is what is wrong."""
    found = re.search(r"Table with name (\S+) does not exist", str(error))
    return found[1] if found else None


def renamed_column(error: object, query: str) -> str | None:
    """`column story_id is now incident_id`, where that is what is wrong with a query of the tables that it names."""
    found = _MISSING_COLUMN.search(str(error))
    return column_note(found[1], re.findall(r"\w+", query.lower())) if found else None


def sentence(error: duckdb.Error) -> str:
    """DuckDB's message as one line: without the query that it repeats and the functions that do not fit either."""
    lines = [line.strip() for line in str(error).split("\n\n", maxsplit=1)[0].strip().splitlines()]
    hints = [line for line in lines[1:] if line.startswith(_HINTS)]
    return " ".join([*lines[:1], *hints])


def distinct(connection: duckdb.DuckDBPyConnection, table: str, columns: Sequence[str]) -> pa.Table:
    """The different rows that these columns of a table have."""
    return connection.sql(f"SELECT DISTINCT {name_list(columns)} FROM {quoted(table)}").to_arrow_table()


def name_list(names: Sequence[str]) -> str:
    """The names, quoted, for a SELECT."""
    return ", ".join(quoted(name) for name in names)


def null_columns(table: str) -> str:
    """Every column of a registered table as a typed null, for a SELECT without rows."""
    return ", ".join(f"NULL::{SQL_TYPES[column.kind]} AS {quoted(column.name)}" for column in ALL_TABLES[table].columns)


def other_column(connection: duckdb.DuckDBPyConnection, table: str, source: str) -> str | None:
    """What is wrong with rows that a stranger wrote, None where they have the columns of a registered table.

    source: what stands behind FROM.
    """
    import duckdb

    names = ALL_TABLES[table].column_names()
    try:
        found = connection.sql(f"SELECT {name_list(names)} FROM {source}").types
    except duckdb.Error as error:
        return sentence(error)
    wanted = connection.sql(f"SELECT {null_columns(table)}").types
    wrong = [f"{name} is {one}" for name, one, right in zip(names, found, wanted, strict=True) if one != right]
    return wrong[0] if wrong else None


def quoted(name: str) -> str:
    """An identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(value: object) -> str:
    """A value as SQL: bool, text, or a list of these. What is no character is spelled out, as in the names of rows."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "[" + ", ".join(literal(item) for item in value) + "]"
    text = str(value).encode("utf-8", "backslashreplace").decode()
    return "'" + text.replace("'", "''") + "'"
