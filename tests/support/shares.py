"""The share of an exhaustive test that `make test` runs; `make test-exhaustive` runs the rest.

In: all cases of a test, and a rule that says which of them stand for the others. Out: the same cases in the same order,
those outside the share marked `exhaustive`. Nothing is left out: the two targets together run every case.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest
from _pytest.mark import ParameterSet
from hypothesis import settings

SAMPLES = Path(__file__).resolve().parents[2] / "sample_pcaps"
# The run of what `make test` leaves out: the Makefile says so.
RUNS_THE_REST = os.environ.get("WIREWITNESS_TESTS") == "exhaustive"

Case = TypeVar("Case")


def share(cases: Iterable[Case], kept: Collection[Case]) -> list[ParameterSet]:
    """Cases for `parametrize` with one name, or with several where each case has been made by `pytest.param`."""
    return [_param(case, () if case in kept else (pytest.mark.exhaustive,)) for case in cases]


def long_cases(cases: Iterable[Case], *kept: Case) -> list[ParameterSet]:
    """Cases of which CI runs a share with each commit (see `share.py`), those kept with every one."""
    return [_param(case, () if case in kept else (pytest.mark.cases,)) for case in cases]


def pairs(cases: Iterable[tuple[Any, ...]], kept: Collection[tuple[Any, ...]]) -> list[ParameterSet]:
    """The same for cases of several values, one for each name of `parametrize`."""
    return [pytest.param(*case, marks=() if case in kept else pytest.mark.exhaustive) for case in cases]


def _param(case: Any, marks: Sequence[pytest.MarkDecorator]) -> ParameterSet:
    if isinstance(case, ParameterSet):
        return pytest.param(*case.values, marks=[*case.marks, *marks], id=case.id)
    return pytest.param(case, marks=marks)


def smallest(samples: Iterable[Case], each: int = 1) -> set[Case]:
    """The smallest sample captures of each protocol, by paths or names, whatever their suffix."""
    kept: dict[str, list[Case]] = {}
    for sample in sorted(samples, key=lambda one: (SAMPLES / f"{_stem(one)}.pcapng").stat().st_size):
        kept.setdefault(_stem(sample).partition("_")[0], []).append(sample)
    return {sample for of_protocol in kept.values() for sample in of_protocol[:each]}


def _stem(sample: object) -> str:
    return Path(str(sample)).name.partition(".")[0]


def turns(firsts: Iterable[Any], seconds: Iterable[Any]) -> set[tuple[Any, Any]]:
    """As many pairs as the longer of both has, so that each of the two is met."""
    some, others = list(firsts), list(seconds)
    return {(some[n % len(some)], others[n % len(others)]) for n in range(max(len(some), len(others)))}


def every(step: int, cases: Iterable[Case]) -> list[Case]:
    """The first of so many, the next of the next so many."""
    return list(cases)[::step]


def examples(number: int, **more: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """So many examples of Hypothesis in the exhaustive run, a quarter of them otherwise; more: further settings."""
    chosen = settings(max_examples=number if RUNS_THE_REST else max(number // 4, 2), deadline=None, **more)

    return lambda test: proves_more(chosen(test))


def proves_more(test: Callable[..., None]) -> Callable[..., None]:
    """A test that both targets run, and that looks at more where RUNS_THE_REST."""
    return pytest.mark.exhaustive(test) if RUNS_THE_REST else test
