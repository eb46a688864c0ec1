"""What the tables and verdicts of the benchmark say of given measurements."""

from __future__ import annotations

import pytest

from tests.bench.compare import Check, CountsDiffer, all_of, equal, none_invented
from tests.bench.decode import Cost
from tests.bench.measure import Run
from tests.bench.report import Memory, Results, Timing, Two, markdown
from tests.support.replay import Replayed

SIZE = Replayed(packets=100, size_bytes=2_000_000, exchanges=40, flows=2, requests=40, responses=40)


def runs(*walls_s: float) -> list[Run]:
    return [Run(wall_s, 2 * wall_s, 50.0) for wall_s in walls_s]


def by_two(table: float, report: float) -> Timing:
    """The start of one takes a second, that of two as well."""
    two = Two((1, 1), runs(3), runs(5), (table, report))
    return Timing("small", SIZE, "", "tshark", runs(9), runs(5), 3, reports=runs(7), two=two)


@pytest.mark.parametrize(
    ("results", "verdict"),
    [
        pytest.param(
            Results([Timing("small", SIZE, "40 exchanges", "tshark", runs(9, 6, 1), runs(2, 2, 9), 3)]),
            "- small: 3.00 x tshark by processor time, aim 3 x: met",
            id="medians, just met",
        ),
        pytest.param(
            Results([Timing("small", SIZE, "", "tshark", runs(9), runs(3), 3, reports=runs(3), analysed=6)]),
            "- small, analyse: 3.00 x tshark by processor time, aim 6 x: MISSED",
            id="analyse",
        ),
        pytest.param(
            Results([Timing("small", SIZE, "", "tshark", runs(9), runs(3), 3, reports=[Run(1, 1, 401.0)])]),
            "- small, analyse: peak 401 MiB, aim 400 MiB: MISSED",
            id="memory of analyse",
        ),
        pytest.param(
            Results([Timing("small", SIZE, "", "tshark", runs(3), runs(2), 1.7)]),
            "- small: 1.50 x tshark by processor time, aim 1.7 x: MISSED",
            id="missed",
        ),
        pytest.param(
            Results([by_two(1.8, 0)]),
            "- small, two processes: 2.00 x one, start not counted, aim 1.8 x: met",
            id="two processes",
        ),
        pytest.param(
            Results([by_two(0, 1.7)]),
            "- small, analyse by two processes: 1.50 x one, start not counted, aim 1.7 x: MISSED",
            id="analyse by two processes",
        ),
        pytest.param(
            Results(memories=[Memory("small", times, SIZE, runs(1)[0], Run(1, 1, 100.0 * times)) for times in (1, 2)]),
            "- small: peak 200 MiB, aim 400 MiB: met; from 1x to 2x +100 MiB: NOT FLAT (at most 32)",
            id="memory grows",
        ),
        pytest.param(
            Results(costs=[Cost("Fetch", 4, "request", 9, 100, 100), Cost("Fetch", 5, "request", 9, 400, 100)]),
            "- decode Fetch: median 2.50 x kio's time, worst 4.00 x (v5 request), aim 3 x: MISSED",
            id="decode cost",
        ),
        pytest.param(Results(skipped=["records: no table"]), "- skipped: records: no table", id="skipped"),
    ],
)
def test_verdicts(results: Results, verdict: str) -> None:
    assert verdict in markdown(results, judged=True).splitlines()


def test_small_captures_are_not_judged() -> None:
    results = Results([Timing("small", SIZE, "40 exchanges", "tshark", runs(9), runs(1), 3)])
    text = markdown(results, judged=False)
    assert "| 40 exchanges | 1 | tshark | 9.00 (9.00 to 9.00) | 1.00 (1.00 to 1.00) | 9.00 |" in text
    assert "aim 3 x" not in text
    text = markdown(Results([Timing("small", SIZE, "", "tshark", runs(9), runs(1), 3, reports=runs(2))]), judged=False)
    assert "| 4.00 | 4.50 | 50 |" in text
    text = markdown(Results([by_two(1.8, 1.7)]), judged=False)
    assert "| 3.00 (3.00 to 3.00) | 6.00 | 2.00 | 5.00 (5.00 to 5.00) | 10.00 | 1.50 |" in text


@pytest.mark.parametrize(
    ("check", "name", "found", "accepted"),
    [
        pytest.param(all_of(SIZE), "tshark", (40, 40), True, id="all"),
        pytest.param(all_of(SIZE), "tshark", (40, 39), False, id="one missing"),
        pytest.param(none_invented(SIZE), "wirewitness", (38, 39), True, id="some lost"),
        pytest.param(none_invented(SIZE), "wirewitness", (38, 41), False, id="one made up"),
        pytest.param(none_invented(SIZE), "wirewitness", (19, 40), False, id="most lost"),
        pytest.param(equal(10)[0], "tshark", (40,), True, id="whole batches"),
        pytest.param(equal(10)[0], "tshark", (39,), False, id="a record missing"),
        pytest.param(equal(10)[0], "tshark", (0,), False, id="no records"),
    ],
)
def test_counts_are_compared(check: Check, name: str, found: tuple[int, ...], accepted: bool) -> None:
    if accepted:
        check(name, found)
    else:
        with pytest.raises(CountsDiffer):
            check(name, found)
