"""What the tables and verdicts of the benchmark say of given measurements."""

from __future__ import annotations

import pytest

from tests.bench.checks import Check, CountsDiffer, all_of, equal, none_invented
from tests.bench.decode import Cost
from tests.bench.live import LiveRate
from tests.bench.measure import Run
from tests.bench.report import markdown
from tests.bench.results import Irregular, Memory, Results, Start, Timing, Two
from tests.support.replay import Replayed

SIZE = Replayed(packets=100, size_bytes=2_000_000, exchanges=40, flows=2, requests=40, responses=40)


def runs(*walls_s: float) -> list[Run]:
    return [Run(wall_s, 2 * wall_s, 50.0) for wall_s in walls_s]


def rate(program: str, wanted: int, reached: float, seen: int = 10) -> LiveRate:
    """Ten packets at this rate."""
    return LiveRate(program, wanted, reached, sent=10, seen=seen, late_s=1, cpu_s=1)


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
            Results([by_two(1.8, 0)]),
            "- small, the larger of two processes: peak 50 MiB, aim 400 MiB: met",
            id="memory of two processes",
        ),
        pytest.param(
            Results([by_two(1.8, 0)._replace(two=Two((0, 0), (), [Run(1, 1, 401.0)]))]),
            "- small, analyse, the larger of two processes: peak 401 MiB, aim 400 MiB: MISSED",
            id="memory of analyse by two processes",
        ),
        pytest.param(
            Results([by_two(0, 1.7)]),
            "- small, analyse by two processes: 1.50 x one, start not counted, aim 1.7 x: MISSED",
            id="analyse by two processes",
        ),
        pytest.param(
            Results(memories=[Memory("small", times, SIZE, runs(1)[0], Run(1, 1, 100.0 * times)) for times in (1, 2)]),
            "- small: peak 200 MiB, aim 400 MiB: met; "
            "from 1x to 2x the largest is 2.00 x the smallest: NOT FLAT (at most 1.25 x)",
            id="memory grows",
        ),
        pytest.param(
            Results(
                memories=[
                    Memory("small", times, SIZE, runs(1)[0], runs(1)[0], Run(1, 1, 400.0 + times))
                    for times in (1, 2, 4, 8)
                ]
            ),
            "- small, analyse: peak 408 MiB, aim 400 MiB: MISSED; "
            "from 1x to 8x the largest is 1.02 x the smallest: flat (at most 1.25 x)",
            id="memory of analyse at all sizes",
        ),
        pytest.param(
            Results(starts=[Start("--help", [Run(9, 0.16, 1), Run(9, 0.14, 1), Run(9, 9, 1)], 0.15)]),
            "- start, --help: 0.16 s of processor time, aim 0.15 s: MISSED",
            id="start",
        ),
        pytest.param(
            Results(irregulars=[Irregular("mqtt", SIZE, runs(6, 5.4), runs(9, 5))]),
            "- irregular, mqtt: in lock-step 1.08 x one by one by processor time, at most 1.1 x: met",
            id="irregular, the least of both",
        ),
        pytest.param(
            Results(lives=[rate("wirewitness", 120_000, 99_500), rate("tcpdump -w", 120_000, 120_000)]),
            "- live: 99,500 packets/s without loss, at most 3 s late, aim 100,000: met",
            id="live, the sender woke up late",
        ),
        pytest.param(
            Results(lives=[rate("wirewitness", 80_000, 80_000), rate("wirewitness", 100_000, 100_000, seen=9)]),
            "- live: 80,000 packets/s without loss, at most 3 s late, aim 100,000: MISSED",
            id="live, packets are lost",
        ),
        pytest.param(
            Results(delays_s=[0.1, 2.1, 0.1]),
            "- live: findings at most 2.1 s after their packet, aim 2 s: MISSED",
            id="live, the latest finding",
        ),
        pytest.param(
            Results(lives=[rate("wirewitness", 80_000, 80_000)]),
            "- live: no finding came in time, aim 2 s: MISSED",
            id="live, no finding",
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
    assert "| small | 3.00 (3.00 to 3.00) | 6.00 | 50 | 2.00 | 5.00 (5.00 to 5.00) | 10.00 | 50 | 1.50 |" in text
    text = markdown(Results(starts=[Start("--help", [Run(2, 0.1, 1), Run(4, 0.2, 1)], 0.15)]), judged=False)
    assert "| --help | 2 | 0.15 (0.10 to 0.20) | 3.00 |" in text
    text = markdown(Results(irregulars=[Irregular("mqtt", SIZE, runs(6), runs(5))]), judged=False)
    assert "| mqtt | 100 | 2 | 1 | 12.00 | 10.00 | 1.20 |" in text
    memory = Memory("small", 4, SIZE, runs(1)[0], runs(1)[0])
    text = markdown(Results(memories=[memory, memory._replace(analyse=Run(1, 1, 70))]), judged=False)
    assert "| small | 4x | 100 | 2 | 2 | 40 | 50 | 50 |  |" in text
    assert "| small | 4x | 100 | 2 | 2 | 40 | 50 | 50 | 70 |" in text


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
