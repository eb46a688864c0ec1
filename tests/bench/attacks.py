"""What captures cost that are made to cost more than their size: the table in docs/limits.md.

    python -m tests.bench.attacks

In: the attacks of `tests/support/attacks.py` at 1, 2 and 4 times their smallest size, each analysed by a process of its
own: all tables, context and rules. Out: a line for each with processor seconds and peak memory, beside those of a
capture of a few bytes, which every run costs.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from typing import NamedTuple

from tests.support.attacks import ATTACKS

SIZES = (1, 2, 4)
NOTHING = "huge_statistics"
MIB_IN_KIB = 1024


class Cost(NamedTuple):
    """Size of the capture, processor time of all threads, the largest resident memory."""

    capture_bytes: int
    seconds: float
    mebibytes: float


def cost(name: str, size: int) -> Cost:
    """What this process spends on one attack, its start included."""
    from tests.support.wire import decode
    from wirewitness.analyser.base.options import ReadOptions
    from wirewitness.analyser.inputs import analysis_of
    from wirewitness.analyser.tables.tables import TABLES
    from wirewitness.dissectors.registry import PROTOCOLS

    capture = ATTACKS[name](size)
    before = time.process_time()
    with analysis_of(decode(capture, TABLES, block_bytes=8 << 20), TABLES, ReadOptions(), PROTOCOLS.values()) as found:
        for table in TABLES:
            for _ in found.batches(table):
                pass
    seconds = time.process_time() - before
    return Cost(len(capture), seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MIB_IN_KIB)


def measured(name: str, size: int) -> Cost:
    """The same by a process of its own."""
    asked = [sys.executable, "-m", "tests.bench.attacks", "--one", name, str(size)]
    return Cost(*json.loads(subprocess.run(asked, check=True, stdout=subprocess.PIPE).stdout))


def main() -> None:
    """Measure one, or tell of all."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--one", nargs=2, metavar=("NAME", "SIZE"))
    parser.add_argument("--names", nargs="*", default=sorted(ATTACKS))
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(cost(asked.one[0], int(asked.one[1]))))
        return
    nothing = measured(NOTHING, 1)
    print(f"any capture: {nothing.seconds:.1f} s, {nothing.mebibytes:.0f} MiB", flush=True)
    for name in asked.names:
        costs = [measured(name, size) for size in SIZES]
        sizes = ", ".join(f"{one.capture_bytes / 1000:,.0f}" for one in costs)
        seconds = ", ".join(f"{max(one.seconds - nothing.seconds, 0):.1f}" for one in costs)
        memory = ", ".join(f"{max(one.mebibytes - nothing.mebibytes, 0):.0f}" for one in costs)
        print(f"| `{name}` | {sizes} | {seconds} | {memory} |", flush=True)


if __name__ == "__main__":
    main()
