"""Groups of two sources side by side. In: rows of `group_list` of both; out: rows, what differs most first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import Any

from wirewitness.reports.base.questions.confidence import count_range, least_factor

Row = Mapping[str, Any]
_PAIRED = ("state", "members", "lag", "commits", "refused", "foreign_commits", "committers", "worst")
# What may go wrong with commits. States, members and lag are those of a moment: they go into the table only.
_WRONG = ("refused", "foreign_commits")


def groups_between(a: Iterable[Row], b: Iterable[Row]) -> list[dict[str, Any]]:
    """cluster_id, group_id; there, and what `_PAIRED` names, of both sides; wrong (what differs most), differs.

    Groups go by their names: the same system captured again may have told another cluster. differs: inf for a group of
    one side only that did anything, else the least factor (`chance.py`) between shares of commits.
    """
    left, right = _by_name(a), _by_name(b)
    made = []
    for name in {**left, **right}:
        sides = left.get(name), right.get(name)
        known = next(side for side in reversed(sides) if side is not None)
        row: dict[str, Any] = {"cluster_id": known["cluster_id"], "group_id": name}
        for side, told in zip("ab", sides, strict=True):
            row[f"there_{side}"] = told is not None
            row |= {f"{column}_{side}": told[column] if told is not None else None for column in _PAIRED}
        wrong, row["differs"] = _most(sides)
        made.append(row | {"wrong": wrong})
    return sorted(made, key=lambda row: (-row["differs"], -_stands(row), row["group_id"] or ""))


def _stands(row: Row) -> float:
    """How far apart both sides stand where nothing went wrong: another state first, then the lag."""
    other = row["state_a"] != row["state_b"] or row["members_a"] != row["members_b"]
    return inf if other else abs((row["lag_a"] or 0) - (row["lag_b"] or 0))


def _most(sides: Sequence[Row | None]) -> tuple[str, float]:
    """What differs most, and by which factor at least."""
    a, b = sides
    if a is None or b is None:
        return "there", inf
    factors = {name: _factor(name, a, b) for name in _WRONG}
    worst = max(factors, key=lambda name: factors[name])
    return (worst, factors[worst]) if factors[worst] > 1 else ("", 1.0)


def _factor(name: str, a: Row, b: Row) -> float:
    ranges = [count_range(side[name]).over(max(side["commits"] + side["refused"], 1)) for side in (a, b)]
    return least_factor(ranges[0], ranges[1])


def _by_name(found: Iterable[Row]) -> dict[str | None, Row]:
    """The first of each name: lists begin with the worst."""
    named: dict[str | None, Row] = {}
    for row in found:
        named.setdefault(row["group_id"], row)
    return named
