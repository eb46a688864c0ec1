"""`wirewitness archive`: months of captures into one dataset, on Spark. In: captures; out: a DATASET directory."""

from __future__ import annotations

import errno
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wirewitness.app.cli.archive_result import complaints, notes, result_lines, status_of
from wirewitness.app.cli.output import write_text
from wirewitness.app.shared.failure import CallerError, Status, complain, say
from wirewitness.app.shared.local_files import check_is_local
from wirewitness.app.shared.names import checked_table
from wirewitness.app.shared.options import TimeType, keylog_option, log_zone_option, read_options, topic_id_option
from wirewitness.app.shared.reading import complain_of_failure, complain_of_faults

if TYPE_CHECKING:
    from wirewitness.analyser.archive.run import ArchiveOptions
    from wirewitness.analyser.archive.spark.session import SessionSettings

# What the system says of places and disks that the caller has to look after.
_CALLERS = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.ENOTDIR, errno.ENAMETOOLONG}


def _packed(ctx: click.Context, _: click.Parameter, folder: str | None) -> None:
    """--pack: writes what spark-submit needs and ends."""
    if folder is None or ctx.resilient_parsing:
        return
    check_is_local(folder, "--pack")
    from wirewitness.analyser.archive.spark.code_zip import pack_for_submit

    try:
        packed, program = pack_for_submit(Path(folder))
    except OSError as error:
        raise CallerError(f"cannot pack the code into {folder}: {error.strerror or error}") from error
    write_text(f"{packed}\n{program}\n")
    ctx.exit(0)


@click.command()
@click.argument("inputs", nargs=-1, metavar="INPUT...")
@click.option(
    "--output",
    "-o",
    required=True,
    metavar="DATASET",
    help="Directory or address of the dataset; made when it is not there.",
)
@click.option("--master", metavar="URL",
              help="Spark's master: local[N] (the default: this machine, all its processors), spark://HOST:PORT, yarn, "
                   "k8s://...")  # fmt: skip
@click.option(
    "--since", "since_ns", type=TimeType(), help="Leave out captures that were last written before this time."
)
@click.option("--until", "until_ns", type=TimeType(), help="Leave out captures that begin at this time or later.")
@click.option("--tables", metavar="NAME,...", help="Only these tables, and those they are made of.")
@click.option("--follow", is_flag=True, help="Go on with captures as they become complete, until Ctrl-C.")
@click.option(
    "--compact", is_flag=True, help="Take nothing in: put small files of DATASET together, as far as it goes."
)
@click.option("--rebuild", is_flag=True, help="Make the dataset anew from INPUT; what it held goes.")
@click.option("--decode-as", multiple=True, metavar="PORT=PROTOCOL",
              help="Read connections to this server port as PROTOCOL. Repeatable.")  # fmt: skip
@topic_id_option
@keylog_option
@log_zone_option
@click.option("--enable", multiple=True, metavar="NAME", help="Switch on an optional dissector. Repeatable.")
@click.option(
    "--inline", is_flag=True, help="Send payloads through Spark instead of reading captures twice: for slow storage."
)
@click.option("--shares", type=click.IntRange(1, 4096), metavar="N",
              help="Deal connections into N shares, each decoded by one task (32); the first run decides.")  # fmt: skip
@click.option("--driver-memory", default="640m", show_default=True, metavar="SIZE", help="Heap of Spark's driver.")
@click.option("--executor-memory", default="640m", show_default=True, metavar="SIZE", help="Heap of each executor.")
@click.option("--conf", multiple=True, metavar="NAME=VALUE", help="Any setting of Spark. Repeatable.")
@click.option("--pack", callback=_packed, is_eager=True, expose_value=False, metavar="FOLDER",
              help="Write the code zip and the program that spark-submit takes to FOLDER, and end.")  # fmt: skip
@click.option("--quiet", is_flag=True, help="No progress and no notes; errors still show.")
@click.option("--debug", is_flag=True, help="Show the trace when wirewitness itself fails.")
def archive(
    *, inputs: tuple[str, ...], output: str, follow: bool, compact: bool, quiet: bool, debug: bool, **how: Any
) -> Status:
    """Take captures into a DATASET, a directory or an address in an object store, which other commands read like a
    capture.

    INPUT is a capture, a request log or log segment of a Kafka broker, a directory of such files, a pattern in
    quotes, or an address in an object store, which means all that is below it. Files that the dataset already
    holds are passed over, so the same command takes in what is new; connections go on over files and runs. What
    --keylog opens of earlier runs is read again. A run that is killed leaves the dataset as it was.

    \b
    Examples:
      wirewitness archive /captures --output /data/traffic
      wirewitness archive '/captures/*/kafka-*.pcap.gz' --output /data/traffic --since 2026-11-01
      wirewitness archive s3://company-captures/2026/ --output /data/traffic
      wirewitness archive /captures --output /data/traffic --follow
      wirewitness archive s3://company-captures/2026/ --output s3://company-data/traffic
      wirewitness archive /captures --output /data/traffic --master spark://head:7077
      wirewitness archive --output /data/traffic --compact
      wirewitness analyse /data/traffic --from 2026-11-20T13:00:00Z
    """
    _ = debug
    if compact and (inputs or follow or how["rebuild"]):
        raise click.UsageError("--compact takes nothing in: name only --output DATASET")
    if not compact and not inputs:
        raise click.UsageError("Missing argument 'INPUT...'.")
    _check_packages((*inputs, output))
    with _faults_as_lines():
        if compact:
            return _compacted(output, how, quiet)
        options = _archive_options(how)
        settings = _session_settings(how)
        work = _Archiving(inputs, output, options, quiet)
        return _followed(work, settings) if follow else _once(work, settings)


def _check_packages(names: Iterable[str]) -> None:
    """CallerError where addresses need packages that are missing, before Spark is started for nothing."""
    from wirewitness.analyser.base.storage.address import address_of
    from wirewitness.analyser.base.storage.stores import NoStorage, check_installed

    for name in names:
        if (address := address_of(name)) is not None:
            try:
                check_installed(address.scheme)
            except NoStorage as error:
                raise CallerError(f"{name}: {error.strerror}") from error


class _Archiving:
    """The runs of one command. status: the worst so far."""

    def __init__(self, inputs: tuple[str, ...], output: str, options: ArchiveOptions, quiet: bool) -> None:
        self.inputs, self.output, self.options, self.quiet = inputs, output, options, quiet
        self.status = Status.DONE
        self._begun = time.monotonic()
        self._told: set[str] = set()

    def run(self, spark: Any, *, noting: bool = True) -> bool:
        """One run and its lines; whether a store did not give something that the next run is to try again. noting: also
        of what is left out by choice, and that there was nothing to do."""
        from wirewitness.analyser.archive.ingest.arriving import AGAIN
        from wirewitness.analyser.archive.run import archive as take_in

        with _progress(self.quiet, self._begun) as progress:
            summary = take_in(self.inputs, self.output, spark, self.options, progress)
        self._tell(complaints(summary, self.output))
        for line in notes(summary) if noting and not self.quiet else ():
            say(line)
        for failure in summary.failures:
            complain_of_failure(failure)
        complain_of_faults(summary.faults)
        if summary.files or summary.opened.captures or noting:
            write_text("".join(f"{line}\n" for line in result_lines(summary, self.output)))
        self.status = max(self.status, status_of(summary, self.output))
        return any((one.reason or "").endswith(AGAIN) for one in summary.aside)

    def run_again(self, spark: Any) -> bool:
        """One of many runs: what is still being written is no news, and that there is no capture yet no end."""
        from wirewitness.analyser.archive.dataset.place import is_dataset
        from wirewitness.analyser.archive.ingest.arriving import AGAIN
        from wirewitness.analyser.capture import CaptureError

        try:
            is_left = self.run(spark, noting=False)
        except CaptureError as error:
            if is_dataset(self.output):
                raise
            self._tell([str(error)])
            return AGAIN in str(error)
        self.options = replace(self.options, rebuild=False)
        return is_left

    def _tell(self, lines: Iterable[str]) -> None:
        for line in lines:
            if line not in self._told:
                self._told.add(line)
                complain(line)


def _compacted(output: str, how: dict[str, Any], quiet: bool) -> Status:
    from wirewitness.analyser.archive.run import compact_dataset
    from wirewitness.reports.base.formats.printable import visible

    with _session(_session_settings(how), quiet) as spark:
        before, after = compact_dataset(output, spark)
    write_text(f"{visible(output)}: {before:,} parts before, {after:,} now\n")
    return Status.DONE


def _once(work: _Archiving, settings: SessionSettings) -> Status:
    from wirewitness.analyser.archive.dataset.place import is_dataset
    from wirewitness.analyser.archive.ingest.plan import check_any_there

    if not is_dataset(work.output):  # a dataset notes what it could not take in
        check_any_there(work.inputs)
    with _session(settings, work.quiet) as spark:
        work.run(spark)
    return work.status


def _followed(work: _Archiving, settings: SessionSettings) -> Status:
    """Run after run until Ctrl-C; a second one does not wait for the run that is on."""
    from wirewitness.analyser.archive.ingest.arriving import leases_do_no_harm
    from wirewitness.analyser.archive.ingest.follow import follow as follow_captures
    from wirewitness.analyser.base.private_files import TemporaryFolder

    asked: list[int] = []
    with _session(settings, work.quiet) as spark, TemporaryFolder() as notes:

        def stop(_: int, __: object) -> None:
            asked.append(1)
            if len(asked) > 1:
                raise KeyboardInterrupt
            if not work.quiet:
                say("stopping after the run that is on; Ctrl-C again ends at once")

        # Spark's own handler, set when the session began, would cancel the run.
        before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            with leases_do_no_harm():
                follow_captures(spark, work.inputs, lambda: work.run_again(spark), lambda: bool(asked), Path(notes))
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
    return work.status


def _archive_options(how: dict[str, Any]) -> ArchiveOptions:
    from wirewitness.analyser.archive.ingest.arriving import Intake
    from wirewitness.analyser.archive.run import SHARDS, ArchiveOptions

    since_ns, until_ns = how["since_ns"], how["until_ns"]
    if since_ns is not None and until_ns is not None and since_ns > until_ns:
        raise click.UsageError("--since is later than --until: no capture can be between them")
    names = how["tables"]
    tables = None if names is None else tuple(checked_table(name.strip()) for name in names.split(",") if name.strip())
    if tables == ():
        raise CallerError("--tables needs at least one table")
    read = read_options(
        how["decode_as"],
        (),
        how["enable"],
        None,
        None,
        topic_ids=how["topic_ids"],
        keylogs=how["keylogs"],
        log_zone_ns=how["log_zone_ns"],
    )
    return ArchiveOptions(
        read=read,
        tables=tables,
        shards=how["shares"] or SHARDS,
        inline=how["inline"],
        rebuild=how["rebuild"],
        intake=Intake(since_ns, until_ns),
    )


def _session_settings(how: dict[str, Any]) -> SessionSettings:
    from wirewitness.analyser.archive.spark.session import MASTER, SessionSettings

    master = how["master"]
    if master is not None and not MASTER.fullmatch(master):
        raise CallerError(f"--master {master}: write one of local[N], spark://HOST:PORT, yarn, k8s://https://HOST:PORT")
    more = {}
    for text in how["conf"]:
        name, equals, value = text.partition("=")
        if not equals or not name.startswith("spark."):
            raise click.UsageError(f"--conf {text}: write NAME=VALUE, such as spark.executor.cores=4")
        more[name] = value
    return SessionSettings(
        master=master, driver_memory=how["driver_memory"], executor_memory=how["executor_memory"], more=more
    )


@contextmanager
def _faults_as_lines() -> Iterator[None]:
    """What the caller can mend as one line: packages, Java, a master, inputs, the dataset, the disk."""
    from wirewitness.analyser.archive.spark.java import NoJava
    from wirewitness.analyser.archive.spark.session import JobFailed, NotInstalled, SessionError, spark_faults
    from wirewitness.analyser.capture import CaptureError

    try:
        with spark_faults():
            yield
    except (CaptureError, NoJava, NotInstalled, SessionError) as error:
        raise CallerError(str(error)) from error
    except JobFailed as error:
        if error.is_disk_full:
            raise CallerError(f"the disk is full: {error}") from error
        if error.unusable is not None:
            raise CallerError(error.unusable) from error
        raise
    except OSError as error:
        if error.errno in _CALLERS:
            raise CallerError(f"{error.filename or 'a file'} cannot be written or read: {error.strerror}") from error
        raise


@contextmanager
def _session(settings: SessionSettings, quiet: bool) -> Iterator[Any]:
    """Spark, started; says which Java it runs on."""
    from wirewitness.analyser.archive.spark.java import find_java
    from wirewitness.analyser.archive.spark.session import open_session, started_by_spark_submit

    java = None if started_by_spark_submit() else find_java()
    if java is not None and not quiet:
        for text in java.passed_over:
            say(f"note: passed over {text}")
        say(f"Spark on Java {java.version}: {java.program} ({java.source})")
    with open_session(settings, java) as spark:
        yield spark


@contextmanager
def _progress(quiet: bool, begun: float) -> Iterator[Callable[[str], None] | None]:
    """Stages as they begin: one line that changes on a terminal, else a line each, with the seconds so far."""
    if quiet:
        yield None
        return
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.text import Text

        from wirewitness.reports.base.formats.printable import visible

        with Console(stderr=True).status("beginning") as status:
            yield lambda text: status.update(Text(visible(text)))
        return
    yield lambda text: say(f"[{time.monotonic() - begun:6.1f} s] {text}")
