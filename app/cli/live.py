"""`wirewitness live`: decode while capturing. In: interfaces or a stream of pcap; out: a screen or JSON lines, and in
the end the report."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any

import click

from wirewitness.app.cli.live_ending import Ending
from wirewitness.app.cli.output import check_output, colour_wanted, result_sink, terminal_width
from wirewitness.app.shared.failure import OWN_PROCESS, CallerError, Status, complain
from wirewitness.app.shared.live_options import DurationType, PortsType, RotationType, capture_job, check_options
from wirewitness.app.shared.local_files import check_is_local
from wirewitness.app.shared.options import hosts_option, keylog_option, log_zone_option, topic_id_option
from wirewitness.app.shared.reading import report_inputs, status_of

if TYPE_CHECKING:
    from wirewitness.analyser.analysis.analysis import Analysis
    from wirewitness.analyser.capture.capturing import CaptureJob
    from wirewitness.analyser.live.feed import CaptureState
    from wirewitness.analyser.live.session import Session
    from wirewitness.app.cli.live_output import Output
    from wirewitness.app.dashboard.snapshots import Snapshots


@click.command()
@click.option("-i", "--interface", "interfaces", multiple=True, metavar="IFACE",
              help="Capture on this interface (Linux), any for all. Repeatable.")  # fmt: skip
@click.option(
    "-r",
    "--read",
    metavar="FILE",
    help="Read a stream of pcap or pcapng, or the lines of a Kafka request log, instead; - for standard input.",
)
@click.option("--filter", "filter_text", default="", metavar="BPF", help="Only packets that this filter lets through, "
              "as tcpdump knows them.")  # fmt: skip
@click.option("--ports", type=PortsType(), metavar="A,B", help="Only TCP packets from or to these ports.")
@click.option("--protocol", multiple=True, metavar="NAME", help="Show only this protocol. Repeatable.")
@click.option("--decode-as", multiple=True, metavar="PORT=PROTOCOL",
              help="Read connections to this server port as PROTOCOL. Repeatable.")  # fmt: skip
@topic_id_option
@keylog_option
@hosts_option
@log_zone_option
@click.option("--enable", multiple=True, metavar="NAME", help="Switch on an optional dissector. Repeatable.")
@click.option("--duration", type=DurationType(), metavar="TIME", help="Stop after this time: 90s, 10m, 2h.")
@click.option("--write", metavar="FILE", help="Keep the raw packets in FILE (pcapng).")
@click.option("--rotate", type=RotationType(), metavar="SIZE,COUNT",
              help="Write files of SIZE (100MB) and keep the last COUNT of them.")  # fmt: skip
@click.option("--no-owners", is_flag=True, help="Do not ask the kernel which processes own the connections.")
@click.option("--share", type=click.Path(file_okay=False), metavar="FOLDER",
              help="Keep the newest tables in FOLDER: `wirewitness dashboard FOLDER` follows them.")  # fmt: skip
@click.option("--keep", type=DurationType(), default="1h", show_default=True, metavar="TIME",
              help="Rows older than this leave memory; counts and findings stay.")  # fmt: skip
@click.option("--format", "form", type=click.Choice(["text", "jsonl"]), default="text", show_default=True,
              help="text: a screen, then the report; jsonl: exchanges and findings as they come.")  # fmt: skip
@click.option("--quiet", is_flag=True, help="No notes; errors still show.")
@click.option("--debug", is_flag=True, help="Show the trace when wirewitness itself fails.")
def live(
    *,
    interfaces: tuple[str, ...],
    read: str | None,
    filter_text: str,
    ports: tuple[int, ...] | None,
    duration: float | None,
    write: str | None,
    rotate: tuple[int, int] | None,
    no_owners: bool,
    share: str | None,
    keep: float,
    form: str,
    quiet: bool,
    debug: bool,
    **reading: Any,
) -> Status:
    """Decode packets while they come: rates and latencies, groups and who commits, findings as they appear.

    Ctrl-C ends it with the report that `analyse` would give. Files written with --write hold the raw packets, as
    tcpdump's do: with credentials and payload. When a file cannot be written any more the analysis goes on, and the
    exit status is 3: packets are missing in the files.

    \b
    Examples:
      wirewitness live -i eth0 --ports 9092
      wirewitness live -i eth0 -i lo --filter "tcp and not port 22" --write ring.pcapng --rotate 100MB,10
      ssh host sudo tcpdump -i any -U -w - port 9092 | wirewitness live -r -
      wirewitness live -i eth0 --share /tmp/watch     (and: wirewitness dashboard /tmp/watch)
      kubectl exec kafka-0 -- tcpdump -U -w - port 9092 | wirewitness live -r - --format jsonl
      tail -n +1 -F kafka-request.log | wirewitness live -r -     (a broker's request log as it grows, rotated or not)
    """
    del debug
    only = {"filter": filter_text, "ports": ports, "write": write, "rotate": rotate, "no-owners": no_owners}
    check_options(interfaces, read, only)
    check_output(write, [], "--write")
    check_is_local(read or "", "-r", ", a pipe or -; analyse reads captures in stores")
    check_is_local(share or "", "--share")
    job = capture_job(interfaces, filter_text, ports or (), write, rotate, not no_owners) if read is None else None
    from wirewitness.app.cli.live_output import output_for

    analysis = state = None
    title = ", ".join(interfaces) or ("standard input" if read == "-" else str(read))
    ending: Ending | None = None
    try:
        with output_for(form, title, quiet=quiet) as output:
            ending = Ending(output.doing)
            shared = _shared(share, interfaces, read, reading)
            analysis, state = run_live(job, read, reading, keep, duration, output, shared, ending=ending)
        return _ended(analysis, state, form, quiet=quiet)
    finally:
        if ending is not None:
            ending.over()


def _ended(analysis: Analysis | None, state: CaptureState | None, form: str, *, quiet: bool) -> Status:
    """The report, and how it all went."""
    if analysis is None or state is None:  # whoever read the lines has what was wanted
        return Status.DONE
    with analysis:
        if not analysis.tables() or not analysis.arrow("captures").num_rows:
            raise CallerError(" ".join(unread.reason for unread in analysis.unread) or "no packet was captured")
        report_inputs(analysis, quiet=quiet)
        if form == "text":
            _report(analysis)
        capturing = Status.OWN_FAULT if state.own_fault else Status.DONE
        writing = Status.SOME_INPUT_UNREAD if state.writing_stopped else Status.DONE
        return max(status_of(analysis), capturing, writing)


def run_live(
    job: CaptureJob | None,
    read: str | None,
    reading: dict[str, Any],
    keep: float,
    duration: float | None,
    output: Output,
    shared: Snapshots | None = None,
    tables: Iterable[str] | None = None,
    ending: Ending | None = None,
) -> tuple[Analysis, CaptureState]:
    """Read until it is over, or until somebody stops it; the analysis of what is still there, and how capturing went.

    job: interfaces, else `read` names a stream. keep: seconds that rows stay. tables: None for those of a report.
    ending: says what is still done once it is to end.
    """
    from wirewitness.analyser.capture.program import Imports
    from wirewitness.analyser.live.confined import Confinement
    from wirewitness.analyser.live.retention import Kept
    from wirewitness.analyser.live.session import Session
    from wirewitness.app.dashboard.snapshots import SHARED_TABLES
    from wirewitness.app.shared.options import read_options
    from wirewitness.reports.report.protocols import REPORT_TABLES

    confinement = Confinement() if click.get_current_context().obj is OWN_PROCESS else None
    options = read_options(**reading, from_ns=None, to_ns=None)
    kept = Kept(age_ns=int(keep * 1e9))
    stops: list[Callable[[bool], None]] = []

    def stop_all(at_once: bool) -> None:
        for stop in stops:
            stop(at_once)

    def view(analysis: Analysis) -> Any:
        if shared is not None:
            shared.write(analysis)
        return output.view(analysis)

    if tables is None:
        tables = REPORT_TABLES if shared is None else SHARED_TABLES
    ends = (lambda: None) if ending is None else ending.begin
    session = Session(tables, options, kept, view, output.show, stop_all, duration, ends)
    session.waits_for_capture = job is not None
    session.pipeline.keep_fresh = output.wants_exchanges
    with ExitStack() as opened, _stopped_by_signals(session):
        sources = _sources(job, read, session, stops, opened)
        if confinement is not None:
            share = () if shared is None else (shared.descriptor, [shared.place.parent])
            confinement.begin(Imports(("wirewitness.app.cli", "wirewitness.app.shared", "rich")), *share)
        if ending is not None:
            ending.of(session)
        if session.stopping:  # somebody did so while packets were captured already, but not read yet
            stop_all(False)
        analysis = session.run(sources)
    if shared is not None:
        _share_last(shared, analysis)
    return analysis, session.state


def _share_last(shared: Snapshots, analysis: Analysis) -> None:
    try:
        if analysis.tables():
            shared.write(analysis)
        shared.end()
    except OSError as error:  # the report is worth more
        complain(f"the last tables are not shared: {error}")


def _shared(
    folder: str | None, interfaces: tuple[str, ...], read: str | None, reading: dict[str, Any]
) -> Snapshots | None:
    """What writes the tables for dashboards. CallerError where it cannot."""
    if folder is None:
        return None
    from pathlib import Path

    from wirewitness.app.dashboard.snapshots import Snapshots
    from wirewitness.app.shared.options import read_options

    options = read_options(**reading, from_ns=None, to_ns=None)
    kept = {
        "decode_as": {str(port): name for port, name in options.decode_as.items()},
        "enable": list(options.enable),
        "topic_ids": options.topic_ids,
    }
    try:
        return Snapshots(Path(folder).absolute(), ", ".join(interfaces) or str(read), kept)
    except OSError as error:
        raise CallerError(f"--share {folder}: {error.strerror or error}") from error


def _sources(
    job: CaptureJob | None, read: str | None, session: Session, stops: list[Callable[[bool], None]], opened: ExitStack
) -> Iterator[Any]:
    from wirewitness.analyser.capture import Source
    from wirewitness.analyser.live.capturer import Capturer
    from wirewitness.analyser.live.feed import Messages, Watched

    if job is not None:
        capturer = opened.enter_context(Capturer(job))
        messages = Messages(capturer.fileno(), session.state, session.step)
        stops.append(lambda at_once: messages.abandon() if at_once else capturer.stop())
        return messages.sources()
    name = str(read)
    try:
        descriptor = 0 if name == "-" else os.open(name, os.O_RDONLY)
    except OSError as error:
        raise CallerError(f"{name} cannot be read: {error.strerror}") from error
    if descriptor:
        opened.callback(os.close, descriptor)
    stream: Any = Watched(descriptor, session.step, lambda: session.stopping)
    return iter([Source(name, stream=stream)])


@contextmanager
def _stopped_by_signals(session: Session) -> Iterator[None]:
    """Ctrl-C, and what a system says when it stops a program, end the capture; a second time also the reading of what
    was captured, a third time the program."""
    times = 0

    def stop(number: int, _: object) -> None:
        nonlocal times
        times += 1
        if times > 2:
            raise KeyboardInterrupt
        session.stop(at_once=times > 1)

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            with suppress(TypeError):  # a handler that Python does not know
                signal.signal(number, handler)


def _report(analysis: Analysis) -> None:
    from wirewitness.reports.base.formats.text import render
    from wirewitness.reports.report.contents import report

    text = render(report(analysis, faults=analysis.faults), terminal_width(), colour=colour_wanted(None))
    with result_sink(None, text=True) as write:
        write(text.encode("utf-8", "backslashreplace"))
