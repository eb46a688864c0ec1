"""Rows that leave when they are old, and those that stay."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from wirewitness.analyser.decoding.rows import raw_table
from wirewitness.analyser.live.forks import Copy
from wirewitness.analyser.live.retention import RollingStore, RollingTable
from wirewitness.dissectors.core.blocks import Block, Coded, Numbers

FLOWS = (3, 8)


def table_of(name: str, folder: Path, times: list[int], pack_every: int = 10) -> RollingTable:
    """A table with a row for each time, of two flows in turn."""
    table = RollingTable(name, ("ts", "number"), ("time", "int64"), [], folder)
    add_rows(table, list(enumerate(times)), pack_every)
    return table


def add_rows(table: RollingTable, rows: list[tuple[int, int]], pack_every: int = 10) -> None:
    """Rows of number and time."""
    for number, ts_ns in rows:
        table.rows.append((ts_ns, number))
        table.mark(FLOWS[number % 2])
        if number % pack_every == 0:
            table.pack()


def numbers(table: RollingTable) -> list[int]:
    return [number for batch in table.batches() for number in batch.column("number").to_pylist()]


@pytest.fixture
def small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of a hundred rows instead of a hundred thousand."""
    monkeypatch.setattr(raw_table, "MAX_ROWS_IN_MEMORY", 100)


@pytest.mark.usefixtures("small_files")
def test_all_rows_stay_in_the_order_of_time(tmp_path: Path) -> None:
    times = [time ^ 7 for time in range(1000)]
    table = table_of("exchanges", tmp_path, times)
    assert len(list(tmp_path.iterdir())) == 9
    assert numbers(table) == sorted(range(1000), key=lambda number: (times[number], FLOWS[number % 2]))
    assert (table.forgotten, table.cut_ns) == (0, None)


@pytest.mark.usefixtures("small_files")
@pytest.mark.parametrize(
    ("before_ns", "most", "first", "files"),
    [
        pytest.param(500, 10_000, 431, 5, id="by age, whole files"),
        pytest.param(0, 300, 761, 2, id="by number"),
        pytest.param(5000, 10_000, None, 0, id="everything"),
    ],
)
def test_old_rows_leave(tmp_path: Path, before_ns: int, most: int, first: int | None, files: int) -> None:
    table = table_of("exchanges", tmp_path, list(range(1000)))
    table.forget(before_ns, most)
    left = numbers(table)
    assert (left[0] if left else None) == first
    assert left == list(range(first if first is not None else 1000, 1000))
    assert len(list(tmp_path.iterdir())) == files
    assert (table.forgotten, table.cut_ns) == (1000 - len(left), 1000 - len(left) - 1)


@pytest.mark.usefixtures("small_files")
@pytest.mark.parametrize("since_ns", [0, 1, 444, 450, 999, 1000], ids=str)
def test_a_copy_leaves_old_rows_out_and_touches_no_file(tmp_path: Path, since_ns: int) -> None:
    table = table_of("exchanges", tmp_path, list(range(1000)))
    files = len(list(tmp_path.iterdir()))
    table.narrow(since_ns)
    assert numbers(table) == list(range(since_ns, 1000))
    assert len(list(tmp_path.iterdir())) == files
    assert (table.forgotten, table.cut_ns) == (since_ns, since_ns - 1 if since_ns else None)


@pytest.mark.usefixtures("small_files")
def test_rows_that_a_copy_writes_lie_in_its_own_folder(tmp_path: Path) -> None:
    """The original goes on meanwhile, and gives its next file the next name."""
    own, theirs = tmp_path / "copy", tmp_path / "original"
    own.mkdir()
    theirs.mkdir()
    rolling = RollingStore(theirs)
    table = rolling.tables["exchanges"] = table_of("exchanges", theirs, list(range(1000)))
    files = sorted(theirs.iterdir())

    def written_by_a_copy() -> tuple[list[int], int]:
        rolling.use_folder(own)
        add_rows(table, [(number, number) for number in range(1000, 1300)])
        return numbers(table), len(list(own.iterdir()))

    answered = Copy(written_by_a_copy).answer(60)
    assert answered is not None
    assert answered.value == (list(range(1300)), 2)
    assert sorted(theirs.iterdir()) == files
    assert numbers(table) == list(range(1000))


@pytest.mark.usefixtures("small_files")
@pytest.mark.parametrize(("pack_every", "most"), [(10, 300), (1, 300), (100, 70), (10, 5000)])
def test_so_many_rows_are_about_so_many(tmp_path: Path, pack_every: int, most: int) -> None:
    table = table_of("exchanges", tmp_path, list(range(1000)), pack_every)
    table.narrow(table.since_ns(most))
    assert min(most, 1000) * 0.7 <= len(numbers(table)) <= min(most * 1.3 + 64, 1000)


def test_rows_that_say_what_others_mean_stay(tmp_path: Path) -> None:
    table = table_of("kafka_brokers", tmp_path, list(range(50)))
    table.forget(10**18, 10_000)
    assert numbers(table) == list(range(50))
    table.known_flows = pa.array([FLOWS[1]])
    assert numbers(table) == list(range(1, 50, 2))


def test_a_row_a_second_makes_no_thousands_of_batches(tmp_path: Path) -> None:
    table = table_of("exchanges", tmp_path, list(range(1000)), pack_every=1)
    assert len(table._batches) <= 65
    assert numbers(table) == list(range(1000))


def test_rows_of_one_span_leave_together(tmp_path: Path) -> None:
    """Few rows lie in few batches, but not in one that is never old."""
    table = RollingTable("exchanges", ("ts", "number"), ("time", "int64"), [], tmp_path)
    table.span_ns = 100
    for number in range(2000):
        table.rows.append((number, number))
        table.mark(FLOWS[0])
        table.pack()
    table.forget(1500, 10_000)
    assert len(table._batches) < 100
    assert 1400 <= numbers(table)[0] <= 1500


def test_lasting_rows_leave_with_their_flows(tmp_path: Path) -> None:
    table = table_of("kafka_brokers", tmp_path, list(range(50)))
    table.forget_flows(pa.array([FLOWS[0]]))
    assert (numbers(table), table.forgotten) == (list(range(0, 50, 2)), 25)


def test_texts_of_forgotten_rows_go_with_them(tmp_path: Path) -> None:
    """Every second new texts, in columns: dictionaries that are put together would keep all of them."""
    table = RollingTable("exchanges", ("ts", "text"), ("time", "string"), [], tmp_path)
    table.span_ns = 10
    held = []
    for second in range(1000, 2500):
        texts = [f"a text of second {second}: {number}" for number in range(10)]
        block = Block([Numbers(np.full(40, second)), Coded(np.arange(40) % 10, texts)], 40)
        table.claim(FLOWS[0], block, 0, 40)
        table.pack()
        table.forget(second - 100, 1 << 20)
        held.append(table._bytes_in_memory)
    assert max(held[1000:]) < 1.2 * max(held[:500])
    texts = [text for batch in table.batches() for text in batch.column("text").to_pylist()]
    seconds = {int(text.split()[4].rstrip(":")) for text in texts}
    assert seconds >= {*range(2399, 2500)}
    assert min(seconds) >= 2380
