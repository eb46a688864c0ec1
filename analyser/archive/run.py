"""One run of an archive: new captures into a dataset, by Spark.

In: captures, a dataset's folder, a session. Out: the dataset with them in it, as one full run over everything would
have made it. Nothing counts before the commit at the end, so a run that is killed leaves what was there before.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from wirewitness.analyser.analysis.joined import NEEDED
from wirewitness.analyser.analysis.needed import needed_tables
from wirewitness.analyser.archive.aggregate.aggregates import run_aggregates
from wirewitness.analyser.archive.aggregate.context import run_context
from wirewitness.analyser.archive.aggregate.hour_summaries import stamp_again
from wirewitness.analyser.archive.aggregate.tasks import each_of
from wirewitness.analyser.archive.commit.common import put_together, write_common
from wirewitness.analyser.archive.commit.finish_run import FinishRun, finish_tables
from wirewitness.analyser.archive.commit.workloads_kept import IDENTITIES_FILE, keep_identities
from wirewitness.analyser.archive.dataset.compact import compact
from wirewitness.analyser.archive.dataset.dataset import Change, InputFile, write_parts
from wirewitness.analyser.archive.dataset.home import WORK
from wirewitness.analyser.archive.dataset.place import ANEW, DatasetError
from wirewitness.analyser.archive.dataset.state_files import check_files, going_on_from
from wirewitness.analyser.archive.dataset.store_home import BEGUN
from wirewitness.analyser.archive.decode.decode_run import Decoded, DecodeRun, decode_files, files_read, flows_again
from wirewitness.analyser.archive.decode.decode_stage import LOCKED_FILE, STATE_FILE, Left, shard_name, told_file
from wirewitness.analyser.archive.decode.read_again import Again
from wirewitness.analyser.archive.decode.unlocked import Unlocked, find_unlocked
from wirewitness.analyser.archive.ingest.arriving import AGAIN
from wirewitness.analyser.archive.ingest.options import SHARDS, ArchiveOptions, options_as_before, settings_of
from wirewitness.analyser.archive.ingest.plan import Plan, plan_files
from wirewitness.analyser.archive.spark.workers import OnSpark
from wirewitness.analyser.base.storage.exchange_files import copy_folder, files_below, is_there, move_files, those_there
from wirewitness.analyser.base.storage.folders import FolderPath, StorePath, folder_at
from wirewitness.analyser.capture import CaptureError, CaptureStats
from wirewitness.analyser.decoding.rows.fields import row_fields
from wirewitness.analyser.decoding.run.capture_rows import capture_remarks, captures_table, reading_faults
from wirewitness.analyser.decoding.run.keys import Keys
from wirewitness.analyser.engine.facts.naming_tables import NAMED_BY
from wirewitness.analyser.tables.tables import TABLES
from wirewitness.dissectors.registry import dissectors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from wirewitness.analyser.engine.rules.running import Failure

# What a run leaves for the next one, beside the parts and what the finish stage keeps of the flows.
#
# In: what the decode stage left of each shard. Out: the folder of the new state, whole when the change is committed.
# The number of its files depends on the number of shards only.


def check_state(change: Change) -> None:
    """DatasetError for a state that this version does not go on from: earlier ones kept objects that run as they are
    read; and for links and the like in the dataset."""
    state = change.previous_state
    check_files(change.root, state, [part.path for part in change.every_part()])
    if state is not None and any(name.endswith("/state.zst") for name in files_below(state)):
        raise DatasetError(f"{change.root} was made by an earlier version, whose state is not gone on from: {ANEW}.")


def keep_state(change: Change, folders: Mapping[int, Left]) -> None:
    """Move to the new state what the next run goes on from."""
    names = (STATE_FILE, LOCKED_FILE, *map(told_file, NAMED_BY))
    places = {left.place / name: change.state / shard_name(shard) / name for shard, left in folders.items()
              for name in names}  # fmt: skip
    move_files({path: places[path] for path in those_there(places)})


def keep_state_as_it_is(change: Change) -> None:
    """Nothing is taken in: the next run goes on from where the last one ended."""
    if change.previous_state is not None:
        copy_folder(change.previous_state, change.state, (BEGUN, WORK))


__all__ = ["SHARDS", "ArchiveOptions", "Summary", "archive", "compact_dataset"]

ProgressCallback = Callable[[str], None]


class Opened(NamedTuple):
    """What keys opened that came after their captures."""

    captures: int = 0
    connections: int = 0


@dataclass(frozen=True, slots=True)
class Summary:
    """What a run did. files: taken in. known: files that were in already. rows: of each table, in the whole dataset.

    aside: what was not taken in, with the reason. findings: by severity. failures: what rules did not look at.
    remarks: on the dataset as a whole. faults: sentences about faults of our own while captures were read. opened: how
    many captures of earlier runs were read again for keys that came later, and of how many connections.
    """

    run: str | None
    files: list[InputFile] = field(default_factory=list)
    known: int = 0
    aside: list[InputFile] = field(default_factory=list)
    rows: Mapping[str, int] = field(default_factory=dict)
    findings: Mapping[str, int] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    opened: Opened = field(default_factory=Opened)


def archive(
    inputs: Sequence[str | os.PathLike[str]],
    dataset: str | os.PathLike[str],
    spark: SparkSession,
    options: ArchiveOptions | None = None,
    progress: ProgressCallback | None = None,
) -> Summary:
    """Take new captures into a dataset, which is made when it is not there; before that, read connections of earlier
    runs again that the key logs open now. Each of both is a change of its own.

    progress: told what begins, in a few words. Raises DatasetError, DatasetBusy, and CaptureError when there is nothing
    to make a dataset of.
    """
    options, progress = options or ArchiveOptions(), progress or (lambda _: None)
    again: Summary | None = None
    with Change.begin(_place(dataset), rebuild=options.rebuild) as change:
        options = options_as_before(options, change)
        check_state(change)
        unlocked = _unlocked(change, options)
        if unlocked is None or not unlocked.plan.files:
            return _with_opened(unlocked, None, _take_in(inputs, change, spark, options, progress))
        again = _read_again(unlocked, change, spark, options, progress)
    with Change.begin(_place(dataset)) as change:
        return _with_opened(unlocked, again, _take_in(inputs, change, spark, options, progress))


def _take_in(
    inputs: Sequence[str | os.PathLike[str]],
    change: Change,
    spark: SparkSession,
    options: ArchiveOptions,
    progress: ProgressCallback,
) -> Summary:
    """New captures."""
    from wirewitness.analyser.archive.decode.source import register

    joins = {*NEEDED} <= {*needed_tables(TABLES if options.tables is None else options.tables)}
    plan = plan_files(inputs, change.previous, change.run, options.intake, options.read.log_zone_ns, joins=joins)
    if not plan.files:
        return _nothing_new(change, plan)
    register(spark)
    with going_on_from(None if change.previous is None else change.root):
        return _Run(change, plan, spark, options, progress).all()


def _unlocked(change: Change, options: ArchiveOptions) -> Unlocked | None:
    """What the key logs open of earlier runs."""
    previous, state = change.previous, change.previous_state
    if previous is None or state is None or not options.read.keylogs:
        return None
    ring = Keys(options.read.keylogs).ring
    shards = options.shards + any(one.kind != "packets" and one.status == "read" for one in previous.inputs)
    with going_on_from(change.root):
        return find_unlocked(ring, state, range(shards), previous.inputs)


def _read_again(
    unlocked: Unlocked, change: Change, spark: SparkSession, options: ArchiveOptions, progress: ProgressCallback
) -> Summary:
    """Connections of earlier runs, with their keys."""
    from wirewitness.analyser.archive.decode.source import register

    progress("reading again what keys open that came later")
    register(spark)
    with going_on_from(change.root):
        return _Run(change, unlocked.plan, spark, options, progress, unlocked.again).all()


def _with_opened(unlocked: Unlocked | None, again: Summary | None, taken: Summary) -> Summary:
    """What both changes of a run did. again: of what was read again, None for nothing. taken: of new captures."""
    missing = [] if unlocked is None else unlocked.missing
    if again is not None and again.run is None:
        missing = [*missing, f"captures that keys open now could not be read to their ends: {AGAIN}"]
    if again is None:
        return replace(taken, remarks=[*missing, *taken.remarks])
    if taken.run is None:
        taken = replace(again, known=taken.known, aside=taken.aside)
    else:
        taken = replace(taken, opened=again.opened, faults=[*again.faults, *taken.faults])
    return replace(taken, remarks=[*missing, *taken.remarks])


def _nothing_new(change: Change, plan: Plan) -> Summary:
    """The dataset stays as it is. CaptureError where there is none."""
    if change.previous is None:
        reasons = " ".join(one.reason or "" for one in plan.aside)
        raise CaptureError(reasons or "No capture was given.")
    return Summary(None, known=plan.known, aside=plan.aside)


def _place(dataset: str | os.PathLike[str]) -> FolderPath:
    root = folder_at(os.fspath(dataset))
    return root if isinstance(root, StorePath) else root.absolute()


def compact_dataset(dataset: str | os.PathLike[str], spark: SparkSession) -> tuple[int, int]:
    """Put the parts of a dataset together; how many there were, and are. Raises DatasetError, DatasetBusy."""
    with Change.begin(_place(dataset), create=False) as change:
        check_state(change)
        before = len(change.parts())
        with going_on_from(change.root):
            if compact(spark, change, whole=True):
                keep_state_as_it_is(change)
                stamp_again(change)
                change.commit(())
            return before, len(change.parts())


class _Run:
    """One run; `all` does everything."""

    def __init__(
        self,
        change: Change,
        plan: Plan,
        spark: SparkSession,
        options: ArchiveOptions,
        progress: ProgressCallback,
        again: Again | None = None,
    ) -> None:
        """again: what is read of the files, which are in already; None for new files."""
        self._again = again
        self._change, self._plan, self._spark = change, plan, spark
        self._options, self._progress = options, progress
        self._wanted = needed_tables(TABLES if options.tables is None else options.tables)
        self._work = change.work
        self._workers = OnSpark(spark, self._work)

    def all(self) -> Summary:
        """Plan, packets, decode, finish, context, findings, aggregates, compaction, commit."""
        decoded = self._decoded()
        if not self._plan.files:
            return _nothing_new(self._change, self._plan)
        new = self._again is None
        files, captures = files_read(self._plan, decoded, self._change.run) if new else ([], [])
        self._progress("putting together what all connections tell")
        self._put_together(decoded, files)
        keep_identities(self._change.state, self._change.previous_state, captures)
        self._progress("writing tables")
        job = FinishRun(self._spark, self._change, decoded.folders, self._options.read.enable, self._work)
        remark = finish_tables(job)
        remarks = [] if remark is None else [remark]
        keep_state(self._change, decoded.folders)
        if new:
            self._add_captures(captures)
        self._progress("context")
        run_context(self._change, self._workers)
        severities: Mapping[str, int] = {}
        failures: list[Failure] = []
        if "findings" in self._wanted:
            self._progress("findings")
            severities, failures = self._findings()
        self._progress("aggregates")
        run_aggregates(self._change, self._workers)
        compact(self._spark, self._change)
        stamp_again(self._change)
        manifest = self._change.commit([*files, *self._plan.aside], settings_of(self._options), remarks)
        rows = {table: pinned.rows for table, pinned in manifest.tables.items()}
        faults = [*reading_faults(decoded.faults, captures)]
        taken = self._change.run, files, self._plan.known, self._plan.aside
        opened = Opened() if new else Opened(len(self._plan.files), flows_again(decoded))
        return Summary(*taken, rows, severities, failures, remarks, faults, opened)

    def _decoded(self) -> Decoded:
        rows = row_fields(dissectors(self._options.read.enable))
        tables = tuple(name for name in self._wanted if name in rows)
        previous = self._change.previous_state
        return decode_files(
            DecodeRun(
                self._spark,
                self._change.run,
                self._plan,
                self._options,
                tables,
                self._work,
                previous,
                self._progress,
                self._again,
            )
        )

    def _put_together(self, decoded: Decoded, files: Sequence[InputFile]) -> None:
        previous = self._change.previous.inputs if self._change.previous else ()
        everything = [*(one for one in previous if one.status == "read"), *files]
        common = put_together(
            [left.place for left in decoded.folders.values()], everything, self._work, self._options.read.topic_ids
        )
        write_common(common, self._change.state)

    def _add_captures(self, captures: Sequence[CaptureStats]) -> None:
        change, name = self._change, f"{self._change.run}-captures"
        change.add(*write_parts("captures", captures_table(captures).to_batches(), change.staging, name))
        if "expert_infos" in self._wanted:
            change.add(*write_parts("expert_infos", [capture_remarks(captures)], change.staging, name))

    def _findings(self) -> tuple[Mapping[str, int], list[Failure]]:
        """Findings of the whole dataset by severity; what could not be looked at."""
        from wirewitness.analyser.archive.aggregate.rules import detect

        change = self._change
        found = detect(change, self._workers)
        findings = found.findings
        if is_there(change.state / IDENTITIES_FILE):
            from wirewitness.analyser.archive.aggregate.context import STAGE, named

            (findings,) = each_of(change, self._workers, STAGE, named, [findings])
        name = f"{change.run}-findings"
        change.add(*write_parts("findings", findings.to_batches(), change.staging, name, provisional=True))
        return dict(Counter(findings.column("severity").to_pylist())), found.failures
