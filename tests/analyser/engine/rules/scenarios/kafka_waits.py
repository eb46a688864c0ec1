"""Scenarios of KAF302: what clients wait for, a broker, its followers, data, or the way."""

from __future__ import annotations

from typing import Any

from tests.analyser.engine.rules.scenarios.build import Row, at, fetch
from tests.analyser.engine.rules.scenarios.kafka_connections import connection, slows_down, stands_still, waits
from tests.analyser.engine.rules.scenarios.kafka_producers import produced
from tests.analyser.engine.rules.scenarios.scenario import Scenario, fires, silent


def carried(*clients: int, **more: Any) -> list[Row]:
    """The connections of these clients, both sides captured, nothing sent again."""
    rows = []
    for client in clients:
        own = {"client_id": f"shop-{client}", "client_address": f"10.1.0.{client}"}
        whole = {"retransmitted_segments": 0, "gap_bytes": 0, "ts_last_from_server": 1, "throttled": 0}
        rows.append(connection(client, 0.0, **{**own, **whole, **more}))
    return rows


def polls(since: int, until: int, lasts: float, usual: float = 0.5, **more: Any) -> list[Row]:
    """A consumer that fetches for a minute: answers take `usual` seconds, and `lasts` between two seconds."""
    rows, seconds = [], 0.0
    while seconds < 60:
        takes = lasts if since <= seconds < until else usual
        one = {"exchange_id": f"k1-c{round(seconds * 1000)}f", "response_bytes": 80, "awaitable": True, **more}
        rows.append(waits(1, seconds, "Fetch", takes, **one))
        seconds += takes + 0.01
    # The coordinator is asked in between, on another connection.
    return rows + [waits(1, n + 0.3, "Heartbeat", 0.002) | {"flow_id": "k8"} for n in range(0, 60, 3)]


def followed(*silences: tuple[float, float]) -> list[Row]:
    """Broker 2 reads from this leader twice a second, but for these times."""
    own = {"client_id": "broker-2-fetcher-0", "client_address": "10.1.0.102", "awaitable": True}
    return [
        waits(90, n / 2, "Fetch", 0.49, **own)
        for n in range(160)
        if not any(since <= n / 2 < until for since, until in silences)
    ]


def held_up(*silences: tuple[float, float]) -> list[Row]:
    """A producer whose writes take two seconds for ten seconds, four times a second, and a follower."""
    late = [waits(1, 30 + n / 4, "Produce", 2.0 if n % 2 else 0.004) for n in range(40)]
    return [*slows_down(0, 0, last=30), *late, *(waits(1, 40 + n / 8, "Produce", 0.004) for n in range(320)),
            *followed(*silences)]  # fmt: skip


def at_one_address(rows: list[Row]) -> list[Row]:
    """The same requests from one host."""
    return [row | {"client_address": "10.1.0.1"} for row in rows]


def only(operation: str, rows: list[Row]) -> list[Row]:
    """The same requests as of one API."""
    return [row | {"operation": operation} for row in rows]


def written(
    acks_all_s: float, acks_1_s: float, *, times: int = 8, way_ms: tuple[float, float] = (0.4, 0.4), **more: Any
) -> dict[str, list[Row]]:
    """Two producers of one partition, one request a second each: safe-writer with acks=all, fast-writer with acks=1."""
    rows = []
    for number, (name, acks, lasts) in enumerate((("safe-writer", -1, acks_all_s), ("fast-writer", 1, acks_1_s)), 1):
        who = {"client_id": name, "client_address": f"10.1.0.{number}", "flow": f"k{number}", "acks": acks}
        begins = [n + number / 10 for n in range(times)]
        rows += [produced(begin, **who, ts_response=at(begin + lasts), **more) for begin in begins]
    known = [carried(number, handshake_ms=way)[0] for number, way in enumerate(way_ms, 1)]
    return {"kafka_produce_batches": rows, "kafka_connections": known}


def held_back(
    times: int = 6,
    *,
    wait_s: float = 3.0,
    takes_s: float = 3.0,
    written_s: float = 1.5,
    seen: bool = True,
    batches: int = 1,
    **more: Any,
) -> dict[str, list[Row]]:
    """A consumer whose fetches take `takes_s`, and batches of one record each that were written `written_s` before the
    response."""
    fetches, writes = [], []
    for n in range(times):
        begin, offset = n * takes_s + 0.01, 100 + n * batches
        seen_in = {"file": "incident.pcapng", "response_packet": n + 1, "response_message_id": f"data-s{n}"}
        ask = {"min_bytes": 100_000, "max_wait_ms": round(wait_s * 1000), "records_bytes": 680, "records_count": 1}
        read = {"ts_response": at(begin + takes_s), "next_offset": offset + batches, "high_watermark": offset + batches}
        fetches.append(fetch(begin, offset, **{**seen_in, **read, **ask, **more}))
        there = at(begin + takes_s - written_s)
        writes += [
            produced(begin, n, topic="payments", base_offset=offset + m, ts=there - 2_000_000, ts_response=there,
                     records_count=1)
            for m in range(batches)
        ]  # fmt: skip
    return {"kafka_fetch_partitions": fetches, "kafka_produce_batches": writes if seen else []}


def one_by_one(
    times: int = 60, *, takes_s: float = 0.065, gap_s: float = 0.0002, way_ms: float = 60.0,
    opens_s: float = 0.0605, follows_s: float | None = None, records: int = 5, older_s: float = 0.0,
) -> dict[str, list[Row]]:  # fmt: skip
    """A producer whose requests follow each other `gap_s` after the response before; opens_s: from SYN to the first
    request. follows_s: from the first response to the next request. older_s: so much older are the records of each."""
    step = takes_s + gap_s
    begins = opens_s + takes_s + (gap_s if follows_s is None else follows_s)
    opening = waits(1, opens_s, "ApiVersions", takes_s, exchange_id="k1-open")
    rows = [
        waits(1, begins + n * step, "Produce", takes_s, exchange_id=f"k1-c{n}", request_bytes=1400)
        for n in range(times)
    ]
    batches = [
        produced(begins + n * step, n, flow="k1", exchange_id=f"k1-c{n}", records_count=records, producer_id=-1,
                 base_timestamp=round((at(begins + n * (step - older_s)) / 1e6) - 5))
        for n in range(times)
    ]  # fmt: skip
    own = carried(
        1,
        handshake_ms=way_ms,
        requests=times + 1,
        first_exchange_id="k1-open",
        observed_until=at(begins + times * step),
    )
    return {"exchanges": [opening, *rows], "kafka_connections": own, "kafka_produce_batches": batches}


def at_the_broker(**more: Any) -> dict[str, list[Row]]:
    """The same, captured beside the broker: the way is between its response and the next request."""
    return one_by_one(**{"takes_s": 0.002, "gap_s": 0.0605, "way_ms": 0.04, **more})


def far_away(
    reads_at: int = 2, *, leads: int = 1, isr: tuple[int, ...] = (1, 2), ways: tuple[float, ...] = (0.8, 60.0),
    fetches: int = 40, quickest_ms: float = 61.0, known: bool = True,
) -> dict[str, list[Row]]:  # fmt: skip
    """A consumer with a connection to each of two brokers that reads orders-0 at one of them."""
    who = {"client_id": "view", "client_address": "10.1.0.20", "cluster_id": "c1"}
    hosts = {number: f"10.1.0.{100 + number}" for number in (1, 2)}
    ends = [carried(number, **who, server_address=hosts[number], handshake_ms=ways[number - 1])[0] for number in hosts]
    place = {"cluster_id": "c1", "topic": "orders", "partition": 0}
    run = {"ts": at(1), "ts_last": at(50), "exchange_id": f"k{reads_at}-c5", "flow_id": f"k{reads_at}", **who, **place,
           "group_id": "g", "fetches": fetches, "records_count": 90, "first_offset": 5, "next_offset": 95,
           "log_end_offset": 95, "started_by": "first", "file": "incident.pcapng", "request_packet": 9}  # fmt: skip
    term = {**place, "ts": at(0), "leader_id": leads, "leader_epoch": 3, "replicas": [1, 2], "isr": [*isr],
            "source": "Metadata", "exchange_id": "k1-c1", "flow_id": "k1"}  # fmt: skip
    told = [{"cluster_id": "c1", "exchange_id": "k1-c1", "flow_id": "k1", "ts": at(0), "node_id": number,
             "host": host, "port": 9092, "source": "Metadata"} for number, host in hosts.items()]  # fmt: skip
    asked = [waits(20, n, "Metadata", (quickest_ms + n) / 1000) | {"flow_id": f"k{reads_at}", **who} for n in range(6)]
    return {"kafka_fetch_ranges": [run], "kafka_connections": ends, "exchanges": asked,
            "kafka_leaders": [term], "kafka_brokers": told if known else []}  # fmt: skip


WAIT_FIRES: list[Scenario] = [
    fires("KAF319", "warning", "a follower holds up every write with acks=all", **written(2.0, 0.001)),
    fires("KAF334", "warning", "a follower far away, the leader near", **far_away()),
    fires("KAF334", "info", "a leader far away, a replica in sync near", **far_away(leads=2)),
    fires("KAF335", "info", "each request waits for the way of the one before", **one_by_one()),
    fires("KAF335", "warning", "with one record each, all the time", **one_by_one(records=1)),
    fires("KAF335", "warning", "the records wait for ever longer", **one_by_one(older_s=0.04)),
    fires("KAF335", "info", "captured beside the broker", **at_the_broker()),
    fires("KAF335", "warning", "captured beside the broker, ever later", **at_the_broker(older_s=0.04)),
    fires("KAF333", "warning", "each record waits for fetch.max.wait.ms", **held_back()),
    fires("KAF333", "warning", "three responses, with eight batches each", **held_back(3, batches=8)),
    fires("KAF333", "info", "records wait for a quarter of a second", **held_back(written_s=0.25)),
    fires("KAF333", "info", "nobody saw when records were written", **held_back(seen=False)),
    fires("KAF302", "critical", "requests that the server's TCP had at the first try",
          exchanges=stands_still(5.0, 10.0), kafka_connections=carried(1, 2, 3, 4)),
    fires("KAF302", "critical", "requests that were sent again while nobody was answered",
          exchanges=stands_still(5.0, 10.0), kafka_connections=carried(1, 2, 3, 4, retransmitted_segments=4)),
    fires("KAF302", "critical", "two clients, and nobody else was there", exchanges=stands_still(5.0, 10.0, 2)),
    fires("KAF302", "critical", "two clients of one address whose requests the broker's TCP had",
          exchanges=at_one_address(stands_still(5.0, 10.0, 2)), kafka_connections=carried(1, 2)),
    fires("KAF302", "critical", "only one side of TCP was captured", exchanges=stands_still(5.0, 10.0),
          kafka_connections=carried(1, 2, 3, 4, acked_by_server=None, ts_last_from_server=None)),
    fires("KAF302", "warning", "fetches that come two seconds after they may wait for 20 seconds",
          exchanges=polls(20, 40, 2.5), kafka_connections=carried(1, max_wait_ms=500)),
    fires("KAF302", "info", "the same in one window",
          exchanges=polls(20, 29, 2.5), kafka_connections=carried(1, max_wait_ms=500)),
    fires("KAF302", "info", "writes that wait for a follower that stopped reading",
          exchanges=held_up((30.5, 45)), kafka_connections=carried(1)),
    fires("KAF302", "info", "writes that take long although the follower reads on",
          exchanges=held_up(), kafka_connections=carried(1)),
]  # fmt: skip

WAIT_NEAR_MISSES: list[Scenario] = [
    silent("KAF334", "the near replica is not in sync", **far_away(leads=2, isr=(2,))),
    silent("KAF334", "both are as far", **far_away(ways=(50.0, 60.0))),
    silent("KAF334", "it reads at the near one", **far_away(1, leads=2)),
    silent("KAF334", "one slow handshake, quick responses", **far_away(quickest_ms=1.5)),
    silent("KAF334", "who the brokers are is not known", **far_away(known=False)),
    silent("KAF334", "a few fetches", **far_away(fetches=12)),
    silent("KAF335", "two on the way", **one_by_one(gap_s=-0.03)),
    silent("KAF335", "pauses in between", **one_by_one(gap_s=0.02)),
    silent("KAF335", "the broker takes the time", **one_by_one(takes_s=0.1)),
    silent("KAF335", "the broker is near", **one_by_one(takes_s=0.002, way_ms=1.9)),
    silent("KAF335", "forty requests", **one_by_one(40)),
    silent("KAF335", "a timer beside the broker whose first request came late", **at_the_broker(follows_s=0.001)),
    silent("KAF335", "a timer beside the broker", **at_the_broker(opens_s=0.001)),
    silent("KAF333", "records come just when the time is over", **held_back(written_s=0.02)),
    silent("KAF333", "one byte is enough", **held_back(min_bytes=1)),
    silent("KAF333", "enough bytes come", **held_back(records_bytes=120_000)),
    silent("KAF333", "responses come long before the time is over", **held_back(takes_s=0.9, written_s=0.5)),
    silent("KAF333", "four are no pattern", **held_back(4)),
    silent("KAF333", "nor are two, whatever they held back", **held_back(2, batches=30)),
    silent("KAF319", "followers of a healthy cluster take some milliseconds", **written(0.02, 0.001)),
    silent("KAF319", "both kinds wait: the broker or its disk is slow", **written(2.0, 0.9)),
    silent("KAF319", "the producer with acks=all is far away", **written(0.3, 0.001, way_ms=(298.0, 0.4))),
    silent("KAF319", "four requests are no pattern", **written(2.0, 0.001, times=4)),
    silent("KAF319", "the slow ones carry a megabyte each", **written(2.0, 0.001, batch_bytes=1 << 20)),
    silent("KAF302", "two clients of one address: its way may have stood still",
           exchanges=at_one_address(stands_still(5.0, 10.0, 2))),
    silent("KAF302", "two clients wait, a third one that is answered before and behind asks nothing",
           exchanges=[*stands_still(5.0, 10.0, 2),
                      *(waits(9, n / 2, "Heartbeat", 0.002) for n in range(40) if not 9 <= n <= 20)]),
    silent("KAF302", "a broker that stops: it closes the connections of the two",
           exchanges=[row if row["ts"] < at(5) or row["ts"] >= at(10) else
                      row | {"ts_response": None, "status": "unanswered", "latency_ms": None}
                      for row in stands_still(5.0, 10.0, 2)],
           kafka_connections=carried(1, 2, closed_by="server", ts_closed=at(6))),
    silent("KAF302", "of two clients one waits for data, as it may",
           exchanges=[row for row in stands_still(5.0, 10.0, 3) if row["client_id"] != "shop-2"
                      and (row["client_id"] == "shop-1" or not 5 <= (row["ts"] - at(0)) / 1e9 < 10)]
                      + [waits(3, 5.1, "Fetch", 4.93, awaitable=True)],
           kafka_connections=carried(1, 3, max_wait_ms=10_000)),
    silent("KAF302", "producers that wait for replicas alone", exchanges=only("Produce", stands_still(5.0, 10.0))),
    silent("KAF302", "three producers, and a consumer that lets the broker wait for ten seconds",
           exchanges=[*only("Produce", stands_still(5.0, 10.0)), waits(7, 4.9, "Fetch", 5.15, awaitable=True)],
           kafka_connections=carried(7, max_wait_ms=10_000)),
    silent("KAF302", "fetches that take all of max_wait_ms",
           exchanges=polls(20, 40, 2.5), kafka_connections=carried(1, max_wait_ms=2500)),
    silent("KAF302", "fetches a little later than they may wait",
           exchanges=polls(20, 40, 0.9), kafka_connections=carried(1, max_wait_ms=500)),
    silent("KAF302", "fetches of a client whose quota is used up",
           exchanges=polls(20, 40, 2.5), kafka_connections=carried(1, max_wait_ms=500, throttled=3)),
    silent("KAF302", "writes of a client whose quota is used up",
           exchanges=slows_down(30, 60), kafka_connections=carried(1, throttled=3)),
    silent("KAF302", "answers of a megabyte take their time on the way",
           exchanges=polls(20, 40, 2.5, response_bytes=1 << 20), kafka_connections=carried(1, max_wait_ms=500)),
    silent("KAF302", "two late fetches",
           exchanges=polls(20, 24, 2.5), kafka_connections=carried(1, max_wait_ms=500)),
    silent("KAF302", "nobody knows how long a fetch may wait",
           exchanges=polls(20, 40, 2.5), kafka_connections=carried(1)),
    silent("KAF302", "a far away client whose answers all take two seconds more",
           exchanges=[row | {"latency_ms": row["latency_ms"] + 2000} for row in polls(0, 0, 2.5)],
           kafka_connections=carried(1, max_wait_ms=500)),
    silent("KAF302", "fetches that are sent before the last one is answered",
           exchanges=[
               waits(1, 20 + n, "Fetch", 4.5, awaitable=True, response_bytes=80, exchange_id=f"k1-c{n}f")
               for n in range(9)
           ],
           kafka_connections=carried(1, max_wait_ms=1500)),
    silent("KAF302", "a broker's own fetches", exchanges=[
        row | {"client_id": "broker-3-fetcher-0"} for row in polls(20, 40, 2.5) if row["operation"] == "Fetch"],
        kafka_connections=carried(1, max_wait_ms=500)),
]  # fmt: skip
