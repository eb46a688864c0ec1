"""Kept tables of an analysed capture, or a dataset, as a source of rows. In: a folder; out: answers to SQL.

`Opened` is the capture, the same for all sessions; `Selected` is what one session looks at: a time range and protocols.
Both are a `reports.base.questions.source.Source`. Answers that are small are remembered, for a rerun of a page asks
them all again.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

import duckdb
import pyarrow as pa

from wirewitness.analyser import read
from wirewitness.analyser.analysis.evidence.cache import cache_folder
from wirewitness.analyser.archive.dataset.dataset import Dataset
from wirewitness.analyser.archive.dataset.place import MANIFEST
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.base.storage.address import address_of
from wirewitness.analyser.base.storage.folders import FolderPath, StorePath
from wirewitness.analyser.base.untrusted_files import is_no_file, text_of
from wirewitness.analyser.tables.queries import UnreadableRows, failed, literal, open_connection, other_column, quoted
from wirewitness.analyser.tables.required import lacking
from wirewitness.analyser.tables.tables import TABLES, arrow_schema
from wirewitness.app.dashboard.answers import kept_answer
from wirewitness.reports.base.questions.source import narrowed, rows

META = "dashboard.json"
_REMEMBERED_BYTES = 64_000_000
_LARGEST_REMEMBERED = 4_000_000
# DuckDB is not to be asked again after these.
_BROKEN = (duckdb.InternalException, duckdb.FatalException)
# What an answer takes beside its rows: its schema, and its place among the others.
_ANSWER_BYTES = 4_000
_BATCH_ROWS = 1 << 15
_WORKED_OUT = 3
Worked = TypeVar("Worked")


class TablesGone(Exception):
    """The tables are not there any more, or not as they were opened: they have to be opened again."""


class TablesDamaged(TablesGone):
    """The kept tables cannot be read: the capture has to be analysed again."""


def reading_options(given: Mapping[str, Any]) -> ReadOptions:
    """How captures are read, from what the command line said as JSON: the fields of ReadOptions by their names."""
    decode_as = {int(port): name for port, name in given.get("decode_as", {}).items()}
    return ReadOptions(
        decode_as=decode_as,
        enable=tuple(given.get("enable", ())),
        processes=given.get("processes", 1),
        topic_ids=given.get("topic_ids", {}),
        keylogs=tuple(given.get("keylogs", ())),
        hosts=tuple(given.get("hosts", ())),
    )


def version_of(folder: FolderPath) -> str:
    """Changes when the tables in the folder do. OSError: they are gone."""
    if isinstance(folder, StorePath):
        state = (folder / MANIFEST).file().state
        return state.tag or str(state.st_mtime_ns)
    kept = folder / META
    return str((kept if kept.exists() else folder / MANIFEST).stat().st_mtime_ns)


class Opened:
    """Tables of one capture, read only.

    reading: how the capture was read. paths: its files. is_dataset: they are a dataset's.
    """

    def __init__(self, folder: FolderPath, kept: Mapping[str, Any], connection: duckdb.DuckDBPyConnection) -> None:
        """kept: what is known besides the tables. connection: has a view of every table."""
        self.folder, self.is_dataset = folder, False
        self.options = ReadOptions()
        self.reading = reading_options(kept["options"])
        self.paths: tuple[str, ...] = tuple(kept["paths"])
        self.remarks: tuple[str, ...] = tuple(kept["remarks"])
        self.unread: tuple[str, ...] = tuple(kept["unread"])
        self.failures: tuple[str, ...] = tuple(kept["failures"])
        self._lock = Lock()
        self._answers: OrderedDict[str, pa.Table] = OrderedDict()
        self._bytes = 0
        self._worked_out: dict[Hashable, Any] = {}
        # Answers that somebody else wrote are none: not those of a dataset, nor of another user's live capture.
        self._answered = isinstance(folder, Path) and folder.parent == cache_folder()
        self._connection = connection
        self._closing: Callable[[], None] = connection.close

    @classmethod
    def kept(cls, folder: Path) -> Opened:
        """The tables that a worker left. Raises TablesDamaged."""
        try:
            kept = json.loads(text_of(folder / META))
            connection = open_connection(folder)
            for name in TABLES:
                path = folder / f"{name}.parquet"
                if name in kept["tables"]:
                    if is_no_file(path):
                        raise ValueError(f"{path.name} is no file")
                    wrong = other_column(connection, name, f"read_parquet({literal(str(path))})")
                    if wrong is None and (column := lacking(arrow_schema(name), path, lambda: connection)) is not None:
                        wrong = f"{column} of {name} lacks values"
                    if wrong is not None:
                        raise ValueError(wrong)
                    connection.execute(f"CREATE VIEW {quoted(name)} AS FROM read_parquet({literal(str(path))})")
                else:
                    connection.register(name, arrow_schema(name).empty_table())
            return cls(folder, kept, connection)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, duckdb.Error) as error:
            raise TablesDamaged(f"What was kept of its analysis cannot be read: {_line(error)}") from error

    @classmethod
    def dataset(cls, folder: FolderPath) -> Opened:
        """A dataset, its tables where they lie. CaptureError: it cannot be read."""
        analysis = read(str(folder))
        connection = analysis.connection
        for name in TABLES:
            if name not in analysis.tables():
                connection.register(name, arrow_schema(name).empty_table())
        # Packets are not in a dataset; they can be shown where its captures still are. A store is not asked here.
        paths = (one.path for one in Dataset.open(folder).manifest.inputs)
        inputs = [path for path in paths if address_of(path) is not None or Path(path).is_file()]
        kept = {"options": {}, "paths": inputs, "remarks": analysis.remarks, "unread": [], "failures": []}
        opened = cls(folder, kept, connection)
        opened._closing, opened.is_dataset = analysis.close, True
        return opened

    def close(self) -> None:
        """No more answers."""
        with self._lock:
            self._closing()

    @property
    def _there(self) -> bool:
        if isinstance(self.folder, StorePath):  # what is gone there says so itself
            return True
        return (self.folder / META).exists() or (self.folder / MANIFEST).exists()

    def sql(self, query: str) -> pa.Table:
        """Result of one SELECT. Raises QueryError, TablesGone."""
        with self._lock:
            if query in self._answers:
                self._answers.move_to_end(query)
                return self._answers[query]
            answer = kept_answer(self.folder, query) if self._answered and isinstance(self.folder, Path) else None
            if answer is None:
                answer = self._run(query)
            self._remember(query, answer)
            return answer

    def once(self, key: Hashable, work_out: Callable[[], Worked]) -> Worked:
        """What was worked out before under that key; of such values only the newest few are kept."""
        known: Worked | None = self._worked_out.get(key)
        if known is None:
            known = self._worked_out[key] = work_out()
        while len(self._worked_out) > _WORKED_OUT:
            with suppress(KeyError, StopIteration, RuntimeError):  # another session may do the same
                del self._worked_out[next(iter(self._worked_out))]
        return known

    def answers(self) -> list[tuple[str, pa.Table]]:
        """What is remembered: queries with their answers."""
        with self._lock:
            return list(self._answers.items())

    def batches(self, name: str) -> Iterator[pa.RecordBatch]:
        """All rows of a table in its order."""
        yield from self.ordered(f"SELECT * FROM {quoted(name)}", [f"{quoted(c)} ASC" for c in TABLES[name].order])

    def ordered(self, query: str, order: Sequence[str], most: int | None = None) -> Iterator[pa.RecordBatch]:
        """Result of a SELECT, its first `most` rows where that is given, in batches; not remembered."""
        query += f" ORDER BY {', '.join(order)}" if order else ""
        with self._lock:
            answer = self._run(query if most is None else f"{query} LIMIT {most}")
        yield from answer.to_batches(_BATCH_ROWS)

    def _run(self, query: str) -> pa.Table:
        try:
            return self._connection.sql(query).to_arrow_table()
        except duckdb.Error as error:
            why = failed(error)
            if isinstance(error, duckdb.ConnectionException) or not self._there:
                raise TablesGone(str(why)) from error
            if isinstance(why, UnreadableRows) or isinstance(error, _BROKEN):
                raise TablesDamaged(str(why)) from error
            raise why from error

    def _remember(self, query: str, answer: pa.Table) -> None:
        size = _size(query, answer)
        if size > _LARGEST_REMEMBERED:
            return
        self._answers[query] = answer
        self._bytes += size
        while self._bytes > _REMEMBERED_BYTES:
            self._bytes -= _size(*self._answers.popitem(last=False))


def _line(error: Exception) -> str:
    return str(error).split("\n", maxsplit=1)[0]


def _size(query: str, answer: pa.Table) -> int:
    return len(query) + int(answer.nbytes) + _ANSWER_BYTES


class Selected:
    """A capture as one session looks at it: rows between two times, of some protocols."""

    def __init__(self, opened: Opened, options: ReadOptions) -> None:
        self.opened = opened
        self.options = options

    def sql(self, query: str) -> pa.Table:
        """Result of one SELECT over all rows (`reports.base.questions.source` narrows them).

        Raises QueryError, TablesGone.
        """
        return self.opened.sql(query)

    def batches(self, name: str) -> Iterator[pa.RecordBatch]:
        """The selected rows of a table in its order."""
        query = narrowed(f"SELECT * FROM {quoted(name)}", self.options)
        yield from self.opened.ordered(query, [f"{quoted(c)} ASC" for c in TABLES[name].order])

    def rows(self, query: str) -> list[dict[str, Any]]:
        """Result of a SELECT over the selected rows."""
        return rows(self, query)

    @property
    def narrowed(self) -> bool:
        """Whether a time range or protocols are chosen."""
        return self.options != ReadOptions()

    def everything(self) -> Selected:
        """The same capture without time range and protocols."""
        return Selected(self.opened, ReadOptions())

    def up_to_its_end(self) -> Selected:
        """The same with all that was told before the time range as well."""
        return self.part(None, self.options.to_ns)

    def part(self, from_ns: int | None, to_ns: int | None) -> Selected:
        """The same between other times; None: as far as the capture goes."""
        return Selected(self.opened, replace(self.options, from_ns=from_ns, to_ns=to_ns))

    def as_of(self, to_ns: int) -> Selected:
        """The same with all that was told before that time, and nothing later."""
        return self.part(None, to_ns)
