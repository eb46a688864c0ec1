"""Scenarios of the rules about Kafka's producers."""

from __future__ import annotations

from typing import Any

from tests.analyser.engine.rules.scenarios.build import ANSWER, Row, at, tcp_flow
from tests.analyser.engine.rules.scenarios.scenario import Scenario, fires, silent

SHOP = {"client_id": "shop-1", "client_address": "10.1.0.7"}


def produced(seconds: float, sequence: int = 0, *, flow: str = "shop", **more: Any) -> Row:
    """One batch of ten records of an answered Produce by shop-1: topic orders, partition 0, cluster c1."""
    row = {
        "exchange_id": f"{flow}-c{round(seconds * 1_000_000)}",
        "flow_id": flow,
        "ts": at(seconds),
        "cluster_id": "c1",
        **SHOP,
        "topic": "orders",
        "partition": 0,
        "base_offset": 1000 + sequence,
        "records_count": 10,
        "batch_bytes": 700,
        "codec": "none",
        "producer_id": 7,
        "producer_epoch": 0,
        "base_sequence": sequence,
        "base_timestamp": 1_790_000_000_000 + sequence,
        "acks": -1,
        "transactional": False,
        "error_code": 0,
        "error_name": "NONE",
        "file": "incident.pcapng",
        "request_packet": round(seconds * 1000) + 1,
    }
    return row | more


def refused(seconds: float, sequence: int, code: int, name: str, **more: Any) -> Row:
    """The same, refused."""
    return produced(seconds, sequence, error_code=code, error_name=name, base_offset=-1, **more)


def told(seconds: float, isr: list[int], **more: Any) -> Row:
    """What Metadata says of orders-0, whose replicas are 1, 2 and 3."""
    row = {
        "exchange_id": f"shop-m{round(seconds * 1_000_000)}", "flow_id": "shop", "ts": at(seconds),
        "cluster_id": "c1", "topic": "orders", "topic_id": "id-1", "partition": 0,
        "leader_id": isr[0], "leader_epoch": 3, "replicas": [1, 2, 3], "isr": isr, "error_code": 0,
        "source": "Metadata",
    }  # fmt: skip
    return row | more


def broker(node: int) -> Row:
    """A broker that Metadata names."""
    return {"exchange_id": "shop-m1", "flow_id": "shop", "ts": at(0), "cluster_id": "c1", "node_id": node,
            "host": f"kafka-{node}", "port": 9092, "source": "Metadata"}  # fmt: skip


def payout(seconds: float, event: str, **more: Any) -> Row:
    """One answered transactional request of payouts-1: transactional id payouts, producer id 9, epoch 0."""
    row = {
        "exchange_id": f"pay-t{round(seconds * 1_000_000)}",
        "flow_id": "pay",
        "ts": at(seconds),
        "ts_response": at(seconds) + ANSWER,
        "cluster_id": "c1",
        **PAYOUTS,
        "event": event,
        "transactional_id": "payouts",
        "producer_id": 9,
        "producer_epoch": 0,
        "error_code": 0,
    }
    if event == "init_producer_id":
        row |= {"producer_id": -1, "producer_epoch": -1, "answered_producer_id": 9, "answered_producer_epoch": 0,
                "transaction_timeout_ms": 600_000}  # fmt: skip
    return row | more


def paid(seconds: float, offset: int, **more: Any) -> Row:
    """One transactional batch of payouts-1 at this offset."""
    own = {"producer_id": 9, "base_offset": offset, "last_offset": offset + 9, "transactional": True, **PAYOUTS}
    return produced(seconds, offset, flow="paydata", **(own | more))


def read(seconds: float, stable: int, end: int, **more: Any) -> Row:
    """One answer to a Fetch of committed records of orders-0 by ledger-1 of group ledger."""
    row = {
        "exchange_id": f"ledger-f{round(seconds * 1_000_000)}",
        "flow_id": "ledger",
        "ts": at(seconds),
        "ts_response": at(seconds) + ANSWER,
        "cluster_id": "c1",
        "client_id": "ledger-1",
        "client_address": "10.1.0.8",
        "replica_id": -1,
        "isolation_level": 1,
        "topic": "orders",
        "partition": 0,
        "fetch_offset": stable,
        "high_watermark": end,
        "last_stable_offset": stable,
        "records_count": 0,
        "error_code": 0,
        "file": "incident.pcapng",
        "request_packet": round(seconds * 1000) + 1,
    }
    return row | more


def timed(client: str, behind_s: float, unit_ms: float = 1, pace: float = 1, count: int = 10, **more: Any) -> list[Row]:
    """Batches of a client, two seconds apart, with times that lie behind by so much and move on at this pace."""
    return [
        produced(
            1 + 2 * n, n * 10, flow=client, client_id=client,
            **{"base_timestamp": round((at(1 + 2 * n * pace) / 1_000_000 - behind_s * 1000) / unit_ms), **OLD, **more},
        )
        for n in range(count)
    ]  # fmt: skip


def round_trip(
    *topics: str, rounds: int = 30, pace: float = 0.05, handles: float = 0.01, first: float | None = None,
    reads: bool = True, **more: Any,
) -> dict[str, list[Row]]:  # fmt: skip
    """A value that copiers carry through these topics, from the last to the first: each reads, and writes to the next.

    pace: seconds from a copy to the next. handles: of these, from reading to writing; first: the same of who writes to
    the first topic. reads: of the first one, too.
    """
    writes, fetches = [], []
    for n in range(rounds * len(topics)):
        place, second = n % len(topics), 1 + n * pace
        who = {"client_id": f"copier-{place}", "client_address": f"10.1.0.{50 + place}"}
        writes.append(
            produced(
                second,
                0,
                flow=f"copier-{place}",
                topic=topics[place],
                base_offset=n,
                last_offset=n,
                records_count=1,
                **{"content_crc": 77, "base_timestamp": at(second) // 1_000_000, **who, **OLD, **more},
            )
        )
        if n and (place or reads):
            prior = topics[(n - 1) % len(topics)]
            takes = handles if place or first is None else first
            fetches.append(
                read(
                    second - pace / 2 - takes,
                    n,
                    n,
                    topic=prior,
                    fetch_offset=n - 1,
                    next_offset=n,
                    records_count=1,
                    ts_response=at(second - takes),
                    exchange_id=f"read{n}",
                    isolation_level=0,
                    **who,
                )
            )
    return {"kafka_produce_batches": writes, "kafka_fetch_partitions": fetches}


def from_another_topic() -> dict[str, list[Row]]:
    """A client that reads clicks, counts them over a topic of its own, and reads that back."""
    rows = round_trip("counts")
    clicks = [
        read(1 + n * 0.05, n, n, topic="clicks", fetch_offset=n, next_offset=n + 1, records_count=1,
             exchange_id=f"click{n}", isolation_level=0, client_id="copier-0", client_address="10.1.0.50")
        for n in range(30)
    ]  # fmt: skip
    fetches = sorted([*rows["kafka_fetch_partitions"], *clicks], key=lambda row: row["ts"])
    return {**rows, "kafka_fetch_partitions": fetches}


def retried(others: int) -> dict[str, list[Row]]:
    """A record that fails goes to a retry topic and comes back after a pause; so many others are read in its topic."""
    rows = round_trip("orders", "orders.retry", pace=0.2, first=0.199)
    more = [
        read(1 + n * 0.1, n, n, topic="orders", partition=1, fetch_offset=n, next_offset=n + 1, records_count=1,
             exchange_id=f"other{n}", isolation_level=0, client_id="copier-1", client_address="10.1.0.51")
        for n in range(others)
    ]  # fmt: skip
    fetches = sorted([*rows["kafka_fetch_partitions"], *more], key=lambda row: row["ts"])
    return {**rows, "kafka_fetch_partitions": fetches}


def together(*writers: list[Row]) -> list[Row]:
    """The batches of several clients by time."""
    return sorted((row for own in writers for row in own), key=lambda row: row["ts"])


PAYOUTS = {"client_id": "payouts-1", "client_address": "10.1.0.9"}


def sent_with_more(**more: Any) -> list[Row]:
    """A batch whose answer comes late, and before that one that begins with the same record and is larger."""
    own = {**OLD, "content_crc": 7}
    again = {"records_count": 30, "batch_bytes": 900, "last_offset": 1049, **more}
    return [
        produced(2, 10, ts_response=at(40), **own),
        produced(32, 10, flow="new", base_offset=1020, ts_response=at(33), **(own | again)),
    ]


def paid_by_one(times: int, every: float, records: int = 1) -> dict[str, list[Row]]:
    """So many transactions, so many seconds apart, of so many records."""
    starts = [n * every for n in range(times)]
    return {
        "kafka_transactions": [payout(0, "init_producer_id"),
                               *(payout(start + every / 2, "end_txn", committed=True) for start in starts)],
        "kafka_produce_batches": [paid(start + every / 4, n * (records + 1), records_count=records)
                                  for n, start in enumerate(starts)],
    }  # fmt: skip


def twice(second: float, fenced: str, starts: str, **more: Any) -> list[Row]:
    """One producer starts with the transactional id payouts, and the other one's EndTxn is refused."""
    return [
        payout(second, "init_producer_id", **POD[starts], **more),
        payout(second + 1, "end_txn", committed=True, error_code=90, error_name="PRODUCER_FENCED", **POD[fenced]),
        payout(second + 2, "end_txn", committed=True, **POD[starts]),
    ]


def fires_too(code: str, severity: str, name: str, **rows: Any) -> Scenario:
    """A scenario that gives this finding, and KAF201 as info beside it."""
    return Scenario(name, code, rows, frozenset({(code, severity), ("KAF201", "info")}))


POD = {
    name: {"client_id": f"payouts-{name}", "client_address": f"10.1.0.{n}", "flow_id": f"pay-{name}"}
    for n, name in enumerate("abc", 30)
}
SERVER = [{"flow_id": "shop", "protocol": "kafka", "server_address": "10.1.0.100", "server_port": 9092}]
ORDER = (45, "OUT_OF_ORDER_SEQUENCE_NUMBER")
REPLICAS = (19, "NOT_ENOUGH_REPLICAS")
OLD = {"acks": 1, "producer_id": -1, "producer_epoch": -1, "base_sequence": -1}


def over_slow_link() -> list[Row]:
    """One batch that takes eight seconds to arrive, on two connections, and is answered at once each time."""
    same = {"content_crc": 77, **OLD}
    return [
        produced(9, 10, flow="k0", ts_response=at(9.01), **same),
        produced(17, 10, flow="k1", base_offset=1020, ts_response=at(17.01), **same),
    ]


def opened(*times: tuple[float, float | None]) -> list[Row]:
    """Flows k0, k1, ... that begin and are closed by the client then, or go on."""
    return [
        tcp_flow(f"k{n}", ts_first=at(begin), ts_closed=None if end is None else at(end), closed_by=end and "client")
        for n, (begin, end) in enumerate(times)
    ]


PRODUCER_FIRES: list[Scenario] = [
    fires(
        "KAF205", "critical", "three records that are too large, each sent once",
        kafka_produce_batches=[
            produced(1, 0),
            *(refused(n, n * 10, 10, "MESSAGE_TOO_LARGE", records_count=1, batch_bytes=2_000_000) for n in (2, 3, 4)),
            produced(5, 50),
        ],
        flows=SERVER,
    ),
    fires(
        "KAF205", "warning", "one record without a key to a compacted topic",
        kafka_produce_batches=[produced(1, 0), refused(2, 10, 87, "INVALID_RECORD"), produced(3, 20)],
        flows=SERVER,
    ),
    fires(
        "KAF205", "critical", "a broker is gone, and the capture ends before it is back",
        kafka_produce_batches=[
            produced(1, 0), *(refused(2 + n / 10, 10, *REPLICAS) for n in range(80)),
        ],
        kafka_partitions=[told(0, [1, 2, 3]), told(4, [1])],
        kafka_brokers=[broker(n) for n in (1, 2, 3)],
        flows=SERVER,
    ),
    fires(
        "KAF205", "warning", "a broker is gone for a while, all is stored in the end",
        kafka_produce_batches=[
            produced(1, 0), *(refused(2 + n / 10, 10, *REPLICAS) for n in range(80)), produced(11, 10),
        ],
        kafka_partitions=[told(0, [1, 2, 3]), told(4, [1, 3])],
        flows=SERVER,
    ),
    fires(
        "KAF205", "critical", "batches are given up behind delivery.timeout.ms",
        kafka_produce_batches=[
            *(refused(n, 10 * n, *REPLICAS) for n in range(4)),
            produced(9, 0, producer_epoch=1, base_timestamp=1_790_000_009_000),
        ],
        flows=SERVER,
    ),
    fires(
        "KAF203", "critical", "a transaction hangs, its reader gets nothing, the capture ends",
        kafka_transactions=[payout(0, "init_producer_id")],
        kafka_produce_batches=[paid(1, 1200), *(produced(n, 1210 + n * 10) for n in range(2, 30))],
        kafka_fetch_partitions=[read(n, 1200, 1210 + n * 10) for n in range(2, 30)],
    ),
    fires(
        "KAF203", "warning", "a transaction of twenty seconds that is committed",
        kafka_transactions=[payout(0, "init_producer_id"), payout(21, "end_txn", committed=True)],
        kafka_produce_batches=[paid(1, 1200)],
        kafka_fetch_partitions=[*(read(n, 1200, 1210 + n) for n in range(2, 20)), read(22, 1260, 1260)],
    ),
    fires(
        "KAF203", "critical", "who holds it began before the capture",
        kafka_fetch_partitions=[read(n, 1200, 1210 + n * 10) for n in range(2, 30)],
    ),
    fires(
        "KAF203", "warning", "nobody reads, the producer is silent for two minutes",
        kafka_transactions=[payout(0, "init_producer_id")],
        kafka_produce_batches=[paid(1, 1200), *(produced(n, n) for n in range(2, 130))],
    ),
    fires(
        "KAF203", "warning", "nobody reads, and it is older than its own timeout",
        kafka_transactions=[payout(0, "init_producer_id", transaction_timeout_ms=15_000)],
        kafka_produce_batches=[paid(1, 1200), *(paid(n, 1200 + n * 10) for n in range(2, 20))],
    ),
    fires(
        "KAF201", "critical", "batches before are missing: out of order, and never stored",
        kafka_produce_batches=[produced(1, 0), *(refused(n, 30 + n * 10, *ORDER) for n in (2, 3, 4))],
        flows=SERVER,
    ),
    fires(
        "KAF201", "warning", "out of order again and again, stored under new epochs",
        kafka_produce_batches=[
            row for n in range(4) for row in (
                refused(n, 30 + n * 10, *ORDER, producer_epoch=n),
                produced(n + 0.5, 0, producer_epoch=n + 1, base_timestamp=1_790_000_000_030 + n * 10),
            )
        ],
        flows=SERVER,
    ),
    fires(
        "KAF201", "info", "fenced once",
        kafka_transactions=[
            payout(0, "init_producer_id", **POD["a"]), payout(5, "init_producer_id", **POD["b"]),
            payout(6, "end_txn", committed=True, error_code=90, error_name="PRODUCER_FENCED", **POD["a"]),
        ],
    ),
    fires_too(
        "KAF206", "critical", "two pods with one transactional id",
        kafka_transactions=[
            payout(0, "init_producer_id", **POD["a"]), payout(1, "end_txn", committed=True, **POD["a"]),
            *twice(2, "a", "b"), *twice(6, "b", "a"),
        ],
    ),
    fires_too(
        "KAF206", "critical", "two processes of one host and client id",
        kafka_transactions=[
            payout(0, "init_producer_id", flow_id="p1"), payout(2, "init_producer_id", flow_id="p2"),
            payout(3, "end_txn", committed=True, error_code=47, error_name="INVALID_PRODUCER_EPOCH", flow_id="p1"),
            payout(4, "init_producer_id", flow_id="p3"),
            payout(5, "end_txn", committed=True, error_code=47, error_name="INVALID_PRODUCER_EPOCH", flow_id="p2"),
        ],
    ),
    fires_too(
        "KAF207", "critical", "an EndTxn of before ends the next transaction",
        kafka_transactions=[
            payout(0, "init_producer_id"), payout(1, "add_partitions_to_txn", partitions="orders-0"),
            payout(2, "end_txn", committed=True), payout(3, "add_partitions_to_txn", partitions="orders-0"),
            payout(4, "end_txn", committed=True, flow_id="old"),
            payout(5, "end_txn", committed=False, error_code=48, error_name="INVALID_TXN_STATE"),
        ],
        kafka_produce_batches=[paid(1.5, 0), paid(3.5, 20)],
    ),
    fires(
        "KAF208", "critical", "answered, and sent again under a new epoch",
        kafka_produce_batches=[
            produced(1, 0), produced(2, 10, last_offset=1019),
            produced(40, 0, producer_epoch=1, base_timestamp=1_790_000_000_010, base_offset=1100, last_offset=1109),
        ],
        flows=SERVER,
    ),
    fires(
        "KAF208", "critical", "not answered, but the next batch leaves room for it",
        kafka_produce_batches=[
            produced(1, 0, last_offset=1009), produced(2, 10, error_code=None, base_offset=None),
            produced(40, 0, producer_epoch=1, base_timestamp=1_790_000_000_010, base_offset=1020, last_offset=1029),
        ],
        flows=SERVER,
    ),
    fires(
        "KAF208", "warning", "without idempotence, not answered on a connection that broke",
        kafka_produce_batches=[
            produced(1, 0, last_offset=1009, ts_response=at(1.01), **OLD),
            produced(2, 10, error_code=None, base_offset=None, **OLD),
            produced(2.4, 10, flow="new", base_offset=1020, last_offset=1029, ts_response=at(2.5), **OLD),
        ],
        flows=SERVER,
    ),
    fires(
        "KAF208", "warning", "without idempotence, answered long after it was sent again",
        kafka_produce_batches=[
            produced(2, 10, ts_response=at(40), **OLD),
            produced(32, 10, flow="new", base_offset=1020, ts_response=at(33), **OLD),
        ],
        flows=SERVER,
    ),
    fires(
        "KAF208", "warning", "without idempotence, sent again with newer records behind",
        kafka_produce_batches=sent_with_more(),
        flows=SERVER,
    ),
    fires(
        "KAF208", "warning", "without idempotence, given up while it was on its way over a slow link",
        kafka_produce_batches=over_slow_link(), flows=opened((0, 9.3), (5, None)),
    ),
    fires(
        "KAF340", "warning", "one of three writers is an hour and some behind",
        kafka_produce_batches=together(timed("a", 0.1), timed("b", 4000), timed("c", 1)),
    ),
    fires("KAF340", "warning", "seconds for milliseconds", kafka_produce_batches=timed("a", 0.1, 1000)),
    fires("KAF340", "warning", "microseconds for milliseconds", kafka_produce_batches=timed("a", 0.1, 0.001)),
    fires("KAF340", "warning", "no times", kafka_produce_batches=timed("a", 0, base_timestamp=0)),
    fires("KAF340", "warning", "two minutes and an hour in the future", kafka_produce_batches=timed("a", -3720)),
    fires("KAF340", "warning", "a time zone", kafka_produce_batches=timed("a", 7200.2)),
    fires("KAF340", "info", "the only writer is behind by no round time", kafka_produce_batches=timed("a", 4000)),
    fires("KAF210", "warning", "a transaction for each record", **paid_by_one(120, 0.05)),
    fires("KAF344", "warning", "a client writes to a topic what it reads there", **round_trip("orders")),
    fires("KAF344", "warning", "two copiers carry what they read to and fro", **round_trip("orders", "orders.copy")),
    fires("KAF344", "warning", "a record that always fails, over a retry topic with a pause", **retried(60)),
]  # fmt: skip
PRODUCER_NEAR_MISSES: list[Scenario] = [
    silent(
        "KAF205", "a leader moves: refused once, stored at once",
        kafka_produce_batches=[
            produced(1, 0), refused(2, 10, 6, "NOT_LEADER_OR_FOLLOWER"), produced(2.1, 10), produced(3, 20),
        ],
        flows=SERVER,
    ),
    silent(
        "KAF205", "a batch that is too large is cut by its client",
        kafka_produce_batches=[
            produced(1, 0), refused(2, 10, 10, "MESSAGE_TOO_LARGE", records_count=40, batch_bytes=2_000_000),
            produced(2.1, 10, records_count=20), produced(2.2, 30, records_count=20),
        ],
        flows=SERVER,
    ),
    silent(
        "KAF205", "without idempotence records are put into other batches before they are sent again",
        kafka_produce_batches=[
            *(refused(2 + n / 10, -1, 6, "NOT_LEADER_OR_FOLLOWER", **OLD, base_timestamp=n) for n in range(4)),
            produced(3, -1, **OLD, base_timestamp=9, records_count=40),
        ],
        flows=SERVER,
    ),
    silent(
        "KAF205", "min.insync.replicas that is met again within two seconds",
        kafka_produce_batches=[
            produced(1, 0), *(refused(2 + n / 10, 10, *REPLICAS) for n in range(20)), produced(4, 10),
        ],
        flows=SERVER,
    ),
    silent(
        "KAF205", "rights are given while the client starts",
        kafka_produce_batches=[refused(1, 0, 29, "TOPIC_AUTHORIZATION_FAILED"), produced(2, 10)],
        flows=SERVER,
    ),
    silent(
        "KAF203", "transactions of three seconds, one behind the other",
        kafka_transactions=[payout(0, "init_producer_id"), *(payout(n * 3 + 2.9, "end_txn", committed=True)
                                                             for n in range(10))],
        kafka_produce_batches=[paid(n * 3 + 0.1 + k, 1000 + n * 31 + k * 10) for n in range(10) for k in (0, 1, 2)],
        kafka_fetch_partitions=[
            read(n * 3 + 0.2 + k, 1000 + n * 31, 1010 + n * 31 + k * 10) for n in range(10) for k in (0, 1, 2)
        ],
    ),
    silent(
        "KAF203", "a transaction whose begin is the capture's end",
        kafka_transactions=[payout(0, "init_producer_id")],
        kafka_produce_batches=[*(produced(n, n) for n in range(1, 100)), paid(95, 1200)],
        kafka_fetch_partitions=[read(n, 1200, 1200) for n in range(90, 95)] + [read(n, 1200, 1210) for n in (96, 99)],
    ),
    silent(
        "KAF203", "nobody reads, and it is younger than its own timeout",
        kafka_transactions=[payout(0, "init_producer_id", transaction_timeout_ms=30_000)],
        kafka_produce_batches=[paid(1, 1200), *(paid(n, 1200 + n * 10) for n in range(2, 20))],
    ),
    silent(
        "KAF201", "a batch is sent again: the broker knows its sequence",
        kafka_produce_batches=[produced(1, 0), produced(2, 10, error_code=None), produced(3, 10), produced(4, 20)],
        flows=SERVER,
    ),
    silent(
        "KAF201", "a sequence begins anew behind a new epoch",
        kafka_produce_batches=[
            produced(1, 0), produced(2, 10),
            produced(3, 0, producer_epoch=1, base_offset=1020, base_timestamp=1_790_000_000_020),
        ],
        flows=SERVER,
    ),
    silent(
        "KAF206", "a pod moves: the old one is fenced once", ("KAF201", "info"),
        kafka_transactions=[payout(0, "init_producer_id", **POD["a"]), *twice(2, "a", "b")],
    ),
    silent(
        "KAF206", "a producer that starts again and again",
        kafka_transactions=[payout(n * 3, "init_producer_id", flow_id=f"p{n}") for n in range(5)],
    ),
    silent(
        "KAF206", "rolled forth and back, nothing at work is fenced",
        kafka_transactions=[payout(n, "init_producer_id", **POD["ab"[n % 2]]) for n in range(3)],
    ),
    silent(
        "KAF207", "an EndTxn without an answer is sent again on a new connection",
        kafka_transactions=[
            payout(0, "init_producer_id"), payout(1, "add_partitions_to_txn", partitions="orders-0"),
            payout(2, "end_txn", committed=True), payout(3, "add_partitions_to_txn", partitions="orders-0"),
            payout(4, "end_txn", committed=True, error_code=None, ts_response=None),
            payout(5, "end_txn", committed=True, flow_id="new"),
            payout(6, "add_partitions_to_txn", partitions="orders-0", flow_id="new"),
            payout(7, "end_txn", committed=True, flow_id="new"),
        ],
        kafka_produce_batches=[paid(1.5, 0), paid(3.5, 20), paid(6.5, 40)],
    ),
    silent(
        "KAF207", "a late EndTxn that is refused", ("KAF201", "info"),
        kafka_transactions=[
            payout(0, "init_producer_id"), payout(1, "add_partitions_to_txn", partitions="orders-0"),
            payout(2, "end_txn", committed=True), payout(3, "add_partitions_to_txn", partitions="orders-0"),
            payout(4, "end_txn", committed=True, flow_id="old", error_code=48, error_name="INVALID_TXN_STATE"),
            payout(5, "end_txn", committed=True),
        ],
        kafka_produce_batches=[paid(1.5, 0), paid(3.5, 20)],
    ),
    silent(
        "KAF208", "not answered and not stored: sent again under a new epoch",
        kafka_produce_batches=[
            produced(1, 0, last_offset=1009), produced(2, 10, error_code=None, base_offset=None),
            produced(40, 0, producer_epoch=1, base_timestamp=1_790_000_000_010, base_offset=1010, last_offset=1019),
        ],
        flows=SERVER,
    ),
    silent(
        "KAF208", "without idempotence, two equal batches of one millisecond, the second before the first is answered",
        kafka_produce_batches=[
            produced(1, 10, ts_response=at(1.5), **OLD),
            produced(1.001, 10, base_offset=1020, ts_response=at(1.5), **OLD),
            produced(9, 20, base_offset=1030, ts_response=at(10.5), **OLD),
        ],
        flows=SERVER,
    ),
    silent(
        "KAF208", "without idempotence, other records of the same millisecond",
        kafka_produce_batches=sent_with_more(content_crc=8),
        flows=SERVER,
    ),
    silent(
        "KAF208", "without idempotence, the first of the records alone",
        kafka_produce_batches=sent_with_more(records_count=4),
        flows=SERVER,
    ),
    silent(
        "KAF208", "without idempotence, not answered and not stored",
        kafka_produce_batches=[
            produced(1, 0, last_offset=1009, ts_response=at(1.01), **OLD),
            produced(2, 10, error_code=None, base_offset=None, **OLD),
            produced(2.4, 10, flow="new", base_offset=1010, last_offset=1019, ts_response=at(2.5), **OLD),
        ],
        flows=SERVER,
    ),
    silent(
        "KAF208", "without idempotence, the same second of two clients",
        kafka_produce_batches=[
            produced(1, 0, last_offset=1009, ts_response=at(1.01), **OLD),
            produced(2, 10, error_code=None, base_offset=None, **OLD),
            produced(2.4, 10, flow="new", base_offset=1020, last_offset=1029, ts_response=at(2.5), client_id="other",
                     **OLD),
        ],
        flows=SERVER,
    ),
    silent(
        "KAF208", "equal batches over two connections, the second opened when the first was answered",
        kafka_produce_batches=over_slow_link(), flows=opened((0, 9.3), (9.1, None)),
    ),
    silent(
        "KAF208", "equal batches over two connections that go on",
        kafka_produce_batches=over_slow_link(), flows=opened((0, None), (5, None)),
    ),
    silent(
        "KAF208", "batches of one millisecond and size with other content",
        kafka_produce_batches=[row | {"content_crc": n} for n, row in enumerate(over_slow_link())],
        flows=opened((0, 9.3), (5, None)),
    ),
    silent(
        "KAF208", "sent again in the same epoch: the broker knows it",
        kafka_produce_batches=[produced(1, 0), produced(2, 10, error_code=None), produced(3, 10), produced(4, 20)],
        flows=SERVER,
    ),
    silent(
        "KAF208", "an aborted transaction is done again",
        kafka_transactions=[
            payout(0, "init_producer_id"), payout(2, "end_txn", committed=False, answered_producer_epoch=1,
                                                  answered_producer_id=9),
            payout(4, "end_txn", committed=True, producer_epoch=1),
        ],
        kafka_produce_batches=[paid(1, 0), paid(3, 0, producer_epoch=1, base_offset=20)],
    ),
    silent("KAF340", "batches that waited for two minutes", kafka_produce_batches=timed("a", 120)),
    silent(
        "KAF340", "a backfill: old times move on faster than the packets",
        kafka_produce_batches=together(timed("a", 0.1), timed("b", 86_400, pace=50)),
    ),
    silent(
        "KAF340", "old times that do not move on",
        kafka_produce_batches=together(timed("a", 0.1), timed("b", 9000, pace=0)),
    ),
    silent(
        "KAF340", "the broker sets the time",
        kafka_produce_batches=together(timed("a", 0.1), timed("b", 4000, log_append_timestamp=at(1) // 1_000_000)),
    ),
    silent(
        "KAF340", "the clock of the capture is off",
        kafka_produce_batches=together(timed("a", 3600), timed("b", 3601), timed("c", 3600.5)),
    ),
    silent("KAF340", "four batches", kafka_produce_batches=together(timed("a", 0.1), timed("b", 4000, count=4))),
    silent(
        "KAF344", "the same value is written again and again, and copied once",
        **round_trip("orders", "orders.copy", reads=False),
    ),
    silent("KAF210", "two a second", **paid_by_one(120, 0.5)),
    silent("KAF210", "ninety of them", **paid_by_one(90, 0.05)),
    silent("KAF210", "twenty records each", **paid_by_one(120, 0.05, 20)),
    silent("KAF344", "equal values that come from another topic, through a topic of its own", **from_another_topic()),
    silent("KAF344", "nineteen rounds", **round_trip("orders", rounds=20)),
    silent(
        "KAF344", "a probe that writes each second and reads it back at once",
        **round_trip("orders", pace=1.0, handles=0.998),
    ),
    silent("KAF344", "a probe that is answered on another topic, and nothing else there", **retried(0)),
    silent("KAF344", "values that differ", **round_trip("orders", content_crc=None)),
]  # fmt: skip
