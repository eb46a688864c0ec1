"""What shares of a table make, in files, until other tasks put it into hours.

In: what a task sees of a change, a SELECT. Out: a file for each share, and the hours of all of them together, written
where they came out otherwise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

import duckdb

from analyser.archive.dataset.change import Change
from analyser.archive.dataset.parts import time_column
from analyser.archive.dataset.sight import Sight
from analyser.archive.derive.derived import (
    ARRIVAL,
    PROVISIONAL,
    Hour,
    among,
    change_connection,
    hour_of,
    keep_rows,
    replace_changed_hours,
)
from analyser.registry.queries import literal, name_list, quoted
from analyser.registry.tables import arrow_schema
from analyser.storage.folders import FolderPath
from analyser.storage.handing import remove_below

# A share has about so many rows: what one task looks at.
SHARE_ROWS = 2_000_000
_SHARES = "shares"


def shares_for(rows: int) -> int:
    """Into how many shares so many rows are dealt."""
    return -(-rows // SHARE_ROWS)


def leave(con: duckdb.DuckDBPyConnection, sight: Sight, table: str, rows: str, name: str) -> Counter[Hour]:
    """Write rows of a table for the tasks that put them into hours; how many each hour has. name: of this share."""
    path = _file(sight, table, name)
    keep_rows(con, rows, path)
    hour = hour_of(quoted(time_column(table) or ""))
    written = literal(str(path.resolve()))
    counts = con.execute(f"SELECT {hour}, count(*) FROM read_parquet({written}) GROUP BY ALL").fetchall()
    return Counter({None if one is None else int(one): rows for one, rows in counts})


def put_into_hours(
    sight: Sight, table: str, hours: Collection[Hour], names: Iterable[str], *, is_new: bool
) -> set[Hour]:
    """Write those of these hours that came out otherwise, of what the shares of these names left; which were written.

    is_new: the table had no rows before the stage that made these.
    """
    columns = [*arrow_schema(table).names, *(() if is_new else (*ARRIVAL, PROVISIONAL))]
    files = literal([str(_file(sight, table, name).resolve()) for name in names])
    rows = f"SELECT {name_list(columns)} FROM read_parquet({files}, hive_partitioning = false)"
    with change_connection(sight) as con:
        chosen = among(hour_of(quoted(time_column(table) or "")), hours)
        return replace_changed_hours(con, sight, table, f"{rows} WHERE {chosen}", hours, is_cheap=True)


def remove_shares(change: Change) -> None:
    """What shares left is not needed any more."""
    remove_below(change.work / _SHARES)


def share_file(sight: Sight, name: str) -> FolderPath:
    """Where a file of that name lies until `remove_shares`."""
    return sight.work / _SHARES / f"{name}.parquet"


def _file(sight: Sight, table: str, name: str) -> FolderPath:
    return share_file(sight, f"{table}-{name}")
