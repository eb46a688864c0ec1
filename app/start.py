"""Start of `wirewitness`: Ctrl-C counts before the commands are imported and after they are done, too.

In: the program's arguments. Out: its exit status. At both ends nothing is open, so Ctrl-C ends the process at once:
Python's own handler would raise in the middle of an import, which gives a trace, or leaves a module half imported, and
at the end what it raises is dropped, with the status of success.
"""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
from contextlib import suppress

from wirewitness.app.shared.interrupts import end_at_once

# Arrow's own allocator keeps 60 to 90 MiB of what tables left behind on their way, for no gain in time.
_ALLOCATOR = "ARROW_DEFAULT_MEMORY_POOL"
# M_ARENA_MAX of mallopt(3): by default every thread keeps what it has freed for itself, some 60 MiB of a large capture.
_MOST_ARENAS = -8
# OpenBLAS starts a thread for each processor when numpy is imported, a tenth of a short run; nothing here multiplies
# matrices.
_ALGEBRA_THREADS = "OPENBLAS_NUM_THREADS"
# It counts at the end what it made for Python, and writes a list of what is still there.
_DUCKDB = "duckdb"


def main() -> None:
    """Imports the commands and runs the one that was asked for. Who started the program may have it ignore Ctrl-C."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        _run()
        return
    signal.signal(signal.SIGINT, end_at_once)
    try:
        _run()
    except KeyboardInterrupt:
        end_at_once()
    finally:
        signal.signal(signal.SIGINT, end_at_once)
        signal.signal(signal.SIGALRM, end_at_once)
        still_to_arrive, _ = signal.setitimer(signal.ITIMER_REAL, 0)
        if still_to_arrive:
            end_at_once()


def _run() -> None:
    os.environ.setdefault(_ALLOCATOR, "system")  # read when Arrow is imported, in processes that help too
    os.environ.setdefault(_ALGEBRA_THREADS, "1")
    with suppress(AttributeError):  # other C libraries than glibc have no such setting
        ctypes.CDLL(None).mallopt(_MOST_ARENAS, 1)
    from wirewitness.app.cli.main import main as run

    try:
        run()
    finally:
        if _DUCKDB not in sys.modules:
            gc.freeze()  # what is left goes with the process: no search for cycles among it, a tenth of a short run
