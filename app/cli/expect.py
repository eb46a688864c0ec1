"""`wirewitness expect`: does a capture keep to a contract? In: rules and captures; out: a line for each expectation,
with the evidence where it does not hold; JSON, JUnit's XML."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from wirewitness.app.cli.conditions import query_limit
from wirewitness.app.cli.output import check_output, colour_wanted, listing, result_sink, terminal_width, write_text
from wirewitness.app.shared.failure import CallerError, Status
from wirewitness.app.shared.options import output_option, reading_options
from wirewitness.app.shared.reading import open_analysis, status_of

if TYPE_CHECKING:
    from wirewitness.app.expect.checking import Outcome
    from wirewitness.app.expect.kinds import Expectation


def _list_and_end(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted or ctx.resilient_parsing:
        return
    from wirewitness.app.expect.rules import ready_contracts

    rows = ((one.name, one.line) for one in ready_contracts().values())
    hint = "wirewitness expect --print NAME shows its rules: a file of your own may begin with them."
    write_text(listing(("NAME", "A CONTRACT FOR"), rows, hint))
    ctx.exit(0)


def _print_and_end(ctx: click.Context, _: click.Parameter, name: str | None) -> None:
    if name is None or ctx.resilient_parsing:
        return
    from wirewitness.app.expect.rules import ready_contracts
    from wirewitness.app.shared.names import checked_name

    known = ready_contracts()
    write_text(known[checked_name(name, known, "contract")].text)
    ctx.exit(0)


@click.command()
@click.argument("rules", metavar="RULES")
@click.argument("captures", nargs=-1, required=True, metavar="CAPTURE...")
@click.option("--list", is_flag=True, is_eager=True, expose_value=False, callback=_list_and_end,
              help="List the contracts that come along.")  # fmt: skip
@click.option("--print", metavar="NAME", is_eager=True, expose_value=False, callback=_print_and_end,
              help="Print the rules of a contract that comes along.")  # fmt: skip
@click.option("--about", multiple=True, metavar="NAME=VALUE",
              help="Only this group, topic, client, ...; * in VALUE matches any text. Repeatable.")  # fmt: skip
@click.option("--strict", is_flag=True, help="What has nothing to check fails, too.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--junit", metavar="FILE", help="Write JUnit's XML to FILE as well.")
@output_option
@reading_options
def expect(
    *,
    rules: str,
    captures: tuple[str, ...],
    about: tuple[str, ...],
    strict: bool,
    form: str,
    junit: str | None,
    output: str | None,
    **reading: Any,
) -> Status:
    """Check whether CAPTURE... keeps to RULES: a TOML file, or the name of a contract that comes along.

    Each expectation is ok, FAILED with its evidence, or has nothing to check since what it is about does not occur. The
    exit status is 0 when all hold and 1 when one fails. Where some have nothing to check the others decide; with
    --strict, or where nothing at all can be checked, it is 1. docs/expect.md has all that rules can say.

    \b
    Examples:
      wirewitness expect kafka-consumer incident.pcapng
      wirewitness expect kafka-consumer incident.pcapng --about group=payments
      wirewitness expect rules.toml nightly.pcapng --junit report.xml --strict
      wirewitness expect --list
    \b
    An expectation of rules.toml:
      [[expect]]
      name = "fetches are answered soon"
      table = "exchanges"
      where = "operation = 'Fetch'"
      p99_latency_ms = "<= 700"
    """
    check_output(output, captures)
    check_output(junit, captures, "--junit")
    from wirewitness.analyser.tables.queries import QueryTooLarge
    from wirewitness.app.expect.errors import RulesError

    try:
        expectations = _narrowed(_expectations(rules), about)
        outcomes, doubts, status = _outcomes(captures, expectations, reading)
    except RulesError as error:
        raise CallerError(str(error), *error.hints) from error
    except QueryTooLarge as error:
        raise query_limit(error, "an expectation", "nothing is checked") from error
    _write(outcomes, doubts, form, output, junit, strict=strict)
    from wirewitness.app.expect.outcomes import failed

    return Status.FAIL_ON_MET if failed(outcomes, strict=strict) else status


def _expectations(rules: str) -> list[Expectation]:
    from wirewitness.app.expect.rules import read_rules, ready_contract

    is_file = os.path.exists(rules) or rules.endswith(".toml") or os.sep in rules
    return read_rules(rules) if is_file else ready_contract(rules)


def _narrowed(expectations: Sequence[Expectation], about: Sequence[str]) -> list[Expectation]:
    from wirewitness.app.expect.bound import check_about

    pairs = dict(_pair(text) for text in about)
    narrowed = [replace(one, about={**one.about, **pairs}) for one in expectations]
    for one in narrowed:
        check_about(one, f"{one.source}: {one.name!r}")
    return narrowed


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip() or not value:
        raise click.UsageError(f"--about {text}: write NAME=VALUE, such as group=payments")
    return name.strip(), value


def _outcomes(
    captures: tuple[str, ...], expectations: Sequence[Expectation], reading: dict[str, Any]
) -> tuple[list[Outcome], list[str], Status]:
    from wirewitness.analyser.decoding.run.pandas_later import import_pandas_later
    from wirewitness.app.expect.checking import check_all, doubts, tables_of

    import_pandas_later()
    with open_analysis(captures, tables_of(expectations), reading) as analysis:
        outcomes = check_all(analysis, expectations)
        return outcomes, doubts(analysis), status_of(analysis)


def _write(
    outcomes: Sequence[Outcome],
    doubts: Sequence[str],
    form: str,
    output: str | None,
    junit: str | None,
    *,
    strict: bool,
) -> None:
    from wirewitness.app.expect.outcomes import json_document, junit_document, outcome_sections
    from wirewitness.reports.base.formats.text import render

    if junit is not None:
        with result_sink(junit) as write:
            write(junit_document(outcomes, strict=strict))
    with result_sink(output, text=form == "text") as write:
        if form == "json":
            write(json_document(outcomes, doubts, strict=strict))
            return
        text = render(outcome_sections(outcomes, doubts, strict=strict), terminal_width(), colour=colour_wanted(output))
        write(text.encode("utf-8", "backslashreplace"))
