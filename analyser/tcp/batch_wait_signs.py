"""The signs of waits in the batch at hand. In: batches, sorted by pair. Out: what each flow waited for (`waits.py`)."""

from __future__ import annotations

from collections.abc import Iterable

from wirewitness.analyser.capture import PacketBatch
from wirewitness.analyser.tcp.batches import BatchColumns
from wirewitness.analyser.tcp.flow import Flow
from wirewitness.analyser.tcp.segment_runs import Flags, Places
from wirewitness.analyser.tcp.wait_signs import SignFinder, Signs
from wirewitness.analyser.tcp.waits import watch
from wirewitness.dissectors.core.limits import Limits


class FoundSigns:
    """Signs by pair. with_waits: False where nobody looks for them."""

    def __init__(self, limits: Limits, with_waits: bool) -> None:
        self._limits = limits
        self._finder = SignFinder() if with_waits else None
        self._signs: dict[int, Signs] = {}

    @property
    def pairs(self) -> Iterable[int]:
        """Pairs of which there are any in this batch."""
        return self._signs

    def find(self, batch: PacketBatch, columns: BatchColumns, order: Places, copies: Flags) -> None:
        """Look for those of the next batch; if that raises, nobody looks any more."""
        if self._finder is None:
            return
        finder, self._finder, self._signs = self._finder, None, {}
        self._signs = finder.feed(batch, columns, order, copies)
        self._finder = finder

    def forget(self) -> None:
        """Nothing more is taken of this batch."""
        self._signs = {}

    def watch(self, flow: Flow, before: int | None = None, *, ends: bool = False) -> None:
        """Take what was found of the flow's packets in this batch, see `watch`."""
        signs = self._signs.get(flow.pair)
        if signs:
            watch(flow, signs, self._limits, before, ends=ends)
