"""`wirewitness why`: the chain of causes behind a partition, a finding, an exchange, a message.

In: captures and a subject. Out: links backwards in time, each with its packets and rows.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from wirewitness.app.cli.output import check_output, colour_wanted, result_sink, terminal_width
from wirewitness.app.shared.failure import CallerError, Status
from wirewitness.app.shared.options import TimeType, output_option, reading_options
from wirewitness.app.shared.reading import open_analysis, status_of

if TYPE_CHECKING:
    from wirewitness.analyser.analysis.evidence.index import Index
    from wirewitness.reports.base.why.model import Chain
    from wirewitness.reports.base.why.packets import Around


@click.command()
@click.argument("words", nargs=-1, required=True, metavar="CAPTURE... SUBJECT")
@click.option(
    "--at", type=TimeType(), help="Of a partition: as it was at this time (ISO 8601); later packets do not count."
)
@click.option("--rows", is_flag=True, help="Name the rows of each link too, as conditions for `table --where`.")
@click.option("--format", "form", type=click.Choice(["text", "json", "markdown"]), default="text", show_default=True)
@output_option
@reading_options
def why(*, words: tuple[str, ...], at: int | None, rows: bool, form: str, output: str | None, **reading: Any) -> Status:
    """Show why something is as it is: its causes, backwards in time.

    SUBJECT is a partition of a consumer group (TOPIC PARTITION, with GROUP before it where several groups read it), the
    id of a finding, an exchange or a message, an MQTT client and a topic (CLIENT TOPIC), or a slow command
    (mongo CLIENT COMMAND). Each link is shown with its time, its packets and the rows of tables that it rests on; what
    goes beyond these is an assumption, with its words and how sure it is. Where a chain ends its last line says why. A
    subject of which nothing is wrong is reported so; an unknown one with what is near it, and exit status 2.

    The time of an exchange is shown in parts that add up to it: the network, the server, the time of a long poll,
    what was sent again, windows that were full.

    \b
    Examples:
      wirewitness why incident.pcapng payments 4
      wirewitness why incident.pcapng payments-ledger payments 4
      wirewitness why incident.pcapng payments 4 --at 2026-03-01T03:12:00
      wirewitness why incident.pcapng 6b923c4e469831c9 --format json
      wirewitness why incident.pcapng b22ff77c36e3ff4b-c-43607
      wirewitness why incident.pcapng pager page/doctor
      wirewitness why incident.pcapng mongo shop find
    """
    captures, subject = _split(words)
    if reading["from_ns"] is not None or reading["to_ns"] is not None:
        raise click.UsageError(
            "--from and --to do not go with why: causes may lie anywhere; --at TIME is the last moment"
        )
    check_output(output, captures)
    from wirewitness.analyser.decoding.run.pandas_later import import_pandas_later
    from wirewitness.reports.base.why.asking import Asking
    from wirewitness.reports.base.why.model import NoSubject
    from wirewitness.reports.report.why.subjects import answer
    from wirewitness.reports.report.why.tables import WHY_TABLES

    import_pandas_later()
    locating = _locating(reading)
    with ExitStack() as opened:
        analysis = opened.enter_context(open_analysis(captures, WHY_TABLES, reading))
        packets = None if "-" in captures else partial(_packets, captures, locating, opened, [])
        try:
            chains = answer(Asking(analysis, at, packets), subject)
        except NoSubject as error:
            raise CallerError(str(error)) from error
        with result_sink(output, text=form == "text") as write:
            for piece in _pieces(chains, form, output, rows=rows):
                write(piece.encode("utf-8", "backslashreplace"))
        return status_of(analysis)


def _packets(
    captures: Sequence[str], locating: dict[str, Any], opened: ExitStack, kept: list[Index], exchange: Mapping[str, Any]
) -> Around:
    """The packets of an exchange, by an index of the captures that is opened when it is asked for first."""
    from wirewitness.app.cli.locating import open_located
    from wirewitness.reports.base.why.packets import Around, around

    if not kept:
        try:
            kept.append(opened.enter_context(open_located(captures, dict(locating)))[0])
        except CallerError as error:  # captures of a dataset that are gone: its tables tell what they can
            return Around(None, f"its packets cannot be read again: {error}")
    return around(kept[0], exchange)


def _locating(reading: Mapping[str, Any]) -> dict[str, Any]:
    """What `open_located` wants of the reading options; what could not be read was said before."""
    names = ("decode_as", "topic_ids", "keylogs", "hosts", "log_zone_ns", "enable", "processes", "debug")
    return {**{name: reading[name] for name in names}, "quiet": True, "no_index": False}


def _split(words: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Captures, and the words of the subject: those from the first one on that names no file, behind the first."""
    place = next((at for at in range(1, len(words)) if not _is_input(words[at])), len(words))
    if place >= len(words):
        raise click.UsageError("a capture and a subject are needed: wirewitness why CAPTURE... SUBJECT")
    return tuple(words[:place]), tuple(words[place:])


def _is_input(word: str) -> bool:
    return word == "-" or "://" in word or os.path.exists(word)


def _pieces(chains: Sequence[Chain], form: str, output: str | None, *, rows: bool) -> Iterator[str]:
    from wirewitness.reports.report.why.section import chain_sections, chain_values

    if form == "json":
        from wirewitness.analyser.base.words import json_text
        from wirewitness.analyser.tables.tables import SCHEMA_VERSION

        document = {"schema_version": SCHEMA_VERSION, "chains": [chain_values(chain) for chain in chains]}
        yield json_text(document, indent=1) + "\n"
    elif form == "markdown":
        from wirewitness.reports.base.formats.markdown import render as markdown

        yield markdown(chain_sections(chains, rows=rows), "wirewitness why")
    else:
        from wirewitness.reports.base.formats.text import render

        yield render(chain_sections(chains, rows=rows), terminal_width(), colour=colour_wanted(output))
