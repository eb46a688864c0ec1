"""Which values lie apart: given rows, expected lines; and the near misses."""

from __future__ import annotations

from typing import Any

import pytest

from wirewitness.analyser.engine.outliers.comparison import candidates
from wirewitness.analyser.engine.outliers.populations import Measure, Population
from wirewitness.analyser.engine.outliers.table import amount, sentence


def population(*measures: Measure) -> Population:
    return Population("kafka", "exchanges", ("client_id",), "select 1", measures)


def rows(*values: float | None, samples: int = 30, **more: Any) -> list[dict[str, Any]]:
    return [
        {"likes": "Produce", "client_id": f"c{number}", "samples": samples, "took": value, "usual": 0, **more}
        for number, value in enumerate(values)
    ]


LATENCY = Measure("latency", "took", "waiting", "{who} takes {value}", unit="ms", floor=20)
ROUND = (100.0, 101.0, 99.0, 102.0)


@pytest.mark.parametrize(
    ("values", "samples", "apart"),
    [
        ((*ROUND, 900.0), 30, ["c4"]),
        ((*ROUND, 290.0), 30, []),  # not three times as much
        ((300.0, 20.0, 700.0, 60.0, 900.0), 30, []),  # others are as far from each other
        ((1.0, 1.0, 1.0, 1.0, 20.0), 30, []),  # twenty times, but no 20 ms more
        ((*ROUND, 1.0), 30, []),  # below, where that does not count
        ((1.0, 45.0), 50, ["c1"]),  # one other: ten times, and 50 rows
        ((1.0, 45.0), 49, []),
        ((5.0, 45.0), 50, []),
        ((10.0, 11.0, 90.0), 20, ["c2"]),  # two others: five times, and 20 rows
        ((10.0, 11.0, 90.0), 19, []),
        ((100.0, None), 50, []),
        ((float("nan"), 1.0, 900.0), 10, []),
        ((700.0,), 50, []),
    ],
)
def test_among_likes(values: tuple[float | None, ...], samples: int, apart: list[str]) -> None:
    found = candidates(population(LATENCY), rows(*values, samples=samples))
    assert [one.row["client_id"] for one in found] == apart


def test_values_below_the_others_count_where_the_measure_says_so() -> None:
    measure = Measure("records", "took", "waiting", "{who} has {value}", floor=10, low=True)
    (found,) = candidates(population(measure), rows(*ROUND, 1.0))
    assert (found.row["client_id"], found.usual, found.others) == ("c4", 100.5, 4)


def test_likes_of_another_operation_are_not_compared() -> None:
    slow = [{**row, "likes": "Fetch"} for row in rows(900.0)]
    assert not [*candidates(population(LATENCY), rows(*ROUND) + slow)]


@pytest.mark.parametrize(
    ("value", "usual", "fires"), [(75, 1, True), (10, 3, True), (9, 3, False), (6, 0, False), (7, 0, True)]
)
def test_with_the_own_usual_value(value: int, usual: int, fires: bool) -> None:
    measure = Measure(
        "joins", "took", "waiting", "{who} joined {value} times, in {usual}", usual="usual", floor=6, ratio=3
    )
    (row,) = rows(value)
    assert bool([*candidates(population(measure), [{**row, "usual": usual}])]) is fires


def test_the_further_apart_and_the_more_rows_the_surer() -> None:
    def score(value: float, samples: int) -> float:
        return max(one.score for one in candidates(population(LATENCY), rows(*ROUND, value, samples=samples)))

    assert score(900.0, 30) < score(5_000.0, 30) < score(5_000.0, 300)


def test_a_sentence_has_the_value_the_usual_one_and_how_many_others() -> None:
    (found,) = candidates(population(LATENCY), rows(*ROUND, 1_900.0))
    assert sentence(found) == "Client c4 takes 1.9 s; usual 100 ms (4 others)."


def test_names_from_the_wire_are_shortened_and_control_nothing() -> None:
    (found,) = candidates(population(LATENCY), [*rows(*ROUND), {**rows(900.0)[0], "client_id": "x\n" * 500}])
    assert len(sentence(found)) < 220
    assert "\n" not in sentence(found)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(1234.0, "ms", "1.23 s"), (12.0, "ms", "12 ms"), (0.25, "", "0.25"), (34_000, "bytes", "34 kB"),
     (1_200, "records", "1,200 records")],
)  # fmt: skip
def test_amounts(value: float, unit: str, text: str) -> None:
    assert amount(value, unit) == text
