"""One scenario per rule that gives exactly its code."""

from __future__ import annotations

from tests.analyser.engine.rules.scenarios.build import (
    assigned,
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
from tests.analyser.engine.rules.scenarios.scenario import Scenario, fires

UNDECODED = "API key 97 is not known"

FIRES: list[Scenario] = [
    fires(
        "KAF307", "warning", "a proxy changes a byte of a batch on its way to a consumer",
        kafka_fetch_partitions=[
            fetch(n, 500, crc_ok=n > 2, file="a.pcapng", response_packet=n, response_message_id=f"flow1-s{n}")
            for n in range(1, 6)
        ],
    ),
    fires(
        "CAP101", "warning", "one flow of two has gaps",
        flows=[flow("a", gap_bytes=2920), flow("b")],
        expert_infos=[remark("a", 1, "tcp", "gap"), remark("a", 2, "tcp", "gap")],
    ),
    fires(
        "CAP101", "warning", "one gap whose bytes the server ACKed, and one that never arrived",
        flows=[flow("a", gap_bytes=2920, acked_by_server=4000)],
        expert_infos=[
            remark("a", 1, "tcp", "gap", direction="client_to_server", span="1000-2459"),
            remark("a", 2, "tcp", "gap", direction="client_to_server", span="4000-5459"),
        ],
    ),
    fires(
        "CAP101", "warning", "no ACK was captured: nobody knows what arrived",
        flows=[flow("a", gap_bytes=1460, acked_by_server=None)],
        expert_infos=[remark("a", 2, "tcp", "gap", direction="client_to_server", span="4000-5459")],
    ),
    fires(
        "CAP102", "warning", "requests without any byte of the server",
        flows=[flow("a", bytes_to_client=0, handshake_seen=False), flow("b")],
        messages=[message("a", 1), message("a", 2), message("b", 3)],
    ),
    fires(
        "CAP107", "info", "an API key of the future",
        messages=[message("a", n, operation="Key 97", version="0", error=UNDECODED) for n in (1, 2, 3)],
        expert_infos=[remark("a", 1, "undecoded", "unknown_api_key", UNDECODED)],
    ),
    fires(
        "KAF101", "critical", "two members of one generation in turn, offsets rise all the same",
        kafka_offset_commits=[commit(n, 1000 + n, "m1" if n % 2 else "m2") for n in range(8)],
    ),
    fires(
        "KAF101", "critical", "KIP-848: the older epoch is accepted after the newer one",
        kafka_offset_commits=[
            commit(1, 1000, "m1", generation=6), commit(2, 1001, "m2", generation=7),
            commit(3, 1002, "m1", generation=6), commit(4, 1003, "m2", generation=7),
        ],
    ),
    fires(
        "KAF101", "warning", "two simple consumers with one group id",
        kafka_offset_commits=[
            simple_commit(n, 1000 + n, client_address=f"10.1.0.{n % 2}", flow_id=f"f{n % 2}") for n in range(6)
        ],
    ),
    fires(
        "KAF101", "info", "one hand-over, nothing known about assignments",
        kafka_offset_commits=[commit(1, 10, "m1"), commit(2, 20, "m1"), commit(9, 30, "m2", generation=6)],
    ),
    fires(
        "KAF102", "warning", "fetches go on, the commit does not",
        kafka_offset_commits=[commit(n * 5, 500) for n in range(8)],
        kafka_fetch_partitions=[read(n * 5 - 1, 500 + n * 100, 600 + n * 100) for n in range(8)],
    ),
    fires(
        "KAF103", "critical", "one member, older offsets after newer ones, twice",
        kafka_offset_commits=[commit(n, o) for n, o in enumerate([1000, 1010, 1005, 1020, 1015, 1030])],
        kafka_fetch_partitions=[fetch(n + 0.5, 1100 + n) for n in range(6)],
    ),
    fires(
        "KAF103", "warning", "one member, one step back",
        kafka_offset_commits=[commit(1, 1000), commit(2, 990), commit(3, 1010)],
    ),
    fires(
        "KAF103", "info", "a seek: the lower offset is fetched before it is committed",
        kafka_offset_commits=[commit(1, 1000), commit(9, 400)],
        kafka_fetch_partitions=[read(0, 990, 1000), read(5, 300, 400)],
    ),
    fires(
        "KAF103", "info", "a seek: OffsetFetch told the lower offset, fetches are not in the capture",
        kafka_offset_commits=[commit(1, 1000), commit(9, 400)],
        kafka_offset_fetches=[stored(5, 390)],
    ),
    fires(
        "KAF103", "info", "an aborted transaction starts again",
        kafka_offset_commits=[commit(1, 1000, api="TxnOffsetCommit"), commit(2, 900, api="TxnOffsetCommit")],
    ),
    fires(
        "KAF104", "critical", "a member commits what the plan gives to another",
        kafka_assignments=assigned(0, 5, {"m1": [0], "m2": [1]}),
        kafka_offset_commits=[commit(1, 100, "m2"), commit(2, 110, "m2")],
    ),
    fires(
        "KAF104", "warning", "no plan in the capture: another member fetches the partition",
        kafka_fetch_partitions=[fetch(n / 2, 1000 + n) for n in range(10)],
        kafka_offset_commits=[commit(2, 100, "m2"), commit(3, 110, "m2"), commit(3.5, 7, "m1", partition=4)],
    ),
    fires(
        "KAF105", "warning", "a zombie keeps its old generation",
        kafka_offset_commits=[commit(n, 100 + n, generation=4, error_code=22) for n in range(3)],
    ),
    fires(
        "KAF105", "info", "one commit is fenced after a rebalance",
        kafka_offset_commits=[commit(1, 100, generation=4, error_code=22), commit(2, 100, partition=1)],
    ),
    fires(
        "KAF105", "warning", "113 at one partition of three requests",
        kafka_offset_commits=[
            row for n in range(3) for row in (
                commit(n, 100 + n, error_code=113), commit(n, 100 + n, partition=1),
            )
        ],
    ),
    fires(
        "KAF106", "warning", "a simple consumer is refused while the group has members",
        kafka_offset_commits=[simple_commit(1, 100, error_code=25)],
    ),
    fires(
        "KAF106", "warning", "a simple consumer commits whenever the group is empty",
        kafka_offset_commits=[simple_commit(n, 100 + n) for n in range(4)],
        kafka_group_events=[group_event(60, "join", "m1", generation=1)],
    ),
    fires(
        "KAF106", "info", "an admin tool resets once, a member comes later",
        kafka_offset_commits=[simple_commit(1, 100, partition=p) for p in range(3)],
        kafka_group_events=[group_event(60, "heartbeat", "m1")],
    ),
    fires(
        "KAF118", "warning", "no right to commit to the group",
        kafka_offset_commits=[commit(n, 100, error_code=30, partition=n) for n in range(3)],
    ),
    fires(
        "KAF118", "info", "several coordinator errors before it works",
        kafka_offset_commits=[*(commit(n, 100, error_code=16) for n in range(3)), commit(5, 100)],
    ),
    fires(
        "KAF118", "warning", "the coordinator never comes back",
        kafka_offset_commits=[commit(n, 100, error_code=15) for n in range(2)],
    ),
]  # fmt: skip
