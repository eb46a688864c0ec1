"""Medians and high quantiles of a number, by what it is of, with the range of each. In: SQL; out: SQL and factors.

A quantile lies almost surely between two of the sorted values, whose places the number of values gives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

from wirewitness.reports.base.questions.confidence import SIGMAS, Range, least_factor

Row = Mapping[str, Any]
QUANTILES = {"p50": 0.5, "p99": 0.99}


def quantiles_of(told: str, keys: Sequence[str], value: str) -> str:
    """SQL: keys and, for each quantile, its value, low and high. told: a SELECT with the keys and the value.

    value: a name of it without spaces; rows without it count for nothing.
    """
    by = ", ".join(keys)
    bounds = ", ".join(_bounds(value, *one) for one in QUANTILES.items())
    return f"""
        select {by}, {bounds} from (
            select *, row_number() over (partition by {by} order by {value}) as place,
                   count(*) over (partition by {by}) as n
            from ({told}) where {value} is not null)
        group by {by}"""


def _bounds(value: str, name: str, share: float) -> str:
    spread = f"{SIGMAS} * sqrt(n * {share * (1 - share)})"
    return f"""
        quantile_cont({value}, {share}) as {name}_{value},
        min({value}) filter (place >= n * {share} - {spread}) as {name}_{value}_low,
        min({value}) filter (place >= n * {share} + {spread} + 1) as {name}_{value}_high"""


def quantile_factor(sides: Sequence[Row], name: str, value: str, blur: float) -> float:
    """The least factor between both sides; 1 where a side has no value at all: that is a matter of rates.

    blur: as of `least_factor`.
    """
    if any(told.get(f"{name}_{value}") is None for told in sides):
        return 1.0
    ranges = [Range(told[f"{name}_{value}_low"], _or_inf(told[f"{name}_{value}_high"])) for told in sides]
    return least_factor(ranges[0], ranges[1], blur)


def _or_inf(value: float | None) -> float:
    return inf if value is None else value
