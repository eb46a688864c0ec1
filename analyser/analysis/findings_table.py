"""The findings of captures. In: tables that are made when they are asked for. Out: the table of findings.

Tables come in turns: first those that stages up to that of commits read, then what each of these makes, all others that
stand for themselves, and what each other stage makes; one process makes only those that a rule wants whose signs are
there (`signs_of`). With helpers that decoded, rules whose tables are there run while the next ones are made
(`analyser/analysis/processes/scheduler.py`), and stages are made in shards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from wirewitness.analyser.analysis.all_rules import RULES, rules_about
from wirewitness.analyser.analysis.processes.scheduler import RuleDealing
from wirewitness.analyser.analysis.processes.shared_tables import Shown
from wirewitness.analyser.analysis.views import Views
from wirewitness.analyser.base.faults import told
from wirewitness.analyser.engine.facts.shards import Dealer
from wirewitness.analyser.engine.facts.stages import STAGE_OF, STAGES
from wirewitness.analyser.engine.rules.clocks import CLOCK_TABLES
from wirewitness.analyser.engine.rules.evidence_packets import MESSAGES
from wirewitness.analyser.engine.rules.failures import failure_of
from wirewitness.analyser.engine.rules.findings import findings_table, stories_table
from wirewitness.analyser.engine.rules.partition_sql import families, tables_named
from wirewitness.analyser.engine.rules.requested_codes import asked, signs_of, with_signs
from wirewitness.analyser.engine.rules.rule import Rule
from wirewitness.analyser.engine.rules.running import Failure, run
from wirewitness.analyser.tables.tables import TABLES

if TYPE_CHECKING:
    from wirewitness.analyser.decoding.run.helpers import Helpers

# Made of findings, and the findings.
_LAST = ("findings", "stands_out")
# With fewer rows than these in all tables, one process is done before another could begin.
FEW_ROWS = 1 << 15
# Stages up to the first one that helpers take part in.
_FIRST = next(number for number, stage in enumerate(STAGES, 1) if stage.in_shards)
# Of a table with more rows than these, rules of one key are offered only when all of them can run, so that its rows are
# read once for all of them.
_MANY_ROWS = 1 << 18


class Finishing(Protocol):
    """Tables on their way.

    views: of those that are made. dealer: of shards of stages, while there is one. failures, faults: as in `Analysis`.
    """

    names: tuple[str, ...]
    views: Views
    failures: list[Failure]
    faults: list[str]
    dealer: Dealer | None

    @property
    def decoded_rows(self) -> int:
        """How many rows all tables have as they were decoded."""
        ...

    def ensure(self, name: str) -> None:
        """Make the view of a table."""
        ...

    def may_have_rows(self, name: str) -> bool:
        """Could it have any? Known before it is made."""
        ...


def detected(tables: Finishing, helpers: Helpers | None) -> pa.Table:
    """The table of findings, after all others were made. helpers: processes that run some of the rules; ended by the
    caller."""
    turns = _turns(tables.names)
    if helpers is None or not helpers.children:
        return _alone(tables, turns)
    if tables.decoded_rows >= FEW_ROWS:
        try:
            return _dealt(tables, turns, helpers)
        except Exception as error:
            tables.faults.append(told(error, "what deals rules out", "one process runs all of them"))
        finally:
            tables.dealer = None
    helpers.end()
    return _alone(tables, turns)


def _turns(names: Sequence[str]) -> list[list[str]]:
    """Names of tables in the order in which they are made: in each turn those that need what came before."""
    plain = [name for name in names if name not in STAGE_OF and name not in _LAST]
    made = [[name for name in stage.makes if name in names and not TABLES[name].on_request] for stage in STAGES]
    read = {"flows", *(name for stage in STAGES[:_FIRST] for name in (*stage.reads, *stage.uses))}
    beside = [name for name in plain if name not in read]
    return [[name for name in plain if name in read], *made[:_FIRST], beside, *made[_FIRST:]]


def _alone(tables: Finishing, turns: Sequence[Sequence[str]]) -> pa.Table:
    """Tables of rules that can find nothing are not made: they would take most of the time of a small capture."""
    every, views = [name for names in turns for name in names], tables.views
    protocols = _spoken(tables)
    filled = {*filter(tables.may_have_rows, every)}
    about = rules_about({*protocols, *(TABLES[name].protocol for name in filled)})
    rules = [one for one in asked(about, filled, protocols) if one.needs <= {*tables.names}]
    of_signs = filled & {name for one in rules for name in signs_of(one)}
    for name in every:
        if name in of_signs:
            tables.ensure(name)
    rules = with_signs(views.con, rules, of_signs)
    wanted = tables_named(rules) | {MESSAGES, *CLOCK_TABLES}
    there = [name for name in every if name in wanted]
    for name in there:
        tables.ensure(name)
    rules = asked(rules, _filled(tables, there), protocols)
    return findings_table(run(views.con, rules, tables.failures, rows=views.rows, folder=views.folder))


def _dealt(tables: Finishing, turns: Sequence[Sequence[str]], helpers: Helpers) -> pa.Table:
    for name in turns[0]:
        tables.ensure(name)
    protocols = _spoken(tables)
    expected = asked(RULES.values(), tables.names, protocols)
    kin = {one.code: family for family in families(expected) for one in family}

    def meanwhile() -> None:
        for name in turns[_FIRST + 1]:
            tables.ensure(name)

    views = tables.views
    dealing = RuleDealing(helpers, views.folder, tables.names, views.temporary_bytes, meanwhile)
    tables.dealer = dealing.stages
    ready: set[str] = set()
    filled: set[str] = set()
    waiting = expected
    for names in turns:
        for name in names:
            tables.ensure(name)
        filled |= _filled(tables, names)
        shown = [_shown(tables, dealing, name) for name in names if name in filled]
        ready |= {*names}
        made = [one for one in waiting if ready.issuperset(one.needs & {*tables.names})]
        later = {one.code for one in waiting} - {one.code for one in made}
        now = [one for one in made if later.isdisjoint(_beside(one, kin[one.code], views.rows))]
        waiting = [one for one in waiting if one not in now]
        of_one_key = families(asked(now, filled, protocols))
        dealing.offer(shown, sorted(of_one_key, key=lambda some: -sum(_read(one, views.rows) for one in some)))
    given = {one.code: looked for one, looked in dealing.looked(views.con, views.rows, tables.faults)}
    in_order = [(one.code, given[one.code]) for one in expected if one.code in given]
    tables.failures += [failure_of(code, data) for code, looked in in_order for data in looked.failures]
    return stories_table(row for _, looked in in_order for row in looked.rows)


def _shown(tables: Finishing, dealing: RuleDealing, name: str) -> Shown:
    held = tables.views.held(name)
    if isinstance(held, Path):
        return Shown(name, tables.views.rows[name], held)
    shown, rows = dealing.put(name, held)
    tables.views.register(name, rows)
    return shown


def _has_many(rule: Rule, rows: Mapping[str, int]) -> bool:
    """Does it look at partitions of a table with many rows?"""
    return bool(rule.partition_by) and max(rows.get(table, 0) for table in rule.reads) > _MANY_ROWS


def _beside(rule: Rule, family: Sequence[Rule], rows: Mapping[str, int]) -> set[str]:
    """The codes of those rules that look at the same many rows as this one."""
    return {one.code for one in family if _has_many(one, rows)} if _has_many(rule, rows) else set()


def _read(rule: Rule, rows: Mapping[str, int]) -> int:
    """How much a rule has to read at most."""
    return sum(rows.get(table, 0) for table in rule.reads)


def _filled(tables: Finishing, names: Sequence[str]) -> set[str]:
    """Those of these tables that have rows."""
    tables.views.count(names)
    return {name for name in names if tables.views.rows[name]}


def _spoken(tables: Finishing) -> set[str | None]:
    """The protocols of flows, None for what nobody could read."""
    if "flows" not in tables.names:
        return set()
    tables.ensure("flows")
    return {name for (name,) in tables.views.con.execute("SELECT DISTINCT protocol FROM flows").fetchall()}
