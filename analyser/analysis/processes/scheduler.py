"""Rules dealt to this process and to helpers that have decoded. In: tables as they are finished, rules that read them.
Out: what all rules gave, in one fixed order.

Rules are offered as soon as all their tables are there, so helpers run them while this process still makes the others,
and those with most to read come first. Rules of one key are taken together. In the end this
process takes rules as the others do. A rule whose process does not tell what it gave runs here.
"""

from __future__ import annotations

import os
import select
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import duckdb
import pyarrow as pa

from wirewitness.analyser.analysis.processes.evaluate import look
from wirewitness.analyser.analysis.processes.messages import (
    SHARD_MADE,
    Begin,
    Looked,
    LookedAt,
    Offer,
    Shards,
    file_of_shard,
)
from wirewitness.analyser.analysis.processes.queue import give, take, taken
from wirewitness.analyser.analysis.processes.shared_tables import SharedTables, Shown
from wirewitness.analyser.base.faults import told
from wirewitness.analyser.decoding.run.child import Child
from wirewitness.analyser.decoding.run.helpers import Helpers
from wirewitness.analyser.decoding.run.shard import ShardFailed
from wirewitness.analyser.decoding.run.shared_memory import Area
from wirewitness.analyser.engine.facts.stage import Held
from wirewitness.analyser.engine.rules.rule import Rule

# Shares of the stages of the context, dealt to this process and to helpers. In: the work, and where its tables are.
# Out: numbers of shards, with the files of those that others made.
#
# Shares go before rules, since this process waits for them. What others fail to make, or take along when they end, is
# made here.


class StageDealing:
    """A `Dealer`. helpers: as many as make shards. tell: sends them a message. shown: where the tables are that they
    have seen; it grows.

    meanwhile: what this process does before it takes shards, once.
    """

    def __init__(
        self,
        helpers: Helpers,
        folder: Path,
        tables: SharedTables,
        shown: Mapping[str, Shown],
        tell: Callable[[Shards], None],
        meanwhile: Callable[[], None],
    ) -> None:
        self.processes = 1 + len(helpers.children)
        # How many shards others made.
        self.helped = 0
        self._helpers, self._folder, self._tables, self._shown, self._tell = helpers, folder, tables, shown, tell
        self._meanwhile: Callable[[], None] | None = meanwhile
        # Pipes of those that have not ended: whoever ends closes it.
        self._there = {child.stdout.fileno() for child in helpers.children if child.stdout is not None}
        self._given = 0

    def deal(self, work: str, tables: Sequence[str], held: Held, shards: int) -> Iterator[tuple[int, Path | None]]:
        """See `Dealer`."""
        own = {name: self._of(name, rows) for name, rows in held.items() if name in tables}
        shown = {**self._shown, **own}
        first, self._given = self._given, self._given + shards
        self._tell(Shards(work, tuple(shown[name] for name in tables if name in shown), (*own,), first, shards))
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
                yield number - first, file_of_shard(self._folder, number) if made else None
        for number in sorted(waiting):
            yield number - first, None

    def _heard(self) -> tuple[int, bool] | None:
        """What another process tells next: a shard, and whether it is made. None when one has ended that may have had
        a shard."""
        waiting = select.poll()
        waiting.register(self._helpers.hearing, select.POLLIN)
        for one in self._there:
            waiting.register(one, 0)
        ready = {one for one, _ in waiting.poll(None if self._there else 0)}
        if self._helpers.hearing in ready:
            number, made = SHARD_MADE.unpack(os.read(self._helpers.hearing, SHARD_MADE.size))
            return number, made
        self._there -= ready
        return None


_WORK = "ran rules"


class RuleDealing:
    """What is offered so far. helpers: as many as are asked; whoever has this ends them.

    names: all tables that there are. temporary_bytes: what queries of a helper may spill. meanwhile: see
    `StageDealing`.
    """

    def __init__(
        self,
        helpers: Helpers,
        folder: Path,
        names: Sequence[str],
        temporary_bytes: int,
        meanwhile: Callable[[], None] = lambda: None,
    ) -> None:
        self._helpers = helpers
        self._children = [*map(Child, helpers.children)]
        self._folder = folder
        self._tables = SharedTables(Area(helpers.tables))
        self._offered: list[Sequence[Rule]] = []
        # Codes of rules that helpers ran.
        self.helped: list[str] = []
        self._shown: dict[str, Shown] = {}
        self.stages = StageDealing(helpers, folder, self._tables, self._shown, self._tell, meanwhile)
        queues = helpers.taking, helpers.taking_first, helpers.telling
        self._tell(Begin(folder, helpers.tables, *queues, tuple(names), temporary_bytes))

    def put(self, name: str, rows: pa.Table) -> tuple[Shown, pa.Table]:
        """Lay rows where all see them; where, and the rows that lie there."""
        return self._tables.put(name, rows)

    def offer(self, tables: Sequence[Shown], rules: Sequence[Sequence[Rule]]) -> None:
        """These rules read tables that were shown now or before; they are taken in this order, some together."""
        first = len(self._offered)
        self._shown.update({one.name: one for one in tables})
        self._tell(Offer(tuple(tables), tuple(tuple(one.code for one in some) for some in rules)))
        self._offered += rules
        give(self._helpers.giving, range(first, len(self._offered)))

    def looked(
        self,
        con: duckdb.DuckDBPyConnection,
        rows: Mapping[str, int],
        faults: list[str],
    ) -> Iterator[tuple[Rule, Looked]]:
        """What each of the offered rules gave, once no more are offered. rows: as in `look`. faults: gets sentences
        about processes that are gone."""
        self._helpers.no_more()
        run = partial(look, con, rows=rows, folder=self._folder)
        found = run(taken(self._helpers.taking), self._offered)
        for child in self._children:
            try:
                heard = _heard(child).found
                found.update(heard)
                self.helped += heard
            except ShardFailed as error:
                faults.append(told(error, "a process that ran rules", "its rules ran in another one"))
        every = [one for some in self._offered for one in some]
        missing = [one for one in every if one.code not in found]
        found.update(run(range(len(missing)), [[one] for one in missing]))
        return ((one, found[one.code]) for one in every)

    def _tell(self, message: Begin | Offer | Shards) -> None:
        for child in self._children:
            child.tell(message)


def _heard(child: Child) -> LookedAt:
    told = child.hear(_WORK)
    if not isinstance(told, LookedAt):
        raise ShardFailed(f"a process that {_WORK} told something else")
    if told.failure:
        raise ShardFailed(f"a process that {_WORK} failed: {told.failure}")
    return told
