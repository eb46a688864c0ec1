"""The tables of captures that were read now.

In: decoded raw tables. Out: views in DuckDB, made on first use; large tables live in temporary Parquet files, small
ones in memory, where they can be read without DuckDB.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import pyarrow as pa

from wirewitness.analyser.analysis.build import OF_FLOWS, Lookups
from wirewitness.analyser.analysis.decoded_rows import Batches, DecodedRows, ahead, flows_in_order
from wirewitness.analyser.analysis.stored_tables import Kept, kept, kept_already, kept_table
from wirewitness.analyser.analysis.table_source import OrderedRows
from wirewitness.analyser.analysis.views import Views
from wirewitness.analyser.base.faults import CODE, LimitReached, told
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.decoding.rows.timeorder import FLOW
from wirewitness.analyser.decoding.run.capture_rows import captures_table, packing_limits, reading_faults, remark_line
from wirewitness.analyser.decoding.run.decoded import Decoded, UnreadInput
from wirewitness.analyser.engine.facts.limits import MOST_PRODUCT_ROWS, noting
from wirewitness.analyser.engine.facts.naming_tables import BROKERS, INFERRED_FROM, NAMED_BY, TOPICS
from wirewitness.analyser.engine.facts.stages import STAGE_OF, Stage, is_made_later
from wirewitness.analyser.tables.coded import BATCH_ROWS, Coder, plain
from wirewitness.analyser.tables.queries import distinct, name_list, quoted
from wirewitness.analyser.tables.tables import TABLES, arrow_schema
from wirewitness.dissectors.core.protocol import Dissector

if TYPE_CHECKING:
    import duckdb

    from wirewitness.analyser.capture.workloads.address_names import AddressNames
    from wirewitness.analyser.decoding.run.helpers import Helpers
    from wirewitness.analyser.engine.facts.shards import Dealer
    from wirewitness.analyser.engine.rules.running import Failure

# From so many rows on DuckDB is quicker, however long it takes to start.
FEW_ROWS = 1 << 12
STREAM = "wirewitness_stream"


class CaptureTables:
    """The tables of decoded captures; see `TableSource`.

    topic_ids: names that the user gave, by topic id. threads: may rows be made while others are written? helpers: that
    run some of the rules; ended when findings were found, or with the analysis. names: of addresses, from files.
    """

    def __init__(
        self,
        decoded: Decoded,
        wanted: Iterable[str],
        dissectors: Iterable[Dissector],
        topic_ids: Mapping[str, str] = MappingProxyType({}),
        *,
        threads: bool = False,
        helpers: Helpers | None = None,
        names: AddressNames | None = None,
    ) -> None:
        chosen = {*wanted}
        self.names = tuple(name for name in TABLES if name in chosen)
        self.unread: list[UnreadInput] = decoded.unread
        self._topic_ids = topic_ids
        self._beside: Callable[[Batches], Batches] = ahead if threads else iter
        self._remarks = [
            *decoded.remarks,
            *(
                remark_line(stats.file, remark)
                for stats in decoded.captures
                for remark in stats.remarks
                if remark.code != CODE
            ),
        ]
        self.failures: list[Failure] = []
        self.faults: list[str] = [
            *reading_faults(decoded.faults, decoded.captures),
            *packing_limits(decoded.captures),
        ]
        self._decoded = decoded
        self._decoded_rows = DecodedRows(decoded, names, self.faults, self._beside)
        self._dissectors = tuple(dissectors)
        self._finished: set[str] = set()
        # Tables of a stage of which another one read the rows as they are before that.
        self._raw: dict[str, Kept] = {}
        self.views = Views(decoded.store.folder, self.decoded_rows)
        self._helpers = helpers
        # Deals shards of stages out while findings are looked for.
        self.dealer: Dealer | None = None
        # Their rows are not in the table's order.
        self._by_stages: set[str] = set()
        self._lookups: Lookups | None = None

    @property
    def con(self) -> duckdb.DuckDBPyConnection:
        """The connection that has the views."""
        return self.views.con

    @property
    def remarks(self) -> list[str]:
        """About the inputs, and about names of topics that were inferred or are missing."""
        self._known()
        return self._remarks

    def close(self) -> None:
        """Remove temporary files, and let go of rows in memory."""
        self._end_helpers()
        self.views.close()
        self._decoded.store.close()

    def narrowed(self, name: str, _: ReadOptions) -> str:
        """The view: everything was read."""
        self.ensure(name)
        return quoted(name)

    def pieces(self, name: str, _: ReadOptions) -> Iterator[OrderedRows]:
        """One piece. Of a table whose rows are wide it is never a view as a whole, but the rows as they are made."""
        if TABLES[name].lists and name not in self._finished:
            batches = self._decoded_rows.batches(name, self._known())
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
            return self._beside(self._decoded_rows.batches(name, self._known(), columns))
        table = self.views.in_memory(name)
        if table is None or name in self._by_stages:
            return None
        schema = arrow_schema(name)
        wanted = pa.schema([schema.field(column) for column in columns])
        return (plain(batch, wanted) for batch in table.to_batches(max_chunksize=BATCH_ROWS))

    def ensure(self, name: str) -> None:
        """Make the view of a table, and of those it needs, if it is not there yet."""
        if name in self._finished:
            return
        if name == "findings":
            self._finish_findings()
            return
        if name == "stands_out":
            self._finish_stands_out()
            return
        if name in STAGE_OF:
            self._run_stage(STAGE_OF[name])
            return
        self._finished.add(name)
        if name == "captures":
            self.views.register(name, captures_table(self._decoded.captures))
        elif name == "flows":
            self._known()
        else:
            self._finish_table(name, self._known())
            self._let_go(name)

    def replace_findings(self, rows: pa.Table) -> None:
        """Show these findings, columns as registered, instead of those of the rows that are here."""
        self.views.register("findings", rows)
        self._finished.add("findings")

    def _known(self) -> Lookups:
        """Lookups for finishing tables; clusters and topic names are found first, from the tables that tell them."""
        if self._lookups is not None:
            return self._lookups
        from wirewitness.analyser.engine.facts.topics import topic_names
        from wirewitness.analyser.kafka.facts.clusters import cluster_of_flows

        files, logs = self._decoded_rows.files, self._decoded_rows.logs
        flows = self._decoded_rows.flows(lambda: self.con)
        self._remarks += self._decoded_rows.remarks
        protocols = {dissector.name: dissector for dissector in self._dissectors}
        keep = kept_table if "findings" in self.names else kept_already  # rules need the memory of many flows
        self.views.show("flows", keep(flows_in_order(flows.drop_columns([FLOW])), self.views.file_of("flows")))
        self._finished.add("flows")
        flows = flows.select([*OF_FLOWS, FLOW])  # all that others need of them
        nobody = pa.nulls(flows.num_rows, pa.string())
        first = Lookups(flows, nobody, {}, files, protocols, logs, opens=self._decoded.payload)
        for name in NAMED_BY:
            if name in self._decoded.store.tables:
                self._finish_table(name, first)
            else:
                self.views.register(name, arrow_schema(name).empty_table())
        topics = self._names_of_topics(replace(first, topics=topic_names(self._told(TOPICS))))
        by_flow = cluster_of_flows(flows, self._told(BROKERS))
        clusters = pa.array([by_flow.get(flow) for flow in flows.column("flow_id").to_pylist()], pa.string())
        self._lookups = replace(first, clusters=clusters, topics=topics)
        return self._lookups

    def _told(self, name: str) -> pa.Table:
        """The rows of a table of NAMED_BY; the different ones where they are many."""
        table = self.views.in_memory(name)
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
        # What it imports takes longer than a table of a small capture.
        from wirewitness.analyser.kafka.facts.inferred_names import inferred_names, naming_remarks

        for name in INFERRED_FROM:
            self._finish_table(name, replace(known, topics=named))
        inferred = inferred_names(self.con, named)
        self._remarks += naming_remarks(inferred, unnamed - inferred.keys())
        return {**{topic_id: found.topic for topic_id, found in inferred.items()}, **named}

    def _finish_table(self, name: str, known: Lookups) -> Kept:
        """Make the view of a table: in memory while it is small, else a temporary Parquet file."""
        # What decoding and other tables left behind would stay beside what this one takes.
        pa.default_memory_pool().release_unused()
        coder = None if TABLES[name].lists else Coder()
        batches = self._beside(self._decoded_rows.batches(name, known, coder=coder))
        rows = kept(batches, arrow_schema(name), self.views.file_of(name))
        self.views.show(name, rows)
        return rows

    def _let_go(self, name: str) -> None:
        """Its rows are finished for good: those as decoded are not needed any more."""
        if name in self._decoded.store.tables:
            self._decoded.store.tables[name].release()

    def _run_stage(self, stage: Stage) -> None:
        """Make the tables of a stage of the context from their own rows and from the tables that it reads."""
        known = self._known()
        without: dict[str, Kept] = {}
        for name in stage.makes:
            if name in self.names:
                self._finished.add(name)
                without[name] = self._as_decoded(name, known)
        of_protocol = [name for name in (*stage.makes, *stage.reads) if TABLES[name].protocol]
        if of_protocol and not any(map(self.may_have_rows, of_protocol)):
            return  # of a protocol that the capture is without: planning its queries costs as much as a small capture
        for name in (*stage.reads, *stage.uses):
            if name in self.names and name not in self._finished and is_made_later(name, stage):
                self._raw[name] = self._as_decoded(name, known)
            elif name in self.names:
                self.ensure(name)
        for name in stage.new:
            self.views.rows.pop(name, None)
        con = self.con
        held = {name: self.views.taken(name) for name in without}
        self._by_stages.update(stage.makes)
        try:
            new = {name: self.views.file_of(name) for name in stage.new if name in held}
            products: list[str] = []
            with noting(products):
                made = stage.run(con, {**held, **new}, self.dealer)
            rest = "further ones are left out"
            limit = LimitReached(f"{MOST_PRODUCT_ROWS:,} rows")
            self.faults += [told(limit, f"the context of {name}", rest) for name in products]
            for name, rows in made.items():
                self.views.show(name, kept_already(rows, self.views.file_of(name)))
            for name in made:
                if isinstance(old := held[name], Path):
                    old.unlink()
        except Exception as error:
            self._without(stage, without, error)
        pa.default_memory_pool().release_unused()

    def _as_decoded(self, name: str, known: Lookups) -> Kept:
        """Make the view of a table of a stage as its rows are before that; once, for stages that read it so, too."""
        if name in self._raw:
            return self._raw.pop(name)
        made = self._finish_table(name, known)
        self._let_go(name)
        return made

    def _without(self, stage: Stage, rows: Mapping[str, Kept], why: Exception) -> None:
        """A stage failed: its tables hold these rows, without what others would have told."""
        rest = "what they would know from other rows is left out"
        self.faults.append(told(why, f"the context of {', '.join(stage.makes)}", rest))
        self._by_stages.difference_update(stage.makes)
        for name in stage.makes:
            self.views.drop(name)
            if name in rows:
                self.views.show(name, rows[name])

    def may_have_rows(self, name: str) -> bool:
        """Were any decoded, of it or of those of its protocol that a stage makes it of? Of connections always."""
        raw, stage = self._decoded.store.tables.get(name), STAGE_OF.get(name)
        if raw is None and not TABLES[name].protocol:
            return True
        made_of = stage.reads if stage is not None and name in stage.new else ()
        of_protocol = (one for one in made_of if TABLES[one].protocol)
        return (raw is not None and raw.has_rows) or any(map(self.may_have_rows, of_protocol))

    def _finish_findings(self) -> None:
        from wirewitness.analyser.analysis.findings_table import detected

        try:
            self.views.register("findings", self._named(detected(self, self._helpers)))
        finally:
            self._end_helpers()
        self._finished.add("findings")

    def _finish_stands_out(self) -> None:
        from wirewitness.analyser.analysis.all_rules import populations, question_of
        from wirewitness.analyser.engine.outliers.table import lines

        every = populations({TABLES[name].protocol for name in self.names if self.may_have_rows(name)})
        for name in dict.fromkeys(["findings", "exchanges", "flows", *(one for each in every for one in each.reads)]):
            self.ensure(name)
        try:
            self.views.count({one.of for one in every})  # each that is asked costs a statement
            rows = lines(self.con, [one for one in every if self.views.rows[one.of]], question_of)
        except Exception as error:
            self.faults.append(told(error, "what stands out", "no line is told"))
            rows = arrow_schema("stands_out").empty_table()
        self.views.register("stands_out", rows)
        self._finished.add("stands_out")

    def _named(self, findings: pa.Table) -> pa.Table:
        """The findings, with identities of the clients where flows know them."""
        if not self._decoded_rows.has_identities or not findings.num_rows:
            return findings
        from wirewitness.analyser.analysis.client_names import NEEDED, named_findings

        asked = [name for name in self.names if name in NEEDED and self.may_have_rows(name)]
        try:
            for name in asked:
                self.ensure(name)
            return named_findings(self.con, findings, asked)
        except Exception as error:
            self.faults.append(told(error, "who the clients of findings are", "nobody is named in them"))
            return findings

    def _end_helpers(self) -> None:
        if self._helpers is not None:
            self._helpers.end()
            self._helpers = None

    @property
    def decoded_rows(self) -> int:
        """How many rows all tables have as they were decoded."""
        return sum(table.total_rows + table.waiting_rows for table in self._decoded.store.tables.values())

    @property
    def folder(self) -> Path:
        """Has the files of tables."""
        return self._decoded.store.folder
