"""Leaders of partitions and truncated logs: rows of answers, and what they tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.analyser.engine.rules.scenarios.build import Row, at, fetch
from tests.analyser.engine.rules.scenarios.build_offsets import epoch_end
from tests.analyser.engine.rules.scenarios.kafka_changes import named, stored
from tests.support.rows import Rows, connection_from_rows
from wirewitness.analyser.kafka.facts.leaders import add_leaders
from wirewitness.analyser.kafka.facts.log_ends import add_topics
from wirewitness.analyser.tables.tables import TABLES, arrow_schema

TERM = ("leader_id", "leader_epoch", "epoch_ns(ts)", "epoch_ns(ts_until)", "isr", "isr_before", "unclean")
CUT = ("truncated_at", "end_before", "source", "leader_id", "leader_epoch", "unclean", "client_id")


def made(table: str, columns: Sequence[str], **rows: list[Row]) -> list[tuple[Any, ...]]:
    con = connection_from_rows(rows)
    add_topics(con)
    add_leaders(con)
    con.execute("SET TimeZone = 'UTC'")
    shape = con.sql(f"FROM {table}").to_arrow_table().schema
    assert shape.names == [*TABLES[table].column_names()]
    assert shape.types == arrow_schema(table).types
    found = con.sql(f"SELECT {', '.join(columns)} FROM {table} ORDER BY ts, leader_epoch").fetchall()
    con.close()
    return found


def led(second: float, leader: int, epoch: int | None, *isr: int, **more: Any) -> Row:
    return named(second, "id-1", leader_id=leader, leader_epoch=epoch, replicas=[1, 2, 3], isr=[*isr], **more)


TERMS = [
    pytest.param(
        [led(0, 1, 4, 1, 2), led(5, 1, 4, 1)], [(1, 4, at(0), None, [1], None, None)],
        id="one term, in sync as told last",
    ),
    pytest.param(
        [led(0, 1, 4, 1, 2), led(5, 2, 5, 2)],
        [(1, 4, at(0), at(5), [1, 2], None, None), (2, 5, at(5), None, [2], [1, 2], False)],
        id="a leader that was in sync",
    ),
    pytest.param(
        [led(0, 1, 4, 1, 2), led(2, 1, 4, 1), led(5, 2, 5, 2)],
        [(1, 4, at(0), at(5), [1], None, None), (2, 5, at(5), None, [2], [1], True)], id="one that was not",
    ),
    pytest.param(
        [led(0, 1, 4, 1), led(3, -1, 5), led(6, 2, 6, 2)],
        [(1, 4, at(0), at(3), [1], None, None), (-1, 5, at(3), at(6), [], [1], None),
         (2, 6, at(6), None, [2], [1], True)],
        id="nobody led in between",
    ),
    pytest.param(
        [led(0, 1, 4, 1, 2), led(5, 2, 5, 2), led(7, 1, 4, 1, 2, client="late")],
        [(1, 4, at(0), at(5), [1, 2], None, None), (2, 5, at(5), None, [2], [1, 2], False)],
        id="a broker that lags tells of the old epoch",
    ),
    pytest.param(
        [led(0, 1, None, 1, 2), led(5, 2, -1, 2), led(9, 1, None, 1, 2)],
        [(1, None, at(0), at(5), [1, 2], None, None), (2, None, at(5), at(9), [2], [1, 2], False),
         (1, None, at(9), None, [1, 2], [2], True)], id="old answers without epochs",
    ),
    pytest.param(
        [led(0, 1, 4, 1), named(5, "id-2", leader_id=2, leader_epoch=0, isr=[2])],
        [(1, 4, at(0), None, [1], None, None), (2, 0, at(5), None, [2], None, None)],
        id="a topic made anew has other terms",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("told", "expected"), TERMS)
def test_terms(told: list[Row], expected: list[tuple[Any, ...]]) -> None:
    assert made("kafka_leaders", TERM, kafka_partitions=told) == expected


def refused(second: float, leader: int, epoch: int) -> Row:
    """A Fetch of a broker that does not lead any more, and says who does."""
    return fetch(second, 300, error_code=6, next_offset=None, current_leader_id=leader, current_leader_epoch=epoch)


SAID_BY_OTHERS = [
    pytest.param([refused(3, 2, 5)], [], [(1, 4, "Metadata"), (2, 5, "Fetch")], id="a fetch, before Metadata"),
    pytest.param([], [stored(3, -1, error_code=6, current_leader_id=2, current_leader_epoch=5)],
                 [(1, 4, "Metadata"), (2, 5, "Produce")], id="a produce"),
    pytest.param([refused(3, 1, 4)], [], [(1, 4, "Metadata"), (2, 5, "Metadata")], id="what was known"),
    pytest.param([refused(3, 3, 3)], [], [(3, 3, "Fetch"), (1, 4, "Metadata"), (2, 5, "Metadata")], id="an old epoch"),
    pytest.param([refused(3, -1, 5)], [], [(1, 4, "Metadata"), (2, 5, "Metadata")], id="it knows no leader"),
    pytest.param([fetch(3, 300, error_code=6)], [], [(1, 4, "Metadata"), (2, 5, "Metadata")], id="it names nobody"),
]  # fmt: skip


@pytest.mark.parametrize(("fetches", "batches", "expected"), SAID_BY_OTHERS)
def test_brokers_that_do_not_lead_say_who_does(
    fetches: list[Row], batches: list[Row], expected: list[tuple[Any, ...]]
) -> None:
    rows = {"kafka_partitions": [led(0, 1, 4, 1, 2), led(9, 2, 5, 2)], "kafka_fetch_partitions": fetches}
    found = made("kafka_leaders", ("leader_epoch", "leader_id", "source"), kafka_produce_batches=batches, **rows)
    assert sorted(found) == sorted((epoch, leader, source) for leader, epoch, source in expected)


def test_the_replicas_of_a_term_that_a_fetch_told_first_are_those_of_metadata() -> None:
    rows: Rows = {
        "kafka_partitions": [led(0, 1, 4, 1, 2), led(9, 2, 5, 2)],
        "kafka_fetch_partitions": [refused(3, 2, 5)],
    }
    assert made("kafka_leaders", TERM, **rows) == [
        (1, 4, at(0), at(3.002), [1, 2], None, None), (2, 5, at(3.002), None, [2], [1, 2], False),
    ]  # fmt: skip


def test_a_leader_that_nobody_else_told() -> None:
    assert made("kafka_leaders", ("leader_id", "leader_epoch"), kafka_fetch_partitions=[refused(3, 2, 5)]) == [(2, 5)]


def reads(seconds: float, offset: int, member: str = "m1", **more: Any) -> Row:
    given = {"next_offset": offset + 10, "records_count": 10, "error_code": 0, "high_watermark": 0}
    return fetch(seconds, offset, member, **{**given, **more})


ELECTED = [led(0, 1, 0, 1, 2), led(5, 1, 0, 1), led(10, 2, 1, 2)]
_TOLD = [(250, 300, "OffsetForLeaderEpoch", 2, 1, True, "billing-1")]
CUTS: list[Any] = [
    pytest.param([reads(9, 290), reads(12, 250)], [epoch_end(11, 250)], [], _TOLD, id="told below its position"),
    pytest.param([reads(9, 300, next_offset=None, ts_response=None), reads(12, 250)], [epoch_end(11, 250)], [],
                 _TOLD, id="its last fetch was not answered"),
    pytest.param([reads(9, 290), reads(12, 300)], [epoch_end(11, 300)], [], [], id="where it is"),
    pytest.param([reads(9, 290), reads(12, 300)], [epoch_end(11, 250)], [], [], id="and it goes on: another reader's"),
    pytest.param([reads(9, 290), reads(12, 250)], [epoch_end(11, 250, error_code=76)], [], [], id="an error"),
    pytest.param([reads(9, 290), reads(12, 250, "m2")], [epoch_end(11, 250, "m2")], [], [],
                 id="a client of which nothing was read before"),
    pytest.param([reads(11, 300, next_offset=None, diverging_epoch=0, diverging_end_offset=250), reads(12, 250)], [],
                 [], [(250, 300, "Fetch", 2, 1, True, "billing-1")], id="the response of a fetch says so"),
    pytest.param([reads(11, 300, next_offset=None, diverging_epoch=0, diverging_end_offset=250), reads(12, 300)], [],
                 [], [], id="it says so, and the reader goes on"),
    pytest.param([reads(11, 300, next_offset=None, diverging_epoch=0, diverging_end_offset=300), reads(12, 300)], [],
                 [], [], id="the epochs end where it is"),
    pytest.param([], [], [stored(8, 290), stored(12, 250), stored(13, 260)],
                 [(250, 300, "Produce", 2, 1, True, "shop-1")], id="stored below what had been stored"),
    pytest.param([], [], [stored(8, 290), stored(12, 290, base_sequence=80)], [], id="sent again"),
    pytest.param([], [], [stored(8, 290), stored(12, 0)], [], id="a log that begins at 0 may be another one"),
    pytest.param([], [], [stored(8, 290), stored(8.005, 250)], [], id="sent before the first one was answered"),
    pytest.param([], [], [stored(8, 290), stored(12, 250, error_code=6)], [], id="refused"),
]  # fmt: skip


@pytest.mark.parametrize(("fetches", "asked", "batches", "expected"), CUTS)
def test_truncations(fetches: list[Row], asked: list[Row], batches: list[Row], expected: list[tuple[Any, ...]]) -> None:
    rows = {"kafka_fetch_partitions": fetches, "kafka_leader_epochs": asked, "kafka_produce_batches": batches}
    assert made("kafka_truncations", CUT, kafka_partitions=ELECTED, **rows) == expected


@pytest.mark.parametrize("table", ["kafka_leaders", "kafka_truncations"])
def test_nothing_comes_of_nothing(table: str) -> None:
    assert made(table, ("ts",)) == []


def test_without_metadata_a_truncation_has_no_leader() -> None:
    rows: Rows = {
        "kafka_fetch_partitions": [reads(9, 290), reads(12, 250)], "kafka_leader_epochs": [epoch_end(11, 250)]
    }  # fmt: skip
    assert made("kafka_truncations", CUT, **rows) == [(250, 300, "OffsetForLeaderEpoch", None, None, None, "billing-1")]
