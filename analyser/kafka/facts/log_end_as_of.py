"""How far logs went, as of any time: what `log_ends.py` says a log end is, in arrays.

In: ends that answers told (LOG_ENDS). Out: the log end that was known at a time.
"""

from __future__ import annotations

import numpy as np

from wirewitness.analyser.engine.facts.as_of import Integers, Timeline, taken
from wirewitness.analyser.engine.facts.columns import UNKNOWN
from wirewitness.analyser.engine.facts.row_groups import changes, highest_so_far
from wirewitness.analyser.kafka.facts.log_ends import KEPT_S, SECOND_NS


class KnownLogEnds:
    """The log ends of logs, each in its life.

    logs: their numbers, small and dense. at_ns: when an end was told, Unix ns. ends: which one.
    """

    def __init__(self, logs: Integers, at_ns: Integers, ends: Integers) -> None:
        order = np.lexsort((at_ns, logs))
        logs, at_ns, ends = logs[order], at_ns[order], ends[order]
        seconds = at_ns // SECOND_NS
        # An answer that repeats an end of its second, or tells a lower one, changes nothing: most are left out here.
        told = changes(logs) | changes(seconds) | changes(ends)
        logs, at_ns, ends, seconds = logs[told], at_ns[told], ends[told], seconds[told]
        begins = changes(logs) | changes(seconds)
        first = np.flatnonzero(begins)
        highest = highest_so_far(ends, begins)
        tells = begins | changes(highest)
        last = np.append(first[1:], len(logs))[: len(first)] - 1
        kept = _kept_before(logs[first], seconds[first], highest[last])
        self._ends = np.maximum(highest, np.repeat(kept, last - first + 1))[tells]
        self._line = Timeline(logs[tells], at_ns[tells])

    def latest(self, logs: Integers, at_ns: Integers) -> Integers:
        """The ends of these logs that were known at these times; UNKNOWN without one."""
        return taken(self._ends, self._line.latest(logs, at_ns), UNKNOWN)


def _kept_before(logs: Integers, seconds: Integers, highest: Integers) -> Integers:
    """The highest end of the seconds before each that still counts in it; UNKNOWN without one.

    They are seconds in which something was told, in the order of logs and seconds, so that few rows lie between.
    """
    kept = np.full(len(logs), UNKNOWN)
    for back in range(1, min(KEPT_S, len(logs))):
        counts = (logs[back:] == logs[:-back]) & (seconds[back:] - seconds[:-back] < KEPT_S)
        np.maximum(kept[back:], np.where(counts, highest[:-back], UNKNOWN), out=kept[back:])
    return kept
