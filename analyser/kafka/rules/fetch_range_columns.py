"""Runs of reading column by column, for rules that look at many of them.

In: one partition's frame of `kafka_fetch_ranges`. Out: `FetchRangeColumns`; the `FetchRange` of a row, of 1.5 KiB, is
made when somebody asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from wirewitness.analyser.engine.rules.columns import Integers, Texts
from wirewitness.analyser.engine.rules.findings import Evidence, first_and_last
from wirewitness.analyser.engine.rules.frame import Frame, pairs
from wirewitness.analyser.kafka.rules.fetch_ranges import FetchRange, Place, runs_of

_AT_ONCE = 4096


class FetchRangeColumns:
    """The rows of a frame, which are in the order of time."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame

    def __len__(self) -> int:
        """How many."""
        return len(self._frame)

    def numbers(self, name: str) -> Integers:
        """A column of numbers by the name of `Run`; UNKNOWN for null."""
        return self._frame[name].numbers()

    def texts(self, name: str) -> Texts:
        """A column of texts."""
        return self._frame[name].texts()

    @cached_property
    def topics(self) -> Texts:
        """Their topics."""
        return self.texts("topic")

    @cached_property
    def partitions(self) -> Integers:
        """A number for each partition (`Run.place`)."""
        return pairs(self.topics.codes, self.numbers("partition"))

    def place(self, row: int) -> Place:
        """`Run.place` of one row."""
        return self.topics.at(row), int(self.numbers("partition")[row])

    def taken(self, rows: Integers) -> Frame:
        """These rows of the frame."""
        return self._frame.take(rows)

    def each(self, rows: Integers | None = None) -> Iterator[FetchRange]:
        """These rows as plain values, None for all; some at a time, so that rules that want few of them never hold
        all."""
        chosen = np.arange(len(self)) if rows is None else rows
        for start in range(0, len(chosen), _AT_ONCE):
            yield from runs_of(self.taken(chosen[start : start + _AT_ONCE]))

    def places(self, rows: Integers) -> list[Place]:
        """The partitions of these rows, each once."""
        first = np.unique(self.partitions[rows], return_index=True)[1]
        return [self.place(row) for row in rows[first].tolist()]

    def evidence(self, rows: Integers) -> list[Evidence]:
        """The first fetches of these rows, without repeats; the middle of many is left out."""
        exchanges = self.texts("exchange_id").codes[rows]
        requests = np.where(exchanges < 0, -1 - self.numbers("request_packet")[rows], exchanges)
        some = rows[first_and_last(requests)]
        taken = self._frame.take(some)
        return [*map(Evidence, *(taken[name].values() for name in ("file", "request_packet", "exchange_id")))]
