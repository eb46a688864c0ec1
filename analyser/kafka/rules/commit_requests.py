"""The commits of one client as its requests, by time: which of them have a partition, and which leave it out.

In: one client's frame of `kafka_offset_commits`. Out: lists in which what is around a moment is found by halving.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wirewitness.analyser.engine.rules.columns import UNKNOWN
from wirewitness.analyser.engine.rules.frame import Frame, numbered


class Sent(NamedTuple):
    """A client's requests, and one partition in them.

    times: when each request was sent, rising. numbers, offsets: which of them have the partition, and with which
    offset.
    """

    times: list[int]
    numbers: list[int]
    offsets: list[int]


class CommitRequests:
    """The commits of one client (address, client id)."""

    def __init__(self, commits: Frame) -> None:
        self._codes, names = commits["topic"].texts()
        self._partitions, self._offsets = commits["partition"].numbers(), commits["committed_offset"].numbers()
        self._code_of = {None: -1} | {name: code for code, name in enumerate(names.to_pylist())}
        requests = numbered(commits["exchange_id"].texts().codes)
        began = commits["ts"].numbers()[np.unique(requests, return_index=True)[1]]
        order = np.argsort(began, kind="stable")
        self._times: list[int] = began[order].tolist()
        self._numbers = np.argsort(order)[requests]

    def of(self, topic: str | None, partition: int) -> Sent:
        """One partition in them; offsets that are not known are left out."""
        kept = (self._codes == self._code_of.get(topic)) & (self._partitions == partition) & (self._offsets != UNKNOWN)
        # Of a request that names the partition twice the last one counts.
        offset_of = dict(zip(self._numbers[kept].tolist(), self._offsets[kept].tolist(), strict=True))
        numbers = sorted(offset_of)
        return Sent(self._times, numbers, [offset_of[number] for number in numbers])
