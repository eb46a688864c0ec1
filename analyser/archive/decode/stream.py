"""`spark.readStream.format("wirewitness")`: rows of captures as they become complete.

In: the options of `source.py`, and `taken`, a folder for notes. Out: micro-batches; the rows of one are those that the
offline command makes of its captures together. Nothing goes on from one batch to the next: a connection that crosses
begins anew, as in a capture that begins in the middle.

An offset is the number of a note (`analyser/archive/ingest/taken.py`), which names the captures of its batch, so that a
batch that is read again after a kill has the same ones. `pyspark` is imported here, so only what runs on Spark imports
this module.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from wirewitness.analyser.analysis.evidence.identity import content_key
from wirewitness.analyser.archive.dataset.place import is_dataset
from wirewitness.analyser.archive.decode.table_reader import PACKETS, Rows, SourceOptions, TableReader
from wirewitness.analyser.archive.ingest.arriving import SETTLED_S, check_stores, files_named, is_complete
from wirewitness.analyser.archive.ingest.taken import Capture, TakenNotes
from wirewitness.analyser.base.storage.files import FilePath, absolute_name, file_at
from wirewitness.analyser.base.storage.objects import ObjectPath
from wirewitness.analyser.capture import CaptureError, Source
from wirewitness.analyser.capture.opening import probed_all

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles, SupportsTriggerAvailableNow
else:
    try:
        from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles, SupportsTriggerAvailableNow
    except ImportError:  # Spark before 4.2 gives no limits
        ReadAllAvailable, ReadMaxFiles, SupportsTriggerAvailableNow = (), (), object

TAKEN, SETTLED, AT_ONCE, LOST = "taken", "settled", "captures", "lost"
CAPTURES = 100
_TO_GO_ON = "A stream that begins again with the option lost = skip goes on without it."


class Batch(InputPartition):
    """What one task reads of a batch."""

    def __init__(self, captures: tuple[Capture, ...], rows: Rows) -> None:
        super().__init__(0)
        self.captures, self.rows = captures, rows


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """inputs: as the user named them. taken: a folder for notes. settled_s: as in Intake. at_once: captures of a batch.
    passes_over: a capture that is gone or was replaced before it was read does not end the stream."""

    inputs: tuple[str, ...]
    taken: str
    settled_s: float = SETTLED_S
    at_once: int = CAPTURES
    passes_over: bool = False


class CaptureStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Captures of folders and stores in micro-batches."""

    def __init__(self, asked: SourceOptions, schema: pa.Schema, options: StreamOptions) -> None:
        self._asked, self._schema, self._options = asked, schema, options
        self._notes: TakenNotes | None = None
        self._looked_at: dict[str, tuple[int, int, str]] = {}
        self._waiting: deque[Capture] = deque()
        self._looks = True

    def __reduce__(self) -> tuple[Any, ...]:
        """What tasks get: they need no notes."""
        return CaptureStream, (self._asked, self._schema, self._options)

    def initialOffset(self) -> dict[str, int]:  # noqa: N802  Spark's name
        """Before any batch."""
        check_stores(self._options.inputs)
        return {"batch": 0}

    def getDefaultReadLimit(self) -> Any:  # noqa: N802  Spark's name
        """So many captures."""
        return ReadMaxFiles(self._options.at_once)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  Spark's name
        """What is there now is all that this stream takes."""
        self._look()
        self._looks = False

    def latestOffset(self, start: dict[str, int] | None = None, limit: Any = None) -> dict[str, int]:  # noqa: N802
        """After the next batch; of one that was noted before a kill, where Spark says how far it is. With no limit
        after all that waits."""
        notes = self._noted()
        if start is not None and start["batch"] < notes.last and isinstance(limit, ReadMaxFiles):
            return {"batch": start["batch"] + 1}
        if self._looks:
            self._look()
        while captures := self._next_captures():
            notes.add(captures)
            if not isinstance(limit, ReadAllAvailable):
                break
        return {"batch": notes.last}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[Batch]:
        """As of captures that are read at once; none where there is none."""
        notes = self._noted()
        captures = tuple(one for n in range(start["batch"] + 1, end["batch"] + 1) for one in notes.batch(n))
        if self._options.passes_over:
            lost = _lost(captures)
            for why in lost.values():
                warnings.warn(f"passed over: {why}", stacklevel=1)
            captures = tuple(one for one in captures if one not in lost)
        else:
            _check(captures)
        if not captures:
            return []
        return [Batch(captures, rows) for rows in self._reader(captures).partitions() if isinstance(rows, Rows)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one partition. CaptureError where a capture is not there any more as it was."""
        assert isinstance(partition, Batch)
        _check(partition.captures)
        yield from self._reader(partition.captures).read(partition.rows)
        _check(partition.captures)

    def commit(self, end: dict[str, int]) -> None:
        """No batch up to this one is asked for again."""
        self._noted().done_with(end["batch"])

    def _noted(self) -> TakenNotes:
        if self._notes is None:
            self._notes = TakenNotes(self._options.taken)
        return self._notes

    def _reader(self, captures: Sequence[Capture]) -> TableReader:
        return TableReader(replace(self._asked, paths=tuple(one.name for one in captures)), self._schema)

    def _next_captures(self) -> list[Capture]:
        """The first of those that wait, with what their content is known by; none that was taken under another name."""
        found: dict[str, Capture] = {}
        while self._waiting and len(found) < self._options.at_once:
            capture = self._waiting.popleft()
            key = _key(capture)
            if key is None:
                warnings.warn(f"{capture.name} was removed before it was taken.", stacklevel=1)
            elif not self._noted().knows(capture := capture._replace(key=key)):
                found.setdefault(key, capture)
        return [*found.values()]

    def _look(self) -> None:
        """Find captures that became complete since the last look. What cannot be read is looked at again next time."""
        notes, before, new = self._noted(), self._looked_at, list[FilePath]()
        self._looked_at = {}
        for path in files_named(self._options.inputs):
            with suppress(OSError):
                name, state = str(path), _state(path)
                if before.get(name) == state:
                    self._looked_at[name] = state
                elif is_complete(path, self._options.settled_s):
                    self._looked_at[name] = state
                    new.append(path)
        found = []
        for path, result in probed_all(new):
            if isinstance(result, Source):
                found.append(Capture(str(path), "", result.first_ns))
            elif isinstance(result.__cause__, OSError):
                del self._looked_at[str(path)]
        waiting = {(one.name, one.first_ns) for one in self._waiting}
        for capture in sorted(found, key=lambda one: (one.first_ns is None, one.first_ns or 0, one.name)):
            if (capture.name, capture.first_ns) in waiting:
                continue
            if not notes.knows(capture):
                self._waiting.append(capture)
            elif capture.name in before:
                warnings.warn(f"{capture.name} has changed since it was taken: what came is not read.", stacklevel=1)


def stream_of(asked: SourceOptions, schema: pa.Schema, inputs: Sequence[str], options: Any) -> CaptureStream:
    """The stream that the options ask for. CaptureError when one makes no sense."""
    if asked.table == PACKETS:
        raise CaptureError(f"{PACKETS} cannot be streamed: they are parts of files that are read at once.")
    if not options.get(TAKEN):
        raise CaptureError(f"`{TAKEN}` is missing: a folder of this stream's own for notes on what it has taken.")
    try:
        settled_s, at_once = float(options.get(SETTLED, SETTLED_S)), int(options.get(AT_ONCE, CAPTURES))
    except ValueError as error:
        raise CaptureError(f"{SETTLED} and {AT_ONCE} are numbers: {error}.") from error
    lost = options.get(LOST, "fail")
    if at_once < 1 or not settled_s >= 0 or lost not in ("fail", "skip"):
        raise CaptureError(f"{AT_ONCE} must be 1 or more, {SETTLED} not negative, {LOST} fail or skip.")
    if not inputs:
        raise CaptureError("no path was given.")
    for name in inputs:
        if is_dataset(name):
            raise CaptureError(f"{name} is a dataset: its tables are Delta tables, which Spark streams itself.")
    # Tasks have working directories of their own.
    names = tuple(absolute_name(name) for name in inputs)
    told = StreamOptions(names, absolute_name(options[TAKEN]), settled_s, at_once, lost == "skip")
    return CaptureStream(asked, schema, told)


def _state(path: FilePath) -> tuple[int, int, str]:
    state = path.stat()
    return state.st_size, state.st_mtime_ns, path.state.tag if isinstance(path, ObjectPath) else ""


def _check(captures: Sequence[Capture]) -> None:
    """CaptureError unless all are there as they were when they were taken."""
    for why in _lost(captures).values():
        raise CaptureError(f"{why} {_TO_GO_ON}")


def _lost(captures: Sequence[Capture]) -> dict[Capture, str]:
    """Which are not there any more as they were when they were taken, and what became of them. CaptureError."""
    found = {}
    for capture in captures:
        key = _key(capture)
        if key is None:
            found[capture] = f"{capture.name} was removed before it was read."
        elif key != capture.key:
            found[capture] = f"{capture.name} was replaced, or has grown, before it was read."
    return found


def _key(capture: Capture) -> str | None:
    """What its content is known by; None where it is gone. CaptureError."""
    try:
        path = file_at(capture.name)
        return None if path is None else content_key(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CaptureError(f"{capture.name}: {error.strerror or error}.") from error
