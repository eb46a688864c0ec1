"""Rows of a giant Kafka group and of small ones, over three hours; a member of the giant vanishes.

In: nothing. Out: rows of tables, as datasets take them in before their context is made, with what the context makes.
"""

from __future__ import annotations

from functools import cache

from tests.analyser.engine.rules.scenarios.build import Row, assigned, commit, fetch, flow, group_event

MADE = (
    "kafka_generations", "kafka_ownership", "kafka_clients", "kafka_offset_commits", "kafka_fetch_partitions",
    "kafka_members", "kafka_rebalances", "kafka_fetch_ranges", "kafka_committed", "kafka_lag",
)  # fmt: skip
HOURS, GIANT, OTHERS = 3, 4_000, 400
FLOWS = [flow(f"flow{one}{of}", client_address=f"10.1.0.{one}") for one in (1, 2, 3) for of in ("", "data")]


@cache
def giant_rows() -> dict[str, tuple[Row, ...]]:
    """One group with nine of ten rows, ten others beside it."""
    commits, fetches, events, plans = [], [], [], []
    for number in range(GIANT + OTHERS):
        seconds = number * HOURS * 3600 / (GIANT + OTHERS)
        small = number % 11 == 10
        group, member = (f"small-{number // 11 % 10}", "m3") if small else ("billing", ("m1", "m2")[number % 2])
        if member == "m2" and seconds > 5_000:
            continue
        generation = 5 if seconds < 5_040 else 6
        told = {"group_id": group, "partition": number % 4, "topic": "small" if small else "payments"}
        commits.append(commit(seconds, number, member, generation=generation, **told))
        told.pop("group_id")
        fetches.append(fetch(seconds + 0.1, number, member, next_offset=number + 1, **told))
        if number % 50 == 0 or (small and number // 11 < 10):
            events.append(group_event(seconds, "heartbeat", member, generation=generation, group_id=group))
    for seconds, generation, members in ((-30, 5, ("m1", "m2")), (5_040, 6, ("m1",))):
        for member in members:
            join = {"generation": generation, "session_timeout_ms": 30_000, "protocol_name": "range"}
            events.append(group_event(seconds, "join", member, **join))
        plans += assigned(seconds + 0.5, generation, {member: [0, 1] for member in members})
    rows = {"kafka_offset_commits": commits, "kafka_fetch_partitions": fetches, "kafka_group_events": events,
            "kafka_assignments": plans, "flows": FLOWS}  # fmt: skip
    return {name: tuple(held) for name, held in rows.items()}
