"""Lag over time is the step function of the stored offset against that of the log end, whatever the bins."""

from __future__ import annotations

from typing import Any

import pytest

from tests.analyser.engine.rules.scenarios.build import at, commit
from tests.reports.protocols.kafka.questions.test_commits import rows as random_rows
from tests.support.analysis_from_rows import RowsAnalysis
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.reports.protocols.kafka.questions import lag_history
from wirewitness.reports.protocols.kafka.questions.commits import commits, committers, owners
from wirewitness.reports.protocols.kafka.questions.lag_history import lag_over_time

Row = dict[str, Any]
SECOND_NS = 1_000_000_000
BIN_NS, WIDTH_NS = 10 * SECOND_NS, 2 * SECOND_NS


def fetch(seconds: float, end: int, partition: int = 0) -> Row:
    """An answer that tells the end of the log."""
    return {"ts": at(seconds), "ts_response": at(seconds), "cluster_id": "c1", "topic": "payments",
            "partition": partition, "high_watermark": end, "exchange_id": f"f-c{round(seconds * 1000)}",
            "flow_id": "f"}  # fmt: skip


def exchange(seconds: float) -> Row:
    return {"ts": at(seconds), "exchange_id": "z-c1", "flow_id": "z", "protocol": "kafka"}


def lags(tables: dict[str, list[Row]], options: ReadOptions | None = None, width_ns: int = BIN_NS) -> list[Row]:
    return lag_over_time(RowsAnalysis(tables, options), "c1", "billing", width_ns)


def seconds(row: Row) -> float:
    return round((row["t"] * 1e6 - at(0)) / 1e9, 3)


def test_two_writers_that_take_turns_within_a_bin_are_both_seen() -> None:
    """Every 100 ms one of them stores the end of the log, the other an offset far behind."""
    tables = {
        "kafka_offset_commits": [
            commit(0.1 * n, 100 if n % 2 else 20, "m1" if n % 2 else "m2") for n in range(1, 400)
        ],
        "kafka_fetch_partitions": [fetch(0, 100)],
    }  # fmt: skip
    found = lags(tables)
    assert len(found) > 3
    assert {(row["least"], row["most"]) for row in found} == {(0, 80)}
    assert found[-1]["lag"] == 0


def test_a_group_that_stopped_falls_behind_to_the_end_of_the_capture() -> None:
    tables = {
        "kafka_offset_commits": [commit(1, 50)],
        "kafka_fetch_partitions": [fetch(s, 50 + s) for s in range(60)],
        "exchanges": [exchange(99)],
    }
    found = lags(tables)
    assert [row["lag"] for row in found][-1] == 59
    assert seconds(found[-1]) >= 90
    assert [row["behind_ms"] for row in found] == sorted(row["behind_ms"] for row in found)
    assert found[-1]["behind_ms"] == pytest.approx(98_000, abs=1)


def test_what_stood_before_the_range_stands_in_it() -> None:
    tables = {"kafka_offset_commits": [commit(1, 50)], "kafka_fetch_partitions": [fetch(2, 80)],
              "exchanges": [exchange(99)]}  # fmt: skip
    found = lags(tables, ReadOptions(from_ns=at(35), to_ns=at(72)))
    assert {(row["lag"], row["least"], row["most"]) for row in found} == {(30, 30, 30)}
    assert seconds(found[0]) == 35
    assert len(found) in (4, 5)
    assert seconds(found[-1]) < 72


def test_of_two_commits_answered_in_one_millisecond_the_brokers_last_counts() -> None:
    """Sent the other way round: the order of answers decides, to the ns."""
    first = commit(1, 90, "m1", ts_response=at(2) + 400_000)
    second = commit(0.5, 10, "m2", ts_response=at(2) + 900_000)
    tables = {"kafka_offset_commits": [first, second], "kafka_fetch_partitions": [fetch(0, 100)]}
    assert [row["lag"] for row in lags(tables)] == [90]
    drawn, _ = commits(RowsAnalysis(tables), "c1", "billing")
    assert [row["committed_offset"] for row in drawn] == [90, 10]
    assert [row["went_back"] for row in drawn] == [False, True]


def test_what_was_deleted_is_not_carried_on() -> None:
    deletion = {"ts": at(30), "ts_response": at(30), "cluster_id": "c1", "operation": "OffsetDelete",
                "resource_type": "group", "resource_name": "billing", "change": "delete offsets of payments 0",
                "error_code": 0, "exchange_id": "d-c1", "flow_id": "d"}  # fmt: skip
    tables = {"kafka_offset_commits": [commit(1, 50)], "kafka_fetch_partitions": [fetch(2, 80)],
              "kafka_admin_changes": [deletion], "exchanges": [exchange(99)]}  # fmt: skip
    told = {seconds(row): row["lag"] for row in lags(tables)}
    assert max(at_s for at_s, lag in told.items() if lag is not None) < 30
    assert max(told) >= 90


def test_a_range_counts_its_own_commits_and_knows_what_was_stored_before() -> None:
    tables = {"kafka_offset_commits": [commit(1, 50), commit(40, 20, "m2"), commit(41, 30, "m2"), commit(80, 60)]}
    source = RowsAnalysis(tables, ReadOptions(from_ns=at(35), to_ns=at(60)))
    assert {one.client_id: one.commits for one in committers(source, "c1", "billing")} == {
        "billing-1": 0,
        "billing-2": 2,
    }
    drawn, _ = commits(source, "c1", "billing")
    assert [(row["committed_offset"], row["before"], row["went_back"]) for row in drawn] == [
        (50, True, False), (20, False, True), (30, False, False)]  # fmt: skip
    thinned, left_out = commits(source, "c1", "billing", points=1)
    assert left_out
    assert [row["committed_offset"] for row in thinned] == [50, 20, 30]


def test_an_owners_lane_stands_until_something_ends_it() -> None:
    given = {"ts": at(0), "cluster_id": "c1", "group_id": "billing", "member_id": "m1", "topic": "payments",
             "partition": 0, "generation": 5, "source": "sync_answer", "exchange_id": "f-c1"}  # fmt: skip
    tables = {"kafka_assignments": [given], "kafka_offset_commits": [commit(7, 50, generation=5)],
              "captures": [{"ts_last": at(99)}]}  # fmt: skip
    lanes = owners(RowsAnalysis(tables), "c1", "billing")
    assert [round((row["t_end"] - row["t"]) / 1000) for row in lanes] == [99]
    later = {**given, "ts": at(3), "member_id": "m2", "generation": 6, "exchange_id": "f-c2"}
    tables["kafka_assignments"].append(later)
    lanes = owners(RowsAnalysis(tables), "c1", "billing")
    assert [(row["member_id"], round((row["t_end"] - row["t"]) / 1000)) for row in lanes] == [("m1", 3), ("m2", 96)]


def end_told(one: Row) -> int | None:
    """The end of the log that an answer tells."""
    if one.get("high_watermark", -1) >= 0:
        return int(one["high_watermark"])
    if "timestamp" in one:
        counts = one["timestamp"] == -1 and one["isolation_level"] in (None, 0) and one["replica_id"] == -1
        return int(one["offset"]) if counts else None
    if one.get("acks") == -1 and one["error_code"] == 0:
        return int(one["base_offset"]) + int(one["records_count"])
    return None


def start_told(one: Row) -> int:
    """The start of the log that an answer tells, or 0."""
    if one.get("timestamp") == -2:
        return max(int(one["offset"]), 0)
    return max(one.get("log_start_offset") or 0, 0)


def followed(all_rows: dict[str, list[Row]]) -> dict[tuple[int, int], tuple[int, int, int]]:
    """Bin and partition -> lag at its end, least and most in it, from one row after the other."""
    told: dict[int, list[tuple[int, int]]] = {}
    stored: dict[int, int] = {}
    starts: dict[int, int] = {}
    held: dict[int, int] = {}
    found: dict[tuple[int, int], tuple[int, int, int]] = {}
    events = sorted((row for own in all_rows.values() for row in own), key=lambda row: int(row["ts"]))
    last_bin = events[-1]["ts"] // WIDTH_NS
    at_bin = dict.fromkeys((0, 1), 0)
    for one in events:
        place, bin_ = one["partition"], one["ts"] // WIDTH_NS
        if "committed_offset" in one:
            if one["error_code"] == 0:
                stored[place] = one["committed_offset"]
        elif (end := end_told(one)) is not None:
            told.setdefault(place, []).append((one["ts"] // SECOND_NS, end))
        starts[place] = max(starts.get(place, 0), start_told(one))
        if place not in told or place not in stored:
            continue
        highest = max(end for second, end in told[place] if second > told[place][-1][0] - 10)
        for missed in range(at_bin[place] + 1, bin_ + 1):
            if place in held:
                found[missed, place] = (held[place],) * 3
        at_bin[place] = bin_
        held[place] = lag = max(highest - max(stored[place], starts[place]), 0)
        _, least, most = found.get((bin_, place), (lag, lag, lag))
        found[bin_, place] = (lag, min(least, lag), max(most, lag))
    for place, lag in held.items():
        for missed in range(at_bin[place] + 1, last_bin + 1):
            found[missed, place] = (lag,) * 3
    return found


@pytest.mark.parametrize("seed", range(4))
def test_every_bin_is_what_following_the_rows_gives(seed: int) -> None:
    told = random_rows(seed)
    found = {
        (round(row["t"] * 1e6) // WIDTH_NS, row["partition"]): (row["lag"], row["least"], row["most"])
        for row in lag_over_time(RowsAnalysis(told), "c", "g", WIDTH_NS) if row["lag"] is not None
    }  # fmt: skip
    expected = followed(told)
    assert len(expected) > 8
    assert any(least < most for _, least, most in expected.values())
    assert found == expected


def test_a_commit_before_any_end_of_the_log_has_no_lag() -> None:
    told = {"kafka_offset_commits": random_rows(0)["kafka_offset_commits"]}
    found = lag_over_time(RowsAnalysis(told), "c", "g", WIDTH_NS)
    assert {row["lag"] for row in found} == {None}


@pytest.mark.parametrize("kept", [None, 80], ids=["all is kept", "retention removes what is older"])
def test_of_very_many_steps_the_bounds_hold_what_following_them_gives(
    monkeypatch: pytest.MonkeyPatch, kept: int | None
) -> None:
    """A log that grows, a writer that follows it, and from the middle on one that writes an old offset back.

    kept: how many records the log has at most."""
    ends = [
        fetch(0.3 * n, 10 + n) | ({} if kept is None else {"log_start_offset": max(10 + n - kept, 0)})
        for n in range(300)
    ]
    follows = [commit(0.3 * n + 0.1, 10 + n, "m1") for n in range(300)]
    stale = [commit(0.7 * n + 50.2, 30, "m2") for n in range(40)]
    tables = {"kafka_fetch_partitions": ends, "kafka_offset_commits": [*follows, *stale]}
    exact = [row for row in lags(tables) if row["lag"] is not None]
    monkeypatch.setattr(lag_history, "EXACT_STEPS", 10)
    wide = {row["t"]: row for row in lags(tables)}
    assert len(exact) > 8
    for row in exact:
        bounds = wide[row["t"]]
        assert bounds["lag"] == row["lag"]
        assert row["most"] <= bounds["most"] <= row["most"] + 10
        assert bounds["least"] <= row["least"]
