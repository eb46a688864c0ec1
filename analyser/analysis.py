"""What reading captures gives to callers: tables, findings, queries.

In: decoded raw tables. Out: Arrow, pandas and Parquet by table name. Tables are finished on first use; large ones live
in temporary Parquet files, small ones in memory, and DuckDB reads both within a fixed amount of memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analyser.build import Lookups, duplicate_flows, finish_batch, pieces, with_ends, with_first_packets
from analyser.context.stages import STAGE_OF, Stage
from analyser.facts import capture_remarks, captures_table, file_label
from analyser.options import ReadOptions
from analyser.pipeline import Decoded, UnreadInput
from analyser.queries import QueryError, literal, name_list, open_connection, quoted, select, sentence
from analyser.tables import PANDAS_TYPES, TABLES, arrow_schema
from analyser.timeorder import FLOW
from dissectors.core.protocol import Dissector

if TYPE_CHECKING:
    import pandas as pd

    from analyser.detectors.framework import Failure

SMALL_ROWS = 1 << 17
STREAM = "wirewitness_stream"
BATCH_ROWS = 1 << 15
ROW_GROUP_ROWS = 1 << 16
_TIME_COLUMN = {"flows": "ts_first", "findings": "ts_first", "captures": ""}
_LAST_TIME_COLUMN = {"flows": "ts_last", "findings": "ts_last"}
_UNIQUE_COLUMNS = ("exchange_id", "message_id", "request_message_id", "response_message_id", "ts", "ts_response")


class UnknownTable(KeyError):
    """No table of that name was asked for or exists."""


class Analysis:
    """The tables of some captures. Close it (or use `with`) to remove its temporary files."""

    def __init__(
        self, decoded: Decoded, wanted: Sequence[str], options: ReadOptions, dissectors: Iterable[Dissector]
    ) -> None:
        self.options = options
        self.unread: list[UnreadInput] = decoded.unread
        self.remarks = [
            *decoded.remarks,
            *(f"{file_label(stats.file)}: {remark.text}" for stats in decoded.captures for remark in stats.remarks),
        ]
        # One rule's fault costs no other rule's findings; whoever shows findings must say that some may be missing.
        self.failures: list[Failure] = []
        self._decoded = decoded
        self._wanted = tuple(name for name in TABLES if name in wanted)
        self._dissectors = tuple(dissectors)
        self._finished: set[str] = set()
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._lookups: Lookups | None = None
        self._duplicates = pa.array([], pa.int64())

    def __enter__(self) -> Analysis:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove temporary files; the analysis cannot be used afterwards."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._decoded.store.close()

    def tables(self) -> list[str]:
        """Names of the tables that this analysis holds."""
        return list(self._wanted)

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """A DuckDB connection with a view of every table; it reaches no other files and no Python variables."""
        for name in self._wanted:
            self._ensure(name)
        return self._con

    def arrow(
        self, name: str, columns: Sequence[str] | None = None, where: str | None = None, limit: int | None = None
    ) -> pa.Table:
        """A table as Arrow, in its registered order. Raises UnknownTable, QueryError."""
        return pa.Table.from_batches(
            list(self.batches(name, columns, where, limit)), self._output_schema(name, columns)
        )

    def table(self, name: str) -> pd.DataFrame:
        """A table as pandas, with the registered types."""
        frame: pd.DataFrame = self.arrow(name).to_pandas(
            types_mapper=_pandas_type, timestamp_as_object=False, date_as_object=False
        )
        return frame.astype({column.name: PANDAS_TYPES[column.kind] for column in TABLES[name].columns})

    def findings(self) -> pd.DataFrame:
        """The findings table as pandas."""
        return self.table("findings")

    def batches(
        self, name: str, columns: Sequence[str] | None = None, where: str | None = None, limit: int | None = None
    ) -> Iterator[pa.RecordBatch]:
        """A table in Arrow batches, in its registered order, within bounded memory."""
        schema = self._output_schema(name, columns)
        if TABLES[name].lists and name not in self._finished:
            yield from self._streamed(name, schema, where, limit)
            return
        self._ensure(name)
        try:
            for batch in self._run(self._select(name, schema.names, where, limit)).to_arrow_reader(BATCH_ROWS):
                yield batch.cast(schema)
        except duckdb.Error as error:
            raise QueryError(sentence(error)) from error

    def write_parquet(
        self,
        name: str,
        path: str | Path,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        limit: int | None = None,
    ) -> int:
        """Write a table to a Parquet file (zstd); the number of rows written."""
        schema = self._output_schema(name, columns)
        batches: Iterator[pa.RecordBatch]
        if self._passes_through(name, where, limit):
            batches = self._finished_batches(name, self._known(), schema.names)
        else:
            batches = self.batches(name, columns, where, limit)
        # Ids differ in every row: a dictionary of them is work for nothing.
        repeated = [column for column in schema.names if column not in _UNIQUE_COLUMNS]
        count = 0
        with pq.ParquetWriter(path, schema, compression="zstd", use_dictionary=repeated) as writer:
            for group in _row_groups(batches):
                writer.write_table(pa.Table.from_batches(group, schema))
                count += sum(batch.num_rows for batch in group)
        return count

    def sql(self, query: str) -> pa.Table:
        """One SELECT over all tables. Raises QueryError."""
        _ = self.connection
        return self._run(query).to_arrow_table()

    def query(self, query: str) -> Iterator[pa.RecordBatch]:
        """One SELECT over the selected rows, in batches, the first of which is empty. Raises QueryError."""
        _ = self.connection
        narrowed = [
            f"{quoted(name)} AS (SELECT * FROM {quoted(name)} WHERE {conditions})"
            for name in self._wanted
            if (conditions := self._conditions(name, None))
        ]
        if narrowed:
            query = f"WITH {', '.join(narrowed)} SELECT * FROM ({query.rstrip().rstrip(';')}\n)"
        try:
            reader = self._run(query).to_arrow_reader(BATCH_ROWS)
            yield pa.RecordBatch.from_pylist([], schema=reader.schema)
            yield from reader
        except duckdb.Error as error:
            raise QueryError(sentence(error)) from error

    # ------------------------------------------------------------------------------------------------------------------

    @property
    def _con(self) -> duckdb.DuckDBPyConnection:
        if self._connection is None:
            self._connection = open_connection(self._decoded.store.folder)
        return self._connection

    def _output_schema(self, name: str, columns: Sequence[str] | None) -> pa.Schema:
        self._check(name)
        schema = arrow_schema(name)
        if columns is None:
            return schema
        unknown = [column for column in columns if column not in schema.names]
        if unknown:
            raise QueryError(f"table {name} has no column {', '.join(unknown)}")
        return pa.schema([schema.field(column) for column in columns])

    def _check(self, name: str) -> None:
        if name not in self._wanted:
            raise UnknownTable(f"no table {name} in this analysis; there are {', '.join(self._wanted)}")

    def _passes_through(self, name: str, where: str | None, limit: int | None) -> bool:
        """True when a table's rows can go straight from decoding to the output."""
        return (
            name in self._decoded.store.tables
            and name not in self._finished
            and name not in STAGE_OF
            and where is None
            and limit is None
            and not list(self._option_conditions(name))
        )

    def _select(self, name: str, columns: Sequence[str], where: str | None, limit: int | None) -> str:
        names = name_list(columns)
        conditions = self._conditions(name, where)
        text = f"SELECT {names} FROM {quoted(name)}"
        if conditions:
            text += f" WHERE {conditions}"
        if name in STAGE_OF:  # joins lose the order in which tables are kept
            text += " ORDER BY " + ", ".join(quoted(column) for column in TABLES[name].order)
        return text + ("" if limit is None else f" LIMIT {int(limit)}")

    def _conditions(self, name: str, where: str | None) -> str:
        """What rows have to fulfil, empty where nothing is asked."""
        return " AND ".join([*self._option_conditions(name), *([f"({where}\n)"] if where else [])])

    def _option_conditions(self, name: str) -> Iterator[str]:
        time = _TIME_COLUMN.get(name, "ts")
        if (
            time and self.options.from_ns is not None
        ):  # flows and findings last: they are shown when they touch the time
            yield f"epoch_ns({_LAST_TIME_COLUMN.get(name, time)}) >= {self.options.from_ns}"
        if time and self.options.to_ns is not None:
            yield f"epoch_ns({time}) < {self.options.to_ns}"
        if self.options.protocols and "protocol" in TABLES[name].column_names():
            yield "protocol IN (" + ", ".join(literal(protocol) for protocol in self.options.protocols) + ")"
        elif self.options.protocols and TABLES[name].protocol not in (None, *self.options.protocols):
            yield "false"

    def _run(self, query: str) -> duckdb.DuckDBPyRelation:
        return select(self._con, query)

    def _ensure(self, name: str) -> None:
        """Make the view of a table, and of those it needs, if it is not there yet."""
        self._check(name)
        if name in self._finished:
            return
        if name == "findings":
            self._finish_findings()
            return
        if name in STAGE_OF:
            self._run_stage(STAGE_OF[name])
            return
        self._finished.add(name)
        if name == "captures":
            self._register(name, captures_table(self._decoded.captures))
        elif name == "flows":
            self._known()
        else:
            self._finish_table(name, self._known())

    def _known(self) -> Lookups:
        """Lookups for finishing tables; clusters and topic names are found first, from the tables that tell them."""
        if self._lookups is not None:
            return self._lookups
        from analyser.context import cluster_of_flows, topic_names

        files = [file_label(stats.file) for stats in self._decoded.captures]
        ends_ns = [stats.ts_last_ns for stats in self._decoded.captures if stats.ts_last_ns is not None]
        flows = with_ends(with_first_packets(self._decoded.flows_table(), files), max(ends_ns, default=None))
        self._duplicates = duplicate_flows(flows)
        errors = {dissector.name: dissector.error_names for dissector in self._dissectors}
        first = Lookups(flows, pa.nulls(flows.num_rows, pa.string()), {}, files, errors)
        order = [(column, "ascending") for column in TABLES["flows"].order]
        self._register("flows", flows.drop_columns([FLOW]).sort_by(order))
        self._finished.add("flows")
        for name in ("kafka_brokers", "kafka_partitions"):
            if name in self._decoded.store.tables:
                self._finish_table(name, first)
            else:
                self._register(name, arrow_schema(name).empty_table())
        topics = topic_names(self._con)
        by_flow = cluster_of_flows(self._con)
        clusters = pa.array([by_flow.get(flow) for flow in flows.column("flow_id").to_pylist()], pa.string())
        self._lookups = Lookups(flows, clusters, topics, files, errors)
        return self._lookups

    def _streamed(self, name: str, schema: pa.Schema, where: str | None, limit: int | None) -> Iterator[pa.RecordBatch]:
        """A table whose rows are wide: never as a whole in a view, but from decoding through DuckDB, if at all."""
        conditions = self._conditions(name, where)
        if conditions:
            batches = self._finished_batches(name, self._known())
            self._register(STREAM, pa.RecordBatchReader.from_batches(arrow_schema(name), batches))
            text = f"SELECT {name_list(schema.names)} FROM {STREAM} AS {quoted(name)} WHERE {conditions}"
            text += "" if limit is None else f" LIMIT {int(limit)}"
            try:
                for batch in self._run(text).to_arrow_reader(BATCH_ROWS):
                    yield batch.cast(schema)
            except duckdb.Error as error:
                raise QueryError(sentence(error)) from error
            return
        left = limit
        for batch in self._finished_batches(name, self._known(), schema.names):
            if left is not None:
                batch = batch.slice(0, left)
                left -= batch.num_rows
            yield batch
            if left == 0:
                return

    def _finished_batches(
        self, name: str, known: Lookups, columns: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        if name == "expert_infos":
            remarks = capture_remarks(self._decoded.captures)
            yield remarks if columns is None else remarks.select(columns)
        if name not in self._decoded.store.tables:  # no dissector that fills it is switched on
            return
        for batch in self._decoded.store.tables[name].batches():
            # A connection that was captured at two points is told once.
            if len(self._duplicates):
                batch = batch.filter(pc.invert(pc.is_in(batch.column(FLOW), self._duplicates)))
            for piece in pieces(name, batch):
                yield finish_batch(name, piece, known, columns)

    def _finish_table(self, name: str, known: Lookups) -> None:
        """Make the view of a table: in memory while it is small, else a temporary Parquet file."""
        batches: list[pa.RecordBatch] = []
        path = self._decoded.store.folder / f"{name}.parquet"
        writer: pq.ParquetWriter | None = None
        rows = 0
        for finished in self._finished_batches(name, known):
            rows += finished.num_rows
            if writer is None and rows > SMALL_ROWS:
                writer = pq.ParquetWriter(path, arrow_schema(name), compression="lz4")
                for earlier in batches:
                    writer.write_batch(earlier)
                batches.clear()
            if writer is None:
                batches.append(finished)
            else:
                writer.write_batch(finished)
        if writer is None:
            self._register(name, pa.Table.from_batches(batches, arrow_schema(name)))
        else:
            writer.close()
            self._con.execute(f"CREATE OR REPLACE VIEW {quoted(name)} AS FROM read_parquet({literal(str(path))})")

    def _run_stage(self, stage: Stage) -> None:
        """Make the tables of a stage of the context from their own rows and from the tables that it reads."""
        known = self._known()
        made = [name for name in stage.makes if name in self._wanted]
        for name in made:
            self._finished.add(name)
            self._finish_table(name, known)
        for name in (*stage.reads, *stage.uses):
            if name in self._wanted:
                self._ensure(name)
        stage.run(self._con)

    def _finish_findings(self) -> None:
        from analyser.detectors import run_detectors
        from analyser.findings import findings_table

        for name in self._wanted:
            if name != "findings":
                self._ensure(name)
        self._register("findings", findings_table(run_detectors(self._con, failures=self.failures)))
        self._finished.add("findings")

    def _register(self, name: str, table: pa.Table) -> None:
        self._con.register(name, table)


def _pandas_type(kind: pa.DataType) -> Any:
    import pandas as pd

    makers: dict[pa.DataType, Callable[[], Any]] = {
        pa.int64(): pd.Int64Dtype,
        pa.string(): pd.StringDtype,
        pa.bool_(): pd.BooleanDtype,
    }
    maker = makers.get(kind)
    return maker() if maker else None


def _row_groups(batches: Iterator[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """Batches in lists of about ROW_GROUP_ROWS rows: many small row groups cost time and space."""
    group: list[pa.RecordBatch] = []
    for batch in batches:
        group.append(batch)
        if sum(held.num_rows for held in group) >= ROW_GROUP_ROWS:
            yield group
            group = []
    if group:
        yield group
