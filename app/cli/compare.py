"""`wirewitness compare`: what differs between two captures, or two times of one.

In: captures; out: the differences, the largest and surest first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from wirewitness.app.cli.output import check_output, result_sink
from wirewitness.app.cli.results import write_blocks
from wirewitness.app.shared.failure import Status
from wirewitness.app.shared.options import TimeType, output_option, reading_options
from wirewitness.app.shared.reading import open_analysis, status_of

if TYPE_CHECKING:
    from wirewitness.analyser.analysis.analysis import Analysis
    from wirewitness.reports.report.compare.comparison import Side
    from wirewitness.reports.report.compare.differences import Between
    from wirewitness.reports.report.differences import Difference

Times = tuple[int | None, int | None]


class TimesType(click.ParamType[Times]):
    """`FROM/TO` in ISO 8601 to Unix ns; an empty end is that of the capture."""

    name = "times"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Times:
        """Both ends, or a usage error."""
        if isinstance(value, tuple):
            return value
        ends = str(value).split("/")
        if len(ends) != 2:
            self.fail(f"{value!r}: write FROM/TO, such as 2026-03-01T03:00/2026-03-01T03:10", param, ctx)
        first, last = (TimeType().convert(end, param, ctx) if end else None for end in ends)
        return first, last


class _Asked(NamedTuple):
    """One side. name: a constant word. captures: what is read for it. times: the part of it, in Unix ns."""

    name: str
    captures: tuple[str, ...]
    times: Times


@click.command()
@click.argument("captures", nargs=-1, required=True, metavar="CAPTURE [CAPTURE]")
@click.option("--at", "at_ns", type=TimeType(), metavar="TIME",
              help="Of one capture: what came before TIME, and what came after.")  # fmt: skip
@click.option("--times", type=TimesType(), multiple=True, metavar="FROM/TO",
              help="Of one capture, given twice: two times of it. An end may be left out.")  # fmt: skip
@click.option("--limit", type=click.IntRange(min=0), default=50, show_default=True, metavar="N",
              help="At most N differences as text; csv and json have all.")  # fmt: skip
@click.option("--format", "form", type=click.Choice(["table", "csv", "json"]), default="table", show_default=True)
@click.option("--fail-on-difference", is_flag=True, help="Exit with 1 when anything differs.")
@output_option
@reading_options
def compare(
    *,
    captures: tuple[str, ...],
    at_ns: int | None,
    times: tuple[Times, ...],
    limit: int,
    form: str,
    fail_on_difference: bool,
    output: str | None,
    **reading: Any,
) -> Status:
    """Compare two captures, or two times of one: healthy and sick, before and after a release.

    CAPTURE is a file, a directory or a dataset. Shown are findings that one side alone has, shares of errors, latencies
    (median and p99) and rates of operations, versions and settings of clients, clients and groups that came or went,
    refused and foreign commits, how much goes through topics: the largest and surest first. AT LEAST: by how much both
    sides differ when chance is left out; facts have none. Two runs of one healthy system have no difference.

    \b
    Examples:
      wirewitness compare healthy.pcapng sick.pcapng
      wirewitness compare monday/ tuesday/ --format json
      wirewitness compare incident.pcapng --at 2026-03-01T03:12:00
      wirewitness compare incident.pcapng --times 2026-03-01T02:00/2026-03-01T03:00 --times 2026-03-01T03:12/
      wirewitness compare main.pcapng branch.pcapng --fail-on-difference
    """
    check_output(output, captures)
    sides = _sides(captures, at_ns, times)
    if reading["from_ns"] is not None or reading["to_ns"] is not None:
        raise click.UsageError("--from and --to do not go with compare: --times FROM/TO names the times of both sides")
    from wirewitness.analyser.decoding.run.pandas_later import import_pandas_later

    import_pandas_later()
    with _opened(sides, reading) as (a, b, analyses):
        from wirewitness.reports.base.questions.causes import findings
        from wirewitness.reports.report.compare.comparison import compared
        from wirewitness.reports.report.differences import differences

        tables = compared(a, b, (findings(a), findings(b)))
        found = differences(tables)
        _write((a, b), tables, found, form, limit, output)
        worst = max(status_of(analysis) for analysis in analyses)
    if fail_on_difference and found:
        return Status.FAIL_ON_MET
    return worst


def _sides(captures: Sequence[str], at_ns: int | None, times: Sequence[Times]) -> tuple[_Asked, _Asked]:
    """What is asked for. A usage error for options that do not go together."""
    if len(captures) == 2 and at_ns is None and not times:
        return _Asked("A", (captures[0],), (None, None)), _Asked("B", (captures[1],), (None, None))
    if len(captures) == 1 and at_ns is not None and not times:
        return _Asked("before", (captures[0],), (None, at_ns)), _Asked("after", (captures[0],), (at_ns, None))
    if len(captures) == 1 and at_ns is None and len(times) == 2:
        return _Asked("A", (captures[0],), times[0]), _Asked("B", (captures[0],), times[1])
    raise click.UsageError("name two captures, or one with --at TIME, or one with --times FROM/TO twice")


@contextmanager
def _opened(asked: tuple[_Asked, _Asked], reading: dict[str, Any]) -> Iterator[tuple[Side, Side, tuple[Analysis, ...]]]:
    """Both sides, and what was read: a capture of two times once."""
    from wirewitness.reports.report.compare.comparison import COMPARED_TABLES, Side

    with ExitStack() as opened:
        analyses: dict[tuple[str, ...], Analysis] = {}
        for one in asked:
            if one.captures not in analyses:
                analyses[one.captures] = opened.enter_context(
                    open_analysis(one.captures, COMPARED_TABLES, dict(reading))
                )
        a, b = (
            Side(
                one.name,
                ", ".join(one.captures),
                analyses[one.captures],
                replace(analyses[one.captures].options, from_ns=one.times[0], to_ns=one.times[1]),
            )
            for one in asked
        )
        yield a, b, tuple(analyses.values())


def _write(
    sides: tuple[Side, Side], tables: Between, found: Sequence[Difference], form: str, limit: int, output: str | None
) -> None:
    if form == "table":
        from wirewitness.reports.report.compared import comparison_blocks

        write_blocks(comparison_blocks(sides, tables, found, limit), output)
        return
    from wirewitness.reports.report.compared import comparison_csv, comparison_json

    with result_sink(output) as write:
        write(comparison_json(sides, tables, found) if form == "json" else comparison_csv(found))
