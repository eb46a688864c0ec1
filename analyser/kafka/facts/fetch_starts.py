"""Where clients of groups began to read a partition. In: fetches with their group. Out: `Begun`, the runs of reading.

A reader's run ends where it goes on with another connection, another topic id, or an offset that its last answer did
not lead to. Behind an answer that is missing only a lower offset is a new run. A fetch that is refused is of no run.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wirewitness.analyser.engine.facts.as_of import Integers
from wirewitness.analyser.engine.facts.columns import UNKNOWN, Booleans, codes
from wirewitness.analyser.engine.facts.row_groups import changes, highest_so_far
from wirewitness.analyser.kafka.facts.fetch_rows import Fetches

# Kafka's OFFSET_OUT_OF_RANGE.
_OUT_OF_RANGE = 1


class Begun(NamedTuple):
    """Runs in the order of their readers, then of time. Times are Unix ns; what is not known is UNKNOWN.

    part: of the reader. place: of the first fetch, in `Fetches.rows`. next_offset: the highest one that an answer led
    to. before_ns, fetched_before, position_before: of the reader's fetch before the run. group_position: the highest
    offset that fetches of the whole group had led to before. other_flow, other_id: is the connection, or the topic id,
    another one than before?
    """

    reader: Integers
    part: Integers
    place: Integers
    at_ns: Integers
    last_ns: Integers
    first_offset: Integers
    next_offset: Integers
    fetches: Integers
    before_ns: Integers
    fetched_before: Integers
    position_before: Integers
    group_position: Integers
    other_flow: Booleans
    other_id: Booleans

    @property
    def since_ns(self) -> Integers:
        """What led to a run came after this."""
        return np.where(self.before_ns == UNKNOWN, 0, self.before_ns)


class Refused(NamedTuple):
    """Fetches of offsets that the log does not have (any more)."""

    reader: Integers
    at_ns: Integers
    fetch_offset: Integers


def refused(fetches: Fetches) -> Refused:
    """The fetches that were refused as out of range."""
    places = np.flatnonzero(fetches.numbers("error_code")[fetches.rows] == _OUT_OF_RANGE)
    rows = fetches.rows[places]
    return Refused(fetches.reader[places], fetches.numbers("at_ns")[rows], fetches.numbers("fetch_offset")[rows])


class Runs:
    """The runs of reading: where they begin, and what the fetches of each were told."""

    def __init__(self, fetches: Fetches) -> None:
        accepted = fetches.numbers("error_code")[fetches.rows] == 0
        places = np.flatnonzero(accepted)
        self._fetches = fetches
        self._rows = rows = fetches.rows[places]
        reader = fetches.reader[places]
        at_ns, offsets, positions = (fetches.numbers(name)[rows] for name in ("at_ns", "fetch_offset", "position"))
        flows, ids = (codes(fetches.columns[name])[rows] for name in ("flow_id", "topic_id"))
        first = changes(reader)
        other_flow, other_id = changes(flows) & ~first, changes(ids) & ~first
        fetched_before, position_before = _before(offsets, first), _before(positions, first)
        elsewhere = (offsets != position_before) & (position_before != UNKNOWN)
        back = (offsets < fetched_before) & (position_before == UNKNOWN)
        begins = first | other_flow | other_id | ((elsewhere | back) & (offsets != UNKNOWN))
        self._starts = starts = np.flatnonzero(begins)
        ends = np.append(starts[1:], len(rows))[: len(starts)]
        self.begun = Begun(
            reader[starts],
            fetches.readers.part.numbers[reader[starts]],
            places[starts],
            at_ns[starts],
            at_ns[ends - 1],
            offsets[starts],
            self.highest("position"),
            ends - starts,
            _before(at_ns, first)[starts],
            fetched_before[starts],
            position_before[starts],
            _group_positions(fetches, accepted, positions)[starts],
            other_flow[starts],
            other_id[starts],
        )

    def first(self, name: str) -> Integers:
        """A number of each run's first fetch."""
        return self._fetches.numbers(name)[self._rows[self._starts]]

    def highest(self, name: str) -> Integers:
        """The highest of those of its fetches; UNKNOWN where all are."""
        numbers = self._fetches.numbers(name)[self._rows]
        return np.maximum.reduceat(numbers, self._starts) if len(numbers) else numbers

    def total(self, name: str) -> Integers:
        """The sum of what is known of them; UNKNOWN where nothing is."""
        numbers = self._fetches.numbers(name)[self._rows]
        if not len(numbers):
            return numbers
        known = numbers != UNKNOWN
        sums = np.add.reduceat(np.where(known, numbers, 0), self._starts)
        return np.where(np.logical_or.reduceat(known, self._starts), sums, UNKNOWN)


def _before(numbers: Integers, first: Booleans) -> Integers:
    """The number before each in its stretch; UNKNOWN for the first one."""
    found = np.full(len(numbers), UNKNOWN)
    found[1:] = numbers[:-1]
    found[first] = UNKNOWN
    return found


def _group_positions(fetches: Fetches, accepted: Booleans, positions: Integers) -> Integers:
    """For each accepted fetch the highest position of the accepted ones before it in its group's partition.

    Of those of one time and offset, in the order in which they come.
    """
    number = np.cumsum(accepted) - 1
    in_group = fetches.in_group[accepted[fetches.in_group]]
    order = number[in_group]
    if not len(order):
        return positions
    begins = changes(fetches.readers.part.numbers[fetches.reader[in_group]])
    found = np.full(len(positions), UNKNOWN)
    found[order] = _before(highest_so_far(positions[order], begins), begins)
    return found
