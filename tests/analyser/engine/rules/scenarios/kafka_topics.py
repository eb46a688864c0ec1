"""Scenarios of what is written to which topic: dead letters, misspelt names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.analyser.engine.rules.scenarios.build import Row, at
from tests.analyser.engine.rules.scenarios.build_offsets import changed, read
from tests.analyser.engine.rules.scenarios.kafka_producers import produced
from tests.analyser.engine.rules.scenarios.scenario import Scenario, fires, silent

_WORKER = {"client_id": "billing-1", "client_address": "10.1.0.1"}


def dead(each: int, *, topic: str = "payments.dlq", given: int = 60, source: str = "payments") -> dict[str, list[Row]]:
    """m1 is given ten records of payments a second, and writes `each` of them to its dead letters."""
    return {
        "kafka_fetch_partitions": [read(n, 10 * n, 10 * n + 10, topic=source) for n in range(1, given)],
        "kafka_produce_batches": [
            produced(n + 0.5, n, topic=topic, base_offset=each * n, records_count=each, **_WORKER)
            for n in range(1, given)
        ],
    }


def told(seconds: float, topic: str, error_code: int = 0) -> Row:
    """What Metadata says of a topic to shop-1."""
    return {
        "exchange_id": f"shop-m{round(seconds * 1000)}", "flow_id": "shop", "ts": at(seconds), "cluster_id": "c1",
        "client_id": "shop-1", "client_address": "10.1.0.5", "topic": topic, "error_code": error_code,
        "partition": None if error_code else 0, "leader_id": None if error_code else 1, "source": "Metadata",
        "file": "incident.pcapng", "request_packet": round(seconds * 1000) + 1,
    }  # fmt: skip


def misspelt(topic: str, meant: str = "payments", *, readers: Iterable[str] = (), **more: list[Row]
             ) -> dict[str, list[Row]]:  # fmt: skip
    """shop-1 asks for a topic that is not there, gets it, and writes to it; the topic that was meant is read."""
    return {
        "kafka_partitions": [told(1, topic, 3), told(1.2, topic)],
        "kafka_produce_batches": [produced(2 + n, n, topic=topic, base_offset=10 * n) for n in range(20)],
        "kafka_fetch_partitions": [
            read(n + 0.2, 10 * n, 10 * n + 10, topic=one) for one in (meant, *readers) for n in range(1, 20)
        ],
        **more,
    }


_COPIER = {"client_id": "copier-1", "client_address": "10.1.0.31"}
_OTHER = {"client_id": "copier-2", "client_address": "10.1.0.32"}


def values(first: int, last: int, start: float, every: float = 0.1, topic: str = "copies", **more: Any) -> list[Row]:
    """A batch for each value of these numbers, one behind the other."""
    who = more or _COPIER
    return [
        produced(start + n * every, n, topic=topic, base_offset=10 * n, content_crc=value,
                 flow=f"{who['client_id']}-{topic}-{start}", **who)
        for n, value in enumerate(range(first, last))
    ]  # fmt: skip


def copies(shared: int, *, reads: bool = True) -> dict[str, list[Row]]:
    """Two copiers write 60 values each to copies, so many of them the same; both read orders, where all are."""
    fetched = [read(1 + n, 10 * n, 10 * n + 10, topic="orders") | who for who in (_COPIER, _OTHER) for n in range(9)]
    return {
        "kafka_produce_batches": [
            *values(0, 120 - shared, 0, 0.05, "orders"), *values(0, 60, 10),
            *values(60 - shared, 120 - shared, 11, **_OTHER),
        ],
        "kafka_fetch_partitions": fetched if reads else fetched[:9],
    }  # fmt: skip


TOPIC_FIRES: list[Scenario] = [
    fires("KAF213", "warning", "every record goes to the dead letters", **dead(10)),
    fires("KAF213", "warning", "two of three do, by another name", **dead(7, topic="dead-letter-queue")),
    fires("KAF214", "warning", "an import is run again", kafka_produce_batches=values(0, 50, 1) + values(0, 50, 10)),
    fires("KAF214", "warning", "two copies of a service in groups of their own", **copies(55)),
    fires("KAF328", "warning", "one letter too many", **misspelt("paymentss")),
    fires("KAF328", "warning", "two letters exchanged", **misspelt("paymetns")),
    fires("KAF328", "warning", "a dash instead of an underscore", **misspelt("shop-payments", "shop_payments")),
]
TOPIC_NEAR_MISSES: list[Scenario] = [
    silent("KAF213", "one record of ten", **dead(1)),
    silent("KAF213", "another topic that it copies to", **dead(10, topic="payments.copy")),
    silent("KAF213", "eleven dead letters", **dead(11, given=2)),
    silent("KAF213", "who reads the dead letters again", **dead(10, source="payments.dlq")),
    silent("KAF214", "it counts anew after a restart", kafka_produce_batches=values(0, 50, 1) + values(0, 80, 10)),
    silent(
        "KAF214", "three rounds",
        kafka_produce_batches=[row for n in range(3) for row in values(0, 50, 1 + 10 * n)],
    ),
    silent(
        "KAF214", "a table that is published again after a minute",
        kafka_produce_batches=values(0, 50, 1) + values(0, 50, 66),
    ),
    silent("KAF214", "fifteen values", kafka_produce_batches=values(0, 15, 1) + values(0, 15, 5)),
    silent("KAF214", "two members of one group share a topic", **copies(0)),
    silent("KAF214", "two writers that count alike", **copies(55, reads=False)),
    silent("KAF328", "somebody reads it", **misspelt("paymentss", readers=("paymentss",))),
    silent("KAF328", "a shard of its own", **misspelt("payments2", "payments1")),
    silent("KAF328", "another word", **misspelt("payouts")),
    silent(
        "KAF328", "an operator made it", ("KAF309", "info"),
        **misspelt("paymentss", kafka_admin_changes=[changed(1.1, "topic", "paymentss", "create",
                                                             operation="CreateTopics")]),
    ),
]  # fmt: skip
