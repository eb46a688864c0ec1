"""Findings of a window that moves on are told once."""

from __future__ import annotations

from typing import Any

import pytest

from analyser.live.known import KnownFindings


def row(
    finding_id: str, first: int | None, last: int | None, provisional: bool = False, subject: str = "s"
) -> dict[str, Any]:
    return {"finding_id": finding_id, "code": "X1", "subject": subject, "ts_first": first, "ts_last": last,
            "provisional": provisional}  # fmt: skip


WINDOWS = [
    pytest.param([[row("a", 1, 5)], [row("a", 1, 9)]], [["new a"], []], id="the same finding again"),
    pytest.param([[row("a", 1, 5)], [row("b", 4, 9)]], [["new a"], []], id="the window moved on within the condition"),
    pytest.param([[row("a", 1, 5)], [row("b", 4, 9)], [row("c", 8, 12)]], [["new a"], [], []], id="and once more"),
    pytest.param([[row("a", 1, 5)], [row("b", 7, 9)]], [["new a"], ["new b"]], id="the condition came back later"),
    pytest.param([[row("a", 1, 5), row("b", 3, 7)]], [["new a", "new b"]], id="two at a time"),
    pytest.param([[row("a", 1, 5)], [row("a", 1, 5), row("b", 3, 7)]], [["new a"], ["new b"]], id="a second beside it"),
    pytest.param([[row("a", 1, 5)], [row("a", 1, 5, subject="t")]], [["new a"], ["new a"]], id="another subject"),
    pytest.param([[row("a", None, None)], [row("b", None, None)]], [["new a"], []], id="without a time"),
    pytest.param([[row("a", 1, 5, True)], [row("a", 1, 5)]], [["new a"], ["confirmed a"]], id="provisional no longer"),
    pytest.param([[row("a", 1, 5, True)], [], []], [["new a"], ["withdrawn a"], []], id="overturned"),
    pytest.param([[row("a", 1, 5)], []], [["new a"], []], id="one that is not provisional stands"),
    pytest.param(
        [[row("a", 1, 5, True)], [], [row("a", 1, 5)]],
        [["new a"], ["withdrawn a"], ["new a"]],
        id="overturned too soon",
    ),
]


@pytest.mark.parametrize(("windows", "told"), WINDOWS)
def test_news(windows: list[list[dict[str, Any]]], told: list[list[str]]) -> None:
    known = KnownFindings()
    assert [[f"{n.what} {n.finding['finding_id']}" for n in known.take(found, None)] for found in windows] == told


def test_what_has_left_the_window_is_not_overturned() -> None:
    known = KnownFindings()
    known.take([row("a", 1, 5, True)], None)
    assert known.take([], 3) == []
    assert [one["finding_id"] for one in known.rows()] == ["a"]


def test_a_finding_keeps_its_first_id_and_time() -> None:
    known = KnownFindings()
    known.take([row("a", 1, 5)], None)
    known.take([row("b", 4, 9)], 3)
    assert [(one["finding_id"], one["ts_first"], one["ts_last"]) for one in known.rows()] == [("a", 1, 9)]
