"""Random commits: nothing raises, prefilters lose nothing, and steps back are counted as a plain loop counts them."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from analyser.context.stages import add_context
from analyser.detectors import DETECTORS, run_detectors
from analyser.detectors.commits import COMMITS, Commit, broker_order, commits_of, racing
from analyser.detectors.framework import partitions, run
from analyser.findings import Finding, findings_table
from tests.analyser.detectors.scenarios.build import Row, at, commit, fetch, stored
from tests.support.rows import connection_from_rows

NAMES = st.sampled_from(["m1", "m2", ""])
MOMENT = st.integers(0, 40).map(lambda n: n / 4)
FEW = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


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
    return commit(start, draw(st.sampled_from([-1, 0, 5, 6, 7, 10, 2**62])), member, **more)


READS = st.lists(
    st.builds(fetch, MOMENT, st.sampled_from([0, 5, 8, 11, None]), st.sampled_from(["m1", "m2"])), max_size=8
)
TOLD = st.lists(st.builds(stored, MOMENT, st.sampled_from([0, 5, 8])), max_size=3)


def findings_of(rows: list[Row], reads: list[Row], told: list[Row]) -> tuple[Any, list[Finding]]:
    con = connection_from_rows({COMMITS: rows, "kafka_fetch_partitions": reads, "kafka_offset_fetches": told})
    add_context(con)
    return con, run_detectors(con)


@FEW
@given(rows=st.lists(commits(), max_size=40), reads=READS, told=TOLD)
def test_nothing_raises_and_prefilters_lose_nothing(rows: list[Row], reads: list[Row], told: list[Row]) -> None:
    con, found = findings_of(rows, reads, told)
    assert findings_table(found).num_rows == len(found)
    everywhere = run(con, [replace(detector, suspects=None) for detector in DETECTORS.values()])
    assert [f.finding_id for f in found] == [f.finding_id for f in everywhere]
    assert found == everywhere


@FEW
@given(rows=st.lists(commits(), max_size=6))
def test_prefilters_lose_nothing_among_few_rows(rows: list[Row]) -> None:
    """With few rows a partition has one reason to be looked at, or none."""
    same = [row | {"partition": 0, "topic": "payments", "cluster_id": "c1", "group_id": "billing"} for row in rows]
    con, found = findings_of(same, [], [])
    assert found == run(con, [replace(detector, suspects=None) for detector in DETECTORS.values()])


@FEW
@given(rows=st.lists(commits(), max_size=12))
def test_kaf103_counts_every_step_back_once(rows: list[Row]) -> None:
    con, found = findings_of(rows, [], [])
    expected = 0
    for _, frames in partitions(con, replace(DETECTORS["KAF103"], suspects=None)):
        by_group: dict[str | None, list[Commit]] = {}
        for one in commits_of(frames[COMMITS]):
            if one.accepted:
                by_group.setdefault(one.group_id, []).append(one)
        for own in by_group.values():
            assert own == sorted(own, key=broker_order)
            expected += sum(b.committed_offset < a.committed_offset and not racing(a, b) for a, b in pairwise(own))
    assert sum(f.numbers["steps_back"] for f in found if f.code == "KAF103") == expected


@FEW
@given(offsets=st.lists(st.sampled_from([500, 500, 500, 510, 520]), min_size=10, max_size=24))
@example(offsets=[500, 510] * 6)
@example(offsets=[500, 501] * 6)
@example(offsets=[510, 500, 500] * 6)
def test_kaf102_counts_values_that_return_below_the_own_highest_since(offsets: list[int]) -> None:
    rows = [commit(n, offset) for n, offset in enumerate(offsets)]
    _, found = findings_of(rows, [], [])
    for value in set(offsets):
        places = [n for n, offset in enumerate(offsets) if offset == value]
        returns = sum(max(offsets[a:b]) > value + 1 for a, b in pairwise(places))
        mine = [f for f in found if f.code == "KAF102" and f.numbers["stuck_offset"] == value]
        assert [f.numbers["returns"] for f in mine] == ([returns] if returns >= 5 else [])


@pytest.mark.parametrize(
    "name", ["\x1b[2Jx", "a\nb", "\u202eabc", "x" * 40_000], ids=["escape", "line", "direction", "long"]
)
def test_names_from_the_wire_cannot_write_on_a_terminal(name: str) -> None:
    rows = [commit(n, 1000 - n, client_id=name, group_id=name, topic=name, member_id=name) for n in range(3)]
    _, found = findings_of(rows, [], [])
    assert [f.code for f in found] == ["KAF103"]
    for finding in found:
        for text in (finding.sentence, finding.next_step, finding.subject):
            assert text.isprintable()
        assert len(finding.sentence) < 3000
        assert finding.numbers["group"] == name
