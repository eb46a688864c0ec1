"""PUBLISH packets of clients, as columns, of which the server sent none on: nearly all of them are over at once.

In: events of `events.py`. Out: columns for `mqtt_deliveries.Server`, and messages of some of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from wirewitness.analyser.base import compute as pc
from wirewitness.analyser.mqtt.facts.messages import Integers, Message

# In the order of a message.
MESSAGE_COLUMNS = ("row", "flow", "port", "at_ns", "name", "content", "x", "y", "qos", "expiry_ns")


class Unheard(NamedTuple):
    """Messages in the order of time. columns: those of MESSAGE_COLUMNS, by name."""

    columns: Mapping[str, pa.Array]

    @property
    def rows(self) -> Integers:
        """Their numbers."""
        return self._numbers("row")

    @property
    def ts_ns(self) -> Integers:
        """Their times."""
        return self._numbers("at_ns")

    @property
    def qos(self) -> Integers:
        """How sure their clients want to be."""
        return self._numbers("qos")

    def topics(self) -> tuple[list[str], Integers]:
        """The different topics, and the place of each message's among them."""
        coded = pc.dictionary_encode(self.columns["name"])
        return coded.dictionary.to_pylist(), coded.indices.to_numpy()

    def messages(self, places: Integers) -> Iterator[Message]:
        """Those at these places."""
        chosen = pa.array(places)
        values = (pc.take(self.columns[name], chosen).to_pylist() for name in MESSAGE_COLUMNS)
        return map(Message, *values)

    def _numbers(self, name: str) -> Integers:
        numbers: Integers = self.columns[name].to_numpy().astype(np.int64, copy=False)
        return numbers
