"""Scenarios of static members that start again, with the name that they had or with another one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.analyser.engine.rules.scenarios.build import Row, assigned, at, flow, group_event
from tests.analyser.engine.rules.scenarios.build_groups import beats, join, sync
from tests.analyser.engine.rules.scenarios.scenario import Scenario, fires, silent


def renamed(names: Sequence[str], *, leaves: bool = False, client: str | None = None) -> dict[str, list[Row]]:
    """m2 starts with each of these names in turn and falls silent; its JoinGroup waits until the session of the one
    before is over. leaves: it leaves instead. client: its client id, with the name in it."""
    events: list[Row] = []
    plan: list[Row] = []
    ends = [flow("flow1", ts_last=at(60))]
    for n, name in enumerate(names):
        begins, generation = 1 + 6.0 * n, 5 + n
        first = group_event(0, "join", "m2")
        own: dict[str, Any] = {"member_id": f"m2-{n}", "group_instance_id": name, "flow_id": f"life{n}",
                               "client_id": client.format(name) if client else first["client_id"]}  # fmt: skip
        events += [
            join(begins, "m2", generation, waits=3.02, **own),
            *(beats("m1", generation - 1, begins + 2.9, error_code=27) if n else []),
            join(begins + 3, "m1", generation, waits=0.02),
            sync(begins + 3.03, "m1", generation), sync(begins + 3.03, "m2", generation, **own),
            *beats("m1", generation, begins + 4, begins + 5), *beats("m2", generation, begins + 4, **own),
            *([group_event(begins + 4.2, "leave", "m2", **own)] if leaves else []),
        ]  # fmt: skip
        plan += assigned(begins + 3.031, generation, {"m1": [0], f"m2-{n}": [1]})
        ends.append(flow(f"life{n}", client_address=first["client_address"], closed_by="client",
                         ts_last=at(begins + 4.3), ts_closed=at(begins + 4.3)))  # fmt: skip
    return {"kafka_group_events": events, "kafka_assignments": plan, "flows": ends}


STATIC_FIRES: list[Scenario] = [
    fires("KAF138", "warning", "another name at each start", **renamed(["w-3f2", "w-a81", "w-77c"])),
    fires("KAF138", "warning", "client ids that have the name in them",
          **renamed(["w-3f2", "w-a81", "w-77c"], client="consumer-billing-{}")),
    fires("KAF138", "info", "another name once", **renamed(["w-0", "billing-0"])),
]  # fmt: skip
STATIC_NEAR_MISSES: list[Scenario] = [
    silent("KAF138", "the same name at each start", **renamed(["w-0"] * 3)),
    silent("KAF138", "two names in turn", ("KAF111", "info"), ("KAF126", "info"),
           **renamed(["w-0", "w-1", "w-0", "w-1"])),
    silent("KAF138", "it leaves before it starts again", **renamed(["w-3f2", "w-a81", "w-77c"], leaves=True)),
]  # fmt: skip
