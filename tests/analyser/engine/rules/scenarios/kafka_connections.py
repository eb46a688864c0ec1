"""Scenarios of the rules about getting in: addresses, protocols, logins, names, connections."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from tests.analyser.engine.rules.scenarios.build import Row, at, exchange
from tests.analyser.engine.rules.scenarios.scenario import Scenario, fires, silent

CLIENT = {"cluster_id": "c1", "client_address": "10.1.0.7", "client_id": "shop"}
BOOTSTRAP = {"server_address": "10.1.0.100", "server_port": 9092}
TOLD = ("10.1.0.101", 9093)


REFUSED = {"status": "error", "error_code": 29, "error_name": "TOPIC_AUTHORIZATION_FAILED"}


def fetched(seconds: float, topic: str, code: int) -> Row:
    """One partition in the response of the Fetch of that time."""
    sent = exchange("k0", seconds, "Fetch", **CLIENT)
    return {
        **{name: sent[name] for name in ("exchange_id", "flow_id", "ts", "ts_response", *CLIENT)},
        "replica_id": -1, "topic": topic, "partition": 0, "fetch_offset": 5, "error_code": code,
    }  # fmt: skip


SPEAKS = {**CLIENT, "exchange_id": "r0", "flow_id": "r0", "ts": at(0.5)}


def requests(**counts: int) -> list[Row]:
    """So many requests of each API, one connection each, one a tenth of a second."""
    return [
        exchange(f"r{api}", 1 + n / 10, api, **CLIENT, protocol="kafka", status="ok")
        for api, times in counts.items() for n in range(times)
    ]  # fmt: skip


def polls(times: int, apart: float, records: Collection[int] = (), latency_ms: float = 2.0) -> dict[str, list[Row]]:
    """Fetches of one reader; those of these numbers bring one record each."""
    sent = [
        exchange("k0", 1 + n * apart, "Fetch", **CLIENT, protocol="kafka", lasts=latency_ms / 1000,
                 response_bytes=150 if n in records else 60)
        for n in range(times)
    ]  # fmt: skip
    names = ("exchange_id", "flow_id", "ts", "ts_response", *CLIENT)
    return {
        "exchanges": sent,
        "kafka_api_versions": [SPEAKS],
        "kafka_fetch_partitions": [
            {**{name: row[name] for name in names}, "replica_id": -1, "topic": "orders", "partition": 0,
             "fetch_offset": n, "error_code": 0, "max_wait_ms": 0, "records_bytes": 90 if n in records else 0}
            for n, row in enumerate(sent)
        ],
    }  # fmt: skip


def left_open(count: int, every: float, lasts: float = 0.1, until: float = 120) -> list[Row]:
    """Connections that send one request each and stay open."""
    return [
        connection(
            n, 1 + n * every, requests=3, answered=3, work=1, ts_last_request=at(1 + n * every + lasts),
            all_seen_until=at(until),
        )
        for n in range(count)
    ]  # fmt: skip


def joins(times: int, **more: Any) -> list[Row]:
    """Answered JoinGroup requests of one member, as rows of groups; the generation stays."""
    sent = [exchange("rJoinGroup", 1 + n / 10, "JoinGroup", **CLIENT) for n in range(times)]
    names = ("exchange_id", "flow_id", "ts", "ts_response", *CLIENT)
    given = {"event": "join", "group_id": "g", "member_id": "m1", "generation": 5, "error_code": 0, **more}
    return [{**{name: row[name] for name in names}, **given} for row in sent]


def connection(number: int, seconds: float, lasts: float | None = None, **more: Any) -> Row:
    """One connection to the bootstrap server that works, or does what `more` says; `lasts` seconds, else to the end."""
    closed = None if lasts is None else at(seconds + lasts)
    row = {
        **CLIENT, **BOOTSTRAP, "flow_id": f"k{number}", "ts": at(seconds), "ts_last": closed or at(60),
        "observed_until": closed or at(60), "ts_closed": closed, "closed_by": closed and "client",
        "client_port": 50_000 + number, "protocol": "kafka", "handshake": "complete", "file": "incident.pcapng",
        "first_packet": number + 1, "bytes_to_server": 900, "bytes_to_client": 9000, "acked_by_server": 900,
        "acked_by_client": 9000, "requests": 9, "answered": 9, "unanswered": 0, "errors": 0, "work": 6, "others": 0,
        "first_operation": "ApiVersions", "last_operation": "Fetch", "last_status": "ok", "advertised": False,
        "served": True, "first_exchange_id": f"k{number}-c0", "last_exchange_id": f"k{number}-c800",
    }  # fmt: skip
    return row | more


def idle(number: int, seconds: float, **more: Any) -> Row:
    """A connection on which only versions and addresses were asked for."""
    return connection(number, seconds, **{"work": 0, "last_operation": "Metadata", **more})


def hung_up(number: int, seconds: float, **more: Any) -> Row:
    """It asks for brokers and closes the connection; the capture goes on for a minute."""
    return idle(number, seconds, lasts=0.1, **{"all_seen_until": at(60), **more})


def failed(number: int, seconds: float, handshake: str = "refused", **more: Any) -> Row:
    """An attempt at the address that clients were told."""
    nothing = {"requests": 0, "answered": 0, "work": 0, "others": 0, "bytes_to_server": 0, "bytes_to_client": 0}
    unknown = {"client_id": None, "protocol": None, "first_operation": None, "last_operation": None}
    place = {"server_address": TOLD[0], "server_port": TOLD[1], "served": False, "advertised": True}
    unseen = {"last_status": None, "first_exchange_id": None, "last_exchange_id": None}
    row = {"handshake": handshake, **nothing, **unknown, **place, **unseen}
    return connection(number, seconds, 0.0, **{**row, **more})


def told(seconds: float, host: str = TOLD[0], port: int = TOLD[1], source: str = "Metadata", **more: Any) -> Row:
    """A broker in an answer on the first connection."""
    row = {
        "cluster_id": "c1", "client_address": "10.1.0.7", **BOOTSTRAP, "flow_id": "k0", "ts": at(seconds),
        "exchange_id": f"k0-c{round(seconds * 1000)}", "node_id": 1, "host": host, "port": port, "source": source,
    }  # fmt: skip
    return row | more


def login(number: int, seconds: float, accepted: bool = False, **more: Any) -> Row:
    """A PLAIN login that is refused or accepted."""
    row = {
        **CLIENT, **BOOTSTRAP, "flow_id": f"k{number}", "exchange_id": f"k{number}-c0", "ts": at(seconds),
        "ts_response": at(seconds + 0.01), "mechanism": "PLAIN", "user_name": "shop-app", "accepted": accepted,
        "error_code": 0 if accepted else 58, "error_message": None if accepted else "Authentication failed",
    }  # fmt: skip
    return row | more


def asked(number: int, seconds: float, operation: str = "Metadata", error_code: int = 3, **more: Any) -> Row:
    """An exchange that is answered with an error."""
    error = {"status": "error", "error_code": error_code, "error_name": "UNKNOWN_TOPIC_OR_PARTITION"}
    place = {**CLIENT, **BOOTSTRAP, "protocol": "kafka", "exchange_id": f"k0-c{number}"}
    return exchange("k0", seconds, operation, **{**place, "request_message_id": f"k0-c-{number}", **error, **more})


def waits(client: int, seconds: float, operation: str, lasts: float | None, **more: Any) -> Row:
    """An exchange of one of several clients on its own connection; `lasts` seconds, or never answered."""
    status = "unanswered" if lasts is None else "ok"
    own = {"client_address": f"10.1.0.{client}", "client_id": f"shop-{client}", "request_bytes": 100}
    place = {**BOOTSTRAP, "cluster_id": "c1", "protocol": "kafka", "status": status, **own}
    request = {"request_message_id": f"k{client}-c-800", "exchange_id": f"k{client}-c{round(seconds * 1000)}"}
    return exchange(f"k{client}", seconds, operation, lasts=lasts, **{**place, **request, **more})


def stands_still(since: float, until: float, clients: int = 4) -> list[Row]:
    """A broker that answers each client four times a second, but nobody in between."""
    rows = []
    for client in range(1, clients + 1):
        for number in range(80):
            seconds = number / 4 + client / 100
            ends = until + 0.01 * client if since <= seconds < until else seconds + 0.002
            rows.append(waits(client, seconds, "Heartbeat" if client % 2 else "Produce", ends - seconds))
    return rows


def slows_down(since: int, until: int, late: float = 0.4, last: int = 80) -> list[Row]:
    """A producer that asks eight times a second; between two seconds every fourth answer is late."""
    return [
        waits(1, n / 8, "Produce", late if since <= n / 8 < until and n % 4 == 0 else 0.004) for n in range(last * 8)
    ]


def topic(seconds: float, name: str, error_code: int = 0, flow_id: str = "k0") -> Row:
    """A topic in a Metadata answer."""
    partition = None if error_code else 0
    return {
        "cluster_id": "c1", "client_address": "10.1.0.7", "flow_id": flow_id, "ts": at(seconds),
        "exchange_id": f"{flow_id}-c{round(seconds * 1000)}", "topic": name, "partition": partition,
        "error_code": error_code,
    }  # fmt: skip


def closed_at_once(number: int, seconds: float, **more: Any) -> Row:
    """Versions were answered, the next request was not: the broker closed the connection."""
    row = {"closed_by": "server", "requests": 2, "answered": 1, "unanswered": 1, "last_status": "unanswered"}
    return idle(number, seconds, lasts=0.01, **{**row, **more})


def leads(seconds: float, leader: int, epoch: int, partition: int = 0) -> Row:
    """What shop-1 is told of the leader of a partition of orders, whose only replica is on broker 2."""
    return {
        "cluster_id": "c1", "client_address": "10.1.0.1", "client_id": "shop-1", "flow_id": "k1", "ts": at(seconds),
        "exchange_id": f"k1-c{round(seconds * 1000)}", "topic": "orders", "partition": partition, "leader_id": leader,
        "leader_epoch": epoch, "replicas": [2], "isr": [2], "error_code": 5 if leader < 0 else 0, "source": "Metadata",
        "file": "incident.pcapng", "request_packet": 1, "response_packet": 2,
    }  # fmt: skip


def asks(client: int, *seconds: float) -> list[Row]:
    """Metadata requests of one of several clients."""
    return [waits(client, one, "Metadata", 0.002) for one in seconds]


HERE = (BOOTSTRAP["server_address"], BOOTSTRAP["server_port"])


def as_clusters(*names: str) -> list[Row]:
    """What the bootstrap server says of itself every ten seconds."""
    return [told(10 * n, *HERE, wire_cluster_id=name, client_id="shop") for n, name in enumerate(names)]


def at_one_address(*nodes: int, port: int = 9092, **more: Any) -> list[Row]:
    """Brokers of one answer, all at one place, or each at a port of its own from there on."""
    apart = more.pop("apart", 0)
    return [
        told(1, "kafka.shop", port + n * apart, client_id="shop", node_id=node, **more) for n, node in enumerate(nodes)
    ]


def elsewhere(times: int, code: int = 6) -> list[Row]:
    """Requests of the same client that reach a broker that is not responsible."""
    return [exchange("k0", 2 + n, "Fetch", **CLIENT, protocol="kafka", error_code=code) for n in range(times)]


def over_limit(
    times: int = 4, size: int = 450_000, answered: int = 200_000, asked: float = 0.15
) -> dict[str, list[Row]]:
    """A client whose large Produce the server answers by closing, and requests of others that are answered."""
    ends = {
        "closed_by": "server",
        "last_operation": "Produce",
        "last_status": "unanswered",
        "unanswered": 1,
        "requests": 2,
        "answered": 1,
        "work": 1,
        "bytes_to_server": 100_000,
        "acked_by_server": 100_000,
        "served": True,
    }
    closed = [
        connection(n, n, lasts=0.2, **ends, ts_last_request=at(n + asked), last_exchange_id=f"k{n}-big")
        for n in range(times)
    ]
    large = [
        waits(7, n + 0.15, "Produce", None, exchange_id=f"k{n}-big", client_id="shop", request_bytes=size)
        for n in range(times)
    ]
    others = [waits(1, n, "Produce", 0.004, request_bytes=answered) for n in range(times)]
    return {"kafka_connections": [*closed, connection(50, 0)], "exchanges": [*large, *others]}


def first_bytes(number: int, seconds: float, **more: Any) -> Row:
    """Something that is not Kafka goes to the port, which closes without a byte."""
    row = {"closed_by": "server", "bytes_to_client": 0, "served": True}
    place = {**BOOTSTRAP, "advertised": False}
    return failed(number, seconds, "complete", **{**row, **place, **more})


TRIES = [failed(n + 1, n + 1.0) for n in range(5)]
ASKS = [told(n + 0.5) for n in range(12)]
SECONDS = range(0, 12, 2)

CONNECTION_FIRES: list[Scenario] = [
    fires("KAF302", "critical", "a broker that stands still for five seconds", exchanges=stands_still(5.0, 10.0)),
    fires("KAF302", "warning", "an API that is slow for half a minute", exchanges=slows_down(30, 60)),
    fires("KAF302", "info", "for ten seconds", exchanges=slows_down(30, 40)),
    fires(
        "KAF303", "warning", "a client that gives up after ten seconds",
        exchanges=[waits(1, 5, "Produce", None)],
        kafka_connections=[connection(1, 0, 15.0, unanswered=1, last_status="unanswered", acked_by_server=900)],
    ),
    fires(
        "KAF303", "warning", "ten seconds after the broker reads it again, as the time that it throttled it is over",
        exchanges=[waits(1, 5, "Produce", None)],
        kafka_connections=[connection(1, 0, 25.0, unanswered=1, throttled=1, ts_muted_until=at(15))],
    ),
    fires(
        "KAF303", "warning", "forty seconds without an answer, and not delivered",
        exchanges=[waits(1, 5, "Produce", None)],
        kafka_connections=[connection(1, 0, None, unanswered=1, last_status="unanswered", acked_by_server=800)],
    ),
    fires(
        "KAF306", "warning", "forty connections in one of six minutes",
        kafka_connections=[
            *(connection(n, 60.0 * n, 30.0) for n in range(6)), *(connection(n + 10, 130.0 + n) for n in range(40)),
        ],
    ),
    fires(
        "KAF306", "warning", "forty in a minute, and a clock that jumps by centuries",
        kafka_connections=[
            *(connection(n, 60.0 * n, 30.0) for n in range(6)), *(connection(n + 10, 130.0 + n) for n in range(40)),
            connection(99, 4e9, 30.0),
        ],
    ),
    fires("KAF310", "critical", "refused", kafka_connections=[idle(0, 0), *TRIES], kafka_brokers=ASKS),
    fires(
        "KAF310", "critical", "never answered",
        kafka_connections=[idle(0, 0), *(failed(n + 1, n + 1.0, "unanswered") for n in range(4))], kafka_brokers=ASKS,
    ),
    fires(
        "KAF310", "warning", "one of three brokers is refused",
        kafka_connections=[connection(0, 0), *TRIES], kafka_brokers=[*ASKS, told(0.6, "10.1.0.100", 9092)],
    ),
    fires(
        "KAF310", "critical", "loopback",
        kafka_connections=[idle(n, n) for n in range(12)],
        kafka_brokers=[told(n + 0.5, "127.0.0.1", flow_id=f"k{n}") for n in range(12)],
    ),
    fires(
        "KAF310", "critical", "a name that does not resolve",
        kafka_connections=[idle(0, 0)], kafka_brokers=[told(n + 0.5, "kafka-0.internal", 9094) for n in range(12)],
    ),
    fires(
        "KAF310", "critical", "a name with the port of the bootstrap server, and a coordinator asked for in vain",
        kafka_connections=[idle(0, 0)],
        kafka_brokers=[told(n + 0.5, "kafka-0.internal", 9092, "FindCoordinator", group_id="g") for n in range(12)],
    ),
    fires(
        "KAF310", "critical", "told once where its coordinator is, it waits and does nothing",
        kafka_connections=[idle(0, 0, observed_until=at(30))],
        kafka_brokers=[told(0.4, "10.1.0.250", 9092), told(0.5, "10.1.0.250", 9092, "FindCoordinator", group_id="g")],
    ),
    fires(
        "KAF310", "info", "told once, it hangs up and is not seen again",
        kafka_connections=[hung_up(0, 0)], kafka_brokers=[told(0.05, "kafka-0.internal", 9094)],
    ),
    fires(
        "KAF310", "critical", "told a loopback address once, it hangs up and is not seen again",
        kafka_connections=[hung_up(0, 0)], kafka_brokers=[told(0.05, "127.0.0.1", 9092)],
    ),
    fires(
        "KAF311", "critical", "TLS to a clear-text port",
        kafka_connections=[connection(0, 0, client_address="10.1.0.1"), first_bytes(1, 1, client_opening="tls")],
    ),
    fires("KAF311", "critical", "HTTP to a Kafka port", kafka_connections=[first_bytes(1, 1, client_opening="http")]),
    fires(
        "KAF311", "critical", "clear text to a TLS port",
        kafka_connections=[
            closed_at_once(n, n, server_opening="tls", server_tls_alert="fatal unexpected_message") for n in range(2)
        ],
    ),
    fires(
        "KAF311", "critical", "no SASL where others log in",
        kafka_connections=[closed_at_once(n, n) for n in range(3)],
        kafka_authentications=[login(9, 1, True, client_address="10.1.0.1", client_id="other")],
    ),
    fires(
        "KAF311", "critical", "no SASL, by a client that asks in too new a version first",
        kafka_connections=[
            closed_at_once(0, 0, requests=3, answered=2, errors=1), *(closed_at_once(n, n) for n in range(1, 3)),
        ],
    ),
    fires(
        "KAF311", "critical", "SASL to a port without it",
        kafka_connections=[idle(0, 0)], kafka_authentications=[login(0, 1, error_code=34, error_message=None)],
    ),
    fires(
        "KAF322", "warning", "one Fetch without the right to the topic",
        exchanges=[exchange("k0", 1, "Fetch", **CLIENT, protocol="kafka", **BOOTSTRAP, **REFUSED)],
        kafka_fetch_partitions=[fetched(1, "secrets", 29)],
    ),
    fires(
        "KAF322", "warning", "no right to the group, asked for its coordinator",
        exchanges=[
            exchange("k0", 1, "Metadata", **CLIENT, protocol="kafka", status="ok"),
            exchange("k0", 2, "FindCoordinator", **CLIENT, protocol="kafka", status="error", error_code=30),
        ],
        kafka_partitions=[topic(1, "orders")],
    ),
    fires(
        "KAF322", "warning", "another topic may be read",
        exchanges=[
            exchange("k0", 1, "Fetch", **CLIENT, protocol="kafka", **REFUSED),
            exchange("k0", 2, "Fetch", **CLIENT, protocol="kafka", status="ok"),
        ],
        kafka_fetch_partitions=[fetched(1, "secrets", 29), fetched(1, "orders", 0), fetched(2, "orders", 0)],
    ),
    fires(
        "KAF323", "warning", "committed() for each commit",
        exchanges=requests(OffsetFetch=30, OffsetCommit=30, Fetch=5), kafka_api_versions=[SPEAKS],
    ),
    fires(
        "KAF323", "warning", "endOffsets() for each poll",
        exchanges=requests(ListOffsets=40, Fetch=44), kafka_api_versions=[SPEAKS],
    ),
    fires(
        "KAF323", "warning", "a member that joins again and again",
        exchanges=requests(JoinGroup=30, Fetch=5), kafka_group_events=joins(30),
    ),
    fires(
        "KAF323", "warning", "a member id that is refused again and again",
        exchanges=requests(JoinGroup=30), kafka_group_events=joins(30, error_code=25, generation=-1),
    ),
    fires("KAF314", "warning", "one connection a second, and none is closed", kafka_connections=left_open(100, 1)),
    fires("KAF324", "warning", "300 fetches in 3 s and no records", **polls(300, 0.01)),
    fires("KAF324", "warning", "a record now and then", **polls(300, 0.01, records=range(0, 300, 20))),
    fires(
        "KAF325", "warning", "a balancer stands for three brokers", kafka_brokers=at_one_address(1, 2, 3),
        exchanges=elsewhere(9),
    ),
    fires("KAF325", "info", "a service whose nodes do everything", kafka_brokers=at_one_address(1, 2)),
    fires("KAF321", "warning", "the server closes at the first bytes of each large request", **over_limit()),
    fires("KAF312", "warning", "a wrong password once", kafka_authentications=[login(0, 0)]),
    fires(
        "KAF342", "critical", "no leader to the end of the capture",
        kafka_partitions=[leads(0, 2, 4), leads(2, -1, 5)], exchanges=asks(1, 0, *range(2, 50, 4)),
    ),
    fires(
        "KAF342", "warning", "no leader for half a minute, in two epochs",
        kafka_partitions=[leads(0, 2, 4), leads(2, -1, 5), leads(18, -1, 6), leads(34, 2, 7)],
        exchanges=asks(1, 0, *range(2, 50, 4)),
    ),
    fires("KAF341", "warning", "two clusters behind one address, in turn", kafka_brokers=as_clusters("a", "b", "a")),
    fires(
        "KAF341", "warning", "a client comes back, and the cluster is another one",
        kafka_brokers=as_clusters("a", "a", "b", "b"),
    ),
    fires(
        "KAF341", "info", "a server that was set up anew, for other clients",
        kafka_brokers=[*as_clusters("a", "a"), told(30, *HERE, wire_cluster_id="b", client_id="other")],
    ),
    fires("KAF312", "critical", "a wrong password", kafka_authentications=[login(n, n) for n in range(4)]),
    fires(
        "KAF313", "warning", "a misspelt name",
        exchanges=[asked(n, n + 0.1) for n in range(8)],
        kafka_partitions=[topic(0.2, "green-refuns", 3), topic(0.1, "green-refunds", flow_id="k9")],
    ),
    fires(
        "KAF314", "warning", "a producer made for each message",
        kafka_connections=[connection(n, n * 1.5, 0.3, requests=4, work=1) for n in range(30)],
    ),
    fires(
        "KAF314", "warning", "a client that connects four times a second to ask for log ends",
        kafka_connections=[connection(n, n / 4, 0.1, requests=4, work=0, others=2) for n in range(80)],
    ),
    fires(
        "KAF315", "warning", "forty refusals a second for four seconds",
        exchanges=[asked(n, n / 40, "OffsetFetch", 25) for n in range(160)],
    ),
]  # fmt: skip

CONNECTION_NEAR_MISSES: list[Scenario] = [
    silent("KAF302", "two seconds", exchanges=stands_still(5.0, 7.0)),
    silent("KAF302", "an API that is always so slow", exchanges=slows_down(0, 80)),
    silent(
        "KAF302", "a pause of a second, late in the capture",
        exchanges=[*slows_down(0, 0), *(waits(1, 70 + n / 40, "Produce", 0.4) for n in range(40))],
    ),
    silent("KAF302", "a little slower", exchanges=slows_down(30, 60, 0.04)),
    silent("KAF302", "no more than four windows", exchanges=slows_down(20, 40, last=40)),
    silent(
        "KAF302", "others are answered meanwhile",
        exchanges=[*stands_still(5.0, 10.0), *(waits(9, n / 2, "Heartbeat", 0.002) for n in range(40))],
    ),
    silent(
        "KAF302", "fetches of quiet topics that wait for five seconds",
        exchanges=[waits(n, 5 * k + n / 100, "Fetch", 5.0, awaitable=True) for n in range(1, 5) for k in range(4)],
    ),
    silent(
        "KAF303", "a clean exit while a fetch waits",
        exchanges=[waits(1, 5, "Fetch", None, awaitable=True)],
        kafka_connections=[connection(1, 0, 5.4, unanswered=1, last_status="unanswered")],
    ),
    silent(
        "KAF303", "a client that gives up while the broker throttles it",
        exchanges=[waits(1, 5, "Produce", None)],
        kafka_connections=[connection(1, 0, 15.0, unanswered=1, throttled=1, ts_muted_until=at(65))],
    ),
    silent(
        "KAF303", "a client that gives up two seconds after the broker reads it again",
        exchanges=[waits(1, 5, "Produce", None)],
        kafka_connections=[connection(1, 0, 15.0, unanswered=1, throttled=1, ts_muted_until=at(13))],
    ),
    silent(
        "KAF303", "forty seconds, most of them throttled",
        exchanges=[waits(1, 5, "Produce", None)],
        kafka_connections=[connection(1, 0, None, unanswered=1, throttled=1, ts_muted_until=at(40))],
    ),
    silent(
        "KAF303", "a member that waits for the others",
        exchanges=[waits(1, 5, "JoinGroup", None, awaitable=True)],
        kafka_connections=[connection(1, 0, 50.0, unanswered=1, last_status="unanswered")],
    ),
    silent(
        "KAF303", "the answer may be in a gap",
        exchanges=[waits(1, 5, "Produce", None)],
        kafka_connections=[connection(1, 0, 50.0, unanswered=1, last_status="unanswered", gap_bytes=400)],
    ),
    silent(
        "KAF303", "nothing of the server was captured",
        exchanges=[waits(1, 5, "Produce", None)],
        kafka_connections=[connection(1, 0, 50.0, unanswered=1, bytes_to_client=0, acked_by_server=None)],
    ),
    silent(
        "KAF303", "open for ten seconds when the capture ends",
        exchanges=[waits(1, 50, "Produce", None)],
        kafka_connections=[connection(1, 0, None, unanswered=1, last_status="unanswered")],
    ),
    silent(
        "KAF306", "twenty-nine connections in one minute",
        kafka_connections=[
            *(connection(n, 60.0 * n, 30.0) for n in range(6)), *(connection(n + 10, 130.0 + n) for n in range(25)),
        ],
    ),
    silent(
        "KAF306", "all connections of a client that starts",
        kafka_connections=[connection(n, n, None, observed_until=at(400)) for n in range(50)],
    ),
    silent(
        "KAF310", "a broker that is restarted: refused, then reached",
        kafka_connections=[
            connection(0, 0), *TRIES, connection(9, 9, server_address=TOLD[0], server_port=TOLD[1]),
        ],
        kafka_brokers=ASKS,
    ),
    silent(
        "KAF310", "a broker that is down: others were served there",
        kafka_connections=[connection(0, 0), *({**one, "served": True} for one in TRIES)], kafka_brokers=ASKS,
    ),
    silent(
        "KAF310", "a broker that is down is told no more",
        kafka_connections=[connection(0, 0), *TRIES], kafka_brokers=[told(0.5)],
    ),
    silent(
        "KAF310", "behind a load balancer",
        kafka_connections=[connection(0, 0), connection(1, 1)],
        kafka_brokers=[told(n + 0.5, "kafka-0.internal", 9094) for n in range(12)],
    ),
    silent(
        "KAF310", "a listing of topics every two seconds, by a name that is this server",
        kafka_connections=[idle(0, 0)], kafka_brokers=[told(n + 0.5, "kafka-0.internal", 9092) for n in SECONDS],
    ),
    silent(
        "KAF310", "one of several brokers, and only its bootstrap server is captured",
        kafka_connections=[idle(0, 0, observed_until=at(30))],
        kafka_brokers=[told(0.4, "10.1.0.251", 9092), told(0.5, "10.1.0.250", 9092, "FindCoordinator", group_id="g")],
    ),
    silent(
        "KAF310", "told where its coordinator is, at a broker that was not captured",
        kafka_connections=[idle(0, 0, observed_until=at(30))],
        kafka_brokers=[told(0.5, "10.1.0.250", 9092, "FindCoordinator", group_id="g")],
    ),
    silent(
        "KAF310", "the coordinator moves to a broker that was not captured, and the client asks one that was",
        kafka_connections=[idle(0, 0)],
        kafka_brokers=[
            told(0.4, BOOTSTRAP["server_address"], 9092),
            *(told(n + 0.5, "10.1.0.250", 9092, "FindCoordinator", group_id="g") for n in range(12)),
        ],
    ),
    silent(
        "KAF310", "processes of one client id start one after the other, and work where nobody captured",
        kafka_connections=[idle(n, 7 * n) for n in range(5)],
        kafka_brokers=[
            told(7 * n + 0.5, "kafka-0.internal", 9092, "FindCoordinator", group_id="g", flow_id=f"k{n}")
            for n in range(5)
        ],
    ),
    silent(
        "KAF310", "a client that works where nobody captured refreshes its metadata at the bootstrap server",
        kafka_connections=[idle(0, 0, observed_until=at(900))],
        kafka_brokers=[told(300 * n + 0.5, "kafka-0.internal", 9094) for n in range(4)],
    ),
    silent(
        "KAF310", "a tool that asks for a coordinator and ends",
        kafka_connections=[idle(0, 0, lasts=1)],
        kafka_brokers=[told(0.5, "10.1.0.250", 9092, "FindCoordinator", group_id="g")],
    ),
    silent(
        "KAF310", "a listing of topics, once",
        kafka_connections=[hung_up(0, 0)], kafka_brokers=[told(0.05, "kafka-0.internal", 9094)],
        kafka_partitions=[topic(0.05, "orders")],
    ),
    silent(
        "KAF310", "a health check at one of the brokers",
        kafka_connections=[hung_up(0, 0)],
        kafka_brokers=[told(0.05, "10.1.0.100", 9092), told(0.05, "10.1.0.101", 9093)],
    ),
    silent(
        "KAF310", "a bootstrap connection is closed, another one works",
        kafka_connections=[hung_up(0, 0), connection(1, 1, server_address=TOLD[0], server_port=TOLD[1])],
        kafka_brokers=[told(0.05)],
    ),
    silent(
        "KAF310", "the capture ends two seconds after the client was told",
        kafka_connections=[hung_up(0, 0, all_seen_until=at(2))], kafka_brokers=[told(0.05, "127.0.0.1", 9092)],
    ),
    silent(
        "KAF310", "the broker closed the connection",
        kafka_connections=[hung_up(0, 0, closed_by="server")], kafka_brokers=[told(0.05, "127.0.0.1", 9092)],
    ),
    silent(
        "KAF310", "a broker on this very host",
        kafka_connections=[idle(n, n, client_address="127.0.0.1", server_address="127.0.0.1") for n in range(12)],
        kafka_brokers=[
            told(n + 0.5, "127.0.0.1", 9092, flow_id=f"k{n}", client_address="127.0.0.1", server_address="127.0.0.1")
            for n in range(12)
        ],
    ),
    silent(
        "KAF311", "TLS to a TLS port",
        kafka_connections=[
            first_bytes(n, n, client_opening="tls", server_opening="tls", bytes_to_client=5000, served=False)
            for n in range(3)
        ],
    ),
    silent(
        "KAF311", "TLS whose SYN was not captured",
        kafka_connections=[
            connection(1, 1, handshake="unexplained", encrypted=True, server_opening="tls", server_tls_alert="fatal x"),
        ],
    ),
    silent(
        "KAF311", "TLS whose ClientHello was not captured",
        kafka_connections=[
            first_bytes(1, 1, server_opening="tls", bytes_to_client=7, gap_bytes=225, server_tls_alert="fatal x"),
            first_bytes(2, 2, server_opening="tls", bytes_to_client=2444, encrypted=True, gap_bytes=225),
        ],
    ),
    silent(
        "KAF311", "a certificate that the client does not trust",
        kafka_connections=[
            first_bytes(n, n, client_opening="tls", bytes_to_client=2000, client_tls_alert="fatal unknown_ca",
                        server_opening="tls")
            for n in range(2)
        ],
    ),
    silent(
        "KAF311", "a TLS connection that the client gives up",
        kafka_connections=[first_bytes(1, 1, client_opening="tls", closed_by="client")],
    ),
    silent(
        "KAF311", "a broker that goes down closes connections that worked before",
        kafka_connections=[*(closed_at_once(n, n) for n in range(3)), connection(8, 8)],
    ),
    silent(
        "KAF311", "more than versions was answered once",
        kafka_connections=[
            closed_at_once(0, 0, requests=3, answered=2), *(closed_at_once(n, n) for n in range(1, 3)),
        ],
    ),
    silent(
        "KAF311", "requests that were lost on the way",
        kafka_connections=[closed_at_once(n, n, acked_by_server=400) for n in range(3)],
    ),
    silent(
        "KAF322", "the right is given while the client starts",
        exchanges=[
            exchange("k0", 1, "Fetch", **CLIENT, protocol="kafka", **REFUSED),
            exchange("k0", 2, "Fetch", **CLIENT, protocol="kafka", status="ok"),
        ],
        kafka_fetch_partitions=[fetched(1, "secrets", 29), fetched(2, "secrets", 0)],
    ),
    silent(
        "KAF322", "a leader moves, which a later try heals",
        exchanges=[exchange("k0", 1, "Fetch", **CLIENT, protocol="kafka", status="error", error_code=6)],
        kafka_fetch_partitions=[fetched(1, "orders", 6)],
    ),
    silent(
        "KAF322", "an admin tool that may not change settings",
        exchanges=[exchange("k0", 1, "AlterConfigs", **CLIENT, protocol="kafka", status="error", error_code=31)],
        kafka_api_versions=[SPEAKS],
    ),
    silent(
        "KAF323", "a tool that watches offsets",
        exchanges=requests(ListOffsets=300, OffsetFetch=300, Fetch=2), kafka_api_versions=[SPEAKS],
    ),
    silent(
        "KAF323", "a checkpoint connector's admin client",
        exchanges=requests(OffsetFetch=30, FindCoordinator=60, OffsetCommit=30), kafka_api_versions=[SPEAKS],
    ),
    silent(
        "KAF323", "a start, and then work",
        exchanges=requests(ListOffsets=12, OffsetFetch=12, Metadata=9, Fetch=90),
        kafka_api_versions=[SPEAKS],
    ),
    silent(
        "KAF323", "offsets after each of many rebalances",
        exchanges=requests(OffsetFetch=24, JoinGroup=12, Fetch=20),
        kafka_group_events=[{**row, "generation": n} for n, row in enumerate(joins(12))],
    ),
    silent(
        "KAF323", "twenty consumers of one client id join one generation",
        exchanges=requests(JoinGroup=20),
        kafka_group_events=[{**row, "member_id": f"m{n}"} for n, row in enumerate(joins(20))],
    ),
    silent("KAF314", "forty workers start, write once and wait", kafka_connections=left_open(40, 0.2)),
    silent("KAF314", "connections that go on to work", kafka_connections=left_open(100, 1, lasts=30)),
    silent("KAF314", "a connection each five seconds", kafka_connections=left_open(20, 5)),
    silent("KAF324", "the broker waits for records", **polls(300, 0.5, latency_ms=500.0)),
    silent("KAF324", "each fetch brings a record", **polls(300, 0.01, records=range(300))),
    silent("KAF324", "a start", **polls(100, 0.01)),
    silent("KAF324", "five times a second", **polls(300, 0.2)),
    silent(
        "KAF342", "an election of four seconds",
        kafka_partitions=[leads(0, 2, 4), leads(2, -1, 5), leads(6, 3, 6)],
        exchanges=asks(1, 0, *(2 + n / 2 for n in range(9)), 20, 40),
    ),
    silent(
        "KAF342", "nobody asks again",
        kafka_partitions=[leads(0, 2, 4), leads(2, -1, 5)], exchanges=asks(1, 0, 2, 30, 60),
    ),
    silent(
        "KAF342", "who asks was told of a leader, by a broker that knows more",
        kafka_partitions=[leads(0, 2, 4), leads(2, -1, 5), leads(2.1, 3, 6)], exchanges=asks(1, 0, *range(2, 50, 4)),
    ),
    silent("KAF325", "a port for each", kafka_brokers=at_one_address(1, 2, 3, apart=1), exchanges=elsewhere(9)),
    silent(
        "KAF325", "one broker coordinates two groups",
        kafka_brokers=at_one_address(1, 1, source="FindCoordinator"), exchanges=elsewhere(9, code=16),
    ),
    silent(
        "KAF325", "an address that went from one broker to the next",
        kafka_brokers=[*at_one_address(1), *(row | {"ts": at(9), "exchange_id": "k0-c9"} for row in at_one_address(2))],
        exchanges=elsewhere(9),
    ),
    silent("KAF341", "one cluster", kafka_brokers=as_clusters("a", "a", "a")),
    silent(
        "KAF341", "two clusters at two addresses",
        kafka_brokers=[*as_clusters("a"), told(9, *HERE, wire_cluster_id="b", server_address="10.1.0.200")],
    ),
    silent("KAF341", "a broker too old to name its cluster", kafka_brokers=[*as_clusters("a"), told(9, *HERE)]),
    silent("KAF321", "as large a request is answered", **over_limit(answered=450_000)),
    silent("KAF321", "a broker that goes down closes its connections, whatever they carry", **over_limit(size=900)),
    silent("KAF321", "twice only", **over_limit(2)),
    silent("KAF321", "the server takes its time before it closes", **over_limit(asked=-9)),
    silent(
        "KAF314", "connections that the server closes on their only request",
        kafka_connections=[
            row for n in range(30) for row in (
                idle(2 * n, 2 * n, lasts=0.1),
                connection(2 * n + 1, 2 * n + 0.1, lasts=0.1, requests=2, work=1, closed_by="server",
                           last_operation="Produce", last_status="unanswered"),
            )
        ],
    ),
    silent(
        "KAF312", "the right password at the second try", kafka_authentications=[login(0, 0), login(1, 1, True)],
    ),
    silent(
        "KAF312", "the right one in the end",
        kafka_authentications=[*(login(n, n) for n in range(4)), login(5, 5, True)],
    ),
    silent(
        "KAF313", "a topic that is being made",
        exchanges=[asked(n, n / 10) for n in range(4)],
        kafka_partitions=[topic(0.1, "orders", 3), topic(0.5, "orders")],
    ),
    silent(
        "KAF313", "a topic that is there in the end",
        exchanges=[asked(n, n / 10) for n in range(8)],
        kafka_partitions=[topic(0.1, "orders", 3), topic(1.5, "orders")],
    ),
    silent(
        "KAF314", "three connections for each of six consumers",
        kafka_connections=[connection(n, n * 1.5, 30.0) for n in range(18)],
    ),
    silent(
        "KAF314", "many long connections of one name",
        kafka_connections=[connection(n, n, 40.0, work=4000) for n in range(30)],
    ),
    silent(
        "KAF314", "connections that never get to work",
        kafka_connections=[idle(n, n, lasts=0.2, requests=3) for n in range(30)],
    ),
    silent(
        "KAF314", "an operator's tool in a loop",
        kafka_connections=[connection(n, n, 0.4, requests=3, work=0, others=1) for n in range(30)],
    ),
    silent(
        "KAF315", "one refusal for each of a hundred partitions",
        exchanges=[asked(n, n / 1000, "Produce", 6) for n in range(100)],
    ),
    silent(
        "KAF315", "ten a second", exchanges=[asked(n, n / 10, "OffsetFetch", 25) for n in range(160)],
    ),
]  # fmt: skip
