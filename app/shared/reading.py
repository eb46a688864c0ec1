"""Captures of the command line to an Analysis, with progress and remarks on standard error.

In: paths and options as the commands got them. Out: an open Analysis and the status its unread inputs call for.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from wirewitness.analyser.base.faults import is_of_a_limit
from wirewitness.app.shared.failure import CallerError, Status, complain, say
from wirewitness.app.shared.options import read_options

_FAULTS_SHOWN = 10

if TYPE_CHECKING:
    from wirewitness.analyser.analysis.analysis import Analysis
    from wirewitness.analyser.base.options import Progress
    from wirewitness.analyser.engine.rules.running import Failure


@contextmanager
def open_analysis(captures: Sequence[str], tables: Sequence[str], reading: dict[str, Any]) -> Iterator[Analysis]:
    """The analysis of these captures; remarks are printed when reading is done.

    tables: names of the tables that will be used. reading: values of `reading_options`. CallerError when no input
    could be read or an option is wrong.
    """
    quiet, _ = reading.pop("quiet"), reading.pop("debug")
    options = read_options(**reading)
    check_standard_input(captures)
    from wirewitness.analyser import CaptureError, read

    with progress_shown(quiet) as progress:
        try:
            analysis = read(list(captures), options=options, tables=tables, progress=progress)
        except CaptureError as error:
            raise CallerError(str(error)) from error
    with analysis:
        report_inputs(analysis, quiet=quiet)
        try:
            yield analysis
        except CaptureError as error:  # of a dataset whose files are damaged or go meanwhile
            raise CallerError(str(error)) from error


def check_standard_input(captures: Sequence[str], named: str = "-") -> None:
    """CallerError when no capture can come from standard input and one should. named: how it was asked for."""
    if "-" in captures and (sys.stdin is None or sys.stdin.isatty()):
        what = "closed" if sys.stdin is None else "the terminal"
        raise CallerError(f"{named} reads a capture from standard input, but that is {what}")


def status_of(analysis: Analysis) -> Status:
    """DONE; SOME_INPUT_UNREAD where an input was not read, or a table not made within limits; OWN_FAULT where anything
    broke on the way. A line says what the output lacks."""
    for line in dict.fromkeys(map(_failure_line, analysis.failures)):
        complain(line)
    complain_of_faults(analysis.faults)
    limits = [text for text in analysis.faults if is_of_a_limit(text)]
    if len(limits) < len(analysis.faults) or any(failure.is_own_fault for failure in analysis.failures):
        return Status.OWN_FAULT
    return Status.SOME_INPUT_UNREAD if limits or analysis.unread else Status.DONE


def complain_of_faults(faults: Sequence[str]) -> None:
    """A line for each sentence about a fault of our own, and how many more there are."""
    for fault in faults[:_FAULTS_SHOWN]:
        complain(fault)
    if len(faults) > _FAULTS_SHOWN:
        complain(f"{len(faults) - _FAULTS_SHOWN:,} more of these")


def complain_of_failure(failure: Failure) -> None:
    """Says what a rule could not look at."""
    complain(_failure_line(failure))


def _failure_line(failure: Failure) -> str:
    from wirewitness.analyser.analysis.all_rules import RULES
    from wirewitness.analyser.engine.rules.findings import subject_text
    from wirewitness.analyser.engine.rules.limits import NotLookedAt

    if isinstance(failure.error, NotLookedAt):
        about = subject_text(**dict(zip(RULES[failure.code].partition_by, failure.key, strict=False)))
        return f"detector {failure.code} did not evaluate {about or failure.error.what}: {failure.error}"
    return f"detector {failure.code} broke and may have missed findings, please report it: {failure.error!r}"


def report_inputs(analysis: Analysis, *, quiet: bool) -> None:
    """Lines about inputs that were not read, and remarks on the others."""
    for unread in analysis.unread:
        complain(f"cannot read {_named(unread.path, unread.reason)}")
    if not quiet:
        for remark in analysis.remarks:
            say(f"note: {remark}")


def _named(path: str, reason: str) -> str:
    return reason if reason.startswith(path) else f"{path}: {reason}"


def progress_shown(quiet: bool) -> AbstractContextManager[Callable[[Progress], None] | None]:
    if quiet or not sys.stderr.isatty():
        return nullcontext(None)
    return _progress_bar()


@contextmanager
def _progress_bar() -> Iterator[Callable[[Progress], None]]:
    """A bar by bytes read where the size is known, else a count of packets."""
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    from wirewitness.reports.base.formats.printable import visible

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=None)

        def show(progress: Progress) -> None:
            text = f"{visible(progress.file)}  {progress.packets:,} {progress.counted}"
            bar.update(task, description=text, completed=progress.done_bytes, total=progress.total_bytes)

        yield show
