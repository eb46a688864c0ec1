"""Where consumers of a group would begin if they were started now, from plain rows.

tests/lab/test_restart.py has real ones.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.app.program import run
from tests.conftest import SAMPLES
from tests.support.analysis_from_rows import RowsAnalysis
from wirewitness.reports.base.questions.source import rows
from wirewitness.reports.protocols.kafka.questions.view import view_sql
from wirewitness.reports.protocols.kafka.questions.views import VIEWS

Row = dict[str, Any]
S = 1_000_000_000
START = 1_800_000_000 * S
PLACE = {"cluster_id": "c", "topic": "t", "partition": 0}
WHO = {"client_id": "app", "client_address": "10.0.0.1"}
GROUP = {"cluster_id": "c", "group_id": "g", **WHO}


def at(second: float) -> int:
    return START + round(second * S)


def read(second: float, following: int, end: int, start: int = 0, **changes: Any) -> Row:
    offsets = {"next_offset": following, "high_watermark": end, "log_start_offset": start, "error_code": 0}
    return PLACE | GROUP | {"ts": at(second), "ts_response": at(second + 0.1)} | offsets | changes


def committed(second: float, offset: int) -> Row:
    what = {"api": "OffsetCommit", "committed_offset": offset, "error_code": 0, "member_id": "m1"}
    return PLACE | GROUP | {"ts": at(second)} | what


def told_none(second: float) -> Row:
    none = {"committed_offset": -1, "error_code": 0}
    return PLACE | GROUP | {"ts": at(second), "ts_response": at(second + 0.1)} | none


def outcomes(until_ns: int | None = None, **tables: list[Row]) -> list[tuple[Any, ...]]:
    """starts_by, reset, start_offset, again_offsets, skipped_offsets"""
    joined = GROUP | {"ts": at(0), "event": "join", "member_id": "m1", "error_code": 0}
    capture = {"file": "a.pcap", "ts_first": at(0), "ts_last": at(60)}
    analysis = RowsAnalysis({"kafka_group_events": [joined], "captures": [capture], **tables})
    found = rows(analysis, view_sql(VIEWS["groups"]["restart"], column="group_id", names=("g",), until_ns=until_ns))
    names = ("starts_by", "reset", "start_offset", "again_offsets", "skipped_offsets")
    return [tuple(row[name] for name in names) for row in found]


@pytest.mark.parametrize(
    ("tables", "told"),
    [
        pytest.param(
            {"kafka_offset_commits": [committed(2, 80)], "kafka_fetch_partitions": [read(3, 100, 120)]},
            [("stored", "any", 80, 20, 0)],
            id="behind what was read",
        ),
        pytest.param(
            {"kafka_offset_commits": [committed(2, 110)], "kafka_fetch_partitions": [read(3, 100, 120)]},
            [("stored", "any", 110, 0, 10)],
            id="ahead of what was read",
        ),
        pytest.param(
            {"kafka_offset_commits": [committed(2, 80)], "kafka_fetch_partitions": [read(3, 100, 120, 90)]},
            [
                ("before the log start", "earliest", 90, 10, 0),
                ("before the log start", "latest", 120, 0, 20),
                ("before the log start", "none", None, None, None),
            ],
            id="the log begins behind it",
        ),
        pytest.param(
            {"kafka_offset_fetches": [told_none(1)], "kafka_fetch_partitions": [read(3, 100, 120, 5)]},
            [
                ("nothing stored", "earliest", 5, 95, 0),
                ("nothing stored", "latest", 120, 0, 20),
                ("nothing stored", "none", None, None, None),
            ],
            id="never committed",
        ),
        pytest.param(
            {"kafka_fetch_partitions": [read(3, 100, 120)]},
            [("not known", "any", None, None, None)],
            id="nothing says whether something is stored",
        ),
        pytest.param(
            {
                "kafka_offset_commits": [committed(2, 80)],
                "kafka_fetch_partitions": [
                    read(3, 100, 120),
                    read(4, 115, 120, replica_id=2),
                    read(5, 118, 120, group_id="h"),
                ],
            },
            [("stored", "any", 80, 20, 0)],
            id="replicas and other groups read for themselves",
        ),
    ],
)
def test_where_it_begins(tables: dict[str, list[Row]], told: list[tuple[Any, ...]]) -> None:
    assert outcomes(**tables) == told


def test_at_a_time_later_answers_do_not_count() -> None:
    tables = {
        "kafka_offset_commits": [committed(2, 80), committed(10, 120)],
        "kafka_fetch_partitions": [read(3, 100, 120), read(9, 120, 120)],
    }
    assert outcomes(at(5), **tables) == [("stored", "any", 80, 20, 0)]
    assert outcomes(**tables) == [("stored", "any", 120, 0, 0)]


def test_a_stale_commit_shows_as_what_comes_twice() -> None:
    done = run("groups", SAMPLES / "kafka_stale_commit.pcapng", "--restart", "--group", "payments-ledger")
    [line] = [line for line in done.stdout.decode().splitlines() if line.split()[:2] == ["payments", "4"]]
    assert line.split() == ["payments", "4", "-", "-", "stored", "any", "49", "126", "77", "718", "0"]


@pytest.mark.parametrize("words", [["--restart", "CAPTURE"], ["CAPTURE", "--restart"]])
def test_a_capture_behind_the_option_is_no_member(words: list[str]) -> None:
    sample = str(SAMPLES / "kafka_fenced_commit.pcapng")
    done = run("groups", *(sample if word == "CAPTURE" else word for word in words))
    assert done.returncode == 0
    assert b"STARTS-" in done.stdout


def test_a_member_that_has_left_is_looked_for_earlier() -> None:
    sample = SAMPLES / "kafka_stale_commit.pcapng"
    left = run("groups", sample, "--restart", "ledger-a").stdout.decode()
    assert "ledger-a has no partition when the capture ends (--at TIME looks at an earlier moment)" in left
    before = run("groups", sample, "--restart", "ledger-a", "--at", "2026-11-20T11:24:05").stdout.decode()
    assert "STARTS-BY" in before
    nobody = run("groups", sample, "--restart", "nobody", "--at", "2026-11-20T11:24:05").stdout.decode()
    assert nobody.strip() == "nobody has no partition then, or was not seen."
