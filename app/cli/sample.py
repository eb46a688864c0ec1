"""`wirewitness sample`: the sample captures that come with the program."""

from __future__ import annotations

import click

from wirewitness.app.cli.output import listing, write_text
from wirewitness.app.shared.failure import Status
from wirewitness.app.shared.names import checked_name
from wirewitness.app.shared.samples import samples


@click.command()
@click.argument("name", required=False)
@click.option("--debug", is_flag=True, help="Show the trace when wirewitness itself fails.")
def sample(name: str | None, debug: bool) -> Status:
    """List the sample captures, or print the path of sample NAME.

    \b
    Examples:
      wirewitness sample
      wirewitness analyse "$(wirewitness sample kafka_stale_commit)"
    """
    found = samples()
    if name is None:
        rows = ((name, one.shows) for name, one in found.items())
        write_text(listing(("SAMPLE", "SHOWS"), rows, "wirewitness sample NAME prints the path of one."))
    else:
        write_text(f"{found[checked_name(name, found, 'sample')].path}\n")
    return Status.DONE
