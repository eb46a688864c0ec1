"""Shares of the stages of the context, dealt to this process and to helpers. In: the work, and where its tables are.
Out: numbers of shares, with the files of those that others made.

Shares go before rules, since this process waits for them. What others fail to make, or take along when they end, is
made here.
"""

from __future__ import annotations

import os
import select
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from wirewitness.analyser.analysis.processes.messages import SHARE_MADE, Shares, file_of_share
from wirewitness.analyser.analysis.processes.queue import give, take
from wirewitness.analyser.analysis.processes.shared_tables import SharedTables, Shown
from wirewitness.analyser.decoding.run.helpers import Helpers
from wirewitness.analyser.engine.facts.stage import Held


class StageDealing:
    """A `Dealer`. helpers: as many as make shares. tell: sends them a message. shown: where the tables are that they
    have seen; it grows.

    meanwhile: what this process does before it takes shares, once.
    """

    def __init__(
        self,
        helpers: Helpers,
        folder: Path,
        tables: SharedTables,
        shown: Mapping[str, Shown],
        tell: Callable[[Shares], None],
        meanwhile: Callable[[], None],
    ) -> None:
        self.processes = 1 + len(helpers.children)
        # How many shares others made.
        self.helped = 0
        self._helpers, self._folder, self._tables, self._shown, self._tell = helpers, folder, tables, shown, tell
        self._meanwhile: Callable[[], None] | None = meanwhile
        # Pipes of those that have not ended: whoever ends closes it.
        self._there = {child.stdout.fileno() for child in helpers.children if child.stdout is not None}
        self._given = 0

    def deal(self, work: str, tables: Sequence[str], held: Held, shares: int) -> Iterator[tuple[int, Path | None]]:
        """See `Dealer`."""
        own = {name: self._of(name, rows) for name, rows in held.items() if name in tables}
        shown = {**self._shown, **own}
        first, self._given = self._given, self._given + shares
        self._tell(Shares(work, tuple(shown[name] for name in tables if name in shown), (*own,), first, shares))
        give(self._helpers.giving_first, range(first, self._given))
        return self._made({*range(first, self._given)}, first)

    def _of(self, name: str, rows: pa.Table | Path) -> Shown:
        return Shown(name, 0, rows) if isinstance(rows, Path) else self._tables.put(name, rows)[0]

    def _made(self, waiting: set[int], first: int) -> Iterator[tuple[int, Path | None]]:
        if self._meanwhile is not None:
            meanwhile, self._meanwhile = self._meanwhile, None
            meanwhile()
        while (number := take(self._helpers.taking_first)) is not None:
            if number in waiting:  # else of a stage that failed
                waiting.remove(number)
                yield number - first, None
        while waiting and (told := self._heard()) is not None:
            number, made = told
            if number in waiting:
                waiting.remove(number)
                self.helped += made
                yield number - first, file_of_share(self._folder, number) if made else None
        for number in sorted(waiting):
            yield number - first, None

    def _heard(self) -> tuple[int, bool] | None:
        """What another process tells next: a share, and whether it is made. None when one has ended that may have had
        a share."""
        waiting = select.poll()
        waiting.register(self._helpers.hearing, select.POLLIN)
        for one in self._there:
            waiting.register(one, 0)
        ready = {one for one, _ in waiting.poll(None if self._there else 0)}
        if self._helpers.hearing in ready:
            number, made = SHARE_MADE.unpack(os.read(self._helpers.hearing, SHARE_MADE.size))
            return number, made
        self._there -= ready
        return None
