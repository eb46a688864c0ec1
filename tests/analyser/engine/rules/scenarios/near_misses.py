"""What healthy clients do, and looks like a fault: each rule must stay silent."""

from __future__ import annotations

from tests.analyser.engine.rules.scenarios.build import (
    ANSWER,
    assigned,
    at,
    commit,
    fetch,
    flow,
    group_event,
    message,
    remark,
    simple_commit,
    stored,
)
from tests.analyser.engine.rules.scenarios.build_offsets import read
from tests.analyser.engine.rules.scenarios.scenario import Scenario, silent

NEAR_MISSES: list[Scenario] = [
    silent(
        "KAF307", "records that cannot be read have a right checksum",
        kafka_fetch_partitions=[fetch(1, 500, crc_ok=True), fetch(2, 500, crc_ok=None)],
        expert_infos=[
            remark("a", 1, "malformed", "unreadable_records", "records of payments-0, zstd: damaged data"),
            remark("a", 2, "limit", "decompression_limit", "records of payments-0, zstd: too much"),
        ],
    ),
    silent(
        "CAP101", "retransmissions, disorder and a damaged frame are no gap",
        flows=[flow("a", retransmitted_segments=20, out_of_order_segments=9)],
        expert_infos=[remark("a", 1, "malformed", "malformed_message")],
    ),
    silent(
        "CAP101", "the last segments were lost on the way, and the server never ACKed them",
        flows=[flow("a", gap_bytes=1460, acked_by_server=4000), flow("b", gap_bytes=1460, acked_by_client=200)],
        expert_infos=[
            remark("a", 2, "tcp", "gap", direction="client_to_server", span="4000-5459"),
            remark("b", 2, "tcp", "gap", direction="server_to_client", span="200-1659"),
        ],
    ),
    silent(
        "CAP102", "the server was captured and had nothing to say",
        flows=[flow("a", protocol="mqtt", bytes_to_client=0, handshake_seen=True)],
        messages=[message("a", 1, protocol="mqtt")],
    ),
    silent(
        "CAP102", "a QoS 0 publisher in the middle, whose bytes the server ACKs",
        flows=[
            flow("a", protocol="mqtt", bytes_to_client=0, handshake_seen=False, acked_by_server=900,
                 ts_last_from_server=at(9)),
        ],
        messages=[message("a", 1, protocol="mqtt")],
    ),
    silent(
        "CAP102", "a subscriber in the middle that only ACKs",
        flows=[
            flow("a", protocol="mqtt", bytes_to_server=0, handshake_seen=False, acked_by_client=900,
                 ts_last_from_client=at(9)),
        ],
        messages=[message("a", 1, protocol="mqtt")],
    ),
    silent(
        "CAP107", "a damaged message is not an undecoded one",
        messages=[message("a", 1, error="array length 900000000 is more than the bytes left")],
        expert_infos=[remark("a", 1, "malformed", "malformed_message", "Fetch v17 request: damaged")],
    ),
    silent(
        "KAF101", "a rebalance that the plan explains, with the old owner's last commit in the preparing phase",
        kafka_assignments=[
            *assigned(0, 5, {"m1": [0], "m2": []}, "sync_leader"), *assigned(10, 6, {"m1": [], "m2": [0]}),
            *assigned(20, 7, {"m1": [0], "m2": []}),
        ],
        kafka_group_events=[
            group_event(9.9, "join", "m1", generation=6), group_event(19.9, "join", "m1", generation=7),
        ],
        kafka_offset_commits=[
            commit(1, 10), commit(9, 20), commit(11, 20, "m2", generation=6), commit(19, 30, "m2", generation=6),
            commit(21, 30, generation=7), commit(25, 40, generation=7),
        ],
    ),
    silent(
        "KAF101", "KIP-848: epochs rise, the partition moves once it is given up",
        kafka_assignments=[
            *assigned(0, 5, {"m1": [0, 1]}, "consumer_heartbeat"), *assigned(8, 5, {"m1": [1]}, "consumer_heartbeat"),
            *assigned(9, 6, {"m2": [0]}, "consumer_heartbeat"),
        ],
        kafka_offset_commits=[commit(1, 10), commit(8.1, 20), commit(10, 25, "m2", generation=6)],
    ),
    silent(
        "KAF101", "the same group, topic and partition in two clusters",
        kafka_offset_commits=[
            commit(n, 1000 + n, "m1" if n % 2 else "m2", cluster_id="c1" if n % 2 else "c2") for n in range(8)
        ],
    ),
    silent(
        "KAF101", "rows of an unknown cluster are no part of a known one",
        kafka_offset_commits=[
            commit(n, 1000 + n, "m1" if n % 2 else "m2", cluster_id="c1" if n % 2 else None) for n in range(8)
        ],
    ),
    silent(
        "KAF101", "topic ids without names are different topics",
        kafka_offset_commits=[
            commit(n, 1000 - n, "m1" if n % 2 else "m2", topic=None, topic_id=f"id{n % 2}") for n in range(2)
        ],
    ),
    silent(
        "KAF102", "automatic commits of a position at which nothing is fetched",
        kafka_offset_commits=[commit(n * 5, 500) for n in range(50)],
        kafka_fetch_partitions=[fetch(n / 2, 500, high_watermark=500) for n in range(500)],
    ),
    silent(
        "KAF102", "a control record is the last offset of the log",
        kafka_offset_commits=[commit(n * 5, 500) for n in range(20)],
        kafka_fetch_partitions=[fetch(n, 500 if n < 3 else 501, high_watermark=501) for n in range(100)],
    ),
    silent(
        "KAF102", "a slow worker waits on what was prefetched",
        kafka_offset_commits=[commit(n * 5, 500) for n in range(20)],
        kafka_fetch_partitions=[read(-2, 500, 1000), read(-1, 1000, 1500)],
    ),
    silent(
        "KAF102", "a value for two seconds, while it works through what it fetched",
        kafka_offset_commits=[
            *(commit(20 + n * 0.3, 500) for n in range(8)), *(commit(23 + n, 500 + n * 10) for n in range(1, 10)),
        ],
        kafka_fetch_partitions=[read(19.9 + n * 0.3, 500 + n * 10, 510 + n * 10) for n in range(8)],
    ),
    silent(
        "KAF102", "idle after another owner: its offsets are older, not ahead",
        ("KAF101", "info"),
        kafka_offset_commits=[commit(1, 400, "m2", generation=4), *(commit(5 + n, 500) for n in range(20))],
    ),
    silent(
        "KAF102", "a replay in a loop: every return is a seek",
        ("KAF103", "info"),
        kafka_offset_commits=[
            row for n in range(8) for row in (commit(n * 10 + 2, 500), commit(n * 10 + 6, 1000))
        ],
        kafka_fetch_partitions=[
            row for n in range(8) for row in (read(n * 10 + 1, 400, 500), read(n * 10 + 4, 500, 1000))
        ],
    ),
    silent(
        "KAF103", "two connections race: nobody knows which commit was stored last",
        ("KAF101", "info"),
        kafka_offset_commits=[
            commit(1, 1000, "m1", ts_response=at(1) + 50 * ANSWER),
            commit(1.01, 990, "m2", generation=6, ts_response=at(1) + 51 * ANSWER),
        ],
    ),
    silent(
        "KAF103", "a rejected lower offset, an unanswered one, one that is stored again after error 14",
        kafka_offset_commits=[
            commit(1, 1000), commit(2, 900, error_code=14), commit(3, 800, error_code=None, ts_response=None),
            commit(4, 1000), commit(5, 1000),
        ],
    ),
    silent(
        "KAF103", "an admin tool sets offsets back while the group is empty",
        ("KAF103", "info"), ("KAF106", "info"), ("KAF101", "info"),
        kafka_offset_commits=[commit(1, 1000), simple_commit(50, 10), commit(90, 20, "m2", generation=7)],
        kafka_offset_fetches=[stored(80, 10, "m2")],
    ),
    silent(
        "KAF103", "another group reads the same partition from further behind",
        kafka_offset_commits=[commit(1, 1000), commit(2, 10, group_id="audit"), commit(3, 1010)],
    ),
    silent(
        "KAF104", "cooperative rebalance: the partition is given up, nobody has it yet",
        kafka_assignments=[
            *assigned(0, 5, {"m1": [0, 1]}), *assigned(10, 6, {"m1": [1], "m2": []}),
            *assigned(12, 7, {"m1": [1], "m2": [0]}),
        ],
        kafka_offset_commits=[commit(11, 100, generation=6), commit(13, 100, "m2", generation=7)],
    ),
    silent(
        "KAF104", "two members behind one address and client id: fetches do not tell who owns",
        kafka_fetch_partitions=[fetch(n / 2, 1000 + n) for n in range(10)],
        kafka_offset_commits=[
            commit(2, 100, "m2", client_address="10.1.0.1", client_id="billing-1"), commit(3.5, 7, "m1", partition=4),
        ],
    ),
    silent(
        "KAF105", "27 while the group rebalances, then accepted",
        kafka_offset_commits=[
            *(commit(1 + n / 10, 100, error_code=27) for n in range(6)), commit(4, 100, generation=6),
        ],
    ),
    silent(
        "KAF105", "KIP-848: one stale epoch per rebalance, retried with success",
        ("KAF105", "info"),
        kafka_offset_commits=[
            row for n in range(6) for row in (
                commit(n * 10, 100 + n, generation=n, error_code=113), commit(n * 10 + 1, 100 + n, generation=n + 1),
            )
        ],
    ),
    silent(
        "KAF106", "a group of simple consumers only",
        kafka_offset_commits=[simple_commit(n, 100 + n) for n in range(10)],
    ),
    silent(
        "KAF106", "a transactional producer of an old version has no member data",
        kafka_offset_commits=[simple_commit(n, 100 + n, api="TxnOffsetCommit", producer_id=7) for n in range(4)],
        kafka_group_events=[group_event(1, "heartbeat", "m1")],
    ),
    silent(
        "KAF118", "one commit meets a loading coordinator and is retried",
        kafka_offset_commits=[commit(1, 100, error_code=14), commit(2, 100)],
    ),
]  # fmt: skip
