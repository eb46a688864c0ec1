"""Which filters match which topics, as rules ask it: each pair is looked at once, and counts by how long its names are.

In: filters and topics. Out: answers; `TooManyCompared` where the rule that runs has compared as many as one may.
"""

from __future__ import annotations

from wirewitness.analyser.engine.rules.limits import compared
from wirewitness.dissectors.mqtt.filters import matches

# What matching a filter costs in comparisons of numbers, with so many more for each character.
_LEAST_COST, _CHARACTERS_OF_ONE = 20, 16


def count_names(*names: str) -> None:
    """Count that these names are compared with each other."""
    compared(_LEAST_COST + sum(map(len, names)) // _CHARACTERS_OF_ONE)


class Matches:
    """Which filters match which topics."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], bool] = {}

    def match(self, topic_filter: str, topic: str) -> bool:
        """Does one filter (without a share name) match a topic?"""
        found = self._known.get((topic_filter, topic))
        if found is not None:
            compared(1)
            return found
        count_names(topic_filter, topic)
        return self._known.setdefault((topic_filter, topic), matches(topic_filter, topic))
