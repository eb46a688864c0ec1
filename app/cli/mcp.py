"""`wirewitness mcp`: an analysis for assistants, over standard input and output. In: captures; out: answers."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from wirewitness.app.cli.rows import payload_option
from wirewitness.app.shared.failure import CallerError, Status
from wirewitness.app.shared.options import reading_options
from wirewitness.app.shared.reading import open_analysis, status_of
from wirewitness.app.shared.times import unix_ns

if TYPE_CHECKING:
    from wirewitness.analyser.analysis.evidence.index import Index


@click.command()
@click.argument("captures", nargs=-1, required=True, metavar="CAPTURE...")
@payload_option
@reading_options
def mcp(*, captures: tuple[str, ...], **reading: Any) -> Status:
    """Serve the analysis of CAPTURE... to an assistant: Model Context Protocol on standard input and output.

    The captures are read first; then tools answer: overview, findings, finding, rule, why, stands_out, compare, differ,
    expect, tables, columns, query, groups and message. Nothing can be changed and no other file be read; answers are
    bounded (1,000 rows, 60,000 bytes), a query ends after 30 s. What applications sent is shown with --payload
    only, credentials never.

    \b
    Examples:
      wirewitness mcp incident.pcapng
      claude mcp add incident -- wirewitness mcp /captures/incident.pcapng
    \b
    In a client's configuration:
      {"mcpServers": {"incident": {"command": "wirewitness", "args": ["mcp", "/captures/incident.pcapng"]}}}
    """
    if "-" in captures:
        raise CallerError("standard input has the questions here: name a file, a directory or a dataset")
    try:
        from wirewitness.app.cli.mcp_server.server import server
    except ModuleNotFoundError as error:
        from wirewitness.analyser.base.extras import how_to_install

        raise CallerError(f"the Model Context Protocol is not installed; {how_to_install('mcp')}") from error
    from wirewitness.analyser.decoding.run.pandas_later import import_pandas_later
    from wirewitness.analyser.tables.tables import TABLES
    from wirewitness.app.cli.mcp_server.answers import Answers

    import_pandas_later()
    payload, locating = reading["payload"], _locating(reading)
    with ExitStack() as opened:
        analysis = opened.enter_context(open_analysis(captures, list(TABLES), reading))
        indexes: list[Index] = []

        def index() -> Index:
            if not indexes:
                from wirewitness.analyser.capture.errors import CaptureError
                from wirewitness.app.cli.locating import open_located

                try:
                    indexes.append(opened.enter_context(open_located(captures, dict(locating)))[0])
                except CallerError as error:  # captures of a dataset that are gone: who asks is told so
                    raise CaptureError(str(error)) from error
            return indexes[0]

        server(Answers(analysis, index, unix_ns, payload)).run("stdio")
        return status_of(analysis)


def _locating(reading: dict[str, Any]) -> dict[str, Any]:
    """What `open_located` wants of the reading options."""
    names = ("decode_as", "topic_ids", "keylogs", "hosts", "log_zone_ns", "enable", "processes", "debug")
    return {**{name: reading[name] for name in names}, "quiet": True, "no_index": False}
