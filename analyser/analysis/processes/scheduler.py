"""Rules dealt to this process and to helpers that have decoded. In: tables as they are finished, rules that read them.
Out: what all rules gave, in one fixed order.

Rules are offered as soon as all their tables are there, so helpers run them while this process still makes the others,
and those with most to read come first. Rules that look at the same rows in turns are taken together. In the end this
process takes rules as the others do. A rule whose process does not tell what it gave runs here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import duckdb
import pyarrow as pa

from wirewitness.analyser.analysis.processes.evaluate import look
from wirewitness.analyser.analysis.processes.messages import Begin, Looked, LookedAt, Offer, Shares
from wirewitness.analyser.analysis.processes.queue import give, taken
from wirewitness.analyser.analysis.processes.shared_tables import SharedTables, Shown
from wirewitness.analyser.analysis.processes.stage_shards import StageDealing
from wirewitness.analyser.base.faults import caught, sentence
from wirewitness.analyser.decoding.run.child import Child
from wirewitness.analyser.decoding.run.helpers import Helpers
from wirewitness.analyser.decoding.run.shard import ShareFailed
from wirewitness.analyser.decoding.run.shared_memory import Area
from wirewitness.analyser.engine.rules.rule import Detector

_WORK = "ran rules"


class RuleDealing:
    """What is offered so far. helpers: as many as are asked; whoever has this ends them.

    names: all tables that there are. expected: rules that may be offered. meanwhile: see `StageDealing`.
    """

    def __init__(
        self,
        helpers: Helpers,
        folder: Path,
        names: Sequence[str],
        expected: Sequence[Detector],
        meanwhile: Callable[[], None] = lambda: None,
    ) -> None:
        self._helpers = helpers
        self._children = [*map(Child, helpers.children)]
        self._folder = folder
        self._tables = SharedTables(Area(helpers.tables))
        self._expected = expected
        self._offered: list[Sequence[Detector]] = []
        # Codes of rules that helpers ran.
        self.helped: list[str] = []
        self._shown: dict[str, Shown] = {}
        self.stages = StageDealing(helpers, folder, self._tables, self._shown, self._tell, meanwhile)
        codes = tuple(one.code for one in expected)
        self._tell(
            Begin(folder, helpers.tables, helpers.taking, helpers.taking_first, helpers.telling, tuple(names), codes)
        )

    def put(self, name: str, rows: pa.Table) -> tuple[Shown, pa.Table]:
        """Lay rows where all see them; where, and the rows that lie there."""
        return self._tables.put(name, rows)

    def offer(self, tables: Sequence[Shown], detectors: Sequence[Sequence[Detector]]) -> None:
        """These rules read tables that were shown now or before; they are taken in this order, some together."""
        first = len(self._offered)
        self._shown.update({one.name: one for one in tables})
        self._tell(Offer(tuple(tables), tuple(tuple(one.code for one in some) for some in detectors)))
        self._offered += detectors
        give(self._helpers.giving, range(first, len(self._offered)))

    def looked(
        self,
        con: duckdb.DuckDBPyConnection,
        rows: Mapping[str, int],
        tables: Mapping[str, pa.Table | Path],
        faults: list[str],
    ) -> Iterator[tuple[Detector, Looked]]:
        """What each of the offered rules gave, once no more are offered. rows, tables: as in `look`. faults: gets
        sentences about processes that are gone."""
        self._helpers.no_more()
        run = partial(look, con, rows=rows, tables=tables, folder=self._folder)
        found = run(taken(self._helpers.taking), self._offered, self._expected)
        for child in self._children:
            try:
                heard = _heard(child).found
                found.update(heard)
                self.helped += heard
            except ShareFailed as error:
                faults.append(sentence(caught(error), "a process that ran rules", "its rules ran in another one"))
        every = [one for some in self._offered for one in some]
        missing = [one for one in every if one.code not in found]
        found.update(run(range(len(missing)), [[one] for one in missing], missing))
        return ((one, found[one.code]) for one in every)

    def _tell(self, message: Begin | Offer | Shares) -> None:
        for child in self._children:
            child.tell(message)


def _heard(child: Child) -> LookedAt:
    told = child.hear(_WORK)
    if not isinstance(told, LookedAt):
        raise ShareFailed(f"a process that {_WORK} told something else")
    if told.failure:
        raise ShareFailed(f"a process that {_WORK} failed: {told.failure}")
    return told
