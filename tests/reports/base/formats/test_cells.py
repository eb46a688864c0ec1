"""Small tables at several widths."""

from __future__ import annotations

from dataclasses import replace

import pytest

from wirewitness.reports.base.formats.cells import Line, table_lines
from wirewitness.reports.base.formats.document import Cells

LONG_ID = "consumer-billing-1-0a8e5d7b-1c11-4d0a-9c39-4f0c1f0e6b8d"
TABLE = Cells(
    ("MEMBER ID", "ADDRESS", "COMMITS", "NOTE"),
    ((LONG_ID, "10.11.0.21", "5", "keeps an old offset after the rebalance"), ("short", "10.11.0.22", "12,000", "")),
    numbers=(2,),
    wrapped=(3,),
    shortened=(0,),
)


def cell_lines(table: Cells, width: int, indent: str) -> list[Line]:
    return list(table_lines([table], width, indent)[0])


def lines(width: int) -> list[str]:
    return [text for text, _ in cell_lines(TABLE, width, "  ")]


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
    text = "\n".join(line for line, _ in cell_lines(table, 50, ""))
    assert all(member in text for member, _ in alike)


def test_a_last_column_that_does_not_fit_hangs_below_its_row() -> None:
    rows = tuple((f"topic-{n}", str(n), f"a-client-with-a-long-name-{n}@10.0.0.1") for n in range(5))
    table = Cells(("TOPIC", "PART", "COMMITTER"), rows, numbers=(1,), wrapped=(2,))
    shown = [line for line, _ in cell_lines(table, 40, "")]
    assert shown[:4] == ["TOPIC    PART", "    COMMITTER", "topic-0     0", "    a-client-with-a-long-name-0@10.0.0.1"]
    assert len(shown) == 12


@pytest.mark.parametrize(
    ("width", "heading"),
    [
        (28, ["TOPIC     LOG-END-OFFSET  BY"]),
        (27, ["TOPIC     LOG-END-OFFSET"]),
        (20, ["          LOG-END-", "TOPIC       OFFSET"]),
    ],
)
def test_beside_a_last_column_on_its_own_line_as_many_columns_as_there_is_room_for(
    width: int, heading: list[str]
) -> None:
    row = ("payments", "7", "2", '{"a-pattern":{"without":"spaces"}}')
    table = Cells(("TOPIC", "LOG-END-OFFSET", "BY", "PATTERN"), (row,) * 4, numbers=(1, 2), wrapped=(3,), optional=(2,))
    lines = cell_lines(table, width, "")
    assert [line for line, is_header in lines if is_header] == [*heading, "    PATTERN"]
    assert lines[-1] == (f"    {row[-1]}", False)


def test_a_table_without_rows_is_its_header() -> None:
    assert cell_lines(Cells(("A", "B"), (), wrapped=(1,)), 40, "") == [("A  B", True)]


def kept(width: int) -> tuple[list[str], list[str]]:
    """Headings and the row of a table with columns that may be missing, as lists of words."""
    table = Cells(("TOPIC", "LOG-END-OFFSET", "HOST", "COMMITS", "BY"), (("payments", "7", "10.0.0.1", "500", "2"),),
                  numbers=(1, 3, 4), optional=(3, 4), dispensable=(2,))  # fmt: skip
    *heads, row = [line for line, _ in cell_lines(table, width, "")]
    assert all(len(line) <= width for line in (*heads, row))
    return [head.split() for head in heads][-1], row.split()


@pytest.mark.parametrize(
    ("width", "heading", "row"),
    [
        (47, ["TOPIC", "LOG-END-OFFSET", "HOST", "COMMITS", "BY"], ["payments", "7", "10.0.0.1", "500", "2"]),
        (46, ["TOPIC", "LOG-END-OFFSET", "HOST", "BY"], ["payments", "7", "10.0.0.1", "2"]),
        (34, ["TOPIC", "LOG-END-OFFSET", "HOST"], ["payments", "7", "10.0.0.1"]),
        (32, ["TOPIC", "OFFSET", "HOST", "BY"], ["payments", "7", "10.0.0.1", "2"]),
        (29, ["TOPIC", "OFFSET", "HOST"], ["payments", "7", "10.0.0.1"]),
        (20, ["TOPIC", "OFFSET"], ["payments", "7"]),
    ],
)
def test_columns_are_left_out_before_headings_are_folded_and_the_rest_last(
    width: int, heading: list[str], row: list[str]
) -> None:
    assert kept(width) == (heading, row)


def test_blocks_have_every_column() -> None:
    table = Cells(("TOPIC", "BY"), (("payments-of-today", "2"),), optional=(1,))
    assert [line for line, _ in cell_lines(table, 12, "")] == ["TOPIC  payments-of-today", "BY     2"]


CLIENTS = Cells(
    ("CLIENT ID", "ADDRESS", "VERSION", "TRANSPORT", "USER", "CONNECTIONS", "REFUSED", "DROPPED", "PUBLISHED"),
    tuple(
        (
            f"hall-7-sensor-{n:06}",
            f"10.11.0.{n}",
            "3.1.1, 5.0",
            "tcp",
            "fleet-reader",
            "1,200",
            str(n),
            "",
            "98,000,000",
        )
        for n in range(1, 20)
    ),
    numbers=(5, 6, 7, 8),
)


def test_a_long_table_with_many_columns_has_two_lines_for_each_row() -> None:
    shown = [text for text, _ in cell_lines(CLIENTS, 80, "  ")]
    assert len(shown) == 2 * (1 + len(CLIENTS.rows))
    assert all(len(line) <= 80 for line in shown)
    upper, lower = shown[0], shown[1]
    assert upper.split() == ["CLIENT", "ID", "ADDRESS", "VERSION", "TRANSPORT", "USER"]
    assert lower.split() == ["CONNECTIONS", "REFUSED", "DROPPED", "PUBLISHED"]
    for place, row in enumerate(CLIENTS.rows, 1):
        assert shown[2 * place].index(row[1]) == upper.index("ADDRESS")
        assert shown[2 * place + 1].index(row[8]) + len(row[8]) == lower.index("PUBLISHED") + len("PUBLISHED")
    assert [is_header for _, is_header in cell_lines(CLIENTS, 80, "")][:3] == [True, True, False]


def test_a_short_table_with_many_columns_or_one_for_which_two_lines_are_not_enough_has_blocks() -> None:
    few = [text for text, _ in cell_lines(replace(CLIENTS, rows=CLIENTS.rows[:3]), 80, "")]
    narrow = [text for text, _ in cell_lines(CLIENTS, 40, "")]
    assert any(line.startswith("CLIENT ID    hall-7") for line in few)
    assert any(line.startswith("CLIENT ID    hall-7") for line in narrow)


def test_tables_with_the_same_headings_show_the_same_columns_but_for_one_that_fits_in_no_way() -> None:
    header = ("TOPIC", "LAG", "LAG-TIME")
    tables = [
        Cells(header, ((topic, "7", "15 ms"),), numbers=(1, 2), optional=(2,))
        for topic in ("a", "payments-of-today", "payments-of-the-day-before-yesterday")
    ]

    def headings(wanted: list[Cells], width: int) -> list[list[str]]:
        return [next(lines)[0].split() for lines in table_lines(wanted, width, "")]

    assert headings(tables, 60) == [["TOPIC", "LAG", "LAG-TIME"]] * 3
    assert headings(tables[:1], 24) == [["TOPIC", "LAG", "LAG-TIME"]]
    assert headings(tables[:2], 24) == [["TOPIC", "LAG"]] * 2
    assert headings(tables, 24) == [
        ["TOPIC", "LAG"],
        ["TOPIC", "LAG"],
        ["TOPIC", "payments-of-the-day-before-yesterday"],
    ]
