"""Captures decoded in shards as `--processes` does it, the other shards in threads of this process: nothing starts.

In: captures, how many shards. Out: what `decode_captures` gives.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from functools import partial
from types import TracebackType
from typing import IO

from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.capture import Source
from wirewitness.analyser.decoding.rows.store import RawStore
from wirewitness.analyser.decoding.run.child import Child
from wirewitness.analyser.decoding.run.decode import SharedReading
from wirewitness.analyser.decoding.run.decoded import Decoded
from wirewitness.analyser.decoding.run.pipeline import Pipeline
from wirewitness.analyser.decoding.run.shard_process import serve
from wirewitness.analyser.decoding.run.shared_memory import new_area
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.registry import dissectors


class ShardThread:
    """A thread with the pipes of a helper."""

    def __init__(self) -> None:
        job, stdin = _pipe()
        stdout, told = _pipe()
        self.stdin, self.stdout = stdin, stdout
        self._ends: tuple[IO[bytes], ...] = (job, told)
        self._thread = threading.Thread(target=serve, args=(job, told), daemon=True)
        self._thread.start()

    def wait(self) -> int:
        """Until it has ended."""
        self._thread.join()
        return 0

    def end(self) -> None:
        """Let it end, and close its pipes."""
        self.stdin.close()
        self.wait()
        for pipe in (self.stdout, *self._ends):
            pipe.close()


class ThreadHelpers:
    """`Helpers` whose children are threads."""

    def __init__(self, count: int) -> None:
        self._threads = [ShardThread() for _ in range(count)]
        self.children = [Child(thread) for thread in self._threads]
        self.areas = tuple(new_area() for _ in range(3))

    def __enter__(self) -> ThreadHelpers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for thread in self._threads:
            thread.end()
        for area in self.areas:
            os.close(area)


def decode_in_shards(
    sources: Sequence[Source],
    wanted: Sequence[str],
    shards: int,
    limits: Limits | None = None,
    options: ReadOptions | None = None,
) -> Decoded:
    """The raw rows of these tables; the caller closes the store."""
    limits, options, store = limits or Limits(), options or ReadOptions(), RawStore()
    with ThreadHelpers(shards - 1) as helpers:
        others = SharedReading(helpers.children, helpers.areas)
        others.start(wanted, options, store.folder)
        dealing = partial(others.dealing, limits.capture)
        decoded = Pipeline(dissectors(options.enable), wanted, options, limits, dealing, store).run(sources)
        others.collect(decoded)
    return decoded


def _pipe() -> tuple[IO[bytes], IO[bytes]]:
    reading, writing = os.pipe()
    return os.fdopen(reading, "rb"), os.fdopen(writing, "wb")
