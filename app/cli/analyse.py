"""`wirewitness analyse`: the report. In: captures; out: text, JSON, HTML or Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import click

from wirewitness.app.cli.findings import fail_on_option, review_option
from wirewitness.app.cli.output import check_output, colour_wanted, result_sink, terminal_width
from wirewitness.app.cli.review_file import read_review
from wirewitness.app.shared.failure import Status
from wirewitness.app.shared.options import output_option, reading_options
from wirewitness.app.shared.reading import open_analysis, status_of

if TYPE_CHECKING:
    from wirewitness.analyser.analysis.analysis import Analysis
    from wirewitness.reports.base.formats.document import Section
    from wirewitness.reports.base.questions.reviews import Review


@click.command()
@click.argument("captures", nargs=-1, required=True, metavar="CAPTURE...")
@click.option("--format", "form", type=click.Choice(["text", "json", "html", "markdown"]), default="text",
              show_default=True,
              help="html: one page for a browser; markdown: for a ticket; json: for programs.")  # fmt: skip
@review_option
@output_option
@fail_on_option
@reading_options
def analyse(
    *,
    captures: tuple[str, ...],
    form: str,
    review: str | None,
    output: str | None,
    fail_on: str | None,
    **reading: Any,
) -> Status:
    """Explain what happened in CAPTURE...: findings with who, what and which packets.

    \b
    Examples:
      wirewitness analyse incident.pcapng
      wirewitness analyse incident.pcapng --hosts pods.json     (from: kubectl get pods -A -o json)
      wirewitness analyse monday.pcapng tuesday.pcapng.gz --format json --output report.json
      wirewitness analyse incident.pcapng --format html --output incident.html
      wirewitness analyse nightly.pcapng --fail-on warning --quiet
      wirewitness analyse nightly.pcapng --review review.toml     (see: wirewitness findings --help)
    """
    check_output(output, captures)
    known = None if review is None else read_review(review)
    from wirewitness.analyser.decoding.run.pandas_later import import_pandas_later
    from wirewitness.reports.base.questions.causes import findings, severity_among
    from wirewitness.reports.base.questions.reviews import NO_REVIEW

    import_pandas_later()
    with open_analysis(captures, _tables(captures), reading) as analysis:
        _write(analysis, captures, known, form, output)
        # Unread input is said on standard error anyway; a finding is what --fail-on was asked for.
        status = status_of(analysis)
        if fail_on is not None and severity_among((known or NO_REVIEW).judge(findings(analysis)).shown, fail_on):
            return Status.FAIL_ON_MET
        return status


def _tables(captures: tuple[str, ...]) -> tuple[str, ...]:
    from wirewitness.analyser.archive.dataset.place import is_dataset
    from wirewitness.reports.report.protocols import REPORT_TABLES
    from wirewitness.reports.report.trends import TABLES_READ
    from wirewitness.reports.report.why.tables import FIRST_CAUSE_TABLES

    # Rules keep what first causes read; a dataset's findings are there without them.
    whole = tuple(dict.fromkeys((*REPORT_TABLES, *FIRST_CAUSE_TABLES, *TABLES_READ)))
    return whole if is_dataset(captures[0]) else REPORT_TABLES


def _sections(analysis: Analysis, review: Review | None) -> list[Section]:
    from wirewitness.reports.base.questions.reviews import NO_REVIEW
    from wirewitness.reports.report.contents import report
    from wirewitness.reports.report.trends import TABLES_READ

    of_dataset = {*TABLES_READ} <= {*analysis.tables()}
    return report(analysis, of_dataset=of_dataset, review=review or NO_REVIEW, faults=analysis.faults)


def _write(analysis: Analysis, captures: tuple[str, ...], review: Review | None, form: str, output: str | None) -> None:
    with result_sink(output, text=form == "text") as write:
        for piece in _PIECES[form](analysis, captures, review, output):
            write(piece)


def _text(analysis: Analysis, _: tuple[str, ...], review: Review | None, output: str | None) -> Iterator[bytes]:
    from wirewitness.reports.base.formats.text import render

    text = render(_sections(analysis, review), terminal_width(), colour=colour_wanted(output))
    yield text.encode("utf-8", "backslashreplace")


def _json(analysis: Analysis, _: tuple[str, ...], review: Review | None, __: str | None) -> Iterator[bytes]:
    from wirewitness.reports.report.json_document import json_pieces

    return json_pieces(analysis, review, analysis.faults)


def _html(analysis: Analysis, captures: tuple[str, ...], review: Review | None, _: str | None) -> Iterator[bytes]:
    from wirewitness.reports.base.formats.html import render

    yield render(_sections(analysis, review), _title(captures)).encode("utf-8", "backslashreplace")


def _markdown(analysis: Analysis, captures: tuple[str, ...], review: Review | None, _: str | None) -> Iterator[bytes]:
    from wirewitness.reports.base.formats.markdown import render

    yield render(_sections(analysis, review), _title(captures)).encode("utf-8", "backslashreplace")


def _title(captures: tuple[str, ...]) -> str:
    names = ["standard input" if name == "-" else PurePath(name).name or name for name in captures]
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"wirewitness: {names[0]}{more}"


_PIECES = {"text": _text, "json": _json, "html": _html, "markdown": _markdown}
