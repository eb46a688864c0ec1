"""Secrets that captures bring along before their packets. In: a source. Out: what its head says, in memory only.

A range of a file may begin behind them, and whoever decodes a connection reads no file; so heads are read for their own
sake: once to know which files have secrets, then by each task that decodes. Nothing between the two has a secret.
"""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any, BinaryIO, cast

from wirewitness.analyser.base.storage.objects import ObjectPath
from wirewitness.analyser.capture import CaptureError, CaptureLimits, CaptureStats, EndpointTable, Source, read_batches
from wirewitness.analyser.capture.sources import explain

_LIMITS = CaptureLimits(block_bytes=1 << 16)


def head_stats(source: Source) -> CaptureStats:
    """What stands in front of the first packets, and with these; of a file that cannot be read as much as can.

    CaptureError where a store does not give it: nobody knows then whether there are secrets.
    """
    if not isinstance(source.path, ObjectPath):
        return _head_stats(source)
    with source.path.open() as stream:
        noting = _Noting(stream)
        stats = _head_stats(replace(source, path=None, stream=cast(BinaryIO, noting)))
    if noting.failure is not None:
        raise CaptureError(explain(source.name, noting.failure))
    return stats


def _head_stats(source: Source) -> CaptureStats:
    stats = CaptureStats(source.name)
    try:
        for batch in read_batches(source, EndpointTable(), stats, _LIMITS):
            if len(batch) or stats.packets:
                break
    except CaptureError:
        pass  # whoever reads its packets tells
    return stats


class _Noting(io.RawIOBase):
    """A stream, and how reading it failed."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.failure: OSError | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        """As io.RawIOBase.readinto."""
        try:
            return int(self._stream.readinto(target))
        except OSError as error:
            self.failure = error
            raise
