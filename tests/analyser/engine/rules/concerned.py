"""Which rules and stages of the context a scenario concerns, so that tests of hundreds of scenarios stay quick.

In: a scenario. Out: rules, or a connection with the scenario's tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import duckdb

from tests.analyser.engine.rules.scenarios import Scenario
from tests.support.rows import Rows, connection_from_rows
from tests.support.shares import RUNS_THE_REST
from wirewitness.analyser.analysis.all_rules import RULES
from wirewitness.analyser.engine.facts.stages import STAGES, Stage
from wirewitness.analyser.engine.rules import partitions as made
from wirewitness.analyser.engine.rules.frame import Frame
from wirewitness.analyser.engine.rules.partitions import Key
from wirewitness.analyser.engine.rules.requested_codes import asked
from wirewitness.analyser.engine.rules.rule import Rule
from wirewitness.analyser.tables.tables import TABLES


def concerned(scenario: Scenario) -> list[Rule]:
    """Those that an analysis asks, and the one that it is about."""
    filled = _filled(scenario.rows)
    filled |= {made for stage in STAGES if filled & _of_protocol(stage) for made in stage.makes}
    # Where rows of exchanges stand without their flows, these speak the same.
    spoken = {dict(row).get("protocol") for table in ("flows", "exchanges") for row in scenario.rows.get(table, ())}
    found = asked(RULES.values(), filled, spoken)
    return [one for one in RULES.values() if one in found or one.code == scenario.code]


def looked_at(scenario: Scenario) -> list[Rule]:
    """All that it concerns in the exhaustive run; in `make test` the rule that it is about and those expected of it."""
    codes = {scenario.code, *(code for code, _ in scenario.expected)}
    return [rule for rule in concerned(scenario) if RUNS_THE_REST or rule.code in codes]


def connected(scenario: Scenario, rules: Iterable[Rule] | None = None) -> duckdb.DuckDBPyConnection:
    """The tables with their context, as these rules read it, else those looked at. A stage that reads empty tables
    only would change nothing and is left out, and so is one whose own rows the scenario gives."""
    con = connection_from_rows(scenario.rows)
    for stage in stages_of(scenario.rows, looked_at(scenario) if rules is None else rules):
        stage.run(con)
    return con


def stages_of(rows: Rows, rules: Iterable[Rule]) -> list[Stage]:
    """The stages that `connected` runs on these rows for these rules, in their order."""
    given = _filled(rows)
    return [one for one in _wanted(rules) if given & _of_protocol(one) and not given & {*one.new}]


def _wanted(rules: Iterable[Rule]) -> list[Stage]:
    """Stages that make what these read, and those that make what such stages read, in their order."""
    names = {table for rule in rules for table in rule.needs}
    wanted: list[Stage] = []
    for stage in reversed(STAGES):
        if names & {*stage.makes}:
            names |= {*stage.reads, *stage.uses}
            wanted.insert(0, stage)
    return wanted


def partitions(con: duckdb.DuckDBPyConnection, rule: Rule) -> Iterator[tuple[Key, dict[str, Frame]]]:
    """Key and frames of every partition that `suspects` names, in the order of the keys."""
    with made.suspected(con, [rule]) as suspects:
        if suspects.rules:
            for key, some in made.partitions(con, [rule], suspects):
                yield from ((key, frames) for _, frames in some)


def _filled(rows: Rows) -> set[str]:
    return {table for table, some in rows.items() if some}


def _of_protocol(stage: Stage) -> set[str]:
    """Tables without which the stage has nothing to look at."""
    return {name for name in (*stage.makes, *stage.reads) if TABLES[name].protocol} or {*stage.reads}
