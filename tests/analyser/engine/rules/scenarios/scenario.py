"""A scenario: rows of tables, and the findings they must give.

In: rows. Out: one value per scenario for parametrised tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Scenario:
    """expected: (code, severity) of every finding that all rules together must give. `code` is the rule tested."""

    name: str
    code: str
    rows: Mapping[str, Iterable[Mapping[str, Any]]]
    expected: frozenset[tuple[str, str]]

    def __str__(self) -> str:
        return f"{self.code}-{self.name}"


def fires(code: str, severity: str, name: str, **rows: Iterable[Mapping[str, Any]]) -> Scenario:
    """A scenario in which exactly this finding must come."""
    return Scenario(name, code, rows, frozenset({(code, severity)}))


def silent(code: str, name: str, *allowed: tuple[str, str], **rows: Iterable[Mapping[str, Any]]) -> Scenario:
    """A scenario that looks like `code` and gives nothing but what is allowed."""
    return Scenario(name, code, rows, frozenset(allowed))
