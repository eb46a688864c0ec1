"""What differs between two sources: two times of a capture, or two captures. In: sources; out: tables.

Each table has what differs most first, by a factor that chance does not make (`confidence.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import Any, NamedTuple

from wirewitness.analyser.base.severity import severity_rank
from wirewitness.reports.base.questions.causes import Finding
from wirewitness.reports.base.questions.confidence import count_range, least_factor
from wirewitness.reports.base.questions.source import Source
from wirewitness.reports.report.compare.differing_clients import clients_between
from wirewitness.reports.report.compare.differing_operations import errors_between, operations_between
from wirewitness.reports.report.compare.differing_settings import settings_between
from wirewitness.reports.report.compare.differing_topics import topics_between

# Groups of two sources side by side. In: rows of `group_list` of both; out: rows, what differs most first.

Row = Mapping[str, Any]
_PAIRED = ("state", "members", "lag", "commits", "refused", "foreign_commits", "committers", "worst")
# What may go wrong with commits. States, members and lag are those of a moment: they go into the table only.
_WRONG = ("refused", "foreign_commits")


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


class Between(NamedTuple):
    """The tables of a comparison: rows of the functions of these names."""

    findings: list[dict[str, Any]]
    errors: list[dict[str, Any]]
    operations: list[dict[str, Any]]
    clients: list[dict[str, Any]]
    groups: list[dict[str, Any]]
    topics: list[dict[str, Any]]
    settings: list[dict[str, Any]]


def between(
    a: Source,
    b: Source,
    found: tuple[Iterable[Finding], Iterable[Finding]],
    groups: tuple[Iterable[Mapping[str, Any]], Iterable[Mapping[str, Any]]],
) -> Between:
    """found: the findings of both. groups: rows of `group_list` of both."""
    return Between(
        findings_between(*found), errors_between(a, b), operations_between(a, b), clients_between(a, b),
        groups_between(*groups), topics_between(a, b), settings_between(a, b),
    )  # fmt: skip


def findings_between(a: Iterable[Finding], b: Iterable[Finding]) -> list[dict[str, Any]]:
    """code, name, severity (the worst), findings of both, differs (inf: one side has none); the worst difference first.

    A rule tells what is, so that one side has a finding and the other none is no chance.
    """
    counts: dict[tuple[str, str], Counter[str]] = {}
    worst: dict[tuple[str, str], str] = {}
    for side, found in (("a", a), ("b", b)):
        for one in found:
            key = one.code, one.name
            counts.setdefault(key, Counter())[side] += 1
            worst[key] = max(worst.get(key, one.severity), one.severity, key=severity_rank)
    made = [
        {"code": key[0], "name": key[1], "severity": worst[key], "findings_a": told["a"], "findings_b": told["b"],
         "differs": _factor(told["a"], told["b"])}
        for key, told in counts.items()
    ]  # fmt: skip
    return sorted(
        made,
        key=lambda row: (
            -row["differs"], -severity_rank(row["severity"]), -max(row["findings_a"], row["findings_b"]), row["code"],
        ),
    )  # fmt: skip


def _factor(a: int, b: int) -> float:
    return least_factor(count_range(a), count_range(b)) if a and b else inf
