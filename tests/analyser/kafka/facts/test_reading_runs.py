"""Runs of reading of random small tables, by arrays and row by row."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.support.reading_runs import expected_runs
from tests.support.rows import connection_from_rows, with_log_ends
from wirewitness.analyser.engine.facts.gaps import add_gaps
from wirewitness.analyser.kafka.facts import fetch_stage
from wirewitness.analyser.kafka.facts.fetch_stage import TABLE, add_fetch_ranges
from wirewitness.analyser.tables.tables import TABLES, arrow_schema

Row = dict[str, Any]

START = 1_790_000_000_000_000_000
SECOND = 1_000_000_000
USUAL = {
    "cluster_id": "c1", "group_id": "g1", "topic": "t1", "partition": 0, "client_id": "a", "client_address": "10.0.0.1",
}  # fmt: skip
SEEDS, TIES = range(20), (False, True)


class Made:
    """Random rows. ties: many of them come at one time, and many are there twice."""

    def __init__(self, seed: int, ties: bool) -> None:
        self._random = random.Random(seed)
        self._ties = ties
        self._seconds = self._random.sample(range(90_000), 4_000)
        self.tables: dict[str, list[Row]] = {}
        size = self._random.choice([1, 3, 8])
        for table, (count, make) in {
            "kafka_fetch_partitions": (12, self.fetch),
            "kafka_offset_commits": (5, self.commit),
            "kafka_offset_fetches": (3, self.answer),
            "kafka_list_offsets": (9, self.listed),
            "kafka_leader_epochs": (6, self.epoch_end),
            "kafka_group_events": (3, self.event),
            "kafka_admin_changes": (6, self.change),
            "kafka_transactions": (2, self.end),
            "kafka_produce_batches": (3, self.batch),
            "expert_infos": (1, self.loss),
        }.items():
            rows = [make() for _ in range(self._random.randint(0, count * size))]
            if ties and table != "kafka_transactions":
                rows += map(dict, self._random.sample(rows, len(rows) // 4))
            self.tables[table] = sorted(rows, key=lambda row: row["ts"] or 0) if self.one(True, False) else rows
        self.tables["kafka_log_ends"] = log_ends(self.tables)
        self.tables["flows"] = [self.flow(number) for number in range(self._random.randint(0, 4))]

    def one(self, *values: Any) -> Any:
        return self._random.choice(values)

    def at(self) -> int:
        """Milliseconds, at which nothing else comes, or one of 40 seconds."""
        if self._ties:
            return START + self.one(*range(40)) * SECOND
        return START + self._seconds.pop() * 1_000_000

    def some(self, *extra: str) -> Row:
        """What many tables have."""
        ts = self.at()
        flow = self._random.randint(0, 4)
        answer = self.one(None, self.one(1, 5) * (SECOND if self._ties else 1))
        row = {
            "ts": ts, "ts_response": None if answer is None else ts + answer,
            "cluster_id": self.one(None, "c1", "c1", "c2"), "client_id": self.one(None, "", "a", "a", "b"),
            "client_address": self.one(None, "10.0.0.1", "10.0.0.1", "10.0.0.2"), "flow_id": f"f{flow}",
            "exchange_id": f"f{flow}-c{self._random.randint(0, 40)}",
        }  # fmt: skip
        topic, topic_id = self.one(("t1", None), ("t1", "id1"), ("t1", "id2"), ("t2", None), (None, "id3"))
        more = {
            "topic": topic, "topic_id": topic_id, "partition": self._random.randint(0, 2),
            "group_id": self.one("g1", "g1", "g1", "g2", None), "file": self.one(None, "a.pcap", "b.pcap"),
            "request_packet": self.one(None, 3, 10, 200), "member_id": self.one(None, "", "m1", "m2"),
            "error_code": self.one(0, 0, 0, 0, None, 1, 3),
        }  # fmt: skip
        # Every other one is of one reader, so that something is known of it.
        usual = USUAL if self.one(True, False) else {}
        made = row | {name: more[name] for name in extra}
        return made | {name: usual[name] for name in usual.keys() & made.keys()}

    def fetch(self) -> Row:
        row = self.some("topic", "topic_id", "partition", "group_id", "file", "request_packet", "error_code")
        return row | {
            "exchange_id": self.one(None, row["exchange_id"], row["exchange_id"]),
            "replica_id": self.one(None, -1, -1, -1, 2), "fetch_offset": self.one(None, 0, 10, 10, 20, 30),
            "next_offset": self.one(None, None, 10, 20, 30), "records_bytes": self.one(None, 0, 0, 99),
            "records_count": self.one(None, 0, 7), "high_watermark": self.one(None, -1, 30, 40, 50),
            "log_start_offset": self.one(None, 0, 5),
        }  # fmt: skip

    def commit(self) -> Row:
        row = self.some("topic", "topic_id", "partition", "group_id", "member_id", "error_code")
        return row | {
            "api": self.one("OffsetCommit", "OffsetCommit", "TxnOffsetCommit"), "producer_id": self.one(None, 1, 2),
            "committed_offset": self.one(-1, 0, 10, 20),
        }  # fmt: skip

    def answer(self) -> Row:
        row = self.some("topic", "topic_id", "partition", "group_id", "error_code")
        return row | {"committed_offset": self.one(None, -1, 0, 10, 20)}

    def listed(self) -> Row:
        row = self.some("topic", "partition", "error_code")
        return row | {"timestamp": self.one(None, -1, -2, 5), "offset": self.one(None, -1, 0, 10)}

    def epoch_end(self) -> Row:
        row = self.some("topic", "partition", "error_code")
        return row | {"end_offset": self.one(None, -1, 10, 20)}

    def event(self) -> Row:
        row = self.some("group_id", "member_id", "error_code")
        return row | {"event": self.one("join", "sync", "heartbeat", "consumer_heartbeat", "leave")}

    def change(self) -> Row:
        kind, name, changes = self.one(
            ("group", "g1", ("delete", "delete offsets of t1 0,2", "delete offsets of id3 1", "x")),
            ("topic", "t1", ("delete", "delete topic_id=id1", "partitions=2", "delete records 0<5,1<9", "x")),
            ("broker", "g1", ("delete",)),
        )
        return self.some("error_code") | {
            "operation": "x", "resource_type": kind, "resource_name": self.one(name, name, None),
            "change": self.one(*changes), "validate_only": self.one(False, False, True),
        }  # fmt: skip

    def end(self) -> Row:
        # At a time of its own: which of two producers wrote last when both end at once nobody can say.
        ts = START + self._seconds.pop() * 1_000_000 + 1
        return self.some("error_code") | {
            "ts": ts, "ts_response": self.one(None, ts), "event": self.one("end_txn", "end_txn", "init"),
            "producer_id": self.one(1, 2), "committed": self.one(True, True, False, None),
        }  # fmt: skip

    def batch(self) -> Row:
        row = self.some("topic", "topic_id", "partition", "error_code")
        return row | {
            "acks": self.one(-1, -1, 1), "base_offset": self.one(None, 20, 35), "records_count": 10,
            "transactional": self.one(None, True, False),
        }  # fmt: skip

    def loss(self) -> Row:
        return {"ts": self.one(None, self.at()), "flow_id": self.one("f0", "f1", "f9"),
                "group": self.one("tcp", "log", "kafka"), "code": self.one("gap", "other")}  # fmt: skip

    def flow(self, number: int) -> Row:
        identified_by = self.one(None, "request", "request log")
        return {
            "flow_id": f"f{number}", "client_address": self.one(None, "10.0.0.1", "10.0.0.2"), "ts_first": self.at(),
            "handshake_seen": identified_by != "request log" and self.one(True, False), "identified_by": identified_by,
            "missing_requests": self.one(None, 0),
        }  # fmt: skip


def log_ends(tables: dict[str, list[Row]]) -> list[Row]:
    """What the fact makes of the rows; it has tests of its own."""
    con = with_log_ends(connection_from_rows(tables))
    columns = "* REPLACE (epoch_ns(ts) AS ts, epoch_ns(ts_last) AS ts_last)"
    found: list[Row] = con.sql(f"SELECT {columns} FROM kafka_log_ends").to_arrow_table().to_pylist()
    con.close()
    return found


def made_of(tables: dict[str, list[Row]], folder: Path) -> list[Row]:
    con = connection_from_rows(tables)
    add_gaps(con)
    held = add_fetch_ranges(con, {TABLE: folder / "runs.parquet"}).get(TABLE)
    con.close()
    assert not isinstance(held, Path)
    return plain(arrow_schema(TABLE).empty_table() if held is None else held)


def plain(rows: pa.Table) -> list[Row]:
    """Times as Unix ns."""
    fields = [f.with_type(pa.int64()) if pa.types.is_timestamp(f.type) else f for f in arrow_schema(TABLE)]
    return rows.cast(arrow_schema(TABLE)).cast(pa.schema(fields)).to_pylist()  # type: ignore[no-any-return]


@cache
def tables_of(seed: int, ties: bool) -> dict[str, list[Row]]:
    return Made(seed, ties).tables


@cache
def expected(seed: int, ties: bool) -> list[Row]:
    """The runs of random tables, found row by row."""
    return expected_runs(tables_of(seed, ties))


def in_order(rows: list[Row]) -> list[str]:
    return sorted(str([row[name] for name in TABLES[TABLE].column_names()]) for row in rows)


@pytest.mark.parametrize("step_rows", [1 << 18, 25])
@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("seed", SEEDS)
def test_runs_are_those_of_looking_at_each_row(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, seed: int, ties: bool, step_rows: int
) -> None:
    """All partitions at once, and some at a time."""
    monkeypatch.setattr(fetch_stage, "STEP_ROWS", step_rows)
    assert in_order(made_of(tables_of(seed, ties), tmp_path)) == in_order(expected(seed, ties))


def test_random_tables_have_all_that_is_asked_for() -> None:
    """Else the test above would compare nothing with nothing."""
    runs = [row for seed in SEEDS for ties in TIES for row in expected(seed, ties)]
    for name in TABLES[TABLE].column_names():
        assert sum(row[name] is not None for row in runs) >= 2, name
