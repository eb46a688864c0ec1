"""Small tables at several widths."""

from __future__ import annotations

import pytest

from reports.formats.cells import cell_lines
from reports.formats.document import Cells

LONG_ID = "consumer-billing-1-0a8e5d7b-1c11-4d0a-9c39-4f0c1f0e6b8d"
TABLE = Cells(
    ("MEMBER ID", "ADDRESS", "COMMITS", "NOTE"),
    ((LONG_ID, "10.11.0.21", "5", "keeps an old offset after the rebalance"), ("short", "10.11.0.22", "12,000", "")),
    numbers=(2,),
    wrapped=(3,),
    shortened=(0,),
)


def lines(width: int) -> list[str]:
    return [text for text, _ in cell_lines(TABLE, TABLE.rows, width, "  ")]


def test_everything_on_one_line_when_there_is_room() -> None:
    assert len(lines(200)) == 3
    assert lines(200)[1].split("  ")[1] == LONG_ID
    assert lines(200)[2].index("12,000") + len("12,000") == lines(200)[1].index(" 5 ") + 2


def test_text_wraps_before_ids_are_shortened() -> None:
    shown = lines(110)
    assert LONG_ID in shown[1]
    assert len(shown) > 3


def test_a_shortened_id_stands_in_full_below() -> None:
    shown = lines(70)
    assert LONG_ID not in shown[1]
    short, _, full = shown[-1].strip().partition(" = ")
    assert full == LONG_ID
    assert short in shown[1]


def test_too_narrow_for_columns_gives_a_block_per_row() -> None:
    shown = lines(40)
    assert f"  MEMBER ID  {LONG_ID}" in shown
    assert "  COMMITS    12,000" in shown


@pytest.mark.parametrize("width", [40, 60, 80, 110, 200])
def test_no_width_loses_a_value(width: int) -> None:
    text = " ".join(" ".join(lines(width)).split())
    for value in (LONG_ID, "10.11.0.21", "10.11.0.22", "12,000", "short"):
        assert value in text
    assert all(word in text for word in ["keeps", "an", "old", "offset", "after", "the", "rebalance"])


@pytest.mark.parametrize("width", [60, 80, 110, 200])
def test_lines_keep_the_width_unless_they_hold_an_id(width: int) -> None:
    assert all(len(line) <= width or LONG_ID in line for line in lines(width))


def test_ids_that_would_look_alike_are_not_shortened() -> None:
    alike = tuple((f"member-{'0' * 30}-{n}-{'0' * 30}", "10.0.0.1") for n in (1, 2))
    table = Cells(("MEMBER ID", "ADDRESS"), alike, shortened=(0,))
    text = "\n".join(line for line, _ in cell_lines(table, alike, 50, ""))
    assert all(member in text for member, _ in alike)


def test_a_last_column_that_does_not_fit_hangs_below_its_row() -> None:
    rows = tuple((f"topic-{n}", str(n), f"a-client-with-a-long-name-{n}@10.0.0.1") for n in range(5))
    table = Cells(("TOPIC", "PART", "COMMITTER"), rows, numbers=(1,), wrapped=(2,))
    shown = [line for line, _ in cell_lines(table, rows, 40, "")]
    assert shown[:4] == ["TOPIC    PART", "    COMMITTER", "topic-0     0", "    a-client-with-a-long-name-0@10.0.0.1"]
    assert len(shown) == 12


def test_a_table_without_rows_is_its_header() -> None:
    assert list(cell_lines(Cells(("A", "B"), (), wrapped=(1,)), (), 40, "")) == [("A  B", True)]
