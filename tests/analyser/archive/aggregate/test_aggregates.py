"""Aggregates of datasets against plain counting, their merging, and findings over several runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wirewitness
from tests.conftest import SAMPLES
from tests.support.datasets import make_dataset
from tests.support.rows import arrow_from_rows
from tests.support.shares import examples
from wirewitness.analyser.archive.aggregate.aggregates import merge_rows, run_aggregates
from wirewitness.analyser.archive.aggregate.history import run_history
from wirewitness.analyser.archive.aggregate.lags import MINUTE_NS
from wirewitness.analyser.archive.aggregate.sketches import merged, percentiles, sketch_of
from wirewitness.analyser.archive.dataset.dataset import Change, write_parts
from wirewitness.analyser.kafka.facts.log_ends import SECOND_NS
from wirewitness.analyser.tables.tables import arrow_schema

CAPTURES = [SAMPLES / "kafka_fenced_commit.pcapng", SAMPLES / "mqtt_takeover_loop.pcapng"]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = make_dataset(tmp_path_factory.mktemp("datasets") / "two", CAPTURES)
    with Change.begin(root) as change:
        assert all(run_aggregates(change).values())
        change.commit([])
    return root


def test_percentiles_of_many_values() -> None:
    values = np.random.default_rng(7).lognormal(1.0, 2.0, 200_000)
    ranks = (0.5, 0.9, 0.99, 0.999)
    whole = sketch_of(values)
    halves = merged(sketch_of(half).serialize() for half in np.array_split(values, 50))
    assert len(whole.serialize()) < 8_000
    for sketch in (whole, halves):
        assert sketch.n == len(values)
        for rank, value in zip(ranks, percentiles(sketch, ranks), strict=True):
            assert value is not None
            assert abs((values <= value).mean() - rank) < 0.04 * (1 - rank) + 1e-4, rank


def _row(minute: int, operation: str, values: Sequence[float], errors: int) -> dict[str, Any]:
    data = np.array(values)
    told: dict[str, Any] = {}
    if len(data):
        half, high, most = percentiles(sketch_of(data))
        told = {"latency_sum_ms": data.sum(), "latency_min_ms": data.min(), "latency_max_ms": data.max(),
                "latency_p50_ms": half, "latency_p90_ms": high, "latency_p99_ms": most,
                "sketch": sketch_of(data).serialize()}  # fmt: skip
    return {
        "ts": minute * MINUTE_NS, "protocol": "kafka", "operation": operation, "exchanges": len(data) + errors,
        "errors": errors, "unanswered": 0, "latencies": len(data), **told,
    }  # fmt: skip


_values = st.lists(st.floats(0, 1e5, width=32), max_size=12)


@examples(40)
@given(st.lists(st.tuples(st.integers(0, 200), st.sampled_from("ab"), _values, st.integers(0, 3)), max_size=12))
def test_merging_gives_the_aggregate_of_the_whole(parts: list[tuple[int, str, list[float], int]]) -> None:
    rows = pa.Table.from_pylist([_row(*part) for part in parts], schema=arrow_schema("latency_minutes"))
    hour_ns = 60 * MINUTE_NS
    whole: dict[tuple[int, str], list[Any]] = {}
    for minute, operation, values, errors in parts:
        together = whole.setdefault((minute // 60, operation), [[], 0])
        together[0] += values
        together[1] += errors
    expected = [_row(hour * 60, operation, *both) for (hour, operation), both in sorted(whole.items())]
    found = merge_rows(rows, ("protocol", "operation"), hour_ns).to_pylist()
    exact = [name for name in arrow_schema("latency_minutes").names if name not in ("ts", "sketch", "latency_sum_ms")]
    assert len(found) == len(expected)
    for have, want in zip(found, expected, strict=True):
        assert have["ts"].value == want["ts"]
        assert {name: have[name] for name in exact} == {name: want.get(name) for name in exact}
        assert have["latency_sum_ms"] == pytest.approx(want.get("latency_sum_ms"))


def test_rows_merged_in_any_order_are_the_same() -> None:
    rng = np.random.default_rng(3)
    rows = pa.Table.from_pylist([_row(n, "a", rng.exponential(5, 6).tolist(), 1) for n in range(8)],
                                schema=arrow_schema("latency_minutes"))  # fmt: skip
    once = merge_rows(rows, width_ns=60 * MINUTE_NS)
    twice = merge_rows(pa.concat_tables([merge_rows(rows.slice(3), width_ns=2 * MINUTE_NS), rows.slice(0, 3)]),
                       width_ns=60 * MINUTE_NS)  # fmt: skip
    assert once.drop_columns(["sketch", "latency_sum_ms"]).equals(twice.drop_columns(["sketch", "latency_sum_ms"]))


def test_latencies_of_a_capture_are_counted(dataset: Path) -> None:
    with wirewitness.read(dataset) as kept:
        counted = kept.sql("""
            WITH topics AS (
                SELECT exchange_id, min(topic) AS topic FROM (
                    SELECT exchange_id, topic FROM kafka_offset_commits
                    UNION ALL SELECT exchange_id, topic FROM kafka_fetch_partitions
                    UNION ALL SELECT exchange_id, topic FROM kafka_produce_batches
                    UNION ALL SELECT message_id, topic FROM mqtt_publishes)
                GROUP BY exchange_id HAVING count(DISTINCT topic) = 1)
            SELECT epoch_ns(ts) // 60000000000 AS minute, protocol, cluster_id, operation, topic,
                   client_id, client_address, count(*) AS exchanges, count(*) FILTER (status = 'error') AS errors,
                   count(*) FILTER (status = 'unanswered') AS unanswered, count(latency_ms) AS latencies,
                   round(sum(latency_ms), 3) AS total, min(latency_ms) AS least, max(latency_ms) AS most,
                   quantile_disc(latency_ms, 0.5) AS half, quantile_disc(latency_ms, 0.99) AS slow
            FROM (SELECT * REPLACE (CASE WHEN awaitable IS NOT TRUE THEN latency_ms END AS latency_ms) FROM exchanges)
            LEFT JOIN topics USING (exchange_id) GROUP BY ALL ORDER BY ALL""").to_pylist()
        made = kept.sql("""
            SELECT epoch_ns(ts) // 60000000000 AS minute, protocol, cluster_id, operation, topic, client_id,
                   client_address, exchanges, errors, unanswered, latencies, round(latency_sum_ms, 3) AS total,
                   latency_min_ms AS least, latency_max_ms AS most, latency_p50_ms AS half, latency_p99_ms AS slow
            FROM latency_minutes ORDER BY ALL""").to_pylist()
    assert len(made) == len(counted) > 20
    assert any(row["topic"] for row in made)
    for have, want in zip(made, counted, strict=True):
        few = 0 < want["latencies"] < 60  # kept as they are
        assert {k: v for k, v in have.items() if k not in ("half", "slow")} == {
            k: v for k, v in want.items() if k not in ("half", "slow")
        }
        if few:
            for name in ("half", "slow"):
                assert have[name] == pytest.approx(want[name], rel=1e-6, abs=6e-4)


def test_lags_are_what_commits_and_log_ends_say(dataset: Path) -> None:
    with wirewitness.read(dataset) as kept:
        commits = _dicts(kept, "kafka_offset_commits")
        fetches = _dicts(kept, "kafka_fetch_partitions", ["ts", "ts_response", "topic", "partition", "high_watermark"])
        lists = _dicts(kept, "kafka_list_offsets")
        produced = _dicts(kept, "kafka_produce_batches")
        rows = _dicts(kept, "kafka_lag_minutes")
    for commit in commits:
        commit["ts"] = commit["ts_response"] or commit["ts"]
    ends = [(f["ts_response"] or f["ts"], f["topic"], f["partition"], f["high_watermark"]) for f in fetches
            if (f["high_watermark"] or -1) >= 0 or f["high_watermark"] == 0]  # fmt: skip
    ends += [(o["ts_response"] or o["ts"], o["topic"], o["partition"], o["offset"]) for o in lists
             if o["timestamp"] == -1 and not o["isolation_level"]]  # fmt: skip
    ends += [(p["ts_response"] or p["ts"], p["topic"], p["partition"], p["base_offset"] + p["records_count"])
             for p in produced
             if p["acks"] == -1 and p["error_code"] == 0]  # fmt: skip
    assert len(rows) > 5
    assert any(row["lag"] for row in rows)
    for row in rows:
        until = row["ts"] + MINUTE_NS
        mine = [c for c in commits if (c["group_id"], c["topic"], c["partition"]) == (
            row["group_id"], row["topic"], row["partition"]) and c["ts"] < until]  # fmt: skip
        last = max((c for c in mine if c["error_code"] == 0), key=lambda c: (c["ts"], c["exchange_id"]))
        known = [end for end in ends if end[1:3] == (row["topic"], row["partition"]) and end[0] < until]
        kept_from = max((end[0] for end in known), default=0) // SECOND_NS - 10
        end = max((end[3] for end in known if end[0] // SECOND_NS > kept_from), default=None)
        assert (row["committed_offset"], row["ts_commit"], row["log_end_offset"]) == (
            last["committed_offset"], last["ts"], end)  # fmt: skip
        assert row["lag"] == (None if end is None else max(end - last["committed_offset"], 0))
        within = [c for c in mine if c["ts"] >= row["ts"]]
        assert row["commits"] == sum(c["error_code"] == 0 for c in within)
        assert row["rejected"] == sum((c["error_code"] or 0) != 0 for c in within)
        who = {(c["client_address"], c["client_id"], c["member_id"]) for c in within if c["error_code"] == 0}
        assert row["committers"] == len(who)
    groups = {(c["group_id"], c["topic"], c["partition"]) for c in commits if c["error_code"] == 0}
    assert {(row["group_id"], row["topic"], row["partition"]) for row in rows} == groups


def _dicts(analysis: Any, table: str, columns: list[str] | None = None) -> list[dict[str, Any]]:
    """Rows with times as ns."""
    found = analysis.arrow(table, columns)
    for place, field in enumerate(found.schema):
        if pa.types.is_timestamp(field.type):
            found = found.set_column(place, field.name, found[field.name].cast(pa.int64()))
    return found.to_pylist()


def test_a_run_that_brings_nothing_writes_nothing(dataset: Path) -> None:
    with Change.begin(dataset) as change:
        before = change.parts()
        assert run_aggregates(change) == {
            "latency_minutes": set(), "kafka_lag_minutes": set(), "findings_history": set(),
        }  # fmt: skip
        assert change.parts() == before


def test_findings_over_several_runs(tmp_path: Path) -> None:
    runs = [{"a": "first", "b": "first"}, {"a": "again", "c": "new"}, {"a": "again", "b": "back", "c": "new"}]
    seen = []
    for found in runs:
        rows = [
            {"finding_id": name, "code": "KAF103", "name": "n", "severity": "critical", "confidence": "high",
             "provisional": False, "subject": name, "title": "t", "sentence": text, "next_step": "s",
             "ts_first": 5, "ts_last": 9, "evidence": "[]", "numbers": "{}"} for name, text in found.items()
        ]  # fmt: skip
        with Change.begin(tmp_path / "d") as change:
            change.remove(*change.parts("findings"))
            batches = arrow_from_rows("findings", rows).to_batches()
            change.add(*write_parts("findings", batches, change.staging, f"{change.run}-0"))
            run_history(change)
            change.commit([])
        with wirewitness.read(tmp_path / "d", tables=["findings_history"]) as kept:
            names = ["finding_id", "sentence", "first_run", "superseded_run"]
            seen.append([tuple(row.values()) for row in kept.arrow("findings_history", names).to_pylist()])
    assert seen == [
        [("a", "first", "000001", None), ("b", "first", "000001", None)],
        [("a", "again", "000001", None), ("b", "first", "000001", "000002"), ("c", "new", "000002", None)],
        [("a", "again", "000001", None), ("b", "back", "000001", None), ("c", "new", "000002", None)],
    ]


def test_a_capture_has_no_aggregates() -> None:
    with pytest.raises(wirewitness.CaptureError, match="only datasets have the table kafka_lag_minutes"):
        wirewitness.read(CAPTURES, tables=["kafka_lag_minutes"])
