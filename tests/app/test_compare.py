"""`wirewitness compare` and `differ` on samples: what is told, formats, status, wrong usage."""

from __future__ import annotations

import csv
import io
import json

import pytest

from tests.app.program import run
from tests.conftest import SAMPLES

HEALTHY, SICK = SAMPLES / "kafka_healthy.pcapng", SAMPLES / "kafka_stale_commit.pcapng"


def test_a_capture_does_not_differ_from_itself() -> None:
    done = run("compare", SICK, SICK, "--fail-on-difference")
    assert done.returncode == 0
    assert b"No difference: nothing but what chance makes." in done.stdout


def test_findings_of_one_side_come_first() -> None:
    done = run("compare", HEALTHY, SICK, "--fail-on-difference")
    assert done.returncode == 1
    lines = [line for line in done.stdout.decode().splitlines() if line.startswith("finding")]
    assert {line.split()[1] for line in lines} == {"KAF101", "KAF102", "KAF103", "KAF104"}
    assert all("no finding" in line for line in lines)


def test_before_and_after_a_time_and_two_times_are_the_same_question() -> None:
    at = "2026-11-20T11:23:55"
    moment = run("compare", SICK, "--at", at, "--format", "json")
    times = run("compare", SICK, "--times", f"/{at}", "--times", f"{at}/", "--format", "json")
    assert moment.returncode == times.returncode == 0
    told = json.loads(moment.stdout)
    assert (told["a"]["name"], told["b"]["name"]) == ("before", "after")
    assert told["differences"] == json.loads(times.stdout)["differences"]
    assert told["a"]["exchanges"] + told["b"]["exchanges"] == 3324
    assert any(one["what"].startswith("KAF10") and one["a"] == "no finding" for one in told["differences"])


def test_csv_has_all_differences() -> None:
    found = list(csv.DictReader(io.StringIO(run("compare", HEALTHY, SICK, "--format", "csv").stdout.decode())))
    assert list(found[0]) == ["kind", "what", "a", "b", "at_least"]
    shown = run("compare", HEALTHY, SICK, "--limit", "3").stdout.decode()
    assert f"{len(found) - 3} more differences" in shown
    assert all(float(row["at_least"]) > 1 for row in found if row["at_least"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([HEALTHY], "name two captures, or one with --at TIME"),
        ([HEALTHY, SICK, HEALTHY], "name two captures"),
        ([HEALTHY, SICK, "--at", "2026-11-20T11:23:55"], "name two captures"),
        ([SICK, "--times", "2026-11-20T11:23:55/"], "name two captures"),
        ([SICK, "--times", "yesterday"], "write FROM/TO"),
        ([HEALTHY, SICK, "--from", "2026-11-20T11:23:55"], "--times FROM/TO"),
        ([HEALTHY, SAMPLES / "no_such.pcapng"], "no_such.pcapng"),
    ],
    ids=["one", "three", "two and at", "one time", "no times", "from", "not there"],
)
def test_one_clear_line(words: list[object], said: str) -> None:
    done = run("compare", *map(str, words))
    assert done.returncode == 2
    assert said in done.stderr.decode()


def test_what_failed_exchanges_have_in_common() -> None:
    path = SAMPLES / "kafka_fenced_commit.pcapng"
    done = run("differ", path, "--where", "status = 'error'", "--format", "csv")
    assert done.returncode == 0
    (row,) = csv.DictReader(io.StringIO(done.stdout.decode()))
    assert (row["dimension"], row["value"], row["chosen"], row["of_chosen"]) == (
        "error",
        "ILLEGAL_GENERATION",
        "7",
        "12",
    )
    assert (row["rest"], float(row["chance"]) < 0.01) == ("0", True)


def test_exchanges_that_are_like_all_others() -> None:
    done = run("differ", HEALTHY, "--where", "latency_ms > 1e9")
    assert b"No exchange is like that: there is nothing to compare." in done.stdout


def test_a_wrong_condition_is_one_line() -> None:
    done = run("differ", HEALTHY, "--where", "latencyms > 3")
    assert done.returncode == 2
    assert done.stderr.decode().startswith("wirewitness: --where: ")
