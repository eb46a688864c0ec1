"""Members of Kafka's groups: who is thrown out, dies, comes too late; and what only looks like it."""

from __future__ import annotations

from typing import Any

from tests.analyser.detectors.scenarios.build import Row, assigned, commit, exchange, group_event, remark
from tests.analyser.detectors.scenarios.build_groups import beat, beats, flows, join, joined, sync
from tests.analyser.detectors.scenarios.scenario import Scenario, fires, silent

STARTED = joined(5, "m1", "m2", first=1, last=1.5)
PLAN = assigned(1.51, 5, {"m1": [0], "m2": [1]})


def died(timeout: float) -> list[Row]:
    """m2 is silent from 4.0 on, and the group goes on without it when its session has timed out."""
    end = 4 + timeout
    return [
        *STARTED, *beats("m2", 5, 4), *beats("m1", 5, 4, end, error_code=0),
        *beats("m1", 5, end + 1, error_code=27), *joined(6, "m1", first=end + 1.01, last=end + 1.01),
        *beats("m1", 6, end + 4, 190),
    ]  # fmt: skip


def late(by: float) -> list[Row]:
    """m3 joins, m1 follows at once, m2 had been told at 21.0 and comes so many seconds later."""
    last = 21 + by
    return [
        *STARTED, *beats("m1", 5, 4, 20), *beats("m2", 5, 4, 20), join(20.5, "m3", 6, waits=last - 20.498),
        *beats("m1", 5, 21, error_code=27), join(21.01, "m1", 6, waits=last - 21.008),
        *beats("m2", 5, 21, error_code=27), join(last, "m2", 6), *beats("m2", 6, last + 3),
    ]  # fmt: skip


def fight(rounds: int, second: str = "m2") -> list[Row]:
    """m1's client and another take one static name from each other: each that joins has the other fenced."""
    rows = []
    for n in range(rounds):
        owner, other = ("m1", second) if n % 2 else (second, "m1")
        rows += [
            join(10 * n + 1, owner, 5, member_id=f"{owner}-{n}", group_instance_id="pod-0"),
            *beats(owner, 5, 10 * n + 5, member_id=f"{owner}-{n}", group_instance_id="pod-0"),
        ]
        if n:
            rows += beats(other, 5, 10 * n + 2, member_id=f"{other}-{n - 1}", group_instance_id="pod-0", error_code=82)
    return rows


def refused_static(times: int, alive: float) -> list[Row]:
    """KIP-848: m2 is refused the name of m1, which beats for so many seconds."""
    name = {"group_instance_id": "pod-0"}
    held = [beat(n, 3, **name) for n in range(1, round(alive), 4)]
    tries = [beat(10 + n, 0, "m2", member_id=f"m2-{n}", error_code=111, **name) for n in range(times)]
    return [*held, *tries]


def restarts(times: int, member: str = "m1", every: float = 20, **more: Any) -> list[Row]:
    """A client that joins, leaves and joins again under a new member id."""
    return [
        row
        for n in range(times)
        for row in (
            join(every * n + 1, member, 2 * n + 1, member_id=f"{member}-{n}", **more),
            *beats(member, 2 * n + 1, every * n + 5, member_id=f"{member}-{n}"),
            group_event(every * n + 8, "leave", member, member_id=f"{member}-{n}", reason=more.get("reason")),
        )
    ]


def two_applications(first: str, second: str, until: float = 60) -> list[Row]:
    """m1 and m2 in one group with these topics."""
    return [
        *joined(5, "m1", first=1, last=1, topics=first), *beats("m1", 5, 4),
        join(10, "m1", 6, topics=first), join(9.9, "m2", 6, topics=second),
        *beats("m1", 6, 14, until), *beats("m2", 6, 14, until),
    ]  # fmt: skip


def flapping(times: int, every: float = 20, lasts: float = 0.5) -> list[Row]:
    """m2 joins again by itself so many times, and m1 has to follow; each rebalance takes `lasts` seconds."""
    rows = [*STARTED]
    for n in range(times):
        start, generation = 20 + every * n, 6 + n
        rows += [
            join(start, "m2", generation, waits=lasts),
            *beats("m1", generation - 1, start + 0.1, error_code=27),
            join(start + lasts - 0.002, "m1", generation),
            sync(start + lasts, "m2", generation),
            sync(start + lasts, "m1", generation),
        ]
    return [*rows, *beats("m1", 5 + times, 20 + every * times)]


def refused_requests(operation: str, code: int, name: str, times: int = 5, **more: Any) -> list[Row]:
    """A consumer that starts and is refused at one step."""
    client = {"cluster_id": "c1", "client_id": "billing-1", "client_address": "10.1.0.1", "protocol": "kafka"}
    first = [exchange("flow1", 1 + n / 10, one, **client) for n, one in enumerate(("Metadata", "FindCoordinator"))]
    error = {"status": "error", "error_code": code, "error_name": name}
    return [
        *first,
        *(exchange("flow1", 2 + 2 * n, operation, **client, **error) for n in range(times)),
        *(exchange("flow1", 40, one, **client) for one in more.get("then", ())),
    ]


def rolling(rounds: int) -> list[Row]:
    """m1, m2 and m3 are restarted one after the other, and each time the others follow into two generations."""
    ids = {"m1": "m1", "m2": "m2", "m3": "m3"}
    rows = [
        row for member in ids for row in (join(1, member, 5), sync(1.1, member, 5), *beats(member, 5, *range(4, 20, 3)))
    ]
    for n, member in enumerate([*ids] * rounds):
        start, generation = 20 + 10 * n, 6 + 2 * n
        left, ids[member] = ids[member], f"{member}-{n}"
        rows += [
            group_event(start, "leave", member, member_id=left),
            join(start + 4, member, generation + 1, waits=1, member_id=ids[member]),
        ]
        for stays in (one for one in ids if one != member):
            rows += [
                *beats(stays, generation - 1, start + 0.5, member_id=ids[stays], error_code=27),
                join(start + 1, stays, generation, member_id=ids[stays]),
                *beats(stays, generation, start + 4.5, member_id=ids[stays], error_code=27),
                join(start + 4.99, stays, generation + 1, member_id=ids[stays]),
            ]
        for one, member_id in ids.items():
            rows += beats(one, generation + 1, start + 7, start + 9, member_id=member_id)
    return rows


def dealt(plan: dict[str, list[int]], assignor: str, *later: Row) -> dict[str, list[Row]]:
    """m1 and m2 with one subscription, and the leader's plan."""
    return {
        "kafka_group_events": [
            *joined(5, "m1", "m2", first=1, last=1.5, protocol_name=assignor), *beats("m1", 5, 10, 30),
            *beats("m2", 5, 10, 30), *later,
        ],
        "kafka_assignments": assigned(1.52, 5, plan),
        "flows": flows(31),
    }  # fmt: skip


KAFKA_GROUPS_FIRES: list[Scenario] = [
    fires(
        "KAF110", "warning", "a member joins again by itself, again and again",
        kafka_group_events=flapping(6), flows=flows(200),
    ),
    fires(
        "KAF110", "critical", "the group hardly does anything else",
        kafka_group_events=flapping(6, every=4, lasts=3), flows=flows(200),
    ),
    fires(
        "KAF111", "warning", "a member is silent for five of six seconds",
        kafka_group_events=[*STARTED, *beats("m1", 5, 4, 9, 12), *beats("m2", 5, 4, 7, 10, 12)], flows=flows(13),
    ),
    fires(
        "KAF111", "warning", "a frozen member comes back after its session",
        kafka_group_events=[*died(6), *beats("m2", 5, 15, error_code=25)], flows=flows(200),
    ),
    fires(
        "KAF111", "critical", "a member is gone for more than a minute", kafka_group_events=died(90), flows=flows(200),
    ),
    fires(
        "KAF115", "warning", "one member has all partitions",
        **dealt({"m1": [0, 1, 2, 3], "m2": []}, "range"),
    ),
    fires(
        "KAF115", "warning", "a sticky assignor that is two apart",
        **dealt({"m1": [0, 1, 2, 3], "m2": [4, 5]}, "cooperative-sticky"),
    ),
    fires(
        "KAF117", "warning", "no right to the group",
        exchanges=refused_requests("JoinGroup", 30, "GROUP_AUTHORIZATION_FAILED"),
    ),
    fires(
        "KAF112", "warning", "two applications with other topics use one group id",
        kafka_group_events=two_applications("payments", "refunds,returns"), flows=flows(61),
    ),
    fires(
        "KAF112", "warning", "a client with another assignor is refused",
        kafka_group_events=[
            *STARTED,
            *(join(5 + n, "m3", -1, error_code=23, protocols_offered="roundrobin") for n in range(3)),
        ],
        flows=flows(61),
    ),
    fires(
        "KAF116", "warning", "a process crashes and is started again",
        kafka_group_events=restarts(4), flows=flows(200),
    ),
    fires(
        "KAF128", "warning", "two pods with one static name",
        kafka_group_events=fight(3), flows=flows(61),
    ),
    fires(
        "KAF128", "critical", "two pods with one static name, again and again",
        kafka_group_events=fight(7), flows=flows(80),
    ),
    fires(
        "KAF128", "warning", "KIP-848: a second pod is refused while the first one beats",
        kafka_group_events=refused_static(3, 30), flows=flows(35),
    ),
    fires(
        "KAF126", "warning", "a killed member's session times out",
        kafka_group_events=died(6), kafka_assignments=PLAN, flows=flows(200, m2=4.5),
    ),
    fires(
        "KAF126", "critical", "a frozen member holds its partitions for more than a minute",
        kafka_group_events=died(90), kafka_assignments=PLAN, flows=flows(200),
    ),
    fires(
        "KAF126", "warning", "a frozen member comes back and is told that it is none any more",
        kafka_group_events=[*died(6), *beats("m2", 5, 15, error_code=25)], kafka_assignments=PLAN, flows=flows(200),
    ),
    fires(
        "KAF126", "warning", "a slow member joins again long after it was told to",
        kafka_group_events=late(9), flows=flows(200),
    ),
    fires(
        "KAF105", "warning", "thrown out again and again, each time under a new member id",
        kafka_offset_commits=[
            commit(n * 60, 100, "m1", member_id=f"m1-{n}", generation=n, error_code=25) for n in range(3)
        ],
        kafka_group_events=[
            group_event(n * 60 + 1, "join", "m1", member_id=f"m1-{n + 1}", generation=n + 1) for n in range(3)
        ],
    ),
]  # fmt: skip

KAFKA_GROUPS_NEAR_MISSES: list[Scenario] = [
    silent(
        "KAF110", "a rolling restart of three members, twice over: each sets off two",
        kafka_group_events=rolling(2), flows=flows(200),
    ),
    silent("KAF110", "four rebalances", kafka_group_events=flapping(4), flows=flows(200)),
    silent(
        "KAF111", "all members are silent at once: the broker stood still",
        kafka_group_events=[*STARTED, *beats("m1", 5, 4, 9, 12), *beats("m2", 5, 4.1, 9.1, 12)], flows=flows(13),
    ),
    silent(
        "KAF111", "bytes of the member are missing",
        kafka_group_events=[*STARTED, *beats("m1", 5, 4, 9, 12), *beats("m2", 5, 4, 7, 10, 12)], flows=flows(13),
        expert_infos=[remark("flow1", 6, "tcp", "gap")],
    ),
    silent(
        "KAF111", "a member that leaves",
        kafka_group_events=[*STARTED, *beats("m1", 5, 4, 7, 10, 13), group_event(5, "leave", "m2")], flows=flows(30),
    ),
    silent("KAF115", "range with a remainder", **dealt({"m1": [0, 1, 2, 3], "m2": [4, 5]}, "range")),
    silent(
        "KAF115", "the first step of a cooperative rebalance, whose second one was not captured",
        **dealt({"m1": [0, 1], "m2": []}, "cooperative-sticky", *beats("m1", 6, 20), *beats("m2", 6, 20)),
    ),
    silent("KAF115", "an assignor of their own", **dealt({"m1": [0, 1, 2, 3], "m2": []}, "by-load")),
    silent("KAF115", "one partition for two members", **dealt({"m1": [0], "m2": []}, "cooperative-sticky")),
    silent(
        "KAF117", "no coordinator at first",
        exchanges=refused_requests("OffsetFetch", 14, "COORDINATOR_LOAD_IN_PROGRESS", then=("OffsetFetch", "Fetch")),
    ),
    silent(
        "KAF117", "the broker gives a member its id", exchanges=refused_requests("JoinGroup", 79, "MEMBER_ID_REQUIRED"),
    ),
    silent(
        "KAF117", "two refusals", exchanges=refused_requests("JoinGroup", 30, "GROUP_AUTHORIZATION_FAILED", times=2),
    ),
    silent(
        "KAF112", "a release that reads one topic more is rolled out",
        kafka_group_events=two_applications("payments", "payments,refunds"), flows=flows(61),
    ),
    silent(
        "KAF112", "a group that changes to another topic, one after the other",
        kafka_group_events=[
            *joined(5, "m1", first=1, last=1, topics="payments"), group_event(9, "leave", "m1"),
            *joined(7, "m2", first=20, last=20, topics="refunds"), *beats("m2", 7, 40),
        ],
        flows=flows(41, m1=9.1),
    ),
    silent(
        "KAF116", "two restarts", kafka_group_events=[*restarts(2), join(45, "m1", 5, member_id="m1-9")],
        flows=flows(61),
    ),
    silent(
        "KAF116", "each of three clients of a rolling restart leaves and comes back",
        kafka_group_events=[row for member in ("m1", "m2", "m3") for row in restarts(2, member)], flows=flows(61),
    ),
    silent(
        "KAF116", "three consumers of one process leave together, and come back together",
        kafka_group_events=[
            row for n in range(3) for row in (
                join(1 + n / 10, "m1", 1, member_id=f"a{n}"), group_event(20 + n, "leave", "m1", member_id=f"a{n}"),
                join(30 + n / 10, "m1", 3, member_id=f"b{n}"),
            )
        ],
        flows=flows(61),
    ),
    silent("KAF128", "a pod moves to another host and the old one is fenced once",
           kafka_group_events=fight(2), flows=flows(61)),
    silent(
        "KAF128", "KIP-848: a restarted pod is refused until the session of the dead one is over",
        kafka_group_events=refused_static(5, 6), flows=flows(35),
    ),
    silent(
        "KAF126", "a member leaves in order",
        kafka_group_events=[
            *STARTED, *beats("m2", 5, 4), group_event(8, "leave", "m2"), *beats("m1", 5, 9, error_code=27),
            *joined(6, "m1", first=9.1, last=9.1),
        ],
        flows=flows(200, m2=8.1),
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
        "KAF126", "silent at the end of the capture, and nothing came after",
        kafka_group_events=[*STARTED, *beats("m2", 5, 4), *beats("m1", 5, 4, 30)], flows=flows(31),
    ),
    silent(
        "KAF126", "two hosts are silent at once, and both come back: the broker stood still",
        kafka_group_events=[
            *joined(5, "m1", "m2", "m3", first=1, last=1.5), *beats("m2", 5, 4), *beats("m3", 5, 4.5),
            *beats("m2", 5, 20, error_code=25), *beats("m3", 5, 20, error_code=25), *beats("m1", 5, 4, 7, 10),
            *joined(6, "m1", first=12, last=12), *beats("m1", 6, 15, 18, 21),
        ],
        flows=flows(22),
    ),
    silent("KAF126", "a member that takes two seconds", kafka_group_events=late(2), flows=flows(200)),
    silent(
        "KAF126", "a static member is back before its session times out",
        kafka_group_events=[
            *joined(5, "m1", "m2", first=1, last=1.5, group_instance_id="pod-0")[2:],
            join(5, "m3", 5, group_instance_id="pod-0"), *beats("m3", 5, 9, 60, group_instance_id="pod-0"),
        ],
        flows=flows(61),
    ),
    silent(
        "KAF105", "who joins again has a new member id and stores the refused offset",
        kafka_offset_commits=[
            row for n in range(4) for row in (
                commit(n * 60, 100 + n, "m1", member_id=f"m1-{n}", generation=n, error_code=22),
                commit(n * 60 + 5, 100 + n, "m1", member_id=f"m1-{n + 1}", generation=n + 1),
            )
        ],
    ),
    silent(
        "KAF101", "the group was deleted and begins again at generation 1",
        kafka_assignments=[
            *assigned(0, 5, {"m1": [0], "m2": []}), *assigned(10, 6, {"m1": [], "m2": [0]}),
            *assigned(20, 1, {"m1": [0]}),
        ],
        kafka_offset_commits=[commit(1, 10), commit(11, 20, "m2", generation=6), commit(21, 30, generation=1)],
    ),
    silent(
        "KAF105", "one commit of 25 right after a restart",
        kafka_offset_commits=[commit(10, 100, error_code=25)],
        kafka_group_events=[group_event(9.5, "leave", "m1"), group_event(15, "join", "m1", member_id="m1-2")],
    ),
    silent(
        "KAF105", "one commit of 27 while it joins again, and the partition goes to another",
        kafka_offset_commits=[commit(10, 100, error_code=27), commit(15, 100, "m2", generation=6)],
        kafka_group_events=[group_event(10.1, "join", "m1", generation=6)],
    ),
    silent(
        "KAF105", "a burst that was under way when the session timed out is one refusal",
        ("KAF105", "info"),
        kafka_offset_commits=[
            commit(10 + n / 1000, 100 + n, error_code=25, ts_response=commit(11, 0)["ts_response"]) for n in range(9)
        ],
    ),
]  # fmt: skip
