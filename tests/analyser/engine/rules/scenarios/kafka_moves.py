"""Scenarios of clients that move from one cluster to another."""

from __future__ import annotations

from collections.abc import Sequence

from tests.analyser.engine.rules.scenarios.build import Row
from tests.analyser.engine.rules.scenarios.build_offsets import JOINS, read
from tests.analyser.engine.rules.scenarios.kafka_producers import produced
from tests.analyser.engine.rules.scenarios.scenario import Scenario, fires, silent


def written(number: int, cluster: str, seconds: Sequence[int]) -> list[Row]:
    """shop-N writes a batch of payments in each of these seconds."""
    who = {"client_id": f"shop-{number}", "client_address": f"10.1.0.{60 + number}", "producer_id": number}
    return [
        produced(n + number / 10, 10 * n, flow=f"{cluster}-{number}", cluster_id=cluster, topic="payments", **who)
        for n in seconds
    ]


def moved(
    *, stays_until: int = 30, comes: bool = True, follows: int | None = None, read_on: int = 0
) -> dict[str, list[Row]]:
    """A group and shop-1 go from cluster c1 to c2 in the tenth second; shop-2 writes at c1 until so late. follows: when
    it comes over. read_on: so long somebody without a group reads at c1."""
    fetches = [
        *(read(n, 10 * n, 10 * n + 10) for n in range(10)),
        *(read(n, 10 * n, 10 * n + 10, cluster_id="c2", flow_id="flow1-c2", exchange_id=f"c2f-{n}")
          for n in range(11, 30)),
        *(read(n + 0.5, 10 * n, 10 * n + 10, "", flow_id="view", exchange_id=f"view-{n}") for n in range(read_on)),
    ]  # fmt: skip
    joins = [*JOINS, *({**row, "cluster_id": "c2", "exchange_id": f"c2-{n}"} for n, row in enumerate(JOINS))]
    return {
        "kafka_group_events": joins,
        "kafka_fetch_partitions": sorted(fetches, key=lambda row: row["ts"]),
        "kafka_produce_batches": [
            *written(1, "c1", range(10)), *(written(1, "c2", range(11, 30)) if comes else []),
            *written(2, "c1", range(stays_until)),
            *(written(2, "c2", range(follows, 30)) if follows else []),
        ],
    }  # fmt: skip


MOVES_FIRES: list[Scenario] = [
    fires("KAF347", "warning", "one of two producers stays at the old cluster", **moved()),
]  # fmt: skip
MOVES_NEAR_MISSES: list[Scenario] = [
    silent("KAF347", "the last producer follows", **moved(stays_until=20, follows=21)),
    silent("KAF347", "it ends three batches later", **moved(stays_until=15)),
    silent("KAF347", "somebody reads on at the old cluster", **moved(read_on=29)),
    silent("KAF347", "nobody else writes at the new one", **moved(comes=False)),
]  # fmt: skip
