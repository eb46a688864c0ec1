"""Rows of Kafka's groups: members that die, come late, fight over a name, are restarted or refused."""

from __future__ import annotations

from typing import Any

from tests.analyser.engine.rules.scenarios.build import Row, assigned, exchange, group_event
from tests.analyser.engine.rules.scenarios.build_groups import beat, beats, flows, join, joined, sync

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


def of_member(rows: list[Row], member: str, **more: Any) -> list[Row]:
    """The same, with more in the rows of one member."""
    return [row | more if row["member_id"] == member else row for row in rows]


def of_streams(rows: list[Row]) -> list[Row]:
    """The members are of Kafka Streams."""
    offered = {"protocol_name": "stream", "protocols_offered": "stream"}
    return [row | offered if row["event"] == "join" else row for row in rows]


def late(by: float, told: int = 1) -> list[Row]:
    """m3 joins, m1 follows at once, m2 had been told so often from 21.0 on and comes so many seconds later."""
    last = 21 + by
    return [
        *STARTED, *beats("m1", 5, 4, 20), *beats("m2", 5, 4, 20), join(20.5, "m3", 6, waits=last - 20.498),
        *beats("m1", 5, 21, error_code=27), join(21.01, "m1", 6, waits=last - 21.008),
        *beats("m2", 5, *(21 + n * by / (told + 1) for n in range(told)), error_code=27), join(last, "m2", 6),
        *beats("m2", 6, last + 3),
    ]  # fmt: skip


def late_again(by: tuple[float, ...], others: float = 0.1) -> list[Row]:
    """m3 joins or leaves every half minute; m1 follows `others` seconds after it was told, m2 `by` seconds after, and
    beats meanwhile."""
    rows = [*STARTED, *beats("m1", 5, 4, 20), *beats("m2", 5, 4, 20)]
    for n, seconds in enumerate(by):
        begins, generation, both = 21 + 30 * n, 6 + n, n % 2 == 0
        last = begins + 0.2 + seconds
        rows += (
            [join(begins, "m3", generation, waits=last - begins + 0.002)]
            if both
            else [group_event(begins, "leave", "m3")]
        )
        rows += beats("m1", generation - 1, begins + 0.1, error_code=27)
        rows += [join(begins + 0.1 + others, "m1", generation, waits=last - begins - 0.098 - others)]
        rows += beats("m2", generation - 1, *(begins + 0.2 + seconds * part / 4 for part in range(3)), error_code=27)
        rows += [join(last, "m2", generation)]
        for member in ("m1", "m2", *(("m3",) if both else ())):
            rows += beats(member, generation, last + 3, begins + 29)
    return rows


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


def claimed(rounds: int) -> list[Row]:
    """The requests alone of such a fight: who had the name is heard of once more after it was claimed."""
    rows = []
    for n in range(rounds):
        owner, named = ("m1", "m2")[n % 2], {"group_instance_id": "pod-0", "member_id": f"pod-0-{n}"}
        told = beats(owner, 5, 10 * n + 1.2, 10 * n + 5, *([10 * n + 11.5] if n + 1 < rounds else []), **named)
        rows += [join(10 * n + 1, owner, 5, **(named | {"member_id": ""})), *told]
    return [row | {"ts_response": None, "error_code": None} for row in rows]


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


def a_group_each(times: int, *, until: float = 8, name: str = "report-{}") -> list[Row]:
    """m1 joins another group each ten seconds, and leaves it after some of them."""
    return [
        group_event(n * 10 + at, event, "m1", member_id=f"m1-{n}", group_id=name.format(n), generation=1)
        for n in range(times)
        for at, event in ((0, "join"), (3, "heartbeat"), (until, "leave"))
    ]


def of_one_client(rows: list[Row]) -> list[Row]:
    """The members are processes of one client id at one address."""
    return [row | {"client_id": "billing", "client_address": "10.1.0.1"} for row in rows]


def beside_others(rows: list[Row], until: int) -> list[Row]:
    """Two members of the same client id and address that stay in the group."""
    steady = [row for member in ("m2", "m3") for row in (join(0.5, member, 1), *beats(member, 1, *range(3, until, 3)))]
    return of_one_client([*rows, *steady])


def killed_static(times: int, every: float = 20) -> list[Row]:
    """A static member that is killed and comes back under its name, so often; m2 stays."""
    name = {"group_instance_id": "pod-0"}
    rows = [join(0.5, "m2", 1), *beats("m2", 1, *range(3, round(every * times) + 60, 3))]
    for n in range(times):
        own = {"member_id": f"pod-0-{n}", **name}
        rows += [join(every * n + 1, "m1", 1, **own), *beats("m1", 1, every * n + 4, every * n + 7, **own)]
    return rows


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


def reconfigured(times: int, **kind: Any) -> list[Row]:
    """m1, alone in its group, joins again by itself every five seconds."""
    rows = joined(1, "m1", first=1, last=1, **kind)
    for n in range(times):
        start = 5 + 5 * n
        rows += [*beats("m1", 1 + n, start - 2), join(start, "m1", 2 + n, **kind), sync(start + 0.01, "m1", 2 + n)]
    return rows


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
