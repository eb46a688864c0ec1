"""Members of Kafka's groups: who is thrown out, dies, comes too late; and what only looks like it."""

from __future__ import annotations

from typing import Any

from tests.analyser.engine.rules.scenarios.build import Row, assigned, at, commit, fetch, group_event
from tests.analyser.engine.rules.scenarios.build_groups import beats, flows, join, joined
from tests.analyser.engine.rules.scenarios.build_members import (
    PLAN,
    STARTED,
    a_group_each,
    beside_others,
    claimed,
    dealt,
    died,
    fight,
    flapping,
    killed_static,
    late,
    late_again,
    of_member,
    of_one_client,
    of_streams,
    reconfigured,
    refused_requests,
    refused_static,
    restarts,
    rolling,
    two_applications,
)
from tests.analyser.engine.rules.scenarios.scenario import Scenario, fires, silent


def long_poll(member: str, seconds: float, lasts: float, **more: Any) -> Row:
    """A Fetch of a member that the broker held back."""
    own = {"group_id": "billing", "ts_response": at(seconds + lasts), "records_count": 0, "min_bytes": 1}
    return fetch(seconds, 100, member, **{**own, **more})


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
        "KAF110", "warning", "the only consumer of a group joins again by itself, again and again",
        kafka_group_events=reconfigured(8), flows=flows(60),
    ),
    fires(
        "KAF111", "warning", "a member is silent for five of six seconds",
        kafka_group_events=[*STARTED, *beats("m1", 5, 4, 9, 12), *beats("m2", 5, 4, 7, 10, 12)], flows=flows(13),
    ),
    fires(
        "KAF111", "info", "a client of one thread waits for its Fetch for as long",
        kafka_group_events=[*STARTED, *beats("m1", 5, 4, 9, 12), *beats("m2", 5, 4, 7, 10, 12)], flows=flows(13),
        kafka_fetch_partitions=[long_poll("m1", 4.05, 4.8, max_wait_ms=4800)],
    ),
    fires(
        "KAF111", "warning", "its Fetch was answered long before: it stood still",
        kafka_group_events=[*STARTED, *beats("m1", 5, 4, 9, 12), *beats("m2", 5, 4, 7, 10, 12)], flows=flows(13),
        kafka_fetch_partitions=[long_poll("m1", 4.05, 2.0, max_wait_ms=2000)],
    ),
    fires(
        "KAF111", "warning", "another client waited for its Fetch",
        kafka_group_events=[*STARTED, *beats("m1", 5, 4, 9, 12), *beats("m2", 5, 4, 7, 10, 12)], flows=flows(13),
        kafka_fetch_partitions=[long_poll("m2", 4.05, 4.8, max_wait_ms=4800)],
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
        "KAF112", "info", "a client with another assignor is refused until the last of the others has left",
        kafka_group_events=[
            *joined(5, "m1", first=1, last=1), *beats("m1", 5, 4, 7), group_event(8, "leave", "m1"),
            *(join(5 + n, "m3", -1, member_id="", error_code=23, protocols_offered="roundrobin") for n in range(3)),
            join(9, "m3", 6, protocols_offered="roundrobin"), *beats("m3", 6, 12, 15),
        ],
        flows=flows(61, m1=8.1),
    ),
    fires(
        "KAF111", "info", "a member beats every half minute, and its session timeout is not in the capture",
        kafka_group_events=[*beats("m1", 5, 4, 36, 68, 100), *beats("m2", 5, *range(5, 100, 3))], flows=flows(101),
    ),
    fires(
        "KAF132", "warning", "a group id of its own for each start",
        kafka_group_events=a_group_each(6), flows=flows(60),
    ),
    fires(
        "KAF116", "warning", "a process crashes and is started again",
        kafka_group_events=restarts(4), flows=flows(200),
    ),
    fires(
        "KAF116", "warning", "one of three processes of a client id and address crashes again and again",
        kafka_group_events=beside_others(restarts(4), 100), flows=flows(200),
    ),
    fires(
        "KAF116", "warning", "a static member is killed again and again",
        kafka_group_events=killed_static(4), flows=flows(200),
    ),
    fires(
        "KAF128", "warning", "requests alone: two pods claim one name in turn, each while the other lives",
        kafka_group_events=claimed(5), flows=flows(60),
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
        "KAF126", "warning", "a slow member beats on and joins long after it was told to",
        kafka_group_events=late(40, told=10), flows=flows(200),
    ),
    fires(
        "KAF126", "warning", "twice three seconds late, where the others take a tenth of a second",
        kafka_group_events=late_again((0.1, 3.0, 4.0)), flows=flows(200),
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
    silent("KAF132", "four starts", kafka_group_events=a_group_each(4), flows=flows(60)),
    silent("KAF132", "six groups at the same time", kafka_group_events=a_group_each(6, until=12), flows=flows(70)),
    silent("KAF132", "one group, six times", kafka_group_events=a_group_each(6, name="report"), flows=flows(60)),
    silent(
        "KAF132", "the console consumer makes up its name by design",
        kafka_group_events=a_group_each(6, name="console-consumer-{}"), flows=flows(60),
    ),
    silent(
        "KAF110", "a rolling restart of three members, twice over: each sets off two",
        kafka_group_events=rolling(2), flows=flows(200),
    ),
    silent(
        "KAF110", "a rolling restart of three processes of one client id and address, twice over",
        kafka_group_events=of_one_client(rolling(2)), flows=flows(200),
    ),
    silent(
        "KAF110", "a worker of MirrorMaker joins again for each change of its tasks",
        kafka_group_events=reconfigured(8, protocol_type="connect", protocol_name="sessioned", topics=None),
        flows=flows(60),
    ),
    silent("KAF110", "four rebalances", kafka_group_events=flapping(4), flows=flows(200)),
    silent(
        "KAF111", "all members are silent at once: the broker stood still",
        kafka_group_events=[*STARTED, *beats("m1", 5, 4, 9, 12), *beats("m2", 5, 4.1, 9.1, 12)], flows=flows(13),
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
        "KAF116", "three processes of one client id and address are restarted one after the other, and stop in the end",
        kafka_group_events=of_one_client([
            *rolling(1), *(group_event(60 + n, "leave", f"m{n}", member_id=f"m{n}-{n - 1}") for n in (1, 2, 3)),
        ]),
        flows=flows(61),
    ),
    silent(
        "KAF116", "static members are restarted in two deployments",
        kafka_group_events=killed_static(3), flows=flows(200),
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
        "KAF128", "a pod moves to another host, and all that the old one still asks is refused",
        kafka_group_events=[
            *fight(2),
            *beats("m2", 5, 12.5, 13, member_id="m2-0", group_instance_id="pod-0", error_code=82),
            group_event(14, "leave", "m2", member_id="m2-0", group_instance_id="pod-0", error_code=82),
        ],
        flows=flows(61),
    ),
    silent(
        "KAF128", "requests alone: a pod moves to another host while the old one still runs",
        kafka_group_events=claimed(2), flows=flows(60),
    ),
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
    silent(
        "KAF126", "once three seconds late, where the others take a tenth of a second", ("KAF126", "info"),
        kafka_group_events=late_again((0.1, 0.2, 3.0)), flows=flows(200),
    ),
    silent(
        "KAF126", "twice six seconds late, where the others take four: all are busy",
        kafka_group_events=late_again((0.1, 6.0, 6.5), others=4.0), flows=flows(200),
    ),
    silent("KAF126", "a member that takes two seconds", kafka_group_events=late(2), flows=flows(200)),
    silent(
        "KAF126", "a member is late once by some seconds, while it handles what it has", ("KAF126", "info"),
        kafka_group_events=late(9, told=4), flows=flows(200),
    ),
    silent(
        "KAF126", "a static member is stopped for good: it does not leave by design",
        ("KAF126", "info"), ("KAF111", "info"),
        kafka_group_events=of_member(died(6), "m2", group_instance_id="pod-2"), kafka_assignments=PLAN,
        flows=flows(200, m2=4.5),
    ),
    silent(
        "KAF126", "a Kafka Streams member is stopped: it does not leave by design",
        ("KAF126", "info"), ("KAF111", "info"),
        kafka_group_events=of_streams(died(6)), kafka_assignments=PLAN, flows=flows(200, m2=4.5),
    ),
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
