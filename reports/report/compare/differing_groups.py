"""Groups of Kafka of two sources side by side: what went wrong with commits, and how many members they had. In: rows of
`group_list` and sources of both; out: rows, what differs most first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from operator import itemgetter
from typing import Any

from wirewitness.reports.base.questions.confidence import count_range, least_factor
from wirewitness.reports.base.questions.source import Source, all_rows
from wirewitness.reports.base.questions.timelines import selected_span_ns

Row = Mapping[str, Any]
GROUP_TABLES = ("kafka_group_states",)
_PAIRED = ("state", "members", "lag", "commits", "refused", "foreign_commits", "committers", "worst")
# What may go wrong with commits. States, members and lag are those of a moment: they go into the table only.
_WRONG = ("refused", "foreign_commits")
# A number of members that stood for a smaller part of the time is one on the way to another.
_STOOD = 0.1
# While members join nobody counts on them. A state may have begun before the selected time.
_SIZES = """
    select group_id, members, sum(least(coalesce(epoch_ns(ts_end), {to}), {to}) - greatest(epoch_ns(ts), {begin}))
           ::double as stood
    from kafka_group_states
    where members is not null and group_id is not null and coalesce(epoch_ns(ts_end), {to}) > {begin}
      and epoch_ns(ts) < {to} and state not in ('PreparingRebalance', 'CompletingRebalance', 'Dead')
    group by group_id, members"""


def groups_between(a: Iterable[Row], b: Iterable[Row]) -> list[dict[str, Any]]:
    """cluster_id, group_id; there, and what `_PAIRED` names, of both sides; wrong (what differs most), differs.

    Groups go by their names: the same system captured again may have told another cluster. differs: inf for a group of
    one side only that did anything, else the least factor (`confidence.py`) between shares of commits.
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
    factors = {name: _factor_of_commits(name, a, b) for name in _WRONG}
    worst = max(factors, key=lambda name: factors[name])
    return (worst, factors[worst]) if factors[worst] > 1 else ("", 1.0)


def _factor_of_commits(name: str, a: Row, b: Row) -> float:
    ranges = [count_range(side[name]).over(max(side["commits"] + side["refused"], 1)) for side in (a, b)]
    return least_factor(ranges[0], ranges[1])


def _by_name(found: Iterable[Row]) -> dict[str | None, Row]:
    """The first of each name: lists begin with the worst."""
    named: dict[str | None, Row] = {}
    for row in found:
        named.setdefault(row["group_id"], row)
    return named


def group_sizes_between(a: Source, b: Source) -> list[dict[str, Any]]:
    """group_id, before, after: how many members a group had for most of the time, where that is another number and
    neither side had the other's for a tenth of its time."""
    left, right = _sizes(a), _sizes(b)
    made = []
    for name in left.keys() & right.keys():
        usual = [max(side[name].items(), key=itemgetter(1))[0] for side in (left, right)]
        if usual[1] not in _held(left[name]) and usual[0] not in _held(right[name]):
            made.append({"group_id": name, "cluster_id": None, "before": usual[0], "after": usual[1]})
    return sorted(made, key=lambda row: (-abs(row["after"] - row["before"]), row["group_id"]))


def _sizes(source: Source) -> dict[str, dict[int, float]]:
    """For how long each group had how many members."""
    span = selected_span_ns(source)
    found: dict[str, dict[int, float]] = {}
    if span is not None:
        for row in all_rows(source, _SIZES.format(begin=span[0], to=max(span[1], span[0] + 1))):
            found.setdefault(row["group_id"], {})[row["members"]] = row["stood"]
    return found


def _held(sizes: Mapping[int, float]) -> set[int]:
    whole = sum(sizes.values())
    return {size for size, stood in sizes.items() if stood >= _STOOD * whole}
