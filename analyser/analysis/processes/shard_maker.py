"""Shares of stages that a helper makes. In: what it was told of, numbers of shards as it takes them. Out: files with
their rows; through a pipe the number of each, and whether it is made.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import duckdb
import pyarrow as pa

from wirewitness.analyser.analysis.processes.messages import SHARD_MADE, Shards, file_of_shard
from wirewitness.analyser.analysis.processes.shared_tables import make_view
from wirewitness.analyser.base.faults import caught
from wirewitness.analyser.decoding.run.shared_memory import Area
from wirewitness.analyser.engine.facts.shards import MakeShard, maker_of, write_pieces


class ShardMaker:
    """What it was told of. connect: gives a connection for shards alone, so nobody else sees their views. It is no
    cursor of another one, which would have the time zone of the system.

    area: the memory with tables. folder: for the files. telling: the pipe, see `Begin`.
    """

    def __init__(
        self, connect: Callable[[], duckdb.DuckDBPyConnection], area: Area, folder: Path, telling: int
    ) -> None:
        self._connect, self._area, self._folder, self._telling = connect, area, folder, telling
        self._told: list[Shards] = []
        self._begun: Shards | None = None
        self._make: MakeShard | None = None
        self._open = ExitStack()

    def add(self, told: Shards) -> None:
        """There are these shards, too."""
        self._told.append(told)

    def knows(self, number: int) -> bool:
        """Was it told of this shard?"""
        return bool(self._told) and number < self._told[-1].first + self._told[-1].shards

    def make(self, number: int) -> None:
        """Make one of them. What it raises costs the time alone: the process that wants it makes it then."""
        told = next(one for one in reversed(self._told) if one.first <= number)
        try:
            write_pieces(self._maker(told)(number - told.first, told.shards), file_of_shard(self._folder, number))
            made = True
        except Exception as error:
            caught(error)
            self.close()
            made = False
        pa.default_memory_pool().release_unused()
        os.write(self._telling, SHARD_MADE.pack(number, made))

    def close(self) -> None:
        """Let go of what shards have in common; of others it is made again."""
        self._begun = self._make = None
        self._open.close()

    def _maker(self, told: Shards) -> MakeShard:
        if self._make is None or self._begun is not told:
            self.close()
            con = self._open.enter_context(self._connect())
            views = {shown.name: make_view(con, self._area, shown) for shown in told.tables}
            held = {name: views[name] for name in told.held}
            self._make, self._begun = self._open.enter_context(maker_of(told.work)(con, held)), told
        return self._make
