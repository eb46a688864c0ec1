"""`wirewitness analyse`: the report. In: captures; out: text or JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from app.cli.failure import Status
from app.cli.options import output_option, reading_options
from app.cli.output import check_output, colour_wanted, result_sink, terminal_width
from app.cli.reading import open_analysis, status_of

if TYPE_CHECKING:
    from analyser.analysis import Analysis


@click.command(short_help="Explain what happened: findings, capture quality, groups, latencies.")
@click.argument("captures", nargs=-1, required=True, metavar="CAPTURE...")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@output_option
@click.option("--fail-on", type=click.Choice(["info", "warning", "critical"]),
              help="Exit with 1 when there is a finding of this severity or above.")  # fmt: skip
@reading_options
def analyse(*, captures: tuple[str, ...], form: str, output: str | None, fail_on: str | None, **reading: Any) -> Status:
    """Explain what happened in CAPTURE...: findings with who, what and which packets.

    \b
    Examples:
      wirewitness analyse incident.pcapng
      wirewitness analyse monday.pcapng tuesday.pcapng.gz --format json --output report.json
      wirewitness analyse nightly.pcapng --fail-on warning --quiet
    """
    check_output(output, captures)
    from reports.causes import severity_reached
    from reports.protocols import REPORT_TABLES

    with open_analysis(captures, REPORT_TABLES, reading) as analysis:
        _write(analysis, form, output)
        # Unread input is said on standard error anyway; a finding is what --fail-on was asked for.
        status = status_of(analysis)
        if fail_on is not None and severity_reached(analysis, fail_on):
            return Status.FAIL_ON_MET
        return status


def _write(analysis: Analysis, form: str, output: str | None) -> None:
    with result_sink(output, text=form == "text") as write:
        if form == "json":
            from reports.json_report import json_pieces

            for piece in json_pieces(analysis):
                write(piece)
        else:
            from reports.contents import report
            from reports.text import render

            text = render(report(analysis), terminal_width(), colour=colour_wanted(output))
            write(text.encode("utf-8", "backslashreplace"))
