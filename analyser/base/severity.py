"""How grave a finding is and how sure: the words, lowest first, and their order."""

from __future__ import annotations

from typing import Literal

Severity = Literal["info", "warning", "critical"]
Confidence = Literal["low", "medium", "high"]

SEVERITIES: tuple[Severity, ...] = ("info", "warning", "critical")
CONFIDENCES: tuple[Confidence, ...] = ("low", "medium", "high")


def severity_rank(severity: str) -> int:
    """0 for info, 2 for critical; -1 for a word that is none, as a dataset from elsewhere may hold."""
    return _rank(severity, SEVERITIES)


def confidence_rank(confidence: str) -> int:
    """0 for low, 2 for high; -1 for a word that is none."""
    return _rank(confidence, CONFIDENCES)


def _rank(word: str, order: tuple[str, ...]) -> int:
    return order.index(word) if word in order else -1
