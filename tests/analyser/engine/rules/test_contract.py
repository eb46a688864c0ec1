"""What every registered rule must be: documented, pure, deterministic, blind outside its partition."""

from __future__ import annotations

import inspect
import json
import random
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.analyser.engine.rules.concerned import connected, looked_at, partitions
from tests.analyser.engine.rules.scenarios import FAULTS, FIRES
from tests.support.rows import arrow_from_rows, connection_from_rows
from tests.support.shares import every, proves_more, share
from wirewitness.analyser.analysis.all_rules import RULES, rules_about, tables_needed
from wirewitness.analyser.base.severity import SEVERITIES, confidence_rank, severity_rank
from wirewitness.analyser.engine.rules import limits
from wirewitness.analyser.engine.rules.columns import UNKNOWN
from wirewitness.analyser.engine.rules.findings import Finding, findings_table
from wirewitness.analyser.engine.rules.frame import Frame
from wirewitness.analyser.engine.rules.frame_rows import rows_of
from wirewitness.analyser.engine.rules.limits import PartitionTooLarge, TooManyFindings
from wirewitness.analyser.engine.rules.partition_sql import ALL_BUCKETS, BUCKETS, rows_sql
from wirewitness.analyser.engine.rules.partitions import empty
from wirewitness.analyser.engine.rules.questions import QUESTIONS
from wirewitness.analyser.engine.rules.rule import LIMITS_SECTION, PAGE_SECTIONS, Rule
from wirewitness.analyser.engine.rules.running import Failure, Input, run, run_family
from wirewitness.analyser.tables.tables import ARROW_TYPES, TABLES, arrow_schema

Partition = tuple[tuple[Any, ...], dict[str, Frame]]
# What one address answers for several clusters, and what goes round or moves between them, is the point of it.
ACROSS_CLUSTERS = {"KAF341", "KAF344", "KAF347"}
EACH = pytest.mark.parametrize("rule", RULES.values(), ids=lambda d: d.code)
# The first scenario of each rule: a hundred more would find the same at twice the time.
ALL = [*{scenario.code: scenario for scenario in reversed(FIRES)}.values(), *FAULTS]
NUMBERS = range(len(ALL))
EACH_SCENARIO = pytest.mark.parametrize("index", share(NUMBERS, every(4, NUMBERS)), ids=lambda n: str(ALL[n]))


def key(finding: Finding) -> str:
    return repr(finding)


@cache
def shared(index: int) -> duckdb.DuckDBPyConnection:
    """The connection of a scenario for tests that only read."""
    return connected(ALL[index])


@cache
def partitions_of(index: int) -> Mapping[str, list[Partition]]:
    """Key and frames of all partitions of a scenario by the rule's code; one test sees to it that they stay so."""
    return {one.code: list(partitions(shared(index), one)) for one in looked_at(ALL[index])}


@cache
def found_in(index: int) -> list[Finding]:
    return [
        finding
        for code, held in partitions_of(index).items()
        for _, frames in held
        for finding in RULES[code].detect(frames)
    ]


def test_no_two_rules_have_one_name() -> None:
    """`detectors` finds a page by its name, too."""
    assert len({rule.name for rule in RULES.values()}) == len(RULES)


@EACH
def test_page_has_the_fixed_sections_in_order(rule: Rule) -> None:
    headings = [line for line in rule.page.splitlines() if line and not line.startswith(" ")]
    assert headings[0].startswith(f"{rule.code} {rule.name}: ")
    assert tuple(heading for heading in headings[1:] if heading != LIMITS_SECTION) == PAGE_SECTIONS
    told = LIMITS_SECTION in headings
    assert told or not rule.code.startswith(("KAF1", "KAF2")), "what can it not tell from one side, or a late begin?"
    assert not told or headings[-2] == LIMITS_SECTION
    bodies = re.split(r"\n\n(?=\S)", rule.page)[1:]
    assert all(len(body.splitlines()) > 1 for body in bodies)
    assert rule.question in QUESTIONS


@EACH
def test_thresholds_have_defaults_and_the_page_or_docstring_names_them(rule: Rule) -> None:
    for name, default in rule.thresholds.items():
        assert default is not inspect.Parameter.empty, name
        assert name in rule.page or name in (inspect.getdoc(rule.detect) or ""), name


@EACH
def test_declared_tables_and_columns_exist(rule: Rule) -> None:
    for table, columns in rule.reads.items():
        names = set(TABLES[table].column_names())
        assert set(columns) <= names
        assert {rule.keys.get(table, {}).get(key, key) for key in rule.partition_by} <= names
    assert set(rule.rows) <= set(rule.reads)
    named = {*re.findall(r"\w+", " ".join((*rule.rows.values(), rule.suspects_sql)))} & TABLES.keys()
    assert {*rule.asks} <= named - rule.reads.keys()
    assert named <= rule.needs
    assert "cluster_id" in rule.partition_by or not rule.code.startswith("KAF") or rule.code in ACROSS_CLUSTERS
    assert rule.severity in SEVERITIES


@EACH
def test_silent_on_empty_frames_and_empty_tables(rule: Rule) -> None:
    assert list(rule.detect({table: empty(rule, table) for table in rule.reads})) == []
    assert run(connection_from_rows({}), [rule]) == []


@EACH_SCENARIO
@proves_more
def test_findings_are_valid(index: int) -> None:
    found = found_in(index)
    assert found
    for finding in found:
        rule = RULES[finding.code]
        assert finding.name == rule.name
        assert severity_rank(finding.severity) <= severity_rank(rule.severity)
        assert confidence_rank(finding.confidence) <= confidence_rank(rule.confidence)
        assert finding.evidence
        assert all(e.packet is not None or e.message_id is not None for e in finding.evidence)
        assert finding.ts_first_ns is not None
        assert finding.ts_last_ns is not None
        assert finding.ts_first_ns <= finding.ts_last_ns
        assert finding.sentence.endswith(".")
        assert finding.next_step.endswith(".")
        assert "None" not in finding.sentence + finding.next_step + finding.subject
    table = findings_table(found)
    assert table.schema == arrow_schema("findings")
    for row in table.to_pylist():
        evidence, numbers = json.loads(row["evidence"]), json.loads(row["numbers"])
        assert all(set(item) == {"file", "packet", "message_id"} for item in evidence)
        assert isinstance(numbers, dict)
    assert len({f.finding_id for f in found}) == len(found)


@EACH_SCENARIO
@proves_more
def test_same_findings_from_shuffled_rows_in_small_batches(index: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The findings of a second run are those of the first, whatever order and batches the rows come in."""
    monkeypatch.setattr("wirewitness.analyser.engine.rules.partitions.BATCH_ROWS", 7)
    shuffled = {table: list(rows) for table, rows in ALL[index].rows.items()}
    for rows in shuffled.values():
        random.Random(index).shuffle(rows)
    scenario = replace(ALL[index], rows=shuffled)
    assert list(map(key, run(connected(scenario), looked_at(scenario)))) == list(map(key, found_in(index)))


@EACH_SCENARIO
@proves_more
def test_rules_leave_their_input_alone(index: int) -> None:
    for code, held in partitions_of(index).items():
        for _, frames in held:
            before = {table: rows_of(frame) for table, frame in frames.items()}
            first = list(map(key, RULES[code].detect(frames)))
            for table, frame in frames.items():
                assert rows_of(frame) == before[table]
            assert list(map(key, RULES[code].detect(frames))) == first


@EACH_SCENARIO
@proves_more
def test_frames_are_typed_sorted_and_of_one_key(index: int) -> None:
    for code, held in partitions_of(index).items():
        rule = RULES[code]
        for partition_key, frames in held:
            assert set(frames) == set(rule.reads)
            for table, frame in frames.items():
                assert tuple(frame.schema.names) == rule.columns(table)
                for column in frame.schema.names:
                    named = rule.keys.get(table, {}).get(column, column)
                    assert frame[column].array().type == ARROW_TYPES[TABLES[table].column(named).kind]
                for name, value in zip(rule.partition_by, partition_key, strict=True):
                    assert {*frame[name]} <= {value}
                if "ts" in frame.schema.names:
                    times = frame["ts"].numbers()
                    assert (np.diff(times[times != UNKNOWN]) >= 0).all()
        keys = [partition_key for partition_key, _ in held]
        assert len(set(keys)) == len(keys)


@EACH_SCENARIO
@proves_more
def test_suspects_name_every_partition_that_has_findings(index: int) -> None:
    """The prefilter may only save work: without it the findings are the same."""
    filtered = [rule for rule in looked_at(ALL[index]) if rule.suspects is not None]
    codes = {rule.code for rule in filtered}
    everywhere = run(shared(index), [replace(rule, suspects=None) for rule in filtered])
    assert list(map(key, everywhere)) == [key(finding) for finding in found_in(index) if finding.code in codes]


@EACH_SCENARIO
@proves_more
def test_partitions_can_be_looked_at_bucket_by_bucket(index: int) -> None:
    """Every partition lies in one bucket with all its rows."""
    rule = RULES[ALL[index].code]
    own = [key(finding) for finding in found_in(index) if finding.code == rule.code]
    thirds = [range(first, BUCKETS, 3) for first in range(3)] if rule.partition_by else [ALL_BUCKETS]
    given, failures = Input(shared(index)), {rule.code: None}
    some = [key(one) for buckets in thirds for one in run_family(given, [rule], failures, buckets)[rule.code]]
    assert sorted(some) == sorted(own)


OF_CLUSTERS = [n for n, s in enumerate(ALL) if s.code.startswith("KAF") and s.code not in ACROSS_CLUSTERS]


@pytest.mark.parametrize("index", OF_CLUSTERS, ids=lambda n: str(ALL[n]))
@proves_more
def test_clusters_never_mix(index: int) -> None:
    """The same rows in an unknown, and in two known clusters give the same findings three times, each for itself."""
    scenario = ALL[index]
    alone = [(f.code, f.severity) for f in found_in(index)]
    rows = {
        table: [dict(row) | {"cluster_id": cluster} for row in held for cluster in (None, "c1", "c2")]
        if "cluster_id" in TABLES[table].column_names()
        else held
        for table, held in scenario.rows.items()
    }
    found = run(connected(replace(scenario, rows=rows)), looked_at(scenario))
    for cluster in (None, "c1", "c2"):
        own = [(f.code, f.severity) for f in found if f.numbers["cluster"] == cluster]
        assert own == alone


def test_a_failing_rule_does_not_lose_the_others() -> None:
    def broken(frames: object) -> list[Finding]:
        raise ValueError("broken on purpose")

    con = connected(FAULTS[1])
    healthy = RULES["KAF101"]
    failing = replace(healthy, code="KAF999", detect=broken)
    unreadable = replace(healthy, code="KAF998", suspects="SELECT nothing FROM nowhere")
    failures: list[Failure] = []
    found = run(con, [failing, unreadable, healthy], failures)
    assert [f.code for f in found] == ["KAF101"]
    assert [f.code for f in failures] == ["KAF999", "KAF998"]
    assert failures[0].key == ("c1", "billing", "payments", 0)
    with pytest.raises(ValueError, match="broken on purpose"):
        run(con, [failing])


@pytest.mark.parametrize(("most", "found", "limited"), [(3, 3, [TooManyFindings]), (4, 4, [])])
def test_a_rule_ends_when_it_has_many_findings(
    most: int, found: int, limited: list[type[Exception]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred bytes can be made to give one: what further ones cost is bounded, and it is said."""
    scenario = FAULTS[1]
    rows = {
        table: [dict(row) | {"cluster_id": f"c{number}"} for row in held for number in range(4)]
        for table, held in scenario.rows.items()
    }
    monkeypatch.setattr(limits, "MOST_FINDINGS", most)
    failures: list[Failure] = []
    assert len(run(connected(replace(scenario, rows=rows)), [RULES["KAF101"]], failures)) == found
    assert [type(one.error) for one in failures] == limited
    assert not any(one.is_own_fault for one in failures)


@pytest.mark.parametrize(
    ("memory_mb", "fails"), [pytest.param(25, False, id="for some at a time"), pytest.param(6, True, id="not for one")]
)
def test_rows_for_which_memory_does_not_suffice(memory_mb: int, fails: bool, tmp_path: Path) -> None:
    """They are looked at a few partitions at a time; when even one is too many, that is said in words."""
    rows = [
        {"ts": 10**18 + number, "flow_id": f"flow-{number % 200}", "client_id": "x" * 300, "error_code": 0,
         "keep_alive_s": 1, "client_silence_ms": 9.0e3, "client_silence_from": 10**18, "file": "x" * 400,
         "ts_last_from_client": 10**18 if number < 20 else None, "observed_until": 10**18}
        for number in range(30_000)
    ]  # fmt: skip
    rule, failures = RULES["MQT103"], list[Failure]()
    con = duckdb.connect(":memory:")
    for name, held in (("mqtt_connections", rows), ("exchanges", []), ("flows", [])):
        path = tmp_path / f"{name}.parquet"
        pq.write_table(arrow_from_rows(name, held), path, row_group_size=2048)
        con.execute(f"CREATE VIEW {name} AS FROM read_parquet('{path}')")
    expected = run(con, [rule])
    con.execute(f"SET memory_limit = '{memory_mb}MB'; SET temp_directory = ''; SET threads = 1")
    with pytest.raises(duckdb.OutOfMemoryException):
        con.sql(rows_sql({0: rule}, {0}, "mqtt_connections", None)).fetchall()
    found = run_family(Input(con), [rule], {rule.code: failures}, ALL_BUCKETS)[rule.code]
    assert [(type(one.error), one.is_own_fault) for one in failures[:1]] == [(PartitionTooLarge, False)] * fails
    if not fails:
        assert sorted(map(key, found)) == sorted(map(key, expected))
        assert found


def test_rules_are_found_by_their_codes_and_protocols() -> None:
    assert RULES["KAF104"].code == "KAF104"
    assert "KAF000" not in RULES
    assert "XYZ101" not in RULES
    with pytest.raises(KeyError):
        tables_needed(["KAF000"])
    assert len(rules_about(["kafka", "mqtt", "mongo"])) == len(RULES) == len([*RULES])
    assert {rule.code[:3] for rule in rules_about(["mqtt"])} == {"CAP", "TCP", "TLS", "NET", "MQT"}
    assert tables_needed(["KAF101"]) == {"kafka_committed"}
    assert tables_needed() >= {"flows", "messages", "expert_infos", "kafka_fetch_partitions"}
