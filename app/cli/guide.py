"""`wirewitness guide`: how to get at the traffic. Without a name the list of pages; with one the page."""

from __future__ import annotations

import re

import click

from wirewitness.app.cli.guides import GUIDES, Guide
from wirewitness.app.cli.output import listing, write_text
from wirewitness.app.shared.failure import Status
from wirewitness.app.shared.names import checked_name


@click.command()
@click.argument("name", required=False)
@click.option("--port", type=click.IntRange(1, 65_535), help="The server's port in the commands.")
@click.option("--debug", is_flag=True, help="Show the trace when wirewitness itself fails.")
def guide(name: str | None, port: int | None, debug: bool) -> Status:
    """List the pages on how to capture, or show page NAME: commands to type where the traffic is.

    \b
    Examples:
      wirewitness guide
      wirewitness guide kafka --port 9094
      wirewitness guide request-log
    """
    if name is None:
        rows = ((name, page.about) for name, page in GUIDES.items())
        write_text(listing(("PAGE", "HOW TO"), rows, "wirewitness guide NAME shows a page."))
        return Status.DONE
    page = GUIDES[checked_name(name, GUIDES, "page")]
    write_text(_with_port(page, port))
    return Status.DONE


def _with_port(page: Guide, port: int | None) -> str:
    if not page.ports:
        return page.text
    return re.sub(r"\bPORT\b", str(port or page.ports[0]), page.text)
