"""Rows that are read once for all rules, beside the sorted stream that each rule can have for itself."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.analyser.engine.rules.concerned import connected, looked_at, partitions
from tests.analyser.engine.rules.scenarios import FAULTS, FIRES
from tests.support.rows import connection_from_rows
from tests.support.shares import every, proves_more, share
from wirewitness.analyser.analysis.all_rules import RULES
from wirewitness.analyser.engine.facts.topics import views
from wirewitness.analyser.engine.rules import partitioned_rows, running, shared_rows
from wirewitness.analyser.engine.rules.frame import Frame
from wirewitness.analyser.engine.rules.frame_rows import rows_of
from wirewitness.analyser.engine.rules.loaded import LoadedRows
from wirewitness.analyser.engine.rules.partition_sql import ALL_BUCKETS, suspects_sql
from wirewitness.analyser.engine.rules.partition_stream import Key
from wirewitness.analyser.engine.rules.rule import Rule
from wirewitness.analyser.engine.rules.running import run
from wirewitness.analyser.engine.rules.shared_rows import SharedRows

ALL = [*{scenario.code: scenario for scenario in reversed(FIRES)}.values(), *FAULTS]
NUMBERS = range(len(ALL))
EACH_SCENARIO = pytest.mark.parametrize("index", share(NUMBERS, every(4, NUMBERS)), ids=lambda n: str(ALL[n]))


def told(found: Iterable[tuple[Key, dict[str, Frame]]]) -> list[tuple[Key, dict[str, Any]]]:
    return [(key, {table: rows_of(frame) for table, frame in frames.items()}) for key, frames in found]


def taken(con: duckdb.DuckDBPyConnection, shared: SharedRows, rule: Rule) -> list[tuple[Key, dict[str, Any]]] | None:
    """The partitions of suspects."""
    suspects = None
    if rule.suspects is not None:
        suspects = "some_suspects"
        con.execute(f"CREATE OR REPLACE TEMP TABLE {suspects} AS {suspects_sql(rule)}")
    found: list[tuple[Key, dict[str, Any]]] = []
    for _, some in shared.portions(rule, ALL_BUCKETS, suspects):
        if some is None:
            return None
        found += told(some)
    return found


def in_memory(con: duckdb.DuckDBPyConnection, tables: Iterable[str]) -> dict[str, pa.Table]:
    """Rows as an analysis holds them: some texts as codes, in several chunks."""
    found = {}
    for name in tables:
        rows = con.sql(f"FROM {name}").to_arrow_table()
        columns = [
            column.dictionary_encode() if pa.types.is_string(column.type) and place % 2 else column
            for place, column in enumerate(rows.columns)
        ]
        whole = pa.table(dict(zip(rows.schema.names, columns, strict=True)))
        found[name] = pa.concat_tables([whole.slice(0, 1), whole.slice(1)])
    return found


def in_files(con: duckdb.DuckDBPyConnection, tables: Iterable[str], folder: Path) -> dict[str, Path]:
    """The same in files with several row groups."""
    found = {}
    for name, rows in in_memory(con, tables).items():
        found[name] = folder / f"{name}.parquet"
        pq.write_table(rows, found[name], row_group_size=2)
    return found


PLACES = ("asked for", "memory", "file")
EACH_PLACE = pytest.mark.parametrize("place", PLACES)


def at_hand(con: duckdb.DuckDBPyConnection, tables: Iterable[str], place: str, folder: Path) -> dict[str, Any]:
    return (
        {} if place == "asked for" else in_memory(con, tables) if place == "memory" else in_files(con, tables, folder)
    )


@EACH_SCENARIO
@proves_more
def test_partitions_are_those_of_the_sorted_stream(index: int, tmp_path: Path) -> None:
    """Whether tables are loaded as a whole, or where a rule wants no more than a row or two these alone."""
    few_rows, place = index % 3, PLACES[index // 3 % 3]
    con, rules = connected(ALL[index]), looked_at(ALL[index])
    tables = at_hand(con, {table for one in rules for table in one.reads}, place, tmp_path)
    shared = SharedRows(con, rules, few_rows, tables=tables)
    for rule in rules:
        assert taken(con, shared, rule) == told(partitions(con, rule)), rule.code
        shared.done([rule.code])
    names = {name for (name,) in con.execute("SELECT view_name FROM duckdb_views()").fetchall()}
    assert not any(name.startswith("wirewitness_rows") for name in names)


def commits(topics: Iterable[str | None]) -> list[dict[str, Any]]:
    return [
        {"ts": 10**18 + number, "cluster_id": "c", "group_id": "g", "topic": topic, "topic_id": "t-5", "partition": 0,
         "member_id": f"m-{number % 3}", "committed_offset": number, "error_code": 0, "exchange_id": f"e-{number}"}
        for number, topic in enumerate(topics)
    ]  # fmt: skip


@EACH_PLACE
def test_a_topic_without_a_name_is_told_by_its_id_and_comes_in_order(place: str, tmp_path: Path) -> None:
    """Keys are in the order of their bytes, whichever table or row had them first."""
    con = connection_from_rows({"kafka_offset_commits": commits(["ü", None, "a", "z", "ü", None, "a"])})
    rule = RULES["KAF101"]
    tables = at_hand(con, rule.reads, place, tmp_path)
    found = taken(con, SharedRows(con, [rule], tables=tables), rule)
    assert found == told(partitions(con, rule))
    assert [key[2] for key, _ in found or ()] == ["a", "t-5", "ü"]


def test_rows_that_take_too_much_memory_come_as_a_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    con, rule = connected(FAULTS[1]), RULES["KAF101"]
    assert taken(con, SharedRows(con, [rule], most_bytes=10), rule) is None
    expected = run(con, [rule])
    monkeypatch.setattr(running, "SharedRows", partial(SharedRows, most_bytes=10))
    assert [*map(repr, run(con, [rule]))] == [*map(repr, expected)]
    assert expected


@pytest.mark.parametrize("with_suspects", [True, False])
def test_partitions_that_are_too_large_are_left_out_before_they_are_loaded(
    monkeypatch: pytest.MonkeyPatch, with_suspects: bool
) -> None:
    groups = ["a", "a", *"bbbb", "c", "c", *"dddddd"]
    con = connection_from_rows({"kafka_offset_commits": commits(groups)})
    seen: list[str] = []

    def detect(frames: Any) -> Iterable[Any]:
        seen.extend(frame["topic"].first() for frame in frames.values() if len(frame))
        return ()

    rule = RULES["KAF101"]
    rule = replace(rule, detect=detect, suspects="SELECT * FROM r_kafka_offset_commits" if with_suspects else None)
    sizes: list[int] = []
    right = shared_rows.part_of

    def counted(rule: Rule, rows: LoadedRows, numbers: Any, names: Any) -> Any:
        sizes.append(len(numbers))
        return right(rule, rows, numbers, names)

    monkeypatch.setattr(shared_rows, "part_of", counted)
    for few_rows, portion_bytes in ((1 << 13, 1 << 24), (1, 1), (100, 1)):
        seen.clear()
        sizes.clear()
        monkeypatch.setattr(running, "SharedRows", partial(SharedRows, few_rows=few_rows, portion_bytes=portion_bytes))
        failures: list[running.Failure] = []
        run(con, [rule], failures, most_rows=3)
        keys = [("c", "g", topic, 0) for topic in ("b", "d")]
        assert [(one.key, type(one.error)) for one in failures] == [(key, running.PartitionTooLarge) for key in keys]
        assert sorted(seen) == ["a", "c"]
        assert sum(sizes) == 4
        assert not [name for name in views(con) if name.startswith("wirewitness_s")]


@EACH_SCENARIO
@proves_more
def test_some_buckets_at_a_time_have_the_same_partitions(index: int, tmp_path: Path) -> None:
    """However many buckets, and whether their rows are taken out of a loaded table or read by number."""
    con, rules = connected(ALL[index]), looked_at(ALL[index])
    tables = at_hand(con, {table for one in rules for table in one.reads}, PLACES[index % 3], tmp_path)
    most_bytes = 48 << 20 if index % 2 else 5_000
    shared = SharedRows(con, rules, 0, most_bytes, portion_bytes=(5_000, 20_000)[index // 2 % 2], tables=tables)
    for rule in rules:
        found = taken(con, shared, rule)
        assert found is None or sorted(map(repr, found)) == sorted(map(repr, told(partitions(con, rule))))
        assert found is not None or most_bytes == 5_000
        shared.done([rule.code])


def all_dealt(monkeypatch: pytest.MonkeyPatch) -> list[partitioned_rows.Dealt | None]:
    """What is dealt from now on, as it comes."""
    made: list[partitioned_rows.Dealt | None] = []
    right = partitioned_rows.dealt

    def dealt(*given: Any) -> Any:
        made.append(right(*given))
        return made[-1]

    monkeypatch.setattr(shared_rows, "dealt", dealt)
    return made


@EACH_SCENARIO
@proves_more
def test_rows_that_were_dealt_to_files_have_the_same_partitions(
    index: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However unevenly they are dealt; files go when no rule needs them any more."""
    made = all_dealt(monkeypatch)
    monkeypatch.setattr(shared_rows, "MOST_TOGETHER", -1)  # nothing is loaded as a whole
    monkeypatch.setattr(partitioned_rows, "_MOST_OF_ALL", 1)
    monkeypatch.setattr(partitioned_rows, "_ROWS", 3)
    con, rules = connected(ALL[index]), looked_at(ALL[index])
    tables = in_files(con, {table for one in rules for table in one.reads}, tmp_path)
    folder = tmp_path / "dealt"
    folder.mkdir()
    shared = SharedRows(con, rules, 0, portion_bytes=300, tables=tables, folder=folder)
    for rule in rules:
        found = taken(con, shared, rule)
        assert found is not None
        assert sorted(map(repr, found)) == sorted(map(repr, told(partitions(con, rule)))), rule.code
        shared.done([rule.code])
    assert [*folder.iterdir()] == []
    paths = [path for one in made if one for path in one.paths]
    assert len({*paths}) == len(paths)


@pytest.mark.parametrize("most_of_all", [0, 1], ids=["not worth it", "dealt"])
def test_a_table_is_dealt_once_for_rules_of_one_key(
    most_of_all: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not where nearly all rows would come into one file."""
    monkeypatch.setattr(shared_rows, "MOST_TOGETHER", -1)
    monkeypatch.setattr(partitioned_rows, "_MOST_OF_ALL", most_of_all)
    con = connection_from_rows({"kafka_offset_commits": commits("abcdefgh" * 9)})
    rules = [RULES[code] for code in ("KAF113", "KAF102", "KAF101")]
    tables = in_files(con, ["kafka_offset_commits"], tmp_path)
    (folder := tmp_path / "dealt").mkdir()
    shared = SharedRows(con, rules, 0, portion_bytes=500, tables=tables, folder=folder)
    con.execute("CREATE TEMP TABLE some_suspects AS SELECT DISTINCT cluster_id, group_id, topic, partition "
                "FROM kafka_offset_commits")  # fmt: skip
    seen = []
    for rule in rules:
        rows = [
            len(frames["kafka_offset_commits"])
            for _, some in shared.portions(rule, ALL_BUCKETS, "some_suspects")
            for _, frames in some or ()
        ]
        assert rows == [9] * 8, rule.code  # fmt: skip
        seen.append({path.name.split("-")[1] for path in folder.iterdir()})
    assert seen == ([{"0"}, {"0"}, {"0", "1"}] if most_of_all else [set(), set(), set()])
    shared.done(["KAF113"])
    assert len({path.name.split("-")[1] for path in folder.iterdir()}) == 2 * most_of_all
    shared.done(["KAF102", "KAF101"])
    assert [*folder.iterdir()] == []


def test_rules_that_look_together_load_each_portion_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the columns of all of them; what each finds is what it finds alone."""
    made, loads = all_dealt(monkeypatch), list[Sequence[str]]()
    right = partitioned_rows.Dealt.loaded

    def loaded(self: partitioned_rows.Dealt, columns: Sequence[str], *others: Any) -> LoadedRows:
        loads.append(columns)
        return right(self, columns, *others)

    monkeypatch.setattr(partitioned_rows.Dealt, "loaded", loaded)
    monkeypatch.setattr(shared_rows, "MOST_TOGETHER", -1)
    monkeypatch.setattr(shared_rows, "FEW_ROWS", 0)
    monkeypatch.setattr(running, "SharedRows", partial(SharedRows, few_rows=0, portion_bytes=5_000))
    turned = [{**row, "committed_offset": 500 + number // 8 % 2 * 10, "member_id": "m", "ts_response": row["ts"] + 1}
              for number, row in enumerate(commits("abcdefgh" * 20))]  # fmt: skip
    con = connection_from_rows({"kafka_offset_commits": turned})
    narrow = replace(RULES["KAF102"], code="KAF900", reads={"kafka_offset_commits": ("ts", "committed_offset")},
                     suspects=None, detect=lambda frames: [])  # fmt: skip
    rules = [narrow, *(RULES[code] for code in ("KAF101", "KAF102", "KAF103"))]
    alone = [one for rule in rules for one in run(con, [rule])]
    tables = in_files(con, ["kafka_offset_commits"], tmp_path)
    (folder := tmp_path / "dealt").mkdir()
    found = run(con, rules, tables=tables, rows={"kafka_offset_commits": 160}, folder=folder)
    assert found == alone
    assert {one.code for one in found} == {"KAF102", "KAF103"}
    assert [{"member_id", "ts"} <= {*columns} for columns in loads] == [True] * len(loads)
    assert len(loads) == sum(sum(map(bool, one.rows)) for one in made if one) > 2


def test_rules_that_look_one_after_the_other_find_the_table_dealt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the columns of all rules of the key, but of none that has ended."""
    made = all_dealt(monkeypatch)
    monkeypatch.setattr(shared_rows, "MOST_TOGETHER", -1)
    monkeypatch.setattr(shared_rows, "FEW_ROWS", 0)
    con = connection_from_rows({"kafka_offset_commits": commits("abcdefgh" * 9)})
    table, common = "kafka_offset_commits", {"suspects": None, "detect": lambda frames: []}
    columns = ("committed_offset",), ("member_id",), ("leader_epoch",)
    one, other, suspecting = (
        replace(RULES["KAF102"], code=f"KAF90{number}", reads={table: ("ts", *names)}, **common)
        for number, names in enumerate(columns)
    )
    nobody = replace(suspecting, suspects=f"SELECT * FROM r_{table} WHERE false")
    tables = in_files(con, [table], tmp_path)
    (folder := tmp_path / "dealt").mkdir()
    shared = SharedRows(con, [one, other, nobody], 0, portion_bytes=500, tables=tables, folder=folder)
    for rule in (nobody, one, other):
        running.found_together(con, [rule], {rule.code: None}, shared=shared)
    (dealt,) = made
    assert dealt
    assert {"committed_offset", "member_id"} <= {*dealt.columns}
    assert "leader_epoch" not in dealt.columns
    assert [*folder.iterdir()] == []


@pytest.mark.parametrize("times", [3, 1_000], ids=["too large to be loaded", "small"])
def test_files_of_uneven_sizes_have_the_same_partitions(
    times: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that memory does not hold as a whole are not put together."""
    made = all_dealt(monkeypatch)
    monkeypatch.setattr(shared_rows, "MOST_TOGETHER", -1)
    monkeypatch.setattr(shared_rows, "_LARGE_PORTIONS", times)
    monkeypatch.setattr(partitioned_rows, "_ROWS", 5)
    con = connection_from_rows({"kafka_offset_commits": commits(["a", None, *"abcdefgh" * 3, *"a" * 24])})
    rule = RULES["KAF101"]
    tables = in_files(con, ["kafka_offset_commits"], tmp_path)
    (folder := tmp_path / "dealt").mkdir()
    shared = SharedRows(con, [rule], 0, portion_bytes=500, tables=tables, folder=folder)
    found = taken(con, shared, rule)
    assert found
    assert sorted(map(repr, found)) == sorted(map(repr, told(partitions(con, rule))))
    assert [one.small for one in made if one] == [times == 1_000]


def test_a_rule_that_wants_few_of_dealt_rows_takes_one_file_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows of several files would have to be put in order."""
    made = all_dealt(monkeypatch)
    monkeypatch.setattr(shared_rows, "MOST_TOGETHER", -1)
    con, rule = connection_from_rows({"kafka_offset_commits": commits("abcdefgh" * 9)}), RULES["KAF101"]
    tables = in_files(con, ["kafka_offset_commits"], tmp_path)
    con.execute("CREATE TEMP TABLE some_suspects AS SELECT DISTINCT cluster_id, group_id, topic, partition "
                "FROM kafka_offset_commits WHERE topic < 'e'")  # fmt: skip
    (folder := tmp_path / "dealt").mkdir()

    def portions(at: Path, few_rows: int = 0) -> list[int]:
        shared = SharedRows(con, [rule], few_rows, portion_bytes=2000, tables=tables, folder=at)
        return [len([*(found or ())]) for _, found in shared.portions(rule, ALL_BUCKETS, "some_suspects")]

    found, undealt = portions(folder), portions(tmp_path / "is not there")
    of_a_small_table = portions(folder, few_rows=100)  # of which nobody counts the wanted rows
    assert sum(of_a_small_table) == sum(found)
    assert [len(one.paths) for one in made if one] == [len(found), len(of_a_small_table)]
    assert sum(found) == sum(undealt) > 2
    assert len(found) > len(undealt)


def test_without_room_for_files_rows_are_read_where_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_rows, "MOST_TOGETHER", -1)
    con, rule = connection_from_rows({"kafka_offset_commits": commits("abcdefgh" * 9)}), RULES["KAF101"]
    tables = in_files(con, ["kafka_offset_commits"], tmp_path)
    shared = SharedRows(con, [rule], 0, portion_bytes=500, tables=tables, folder=tmp_path / "is not there")
    found = taken(con, shared, rule)
    assert found
    assert sorted(map(repr, found)) == sorted(map(repr, told(partitions(con, rule))))


def test_as_many_portions_as_rows_are_too_large() -> None:
    con, rule = connection_from_rows({"kafka_offset_commits": commits("abcdefgh")}), RULES["KAF101"]
    con.execute(f"CREATE TEMP TABLE some_suspects AS SELECT DISTINCT {', '.join(rule.partition_by)} FROM "
                "(SELECT cluster_id, group_id, topic, partition FROM kafka_offset_commits)")  # fmt: skip
    few = SharedRows(con, [rule], few_rows=0, portion_bytes=400)
    sizes = [len([*(found or ())]) for _, found in few.portions(rule, ALL_BUCKETS, "some_suspects")]
    assert sum(sizes) == 8
    assert 2 < len(sizes) <= 8
    whole = SharedRows(con, [rule], few_rows=0)
    assert [buckets for buckets, _ in whole.portions(rule, ALL_BUCKETS, "some_suspects")] == [ALL_BUCKETS]


@pytest.mark.parametrize(("few_rows", "held"), [(0, "numbers"), (20, "rows")], ids=["loaded", "few"])
def test_what_a_rule_asked_for_is_let_go_behind_its_last_portion(
    few_rows: int, held: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others of its key have their turn before it ends."""
    con, rule = connection_from_rows({"kafka_offset_commits": commits("abcdefgh" * 9)}), RULES["KAF101"]
    con.execute(f"CREATE TEMP TABLE some_suspects AS SELECT DISTINCT {', '.join(rule.partition_by)} FROM "
                "(SELECT cluster_id, group_id, topic, partition FROM kafka_offset_commits "
                "WHERE topic < 'c')")  # fmt: skip
    seen: list[dict[str, weakref.ref[Any]]] = []
    right = shared_rows.part_of

    def part_of(rule: Rule, rows: LoadedRows, numbers: Any, names: Any) -> Any:
        seen.append({"rows": weakref.ref(rows), "numbers": weakref.ref(numbers)})
        return right(rule, rows, numbers, names)

    monkeypatch.setattr(shared_rows, "part_of", part_of)
    found = SharedRows(con, [rule], few_rows).portions(rule, ALL_BUCKETS, "some_suspects")
    _, some = next(found)
    assert len([*(some or ())]) == 2
    del some
    assert [one[held]() is None for one in seen] == [True]
    assert [*found] == []


def test_a_rule_that_wants_all_rows_of_a_loaded_table_asks_for_no_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """But where it takes some at a time."""
    con, rule = connection_from_rows({"kafka_offset_commits": commits("abcdefgh" * 9)}), RULES["KAF101"]
    asked: list[str] = []
    right = shared_rows.wanted_numbers_sql
    monkeypatch.setattr(shared_rows, "wanted_numbers_sql", lambda *given: asked.append(given[1]) or right(*given))
    expected = sorted(map(repr, told(partitions(con, rule))))
    for portion_bytes, times in ((1 << 24, 0), (2_000, 1)):
        shared = SharedRows(con, [rule], 0, portion_bytes=portion_bytes)
        assert sorted(map(repr, taken(con, shared, replace(rule, suspects=None)) or ())) == expected
        assert len(asked) == times


@EACH_PLACE
def test_rows_that_are_too_large_are_not_taken(place: str, tmp_path: Path) -> None:
    con, rule = connected(FAULTS[1]), RULES["KAF101"]
    tables = at_hand(con, rule.reads, place, tmp_path)
    shared = SharedRows(con, [rule], few_rows=0, most_bytes=10, tables=tables)
    assert taken(con, shared, rule) is None


def test_ranks_sort_as_values_do() -> None:
    columns = {
        "ts": pa.array([3, 1, 2, None]), "sure": pa.array([True, None, False, True]),
        "text": pa.array(["ü", "", None, "z"]).dictionary_encode(), "size": pa.array([0.5, -1.0, None, 7.0]),
    }  # fmt: skip
    rows = LoadedRows(columns, ["ts"])
    assert rows.columns["ts"].to_pylist() == [None, 1, 2, 3]
    for name, column in rows.columns.items():
        values = column.to_pylist()
        expected = sorted(range(4), key=lambda row: (values[row] is not None, values[row]))
        assert np.argsort(rows.ranks(name), kind="stable").tolist() == expected, name


@given(st.lists(st.tuples(*[st.sampled_from([None, 1, 2]), st.sampled_from([None, "a", "ä", "b"])] * 2), max_size=6))
def test_rows_are_put_in_order_where_they_are_not(rows: list[tuple[Any, ...]]) -> None:
    """By number, by text in codes, by number, by plain text; null first."""
    names, kinds = "nctp", [pa.int64(), pa.string(), pa.timestamp("ns", "UTC"), pa.string()]
    columns = {name: pa.array([row[n] for row in rows], kinds[n]) for n, name in enumerate(names)}
    columns["c"] = columns["c"].dictionary_encode()
    columns["place"] = pa.array(range(len(rows)), pa.int64())
    expected = sorted(range(len(rows)), key=lambda at: [(value is not None, value) for value in rows[at]])
    assert LoadedRows(columns, names).columns["place"].to_pylist() == expected
