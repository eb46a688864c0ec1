"""The tables of a dataset, read where they lie.

In: the parts that the manifest names. Out: views in DuckDB and pieces of tables in their order. Nothing is loaded:
columns and rows that are not asked for stay on disk, whole files by their protocol and hour, row groups by their
statistics.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from wirewitness.analyser.analysis.client_names import NEEDED, named_findings
from wirewitness.analyser.analysis.flow_workloads import Use, remarks_on
from wirewitness.analyser.analysis.table_source import OrderedRows
from wirewitness.analyser.analysis.workloads_in_sql import (
    NAMES,
    changing,
    has_identities,
    names_table,
    spans_of,
    with_names,
)
from wirewitness.analyser.archive.dataset.bounds import WHOLE, whole_rows
from wirewitness.analyser.archive.dataset.dataset import Dataset
from wirewitness.analyser.archive.dataset.part import Part, Place
from wirewitness.analyser.archive.dataset.parts import HOUR_NS, time_column
from wirewitness.analyser.archive.dataset.place import REBUILD, DatasetError
from wirewitness.analyser.archive.dataset.stored_types import stored_rows, stored_schema
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.base.private_files import TemporaryFolder
from wirewitness.analyser.base.storage.files import absolute_name, file_at, let_reach
from wirewitness.analyser.base.untrusted_files import is_no_file
from wirewitness.analyser.decoding.rows.timeorder import FLOW, TIED
from wirewitness.analyser.decoding.run.capture_rows import file_label
from wirewitness.analyser.decoding.run.decoded import UnreadInput
from wirewitness.analyser.tables.owners import SIDES
from wirewitness.analyser.tables.queries import (
    UnreadableRows,
    answer,
    failed,
    literal,
    name_list,
    open_connection,
    other_column,
    quoted,
)
from wirewitness.analyser.tables.required import counting, lacking
from wirewitness.analyser.tables.selection import time_columns
from wirewitness.analyser.tables.tables import ALL_TABLES, arrow_schema

if TYPE_CHECKING:
    from wirewitness.analyser.capture.workloads.address_names import AddressNames
    from wirewitness.analyser.engine.rules.running import Failure

# Hours are read together until they have so many rows; what is sorted at one time is little more.
PIECE_ROWS = 1 << 19
# So many of a kind are told with each command; `expert_infos` and the manifest have all.
MOST_REMARKS = 100
# Rows that are equal by the registered order are in that of their flows' first packets, then as they came.
_ARRIVAL = f"{FLOW} NULLS FIRST, filename, file_row_number"
_DECODED_BEFORE = "was decoded when the dataset was made"


class DatasetTables:
    """The tables of a dataset; see `TableSource`."""

    def __init__(
        self,
        dataset: Dataset,
        wanted: Iterable[str] | None,
        options: ReadOptions,
        names: AddressNames | None = None,
    ) -> None:
        """wanted: tables that will be used, None for all there are. names: of addresses. DatasetError for a table that
        it does not have."""
        self._dataset = dataset
        self._address_names = names
        self._changing: list[str] = [] if names is None else changing(names)
        self.names = _names(dataset, wanted)
        self.unread: list[UnreadInput] = []
        self.failures: list[Failure] = []
        self.faults: list[str] = []
        self._temporary = TemporaryFolder()
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._made: set[str] = set()
        self._checked: set[str] = set()
        self._first: set[str] = set()
        try:
            self.remarks = [
                *_ignored(options),
                *self._inputs_set_aside(),
                *self._capture_remarks(),
                *_first(dataset.manifest.remarks, len(dataset.manifest.remarks), "remarks on the dataset"),
                *self._name_remarks(),
            ]
        except BaseException:
            self.close()
            raise

    @property
    def con(self) -> duckdb.DuckDBPyConnection:
        """The connection that has the views; of the dataset it reaches the tables only."""
        if self._connection is None:
            self._connection = open_connection(Path(self._temporary.name), self._folders())
            let_reach(self._connection, self._folders())
            if self._address_names is not None:
                self._connection.register(NAMES, names_table(self._address_names))
        return self._connection

    @cached_property
    def _counting(self) -> duckdb.DuckDBPyConnection:
        return counting(Path(self._temporary.name), self._folders())

    def _folders(self) -> list[str]:
        root = self._dataset.root.resolve()
        return [str(root / table) for table in self._dataset.tables()]

    def close(self) -> None:
        """Remove temporary files; the dataset stays as it is."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if "_counting" in vars(self):
            self._counting.close()
        self._temporary.cleanup()

    def ensure(self, name: str) -> None:
        """Make the view of a table over its parts. DatasetError for parts that no table of ours has."""
        self._make(name)
        self._check(name, self._dataset.parts(name))

    def _make(self, name: str) -> None:
        if name in self._made:
            return
        self._made.add(name)
        parts = self._dataset.parts(name)
        if not parts:
            self.con.register(name, arrow_schema(name).empty_table())
            return
        self._check_columns(name, parts)
        if name == "findings" and self._address_names is not None:
            self._make_findings(parts)
            return
        # Reports show captures and findings as they come.
        order = f" ORDER BY {self._order(name)}" if name in ("captures", "findings") else ""
        try:
            self.con.execute(f"CREATE TEMP VIEW {quoted(name)} AS {self._rows(name, parts)}{order}")
        except duckdb.Error as error:
            raise failed(error) from error

    def _make_findings(self, parts: Sequence[Part]) -> None:
        """The view of findings, with identities of their clients."""
        names = [name for name in NEEDED if name in self._dataset.tables()]
        for name in names:
            self._make(name)
        rows = answer(self.con, f"{self._rows('findings', parts)} ORDER BY {self._order('findings')}")
        found = rows.cast(arrow_schema("findings"))
        self.con.register("findings", named_findings(self.con, found, names) if "flows" in names else found)

    def narrowed(self, name: str, options: ReadOptions) -> str:
        """The parts that can hold rows that are selected."""
        self._make(name)
        if name == "findings" and self._address_names is not None:
            return quoted(name)
        parts = self._dataset.parts(name)
        chosen = chosen_parts(name, parts, options)
        self._check(name, chosen)
        if len(chosen) == len(parts):
            return quoted(name)
        return f"({self._rows(name, chosen)})" if chosen else f"(FROM {quoted(name)} LIMIT 0)"

    def pieces(self, name: str, options: ReadOptions) -> Iterator[OrderedRows]:
        """Some hours at a time, where the table's order begins with the time that parts lie by."""
        self._make(name)
        if name == "findings" and self._address_names is not None and self._dataset.parts(name):
            yield OrderedRows(quoted(name), name_list(ALL_TABLES[name].order))
            return
        chosen = chosen_parts(name, self._dataset.parts(name), options)
        groups = parts_by_hours(chosen) if ALL_TABLES[name].order[0] == time_column(name) else [chosen]
        for group in groups:
            if group:
                self._check(name, group)
                yield OrderedRows(self._files(name, group), self._order(name), kept=True)

    def stream(self, _: str, __: Sequence[str]) -> Iterator[pa.RecordBatch] | None:
        """Never: parts of several shards have to be put in order."""
        return None

    def _check(self, name: str, parts: Sequence[Part]) -> None:
        """DatasetError where the first of these parts has other columns (all others are read as if they had its), or
        one of them lacks values that every row has; a footer is read once, 0.2 ms."""
        self._check_columns(name, parts)
        unknown = [part for part in parts if part.path not in self._checked]
        for part, path in zip(unknown, self._dataset.paths(unknown), strict=True):
            self._check_file(part)
            try:
                column = lacking(stored_schema(name), file_at(path), lambda: self._counting)
            except (OSError, ValueError) as error:
                raise UnreadableRows(f"rows cannot be read: {path} ({type(error).__name__})") from error
            if column is not None:
                raise DatasetError(f"{path} is damaged ({column} lacks values); {REBUILD}")
            self._checked.add(part.path)
        if unknown and name in WHOLE:
            self._check_rows(name)

    def _check_rows(self, name: str) -> None:
        files = literal([absolute_name(path, resolved=True) for path in self._dataset.paths(self._dataset.parts(name))])
        query = f"SELECT sum(num_rows)::BIGINT, sum(file_size_bytes)::BIGINT FROM parquet_file_metadata({files})"
        ((rows, size),) = self._answer(query)
        if rows > whole_rows(size):
            told = f"has {rows:,} rows, more than {whole_rows(size):,}"
            raise DatasetError(f"{self._dataset.root / name} is damaged (it {told}); {REBUILD}")

    def _check_columns(self, name: str, parts: Sequence[Part]) -> None:
        if not parts or parts[0].path in self._first:
            return
        self._check_file(parts[0])
        wrong = other_column(self.con, name, self._files(name, parts[:1]))
        if wrong is not None:
            raise DatasetError(f"{self._dataset.root / parts[0].path} is damaged ({wrong}); {REBUILD}")
        self._first.add(parts[0].path)

    def _check_file(self, part: Part) -> None:
        path = self._dataset.root / part.path
        if isinstance(path, Path) and is_no_file(path):
            raise DatasetError(f"{path} is damaged (it is no file); {REBUILD}")

    def _answer(self, query: str) -> list[tuple[Any, ...]]:
        return [*zip(*(column.to_pylist() for column in answer(self.con, query).columns), strict=True)]

    def _rows(self, name: str, parts: Sequence[Part]) -> str:
        return f"SELECT {name_list(ALL_TABLES[name].column_names())} FROM {self._files(name, parts)}"

    def _files(self, name: str, parts: Sequence[Part]) -> str:
        rows = stored_rows(name, [absolute_name(path, resolved=True) for path in self._dataset.paths(parts)])
        if self._address_names is None or not has_identities(name):
            return rows
        flows = None
        if name != "flows":
            every = self._dataset.parts("flows")
            paths = [absolute_name(path, resolved=True) for path in self._dataset.paths(every)]
            flows = stored_rows("flows", paths) if paths else None
        return with_names(name, rows, flows, self._changing)

    def _name_remarks(self) -> list[str]:
        """What is to be said of files that name addresses."""
        parts = self._dataset.parts("flows")
        if self._address_names is None or not parts:
            return []
        paths = [absolute_name(path, resolved=True) for path in self._dataset.paths(parts)]
        sides = (f"SELECT {side}_address AS address, ts_first FROM {stored_rows('flows', paths)}" for side in SIDES)
        query = "SELECT address, epoch_ns(min(ts_first)), epoch_ns(max(ts_first)) FROM ({}) WHERE address IS NOT NULL "
        found = self._answer(query.format(" UNION ALL ".join(sides)) + "GROUP BY address")
        use = Use()
        for address, one, verdict in spans_of(found, self._address_names):
            use.add(address, verdict, one)
        return remarks_on(self._address_names, use)

    def _order(self, name: str) -> str:
        """As registered, null last, what is equal by it as it was decoded; remarks on captures come before all others,
        and captures as they were taken in."""
        place = f"list_position({literal([file_label(one.path) for one in self._dataset.manifest.inputs])}, file)"
        if name == "captures":
            return f"{place}, file"
        registered = name_list(ALL_TABLES[name].order)
        if set(TIED) <= set(ALL_TABLES[name].column_names()):
            captures_first = f"ts NULLS FIRST, if(ts IS NULL, {place}, NULL)"
            return f"{captures_first}, {registered}, {FLOW} NULLS FIRST, {name_list(TIED)}, {_ARRIVAL}"
        return f"{registered}, {_ARRIVAL}"

    def _inputs_set_aside(self) -> Iterator[str]:
        aside = [one for one in self._dataset.manifest.inputs if one.status == "set_aside"]
        lines = (f"{file_label(one.path)} was set aside: {one.reason}" for one in aside)
        return _first(lines, len(aside), "inputs were set aside")

    def _capture_remarks(self) -> Iterator[str]:
        """What was remarked on the captures themselves: rows of `expert_infos` without a time and a flow."""
        parts = [part for part in self._dataset.parts("expert_infos") if Place.of(part).hour is None]
        if not parts:
            return
        self._check("expert_infos", parts)
        source = f"{self._files('expert_infos', parts)} WHERE ts IS NULL AND flow_id IS NULL AND file IS NOT NULL"
        order = f"{self._order('captures')}, filename, file_row_number"
        rows = self._answer(f"SELECT file, text FROM {source} ORDER BY {order} LIMIT {MOST_REMARKS}")
        ((found,),) = self._answer(f"SELECT count(*) FROM {source}")
        where = "remarks on captures: expert_infos without ts and flow_id"
        yield from _first((f"{file}: {text}" for file, text in rows), found, where)


def _first(lines: Iterable[str], found: int, what: str) -> Iterator[str]:
    """The first lines of so many that were found, and one that counts the rest."""
    yield from islice(lines, MOST_REMARKS)
    if found > MOST_REMARKS:
        yield f"{found - MOST_REMARKS:,} more {what}"


def chosen_parts(table: str, parts: Sequence[Part], options: ReadOptions) -> list[Part]:
    """The parts that can hold rows which the options select, by what their paths tell."""
    first, last = time_columns(table)
    lies_by = time_column(table)
    return [
        part
        for part in parts
        if _can_hold(Place.of(part), options, upper=first == lies_by, lower=last == lies_by)
        and (not options.protocols or _has_protocol(table, Place.of(part), options.protocols))
    ]


def _can_hold(place: Place, options: ReadOptions, *, upper: bool, lower: bool) -> bool:
    if place.hour is None:  # a row without a time is selected by none
        return not (upper and options.to_ns is not None) and not (lower and options.from_ns is not None)
    begins = place.hour * HOUR_NS
    too_late = upper and options.to_ns is not None and begins >= options.to_ns
    too_early = lower and options.from_ns is not None and begins + HOUR_NS <= options.from_ns
    return not too_late and not too_early


def _has_protocol(table: str, place: Place, protocols: Sequence[str]) -> bool:
    if "protocol" in ALL_TABLES[table].column_names():
        return place.protocol in protocols
    return ALL_TABLES[table].protocol in (None, *protocols)


def parts_by_hours(parts: Sequence[Part]) -> Iterator[list[Part]]:
    """The parts in lists of rising hours; those without a time come first."""
    group: list[Part] = []
    hour: int | None = None
    for part in sorted(parts, key=lambda part: (Place.of(part).hour is not None, Place.of(part).hour or 0)):
        place = Place.of(part)
        if place.hour != hour and sum(held.rows for held in group) >= PIECE_ROWS:
            yield group
            group = []
        hour = place.hour
        group.append(part)
    yield group


def _names(dataset: Dataset, wanted: Iterable[str] | None) -> tuple[str, ...]:
    kept = dataset.manifest.settings.get("tables")
    there = [name for name in ALL_TABLES if kept is None or name in kept or dataset.manifest.rows(name)]
    if wanted is None:
        return tuple(there)
    asked = {*wanted}
    missing = [name for name in ALL_TABLES if name in asked and name not in there]
    if missing:
        raise DatasetError(
            f"{dataset.root} has no {', '.join(missing)}: it was made with the tables {', '.join(there)}."
        )
    return tuple(name for name in there if name in asked)


def _ignored(options: ReadOptions) -> Iterator[str]:
    if options.decode_as or options.enable:
        yield f"--decode-as and --enable change nothing here: what a dataset holds {_DECODED_BEFORE}"
    if options.topic_ids:
        yield "--topic-id changes nothing here: wirewitness archive takes it, with the next captures that it takes in."
    if options.payload:
        yield f"--payload shows what the dataset was made with: it {_DECODED_BEFORE}"
