"""What processes shard while rules run: numbers that one of them gets, tables that nobody copies."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from wirewitness.analyser.analysis.processes.queue import give, take, taken
from wirewitness.analyser.analysis.processes.shared_tables import SharedTables, Shown, make_view, seen
from wirewitness.analyser.decoding.run.helpers import closed, numbers
from wirewitness.analyser.decoding.run.shared_memory import Area, new_area
from wirewitness.analyser.tables.queries import open_connection


def test_each_number_is_taken_once() -> None:
    taking, giving = numbers()
    found: list[list[int]] = [[], [], []]
    takers = [threading.Thread(target=lambda own: own.extend(taken(taking)), args=(own,)) for own in found]
    for taker in takers:
        taker.start()
    give(giving, range(600))
    give(giving, range(600, 700))
    os.close(giving)
    for taker in takers:
        taker.join()
    os.close(taking)
    assert sorted(number for own in found for number in own) == [*range(700)]
    assert all(own == sorted(own) for own in found)


def test_numbers_of_the_first_pipe_go_before() -> None:
    taking, giving = numbers()
    taking_first, giving_first = numbers()
    assert take(taking) is None
    give(giving, (1, 2, 3))
    give(giving_first, (10, 11))
    found: list[int] = []
    for number in taken(taking, taking_first, found.append):
        found.append(number)
        if number == 1:
            give(giving_first, (12,))
        elif number == 3:
            closed(giving_first, giving)
    assert found == [10, 11, 1, 12, 2, 3]
    assert take(taking) is None
    closed(taking, taking_first)


def table(rows: int) -> pa.Table:
    return pa.table(
        {
            "ts": pa.array(np.arange(rows), pa.timestamp("ns", "UTC")),
            "name": pa.array([f"n-{number % 7}" if number % 5 else None for number in range(rows)]).dictionary_encode(),
            "id": pa.array([f"id-{number}" for number in range(rows)]),
            "sure": pa.array([number % 2 == 0 for number in range(rows)]),
        }
    )


def test_tables_lie_one_behind_the_other_and_are_not_copied(tmp_path: Path) -> None:
    descriptor = new_area()
    tables = SharedTables(Area(descriptor))
    given = {name: table(rows) for name, rows in (("a", 3), ("b", 50_000), ("c", 0))}
    shown = {name: tables.put(name, rows)[0] for name, rows in given.items()}
    size = os.fstat(descriptor).st_size
    assert size < 3 * sum(rows.nbytes for rows in given.values()) + 10_000
    others = Area(descriptor)
    before = pa.total_allocated_bytes()
    found = {name: seen(others, one) for name, one in shown.items()}
    assert pa.total_allocated_bytes() - before < 10_000
    assert all(found[name].equals(rows) for name, rows in given.items())
    # However often memory grew since, what was seen stays.
    first = tables.put("d", table(200_000))[1]
    assert os.fstat(descriptor).st_size > size
    assert found["b"].equals(given["b"])
    assert first.num_rows == 200_000
    with open_connection(tmp_path) as con:
        make_view(con, others, shown["b"])
        assert con.sql("SELECT count(*), count(name), count(DISTINCT id) FROM b").fetchall() == [
            (50_000, 40_000, 50_000)
        ]
        make_view(con, others, shown["a"]._replace(name="b"))
        assert con.sql("SELECT count(*) FROM b").fetchall() == [(3,)]
    os.close(descriptor)


def test_a_file_is_shown_in_place_of_rows(tmp_path: Path) -> None:
    pq.write_table(table(20), tmp_path / "it's.parquet")
    descriptor = new_area()
    with open_connection(tmp_path / "own", (tmp_path,)) as con:
        con.register("a", table(0))
        make_view(con, Area(descriptor), Shown("a", 20, tmp_path / "it's.parquet"))
        assert con.sql("SELECT count(*) FROM a").fetchall() == [(20,)]
    os.close(descriptor)
