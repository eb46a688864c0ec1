"""Scenarios of the rules about connections of all protocols."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.analyser.engine.rules.scenarios.build import Row, at, exchange, remark, tcp_flow
from tests.analyser.engine.rules.scenarios.build_mongo import command, failed
from tests.analyser.engine.rules.scenarios.build_mqtt import connection
from tests.analyser.engine.rules.scenarios.kafka_connections import login
from tests.analyser.engine.rules.scenarios.scenario import Scenario, fires, silent


def alive(**more: Any) -> Row:
    """A connection on which both sides are heard to the end."""
    row = {
        "client_ttl": 64, "server_ttl": 64, "client_ttl_lowest": 64, "server_ttl_lowest": 64, "client_ttl_last": 64,
        "server_ttl_last": 64, "client_packets": 40, "server_packets": 40,
        "ts_last_from_client": at(60), "ts_last_from_server": at(60),
        "bytes_to_server": 5000, "acked_by_server": 5000, "bytes_to_client": 5000, "acked_by_client": 5000,
    }  # fmt: skip
    return tcp_flow(**({"flow_id": "alive"} | row | more))


def dead(idle_s: float = 20.0, sends: int = 8, **more: Any) -> Row:
    """A connection whose server is not heard any more when the client sends after a pause."""
    row = {
        "ts_last_from_server": at(10), "ts_last_from_client": at(40), "acked_by_server": 4000,
        "unheard_sends_to_server": sends, "ts_unheard_to_server": at(10 + idle_s), "retransmitted_segments": sends - 1,
    }  # fmt: skip
    return alive(flow_id="dead", client_port=50_001, **(row | more))


def reset(ttl: int, seconds: float, **more: Any) -> Row:
    """A connection that ends with a reset in the server's name."""
    row = {
        "reset_by": "server",
        "closed_by": "server",
        "ts_closed": at(seconds),
        "reset_ttl": ttl,
        "server_reset_ttl": ttl,
    }
    return alive(flow_id="reset", ts_last_from_server=at(10), **(row | more))


MONGO = {"protocol": "mongo", "client_address": "10.3.0.1", "server_address": "10.3.0.9", "server_port": 27017}


def pooled(**more: Any) -> dict[str, list[Row]]:
    """A pool of two connections to a server of MongoDB: one is busy, the other one is dead after twenty seconds."""
    asked = answered(30.0, "dead", lasts=None, operation="find", client_id="billing", **MONGO)
    return {
        "flows": [alive(**MONGO), dead(**MONGO, **more)],
        "exchanges": [
            *(answered(5.0 + n, "alive", operation="find", client_id="billing", **MONGO) for n in range(50)),
            asked,
        ],
        "expert_infos": [
            remark("dead", seconds, "tcp", "retransmission", direction="client_to_server")
            for seconds in (30.2, 30.6, 31.4, 33.0)
        ],
        "mongo_commands": [
            command(10.0, flow="dead", exchange_id="before", app_name="billing"),
            command(30.0, took_ms=None, flow="dead", exchange_id=asked["exchange_id"], app_name="billing"),
        ],
    }


RETRIES = (120.0, 120.4, 121.2, 122.8, 126.0, 132.4)
SERVED = (120.2, 121.3, 122.9, 130.0)  # answers of which three come in the second of a try
SIDES = {"client_address": "10.1.0.1", "server_address": "10.1.0.100", "server_port": 9092}


def answered(seconds: float, flow: str, address: str = "10.1.0.1", **more: Any) -> Row:
    """A request of a client at this address that the server of `dead` answers at once."""
    return exchange(flow, seconds, **(SIDES | {"client_address": address, "client_id": f"{flow}-1"} | more))


def alone(
    served: tuple[float, ...] = SERVED, own: tuple[float, ...] = (86.0, 100.0), **more: Any
) -> dict[str, list[Row]]:
    """A client with one connection that is dead after 20 s without a packet, and one at another address.

    served: when the server answers the other one. own: when it answered the client itself. more: of the answers.
    """
    lost = dead(ts_first=at(min(own) - 1), ts_last_from_server=at(100), ts_unheard_to_server=at(120))
    return {
        "flows": [lost, alive(flow_id="other", client_address="10.1.0.2", ts_last_from_server=at(150))],
        "expert_infos": [
            remark("dead", seconds, "tcp", "retransmission", direction="client_to_server") for seconds in RETRIES
        ],
        "exchanges": [
            *(answered(seconds, "dead", "10.1.0.1") for seconds in own),
            *(answered(seconds, "other", "10.1.0.2", **more) for seconds in served),
        ],
    }


def amid_work(served: tuple[float, ...] = SERVED, sends: int = 8) -> dict[str, list[Row]]:
    """The same without a pause before."""
    rows = alone(served)
    (lost, *others) = rows["flows"]
    lost |= {"ts_last_from_server": at(119.5), "unheard_sends_to_server": sends}
    return rows | {"flows": [lost, *others]}


def refusals(count: int, pause_s: float, growth: float = 1.0) -> list[Row]:
    """Attempts of one client that are refused."""
    found, seconds = [], 0.0
    for number in range(count):
        found.append(tcp_flow(f"r{number}", handshake="refused", ts_first=at(seconds), first_packet=number + 1))
        seconds += pause_s * growth**number
    return found


def refused_connects(count: int, pause_s: float, client_id: str = "sensor-1", start: float = 0) -> list[Row]:
    """CONNECTs that are answered with "not authorised"."""
    return [
        connection(f"{client_id}-{n}", start + n * pause_s, client_id=client_id, error_code=5, user_name="fleet")
        for n in range(count)
    ]


def wrong_passwords(count: int, pause_s: float, growth: float = 1.0) -> list[Row]:
    """SCRAM logins that fail in their second step."""
    found, seconds = [], 1.0
    for n in range(count):
        found.append(command(seconds, "saslStart", flow=f"w{n}", user_name="report"))
        found.append(failed(seconds + 0.01, 18, "saslContinue", flow=f"w{n}"))
        seconds += pause_s * growth**n
    return found


def behind_one_address(attempts: int, pause_s: float, ids: int = 4) -> dict[str, list[Row]]:
    """Clients that were connected when the server went away, and whose attempts are refused from then on."""
    connected = [tcp_flow(f"c{n}", ts_first=at(-60), ts_last=at(-0.1)) for n in range(ids)]
    sides = {"client_address": "10.1.0.1", "server_address": "10.1.0.100", "server_port": 9092}
    names = [exchange(f"c{n}", -50 + n, "Fetch", client_id=f"billing-{n}", **sides) for n in range(ids)]
    return {"flows": [*connected, *refusals(attempts, pause_s)], "exchanges": names}


def drifting_apart(rounds: int, pause_s: float, clients: int = 4) -> dict[str, list[Row]]:
    """The same of clients that begin in step and are spread over their pause at the end."""
    rows = behind_one_address(rounds * clients, 1.0, clients)
    away = rounds * clients
    tried = [
        row | {"ts_first": at(pause_s * (place // clients + (place % clients) / clients * place / away))}
        for place, row in enumerate(rows["flows"][clients:])
    ]
    return rows | {"flows": [*rows["flows"][:clients], *tried]}


def behind_one_address_cut(attempts: int, pause_s: float, **connected: Any) -> dict[str, list[Row]]:
    """The same in a capture that begins late: of their connections only the first shows whose it is."""
    rows = behind_one_address(attempts, pause_s)
    flows = [row | connected | {"handshake": None} if row["ts_first"] < at(0) else row for row in rows["flows"]]
    return {"flows": flows, "exchanges": rows["exchanges"][:1]}


def ids_made_anew(count: int, pause_s: float, spread: float = 0.0) -> list[Row]:
    """Refused CONNECTs with a client id for each. spread: 0 of one program, 1 of a fleet that comes by chance."""
    draw, found, seconds = Random(count), [], 0.0
    for _ in range(count):
        found += refused_connects(1, 1, f"tmp-{draw.randrange(10**9):x}", seconds)
        seconds += pause_s * (1 - spread + spread * draw.expovariate(1))
    return found


def restart(back: list[Row], away_s: float = 5.0, clients: int = 30) -> list[Row]:
    """Connections of many addresses that end together; then `back`, whose times count from when the server is back."""
    before = [
        tcp_flow(f"o{n}", client_address=f"10.1.1.{n}", ts_first=at(-60), ts_closed=at(n / 100), closed_by="server",
                 ts_last=at(n / 100))
        for n in range(clients)
    ]  # fmt: skip
    return [*before, *(row | {"ts_first": row["ts_first"] + round(away_s * 1e9)} for row in back)]


def herd(served: int, vain: int, **how: Any) -> list[Row]:
    """So many connections in three seconds, the first of which is served. how: what becomes of the others."""
    every = served + vain
    rows = [tcp_flow(f"h{n}", client_address=f"10.1.1.{n}", ts_first=at(n * 3 / every)) for n in range(every)]
    failed = set(range(1, every, max(every // vain, 1))) if vain else set()
    return [row | how if place in failed else row for place, row in enumerate(rows)]


def late_herd() -> list[Row]:
    """Forty connections that get bytes of the server, half of them only when they are closed."""
    return herd(20, 20, closed_by="client", ts_closed=at(8))


def logins(vain: int, waits_s: float, **more: Any) -> list[Row]:
    """Those in vain among herd(20, 20): a CONNACK for each every half second, after the client has closed."""
    return [
        connection(f"h{n}", address=f"10.1.1.{n}", client_id=f"sensor-{n}", server_address="10.1.0.100",
                   server_port=9092, ts=at(5 + n * 3 / 40), ts_closed=at(5 + n * 3 / 40 + waits_s), closed_by="client",
                   ts_response=at(9 + n / 2), **({"client_messages": 1} | more))
        for n in range(1, 2 * vain, 2)
    ]  # fmt: skip


REFUSED: Row = {"handshake": "refused", "bytes_to_client": 0, "bytes_to_server": 0, "data_segments": 0}
NOT_SERVED: Row = {"bytes_to_client": 0, "closed_by": "client", "ts_closed": at(40)}

NET_FIRES: list[Scenario] = [
    Scenario("a full backlog when the server is back", "NET104", {"flows": restart(herd(30, 20, **REFUSED))},
             frozenset({("NET104", "warning"), ("TCP104", "info")})),
    fires("NET104", "warning", "logins that are answered when their clients have given up",
          flows=restart(late_herd()), mqtt_connections=logins(20, 3.0)),
    fires("NET104", "warning", "connections that nobody serves", flows=restart(herd(40, 20, **NOT_SERVED))),
    fires(
        "NET104", "warning", "the server says that it is busy",
        flows=restart(herd(30, 30)), mqtt_connections=[
            connection(f"h{n}", address=f"10.1.1.{n}", error_code=0x89, version="5.0", client_id=f"sensor-{n}",
                       ts=at(5 + n / 20), server_address="10.1.0.100", server_port=9092)
            for n in range(1, 60, 2)
        ],
    ),
    fires("NET103", "warning", "four devices behind one address, each below the limit", mqtt_connections=[
        row for n in range(4) for row in refused_connects(10, 0.3, f"sensor-{n}", n * 0.07)]),
    Scenario(
        "four clients behind one address that do not wait", "NET103", behind_one_address(80, 0.05),
        frozenset({("NET103", "warning"), ("TCP104", "info")}),
    ),
    Scenario(
        "four clients behind one address that try in step first, and then in turn", "NET103", drifting_apart(30, 0.2),
        frozenset({("NET103", "warning"), ("TCP104", "info")}),
    ),
    Scenario(
        "one of four clients behind one address is known, and none waits", "NET103", behind_one_address_cut(80, 0.05),
        frozenset({("NET103", "warning"), ("TCP104", "info")}),
    ),
    Scenario(
        "four connections of MongoDB that may be one program's", "NET103",
        behind_one_address_cut(80, 0.2, protocol="mongo"), frozenset({("NET103", "warning"), ("TCP104", "warning")}),
    ),
    fires("NET103", "info", "a client id made anew for each attempt", mqtt_connections=ids_made_anew(40, 0.2)),
    fires("NET103", "warning", "a device that may not connect", mqtt_connections=refused_connects(40, 0.2)),
    fires("NET103", "warning", "a wrong password of MongoDB", mongo_commands=wrong_passwords(25, 0.3)),
    fires("NET101", "warning", "sent eight times after twenty seconds", flows=[alive(), dead()]),
    fires("NET101", "warning", "one connection alone, while others are answered", **alone()),
    fires("NET101", "warning", "one connection alone that survived shorter pauses",
          **alone(own=(86.0, 100.0, 10.0, 25.0, 40.0, 55.0, 70.0))),
    fires("NET101", "warning", "in the middle of its work, while others are answered", **amid_work()),
    fires("NET101", "warning", "in the middle of its work, while the server sends on", flows=[
        dead(0.0, ts_last_from_server=at(12))]),
    fires("NET101", "warning", "a pooled connection of MongoDB, sent eight times while the pool goes on", **pooled()),
    fires("NET101", "warning", "a reset in the name of a server of MongoDB, from nearer than it", flows=[
        alive(**MONGO), reset(60, 310, **MONGO)]),
    fires("NET101", "warning", "a reset from nearer than the server", flows=[alive(), reset(60, 310)]),
    fires("NET101", "warning", "a reset with an IP id of its own", flows=[
        alive(), reset(60, 310, server_reset_step=30_000)]),
    fires("NET101", "warning", "a reset to both sides, of which only the client's is told from its own", flows=[
        alive(), reset(64, 310, client_reset_ttl=255, ts_last_from_client=at(12))]),
    fires(
        "NET103", "warning", "logins ten times a second",
        kafka_authentications=[login(n, n / 10, cluster_id=None) for n in range(30)],
    ),
]  # fmt: skip

NET_NEAR_MISSES: list[Scenario] = [
    silent("NET104", "clients that send and leave without a wait for CONNACK", flows=restart(late_herd()),
           mqtt_connections=logins(20, 3.0, client_messages=3)),
    silent("NET104", "clients that close at once", flows=restart(late_herd()), mqtt_connections=logins(20, 0.2)),
    silent("NET104", "all come at once and are served", flows=restart(herd(60, 0))),
    silent("NET104", "a few are in vain", ("TCP104", "info"), flows=restart(herd(60, 8, **REFUSED))),
    silent("NET104", "attempts before the server is back", ("TCP104", "info"), flows=restart(
        [*(row | {"ts_first": at(-3 + n / 10)} for n, row in enumerate(herd(1, 20, **REFUSED))), *herd(40, 0)])),
    silent("NET104", "credentials are refused when it is back", ("MQT111", "warning"), flows=restart(herd(60, 0)),
           mqtt_connections=[
               connection(f"h{n}", address=f"10.1.1.{n}", error_code=5, client_id=f"sensor-{n}", ts=at(5 + n / 20))
               for n in range(1, 40, 2)]),
    silent(
        "NET103", "four clients behind one address, each of which waits more than a second", ("TCP104", "warning"),
        **behind_one_address(80, 0.3),
    ),
    silent(
        "NET103", "four clients in step that wait", ("TCP104", "warning"), **drifting_apart(30, 0.9),
    ),
    silent(
        "NET103", "one of four clients behind one address is known, and each waits", ("TCP104", "warning"),
        **behind_one_address_cut(80, 0.3),
    ),
    silent("NET103", "devices that come back, each once", mqtt_connections=ids_made_anew(40, 0.2, 1)),
    silent("NET103", "devices behind one address, each with pauses", mqtt_connections=[
        row for n in range(20) for row in refused_connects(4, 10, f"sensor-{n}", n * 0.1)]),
    silent("NET103", "an application that waits longer each time", mongo_commands=wrong_passwords(25, 0.05, 1.2)),
    silent("NET101", "a pause of ten seconds", flows=[alive(), dead(10.0)]),
    silent("NET101", "sent three times", flows=[alive(), dead(sends=3)]),
    silent("NET101", "the server is heard nowhere else either", flows=[alive(ts_last_from_server=at(12)), dead()]),
    silent("NET101", "one connection alone, nobody is answered while it tries", **alone((110.0, 123.5, 140.0))),
    silent("NET101", "one connection alone, others are answered at two of its tries", **alone((120.2, 120.3, 126.1))),
    silent("NET101", "one connection alone, another server answers", **alone(server_address="10.1.0.101")),
    silent("NET101", "one connection alone that survived a pause of nineteen seconds",
           **alone(own=(86.0, 100.0, 10.0, 29.0, 43.0, 57.0, 71.0))),
    silent("NET101", "in the middle of its work, sent five times", **amid_work(sends=5)),
    silent("NET101", "in the middle of its work, others are answered at two of its tries", **amid_work((120.2, 126.1))),
    silent("NET101", "in the middle of its work, and what the server sent had been on its way", flows=[
        dead(0.0, ts_last_from_server=at(10.5))]),
    silent("NET101", "in the middle of its work, confirmed in the end", flows=[
        dead(0.0, ts_last_from_server=at(12), unheard_sends_to_server=None)]),
    silent("NET101", "a server that sends in vain to a client with one connection", **alone() | {
        "flows": [dead(unheard_sends_to_server=None, ts_unheard_to_server=None, unheard_sends_to_client=8,
                       ts_unheard_to_client=at(120), ts_last_from_client=at(100), ts_last_from_server=at(140))]}),
    silent("NET101", "confirmed in the end", flows=[alive(), dead(unheard_sends_to_server=None)]),
    silent("NET101", "the server itself resets an idle connection", flows=[alive(), reset(64, 310)]),
    silent("NET101", "two packets of the server tell no hop limit", flows=[reset(60, 310, server_packets=2)]),
    silent("NET101", "the IP id of the reset is the server's next", flows=[
        alive(), reset(60, 310, server_reset_step=1)]),
    silent("NET101", "another connection of the server has that hop limit", flows=[
        alive(server_ttl_lowest=60), reset(60, 310)]),
    silent("NET101", "a server whose packets take two ways", flows=[
        alive(), reset(62, 310, server_ttl_lowest=60), reset(62, 310, server_ttl=60, server_ttl_lowest=60)]),
    silent("NET101", "a pooled connection that is closed after maxIdleTimeMS", flows=[
        alive(**MONGO),
        alive(**MONGO, flow_id="idle", client_port=50_001, ts_last_from_server=at(10), closed_by="client",
              ts_closed=at(310))]),
    silent("NET101", "a pooled connection that is used again and answered", **pooled(
        unheard_sends_to_server=None, ts_unheard_to_server=None)),
    silent("NET101", "a reset amid traffic", flows=[alive(), reset(60, 10.5)]),
    silent("NET103", "a client that waits a second", ("TCP104", "warning"), flows=refusals(30, 0.98)),
    silent("NET103", "nineteen attempts", ("TCP104", "warning"), flows=refusals(19, 0.1)),
    silent("NET103", "pauses that grow", ("TCP104", "warning"), flows=refusals(25, 0.05, 1.15)),
]  # fmt: skip
