"""Rules dealt out to several processes give what one process gives, whatever becomes of the others."""

from __future__ import annotations

import gc
import os
import select
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import duckdb
import pyarrow as pa
import pytest

import wirewitness
from tests.conftest import SAMPLES
from tests.support.replay import replay
from tests.support.rules_here import ThreadHelpers
from tests.support.shares import pairs, proves_more, share, turns
from wirewitness.analyser.analysis import findings_table, stored_tables
from wirewitness.analyser.analysis.all_rules import RULES, _family
from wirewitness.analyser.analysis.analysis import Analysis
from wirewitness.analyser.analysis.processes import scheduler
from wirewitness.analyser.analysis.processes.scheduler import RuleDealing
from wirewitness.analyser.base.faults import FAULTS
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.capture import Source
from wirewitness.analyser.decoding.run.pipeline import Pipeline
from wirewitness.analyser.engine.facts import chunk_files, shards
from wirewitness.analyser.engine.rules import partitions, running
from wirewitness.analyser.engine.rules.limits import MOST_FINDINGS
from wirewitness.analyser.inputs import analysis_of
from wirewitness.analyser.kafka.facts import enrich, fetch_stage
from wirewitness.analyser.tables.tables import TABLES
from wirewitness.dissectors.registry import PROTOCOLS

NAMES = sorted(path.name for path in SAMPLES.glob("*.pcapng"))
STAGE_TABLES = ("kafka_offset_commits", "kafka_fetch_ranges")
TOLD = ("kafka_stale_commit.pcapng", "mqtt_faults.pcapng", "mongo_shapes_and_errors.pcapng")


class Told(NamedTuple):
    """All that an analysis says. failures: code, key and what was raised."""

    tables: dict[str, pa.Table]
    failures: list[tuple[str, tuple[Any, ...], str]]
    faults: list[str]
    remarks: list[str]


def told(analysis: Analysis) -> Told:
    analysis.findings()
    tables = {name: analysis.arrow(name) for name in analysis.tables()}
    failures = [(one.code, one.key, repr(one.error)) for one in analysis.failures]
    return Told(tables, failures, [*analysis.faults], analysis.remarks)


def assert_equal(found: Told, expected: Told) -> None:
    for name, rows in expected.tables.items():
        assert found.tables[name].equals(rows), name
    assert found[1:] == expected[1:]


def analysed(path: Path, helpers: ThreadHelpers | None) -> Told:
    decoded = Pipeline(PROTOCOLS, TABLES, ReadOptions()).run([Source(path.name, path)])
    with analysis_of(decoded, TABLES, ReadOptions(), PROTOCOLS.values(), helpers) as analysis:  # type: ignore[arg-type]
        return told(analysis)


@cache
def alone(name: str) -> Told:
    return analysed(SAMPLES / name, None)


@pytest.fixture
def dealings(monkeypatch: pytest.MonkeyPatch) -> list[RuleDealing]:
    """What is dealt, however few rows there are."""
    made: list[RuleDealing] = []

    class Kept(RuleDealing):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            made.append(self)

    monkeypatch.setattr(findings_table, "FEW_ROWS", 0)
    monkeypatch.setattr(shards, "FEW_ROWS", 0)
    monkeypatch.setattr(findings_table, "RuleDealing", Kept)
    return made


@pytest.mark.parametrize(
    ("name", "processes"), pairs([(name, n) for name in NAMES for n in (2, 3)], turns(TOLD[1:], (2, 3)))
)
def test_samples_give_the_same(dealings: list[RuleDealing], name: str, processes: int) -> None:
    with ThreadHelpers(processes - 1) as helpers:
        found = analysed(SAMPLES / name, helpers)
    assert_equal(found, alone(name))
    assert found.tables["findings"].num_rows or name not in TOLD
    (dealing,) = dealings
    assert dealing.helped


def test_rules_of_one_key_go_together(dealings: list[RuleDealing], monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that reads a table which is made later than those of the others."""
    expected = alone(TOLD[0])
    monkeypatch.setattr(findings_table, "_MANY_ROWS", expected.tables["kafka_offset_commits"].num_rows - 1)
    with ThreadHelpers(1) as helpers:
        found = analysed(SAMPLES / TOLD[0], helpers)
    assert_equal(found, expected)
    offered = [{one.code for one in some} for some in dealings[0]._offered]
    assert sorted(code for some in offered for code in some) == sorted({code for some in offered for code in some})
    assert [some for some in offered if {"KAF102", "KAF103"} <= some]


def nothing_left(descriptor: int) -> None:
    """Wait until others have taken all numbers."""
    while select.select([descriptor], [], [], 0)[0]:
        time.sleep(0.01)


@pytest.fixture
def others_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process makes no shard that another one may have."""
    monkeypatch.setattr(scheduler, "take", nothing_left)


@pytest.mark.parametrize("rows", ["in memory", "in files"])
@pytest.mark.parametrize("name", share([name for name in NAMES if name.startswith("kafka")], TOLD[:1]))
def test_stages_made_by_others_are_the_same(
    dealings: list[RuleDealing], others_first: None, monkeypatch: pytest.MonkeyPatch, name: str, rows: str
) -> None:
    expected = alone(name)
    if rows == "in files":
        monkeypatch.setattr(stored_tables, "SMALL_ROWS", 300)
        monkeypatch.setattr(chunk_files, "FEW_ROWS", 50)
        monkeypatch.setattr(fetch_stage, "PIECE_ROWS", 20)
        monkeypatch.setattr(enrich, "STEP_ROWS", 500)
        monkeypatch.setattr(fetch_stage, "STEP_ROWS", 500)
    with ThreadHelpers(2) as helpers:
        found = analysed(SAMPLES / name, helpers)
    assert_equal(found, expected)
    made = sum(name in expected.tables and expected.tables[name].num_rows > 0 for name in STAGE_TABLES)
    assert dealings[0].stages.helped >= 3 * made


@pytest.mark.parametrize("work", ["commits_of_shard", "runs_of_shards"])
def test_shards_that_others_cannot_make_are_made_here(
    dealings: list[RuleDealing], others_first: None, monkeypatch: pytest.MonkeyPatch, work: str
) -> None:
    monkeypatch.setenv(FAULTS, "")
    monkeypatch.setattr(enrich if work == "commits_of_shard" else fetch_stage, work, broken)
    with ThreadHelpers(1) as helpers:
        found = analysed(SAMPLES / TOLD[0], helpers)
    assert_equal(found, alone(TOLD[0]))
    assert dealings[0].stages.helped == 2


@pytest.mark.parametrize("name", share(TOLD, TOLD[:1]))
def test_rows_in_files_give_the_same(dealings: list[RuleDealing], monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Also where sorted rows of large tables lie in files meanwhile."""
    expected, written = alone(name), []
    monkeypatch.setattr(stored_tables, "SMALL_ROWS", 300)
    monkeypatch.setattr(stored_tables, "SMALL_BYTES", 20_000)
    monkeypatch.setattr(chunk_files, "FEW_ROWS", 50)
    monkeypatch.setattr(partitions, "MOST_HELD_BYTES", 20_000)
    right = partitions._from_file
    monkeypatch.setattr(partitions, "_from_file", lambda *given: written.append(given[2]) or right(*given))
    with ThreadHelpers(1) as helpers:
        found = analysed(SAMPLES / name, helpers)
    assert_equal(found, expected)
    assert dealings[0].helped
    assert written or name != TOLD[0]
    written.clear()
    assert_equal(analysed(SAMPLES / name, None), expected)
    assert written or name != TOLD[0]


@contextmanager
def read(path: Path, processes: int) -> Iterator[Analysis]:
    with wirewitness.read(path, options=ReadOptions(processes=processes)) as analysis:
        yield analysis


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("captures") / "small.pcap"
    replay(path, "small", 6_000, 0, 40)
    return path


def open_files() -> Counter[str]:
    """What this process has open, memory without a name and pipes too."""
    links = []
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # of the listing itself
            links.append(os.readlink(f"/proc/self/fd/{name}"))
    return Counter(links)


@proves_more
def test_processes_give_the_same_and_leave_nothing(
    dealings: list[RuleDealing], small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with read(small, 1) as analysis:
        expected = told(analysis)
    assert expected.tables["findings"].num_rows > 100
    gc.collect()  # what other tests left open
    before = open_files(), {*os.listdir("/dev/shm")}
    with read(small, 2) as analysis:
        assert_equal(told(analysis), expected)
        assert [*tmp_path.iterdir()]
    assert [*tmp_path.iterdir()] == []
    assert len(dealings.pop().helped) > 5
    gc.collect()  # the tables that were looked at
    assert (open_files(), {*os.listdir("/dev/shm")}) == before


@pytest.mark.parametrize("when", ["before", "while it makes shares", "while it runs rules"])
def test_a_killed_process_costs_nothing(
    dealings: list[RuleDealing], small: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    monkeypatch.setenv(FAULTS, "")
    with read(small, 1) as analysis:
        expected = told(analysis)
    with read(small, 2) as analysis:
        (child,) = analysis._source._helpers.children  # type: ignore[attr-defined]
        if when == "before":
            child.kill()
        right = RuleDealing.looked

        def looked(*given: Any) -> Any:
            child.kill()
            return right(*given)

        right_take = scheduler.take

        def take(descriptor: int) -> None:
            monkeypatch.setattr(scheduler, "take", right_take)  # of the next stage nobody else takes any
            nothing_left(descriptor)
            child.kill()

        monkeypatch.setattr(RuleDealing, "looked", looked)
        if when == "while it makes shares":
            monkeypatch.setattr(scheduler, "take", take)
        found = told(analysis)
    assert_equal(found._replace(faults=[]), expected)
    assert [fault for fault in found.faults if "ran rules" in fault] == found.faults
    assert len(found.faults) == 1
    assert dealings[0].helped == []


def broken(*_: object, **__: object) -> NoReturn:
    raise LookupError("it's 'quoted'")


def test_a_rule_that_raises_and_one_that_finds_too_much(
    dealings: list[RuleDealing], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both in another process, since this one takes no rules."""
    rule = RULES["KAF103"]
    monkeypatch.setitem(_family("KAF"), "KAF103", replace(rule, detect=broken))
    many = RULES["KAF309"]
    monkeypatch.setitem(
        _family("KAF"), "KAF309", replace(many, detect=lambda frames: [*many.detect(frames)] * (MOST_FINDINGS + 1))
    )
    path = SAMPLES / "kafka_stale_commit.pcapng"
    expected = analysed(path, None)
    assert {("KAF103", "LookupError(\"it's 'quoted'\")")} < {(code, error) for code, _, error in expected.failures}
    assert any("TooManyFindings" in error for _, _, error in expected.failures)
    with ThreadHelpers(1) as helpers:
        monkeypatch.setattr(RuleDealing, "looked", after_the_others(helpers))
        found = analysed(path, helpers)
    assert_equal(found, expected)
    assert {"KAF103", "KAF309"} < {*dealings[0].helped}


def after_the_others(helpers: ThreadHelpers) -> Any:
    """`looked` when the others have taken all rules."""
    right = RuleDealing.looked

    def looked(*given: Any) -> Any:
        nothing_left(helpers.taking)
        return right(*given)

    return looked


def test_a_rule_that_needs_more_memory_than_helpers_have_runs_here(
    dealings: list[RuleDealing], monkeypatch: pytest.MonkeyPatch
) -> None:
    here = threading.main_thread()

    run_here: list[list[str]] = []

    def short(given: Any, rules: Any, *more: Any) -> Any:
        codes = [one.code for one in rules]
        if threading.current_thread() is here:
            run_here.append(codes)
        elif "KAF103" in codes:
            raise duckdb.OutOfMemoryException("Out of Memory Error: as if it were")
        return right(given, rules, *more)

    right = running._evaluated
    monkeypatch.setattr(running, "_evaluated", short)
    with ThreadHelpers(1) as helpers:
        monkeypatch.setattr(RuleDealing, "looked", after_the_others(helpers))
        found = analysed(SAMPLES / TOLD[0], helpers)
    assert_equal(found, alone(TOLD[0]))
    assert "KAF103" not in dealings[0].helped
    assert run_here[-1] == ["KAF103"]
    assert len(dealings[0].helped) > 5


def test_a_fault_in_dealing_costs_no_findings(dealings: list[RuleDealing], monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory that all see may be short, too."""
    monkeypatch.setenv(FAULTS, "")
    right = RuleDealing.put

    def put(dealing: RuleDealing, name: str, rows: pa.Table) -> Any:
        if name == "kafka_fetch_ranges":
            raise OSError("no more")
        return right(dealing, name, rows)

    monkeypatch.setattr(RuleDealing, "put", put)
    with ThreadHelpers(1) as helpers:
        found = analysed(SAMPLES / TOLD[0], helpers)
    assert_equal(found._replace(faults=[]), alone(TOLD[0]))
    assert ["OSError in what deals rules out" in fault for fault in found.faults] == [True]
    assert len(dealings) == 1


def test_few_rows_are_looked_at_by_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(findings_table, "RuleDealing")
    with ThreadHelpers(1) as helpers:
        assert_equal(analysed(SAMPLES / TOLD[0], helpers), alone(TOLD[0]))
        assert helpers.children == []


def test_a_process_ends_when_nobody_hears_it(small: Path) -> None:
    """As when the one that started it is gone: its pipes are closed then."""
    with read(small, 2) as analysis:
        helpers = analysis._source._helpers  # type: ignore[attr-defined]
        RuleDealing(helpers, analysis._source.folder, ["flows"], 1 << 30).offer((), ())  # type: ignore[attr-defined]
        (child,) = helpers.children
        child.stdout.close()
        helpers.no_more()
        assert child.wait(300) == 0


def test_processes_end_with_the_analysis(small: Path) -> None:
    with read(small, 2) as analysis:
        (child,) = analysis._source._helpers.children  # type: ignore[attr-defined]
        assert child.poll() is None
    assert child.poll() is not None
    with wirewitness.read(small, options=ReadOptions(processes=2), tables=["flows"]) as analysis:
        assert analysis._source._helpers is None  # type: ignore[attr-defined]
