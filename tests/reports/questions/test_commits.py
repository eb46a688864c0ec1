"""Lag and suspicion of a group's partitions: the queries give what going through the rows one by one gives."""

from __future__ import annotations

import random
from typing import Any

import pytest

from reports.questions.commits import lag_over_time, partitions_by_suspicion
from tests.support.analysis_from_rows import RowsAnalysis

ROWS, STEP_NS, WIDTH_NS = 300, 400_000_001, 2_000_000_000
SECOND_NS = 1_000_000_000
COMMITTERS = (("m1", "app"), ("m2", "app"), (None, "tool"))

Row = dict[str, Any]


def rows(seed: int) -> dict[str, list[Row]]:
    """Commits and log ends of two partitions at times that are all different."""
    chance = random.Random(seed)
    commits, fetches, listed, produced = [], [], [], []
    for ts in range(1, ROWS * STEP_NS, STEP_NS):
        place = {"ts": ts, "cluster_id": "c", "topic": "t", "partition": chance.randrange(2)}
        kind = chance.random()
        if kind < 0.5:
            member, client = chance.choice(COMMITTERS)
            commits.append(
                place
                | {"exchange_id": f"x{ts}", "api": "OffsetCommit", "group_id": "g", "flow_id": "f",
                   "request_packet": ts, "committed_offset": chance.randrange(100),
                   "error_code": chance.choice((0, 0, 0, 25, None)),
                   "member_id": member, "client_id": client, "client_address": "10.0.0.1",
                   "owner_member_id": chance.choice(("m1", None))}
            )  # fmt: skip
        elif kind < 0.8:
            fetches.append(place | {"high_watermark": chance.choice((-1, chance.randrange(150)))})
        elif kind < 0.9:
            asked = {"timestamp": chance.choice((-1, -2)), "isolation_level": chance.choice((None, 0, 0, 1)),
                     "replica_id": chance.choice((-1, -1, 1))}  # fmt: skip
            listed.append(place | asked | {"offset": chance.randrange(150)})
        else:
            produced.append(place | {"acks": chance.choice((-1, -1, 1)), "error_code": chance.choice((0, 0, 6)),
                                     "base_offset": chance.randrange(150), "records_count": 3})  # fmt: skip
    return {"kafka_offset_commits": commits, "kafka_fetch_partitions": fetches, "kafka_list_offsets": listed,
            "kafka_produce_batches": produced}  # fmt: skip


def counted(commits: list[Row]) -> list[Row]:
    """What `partitions_by_suspicion` promises, from one commit after the other; refused ones do not count."""
    found: dict[int, Row] = {}
    highest: dict[int, int] = {}
    who: dict[int, set[tuple[Any, Any]]] = {}
    for one in commits:
        if one["error_code"] not in (0, None):
            continue
        place, offset = one["partition"], one["committed_offset"]
        told = found.setdefault(place, {"topic": "t", "partition": place, "commits": 0, "steps_back": 0,
                                        "furthest_back": None, "by_others": 0})  # fmt: skip
        told["commits"] += 1
        told["by_others"] += None not in (one["owner_member_id"], one["member_id"]) and one["member_id"] != "m1"
        who.setdefault(place, set()).add((one["member_id"], one["client_id"]))
        if offset < highest.setdefault(place, offset):
            told["steps_back"] += 1
            told["furthest_back"] = max(told["furthest_back"] or 0, highest[place] - offset)
        highest[place] = max(highest[place], offset)
    counts = [told | {"committers": len(who[place])} for place, told in found.items()]
    return sorted(counts, key=lambda told: (not told["by_others"], -(told["furthest_back"] or -1), told["partition"]))


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


def followed(all_rows: dict[str, list[Row]]) -> list[Row]:
    """What `lag_over_time` promises, from one row after the other: how things stand at the end of each bin."""
    told: dict[int, list[tuple[int, int]]] = {}
    stored: dict[int, int] = {}
    last: dict[tuple[int, int], int] = {}
    for one in sorted((row for held in all_rows.values() for row in held), key=lambda row: int(row["ts"])):
        place, bin_ = one["partition"], one["ts"] // WIDTH_NS
        if "committed_offset" in one:
            if one["error_code"] is None:
                continue
            if one["error_code"] == 0:
                stored[place] = one["committed_offset"]
        elif (end := end_told(one)) is not None:
            told.setdefault(place, []).append((one["ts"] // SECOND_NS, end))
        else:
            continue
        if place in told and place in stored:
            highest = max(end for second, end in told[place] if second > told[place][-1][0] - 10)
            last[bin_, place] = max(highest - stored[place], 0)
    for bin_ in range(max(last)[0] + 1):
        for place in stored:
            if (bin_, place) not in last and (bin_ - 1, place) in last:
                last[bin_, place] = last[bin_ - 1, place]
    return [{"t": bin_ * WIDTH_NS / 1e6, "topic": "t", "partition": place, "lag": lag}
            for (bin_, place), lag in sorted(last.items())]  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_suspicion_is_what_counting_gives(seed: int) -> None:
    told = rows(seed)
    expected = counted(told["kafka_offset_commits"])
    assert any(one["steps_back"] for one in expected)
    assert any(one["by_others"] for one in expected)
    assert partitions_by_suspicion(RowsAnalysis(told), "c", "g") == expected


@pytest.mark.parametrize("seed", range(4))
def test_lag_is_how_things_stand_at_the_end_of_a_bin(seed: int) -> None:
    told = rows(seed)
    expected = followed(told)
    assert len(expected) > 8
    assert lag_over_time(RowsAnalysis(told), "c", "g", WIDTH_NS) == expected


def test_a_commit_before_any_end_of_the_log_has_no_lag() -> None:
    told = {"kafka_offset_commits": rows(0)["kafka_offset_commits"]}
    assert lag_over_time(RowsAnalysis(told), "c", "g", WIDTH_NS) == []
