"""A process that decodes a shard, as its parent sees it: what it is told and what it tells, through two pipes.

In: parcels of segments. Out: that they are done, and where its rows are in the end.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol

from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.capture.model import Remark
from wirewitness.analyser.decoding.rows.rows_file import HandedOver
from wirewitness.analyser.decoding.run.shard import ShardFailed
from wirewitness.analyser.decoding.run.work_items import Parcel


@dataclass(frozen=True, slots=True)
class ShardJob:
    """What a process is told first: the tables wanted, descriptors of the areas of memory, the folder for its rows."""

    wanted: tuple[str, ...]
    options: ReadOptions
    areas: tuple[int, ...]
    folder: Path


class NextFile(NamedTuple):
    """Parcels that follow are of the capture with this number; so many packets are in those before it."""

    number: int
    packets_before: int


class NewKeys(NamedTuple):
    """Secrets for parcels that follow. They go through a pipe and are written nowhere."""

    entries: Mapping[bytes, tuple[bytes, ...]]


class Unpacked(NamedTuple):
    """Parcels that follow are of a compressed input; so much of all compressed ones is read by now."""

    packed_bytes: int


class NoMore(NamedTuple):
    """All parcels have come; now_ns: the latest time in the captures."""

    now_ns: int


class Done(NamedTuple):
    """A parcel is decoded: its memory may be used again."""


@dataclass(frozen=True, slots=True)
class ShardResult:
    """What a process leaves: rows of each table, the file with the flows (None without any), what is to be remarked on
    captures by their index, and its faults (see `Sink`); or the trace of its failure."""

    tables: Mapping[str, HandedOver]
    flows: Path | None
    remarks: tuple[tuple[int, Remark], ...] = ()
    faults: Mapping[str, int] = field(default_factory=dict)
    failure: str = ""


class Process(Protocol):
    """What is needed of a program that was started."""

    @property
    def stdin(self) -> IO[bytes] | None:
        """What it reads."""

    @property
    def stdout(self) -> IO[bytes] | None:
        """What it writes."""

    def wait(self) -> int:
        """Its status, once it ended."""


class Child:
    """One process. All methods but `tell` and `hand` raise ShardFailed when it ended or failed."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._handed = self._done = 0

    def tell(self, message: Any) -> None:
        """Send it a message. Of one that has ended nobody hears here: it has no answer."""
        with suppress(BrokenPipeError):
            pipe = _pipe(self._process.stdin)
            pickle.dump(message, pipe)
            pipe.flush()

    def hand(self, parcel: Parcel) -> None:
        """Give it the next parcel."""
        self._handed += 1
        self.tell(parcel)

    def wait_for(self, parcels: int) -> None:
        """Wait until it is done with so many parcels."""
        while self._done < parcels:
            self._hear()
            self._done += 1

    def result(self) -> ShardResult:
        """Wait for all that it leaves."""
        self.wait_for(self._handed)
        result = self._hear()
        if not isinstance(result, ShardResult):
            raise ShardFailed("a process that read a part of the flows told more than it was asked for")
        return result

    def hear(self, work: str) -> Any:
        """What it tells next. work: what it does, in words, should it have ended."""
        try:
            return pickle.load(_pipe(self._process.stdout))
        except (EOFError, pickle.UnpicklingError):
            raise ShardFailed(f"a process that {work} ended with status {self._process.wait()}") from None

    def _hear(self) -> Done | ShardResult:
        told: Done | ShardResult = self.hear("read a part of the flows")
        if isinstance(told, ShardResult) and told.failure:
            raise ShardFailed(f"a process that read a part of the flows failed: {told.failure}")
        return told


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise ShardFailed("a process has no pipe")
    return stream
