"""A lag monitor sees only the offsets, so it stays calm over two committers; the rules name the client."""

from __future__ import annotations

import pandas as pd
import pytest

from tests.analyser.engine.rules.scenarios.build import Row, commit, fetch
from tests.support.burrow import Commit, verdict, verdict_of, verdicts_over_time
from tests.support.rows import connection_from_rows
from wirewitness.analyser.analysis.all_rules import RULES
from wirewitness.analyser.engine.facts.stages import STAGES
from wirewitness.analyser.engine.rules.running import run
from wirewitness.analyser.tables.tables import TABLES

STUCK = 500


def two_committers(pattern: str) -> list[Row]:
    """`A` advances by 10 with every commit, `B` writes STUCK; the log grows by 7, so that the lag goes up and down."""
    rows, advancing = [], 1000
    for n, who in enumerate(pattern):
        advancing += 10 if who == "A" else 0
        rows.append(commit(n * 5, advancing, "m1") if who == "A" else commit(n * 5, STUCK, "m2"))
    return rows


def enriched(rows: list[Row], log_ends: list[Row]) -> tuple[pd.DataFrame, list]:
    con = connection_from_rows({"kafka_offset_commits": rows, "kafka_fetch_partitions": log_ends})
    for stage in STAGES:
        if any(TABLES[name].protocol == "kafka" for name in (*stage.makes, *stage.reads)):
            stage.run(con)
    return con.sql("FROM kafka_offset_commits ORDER BY ts").df(), run(con, RULES.values())


@pytest.mark.parametrize("pattern", ["AB" * 10, "AAAB" * 5, "BBBA" * 5], ids=["alternating", "AAAB", "BBBA"])
def test_burrow_is_calm_and_we_name_the_stuck_client(pattern: str) -> None:
    rows = two_committers(pattern)
    ends = [fetch(n * 5 - 1, 0, "m3", high_watermark=2000 + 7 * n, fetch_offset=None) for n in range(len(pattern))]
    frame, findings = enriched(rows, ends)
    assert verdict_of(frame, 2000 + 7 * len(pattern)) == "OK"
    calm = verdicts_over_time(frame)
    assert calm.count("OK") / len(calm) >= 0.8
    for code in ("KAF101", "KAF103"):
        finding = next(f for f in findings if f.code == code)
        assert finding.severity == "critical"
        assert "billing-2 at 10.1.0.2 (member m2)" in finding.sentence
    named = {f.numbers["committers"][0]["client_id"] for f in findings if f.code in ("KAF102", "KAF103")}
    assert named == {"billing-2"}


def test_burrow_stalls_only_when_nearly_all_commits_are_stuck() -> None:
    rows = two_committers("A" + "B" * 12)
    ends = [fetch(-1, 0, "m3", high_watermark=2000, fetch_offset=None)]
    frame, _ = enriched(rows, ends)
    assert verdict_of(frame, 2000) == "STALL"


@pytest.mark.parametrize(
    ("ring", "lag", "now_ms", "expected"),
    [
        ([Commit(n, 10 * n, 5) for n in range(10)], 0, 10, "OK"),
        ([Commit(n, 10 * n, 0 if n == 3 else 9) for n in range(10)], 9, 10, "OK"),
        ([Commit(n, 10 * n, 20 - n) for n in range(10)], 9, 10, "OK"),
        ([Commit(n, 10 * n, 20 + n) for n in range(10)], 29, 10, "WARN"),
        ([Commit(n, 70, 20 + n) for n in range(10)], 29, 10, "STALL"),
        ([Commit(n, 10 * n, 20) for n in range(10)], 20, 19, "STOP"),
        ([Commit(0, 100, 20), Commit(1, 50, 70), Commit(2, 60, 60)], 60, 3, "REWIND"),
        ([Commit(0, 100, 20), Commit(1, 50, 70), Commit(2, 100, 30)], 30, 3, "OK"),
        ([], 30, 3, "OK"),
    ],
    ids=["no lag", "caught up", "catching up", "growing", "equal", "silent", "went back", "recovered", "no commits"],
)
def test_rules(ring: list[Commit], lag: int, now_ms: int, expected: str) -> None:
    assert verdict(ring, lag, now_ms) == expected
