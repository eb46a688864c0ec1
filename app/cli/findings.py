"""`wirewitness findings`: what the rules concluded, without what somebody has looked at before. In: captures and the
file of a review; out: text, csv, JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from wirewitness.app.cli.accepting import accept, review_of
from wirewitness.app.cli.output import check_output, colour_wanted, result_sink, terminal_width
from wirewitness.app.shared.failure import Status
from wirewitness.app.shared.options import output_option, reading_options
from wirewitness.app.shared.reading import open_analysis, status_of

if TYPE_CHECKING:
    from wirewitness.analyser.analysis.analysis import Analysis
    from wirewitness.reports.base.questions.reviews import Judged, Review

review_option = click.option(
    "--review", metavar="FILE",
    help="Findings that FILE acknowledges are collapsed until they grow (docs/review.md).",
)  # fmt: skip
fail_on_option = click.option(
    "--fail-on", type=click.Choice(["info", "warning", "critical"]),
    help="Exit with 1 when there is a finding of this severity or above; what is collapsed does not count.",
)  # fmt: skip


@click.command()
@click.argument("captures", nargs=-1, required=True, metavar="CAPTURE...")
@review_option
@click.option("--accept", "accepted", multiple=True, metavar="RULE_OR_ID",
              help="Write to the file of --review that this is acknowledged: a rule, the id of a finding (with what "
              "followed from it), or all. Repeatable.")  # fmt: skip
@click.option("--note", metavar="TEXT", help="What to keep in mind of what is accepted.")
@click.option("--by", metavar="NAME", help="Who acknowledges it, in place of the user's name.")
@click.option("--all", "every", is_flag=True, help="Show what was acknowledged before, too.")
@click.option("-v", "--verbose", is_flag=True, help="List what is collapsed, with its notes.")
@click.option("--format", "form", type=click.Choice(["text", "csv", "jsonl", "json"]), default="text",
              show_default=True, help="csv, jsonl and json have all findings, and columns on the review.")  # fmt: skip
@fail_on_option
@output_option
@reading_options
def findings(
    *,
    captures: tuple[str, ...],
    review: str | None,
    accepted: tuple[str, ...],
    note: str | None,
    by: str | None,
    every: bool,
    verbose: bool,
    form: str,
    fail_on: str | None,
    output: str | None,
    **reading: Any,
) -> Status:
    """List the findings of CAPTURE..., and collapse acknowledged ones.

    A finding is of one rule and about one subject: a group, a client, a topic. --accept writes both to FILE, and how
    large it was. The next capture's findings of that rule and subject are collapsed: one line says how many. When
    they grow they are shown again: at least twice as many, more severe, or on new partitions.

    \b
    Examples:
      wirewitness findings monday.pcapng --review review.toml --accept KAF103 --note "known, update planned"
      wirewitness findings tuesday.pcapng --review review.toml
      wirewitness findings tuesday.pcapng --review review.toml --fail-on warning --quiet
      wirewitness findings tuesday.pcapng --review review.toml --verbose
      wirewitness findings tuesday.pcapng --review review.toml --accept all --note "as it was before the release"
    """
    check_output(output, captures)
    known = review_of(review, accepted, note, captures)
    from wirewitness.analyser.analysis.all_rules import tables_needed
    from wirewitness.analyser.decoding.run.pandas_later import import_pandas_later
    from wirewitness.reports.base.questions.causes import findings as found_in
    from wirewitness.reports.base.questions.causes import severity_among

    import_pandas_later()
    with open_analysis(captures, ["findings", *sorted(tables_needed())], reading) as analysis:
        found = found_in(analysis)
        if review is not None and accepted:
            known = accept(review, known, found, accepted, str(note), by)
        judged = known.judge(found)
        _write(analysis, judged, known, form, output, every=every, verbose=verbose)
        status = status_of(analysis)
        if fail_on is not None and severity_among(judged.shown, fail_on):
            return Status.FAIL_ON_MET
        return status


def _write(
    analysis: Analysis, judged: Judged, review: Review, form: str, output: str | None, *, every: bool, verbose: bool
) -> None:
    with result_sink(output, text=form == "text") as write:
        if form == "text":
            from wirewitness.reports.base.formats.text import render
            from wirewitness.reports.report.trouble_list import trouble_sections

            sections = trouble_sections(judged, review, every=every, verbose=verbose)
            text = render(sections, terminal_width(), colour=colour_wanted(output))
            write(text.encode("utf-8", "backslashreplace"))
            return
        for piece in _pieces(analysis, judged, review, form):
            write(piece)


def _pieces(analysis: Analysis, judged: Judged, review: Review, form: str) -> Iterator[bytes]:
    from wirewitness.reports.base.formats.rows import csv_pieces, jsonl_pieces
    from wirewitness.reports.base.questions.review_rows import REVIEWED_COLUMNS, reviewed_rows
    from wirewitness.reports.report.json_document import findings_pieces

    rows = reviewed_rows(analysis, review, judged)
    if form == "json":
        return findings_pieces(rows)
    return csv_pieces(rows, REVIEWED_COLUMNS) if form == "csv" else jsonl_pieces("findings", rows, REVIEWED_COLUMNS)
