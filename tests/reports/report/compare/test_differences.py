"""What differs between two sources: only what chance does not make, the largest and surest first."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from tests.support.analysis_from_rows import RowsAnalysis
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.app.dashboard.views.compare import DOORS
from wirewitness.reports.base.questions.causes import Finding
from wirewitness.reports.report.compare.differences import Between, between, groups_between
from wirewitness.reports.report.differences import _TOLD, Difference, differences

SECOND_NS = 1_000_000_000
Change = Callable[[dict[str, Any], random.Random], None]


def run(seed: int, change: Change | None = None, seconds: int = 60, client: str = "reader") -> list[dict[str, Any]]:
    """Exchanges of a minute of three operations, latencies and gaps as machines have them."""
    chosen = random.Random(seed)
    made = []
    for operation, per_second, median_ms in (("Read", 20, 2.0), ("Write", 5, 8.0), ("Join", 0.2, 30.0)):
        at_s = chosen.expovariate(per_second)
        while at_s < seconds:
            row = {
                "exchange_id": f"{operation}-{len(made)}", "protocol": "kafka", "operation": operation,
                "client_id": client, "client_address": "10.0.0.1", "version": "3", "ts": int(at_s * SECOND_NS),
                "latency_ms": median_ms * chosen.lognormvariate(0, 0.7), "status": "ok", "error_code": 0,
            }  # fmt: skip
            if chosen.random() < 0.02:
                row |= {"status": "error", "error_code": 27, "error_name": "REBALANCE_IN_PROGRESS"}
            if change is not None:
                change(row, chosen)
            made.append(row)
            at_s += chosen.expovariate(per_second)
    return made


def compared(
    a: Sequence[Mapping[str, Any]],
    b: Sequence[Mapping[str, Any]],
    found: tuple[list[Finding], list[Finding]] = ([], []),
    groups: tuple[list[dict[str, Any]], list[dict[str, Any]]] = ([], []),
) -> Between:
    return between(RowsAnalysis({"exchanges": a}), RowsAnalysis({"exchanges": b}), found, groups)


def told(*given: Any, **named: Any) -> list[Difference]:
    return differences(compared(*given, **named))


def finding(code: str, severity: str) -> Finding:
    return Finding(code, code, "name", severity, "high", False, "", "", "", None, None, (), {}, "s")


def group(name: str, **changed: Any) -> dict[str, Any]:
    row = dict.fromkeys(("state", "members", "lag", "worst"))
    counts = {"commits": 400, "refused": 0, "foreign_commits": 0, "committers": 2}
    return {"cluster_id": "c", "group_id": name, **row, **counts, **changed}


@pytest.mark.parametrize("seed", range(12))
def test_two_runs_of_one_system_have_no_differences(seed: int) -> None:
    assert told(run(seed), run(seed + 100)) == []


def test_a_longer_run_of_the_same_has_none() -> None:
    assert told(run(1, seconds=30), run(2, seconds=240)) == []


def test_a_slow_operation_comes_first_with_its_latencies() -> None:
    def slow(row: dict[str, Any], chosen: random.Random) -> None:
        row["latency_ms"] *= 6 if row["operation"] == "Write" else 1

    found = told(run(1), run(2, slow))
    assert [(one.kind, one.what) for one in found] == [("latency", "Write: median latency")]
    assert 3 < found[0].factor < 6
    row = compared(run(1), run(2, slow)).operations[0]
    assert row["operation"] == "Write"
    assert row["p50_ms_b"] > 4 * row["p50_ms_a"]


def test_a_slow_tail_is_told_where_the_median_stands() -> None:
    def stalls(row: dict[str, Any], chosen: random.Random) -> None:
        if row["operation"] == "Read" and chosen.random() < 0.03:
            row["latency_ms"] = 900.0

    assert [one.what for one in told(run(1), run(2, stalls))] == ["Read: p99 latency"]


def test_few_slow_ones_are_not_sure() -> None:
    """12 exchanges of Join: their p99 is the longest, which says little of it."""

    def slow(row: dict[str, Any], chosen: random.Random) -> None:
        if row["operation"] == "Join" and chosen.random() < 0.1:
            row["latency_ms"] = 500.0

    assert told(run(1), run(2, slow)) == []


def test_errors_are_compared_as_shares() -> None:
    def refused(row: dict[str, Any], chosen: random.Random) -> None:
        if row["operation"] == "Write" and chosen.random() < 0.3:
            row.update(status="error", error_code=22, error_name="ILLEGAL_GENERATION")

    (one,) = told(run(1), run(2, refused))
    assert (one.kind, one.what, one.a[:5]) == ("error", "Write answered ILLEGAL_GENERATION", "0 of ")
    assert told(run(1, refused), run(2, refused, seconds=200)) == []


def test_an_operation_of_one_side_and_a_load_that_grew() -> None:
    def no_reads(row: dict[str, Any], chosen: random.Random) -> None:
        row["operation"] = "Fetch" if row["operation"] == "Read" else row["operation"]

    found = told(run(1), run(2, no_reads))
    assert {(one.what, one.a == "none", one.b == "none") for one in found} == {
        ("Read per second", False, True), ("Fetch per second", True, False),
    }  # fmt: skip


def test_rates_are_of_the_selected_time() -> None:
    """The same rows twice, of which one side selects a third."""
    rows = run(3)
    third = RowsAnalysis({"exchanges": rows}, ReadOptions(from_ns=0, to_ns=20 * SECOND_NS))
    made = between(third, RowsAnalysis({"exchanges": rows}), ([], []), ([], []))
    assert differences(made) == []
    read = next(row for row in made.operations if row["operation"] == "Read")
    assert read["per_second_a"] == pytest.approx(read["per_second_b"], rel=0.2)


def test_a_finding_of_one_side_comes_before_what_is_measured() -> None:
    def slow(row: dict[str, Any], chosen: random.Random) -> None:
        row["latency_ms"] *= 40

    found = ([finding("KAF309", "info")], [finding("KAF104", "critical"), finding("KAF201", "warning")])
    kinds = [(one.kind, one.what.split()[0]) for one in told(run(1), run(2, slow), found=found)]
    assert kinds[:2] == [("finding", "KAF104"), ("finding", "KAF201")]
    assert {kind for kind, _ in kinds[2:]} == {"latency"}
    alike = ([finding("KAF104", "critical")] * 4, [finding("KAF104", "critical")] * 6)
    assert told(run(1), run(2), found=alike) == []


def test_clients_go_by_their_names_without_what_is_made_anew() -> None:
    ids = ("reader-0f8fad5b-d9cb-469f-a165-70867728950e", "reader-7c9e6679-7425-40de-944b-e07fc1f90ae7")
    assert told(run(1, client=ids[0]), run(2, client=ids[1])) == []
    went, came = told(run(1, client="old"), run(2, client="new"))
    assert {went.what, came.what} == {"Client old", "Client new"}
    assert (went.a, went.b) in (("1 client", "none of them"), ("none of them", "1 client"))


def test_another_version_is_told_with_its_operation() -> None:
    def newer(row: dict[str, Any], chosen: random.Random) -> None:
        row["version"] = "4" if row["operation"] == "Write" else row["version"]

    (one,) = told(run(1), run(2, newer))
    assert (one.kind, one.what, one.a, one.b) == ("version", "Versions of reader", "Write 3", "Write 4")


def test_groups() -> None:
    same = run(1)
    healthy = [group("payments", commits=390, state="Stable", members=3), group("orders")]
    other = [group("payments", state="Empty", members=0), group("orders")]
    assert told(same, same, groups=(healthy, other)) == []
    wrong = [group("payments", foreign_commits=60), group("refunds")]
    found = told(same, same, groups=(healthy, wrong))
    assert [one.what for one in found] == [
        "Group payments: commits not by the owner", "Group orders", "Group refunds",
    ]  # fmt: skip
    assert (found[0].a, found[0].b) == ("0 of 390", "60 of 400")


def test_groups_that_stand_differently_come_before_those_that_do_not() -> None:
    """Where nothing went wrong: another state first, then the one whose lag changed most."""
    before = [group("a", lag=5), group("b", lag=160), group("c"), group("d", state="Stable")]
    after = [group("a", lag=5), group("b", lag=520), group("c", lag=9), group("d", state="Empty")]
    assert [row["group_id"] for row in groups_between(before, after)] == ["d", "b", "c", "a"]


def test_a_side_without_exchanges() -> None:
    assert told([], []) == []
    found = told([], run(1))
    assert {one.kind for one in found} == {"client", "rate"}
    assert {one.a for one in found} == {"none", "none of them"}


def fetched(seconds: int, per_second: float, topic: str, seed: int, **setting: Any) -> list[dict[str, Any]]:
    """Answers that bring records of a topic."""
    chosen, made, at_s = random.Random(seed), [], 0.0
    while (at_s := at_s + chosen.expovariate(per_second)) < seconds:
        who = {"client_id": "reader", "client_address": "10.0.0.1", "replica_id": -1, "max_wait_ms": 500}
        what = {"topic": topic, "partition": 0, "records_bytes": 100, "ts": int(at_s * SECOND_NS)}
        made.append({"exchange_id": f"f-{len(made)}", **who, **what, **setting})
    return made


def sides_of(*fetches: list[dict[str, Any]]) -> list[Difference]:
    rows = [RowsAnalysis({"exchanges": run(seed), "kafka_fetch_partitions": told}) for seed, told in enumerate(fetches)]
    return differences(between(rows[0], rows[1], ([], []), ([], [])))


def test_topics_of_which_more_is_read() -> None:
    assert sides_of(fetched(60, 8, "orders", 1), fetched(60, 8, "orders", 2)) == []
    (one,) = sides_of(fetched(60, 8, "orders", 1), fetched(60, 40, "orders", 2))
    assert (one.kind, one.what) == ("topic", "Topic orders: records read per second")
    assert 3 < one.factor < 6


def test_topics_of_one_side_share_a_line() -> None:
    both = fetched(60, 8, "orders", 1)
    (one,) = sides_of(both, [*both, *fetched(60, 8, "copies", 2), *fetched(60, 8, "audits", 3)])
    assert (one.what, one.a, one.b, one.measured) == ("Topics audits, copies", "none of them", "2 topics", False)


def test_a_setting_that_changed_is_told_with_its_values() -> None:
    (one,) = sides_of(fetched(60, 8, "orders", 1), fetched(60, 8, "orders", 2, max_wait_ms=50))
    assert (one.kind, one.what, one.a, one.b) == ("setting", "fetch.max.wait.ms of reader", "500", "50")


def test_a_setting_with_values_that_both_sides_have_is_none() -> None:
    a, b = fetched(60, 8, "orders", 1), fetched(60, 8, "orders", 2)
    b[3]["max_wait_ms"] = 50
    assert sides_of(a, b) == []


def test_every_kind_of_difference_opens_a_page() -> None:
    assert set(DOORS) == set(_TOLD)
