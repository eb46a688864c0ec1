"""What an hour's rows come down to for other hours, kept from run to run.

In: a change, and a query that reduces rows hour by hour. Out: a temporary table of all hours, of which only those are
read whose parts are others than at the last run; and which hours these are. The tables lie in the state of the dataset,
so that a run over months reads what is new and some rows for each hour before.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import duckdb

from analyser.archive.dataset.change import Change
from analyser.archive.dataset.part import Part
from analyser.archive.derive.derived import Hour, among, parts_by_hour, together, view_of
from analyser.registry.queries import literal

FOLDER = "hours"


class HourSummary(NamedTuple):
    """name: of the temporary table. tables: whose rows are reduced.

    query: a SELECT over views of `tables` that gives a column `hour`, that of the part (see `derived.hour_of`). A row
    of it depends on rows of its own hour only.
    """

    name: str
    tables: tuple[str, ...]
    query: str

    @property
    def before(self) -> str:
        """The temporary table with the last run's rows of the hours that were made anew."""
        return f"{self.name}_before"


def summarise(con: duckdb.DuckDBPyConnection, change: Change, summary: HourSummary) -> set[Hour]:
    """Make the tables `summary.name` and `summary.before`; the hours that were made anew."""
    parts = parts_by_hour(change.parts(), summary.tables)
    now = _stamps(parts)
    last, then = _last(change, summary)
    anew = {_hour(text) for text in now.keys() | then.keys() if now.get(text) != then.get(text)}
    for table in summary.tables:
        view_of(con, change, table, ())
    con.execute(f"CREATE TEMP TABLE {summary.name} AS FROM ({summary.query}) LIMIT 0")
    con.execute(f"CREATE TEMP TABLE {summary.before} AS FROM {summary.name}")
    if last is not None:
        rows = f"FROM read_parquet({literal(str(last))})"
        con.execute(f"INSERT INTO {summary.name} BY NAME {rows} WHERE NOT {among('hour', anew)}")
        con.execute(f"INSERT INTO {summary.before} BY NAME {rows} WHERE {among('hour', anew)}")
    for _, chosen in together({hour: parts[hour] for hour in anew if hour in parts}):
        for table in summary.tables:
            view_of(con, change, table, chosen)
        con.execute(f"INSERT INTO {summary.name} BY NAME {summary.query}")
    (change.state / FOLDER).mkdir(exist_ok=True)
    con.execute(f"COPY {summary.name} TO {literal(kept(change, summary.name))} (FORMAT parquet, COMPRESSION zstd)")
    stamp(change, summary)
    return anew


def stamp(change: Change, summary: HourSummary) -> None:
    """Say of which parts the kept rows are."""
    stamps = _stamps(parts_by_hour(change.parts(), summary.tables))
    known = {"query": _digest(summary.query), "tables": summary.tables, "parts": stamps}
    _files(change.state, summary)[1].write_text(json.dumps(known))


def stamp_again(change: Change) -> None:
    """Say that all kept rows are those of the parts that count now: after changes that no summary can tell."""
    for told in sorted((change.state / FOLDER).glob("*.json")):
        known = json.loads(told.read_text())
        known["parts"] = _stamps(parts_by_hour(change.parts(), known["tables"]))
        told.write_text(json.dumps(known))


def differing(summary: HourSummary, anew: set[Hour]) -> str:
    """A SELECT of the rows that are others than at the last run: those that are gone and those that came."""
    now = f"FROM {summary.name} WHERE {among('hour', anew)}"
    return f"(({now}) EXCEPT ALL (FROM {summary.before})) UNION ALL ((FROM {summary.before}) EXCEPT ALL ({now}))"


def remember(con: duckdb.DuckDBPyConnection, change: Change, name: str) -> bool:
    """Keep the temporary table `name` for the next run, and make `name`_before, what the last run kept.

    False where it kept nothing.
    """
    last = change.previous_state / FOLDER / f"{name}.parquet" if change.previous_state is not None else None
    source = f"read_parquet({literal(str(last.resolve()))})" if last is not None and last.is_file() else None
    con.execute(f"CREATE TEMP TABLE {name}_before AS FROM {source or f'(FROM {name} LIMIT 0)'}")
    (change.state / FOLDER).mkdir(exist_ok=True)
    con.execute(f"COPY {name} TO {literal(kept(change, name))} (FORMAT parquet, COMPRESSION zstd)")
    return source is not None


def kept(change: Change, name: str) -> str:
    """The file in which this run keeps a table."""
    return str((change.state / FOLDER / f"{name}.parquet").resolve())


def _last(change: Change, summary: HourSummary) -> tuple[Path | None, Mapping[str, str]]:
    """The file of the last run's rows, and digests of the parts that each of its hours was made of."""
    if change.previous_state is None:
        return None, {}
    rows, told = _files(change.previous_state, summary)
    if not rows.is_file() or not told.is_file():
        return None, {}
    known = json.loads(told.read_text())
    parts = known.get("parts") if isinstance(known, dict) and known.get("query") == _digest(summary.query) else None
    if not isinstance(parts, dict) or not all(isinstance(one, str) for one in parts.values()):
        return None, {}
    return rows.resolve(), parts


def _stamps(parts: Mapping[Hour, Sequence[Part]]) -> dict[str, str]:
    """Of which parts each hour consists, in short. A part is never written again under the same path."""
    return {_text(hour): _digest(*sorted(part.path for part in own)) for hour, own in parts.items()}


def _files(state: Path, summary: HourSummary) -> tuple[Path, Path]:
    return state / FOLDER / f"{summary.name}.parquet", state / FOLDER / f"{summary.name}.json"


def _digest(*texts: str) -> str:
    return blake2b("\n".join(texts).encode(), digest_size=16).hexdigest()


def _text(hour: Hour) -> str:
    return "" if hour is None else str(hour)


def _hour(text: str) -> Hour:
    return int(text) if text else None
