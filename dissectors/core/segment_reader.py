"""The contract of a protocol whose server keeps what it was sent in files of its own: log segments.

The analyser finds the batches in a file, the protocol says what they hold, as rows of the tables that a capture fills.
Nobody sent these rows to anyone: they have no flow, no exchange and no packet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.options import DecodeOptions
from wirewitness.dissectors.core.protocol import Sink

Graveness = Literal["note", "warn", "error"]


class StoredPartition(Protocol):
    """Makes rows of the batches of one file, in their order. Never raises."""

    def add(self, batch: bytes, file: int, out: Sink) -> None:
        """Append the rows of one batch. file: the packed place of its file (`packet_of`)."""
        ...

    def finish(self, out: Sink) -> None:
        """The file ended: give the rows that waited for more."""
        ...

    def remarks(self) -> Iterator[tuple[Graveness, str, str]]:
        """What was odd, counted: severity, code, text."""
        ...


@dataclass(frozen=True, slots=True)
class SegmentReader:
    """How segments are read. partition: (topic and partition or None, limits, options) -> what makes rows of a file."""

    partition: Callable[[tuple[str, int] | None, Limits, DecodeOptions], StoredPartition]
