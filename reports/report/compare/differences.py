"""What differs between two sources: two times of a capture, or two captures. In: sources; out: tables.

Each table has what differs most first, by a factor that chance does not make (`confidence.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from math import inf
from typing import Any, NamedTuple

from wirewitness.analyser.base.severity import severity_rank
from wirewitness.reports.base.questions.causes import Finding
from wirewitness.reports.base.questions.confidence import count_range, least_factor
from wirewitness.reports.base.questions.source import Source
from wirewitness.reports.report.compare.differing_clients import clients_between
from wirewitness.reports.report.compare.differing_groups import group_sizes_between, groups_between
from wirewitness.reports.report.compare.differing_operations import errors_between, operations_between
from wirewitness.reports.report.compare.differing_servers import servers_between
from wirewitness.reports.report.compare.differing_settings import settings_between
from wirewitness.reports.report.compare.differing_shapes import shapes_between
from wirewitness.reports.report.compare.differing_sizes import sizes_between
from wirewitness.reports.report.compare.differing_topics import topics_between


class Between(NamedTuple):
    """The tables of a comparison: rows of the functions of these names."""

    findings: list[dict[str, Any]]
    errors: list[dict[str, Any]]
    operations: list[dict[str, Any]]
    clients: list[dict[str, Any]]
    groups: list[dict[str, Any]]
    topics: list[dict[str, Any]]
    settings: list[dict[str, Any]]
    servers: list[dict[str, Any]]
    shapes: list[dict[str, Any]]
    sizes: list[dict[str, Any]]
    group_sizes: list[dict[str, Any]]


def between(
    a: Source,
    b: Source,
    found: tuple[Iterable[Finding], Iterable[Finding]],
    groups: tuple[Iterable[Mapping[str, Any]], Iterable[Mapping[str, Any]]],
) -> Between:
    """found: the findings of both. groups: rows of `group_list` of both."""
    return Between(
        findings_between(*found), errors_between(a, b), operations_between(a, b), clients_between(a, b),
        groups_between(*groups), topics_between(a, b), settings_between(a, b), servers_between(a, b),
        shapes_between(a, b), sizes_between(a, b), group_sizes_between(a, b),
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
