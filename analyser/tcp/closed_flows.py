"""Closed flows put away: a few hundred bytes each instead of some thousand.

In: flows that have no decoder any more, and connections that were taken whole. Out: flows, equal in all fields to what
they were or would be, when a late packet comes or their time is up. A closed flow stays known for a while, since what
comes late belongs to it; mostly nothing does.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from wirewitness.analyser.tcp.complete_flows import Flags, Ints, WholeFlows
from wirewitness.analyser.tcp.flow import Flow
from wirewitness.analyser.tcp.flow_memory import SHELVED_BYTES
from wirewitness.analyser.tcp.streams import Half

_FLOW_NAMES = [field.name for field in fields(Flow)]
_HALVES_AT = _FLOW_NAMES.index("halves")
_flow_values = attrgetter(*_FLOW_NAMES)
_half_values = attrgetter(*(field.name for field in fields(Half)))


@dataclass(slots=True, eq=False)
class _Block:
    """Connections that were taken whole. first: the index of the first one. lying: which of them lie here still."""

    flows: WholeFlows
    first: int
    most_remarks: int
    lying: Flags

    def flow(self, index: int) -> Flow:
        """The one with this index, which does not lie here any more."""
        self.lying[index - self.first] = False
        flow = self.flows.flow(index - self.first, index, self.most_remarks)
        flow.held_bytes = SHELVED_BYTES
        return flow


class Taken(NamedTuple):
    """Connections that have left the shelf as columns, and the indices of their flows (`numbers`)."""

    flows: WholeFlows
    numbers: Ints


class Shelf:
    """Packed flows by index, in the order in which they were put here."""

    def __init__(self) -> None:
        self._lying: dict[int, bytes | _Block] = {}
        self._blocks: list[_Block] = []

    def __getstate__(self) -> tuple[list[tuple[int, Any]], list[_Block]]:
        """The flows' values: what is packed is for this process alone."""
        lying = [(index, pickle.loads(one) if isinstance(one, bytes) else one) for index, one in self._lying.items()]
        return lying, self._blocks

    def __setstate__(self, kept: tuple[list[tuple[int, Any]], list[_Block]]) -> None:
        lying, self._blocks = kept
        self._lying = {index: one if isinstance(one, _Block) else _packed(one) for index, one in lying}

    def __len__(self) -> int:
        return len(self._lying)

    def __iter__(self) -> Iterator[int]:
        """Indices, the flow that lies here longest first."""
        return iter(self._lying)

    def __contains__(self, index: int) -> bool:
        return index in self._lying

    def put(self, flow: Flow) -> None:
        """Put a flow away; it must have no decoder. The object is not the flow any more."""
        values = list(_flow_values(flow))
        values[_HALVES_AT] = tuple(map(_half_values, flow.halves))
        self._lying[flow.index] = _packed(values)

    def put_whole(self, flows: WholeFlows, first: int, most_remarks: int) -> None:
        """Put connections here; `first` is the index of the first one. most_remarks: of each stream, see `Half`."""
        block = _Block(flows, first, most_remarks, np.ones(len(flows), bool))
        self._blocks.append(block)
        self._lying.update(dict.fromkeys(range(first, first + len(flows)), block))

    def take(self, index: int) -> Flow:
        """The flow of that index, which leaves the shelf. Raises KeyError."""
        one = self._lying.pop(index)
        if isinstance(one, _Block):
            return one.flow(index)
        values = pickle.loads(one)
        values[_HALVES_AT] = tuple(Half(*half) for half in values[_HALVES_AT])
        return Flow(*values)

    def is_whole(self, index: int) -> bool:
        """Does this flow lie here as it was taken, whole?"""
        return isinstance(self._lying.get(index), _Block)

    def take_whole(self, before_ns: int | None = None) -> Iterator[Taken]:
        """Those that were taken whole and that nothing came late for, which leave. before_ns: closed before it."""
        left: list[_Block] = []
        for block in self._blocks:
            leaving = block.lying if before_ns is None else block.lying & (block.flows.closed_ts_ns < before_ns)
            numbers = np.flatnonzero(leaving)
            block.lying = block.lying & ~leaving
            if block.lying.any():
                left.append(block)
            if len(numbers):
                index = block.first + numbers
                for one in index.tolist():
                    del self._lying[one]
                yield Taken(block.flows.chosen(numbers), index)
        self._blocks = left


def _packed(values: list[Any]) -> bytes:
    return pickle.dumps(values, pickle.HIGHEST_PROTOCOL)
