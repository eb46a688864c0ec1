"""Findings of a window that moves on are told once."""

from __future__ import annotations

from typing import Any

import pytest

from wirewitness.analyser.live.findings_seen import KnownFindings


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
    pytest.param([[row("a", 1, 5)], []], [["new a"], []], id="what was before the window may bear it out"),
    pytest.param(
        [[row("a", 1, 5, True)], [], [row("a", 1, 5)]],
        [["new a"], ["withdrawn a"], ["new a"]],
        id="overturned too soon",
    ),
]


@pytest.mark.parametrize(("windows", "told"), WINDOWS)
def test_news(windows: list[list[dict[str, Any]]], told: list[list[str]]) -> None:
    known = KnownFindings()
    assert [[f"{n.what} {n.finding['finding_id']}" for n in known.take(found, 0)] for found in windows] == told


def test_what_has_left_the_window_is_not_overturned() -> None:
    known = KnownFindings()
    known.take([row("a", 1, 5, True)], None)
    assert known.take([], 3) == []
    assert [one["finding_id"] for one in known.rows()] == ["a"]


def test_what_a_window_of_all_packets_does_not_give_has_fallen() -> None:
    known = KnownFindings()
    known.take([row("a", 4, 5)], None)
    assert [n.finding["finding_id"] for n in known.take([], None)] == ["a"]


def test_a_finding_keeps_its_first_id_and_time() -> None:
    known = KnownFindings()
    known.take([row("a", 1, 5)], None)
    known.take([row("b", 4, 9)], 3)
    assert [(one["finding_id"], one["ts_first"], one["ts_last"]) for one in known.rows()] == [("a", 1, 9)]


def test_a_window_that_was_asked_earlier_overturns_nothing() -> None:
    """The far window is answered long after it was asked; what came meanwhile is not in it."""
    known = KnownFindings()
    known.take([], None, 10)
    assert [n.what for n in known.take([row("a", 12, 15, True)], 11, 20, is_near=True)] == ["new"]
    assert known.take([], None, 14) == []
    assert [n.what for n in known.take([], 11, 30, is_near=True)] == ["withdrawn"]
    assert known.take([row("a", 12, 15, True)], None, 25) == []  # asked before it fell


def test_a_near_window_leaves_what_comes_back_to_a_far_one() -> None:
    known = KnownFindings()
    known.take([row("a", 1, 5)], None, 5)
    again = row("b", 30, 32)
    assert known.take([again], 20, 32, is_near=True) == []
    assert known.take([row("a", 1, 33)], None, 33) == []  # the far one says: the same
    known.take([row("c", 60, 62)], 40, 62, is_near=True)
    assert [n.finding["finding_id"] for n in known.take([row("a", 1, 33), row("c", 60, 62)], None, 63)] == ["c"]


def test_a_small_part_of_a_larger_finding_is_not_overturned() -> None:
    known = KnownFindings()
    known.take([row("a", 30, 32, True), row("b", 40, 42, True)], None, 50)
    assert known.take([row("c", 1, 50, True)], None, 51) == []


def test_too_many_findings_are_not_told_and_none_twice() -> None:
    known = KnownFindings(most=2)
    first = [row("a", 1, 2), row("b", 1, 2, subject="t")]
    assert len(known.take(first, None, 2)) == 2
    assert known.take([*first, row("c", 1, 2, subject="u")], None, 3) == []
    assert known.is_full
    late_ns = 1300 * 10**9
    news = known.take([row("d", late_ns, late_ns, subject="v")], late_ns - 10, late_ns, is_near=True)
    assert [n.finding["finding_id"] for n in news] == ["d"]
    assert known.forgotten == 2
