"""Entry point of `wirewitness`: the commands and how the program ends.

Heavy modules are imported inside the commands, so that help comes at once.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from app.cli.analyse import analyse
from app.cli.archive import archive
from app.cli.crosscheck import crosscheck
from app.cli.dashboard import dashboard
from app.cli.detectors import detectors
from app.cli.extract import extract
from app.cli.failure import OWN_PROCESS, guarded
from app.cli.interrupts import note_interrupts
from app.cli.kafka_views import brokers, clients, groups, topics
from app.cli.live import live
from app.cli.otel import otel
from app.cli.output import write_text
from app.cli.query import query
from app.cli.records import records
from app.cli.shapes import shapes
from app.cli.show import show
from app.cli.table import table
from app.cli.tables import tables


class GuardedGroup(click.Group):
    """A click group that turns every ending into the exit statuses of the contract."""

    def main(self, args: Any = None, prog_name: str | None = None, *_: Any, **extra: Any) -> Any:
        """Runs the command line and exits."""
        given = list(sys.argv[1:] if args is None else args)
        extra.pop("standalone_mode", None)
        if "--debug" in given:
            from analyser.faults import FAULTS, TRACE

            os.environ.setdefault(FAULTS, TRACE)  # read where a fault is met, in processes that help too
        run = super().main
        sys.exit(guarded(lambda: run(given, prog_name, standalone_mode=False, **extra), debug="--debug" in given))


def _show_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted or ctx.resilient_parsing:
        return
    from importlib.metadata import PackageNotFoundError, version

    try:
        number = version("wirewitness")
    except PackageNotFoundError:
        number = "(not installed, run from its source tree)"
    write_text(f"wirewitness {number}\n")
    ctx.exit(0)


@click.group(
    cls=GuardedGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit status: 0 done; 1 done and --fail-on met; 2 wrong usage, or no input could be read; "
    "3 some inputs could not be read; 70 a fault of wirewitness.",
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Show the version."
)
def cli() -> None:
    """Reads packet captures of Kafka, MQTT and MongoDB and says what went wrong, and who did it.

    CAPTURE is a pcap or pcapng file (also .gz, .zst, .lz4), a directory of them, or - for standard input.

    \b
    Examples:
      wirewitness analyse incident.pcapng
      wirewitness table kafka_offset_commits incident.pcapng --where "topic = 'payments'"
      wirewitness groups incident.pcapng --at 2026-03-01T03:12:00
      wirewitness shapes mongo.pcapng
      wirewitness live -i eth0 --ports 9092
      wirewitness detectors KAF103
    """


for _command in (
    analyse,
    show,
    extract,
    table,
    query,
    tables,
    groups,
    topics,
    brokers,
    clients,
    records,
    shapes,
    detectors,
    dashboard,
    live,
    crosscheck,
    archive,
    otel,
):
    cli.add_command(_command)


def main() -> None:
    """Runs `wirewitness` with the program's arguments."""
    # Arrow's own allocators keep 60 MiB more and are no quicker here; processes that are started take it over.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    note_interrupts()
    cli(prog_name="wirewitness", obj=OWN_PROCESS)
