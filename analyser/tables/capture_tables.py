"""The tables of captures that were read now.

In: decoded raw tables. Out: views in DuckDB, made on first use; large tables live in temporary Parquet files, small
ones in memory, where they can be read without DuckDB.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from analyser.context.inferred_names import INFERRED_FROM, inferred_names, naming_remarks
from analyser.context.named_by import BROKERS, NAMED_BY, TOPICS
from analyser.context.stages import STAGE_OF, Stage
from analyser.faults import caught, sentence
from analyser.options import ReadOptions
from analyser.reading.facts import capture_remarks, captures_table, file_label
from analyser.reading.pipeline import Decoded, UnreadInput
from analyser.registry.queries import CAPTURE_MEMORY, distinct, literal, name_list, open_connection, quoted
from analyser.registry.tables import TABLES, arrow_schema
from analyser.rows.ahead import ahead
from analyser.rows.timeorder import FLOW
from analyser.tables.build import Lookups, duplicate_flows, finish_batch, pieces, with_ends, with_first_packets
from analyser.tables.table_source import OrderedRows
from analyser.words import count
from dissectors.core.protocol import Dissector

if TYPE_CHECKING:
    import duckdb
    import pyarrow.parquet as pq

    from analyser.detectors.running import Failure

SMALL_ROWS = 1 << 17
# From so many rows on DuckDB is quicker, however long it takes to start.
FEW_ROWS = 1 << 12
STREAM = "wirewitness_stream"


class CaptureTables:
    """The tables of decoded captures; see `TableSource`.

    topic_ids: names that the user gave, by topic id. threads: may rows be made while others are written?
    """

    def __init__(
        self,
        decoded: Decoded,
        wanted: Iterable[str],
        dissectors: Iterable[Dissector],
        topic_ids: Mapping[str, str] = MappingProxyType({}),
        *,
        threads: bool = False,
    ) -> None:
        chosen = {*wanted}
        self.names = tuple(name for name in TABLES if name in chosen)
        self.unread: list[UnreadInput] = decoded.unread
        self._topic_ids = topic_ids
        self._beside: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]] = ahead if threads else iter
        self._remarks = [
            *decoded.remarks,
            *(f"{file_label(stats.file)}: {remark.text}" for stats in decoded.captures for remark in stats.remarks),
        ]
        self.failures: list[Failure] = []
        self.faults: list[str] = []
        self._decoded = decoded
        self._dissectors = tuple(dissectors)
        self._finished: set[str] = set()
        # Of tables whose rows are known without asking; a stage does not change how many rows others have.
        self._rows: dict[str, int] = {}
        self._connection: duckdb.DuckDBPyConnection | None = None
        # Tables in memory, as their views are.
        self._tables: dict[str, pa.Table] = {}
        self._lookups: Lookups | None = None
        self._duplicates = pa.array([], pa.int64())

    @property
    def con(self) -> duckdb.DuckDBPyConnection:
        """The connection that has the views."""
        if self._connection is None:
            self._connection = open_connection(self._decoded.store.folder, memory=CAPTURE_MEMORY)
            for name, table in self._tables.items():
                self._connection.register(name, table)
        return self._connection

    @property
    def remarks(self) -> list[str]:
        """About the inputs, and about names of topics that were inferred or are missing."""
        self._known()
        return self._remarks

    def close(self) -> None:
        """Remove temporary files."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._decoded.store.close()

    def narrowed(self, name: str, _: ReadOptions) -> str:
        """The view: everything was read."""
        self.ensure(name)
        return quoted(name)

    def pieces(self, name: str, _: ReadOptions) -> Iterator[OrderedRows]:
        """One piece. Of a table whose rows are wide it is never a view as a whole, but the rows as they are made."""
        if TABLES[name].lists and name not in self._finished:
            batches = self._finished_batches(name, self._known())
            self.con.register(STREAM, pa.RecordBatchReader.from_batches(arrow_schema(name), batches))
            yield OrderedRows(STREAM, "")
            return
        self.ensure(name)
        # Joins lose the order in which tables are kept.
        yield OrderedRows(quoted(name), name_list(TABLES[name].order) if name in STAGE_OF else "")

    def stream(self, name: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch] | None:
        """The rows from memory or straight from decoding, unless something else must be joined to them."""
        if name in STAGE_OF or name not in self._decoded.store.tables:
            self.ensure(name)
        if name not in self._finished:
            return self._beside(self._finished_batches(name, self._known(), columns))
        table = self._tables.get(name)
        return None if table is None else iter(table.select(columns).to_batches())

    def ensure(self, name: str) -> None:
        """Make the view of a table, and of those it needs, if it is not there yet."""
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

    def replace_findings(self, rows: pa.Table) -> None:
        """Show these findings, columns as registered, instead of those of the rows that are here."""
        self._register("findings", rows)
        self._finished.add("findings")

    def _known(self) -> Lookups:
        """Lookups for finishing tables; clusters and topic names are found first, from the tables that tell them."""
        if self._lookups is not None:
            return self._lookups
        from analyser.context.clusters import cluster_of_flows
        from analyser.context.topics import topic_names

        files = [file_label(stats.file) for stats in self._decoded.captures]
        ends_ns = [stats.ts_last_ns for stats in self._decoded.captures if stats.ts_last_ns is not None]
        flows = with_ends(with_first_packets(self._decoded.flows_table(), files), max(ends_ns, default=None))
        self._duplicates = duplicate_flows(flows)
        protocols = {dissector.name: dissector for dissector in self._dissectors}
        first = Lookups(flows, pa.nulls(flows.num_rows, pa.string()), {}, files, protocols)
        order = [(column, "ascending") for column in TABLES["flows"].order]
        self._register("flows", flows.drop_columns([FLOW]).sort_by(order))
        self._finished.add("flows")
        for name in NAMED_BY:
            if name in self._decoded.store.tables:
                self._finish_table(name, first)
            else:
                self._register(name, arrow_schema(name).empty_table())
        topics = self._names_of_topics(replace(first, topics=topic_names(self._told(TOPICS))))
        by_flow = cluster_of_flows(flows, self._told(BROKERS))
        clusters = pa.array([by_flow.get(flow) for flow in flows.column("flow_id").to_pylist()], pa.string())
        self._lookups = Lookups(flows, clusters, topics, files, protocols)
        return self._lookups

    def _told(self, name: str) -> pa.Table:
        """The rows of a table of NAMED_BY; the different ones where they are many."""
        table = self._tables.get(name)
        if table is not None and table.num_rows < FEW_ROWS:
            return table
        return distinct(self.con, name, NAMED_BY[name])

    def _names_of_topics(self, known: Lookups) -> Mapping[str, str]:
        """Topic id -> name: as the user, the capture, or inference has it. known: has the names of the capture."""
        named = {**known.topics, **self._topic_ids}
        tables = {name: self._decoded.store.tables.get(name) for name in INFERRED_FROM}
        unnamed = {one for table in tables.values() if table is not None for one in table.distinct("topic_id", "topic")}
        unnamed -= named.keys()
        if not unnamed or any(table is None for table in tables.values()):
            return named
        for name in INFERRED_FROM:
            self._finish_table(name, replace(known, topics=named))
        inferred = inferred_names(self.con, named)
        self._remarks += naming_remarks(inferred, unnamed - inferred.keys())
        return {**{topic_id: found.topic for topic_id, found in inferred.items()}, **named}

    def _finished_batches(
        self, name: str, known: Lookups, columns: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        if name == "expert_infos":
            remarks = capture_remarks(self._decoded.captures)
            yield remarks if columns is None else remarks.select(columns)
        if name not in self._decoded.store.tables:  # no dissector that fills it is switched on
            return
        try:
            for batch in self._beside(self._decoded.store.tables[name].batches()):
                yield from self._finished_rows(name, batch, known, columns)
        except Exception as error:
            self.faults.append(sentence(caught(error), f"rows of {name}", "the rest of them is left out"))

    def _finished_rows(
        self, name: str, batch: pa.RecordBatch, known: Lookups, columns: Sequence[str] | None
    ) -> Iterator[pa.RecordBatch]:
        # A connection that was captured at two points is told once.
        if len(self._duplicates):
            batch = batch.filter(pc.invert(pc.is_in(batch.column(FLOW), self._duplicates)))
        for piece in pieces(name, batch):
            try:
                yield finish_batch(name, piece, known, columns)
            except Exception as error:
                rest = f"left out: {count(piece.num_rows, 'row')}"
                self.faults.append(sentence(caught(error), f"columns of {name}", rest))

    def _finish_table(self, name: str, known: Lookups) -> None:
        """Make the view of a table: in memory while it is small, else a temporary Parquet file."""
        batches: list[pa.RecordBatch] = []
        path = self._decoded.store.folder / f"{name}.parquet"
        writer: pq.ParquetWriter | None = None
        rows = 0
        for finished in self._beside(self._finished_batches(name, known)):
            rows += finished.num_rows
            if writer is None and rows > SMALL_ROWS:
                import pyarrow.parquet as pq

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
            self._rows[name] = rows
            self._tables.pop(name, None)
            self.con.execute(f"CREATE OR REPLACE VIEW {quoted(name)} AS FROM read_parquet({literal(str(path))})")

    def _run_stage(self, stage: Stage) -> None:
        """Make the tables of a stage of the context from their own rows and from the tables that it reads."""
        known = self._known()
        made = [name for name in stage.makes if name in self.names]
        for name in made:
            self._finished.add(name)
            self._finish_table(name, known)
        if not any(self._has_rows(name) for name in (*stage.makes, *stage.reads) if TABLES[name].protocol):
            return  # of a protocol that the capture is without: planning its queries costs as much as a small capture
        for name in (*stage.reads, *stage.uses):
            if name in self.names:
                self.ensure(name)
        for name in stage.new:
            self._rows.pop(name, None)
        con = self.con
        found = {name: self._tables.pop(name, None) for name in stage.makes}
        in_memory = {name: table for name, table in found.items() if table is not None}
        try:
            for name, table in stage.run(con, in_memory).items():
                self._register(name, table)
                del self._tables[name]  # its rows are not in the table's order
        except Exception as error:
            self._without(stage, known, caught(error))

    def _without(self, stage: Stage, known: Lookups, kind: str) -> None:
        """A stage failed: its tables hold what was decoded, without what other rows would have told."""
        rest = "what they would know from other rows is left out"
        self.faults.append(sentence(kind, f"the context of {', '.join(stage.makes)}", rest))
        for name in stage.makes:
            self.con.execute(f"DROP VIEW IF EXISTS temp.{quoted(name)}")
            self.con.execute(f"DROP TABLE IF EXISTS temp.{quoted(name)}")
            if name in stage.new:
                self._register(name, arrow_schema(name).empty_table())
            else:
                self._finish_table(name, known)

    def _has_rows(self, name: str) -> bool:
        raw = self._decoded.store.tables.get(name)
        return raw is not None and raw.has_rows

    def _finish_findings(self) -> None:
        from analyser.detectors import run_detectors
        from analyser.detectors.findings import findings_table

        for name in self.names:
            if name != "findings":
                self.ensure(name)
        codes = self._with_rows()
        self._register("findings", findings_table(run_detectors(self.con, codes, failures=self.failures)))
        self._finished.add("findings")

    def _with_rows(self) -> list[str]:
        """Codes of the detectors that have any row to look at."""
        from analyser.detectors import DETECTORS
        from analyser.detectors.asked import asked

        read = {name for detector in DETECTORS.values() for name in detector.reads}
        filled = {name for name, rows in self._rows.items() if rows}
        unknown = sorted((read & {*self.names}) - self._rows.keys())
        parts = [f"SELECT {literal(name)} WHERE EXISTS (FROM {quoted(name)})" for name in unknown]
        if parts:
            filled |= {name for (name,) in self.con.execute(" UNION ALL ".join(parts)).fetchall()}
        spoken = self.con.execute("SELECT DISTINCT protocol FROM flows").fetchall() if "flows" in self.names else []
        return [one.code for one in asked(DETECTORS.values(), filled, {name for (name,) in spoken})]

    def _register(self, name: str, table: pa.Table) -> None:
        self._rows[name] = table.num_rows
        self._tables[name] = table
        if self._connection is not None:
            self._connection.register(name, table)
