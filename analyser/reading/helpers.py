"""Programs that will decode a share of the flows each, started before they are needed.

In: how many. Out: processes that wait on their standard input for a job (`share_process.py`), and memory that they see,
too. Starting
and importing take a good part of a second, so they begin while this process still imports; hence no imports of weight
here. They are programs of their own, not forks: nothing of this process's threads, locks or open files goes along, and
a caller's main module is not run again.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from types import TracebackType

from analyser.reading.areas import new_area

PROGRAM = (
    "from analyser.reading.pandas_later import import_pandas_later; import_pandas_later(); "
    "from analyser.reading.share_process import main; main()"
)


_AREAS = 3


class Helpers:
    """So many programs; leaving the `with` block ends them, whatever happened."""

    def __init__(self, count: int) -> None:
        self._count = count
        self.children: list[subprocess.Popen[bytes]] = []
        # Descriptors of memory for segments: while some are decoded others are read.
        self.areas: tuple[int, ...] = ()

    def __enter__(self) -> Helpers:
        try:
            for _ in range(_AREAS if self._count else 0):
                self.areas += (new_area(),)
            for _ in range(self._count):
                self.children.append(_started(self.areas))
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        for child in self.children:
            child.kill()
        for child in self.children:
            for pipe in (child.stdin, child.stdout):
                if pipe is not None:
                    with suppress(BrokenPipeError):  # of a job that nobody read
                        pipe.close()
            child.wait()
        while self.areas:
            os.close(self.areas[0])
            self.areas = self.areas[1:]


def _started(areas: tuple[int, ...]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-P", "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        pass_fds=areas,
        process_group=0,  # Ctrl-C is for this process, which ends the others
        env={**os.environ, "PYTHONPATH": os.pathsep.join(os.path.abspath(path) for path in sys.path)},
    )
