"""Frames of several connections fed to decoders that leave them for later, batch by batch.

In: decoders and their frames. Out: the rows of each, and what was known behind each batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from wirewitness.dissectors.core import batch_backoff
from wirewitness.dissectors.core import deferred as later_frames
from wirewitness.dissectors.core.deferred import Later
from wirewitness.dissectors.core.lockstep.cut_frames import CutFrames
from wirewitness.dissectors.core.model import Frame, Row
from wirewitness.dissectors.core.protocol import Sink


@contextmanager
def resting(number: int) -> Iterator[None]:
    """What was tried in vain is tried again at once, or, with every third number, a batch later, then three.

    Frames that come as columns stay so, however few they are.
    """
    first, longest = (1, 3) if number % 3 == 2 else (0, 0)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("_FIRST_REST", first), ("_LONGEST_REST", longest), ("TELLING_FRAMES", number % 2)):
            patch.setattr(batch_backoff, name, value)
        patch.setattr(later_frames, "_FEW", 1)
        yield


def as_cut(frames: list[Frame], out: Sink) -> Sequence[Frame]:
    """Some parts that may be left for later as columns, the others as they are."""
    return CutFrames.of(frames) if out.later is not None and len(frames) % 2 else frames


def _feed(decoder: Any, frames: list[Frame], out: Sink) -> None:
    decoder.feed(as_cut(frames, out), out)


def feed_in_batches(
    decoders: Sequence[Any],
    talks: Sequence[list[Any]],
    sizes: Sequence[int],
    tables: tuple[str, ...],
    *,
    later: bool,
    known: Callable[[Any], Any] | None = None,
    feed: Callable[[Any, list[Any], Sink], None] = _feed,
) -> tuple[list[dict[str, list[Row]]], list[Any]]:
    """Feed so many frames of each connection at a time. later: together, else each is decoded as it comes.

    feed: gives a decoder what stands in a part of `talks`, which may be more than frames.
    """
    shared = Later() if later else None
    sinks = [Sink(tables) for _ in talks]
    told = []
    for together in zip(*[_parts(frames, sizes) for frames in talks], strict=True):
        for decoder, sink, part in zip(decoders, sinks, together, strict=True):
            sink.later = shared
            feed(decoder, part, sink)
        settle_together(decoders, sinks, shared)
        if known is not None:
            told.append([known(decoder) for decoder in decoders])
    for decoder, sink in zip(decoders, sinks, strict=True):
        decoder.finish(sink)
    return [dict(sink.tables()) for sink in sinks], told


def settle_together(decoders: Sequence[Any], sinks: Sequence[Sink], shared: Later | None) -> None:
    """What happens at the end of a batch of packets."""
    if shared is not None:
        for kind, left in shared.take().items():
            kind.read_together(left, sinks[0])
    for decoder, sink in zip(decoders, sinks, strict=True):
        decoder.settle(sink)


def _parts(frames: list[Any], sizes: Sequence[int]) -> Iterator[list[Any]]:
    start = 0
    for size in sizes:
        yield frames[start : start + size]
        start += size
    yield frames[start:]
