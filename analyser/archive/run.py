"""One run of an archive: new captures into a dataset, by Spark.

In: captures, a dataset's folder, a session. Out: the dataset with them in it, as one full run over everything would
have made it. Nothing counts before the commit at the end, so a run that is killed leaves what was there before.
"""

from __future__ import annotations

import os
import pickle
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as pads
from pyarrow import feather

from analyser.archive.aggregates import run_aggregates
from analyser.archive.context import run_context
from analyser.archive.dataset import Change, DatasetError, InputFile, Part, write_parts
from analyser.archive.decode_stage import (
    FLOWS_FILE,
    RAW_FILE,
    RESULT_FILE,
    RESULTS_DDL,
    STATE_FILE,
    TOLD,
    DecodeJob,
    Raw,
    ShareFolder,
    decode_shares,
    raw_of_runs,
    share_name,
)
from analyser.archive.finish_stage import (
    CLUSTER,
    COMMON_FILE,
    DONE_DDL,
    KNOWN_FILE,
    Common,
    FinishJob,
    Made,
    finish_units,
)
from analyser.archive.intake import Intake
from analyser.archive.manifest import REBUILD
from analyser.archive.packets import RangeJob
from analyser.archive.plan import Plan, PlannedFile, plan_files
from analyser.archive.ranges import RANGE_BYTES, Range, RangeStats, find_ranges, is_exact, merged
from analyser.build import row_fields
from analyser.capture import CaptureError, CaptureLimits, CaptureStats
from analyser.context import cluster_of_flows, topic_names
from analyser.context.stages import STAGE_OF
from analyser.facts import capture_remarks, captures_table, file_label
from analyser.options import ReadOptions
from analyser.queries import literal, name_list, open_connection, quoted
from analyser.reading import needed_tables
from analyser.tables import TABLES, arrow_schema
from dissectors.registry import dissectors

if TYPE_CHECKING:
    import duckdb
    from pyspark.sql import DataFrame, SparkSession

    from analyser.detectors.framework import Failure

SHARES = 32
PARTS_FILE = "parts.pickle"
# Which settled rows each part has: share, run and table.
PartsOf = dict[tuple[int, str, str], list[Part]]


@dataclass(frozen=True, slots=True)
class ArchiveOptions:
    """How a dataset is made. What the first run was told holds for the later ones.

    tables: None for all. shares: into how many the connections are dealt; each is decoded by one task at a time.
    range_bytes: larger files are read in ranges of about this size. inline: payloads travel with the packets, for
    workers that do not see the files under the same paths. rebuild: begin with nothing. intake: which captures are
    taken now.
    """

    read: ReadOptions = field(default_factory=ReadOptions)
    tables: tuple[str, ...] | None = None
    shares: int = SHARES
    range_bytes: int = RANGE_BYTES
    inline: bool = False
    rebuild: bool = False
    intake: Intake = field(default_factory=Intake)


@dataclass(frozen=True, slots=True)
class Summary:
    """What a run did. files: taken in. known: files that were in already. rows: of each table, in the whole dataset.

    aside: what was not taken in, with the reason. findings: by severity. failures: what detectors did not look at.
    """

    run: str | None
    files: list[InputFile] = field(default_factory=list)
    known: int = 0
    aside: list[InputFile] = field(default_factory=list)
    rows: Mapping[str, int] = field(default_factory=dict)
    findings: Mapping[str, int] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)


ProgressCallback = Callable[[str], None]


def archive(
    inputs: Sequence[str | os.PathLike[str]],
    dataset: str | os.PathLike[str],
    spark: SparkSession,
    options: ArchiveOptions | None = None,
    progress: ProgressCallback | None = None,
) -> Summary:
    """Take new captures into a dataset, which is made when it is not there.

    progress: told what begins, in a few words. Raises DatasetError, DatasetBusy, and CaptureError when there is nothing
    to make a dataset of.
    """
    from analyser.archive.source import register

    options = options or ArchiveOptions()
    with Change.begin(Path(dataset).absolute(), rebuild=options.rebuild) as change:
        options = _as_before(options, change)
        plan = plan_files(inputs, change.previous, change.run, options.intake)
        if not plan.files:
            if change.previous is None:
                reasons = " ".join(one.reason or "" for one in plan.aside)
                raise CaptureError(reasons or "No capture was given.")
            return Summary(None, known=plan.known, aside=plan.aside)
        register(spark)
        return _Run(change, plan, spark, options, progress or (lambda _: None)).all()


def _as_before(options: ArchiveOptions, change: Change) -> ArchiveOptions:
    """The options that the dataset was begun with. DatasetError when others were asked for."""
    if change.previous is None:
        return options
    settings = change.previous.settings
    told = _settings(options)
    for name in ("tables", "enable", "decode_as", "payload", "payload_columns"):
        if settings.get(name) != told[name]:
            raise DatasetError(f"{change.root} was made with other settings ({name}); {REBUILD}")
    if change.previous_state is None:
        raise DatasetError(f"{change.root} keeps no state to go on from; {REBUILD}")
    return replace(options, shares=int(settings["shares"]))


def _settings(options: ArchiveOptions) -> dict[str, Any]:
    read = options.read
    return {
        "shares": options.shares,
        "tables": None if options.tables is None else sorted(options.tables),
        "enable": sorted(read.enable),
        "decode_as": {str(port): name for port, name in sorted(read.decode_as.items())},
        "payload": read.payload,
        "payload_columns": sorted(read.payload_columns),
    }


class _Run:
    """One run; `all` does everything."""

    def __init__(
        self, change: Change, plan: Plan, spark: SparkSession, options: ArchiveOptions, progress: ProgressCallback
    ) -> None:
        self._change, self._plan, self._spark = change, plan, spark
        self._options, self._progress = options, progress
        self._wanted = needed_tables(TABLES if options.tables is None else options.tables)
        rows = row_fields(dissectors(options.read.enable))
        self._raw_tables = tuple(name for name in self._wanted if name in rows)
        self._work = change.staging / "_work"
        self._work.mkdir()
        self._limits = CaptureLimits()

    def all(self) -> Summary:
        """Plan, packets, decode, finish, context, findings, aggregates, commit."""
        folders, told = self._decoded()
        files, stats = self._files(told)
        self._progress("putting together what all connections tell")
        common = self._common(folders, files)
        (self._change.state / COMMON_FILE).write_bytes(pickle.dumps(common))
        self._finished(folders)
        name = f"{self._change.run}-captures"
        self._add(write_parts("captures", captures_table(stats).to_batches(), self._change.staging, name))
        if "expert_infos" in self._wanted:
            self._add(write_parts("expert_infos", [capture_remarks(stats)], self._change.staging, name))
        self._keep_state(folders)
        self._progress("context")
        run_context(self._change)
        self._severities: dict[str, int] = {}
        failures = self._findings() if "findings" in self._wanted else []
        self._progress("aggregates")
        run_aggregates(self._change)
        manifest = self._change.commit([*files, *self._plan.aside], _settings(self._options))
        rows = {table: manifest.rows(table) for table in manifest.by_table}
        return Summary(self._change.run, files, self._plan.known, self._plan.aside, rows, self._severities, failures)

    # ------------------------------------------------------------------------------------------------------------------

    def _decoded(self) -> tuple[dict[int, Path], dict[int, list[RangeStats]]]:
        """Each share's folder, and what the ranges of each file told; files whose ranges cannot be read on their own
        are read as one."""
        files = len(self._plan.files)
        self._progress(f"looking through {files} capture{'' if files == 1 else 's'}")
        ranges = {file.number: self._ranges(file) for file in self._plan.files}
        while True:
            self._progress("decoding")
            folders = self._decode(ranges)
            results: list[ShareFolder] = [_loaded(folder) for folder in folders.values()]
            told: dict[int, list[RangeStats]] = {}
            self._errors: dict[int, str] = {}
            for result in sorted(one for share in results for one in share.ranges):
                told.setdefault(result.file, []).append(result.told)
                if result.error:
                    self._errors[result.file] = result.error
            odd = [number for number, parts in told.items() if not is_exact(parts, self._limits)]
            if not odd:
                return folders, told
            for number in odd:
                ranges[number] = [Range(0, 0, ranges[number][-1].end)]
            for folder in folders.values():
                shutil.rmtree(folder)

    def _ranges(self, file: PlannedFile) -> list[Range]:
        try:
            return find_ranges(file.source, file.size, self._options.range_bytes)
        except CaptureError:  # reading it says so
            return [Range(0, 0, file.size)]

    def _decode(self, ranges: Mapping[int, list[Range]]) -> dict[int, Path]:
        from pyspark.sql.functions import col

        from analyser.archive.source import FORMAT, JOBS

        options = self._options
        jobs = [
            RangeJob(file.number, file.source, part, options.shares, options.inline)
            for file in self._plan.files
            for part in ranges[file.number]
        ]
        jobs_path, job_path = self._work / "ranges.pickle", self._work / "decode.pickle"
        jobs_path.write_bytes(pickle.dumps(jobs))
        paths = {file.number: file.path for file in self._plan.files}
        job = DecodeJob(self._work, paths, self._raw_tables, _sendable(options.read), self._change.previous_state)
        job_path.write_bytes(pickle.dumps(job))
        packets = self._spark.read.format(FORMAT).option(JOBS, str(jobs_path)).load()
        shares: DataFrame = packets.repartitionById(options.shares, col("share"))
        rows = shares.sortWithinPartitions("share", "file", "range", "number")
        done = rows.mapInArrow(partial(decode_shares, str(job_path)), RESULTS_DDL).collect()
        return {row.share: Path(row.folder) for row in sorted(done)}

    def _files(self, told: Mapping[int, list[RangeStats]]) -> tuple[list[InputFile], list[CaptureStats]]:
        files, captures = [], []
        for file in self._plan.files:
            stats, error = merged(told[file.number], self._limits), self._errors.get(file.number)
            if error is None or stats.packets:
                captures.append(stats)
            times = stats.ts_first_ns, stats.ts_last_ns
            name, run = file.source.name, self._change.run
            files.append(InputFile(name, file.key, file.size, stats.packets, *times, "read", error, run))
        return files, captures

    def _common(self, folders: Mapping[int, Path], files: Sequence[InputFile]) -> Common:
        """Clusters go to the folders of the shares."""
        previous = self._change.previous.inputs if self._change.previous else ()
        everything = [*(one for one in previous if one.status == "read"), *files]
        last_ns = max((one.last_ns for one in everything if one.last_ns is not None), default=None)
        con = open_connection(self._work)
        flows = [str(folder / FLOWS_FILE) for folder in folders.values()]
        con.register("flows", pads.dataset(flows, format="feather"))
        for table in TOLD:
            paths = [str(path) for folder in folders.values() if (path := folder / f"{table}.parquet").exists()]
            _view(con, table, paths, TOLD[table])
        topics, clusters = topic_names(con), cluster_of_flows(con)
        con.close()
        for folder in folders.values():
            ids = feather.read_table(str(folder / FLOWS_FILE), columns=["flow_id"]).column(0).to_pylist()
            known = pa.table({CLUSTER: pa.array([clusters.get(one) for one in ids], pa.string())})
            feather.write_feather(known, str(folder / KNOWN_FILE))
        return Common(tuple(file_label(one.path) for one in everything), last_ns, topics)

    def _finished(self, folders: Mapping[int, Path]) -> None:
        """Make the parts of all tables, those that the context stages still work on too."""
        self._progress("writing tables")
        change = self._change
        self._parts_of: PartsOf = {}
        if change.previous_state is not None:
            self._parts_of = pickle.loads((change.previous_state / PARTS_FILE).read_bytes())
        for part in [part for part in change.parts() if part.provisional]:
            change.remove(part)
        job = FinishJob(
            change.staging,
            change.run,
            folders,
            change.previous_state,
            change.state,
            self._options.read.enable,
        )
        job_path = self._work / "finish.pickle"
        job_path.write_bytes(pickle.dumps(job))
        units = self._units(folders)
        stale: set[str] = set()
        for share, made in self._make(job_path, units, whole=False):
            stale |= {one.table for one in made if one.stale}
            for one in made:
                if one.of is not None and one.table not in STAGE_OF:
                    key = (share, one.of, one.table)
                    change.remove(*self._parts_of.get(key, ()))
                    self._parts_of[key] = one.parts
                self._add(one.parts)
        if stale:
            change.remove(*(part for table in stale for part in change.parts(table)))
            units = Counter({unit: rows for unit, rows in units.items() if unit[1] in stale})
            for _, made in self._make(job_path, units, whole=True):
                self._add(part for one in made for part in one.parts)

    def _make(
        self, job_path: Path, units: Mapping[tuple[int, str], int], *, whole: bool
    ) -> Iterator[tuple[int, list[Made]]]:
        tasks = max(1, min(len(units), 4 * self._spark.sparkContext.defaultParallelism))
        rows = self._spark.createDataFrame(
            [(*unit, whole) for unit in _dealt(units, tasks)], "task int, share int, name string, whole boolean"
        )
        done = rows.repartitionById(tasks, rows.task).mapInArrow(partial(finish_units, str(job_path)), DONE_DDL)
        for row in sorted(done.collect(), key=lambda row: (row.share, row.name)):
            yield row.share, pickle.loads(row.parts)

    def _units(self, folders: Mapping[int, Path]) -> Counter[tuple[int, str]]:
        """Share and table -> about how many rows there are to make."""
        units: Counter[tuple[int, str]] = Counter()
        for share, folder in folders.items():
            units[share, "flows"] = 1
            result = _loaded(folder)
            raws = [result.settled, result.open]
            if self._change.previous_state is not None:
                raws += [raw for _, raw in raw_of_runs(self._change.previous_state / share_name(share))]
            for tables in raws:
                for table, raw in tables.items():
                    units[share, table] += 1 + raw.rows.rows
        return units

    def _keep_state(self, folders: Mapping[int, Path]) -> None:
        """What the next run goes on from."""
        state, previous = self._change.state, self._change.previous_state
        for share, folder in folders.items():
            own = state / share_name(share)
            os.replace(folder / STATE_FILE, own / STATE_FILE)
            raw = own / f"raw-{self._change.run}"
            os.replace(folder / "settled", raw)
            settled: Mapping[str, Raw] = _loaded(folder).settled
            (raw / RAW_FILE).write_bytes(pickle.dumps(dict(settled)))
            if previous is not None:
                for earlier in sorted((previous / share_name(share)).glob("raw-*")):
                    shutil.copytree(earlier, own / earlier.name, copy_function=_linked)
        (state / PARTS_FILE).write_bytes(pickle.dumps(self._parts_of))

    def _findings(self) -> list[Failure]:
        """Findings of the whole dataset; what could not be looked at."""
        from analyser.archive.detectors import detect

        self._progress("findings")
        change, folder = self._change, self._change.staging / "_detect"
        folder.mkdir()
        parts = {table: [str(change.location(part)) for part in change.parts(table)] for table in self._wanted}
        found = detect(self._spark, parts, folder)
        self._severities = dict(Counter(found.findings.column("severity").to_pylist()))
        name = f"{change.run}-findings"
        self._add(write_parts("findings", found.findings.to_batches(), change.staging, name, provisional=True))
        return found.failures

    def _add(self, parts: Iterable[Part]) -> None:
        self._change.add(*parts)


def _dealt(units: Mapping[tuple[int, str], int], tasks: int) -> list[tuple[int, int, str]]:
    """Task, share and table: the largest first, each to the task that has least to do; shares stay together there."""
    loads = [0] * tasks
    dealt = []
    for (share, table), rows in sorted(units.items(), key=lambda item: (-item[1], item[0])):
        task = loads.index(min(loads))
        loads[task] += rows
        dealt.append((task, share, table))
    return sorted(dealt)


def _loaded(folder: Path) -> ShareFolder:
    result: ShareFolder = pickle.loads((folder / RESULT_FILE).read_bytes())
    return result


def _linked(source: str, target: str) -> None:
    """A hard link where the file system has them."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _view(con: duckdb.DuckDBPyConnection, table: str, paths: list[str], columns: Sequence[str]) -> None:
    if paths:
        source = f"read_parquet({literal(paths)}, hive_partitioning = false)"
        con.execute(f"CREATE OR REPLACE VIEW {quoted(table)} AS SELECT {name_list(columns)} FROM {source}")
    else:
        con.register(table, arrow_schema(table).empty_table())


def _sendable(options: ReadOptions) -> ReadOptions:
    """Without read-only views, which cannot be pickled."""
    return replace(options, decode_as=dict(options.decode_as))
