"""`wirewitness crosscheck`: does Wireshark say the same? In: captures and a tshark; out: text or JSON."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from wirewitness.app.cli.output import check_output, colour_wanted, result_sink, terminal_width
from wirewitness.app.shared.failure import CallerError, Status, complain, say
from wirewitness.app.shared.options import output_option, reading_options
from wirewitness.app.shared.reading import open_analysis, status_of

if TYPE_CHECKING:
    from wirewitness.reports.report.tshark import CrossCheck


@click.command()
@click.argument("captures", nargs=-1, required=True, metavar="CAPTURE...")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--fail-on", type=click.Choice(["disagreement"]),
              help="Exit with 1 when a message differs, or only one side has it, without a known reason.")  # fmt: skip
@click.option("--fields", is_flag=True, help="With the first disagreements all that tshark says of their packets, read "
              "with pyshark; no payload, no credentials.")  # fmt: skip
@output_option
@reading_options
def crosscheck(
    *, captures: tuple[str, ...], form: str, fail_on: str | None, fields: bool, output: str | None, **reading: Any
) -> Status:
    """Compare every message of CAPTURE... with what tshark says of it.

    Compared are packets, sizes, types, versions, ids, which request a response belongs to, groups, topics, partitions
    and committed offsets, QoS, command names and databases. Ports need no setting: tshark decodes as wirewitness found.
    What tshark cannot decode is named with the reason; docs/crosscheck.md lists these. tshark must be installed.

    \b
    Examples:
      wirewitness crosscheck incident.pcapng
      wirewitness crosscheck incident.pcapng --protocol mqtt --format json --output check.json
      wirewitness crosscheck incident.pcapng --fields
      wirewitness crosscheck nightly.pcapng --fail-on disagreement --quiet
    """
    check_output(output, captures)
    if any(name == "-" or (os.path.exists(name) and not _is_plain(name)) for name in captures):
        raise CallerError("crosscheck reads a capture twice, which a pipe cannot: write it to a file first")
    from wirewitness.reports.report.tshark import TABLES, TsharkError, cross_check, find_tshark

    try:
        tshark = find_tshark()
    except TsharkError as error:
        raise CallerError(str(error)) from error
    quiet = reading["quiet"]
    with open_analysis(captures, TABLES, dict(reading)) as analysis:
        result = cross_check(analysis, tshark, _paths(captures), with_fields=fields)
        _write(result, form, output)
        for sentence in result.unread:
            complain(sentence)
        for sentence in () if quiet else result.remarks:
            say(f"note: {sentence}")
        if fail_on is not None and result.disagreeing:
            return Status.FAIL_ON_MET
        return max(status_of(analysis), Status.SOME_INPUT_UNREAD if result.unread else Status.DONE)


def _is_plain(name: str) -> bool:
    return os.path.isfile(name) or os.path.isdir(name)


def _paths(captures: tuple[str, ...]) -> dict[str, str]:
    """Names of files in tables -> their paths, for names that are not UTF-8."""
    from wirewitness.analyser.capture.errors import CaptureError
    from wirewitness.analyser.capture.opening import open_captures
    from wirewitness.analyser.decoding.run.capture_rows import file_label

    found: dict[str, str] = {}
    for name in captures:
        try:
            found |= {file_label(source.name): source.name for source in open_captures([name])}
        except CaptureError:
            continue  # said already when the analysis was made
    return found


def _write(result: CrossCheck, form: str, output: str | None) -> None:
    from wirewitness.reports.base.formats.text import render
    from wirewitness.reports.report.tshark.crosscheck import crosscheck_json, crosscheck_sections

    with result_sink(output, text=form == "text") as write:
        if form == "json":
            write(crosscheck_json(result))
            return
        text = render(crosscheck_sections(result), terminal_width(), colour=colour_wanted(output))
        write(text.encode("utf-8", "backslashreplace"))
