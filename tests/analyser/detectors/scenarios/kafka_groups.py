"""Members of Kafka's groups: who is thrown out, dies, comes too late; and what only looks like it."""

from __future__ import annotations

from tests.analyser.detectors.scenarios.build import assigned, commit, group_event
from tests.analyser.detectors.scenarios.scenario import Scenario, fires, silent

KAFKA_GROUPS_FIRES: list[Scenario] = [
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
