"""What a capture lacks accuses nobody: lost answers, fetches at other brokers, producers that are not seen."""

from __future__ import annotations

from typing import Any

from tests.analyser.engine.rules.scenarios.build import Row, assigned, commit, flow, remark, simple_commit
from tests.analyser.engine.rules.scenarios.build_groups import beats, flows
from tests.analyser.engine.rules.scenarios.build_members import STARTED, died, late
from tests.analyser.engine.rules.scenarios.build_offsets import poisoned, read, restarted
from tests.analyser.engine.rules.scenarios.scenario import Scenario, silent


def _with_last(rows: dict[str, list[Row]], **more: Any) -> dict[str, list[Row]]:
    """The last fetch once more, otherwise."""
    fetches = rows["kafka_fetch_partitions"]
    later = read(33, 48, 103) | more
    return rows | {"kafka_fetch_partitions": [*fetches, later]}


KAFKA_MISSING_NEAR_MISSES: list[Scenario] = [
    silent("KAF124", "no producer is seen: there may be markers", ("KAF124", "info"), **restarted(4, 1)),
    silent(
        "KAF102", "a capture at the coordinator alone: a client that returns to one value may have turned back",
        ("KAF103", "critical"), ("KAF102", "info"),
        kafka_offset_commits=[commit(n, 500 if n % 2 else 1000 + n) for n in range(16)],
    ),
    silent(
        "KAF129", "where it reads is not in the capture", ("KAF129", "info"), ("KAF103", "warning"),
        kafka_offset_commits=[commit(1, 300, error_code=25), commit(5, 500), commit(6, 300)],
    ),
    silent(
        "KAF129", "the answer to the first commit is lost: it may have been accepted", ("KAF103", "warning"),
        kafka_offset_commits=[
            commit(1, 300, error_code=None, ts_response=None), commit(5, 500), commit(6, 300),
        ],
        kafka_fetch_partitions=[read(4, 490, 500)],
        flows=[flow("flow1", client_address="10.1.0.1")], expert_infos=[remark("flow1", 0.5, "tcp", "gap")],
    ),
    silent(
        "KAF104", "its client goes on under another member id, whose begin is not in the capture", ("KAF101", "info"),
        kafka_assignments=assigned(0, 5, {"m1": [0]}),
        kafka_offset_commits=[
            commit(1, 100), commit(2, 101), *(commit(n, 100 + n, member_id="m1-again") for n in range(10, 14)),
        ],
    ),
    silent(
        "KAF105", "a later commit whose answer is lost may have got through",
        kafka_offset_commits=[
            *(commit(n, 100, error_code=22, generation=4) for n in range(4)),
            commit(5, 100, error_code=None, ts_response=None),
        ],
        flows=[flow("flow1", client_address="10.1.0.1")], expert_infos=[remark("flow1", 0.5, "tcp", "gap")],
    ),
    silent(
        "KAF101", "one return of which no membership is on the wire", ("KAF101", "info"),
        kafka_offset_commits=[simple_commit(n, 100 + n, client_address=f"10.1.0.{one}") for n, one in
                              enumerate((1, 1, 2, 2, 1, 1))],
    ),
    silent(
        "KAF126", "bytes of the silent member are missing: it may have left",
        kafka_group_events=died(6), flows=flows(200), expert_infos=[remark("flow2", 6, "tcp", "gap")],
    ),
    silent(
        "KAF126", "bytes are missing somewhere, and how its connection ended was not seen",
        kafka_group_events=died(6), flows=flows(200), expert_infos=[remark("flow1", 6, "tcp", "gap")],
    ),
    silent(
        "KAF126", "told once and late: nobody knows whether it got the answer", ("KAF126", "info"),
        kafka_group_events=late(40), flows=flows(200),
    ),
    silent(
        "KAF126", "late, and that it was told is not in the capture",
        kafka_group_events=[row for row in late(9) if row["error_code"] != 27], flows=flows(200),
    ),
    silent(
        "KAF111", "bytes of the member are missing",
        kafka_group_events=[*STARTED, *beats("m1", 5, 4, 9, 12), *beats("m2", 5, 4, 7, 10, 12)], flows=flows(13),
        expert_infos=[remark("flow1", 6, "tcp", "gap")],
    ),
    silent(
        "KAF111", "only what clients send was captured: nobody knows whether the coordinator was there",
        kafka_group_events=[
            row | {"ts_response": None, "error_code": None}
            for row in (*STARTED, *beats("m1", 5, 4, 9, 12), *beats("m2", 5, 4, 7, 10, 12))
        ],
        flows=flows(13),
    ),
    silent(
        "KAF119", "where the last delivery began is not known: it may be beyond the record",
        **_with_last(poisoned(3, "consumer poll timeout has expired."), fetch_offset=None, flow_id="later"),
    ),
]  # fmt: skip
