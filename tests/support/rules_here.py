"""Rules dealt out as `--processes` does it, the helpers in threads of this process: nothing starts."""

from __future__ import annotations

import os
import threading
from types import TracebackType
from typing import IO

from wirewitness.analyser.analysis.processes.helper import serve
from wirewitness.analyser.decoding.run.helpers import closed, numbers
from wirewitness.analyser.decoding.run.shared_memory import new_area


class RuleThread:
    """A thread with the pipes of a helper that has decoded."""

    def __init__(self) -> None:
        messages, self.stdin = _pipe()
        self.stdout, told = _pipe()
        self._thread = threading.Thread(target=_served, args=(messages, told), daemon=True)
        self._thread.start()

    def wait(self) -> int:
        """Until it has ended."""
        self._thread.join()
        return 0


class ThreadHelpers:
    """`Helpers` whose children are threads."""

    def __init__(self, count: int) -> None:
        self.tables = new_area()
        self.taking, self.giving = numbers()
        self.taking_first, self.giving_first = numbers()
        self.hearing, self.telling = os.pipe()
        self.children = [RuleThread() for _ in range(count)]

    def __enter__(self) -> ThreadHelpers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def no_more(self) -> None:
        """No more numbers come."""
        closed(self.giving_first, self.giving)
        self.giving_first = self.giving = -1

    def end(self) -> None:
        """Let the threads end."""
        self.no_more()
        for child in self.children:
            child.stdin.close()
            child.wait()
            child.stdout.close()
        self.children = []
        closed(self.tables, self.taking, self.taking_first, self.hearing, self.telling)
        self.tables = self.taking = self.taking_first = self.hearing = self.telling = -1


def _served(messages: IO[bytes], told: IO[bytes]) -> None:
    with messages, told:
        serve(messages, told)


def _pipe() -> tuple[IO[bytes], IO[bytes]]:
    reading, writing = os.pipe()
    return os.fdopen(reading, "rb"), os.fdopen(writing, "wb")
