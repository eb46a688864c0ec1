"""What an hour's rows come down to for other hours, kept from run to run.

In: a change, and queries that reduce rows hour by hour. Out: a file of all hours for each, for which only those are
read whose parts are others than at the last run; and which hours these are. The files lie in the state of the dataset,
so that a run over months reads what is new and some rows for each hour before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple, TypeAlias

import duckdb

from wirewitness.analyser.archive.aggregate.derived import (
    Hour,
    among,
    change_connection,
    keep_rows,
    parts_by_hour,
    together,
    view_of,
)
from wirewitness.analyser.archive.aggregate.tasks import each_of
from wirewitness.analyser.archive.dataset.bounds import HOURS
from wirewitness.analyser.archive.dataset.change import Change
from wirewitness.analyser.archive.dataset.part import Part
from wirewitness.analyser.archive.dataset.snapshot import Snapshot
from wirewitness.analyser.archive.dataset.state_files import MARK, check_summary, kept_json, put_kept_json
from wirewitness.analyser.archive.spark.workers import Workers
from wirewitness.analyser.base.storage.exchange_files import files_below
from wirewitness.analyser.base.storage.folders import FolderPath
from wirewitness.analyser.tables.queries import literal, name_list

FOLDER = "hours"


class HourSummary(NamedTuple):
    """name: of the view. tables: whose rows are reduced.

    query: a SELECT over views of `tables` that gives a column `hour`, that of the part (see `derived.hour_of`). A row
    of it depends on rows of its own hour only.
    """

    name: str
    tables: tuple[str, ...]
    query: str

    @property
    def before(self) -> str:
        """The view with the last run's rows of the hours that were made anew."""
        return f"{self.name}_before"


# Summaries that are up to date, and the hours of each that were made anew.
Anew: TypeAlias = Mapping[HourSummary, set[Hour]]


def summarised(change: Change, workers: Workers, stage: str, summaries: Sequence[HourSummary]) -> Anew:
    """Bring the kept rows of summaries up to date, each in a task; the hours of each that were made anew.

    stage: of which this is the beginning.
    """
    hours = each_of(change, workers, f"{stage}, hour by hour", _summarise, summaries)
    return dict(zip(summaries, hours, strict=True))


def _summarise(snapshot: Snapshot, summary: HourSummary) -> set[Hour]:
    """The hours that were made anew in this run."""
    parts = parts_by_hour(snapshot.parts(), summary.tables)
    now = _stamps(parts)
    done = _done(snapshot, summary)
    if done is not None and done[0] == now:
        return done[1]
    last, then = _last(snapshot, summary)
    anew = {_hour(text) for text in now.keys() | then.keys() if now.get(text) != then.get(text)}
    with change_connection(snapshot) as con:
        for table in summary.tables:
            view_of(con, snapshot, table, ())
        con.execute(f"CREATE TEMP TABLE {summary.name} AS FROM ({summary.query}) LIMIT 0")
        if last is not None:
            rows = f"FROM read_parquet({literal(str(last))})"
            con.execute(f"INSERT INTO {summary.name} BY NAME {rows} WHERE NOT {among('hour', anew)}")
        for _, chosen in together({hour: parts[hour] for hour in anew if hour in parts}):
            for table in summary.tables:
                view_of(con, snapshot, table, chosen)
            con.execute(f"INSERT INTO {summary.name} BY NAME {summary.query}")
        keep_rows(con, f"FROM {summary.name}", _files(snapshot.state, summary)[0], mark=MARK)
    known = {"query": _digest(summary.query), "tables": summary.tables, "parts": now, "anew": [*map(_text, anew)]}
    put_kept_json(_files(snapshot.state, summary)[1], known, HOURS)
    return anew


def make_summaries(con: duckdb.DuckDBPyConnection, snapshot: Snapshot, anew: Anew) -> None:
    """The views `summary.name`, and `summary.before`, of summaries that are up to date."""
    for summary, hours in anew.items():
        con.execute(f"CREATE TEMP VIEW {summary.name} AS FROM read_parquet({literal(kept(snapshot, summary.name))})")
        last, _ = _last(snapshot, summary)
        before = f"{summary.name} WHERE false"
        if last is not None:
            before = f"read_parquet({literal(str(last))}) WHERE {among('hour', hours)}"
        names = name_list([name for (name, *_) in con.execute(f"DESCRIBE {summary.name}").fetchall()])
        con.execute(f"CREATE TEMP VIEW {summary.before} AS SELECT {names} FROM {before}")


def stamp_again(change: Change) -> None:
    """Say that all kept rows are those of the parts that count now: after changes that no summary can tell."""
    for name in files_below(change.state / FOLDER):
        if name.endswith(".json"):
            told = change.state / FOLDER / name
            known = kept_json(told, HOURS)
            known["parts"] = _stamps(parts_by_hour(change.parts(), known["tables"]))
            put_kept_json(told, known, HOURS)


def differing(summary: HourSummary, anew: set[Hour]) -> str:
    """A SELECT of the rows that are others than at the last run: those that are gone and those that came."""
    now = f"FROM {summary.name} WHERE {among('hour', anew)}"
    return f"(({now}) EXCEPT ALL (FROM {summary.before})) UNION ALL ((FROM {summary.before}) EXCEPT ALL ({now}))"


def remember(con: duckdb.DuckDBPyConnection, change: Snapshot, name: str) -> bool:
    """Keep the temporary table `name` for the next run, and make `name`_before, what the last run kept.

    False where it kept nothing.
    """
    last = change.previous_state / FOLDER / f"{name}.parquet" if change.previous_state is not None else None
    source = None
    if last is not None and last.is_file():
        check_summary(last)
        source = f"read_parquet({literal(str(last.resolve()))})"
    con.execute(f"CREATE TEMP TABLE {name}_before AS FROM {source or f'(FROM {name} LIMIT 0)'}")
    keep_rows(con, f"FROM {name}", change.state / FOLDER / f"{name}.parquet", mark=MARK)
    return source is not None


def kept(change: Snapshot, name: str) -> str:
    """The file in which this run keeps a table."""
    return str((change.state / FOLDER / f"{name}.parquet").resolve())


def _last(change: Snapshot, summary: HourSummary) -> tuple[FolderPath | None, Mapping[str, str]]:
    """The file of the last run's rows, and digests of the parts that each of its hours was made of."""
    if change.previous_state is None:
        return None, {}
    rows, told = _files(change.previous_state, summary)
    if not rows.is_file() or not told.is_file():
        return None, {}
    known = kept_json(told, HOURS)
    check_summary(rows)
    parts = known.get("parts") if known.get("query") == _digest(summary.query) else None
    if not isinstance(parts, dict) or not all(isinstance(one, str) for one in parts.values()):
        return None, {}
    return rows.resolve(), parts


def _done(snapshot: Snapshot, summary: HourSummary) -> tuple[dict[str, str], set[Hour]] | None:
    """Digests of the parts that this run's rows of the summary are of, and the hours that were made anew for them."""
    told = _files(snapshot.state, summary)[1]
    if not told.is_file():
        return None
    known = kept_json(told, HOURS)
    return known["parts"], {_hour(text) for text in known["anew"]}


def _stamps(parts: Mapping[Hour, Sequence[Part]]) -> dict[str, str]:
    """Of which parts each hour consists, in short. A part is never written again under the same path."""
    return {_text(hour): _digest(*sorted(part.path for part in own)) for hour, own in parts.items()}


def _files(state: FolderPath, summary: HourSummary) -> tuple[FolderPath, FolderPath]:
    return state / FOLDER / f"{summary.name}.parquet", state / FOLDER / f"{summary.name}.json"


def _digest(*texts: str) -> str:
    return blake2b("\n".join(texts).encode(), digest_size=16).hexdigest()


def _text(hour: Hour) -> str:
    return "" if hour is None else str(hour)


def _hour(text: str) -> Hour:
    return int(text) if text else None
