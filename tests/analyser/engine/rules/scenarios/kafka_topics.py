"""Scenarios of what is written to which topic: dead letters, misspelt names."""

from __future__ import annotations

from collections.abc import Iterable

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


TOPIC_FIRES: list[Scenario] = [
    fires("KAF213", "warning", "every record goes to the dead letters", **dead(10)),
    fires("KAF213", "warning", "two of three do, by another name", **dead(7, topic="dead-letter-queue")),
    fires("KAF328", "warning", "one letter too many", **misspelt("paymentss")),
    fires("KAF328", "warning", "two letters exchanged", **misspelt("paymetns")),
    fires("KAF328", "warning", "a dash instead of an underscore", **misspelt("shop-payments", "shop_payments")),
]
TOPIC_NEAR_MISSES: list[Scenario] = [
    silent("KAF213", "one record of ten", **dead(1)),
    silent("KAF213", "another topic that it copies to", **dead(10, topic="payments.copy")),
    silent("KAF213", "eleven dead letters", **dead(11, given=2)),
    silent("KAF213", "who reads the dead letters again", **dead(10, source="payments.dlq")),
    silent("KAF328", "somebody reads it", **misspelt("paymentss", readers=("paymentss",))),
    silent("KAF328", "a shard of its own", **misspelt("payments2", "payments1")),
    silent("KAF328", "another word", **misspelt("payouts")),
    silent(
        "KAF328", "an operator made it", ("KAF309", "info"),
        **misspelt("paymentss", kafka_admin_changes=[changed(1.1, "topic", "paymentss", "create",
                                                             operation="CreateTopics")]),
    ),
]  # fmt: skip
