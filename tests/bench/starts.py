"""What a run takes that has next to nothing to do.

In: a folder. Out: `Start`s: of `--help`, of a table of a tiny capture, and of `show` of a message of it, seen before.
"""

from __future__ import annotations

import csv
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.bench.measure import measure
from tests.bench.programs import WIREWITNESS
from tests.bench.results import Start
from tests.support.replay import replay

HELP_S, READ_S = 0.15, 0.35
PACKETS, FLOWS = 500, 4


def start_costs(folder: Path, runs: int) -> Iterator[Start]:
    """So many runs of each. What `show` keeps lies in the folder, not where the user's own is."""
    with TemporaryDirectory(dir=folder) as place:
        tiny = Path(place) / "tiny.pcap"
        replay(tiny, "small", PACKETS, 0, FLOWS)
        program = ["env", f"XDG_CACHE_HOME={place}", *WIREWITNESS]
        table = [*program, "table", "exchanges", str(tiny), "--format", "csv"]
        show = [*program, "show", str(tiny), _some_message(table)]
        for what, command, most_s in (
            ("--help", [*program, "--help"], HELP_S),
            ("table of a tiny capture", table, READ_S),
            ("show of a capture seen before", show, READ_S),
        ):
            places = Path(place) / "output", Path(place) / "errors"
            measure(command, *places)  # its files come from memory afterwards, and `show` has seen the capture
            yield Start(what, [measure(command, *places) for _ in range(runs)], most_s)


def _some_message(table: list[str]) -> str:
    """The request of the first exchange."""
    told = subprocess.run(table, capture_output=True, text=True, check=True).stdout
    return next(csv.DictReader(told.splitlines()))["exchange_id"]
