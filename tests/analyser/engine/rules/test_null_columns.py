"""Null means "not known": no rule breaks on it, prints it, or accuses somebody else because of it.

Each rule looks at its scenarios with one column at a time null, in all rows and in every second one. Columns that the
registry says are never null are left out. All cases of a scenario are partitions of one run: a name that the key has
anyway is marked with the case's number. Of the rules about Kafka's groups and producers near misses are looked at, too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.analyser.engine.rules.concerned import connected, partitions
from tests.analyser.engine.rules.scenarios import FAULTS, FIRES, NEAR_MISSES, Scenario
from tests.support.shares import every, share
from wirewitness.analyser.analysis.all_rules import RULES
from wirewitness.analyser.engine.incidents.incident_facts import facts_of
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.tables.tables import TABLES

# Columns whose null is an answer, or never comes without another one: rule, column, why.
NULL_SAYS = {
    ("KAF101", "cluster_id"): "a connection whose server is known has a cluster, if only one named after its brokers",
    ("KAF102", "ahead_step"): "null says that no commit was ahead, but what was fetched",
    ("KAF103", "read_from"): "null says that the client read nothing as low: it did not turn back",
    ("KAF105", "client_gap_ts"): "null says that no bytes of this client are missing",
    ("KAF113", "client_gap_ts"): "null says that no bytes of this client are missing",
    ("KAF126", "closed_by"): "null says that the connection of its last request is open",
    ("KAF126", "group_instance_id"): "null says that the member has no static name",
    ("KAF129", "failed_error_code"): "null says that it was not answered",
    ("KAF129", "read_since_highest"): "null says that the client read nothing as low: it did not turn back",
    ("KAF115", "generation"): "an assignment has it for all partitions: they stand in one response",
    ("KAF115", "member_id"): "an assignment has it for all partitions: they stand in one response",
    ("KAF115", "source"): "an assignment has it for all partitions: they stand in one response",
    ("KAF134", "group_id"): "a request of a group names it",
    ("KAF134", "topic"): "a commit names its topic, or the topic's id, of which the name is known",
    ("KAF132", "ts_ended"): "null says that nothing ended the member: it was heard until ts_last",
    ("KAF212", "ts_closed"): "null says that the connection is open",
    ("KAF205", "ts_accepted_after"): "null says that nothing of its kind was accepted later",
    ("KAF205", "ts_stored"): "null says that the batch was not stored later",
    ("KAF211", "ts_ended"): "null says that the transaction is open, and so it is left out",
    ("KAF215", "retransmitted_segments"): "it is counted on every connection that has packets",
    ("KAF215", "server_address"): "a connection has both of its ends",
    ("KAF215", "server_port"): "a connection has both of its ends",
}
SHOWN = re.compile(r"\b(None|NaT|nan|NaN)\b|<NA>")
MARK = "#"

Tables = dict[str, pa.Table]
Client = tuple[Any, ...]


class Case(NamedTuple):
    """One column of one table is null: in every second row, or in all. A key's column is null in all tables."""

    table: str
    column: str
    every_second: bool


def _named(rule: Rule, table: str, column: str) -> str:
    """What the table calls a column of a key."""
    return rule.keys.get(table, {}).get(column, column)


def _cases(rule: Rule, held: Tables) -> Iterator[Case]:
    for table, rows in held.items():
        for column in rule.columns(table):
            named = _named(rule, table, column)
            if TABLES[table].column(named).nullable and rows.column(named).null_count < len(rows):
                yield Case(table, column, False)
                if len(rows) > 1 and column not in rule.partition_by:
                    yield Case(table, column, True)


def _with_nulls(rows: pa.Table, column: str, every_second: bool) -> pa.Table:
    place, kept = rows.schema.get_field_index(column), rows.column(column).combine_chunks()
    nulls = pa.nulls(len(rows), kept.type)
    if every_second:
        nulls = pc.if_else(pa.array([number % 2 == 0 for number in range(len(rows))]), nulls, kept)
    return rows.set_column(place, column, nulls)


def _in_case(rule: Rule, held: Tables, case: Case) -> Tables:
    hit = held if case.column in rule.partition_by else {case.table}
    return {
        table: _with_nulls(rows, _named(rule, table, case.column), case.every_second) if table in hit else rows
        for table, rows in held.items()
    }


def _marked(rule: Rule, held: Tables, key: str, number: int) -> Tables:
    return {
        table: _with_mark(rows, rule.keys.get(table, {}).get(key, key), str(number)) for table, rows in held.items()
    }


def _with_mark(rows: pa.Table, key: str, mark: str) -> pa.Table:
    kept = pc.fill_null(rows.column(key).combine_chunks(), "")
    return rows.set_column(
        rows.schema.get_field_index(key), key, pc.binary_join_element_wise(kept, pa.scalar(mark), MARK)
    )


def _look_at(con: duckdb.DuckDBPyConnection, held: Tables) -> None:
    for table, rows in held.items():
        con.register(f"held_{table}", rows)
        con.execute(f"CREATE OR REPLACE TEMP VIEW {table} AS FROM held_{table}")


def _each_case(con: duckdb.DuckDBPyConnection, rule: Rule, held: Tables) -> Iterator[tuple[Case, Frames]]:
    """Every case with the frames that the rule is given in it."""
    cases = list(_cases(rule, held))
    names = [one for one in rule.partition_by if TABLES[next(iter(held))].column(one).kind == "string"]
    key = names[0] if names else None
    together = [case for case in cases if key is not None and case.column != key]
    if key is not None and together:
        all_of_them = [_marked(rule, _in_case(rule, held, case), key, number) for number, case in enumerate(together)]
        _look_at(con, {table: pa.concat_tables([one[table] for one in all_of_them]) for table in held})
        for values, frames in partitions(con, rule):
            mark = values[rule.partition_by.index(key)].rpartition(MARK)[2]
            yield together[int(mark)], frames
    for case in cases:
        if case not in together:
            _look_at(con, _in_case(rule, held, case))
            for _, frames in partitions(con, rule):
                yield case, frames


def _accused(finding: Finding) -> set[Client]:
    """Address and client id of each client that it names."""
    row = {"code": finding.code, "ts_first": finding.ts_first_ns, "ts_last": finding.ts_last_ns}
    culprits = facts_of(row, finding.numbers).culprits
    return {tuple(None if one is None else str(one).partition(MARK)[0] for one in client) for _, client in culprits}


def _is_one_of(client: Client, accused: set[Client]) -> bool:
    """The same as far as both are known."""
    return any(all(None in pair or pair[0] == pair[1] for pair in zip(client, one, strict=True)) for one in accused)


def _faults(finding: Finding, accused: set[Client]) -> Iterator[str]:
    for text in (finding.subject, finding.sentence, finding.next_step, json.dumps(finding.numbers).replace("NaN", "")):
        if SHOWN.search(text):
            yield f"says {text}"
    for one in finding.evidence:
        if one.packet is None and one.message_id is None:
            yield f"names nothing as evidence: {one}"
    if finding.severity != "info":
        yield from (f"accuses {one}: {finding.sentence}" for one in _accused(finding) if not _is_one_of(one, accused))


# The first scenario of every third rule; the others are looked at in the exhaustive run.
FIRST = {scenario.code: scenario for scenario in reversed(FIRES)}


@pytest.mark.parametrize("scenario", share([*FIRES, *FAULTS], every(3, FIRST.values())), ids=str)
def test_a_column_that_is_not_known_breaks_no_rule(scenario: Scenario) -> None:
    rule = RULES[scenario.code]
    con = connected(scenario, [rule])
    accused = {who for _, frames in partitions(con, rule) for one in rule.detect(frames) for who in _accused(one)}
    held = {table: con.sql(f"FROM {table}").to_arrow_table() for table in rule.reads}
    wrong: list[str] = []
    for case, frames in _each_case(con, rule, held):
        try:
            found = list(rule.detect(frames))
        except Exception as error:
            wrong.append(f"{case}: {error!r}")
        else:
            wrong += [f"{case}: {fault}" for finding in found for fault in _faults(finding, accused)]
    assert not wrong, "\n".join(wrong)


QUIET = [one for one in NEAR_MISSES if one.code[:4] in ("KAF1", "KAF2")]


@pytest.mark.parametrize("scenario", share(QUIET, every(3, {one.code: one for one in QUIET}.values())), ids=str)
def test_a_column_that_is_not_known_makes_no_accusation(scenario: Scenario) -> None:
    rule = RULES[scenario.code]
    con = connected(scenario, [rule])
    known = [one for _, frames in partitions(con, rule) for one in rule.detect(frames)]
    subjects = {one.subject for one in known if one.severity != "info"}
    held = {table: con.sql(f"FROM {table}").to_arrow_table() for table in rule.reads}
    accusing = [
        f"{case}: {finding.sentence}"
        for case, frames in _each_case(con, rule, held)
        if (rule.code, case.column) not in NULL_SAYS
        for finding in rule.detect(frames)
        if finding.severity != "info" and not subjects
    ]
    assert not accusing, "\n".join(accusing)
