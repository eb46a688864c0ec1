"""What chosen exchanges have in common that others have not: by real frequencies, chance left out."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.support.analysis_from_rows import RowsAnalysis
from wirewitness.reports.base.formats.document import Cells
from wirewitness.reports.report.compare.distinguishing import Common, common_of
from wirewitness.reports.report.compared import common_blocks

Row = dict[str, Any]
S = 1_000_000_000


def exchanges(seed: int, count: int = 4000) -> list[Row]:
    """Exchanges of twenty clients and sixty connections over half an hour, a part of them slow by chance."""
    chosen = random.Random(seed)
    made = []
    for number in range(count):
        client = chosen.randrange(20)
        made.append(
            {
                "exchange_id": f"x-{number}", "protocol": "kafka", "operation": chosen.choice(["Produce", "Metadata"]),
                "client_id": f"app-{client}", "client_address": f"10.0.0.{client}",
                "flow_id": f"flow-{client}-{chosen.randrange(3)}", "version": "9", "status": "ok",
                "server_address": "10.0.1.1", "server_port": 9092, "ts": int(chosen.uniform(0, 1800) * S),
                "latency_ms": 900.0 if chosen.random() < 0.02 else 2.0, "request_bytes": chosen.randrange(50, 900),
            }
        )  # fmt: skip
    return made


def standing(rows: list[Row], where: str = "latency_ms > 500", **tables: list[Row]) -> Common:
    return common_of(RowsAnalysis({"exchanges": rows, **tables}), where)


def named(found: Common) -> set[tuple[str, str]]:
    return {(row["dimension"], row["value"]) for row in found.rows}


@pytest.mark.parametrize("seed", range(8))
def test_slow_ones_by_chance_have_nothing_in_common(seed: int) -> None:
    found = standing(exchanges(seed))
    assert found.chosen > 50
    assert found.values > 100
    assert found.rows == []


def test_one_slow_client_stands_first_with_its_connections() -> None:
    rows = exchanges(1)
    for row in rows:
        if row["client_id"] == "app-7":
            row["latency_ms"] = 700.0
    found = standing(rows)
    assert named(found) == {
        ("client", "app-7"), ("client address", "10.0.0.7"), *(("connection", f"flow-7-{n}") for n in range(3)),
    }  # fmt: skip
    first = found.rows[0]
    assert (first["dimension"], first["chosen"]) == ("client", sum(row["client_id"] == "app-7" for row in rows))
    assert first["rest"] == 0
    assert first["share"] > 0.6
    assert first["chance"] < 1e-20


def test_a_topic_of_another_table_stands_out() -> None:
    rows = exchanges(2)
    sent = [{"exchange_id": row["exchange_id"], "topic": f"t{number % 9}", "partition": 0, "acks": -1}
            for number, row in enumerate(rows)]  # fmt: skip
    for row, batch in zip(rows, sent, strict=True):
        if batch["topic"] == "t4" and row["operation"] == "Produce":
            row["latency_ms"] = 800.0
    found = standing(rows, kafka_produce_batches=sent)
    assert named(found) == {("topic", "t4"), ("partition", "t4-0"), ("operation", "Produce"), ("version", "Produce 9")}


def test_values_of_the_same_exchanges_share_a_line() -> None:
    rows = exchanges(7)
    asked = [
        {"exchange_id": row["exchange_id"], "topic": topic, "partition": partition, "group_id": f"g{number % 3}"}
        for number, row in enumerate(rows)
        for topic, partition in (
            [("orders", 0), ("orders", 1)]
            if number % 40 == 0
            else [("audit", 0)]
            if number % 40 == 1
            else [("rest", 0)]
        )
    ]
    for number, row in enumerate(rows):
        row["latency_ms"] = 900.0 if number % 40 in (0, 1) else 1.0
    found = standing(rows, kafka_fetch_partitions=asked)
    (_, table, *_) = common_blocks(found, "slow", 50)
    assert isinstance(table, Cells)
    assert sorted(row[0] for row in table.rows) == [
        "partition audit-0 and topic audit", "partition orders-0, orders-1 and topic orders",
    ]  # fmt: skip


def test_others_are_those_of_the_same_operations_unless_all_are_wanted() -> None:
    rows = exchanges(3)
    for row in rows:
        row["latency_ms"] = 2000.0 if row["operation"] == "Produce" else 1.0
    assert standing(rows).rows == []
    every = common_of(RowsAnalysis({"exchanges": rows}), "latency_ms > 500", all_operations=True)
    assert ("operation", "Produce") in named(every)


def test_few_exchanges_prove_nothing() -> None:
    rows = exchanges(4)
    for row in rows:
        row["latency_ms"] = 1.0
    slow = [row for row in rows if row["client_id"] == "app-3"][:2]
    for row in slow:
        row["latency_ms"] = 900.0
    assert standing(rows).rows == []


@pytest.mark.parametrize(("where", "chosen"), [("latency_ms > 1e9", 0), ("true", 4000)])
def test_without_both_sides_there_is_nothing(where: str, chosen: int) -> None:
    found = standing(exchanges(5), where)
    assert (found.chosen, found.rows) == (chosen, [])
