"""Entry point of `wirewitness`: what all commands have in common and how the program ends.

Commands are imported when they are run, and heavy modules inside them, so that help comes at once.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from wirewitness.app.cli.commands import LaterGroup
from wirewitness.app.shared.failure import OWN_PROCESS, guarded
from wirewitness.app.shared.interrupts import note_interrupts


class GuardedGroup(click.Group):
    """A click group that turns every ending into the exit statuses of the contract."""

    def main(self, args: Any = None, prog_name: str | None = None, *_: Any, **extra: Any) -> Any:
        """Runs the command line and exits."""
        given = list(sys.argv[1:] if args is None else args)
        extra.pop("standalone_mode", None)
        if "--debug" in given:
            from wirewitness.analyser.base.faults import FAULTS, TRACE

            os.environ.setdefault(FAULTS, TRACE)  # read where a fault is met, in processes that help too
        run = super().main
        sys.exit(guarded(lambda: run(given, prog_name, standalone_mode=False, **extra), debug="--debug" in given))


class _Commands(GuardedGroup, LaterGroup):
    """The commands of this program."""


def _show_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted or ctx.resilient_parsing:
        return
    from importlib.metadata import PackageNotFoundError, version

    from wirewitness.app.cli.output import write_text

    try:
        number = version("wirewitness")
    except PackageNotFoundError:
        number = "(not installed, run from its source tree)"
    write_text(f"wirewitness {number}\n")
    ctx.exit(0)


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit status: 0 done; 1 done and --fail-on met, or an expectation failed; 2 wrong usage, or no input could "
    "be read; 3 some inputs could not be read, or a limit left a table out; 70 a fault of wirewitness, and a line "
    "says what is missing; 130 "
    "interrupted by Ctrl-C.",
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Show the version."
)
def cli() -> None:
    """Reads packet captures of Kafka, MQTT and MongoDB and says what went wrong, and who did it.

    CAPTURE is a pcap or pcapng file (also .gz, .zst, .lz4), a directory of them, an address such as s3://bucket/x, or
    - for standard input; also a Kafka request log, a log segment, and a dataset that `archive` made.

    \b
    Examples:
      wirewitness analyse incident.pcapng
      wirewitness table kafka_offset_commits incident.pcapng --where "topic = 'payments'"
      wirewitness groups incident.pcapng --at 2026-03-01T03:12:00
      wirewitness shapes mongo.pcapng
      wirewitness live -i eth0 --ports 9092
      wirewitness detectors KAF103
    """


def main() -> None:
    """Runs `wirewitness` with the program's arguments."""
    # Arrow's own allocators keep 60 MiB more and are no quicker here; processes that are started take it over.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    note_interrupts()
    cli(prog_name="wirewitness", obj=OWN_PROCESS)
