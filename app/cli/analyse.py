"""`wirewitness analyse`: the report. In: captures; out: text, JSON, HTML or Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import click

from app.cli.failure import Status
from app.cli.options import output_option, reading_options
from app.cli.output import check_output, colour_wanted, result_sink, terminal_width
from app.cli.reading import open_analysis, status_of

if TYPE_CHECKING:
    from analyser.tables.analysis import Analysis
    from reports.formats.document import Section


@click.command()
@click.argument("captures", nargs=-1, required=True, metavar="CAPTURE...")
@click.option("--format", "form", type=click.Choice(["text", "json", "html", "markdown"]), default="text",
              show_default=True,
              help="html: one page for a browser; markdown: for a ticket; json: for programs.")  # fmt: skip
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
      wirewitness analyse incident.pcapng --format html --output incident.html
      wirewitness analyse nightly.pcapng --fail-on warning --quiet
    """
    check_output(output, captures)
    from analyser.reading.pandas_later import import_pandas_later
    from reports.questions.causes import severity_reached

    import_pandas_later()
    with open_analysis(captures, _tables(captures), reading) as analysis:
        _write(analysis, captures, form, output)
        # Unread input is said on standard error anyway; a finding is what --fail-on was asked for.
        status = status_of(analysis)
        if fail_on is not None and severity_reached(analysis, fail_on):
            return Status.FAIL_ON_MET
        return status


def _tables(captures: tuple[str, ...]) -> tuple[str, ...]:
    from analyser.archive.dataset.place import is_dataset
    from reports.sections.protocols import REPORT_TABLES
    from reports.sections.trends import TABLES_READ

    return (*REPORT_TABLES, *TABLES_READ) if is_dataset(captures[0]) else REPORT_TABLES


def _sections(analysis: Analysis) -> list[Section]:
    from reports.sections.contents import report
    from reports.sections.trends import TABLES_READ

    return report(analysis, of_dataset={*TABLES_READ} <= {*analysis.tables()})


def _write(analysis: Analysis, captures: tuple[str, ...], form: str, output: str | None) -> None:
    with result_sink(output, text=form == "text") as write:
        for piece in _PIECES[form](analysis, captures, output):
            write(piece)


def _text(analysis: Analysis, _: tuple[str, ...], output: str | None) -> Iterator[bytes]:
    from reports.formats.text import render

    text = render(_sections(analysis), terminal_width(), colour=colour_wanted(output))
    yield text.encode("utf-8", "backslashreplace")


def _json(analysis: Analysis, _: tuple[str, ...], __: str | None) -> Iterator[bytes]:
    from reports.sections.json_document import json_pieces

    return json_pieces(analysis)


def _html(analysis: Analysis, captures: tuple[str, ...], _: str | None) -> Iterator[bytes]:
    from reports.formats.html import render

    yield render(_sections(analysis), _title(captures)).encode("utf-8", "backslashreplace")


def _markdown(analysis: Analysis, captures: tuple[str, ...], _: str | None) -> Iterator[bytes]:
    from reports.formats.markdown import render

    yield render(_sections(analysis), _title(captures)).encode("utf-8", "backslashreplace")


def _title(captures: tuple[str, ...]) -> str:
    names = ["standard input" if name == "-" else PurePath(name).name or name for name in captures]
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"wirewitness: {names[0]}{more}"


_PIECES = {"text": _text, "json": _json, "html": _html, "markdown": _markdown}
