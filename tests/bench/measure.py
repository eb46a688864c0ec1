"""One run of a program, measured by the kernel.

In: a command and the file for its standard output. Out: wall time, processor time and peak memory of that process.
A process inherits the peak of the one that starts it (the kernel counts the moment before exec), so this file is also
a script without imports of weight: a fresh interpreter of a few MiB starts the program and prints the figures.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

READ_BYTES = 1 << 22


class Run(NamedTuple):
    """What one run took; cpu_s is user and system time of all its threads."""

    wall_s: float
    cpu_s: float
    peak_mib: float


def measure(command: Sequence[str], output: Path, errors: Path) -> Run:
    """Run COMMAND to its end. Raises RuntimeError with its standard error when it fails."""
    starter = [sys.executable, "-I", "-S", __file__, str(output), str(errors), *command]
    done = subprocess.run(starter, capture_output=True, text=True, check=True)
    status, *figures = json.loads(done.stdout)
    if status:
        raise RuntimeError(f"{command[0]} ended with {status}: {errors.read_text(errors='replace')[-2000:]}")
    return Run(*figures)


def warm(path: Path) -> None:
    """Read a file once, so that it comes from memory afterwards."""
    with path.open("rb", buffering=0) as file:
        while file.read(READ_BYTES):
            pass


def _start(output: str, errors: str, *command: str) -> None:
    with open(output, "wb") as out, open(errors, "wb") as err:
        started = time.perf_counter()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        _, status, usage = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    peak_mib = usage.ru_maxrss / 1024
    print(json.dumps([process.returncode, wall_s, usage.ru_utime + usage.ru_stime, peak_mib]))


if __name__ == "__main__":
    _start(*sys.argv[1:])
