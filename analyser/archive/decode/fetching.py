"""The bytes of objects that chunks tell of, fetched before they are needed.

In: the chunks of a shard, and where each file is. Out: each chunk, with the bytes of its object where it has none of
its own. A stretch is fetched with the tag that its object was met with, so all that a run reads of an object is of one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

from wirewitness.analyser.archive.decode.chunks import Chunk
from wirewitness.analyser.base.storage.files import FilePath
from wirewitness.analyser.base.storage.objects import ObjectPath
from wirewitness.analyser.capture.sources import explain

# So many stretches are under way or waiting, and so many chunks behind the one that is decoded.
AHEAD, MOST_CHUNKS = 2, 8


class ObjectLost(Exception):
    """A store does not give what an object had when it was met; the text says why, with the object's address."""

    def __init__(self, file: int, text: str) -> None:
        super().__init__(text)
        self.file = file


def with_stretches(chunks: Iterable[Chunk], paths: Mapping[int, FilePath]) -> Iterator[tuple[Chunk, memoryview | None]]:
    """Chunks in their order with the stretches of their objects, None where there is nothing to fetch. ObjectLost."""
    waiting: deque[tuple[Chunk, Future[memoryview] | None]] = deque()
    with ThreadPoolExecutor(AHEAD, "stretch") as threads:
        for chunk in chunks:
            path = paths[chunk.file] if chunk.span else None
            under_way = None
            if isinstance(path, ObjectPath):
                under_way = threads.submit(path.read, chunk.start, chunk.start + chunk.span)
            waiting.append((chunk, under_way))
            while waiting and (waiting[0][1] is None or len(waiting) > MOST_CHUNKS or _under_way(waiting) > AHEAD):
                yield _next(waiting, paths)
        while waiting:
            yield _next(waiting, paths)


def _under_way(waiting: Iterable[tuple[Chunk, Future[memoryview] | None]]) -> int:
    return sum(stretch is not None for _, stretch in waiting)


def _next(
    waiting: deque[tuple[Chunk, Future[memoryview] | None]], paths: Mapping[int, FilePath]
) -> tuple[Chunk, memoryview | None]:
    chunk, stretch = waiting.popleft()
    try:
        return chunk, None if stretch is None else stretch.result()
    except OSError as error:
        for _, other in waiting:
            if other is not None:
                other.cancel()
        raise ObjectLost(chunk.file, explain(str(paths[chunk.file]), error)) from error
