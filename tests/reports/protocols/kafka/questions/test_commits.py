"""Suspicion of a group's partitions: the query gives what going through the rows one by one gives."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.support.analysis_from_rows import RowsAnalysis
from wirewitness.reports.protocols.kafka.questions.commits import partitions_by_suspicion

ROWS, STEP_NS = 300, 400_000_001
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
    before: dict[int, int] = {}
    who: dict[int, set[tuple[Any, Any]]] = {}
    for one in commits:
        if one["error_code"] != 0:
            continue
        place, offset = one["partition"], one["committed_offset"]
        told = found.setdefault(place, {"topic": "t", "partition": place, "commits": 0, "steps_back": 0,
                                        "furthest_back": None, "by_others": 0})  # fmt: skip
        told["commits"] += 1
        told["by_others"] += None not in (one["owner_member_id"], one["member_id"]) and one["member_id"] != "m1"
        who.setdefault(place, set()).add((one["member_id"], one["client_id"]))
        if offset < before.get(place, offset):
            told["steps_back"] += 1
            told["furthest_back"] = max(told["furthest_back"] or 0, before[place] - offset)
        before[place] = offset
    counts = [told | {"committers": len(who[place])} for place, told in found.items()]
    return sorted(counts, key=lambda told: (not told["by_others"], -(told["furthest_back"] or -1), told["partition"]))


@pytest.mark.parametrize("seed", range(4))
def test_suspicion_is_what_counting_gives(seed: int) -> None:
    told = rows(seed)
    expected = counted(told["kafka_offset_commits"])
    assert any(one["steps_back"] for one in expected)
    assert any(one["by_others"] for one in expected)
    assert partitions_by_suspicion(RowsAnalysis(told), "c", "g") == expected
