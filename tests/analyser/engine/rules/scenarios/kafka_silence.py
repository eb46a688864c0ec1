"""Scenarios of groups and producers that end while others go on, and of members that send too much."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.analyser.engine.rules.scenarios.build import Row, at, commit, exchange, group_event
from tests.analyser.engine.rules.scenarios.build_groups import beats, joined
from tests.analyser.engine.rules.scenarios.build_offsets import listed, read
from tests.analyser.engine.rules.scenarios.kafka_connections import BOOTSTRAP, SPEAKS, connection, polls
from tests.analyser.engine.rules.scenarios.kafka_producers import produced
from tests.analyser.engine.rules.scenarios.scenario import Scenario, fires, silent

FEED = {"client_id": "feed-1", "client_address": "10.1.0.21"}


def left(gone: int, until: int, *, ahead: int = 0, goes_on: bool = True, **more: Any) -> dict[str, list[Row]]:
    """Group billing keeps up with payments-0 second by second, until both of its members leave; the topic has ten
    records a second.

    ahead: so many records were there before. goes_on: whether the topic is written on. more: rows to add.
    """
    rows = {
        "kafka_group_events": [
            *joined(5, "m1", "m2", first=0.1, last=0.2),
            *(row for member in ("m1", "m2") for row in beats(member, 5, *range(1, gone))),
            *(group_event(gone + n / 10, "leave", member) for n, member in enumerate(("m1", "m2"))),
        ],
        "kafka_offset_commits": [commit(n, 10 * n) for n in range(1, gone)],
        "kafka_fetch_partitions": [read(n - 0.1, 10 * n - 10, 10 * n, high_watermark=10 * n + ahead)
                                   for n in range(1, gone)],
        "kafka_produce_batches": [
            produced(n - 0.5, 10 * n, topic="payments", base_offset=10 * n - 10 + ahead, acks=-1)
            for n in range(1, until if goes_on else gone)
        ],
    }  # fmt: skip
    return {table: [*own, *more.get(table, ())] for table, own in rows.items()} | {
        table: own for table, own in more.items() if table not in rows
    }


def instead(second: int, offset: int, until: int, group: str = "billing-v2") -> dict[str, list[Row]]:
    """m3 joins another group, asks where the log ends and reads on from there."""
    own = {"group_id": group}
    events = [*joined(1, "m3", first=second, last=second), *beats("m3", 1, *range(second + 1, until))]
    return {
        "kafka_group_events": [{**row, **own} for row in events],
        "kafka_list_offsets": [listed(second + 0.1, -1, offset, "m3")],
        "kafka_offset_commits": [
            commit(n + 0.7, 10 * n, "m3", generation=1, **own) for n in range(second + 1, until)
        ],
    }  # fmt: skip


def together(*several: dict[str, list[Row]]) -> dict[str, list[Row]]:
    """All rows of these."""
    return {table: [row for one in several for row in one[table]] for table in several[0]}


def feeds(
    count: int,
    *,
    until: float,
    others: Sequence[float] = (60, 60),
    every: float = 0.2,
    longest: float = 0.4,
    **more: Any,
) -> dict[str, list[Row]]:
    """feed-1 writes `count` times, the others until these seconds; no pause is longer. more: of its connection."""
    who = [(FEED, [1 + n * every for n in range(count)])]
    for number, last in enumerate(others):
        other = {"client_id": f"feed-{number + 2}", "client_address": f"10.1.0.{22 + number}"}
        who.append((other, [1 + n * every for n in range(round((last - 1) / every))]))
    return {
        "exchanges": [
            exchange(f"k{number}", second, "Produce", cluster_id="c1", protocol="kafka", **one)
            for number, (one, seconds) in enumerate(who) for second in seconds
        ],
        "kafka_client_requests": [
            {**one, "cluster_id": "c1", "operation": "Produce", "ts": at(seconds[0]), "ts_last": at(seconds[-1]),
             "requests": len(seconds), "succeeded": len(seconds), "errors": 0, "connections": 1,
             "longest_gap_ms": longest * 1000, "exchange_id": f"k{number}-c1",
             "last_exchange_id": f"k{number}-c2"}
            for number, (one, seconds) in enumerate(who)
        ],
        "kafka_connections": [
            connection(number, 0.5, requests=len(seconds), answered=len(seconds), work=len(seconds), **one,
                       all_seen_until=at(until), **(more if number == 0 else {}))
            for number, (one, seconds) in enumerate(who)
        ],
    }  # fmt: skip


def coordinators(*answers: tuple[float, int]) -> dict[str, list[Row]]:
    """m1 asks for its coordinator at these seconds, and gets these errors."""
    return {
        "exchanges": [
            exchange("flow1", second, "FindCoordinator", protocol="kafka", cluster_id="c1", client_id="billing-1",
                     client_address="10.1.0.1", server_address="10.1.0.100", server_port=9092, error_code=code,
                     status="error" if code else "ok")
            for second, code in answers
        ],
        "kafka_api_versions": [SPEAKS],
    }  # fmt: skip


def begins(*groups: tuple[str, float, float], generation: int = 1, late: float = 0.0) -> dict[str, list[Row]]:
    """A group each with this wait of its first member, from this second on. late: a second member joins later."""
    events, asked = [], []
    for number, (group, second, waits) in enumerate(groups):
        own = {"group_id": group}
        rows = joined(generation, "m1", first=second, last=second + late)
        events += [
            row | own | ({"ts_response": at(second + waits)} if row["event"] == "join" else {"ts": at(second + waits)})
            for row in rows
        ]
        asked += [
            exchange(f"flow{number}", second, "JoinGroup", protocol="kafka", cluster_id="c1", lasts=waits,
                     exchange_id=row["exchange_id"], server_address="10.1.0.100", server_port=9092)
            for row in rows if row["event"] == "join"
        ]  # fmt: skip
    return {"kafka_group_events": events, "exchanges": asked}


def beating(every: float, times: int = 150, timeout_ms: int | None = 6000, other: float | None = None
            ) -> dict[str, list[Row]]:  # fmt: skip
    """Heartbeats of m1 of group billing, and of another group's member."""

    def of(address: str, client: str, flow: str, pace: float) -> list[Row]:
        return [exchange(flow, 1 + n * pace, "Heartbeat", cluster_id="c1", protocol="kafka", client_id=client,
                         client_address=address) for n in range(round(times * every / pace))]  # fmt: skip

    lasts = times * every
    groups = joined(5, "m1", first=0.1, last=0.2, session_timeout_ms=timeout_ms)
    sent = of("10.1.0.1", "billing-1", "flow1", every)
    if other is not None:
        groups += [
            {**row, "group_id": "ledger"} for row in joined(5, "m3", first=0.1, last=0.2, session_timeout_ms=None)
        ]
        sent += of("10.1.0.3", "billing-3", "flow3", other)
    members = ("m1", "m3") if other is not None else ("m1",)
    alive = [row | ({"group_id": "ledger"} if one == "m3" else {})
             for one in members for row in beats(one, 5, *(1 + n for n in range(round(lasts))))]  # fmt: skip
    return {"exchanges": sent, "kafka_group_events": [*groups, *alive]}


def still(
    times: int, lasts: float, *, others: bool = True, beats_on: bool = False, waits: bool = False, after: float = 10
) -> dict[str, list[Row]]:
    """A member fetches ten times a second and sends a heartbeat each second, but for so many silences.

    others: whether other clients go on. beats_on: its heartbeats go on. waits: its last request has no response before.
    after: so many seconds lie between.
    """
    breaks = [(10 + n * (lasts + after), 10 + n * (lasts + after) + lasts) for n in range(times)]
    until = breaks[-1][1] + 10 if breaks else 60.0

    def sent(operation: str, every: float, address: str, client: str, flow: str, within: bool) -> list[Row]:
        rows = []
        for n in range(round(until / every)):
            second = 1 + n * every
            around = [one for one in breaks if one[0] <= second < one[1]]
            next_one = [end for begin, end in breaks if begin <= second + every < end]
            if not around or within:
                pending = waits and next_one and not around
                rows.append(
                    exchange(
                        flow,
                        second,
                        operation,
                        cluster_id="c1",
                        protocol="kafka",
                        client_id=client,
                        client_address=address,
                        lasts=next_one[0] - second if pending else 0.002,
                    )
                )
        return rows  # fmt: skip

    who = ("10.1.0.1", "billing-1")
    rows = [*sent("Fetch", 0.1, *who, "flow1", False), *sent("Heartbeat", 1.0, *who, "flow1b", beats_on),
            *sent("Fetch", 0.1, "10.1.0.2", "billing-2", "flow2", others)]  # fmt: skip
    return {"exchanges": rows, "kafka_api_versions": [SPEAKS]}


def let_in(burst: int, late: int, apart: float = 1.0, *, at_once: bool = False) -> dict[str, list[Row]]:
    """So many connections within a second, of which the last ones are answered one each `apart` seconds, or all at the
    end."""
    begins = [1 + n / burst for n in range(burst)]
    waits = [0.02] * (burst - late) + [late * apart if at_once else (n + 1) * apart for n in range(late)]
    own = {"cluster_id": "c1", "client_id": "shop", "client_address": "10.1.0.7", **BOOTSTRAP}
    return {
        "kafka_connections": [
            connection(n, begin, first_exchange_id=f"k{n}-c{round((begin + 0.001) * 1000)}")
            for n, begin in enumerate(begins)
        ],
        "exchanges": [
            exchange(f"k{n}", begin + 0.001, "ApiVersions", protocol="kafka", lasts=wait, **own)
            for n, (begin, wait) in enumerate(zip(begins, waits, strict=True))
        ],
    }


def goes_to(clusters: str, lasts: float = 2) -> list[Row]:
    """Connections of one client, five seconds apart, to brokers of these clusters."""
    return [
        connection(n, 1 + 5 * n, lasts=lasts, cluster_id=cluster, server_address=f"10.1.0.{ord(cluster)}")
        for n, cluster in enumerate(clusters)
    ]


def two_readers() -> dict[str, list[Row]]:
    """Two that are given records by each Fetch: one the same number of bytes each time, the other more and less."""
    one = polls(300, 0.01, records=range(300))
    other = {"client_address": "10.1.0.8", "client_id": "ledger"}
    names = {row["exchange_id"]: f"other-{row['exchange_id']}" for row in one["exchanges"]}
    more = {
        "exchanges": [row | {"response_bytes": 100 + 40 * (n % 20)} for n, row in enumerate(one["exchanges"])],
        "kafka_fetch_partitions": one["kafka_fetch_partitions"],
    }
    renamed = {
        table: [row | other | {"exchange_id": names[row["exchange_id"]], "flow_id": "other"} for row in rows]
        for table, rows in more.items()
    }
    return {table: [*rows, *renamed.get(table, ())] for table, rows in one.items()}


def offered(flow_id: str, *apis: int) -> list[Row]:
    """What the server of a connection offers."""
    return [
        {"exchange_id": f"{flow_id}-c0", "ts": at(1), "cluster_id": "c1", "client_id": "shop",
         "client_address": "10.1.0.7", **BOOTSTRAP, "api_key": api, "min_version": 0, "max_version": 3,
         "flow_id": flow_id}
        for api in apis
    ]  # fmt: skip


CONTROLLER = (1, 17, 18, 19, 52, 55, 62, 63)
BROKER = (0, 1, 2, 3, 8, 9, 10, 11, 12, 18)


def asks_only(**more: Any) -> list[Row]:
    """A connection that asked for versions and is open since."""
    return [connection(0, 1, requests=1, answered=1, work=0, others=0, all_seen_until=at(60), **more)]


def joins_other_protocol(*, before: bool = False) -> dict[str, list[Row]]:
    """A member of KIP-848 that is refused because of its group's protocol. before: it had been let in before."""
    own = {"cluster_id": "c1", "protocol": "kafka", "client_id": "shop", "client_address": "10.1.0.7"}
    sent = [exchange("k0", 9, "ConsumerGroupHeartbeat", error_code=69, status="error", **own)]
    if before:
        sent.insert(0, exchange("k0", 5, "ConsumerGroupHeartbeat", error_code=0, status="ok", **own))
    return {"exchanges": sent, "kafka_api_versions": [SPEAKS]}


SILENCE_FIRES: list[Scenario] = [
    fires("KAF134", "warning", "both members leave, and the topic is written on", **left(30, 90)),
    fires("KAF134", "warning", "another group begins at the end", **left(30, 90, **instead(45, 450, 90))),
    fires("KAF135", "warning", "six silences of four seconds", **still(6, 4)),
    fires("KAF135", "info", "three in half an hour", **still(3, 4, after=300)),
    fires("KAF212", "warning", "a feed stops, two go on", **feeds(100, until=60)),
    fires("KAF136", "critical", "never a coordinator", **coordinators(*((n / 2, 15) for n in range(20)))),
    fires("KAF137", "warning", "two groups begin after twelve seconds", **begins(("a", 1, 12), ("b", 20, 12.1))),
    fires("KAF326", "warning", "a heartbeat each 20 ms", **beating(0.02)),
    fires("KAF326", "warning", "the session timeout is not known", **beating(0.02, timeout_ms=None, other=1.0)),
    fires(
        "KAF327",
        "warning",
        "a producer that was given the controllers' port",
        kafka_connections=asks_only(),
        kafka_api_versions=offered("k0", *CONTROLLER),
    ),
    fires("KAF322", "warning", "a member of the new protocol in a classic group", **joins_other_protocol()),
]
SILENCE_FIRES += [
    fires("KAF341", "warning", "a client comes to two clusters in turn", kafka_connections=goes_to("aaabaa")),
    fires("KAF329", "warning", "the last ten are let in one each second", **let_in(50, 10)),
]
SILENCE_NEAR_MISSES: list[Scenario] = [
    silent("KAF134", "a stop of fifteen seconds at the end", **left(30, 45)),
    silent("KAF134", "longer away than a restart, shorter than it was there", **left(60, 95)),
    silent("KAF134", "nobody writes any more", **left(30, 90, goes_on=False)),
    silent("KAF134", "a job that reads what is there and stops", **left(30, 90, ahead=5000)),
    silent("KAF134", "another group goes on where it stopped", **left(30, 90, **instead(45, 290, 90))),
    silent("KAF134", "a group of another application", ("KAF134", "warning"),
           **left(30, 90, **instead(45, 450, 90, "ledger"))),
    silent(
        "KAF134", "the groups of a tool that somebody starts now and then",
        **left(30, 90, **together(instead(45, 450, 60, "billing-1"), instead(65, 650, 90, "billing-2"))),
    ),
    silent("KAF135", "two of them", **still(2, 4)),
    silent("KAF135", "all stand still", **still(6, 4, others=False)),
    silent("KAF135", "heartbeats go on", **still(6, 4, beats_on=True)),
    silent("KAF135", "it waits for the broker", **still(6, 4, waits=True)),
    silent("KAF135", "shorter than two heartbeats", **still(6, 1.5)),
    silent("KAF212", "it never was steady", **feeds(40, until=60)),
    silent("KAF212", "all stop at the same time", **feeds(100, until=60, others=(21, 21, 60))),
    silent("KAF212", "it closes its connection", **feeds(100, until=60, ts_closed=at(22), closed_by="client")),
    silent("KAF212", "a request log, which shows no ends of connections", **feeds(100, until=60, acked_by_server=None)),
    silent("KAF212", "a few of its longest pauses", **feeds(100, until=60, longest=5)),
    silent("KAF212", "it wrote for ten times as long", **feeds(1000, until=220, others=(220, 220))),
    silent("KAF324", "two that get records, one of them in responses of one size", **two_readers()),
    silent("KAF136", "the cluster starts", **coordinators(*((n / 2, 15) for n in range(20)), (10, 0))),
    silent("KAF136", "for two seconds", **coordinators(*((n / 10, 15) for n in range(20)))),
    silent("KAF137", "the usual delay", **begins(("a", 1, 3), ("b", 20, 3.1))),
    silent("KAF137", "one of them at once", **begins(("a", 1, 12), ("b", 20, 0.1))),
    silent("KAF137", "one group only", **begins(("a", 1, 12))),
    silent("KAF326", "three in a session timeout", **beating(2.0)),
    silent("KAF326", "two a second", **beating(0.5)),
    silent("KAF326", "all do so where the timeout is not known", **beating(0.1, timeout_ms=None, other=0.1)),
    silent("KAF327", "a broker's port", kafka_connections=asks_only(), kafka_api_versions=offered("k0", *BROKER)),
    silent(
        "KAF327", "an admin tool asks controllers for their quorum",
        kafka_connections=[row | {"others": 2, "requests": 3} for row in asks_only()],
        kafka_api_versions=offered("k0", *CONTROLLER),
    ),
    silent("KAF327", "a request log, which may lack lines", kafka_connections=asks_only(acked_by_server=None),
           kafka_api_versions=offered("k0", *CONTROLLER)),
    silent(
        "KAF327", "a broker at its controller",
        kafka_connections=[
            *asks_only(), connection(1, 1, requests=5, answered=5, work=5, server_address="10.1.0.7"),
        ],
        kafka_api_versions=offered("k0", *CONTROLLER),
    ),
    silent("KAF341", "a probe goes round", kafka_connections=goes_to("abababa")),
    silent("KAF341", "a client that is moved to another cluster", kafka_connections=goes_to("aaabbb")),
    silent("KAF341", "a copier has both", kafka_connections=goes_to("aabaabaa", lasts=9)),
    silent("KAF329", "all are answered when the broker goes on", **let_in(50, 10, at_once=True)),
    silent("KAF329", "four wait", **let_in(50, 4)),
    silent("KAF329", "each waits a little longer", **let_in(50, 10, 0.02)),
    silent("KAF322", "a group that is gone when its member leaves", **joins_other_protocol(before=True)),
]  # fmt: skip
