"""Secrets that captures bring along before their packets. In: a source. Out: what its head says, in memory only.

A range of a file may begin behind them, and whoever decodes a connection reads no file; so heads are read for their own
sake: once to know which files have secrets, then by each task that decodes. Nothing between the two has a secret.
"""

from __future__ import annotations

from collections.abc import Iterable

from analyser.capture import CaptureError, CaptureLimits, CaptureStats, EndpointTable, Source, read_batches

_LIMITS = CaptureLimits(block_bytes=1 << 16)


def head_stats(source: Source) -> CaptureStats:
    """What stands in front of the first packets, and with these; of a file that cannot be read as much as can."""
    stats = CaptureStats(source.name)
    try:
        for batch in read_batches(source, EndpointTable(), stats, _LIMITS):
            if len(batch) or stats.packets:
                break
    except CaptureError:
        pass  # whoever reads its packets tells
    return stats


def with_secrets(sources: Iterable[Source]) -> tuple[Source, ...]:
    """Those that bring some along."""
    return tuple(source for source in sources if head_stats(source).secrets)
