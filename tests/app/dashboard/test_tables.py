"""Tables of many pages: every row is on one of them, whatever they are ordered by."""

from __future__ import annotations

from pathlib import Path

from tests.app.dashboard.opening import kept, opened, sample, tables

CAPTURE = "kafka_stale_commit"


def rows_on(page: int, order: str) -> list[tuple[str, ...]]:
    app = opened(CAPTURE, "exchanges", {"exchanges.by": order, "exchanges.page": str(page)})
    assert not app.exception
    return [tuple(row.values()) for row in tables(app)[0]]


def test_rows_that_are_equal_in_the_order_are_each_on_one_page() -> None:
    """Most exchanges have the status `ok`: what tells them apart must be the same on every page."""
    folder: Path = kept(sample(CAPTURE))
    assert folder.exists()
    first = rows_on(0, "status")
    second, third = rows_on(1, "status"), rows_on(2, "status")
    assert len(first) == len(second) == len(third)
    assert len({*first, *second, *third}) == len(first) * 3
