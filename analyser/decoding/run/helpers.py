"""Programs that will decode a shard of the flows each, and run some of the rules, started before they are needed.

In: how many. Out: processes that wait on their standard input for a job (`analyser/analysis/processes/helper.py`), and
memory and a pipe that they shard. Starting and importing take a good part of a second, so they begin while this process
still imports; hence no imports of weight here. They are programs of their own, not forks: nothing of this process's
threads, locks or open files goes along, and a caller's main module is not run again.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from types import TracebackType

from wirewitness.analyser.decoding.run.shared_memory import new_area

PROGRAM = (
    "from wirewitness.analyser.decoding.run.pandas_later import import_pandas_later; import_pandas_later(); "
    "from wirewitness.analyser.analysis.processes.helper import main; main()"
)


_AREAS = 3


class Helpers:
    """So many programs; leaving the `with` block ends them, whatever happened, but for those that somebody keeps."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._kept = False
        self.children: list[subprocess.Popen[bytes]] = []
        # Descriptors of memory for segments: while some are decoded others are read.
        self.areas: tuple[int, ...] = ()
        # The same for tables, and both ends of pipes: from one all processes take numbers of rules, from one those of
        # what goes before; through the third one tells others what is done of that.
        self.tables, self.taking, self.giving = -1, -1, -1
        self.taking_first, self.giving_first, self.hearing, self.telling = -1, -1, -1, -1

    def __enter__(self) -> Helpers:
        try:
            if self._count:
                for _ in range(_AREAS):
                    self.areas += (new_area(),)
                self.tables = new_area()
                self.taking, self.giving = numbers()
                self.taking_first, self.giving_first = numbers()
                self.hearing, self.telling = os.pipe()
            shared = (*self.areas, self.tables, self.taking, self.taking_first, self.telling)
            for _ in range(self._count):
                self.children.append(_started(shared))
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None or not self._kept:
            self.end()

    def keep(self) -> Helpers:
        """They outlast the `with` block; who keeps them ends them."""
        self._kept = True
        return self

    def decoded(self) -> None:
        """All segments are decoded: their memory is let go of."""
        while self.areas:
            os.close(self.areas[0])
            self.areas = self.areas[1:]

    def no_more(self) -> None:
        """No more numbers come through the pipes."""
        closed(self.giving_first, self.giving)
        self.giving_first = self.giving = -1

    def end(self) -> None:
        """End the programs and let go of what they shard; it may be asked for twice."""
        for child in self.children:
            child.kill()
        for child in self.children:
            for pipe in (child.stdin, child.stdout):
                if pipe is not None:
                    with suppress(BrokenPipeError):  # of a job that nobody read
                        pipe.close()
            child.wait()
        self.no_more()
        self.decoded()
        closed(self.tables, self.taking, self.taking_first, self.hearing, self.telling)
        self.tables = self.taking = self.taking_first = self.hearing = self.telling = -1


def numbers() -> tuple[int, int]:
    """Both ends of a pipe for numbers (`analyser/analysis/processes/queue.py`): who finds none does not wait for one
    there."""
    taking, giving = os.pipe()
    os.set_blocking(taking, False)
    return taking, giving


def closed(*descriptors: int) -> None:
    """Close those that are open; others are below 0."""
    for descriptor in descriptors:
        if descriptor >= 0:
            os.close(descriptor)


def _started(shared: tuple[int, ...]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-P", "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        pass_fds=shared,
        process_group=0,  # Ctrl-C is for this process, which ends the others
        env={**os.environ, "PYTHONPATH": os.pathsep.join(os.path.abspath(path) for path in sys.path)},
    )
