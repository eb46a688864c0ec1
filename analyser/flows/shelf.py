"""Closed flows put away: a few hundred bytes each instead of some thousand.

In: flows that have no decoder any more. Out: the same flows, equal in all fields, when a late packet comes or their
time is up. A closed flow stays known for a while, since what comes late belongs to it; mostly nothing does.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import fields
from operator import attrgetter
from typing import Any

from analyser.flows.flow import Flow
from analyser.flows.streams import Half

_FLOW_NAMES = [field.name for field in fields(Flow)]
_HALVES_AT = _FLOW_NAMES.index("halves")
_flow_values = attrgetter(*_FLOW_NAMES)
_half_values = attrgetter(*(field.name for field in fields(Half)))


class Shelf:
    """Packed flows by index, in the order in which they were put here."""

    def __init__(self) -> None:
        self._packed: dict[int, bytes] = {}

    def __getstate__(self) -> list[tuple[int, list[Any]]]:
        """The flows' values: what is packed is for this process alone."""
        return [(index, pickle.loads(packed)) for index, packed in self._packed.items()]

    def __setstate__(self, kept: list[tuple[int, list[Any]]]) -> None:
        self._packed = {index: pickle.dumps(values, pickle.HIGHEST_PROTOCOL) for index, values in kept}

    def __len__(self) -> int:
        return len(self._packed)

    def __iter__(self) -> Iterator[int]:
        """Indices, the flow that lies here longest first."""
        return iter(self._packed)

    def put(self, flow: Flow) -> None:
        """Put a flow away; it must have no decoder. The object is not the flow any more."""
        values = list(_flow_values(flow))
        values[_HALVES_AT] = tuple(map(_half_values, flow.halves))
        self._packed[flow.index] = pickle.dumps(values, pickle.HIGHEST_PROTOCOL)

    def take(self, index: int) -> Flow:
        """The flow of that index, which leaves the shelf. Raises KeyError."""
        values = pickle.loads(self._packed.pop(index))
        values[_HALVES_AT] = tuple(Half(*half) for half in values[_HALVES_AT])
        return Flow(*values)
