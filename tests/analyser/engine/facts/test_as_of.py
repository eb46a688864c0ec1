"""Rows as of some time, compared with DuckDB's ASOF joins and with looking at each row."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from wirewitness.analyser.engine.facts.as_of import NOWHERE, Timeline, taken

# Some few instants, days of ns, and so far apart that keys and times do not fit into one number.
SPANS = (5, 10**15, 2**62)


def _rows(random: np.random.Generator, count: int, span: int, lowest_key: int) -> tuple[np.ndarray, np.ndarray]:
    times = random.integers(0, span, count) + (0 if span > 10**15 else 1_700_000_000_000_000_000)
    return random.integers(lowest_key, 9, count), times


@pytest.mark.parametrize("span", SPANS)
@pytest.mark.parametrize("seed", range(20))
def test_each_row_is_found_as_by_looking_at_all(span: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    keys, times = _rows(random, int(random.integers(0, 60)), span, -1)
    asked_keys, asked_times = _rows(random, 40, span, -1)
    line = Timeline(keys, times)
    latest, following = line.latest(asked_keys, asked_times), line.next(asked_keys, asked_times)
    for place, (key, at) in enumerate(zip(asked_keys, asked_times, strict=True)):
        own = [(times[row], row) for row in range(len(keys)) if keys[row] == key and key >= 0]
        before = [row for at_ns, row in sorted(own) if at_ns <= at]
        after = [row for at_ns, row in sorted(own) if at_ns > at]
        assert latest[place] == (before[-1] if before else NOWHERE)
        assert following[place] == (after[0] if after else NOWHERE)


def test_times_of_one_day_fit_into_numbers_with_their_keys() -> None:
    """Then nothing looks for the different times of all rows, which takes longer than all else."""
    keys, times = _rows(np.random.default_rng(1), 60, 86_400 * 10**9, 0)
    assert Timeline(keys, times)._instants is None


@pytest.mark.parametrize("span", SPANS)
def test_times_are_those_of_asof_joins(span: int) -> None:
    random = np.random.default_rng(7)
    keys, times = _rows(random, 3_000, span, 0)
    asked_keys, asked_times = _rows(random, 3_000, span, 0)
    places = Timeline(keys, times).latest(asked_keys, asked_times)
    con = duckdb.connect()
    con.register("told", pa.table({"key": keys, "at_ns": times}))
    con.register("asked", pa.table({"row": np.arange(3_000), "key": asked_keys, "at_ns": asked_times}))
    joined = con.sql("""
        SELECT coalesce(told.at_ns, -1) FROM asked
        ASOF LEFT JOIN told ON asked.key = told.key AND asked.at_ns >= told.at_ns ORDER BY row""")
    assert [at_ns for (at_ns,) in joined.fetchall()] == taken(times, places, -1).tolist()


def test_times_at_the_ends_of_what_is_a_number() -> None:
    ends = np.array([-(2**63), 2**63 - 1])
    line = Timeline(np.array([0, 0]), ends)
    assert line.latest(np.array([0, 0, 0, 1]), np.array([-(2**63), 0, 2**63 - 1, 0])).tolist() == [0, 0, 1, NOWHERE]
    assert line.next(np.array([0, 0]), np.array([0, 2**63 - 1])).tolist() == [1, NOWHERE]


def test_keys_that_no_row_has_are_not_found() -> None:
    line = Timeline(np.array([0, 1]), np.array([10**15, 2 * 10**15]))
    asked = np.array([2, 2**40, 2**62, -1])
    assert line.latest(asked, np.full(4, 2**62)).tolist() == [NOWHERE] * 4
    assert line.next(asked, np.zeros(4, np.int64)).tolist() == [NOWHERE] * 4


def test_nothing_is_found_where_there_is_nothing() -> None:
    nothing = np.zeros(0, np.int64)
    line = Timeline(nothing, nothing)
    assert line.latest(np.array([0]), np.array([0])).tolist() == [NOWHERE]
    assert line.next(np.array([0]), np.array([0])).tolist() == [NOWHERE]
    assert taken(nothing, np.array([NOWHERE]), 7).tolist() == [7]
    assert not len(Timeline(np.array([0]), np.array([0])).latest(nothing, nothing))
