"""Rows that are read once for all rules of a key, against rows grouped one by one in Python."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.analyser.engine.rules.concerned import connected, looked_at
from tests.analyser.engine.rules.scenarios import FAULTS, FIRES
from tests.analyser.engine.rules.scenarios.build import commit
from tests.support.rows import connection_from_rows
from tests.support.shares import every, proves_more, share
from wirewitness.analyser.analysis.all_rules import RULES
from wirewitness.analyser.engine.facts.topics import views
from wirewitness.analyser.engine.rules import limits, partitions
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import rows_of
from wirewitness.analyser.engine.rules.limits import PartitionTooLarge, TooManyCompared, compared
from wirewitness.analyser.engine.rules.partition_sql import families, suspected_from, suspects_sql
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.engine.rules.running import Failure, run
from wirewitness.analyser.tables.tables import TABLES

ALL = [*{scenario.code: scenario for scenario in reversed(FIRES)}.values(), *FAULTS]
NUMBERS = range(len(ALL))
EACH_SCENARIO = pytest.mark.parametrize("index", share(NUMBERS, every(4, NUMBERS)), ids=lambda n: str(ALL[n]))
BY_SUSPECTS = [one for one in RULES.values() if one.suspects is not None]
COMMITS = "kafka_offset_commits"


def two_members(frames: Frames) -> Iterator[Finding]:
    """One finding per partition."""
    proof = Proof(1, 1, [Evidence(None, 1, None)])
    key = repr(frames[COMMITS]["topic"].first())
    yield TWO_MEMBERS.finding(subject={"topic": key}, sentence="", next_step="", proof=proof, numbers={})


# A rule that suspects partitions that two members committed, over the raw rows.
TWO_MEMBERS = replace(
    RULES["KAF104"],
    code="KAF900",
    detect=two_members,
    suspects=f"SELECT cluster_id, group_id, topic, partition FROM r_{COMMITS} "
    "GROUP BY ALL HAVING count(DISTINCT member_id) > 1",
)

Grouped = dict[tuple[Any, ...], dict[str, list[dict[str, Any]]]]


def key_of(rule: Rule, table: str, row: Mapping[str, Any]) -> tuple[Any, ...]:
    def value(key: str) -> Any:
        if key == "topic" and "topic_id" in TABLES[table].column_names():
            return row["topic"] if row["topic"] is not None else row["topic_id"]
        return row[rule.keys.get(table, {}).get(key, key)]

    return tuple(map(value, rule.partition_by))


def times_in_ns(rule: Rule, table: str) -> str:
    own = TABLES[table].columns
    return ", ".join(f"epoch_ns({c.name}) AS {c.name}" for c in own if c.kind == "time")


def grouped(con: duckdb.DuckDBPyConnection, rule: Rule) -> Grouped:
    """The partitions that a rule suspects, row by row; rows in any order."""
    found: Grouped = {}
    for table in rule.reads:
        times = times_in_ns(rule, table)
        rows = con.sql(f"SELECT * {f'REPLACE ({times})' if times else ''} FROM {table} "
                       f"WHERE {rule.rows.get(table, 'true')}")  # fmt: skip
        for values in rows.fetchall():
            row = dict(zip(rows.columns, values, strict=True))
            key = key_of(rule, table, row)
            own = {name: row[name] for name in rule.columns(table) if name not in rule.partition_by}
            own |= dict(zip(rule.partition_by, key, strict=True))
            found.setdefault(key, {}).setdefault(table, []).append(own)
    if rule.suspects is not None:
        keys = {tuple(row[:-1]) for row in con.execute(suspects_sql([rule])).fetchall()}
        found = {key: tables for key, tables in found.items() if key in keys}
    return found


def comparable(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    return sorted(repr(sorted(row.items())) for row in rows)


def looked(con: duckdb.DuckDBPyConnection, rules: list[Rule], **given: Any) -> Iterator[tuple[Any, Rule, Frames]]:
    with partitions.suspected(con, rules) as suspects:
        if suspects.rules:
            for key, some in partitions.partitions(con, rules, suspects, **given):
                for rule, frames in some:
                    yield key, rule, frames


@pytest.mark.parametrize("held", ["in memory", "in files"])
@EACH_SCENARIO
@proves_more
def test_partitions_of_rules_of_one_key(index: int, held: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each rule gets the rows that it wants of the keys that it suspects, whatever the others of its key want."""
    if held == "in files":
        monkeypatch.setattr(partitions, "MOST_HELD_BYTES", 0)
        monkeypatch.setattr(partitions, "BATCH_ROWS", 3)
    con, rules = connected(ALL[index]), looked_at(ALL[index])
    for family in families(rules):
        found: dict[str, Grouped] = {rule.code: {} for rule in family}
        for key, rule, frames in looked(con, family, folder=tmp_path if held == "in files" else None):
            assert key not in found[rule.code]
            found[rule.code][key] = {table: rows_of(frame) for table, frame in frames.items() if len(frame)}
        for rule in family:
            expected = grouped(con, rule)
            assert found[rule.code].keys() == expected.keys(), rule.code
            for key, tables in expected.items():
                own = found[rule.code][key]
                assert {t: comparable(r) for t, r in own.items()} == {t: comparable(r) for t, r in tables.items()}
    assert [*tmp_path.iterdir()] == []
    assert not [name for name in views(con) if name.startswith("wirewitness")]


def commits(topics: Iterable[str | None]) -> list[dict[str, Any]]:
    return [
        {"ts": 10**18 + number, "cluster_id": "c", "group_id": "g", "topic": topic, "topic_id": "t-5", "partition": 0,
         "member_id": f"m-{number % 3}", "committed_offset": number, "error_code": 0, "exchange_id": f"e-{number}"}
        for number, topic in enumerate(topics)
    ]  # fmt: skip


def test_a_topic_without_a_name_is_told_by_its_id_and_keys_come_in_the_order_of_their_bytes() -> None:
    con = connection_from_rows({COMMITS: commits(["ü", None, "a", "z", "ü", None, "a"])})
    found = [key[2] for key, *_ in looked(con, [TWO_MEMBERS])]
    assert found == ["a", "t-5", "ü"]
    assert found == sorted(key[2] for key in grouped(con, TWO_MEMBERS))


def seeing(rule: Rule, seen: list[str], suspects: str | None) -> Rule:
    def detect(frames: Any) -> Iterable[Any]:
        seen.extend(frame["topic"].first() for frame in frames.values() if len(frame))
        return ()

    return replace(rule, detect=detect, suspects=suspects)


@pytest.mark.parametrize("suspects", [f"SELECT * FROM r_{COMMITS}", None], ids=["suspected", "all"])
@pytest.mark.parametrize("others", [0, 1], ids=["alone", "with another rule"])
def test_partitions_that_are_too_large_are_left_out(others: int, suspects: str | None) -> None:
    con = connection_from_rows({COMMITS: commits(["a", "a", *"bbbb", "c", "c", *"dddddd"])})
    seen: list[str] = []
    failures: list[Failure] = []
    rule = seeing(TWO_MEMBERS, seen, suspects)
    run(con, [rule, *[replace(RULES["KAF104"])] * others], failures, most_rows=3)
    keys = [("c", "g", topic, 0) for topic in ("b", "d")]
    own = [(one.key, type(one.error)) for one in failures if one.code == rule.code]
    assert own == [(key, PartitionTooLarge) for key in keys]
    assert sorted(seen) == ["a", "c"]
    assert not [name for name in views(con) if name.startswith("wirewitness")]


def test_a_capture_as_a_whole_may_be_too_large() -> None:
    rows = [{"ts": 10**18 + n, "flow_id": "f", "code": "gap", "group": "tcp", "packet": n} for n in range(9)]
    con = connection_from_rows({"expert_infos": rows, "flows": [{"flow_id": "f", "gap_bytes": 9}]})
    failures: list[Failure] = []
    assert run(con, [replace(RULES["CAP101"], rows={})], failures, most_rows=3) == []
    assert [(one.code, one.key, type(one.error)) for one in failures] == [("CAP101", (), PartitionTooLarge)]


def test_those_of_one_key_are_together_in_their_order() -> None:
    def codes(*wanted: str) -> list[list[str]]:
        return [[one.code for one in family] for family in families(RULES[code] for code in wanted)]

    assert codes("KAF102", "KAF101", "KAF120", "KAF103", "KAF123") == [
        ["KAF102", "KAF103"], ["KAF101"], ["KAF120", "KAF123"],
    ]  # fmt: skip


def test_a_table_has_one_key_for_all_of_them() -> None:
    """Two that call other columns of a table the key would want other rows of it together."""
    first = TWO_MEMBERS
    other = replace(first, code="KAF901", keys={COMMITS: {"group_id": "member_id"}})
    assert [len(family) for family in families([first, other, first])] == [2, 1]


def test_every_rule_is_in_one_family() -> None:
    assert sorted(one.code for family in families(RULES.values()) for one in family) == sorted(RULES)


TOPICS = ["a", "b", None]


@pytest.fixture
def con() -> duckdb.DuckDBPyConnection:
    rows = [commit(n, n, topic=topic, member_id=f"m-{n % 2}") for n in range(6) for topic in TOPICS]
    return connection_from_rows({COMMITS: rows})


@pytest.mark.parametrize("most", [1, 3, 100])
def test_keys_of_suspects_are_in_a_table_until_it_is_left(con: duckdb.DuckDBPyConnection, most: int) -> None:
    """With a bit for each rule that suspects."""
    nobody = replace(RULES["KAF104"], suspects=f"SELECT * FROM r_{COMMITS} WHERE false")
    rules = [nobody, TWO_MEMBERS, replace(TWO_MEMBERS, suspects=None)]
    with partitions.suspected(con, rules, most_keys=most) as (name, numbers, always):
        rows = con.execute(f"FROM {name}").fetchall()
        assert sorted(map(repr, rows)) == sorted(map(repr, con.execute(suspects_sql(rules)).fetchall()))
        assert {row[-1] for row in rows} == {0b10}
    assert (numbers, always) == ({1, 2}, {2})
    assert len(rows) == len(TOPICS)
    with pytest.raises(duckdb.CatalogException):
        con.execute(f"FROM {name}")


def test_nobody_and_everybody(con: duckdb.DuckDBPyConnection) -> None:
    with partitions.suspected(con, [RULES["KAF105"]]) as suspects:
        assert suspects.rules == frozenset()
    with partitions.suspected(con, [RULES["CAP101"]]) as suspects:
        assert suspects == (None, {0}, {0})


def test_without_rows_in_the_tables_that_tell_of_them_there_are_no_suspects() -> None:
    """So such rules need not be asked."""
    empty = connection_from_rows({})
    for rule in BY_SUSPECTS:
        assert suspected_from(rule), rule.code
        assert empty.execute(suspects_sql([rule])).fetchall() == [], rule.code


@pytest.mark.parametrize("known", [{}, {COMMITS: 18}, {COMMITS: 0}])
def test_tables_that_are_known_to_be_empty_are_not_asked(con: duckdb.DuckDBPyConnection, known: dict[str, int]) -> None:
    found = run(con, [TWO_MEMBERS], rows=known)
    assert len(found) == (0 if known.get(COMMITS) == 0 else len(TOPICS))


def finding(subject: str) -> Finding:
    proof = Proof(1, 1, [Evidence(None, 1, None)])
    rule = replace(TWO_MEMBERS, code="KAF901")
    return replace(rule.finding(subject={}, sentence="", next_step="", proof=proof, numbers={}), subject=subject)


def test_what_a_rule_compares_is_limited_for_all_partitions_and_what_it_found_stays(
    con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other rules go on."""
    monkeypatch.setattr(limits, "MOST_COMPARED", 25)
    healthy = TWO_MEMBERS

    def detect(frames: Frames) -> Iterator[Finding]:
        key = repr(frames[COMMITS]["topic"].first())
        yield finding(key)
        compared(10)
        yield finding(f"{key}!")

    greedy = replace(healthy, code="KAF901", detect=detect, suspects=None)
    failures: list[Failure] = []
    found = run(con, [greedy, healthy], failures)
    assert [one.subject for one in found if one.code == "KAF901"] == ["None", "None!", "'a'", "'a'!", "'b'"]
    assert sum(one.code == TWO_MEMBERS.code for one in found) == len(TOPICS)
    assert [(one.code, one.key, type(one.error), one.is_own_fault) for one in failures] == [
        ("KAF901", (), TooManyCompared, False)
    ]
    compared(10**9)  # outside a run nothing is counted
