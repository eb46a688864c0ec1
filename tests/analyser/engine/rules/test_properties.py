"""Random commits: nothing raises, prefilters lose nothing, and steps back are counted as a plain loop counts them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import duckdb
import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st

from tests.analyser.engine.rules.concerned import concerned, connected
from tests.analyser.engine.rules.scenarios import Scenario
from tests.analyser.engine.rules.scenarios.build import Row, at, commit, fetch, stored
from tests.support.shares import examples
from wirewitness.analyser.analysis.all_rules import RULES
from wirewitness.analyser.engine.rules.findings import Finding, findings_table
from wirewitness.analyser.engine.rules.rule import Rule
from wirewitness.analyser.engine.rules.running import run
from wirewitness.analyser.kafka.rules.commits import (
    COMMITS,
    Commit,
    broker_order,
)

NAMES = st.sampled_from(["m1", "m2", ""])
MOMENT = st.integers(0, 40).map(lambda n: n / 4)
FEW = examples(25, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def commits(draw: st.DrawFn) -> Row:
    start = draw(MOMENT)
    member = draw(NAMES)
    more: dict[str, Any] = {
        "ts_response": draw(st.sampled_from([at(start) + 1, at(start + 0.25), at(start + 3), None])),
        "group_id": draw(st.sampled_from(["billing", "billing", "audit"])),
        "cluster_id": draw(st.sampled_from(["c1", "c1", None])),
        "partition": draw(st.integers(0, 1)),
        "error_code": draw(st.sampled_from([0, 0, 0, 0, 0, 14, 22, 25, 27, 30, None])),
        "api": draw(st.sampled_from(["OffsetCommit", "OffsetCommit", "TxnOffsetCommit"])),
        "generation": draw(st.sampled_from([-1, 4, 5, 5, None])),
        "topic": draw(st.sampled_from(["payments", "payments", None])),
        "topic_id": draw(st.sampled_from([None, "id1"])),
        "flow_id": draw(st.sampled_from(["f1", "f2"])),
    }
    return commit(start, draw(st.sampled_from([1 - 2**63, -1, 0, 5, 6, 7, 10, 2**62])), member, **more)


READS = st.lists(
    st.builds(fetch, MOMENT, st.sampled_from([0, 5, 8, 11, None]), st.sampled_from(["m1", "m2"])), max_size=8
)
TOLD = st.lists(st.builds(stored, MOMENT, st.sampled_from([0, 5, 8])), max_size=3)


class Examined(NamedTuple):
    """The rows on a connection, the rules that read one of their tables, and what these find."""

    con: duckdb.DuckDBPyConnection
    rules: list[Rule]
    found: list[Finding]


def examined(rows: list[Row], reads: Sequence[Row] = (), told: Sequence[Row] = (), code: str = "") -> Examined:
    """What all of them find, or the rule of one code."""
    tables = {COMMITS: rows, "kafka_fetch_partitions": reads, "kafka_offset_fetches": told}
    scenario = Scenario("random", "", tables, frozenset())
    rules = [RULES[code]] if code else concerned(scenario)
    con = connected(scenario, rules)
    return Examined(con, rules, run(con, rules))


def assert_prefilters_lose_nothing(case: Examined) -> None:
    filtered = [rule for rule in case.rules if rule.suspects is not None]
    everywhere = run(case.con, [replace(rule, suspects=None) for rule in filtered])
    codes = {rule.code for rule in filtered}
    assert everywhere == [finding for finding in case.found if finding.code in codes]


@FEW
@given(rows=st.lists(commits(), max_size=40), reads=READS, told=TOLD)
def test_nothing_raises_and_prefilters_lose_nothing(rows: list[Row], reads: list[Row], told: list[Row]) -> None:
    case = examined(rows, reads, told)
    assert findings_table(case.found).num_rows == len(case.found)
    assert_prefilters_lose_nothing(case)


@FEW
@given(rows=st.lists(commits(), max_size=6))
def test_prefilters_lose_nothing_among_few_rows(rows: list[Row]) -> None:
    """With few rows a partition has one reason to be looked at, or none."""
    same = [row | {"partition": 0, "topic": "payments", "cluster_id": "c1", "group_id": "billing"} for row in rows]
    assert_prefilters_lose_nothing(examined(same))


def racing(first: Commit, second: Commit) -> bool:
    """On different flows, and open at the same time, as far as is known."""
    if first.flow_id == second.flow_id:
        return False
    if first.ts_response is None or second.ts_response is None:
        return True
    return first.ts < second.ts_response and second.ts < first.ts_response


@FEW
@given(rows=st.lists(commits(), max_size=12))
def test_kaf103_counts_every_step_back_once(rows: list[Row]) -> None:
    found, expected = examined(rows, code="KAF103").found, 0
    for own in accepted(rows).values():
        assert own == sorted(own, key=broker_order)
        expected += sum(b.committed_offset < a.committed_offset and not racing(a, b) for a, b in pairwise(own))
    assert sum(f.numbers["steps_back"] for f in found) == expected


def accepted(rows: list[Row]) -> dict[tuple[Any, ...], list[Commit]]:
    """The accepted commits of each partition of a group, in broker order."""
    told = [(Commit(*map(row.get, Commit._fields)), row["cluster_id"], row["topic"] or row["topic_id"]) for row in rows]
    found: dict[tuple[Any, ...], list[Commit]] = {}
    for one, *place in sorted(told, key=lambda commit: broker_order(commit[0])):
        if one.accepted:
            found.setdefault((*place, one.partition, one.group_id), []).append(one)
    return found


@FEW
@given(offsets=st.lists(st.sampled_from([500, 500, 500, 510, 520]), min_size=10, max_size=24))
@example(offsets=[500, 510] * 6)
@example(offsets=[500, 501] * 6)
@example(offsets=[510, 500, 500] * 6)
def test_kaf102_counts_values_that_return_below_the_own_highest_since(offsets: list[int]) -> None:
    found = examined([commit(n, offset) for n, offset in enumerate(offsets)], code="KAF102").found
    for value in set(offsets):
        places = [n for n, offset in enumerate(offsets) if offset == value]
        returns = sum(max(offsets[a:b]) > value + 1 for a, b in pairwise(places))
        mine = [f for f in found if f.numbers["stuck_offset"] == value]
        assert [f.numbers["returns"] for f in mine] == ([returns] if returns >= 5 else [])


@pytest.mark.parametrize(
    "name", ["\x1b[2Jx", "a\nb", "\u202eabc", "x" * 40_000], ids=["escape", "line", "direction", "long"]
)
def test_names_from_the_wire_cannot_write_on_a_terminal(name: str) -> None:
    rows = [commit(n, 1000 - n, client_id=name, group_id=name, topic=name, member_id=name) for n in range(3)]
    found = examined(rows).found
    assert [f.code for f in found] == ["KAF103"]
    for finding in found:
        for text in (finding.sentence, finding.next_step, finding.subject):
            assert text.isprintable()
        assert len(finding.sentence) < 3000
        assert finding.numbers["group"] == name
