"""Scenarios of what clients ask for and store that does not serve them: times in a wrong unit, offsets that are stored
already, the end of the log where something is committed."""

from __future__ import annotations

from tests.analyser.engine.rules.scenarios.build import CLIENTS, START, Row, commit, exchange, group_event
from tests.analyser.engine.rules.scenarios.build_offsets import JOINS, listed, read
from tests.analyser.engine.rules.scenarios.scenario import Scenario, fires, silent

_SECONDS = START // 10**9


def asked(time: int, offset: int | None) -> list[Row]:
    """m1 asks three partitions for the offset of that time, and is answered with this one; None: no answer."""
    error = None if offset is None else 0
    return [listed(1, time, offset, partition=n, error_code=error, replica_id=-1) for n in range(3)]


def committing(
    times: int, each_s: float, *, moves: int = 0, idle: bool = False, others: int = 0, others_s: float = 1.0,
    fetches: int = 10,
) -> dict[str, list[Row]]:  # fmt: skip
    """m1 commits so often; moves: each such commit is ten records further, 0: none is. idle: with a partition that does
    not move. others: so many clients commit thirty times, a hundred records each."""
    rows = [commit(n * each_s, 500 + (10 * (n // moves) if moves else 0), log_end_offset=10_000) for n in range(times)]
    rows += [{**row, "partition": 1, "committed_offset": 7} for row in rows] if idle else []
    rows += [
        commit(n * others_s, n * 100, "m3", group_id=f"g{k}", client_address=f"10.1.1.{k}", client_id=f"x{k}",
               flow_id=f"x{k}", member_id=f"x{k}", log_end_offset=n * 100)
        for k in range(others) for n in range(30)
    ]  # fmt: skip
    asked = [exchange("flow1", n * times * each_s / fetches, "Fetch") for n in range(fetches)]
    sent = {
        row["exchange_id"]: exchange(row["flow_id"], 0, "OffsetCommit", ts=row["ts"], exchange_id=row["exchange_id"])
        | {name: row[name] for name in ("client_id", "client_address")}
        for row in rows
    }
    who = {"client_id": CLIENTS["m1"][1], "client_address": CLIENTS["m1"][0]}
    every = [*({**row, **who} for row in asked), *sent.values()]
    return {
        "kafka_offset_commits": rows,
        "kafka_group_events": [group_event(0, "heartbeat", "m1")],
        "exchanges": [{**row, "protocol": "kafka", "cluster_id": "c1"} for row in every],
    }


def to_the_end(times: int, *, skips: int = 50, asks: int = -1) -> dict[str, list[Row]]:
    """m1 reads 100 records in each ten seconds, commits most of them, and begins so many records further on, at the
    offset of a ListOffsets."""
    begins = [n * (100 + skips) for n in range(times + 1)]
    return {
        "kafka_group_events": JOINS,
        "kafka_offset_commits": [commit(n * 10 + 5, begin + 90) for n, begin in enumerate(begins)],
        "kafka_fetch_partitions": [read(n * 10 + 1, begin, begin + 100) for n, begin in enumerate(begins)],
        "kafka_list_offsets": [
            listed(n * 10 + 0.5, asks, begin, error_code=0, replica_id=-1) for n, begin in enumerate(begins) if n
        ],
    }  # fmt: skip


KAFKA_USE_FIRES: list[Scenario] = [
    fires("KAF345", "warning", "the last hour in seconds", kafka_list_offsets=asked(_SECONDS - 3600, 0)),
    fires("KAF345", "warning", "two years ago in seconds, of requests alone",
          kafka_list_offsets=asked(_SECONDS - 2 * 365 * 86400, None)),
    fires("KAF345", "warning", "microseconds, for which no record is found",
          kafka_list_offsets=asked(_SECONDS * 10**6, -1)),
    fires("KAF345", "warning", "nanoseconds", kafka_list_offsets=asked(START, -1)),
    fires("KAF139", "warning", "at the end of the log four times", **to_the_end(4)),
    fires("KAF346", "warning", "commits at each turn of a loop", **committing(300, 0.02)),
    fires("KAF346", "warning", "a record now and then, and clients that commit each second",
          **committing(300, 0.02, moves=30, others=3)),
]  # fmt: skip
KAFKA_USE_NEAR_MISSES: list[Scenario] = [
    silent("KAF345", "the last hour in milliseconds", kafka_list_offsets=asked((_SECONDS - 3600) * 1000, 900)),
    silent("KAF345", "the end, the beginning, the highest timestamp and the first record of all times",
           kafka_list_offsets=[row for time in (-1, -2, -3, 0, 1) for row in asked(time, 0)]),
    silent("KAF345", "a day of 1972 in milliseconds", kafka_list_offsets=asked(86_400_000 * 800, 0)),
    silent("KAF345", "a replica asks", kafka_list_offsets=[row | {"replica_id": 2} for row in asked(_SECONDS, 0)]),
    silent("KAF139", "at the end of the log twice", **to_the_end(2)),
    silent("KAF139", "at the end, where it had read to", **to_the_end(4, skips=0)),
    silent("KAF139", "it asks for a time", **to_the_end(4, asks=1_790_000_000_000)),
    silent("KAF346", "an interval of half a second while nothing is written", **committing(300, 0.5)),
    silent("KAF346", "each fourth commit moves on", **committing(300, 0.02, moves=4)),
    silent("KAF346", "one of two partitions moves on each time", **committing(300, 0.02, moves=1, idle=True)),
    silent("KAF346", "as often as everybody", **committing(300, 0.1, others=3, others_s=0.15)),
    silent("KAF346", "sixty commits", **committing(60, 0.02)),
    silent("KAF346", "fetches in between", **committing(300, 0.1, fetches=240)),
]  # fmt: skip
