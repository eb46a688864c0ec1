"""Scenarios of the rules about connections of all protocols."""

from __future__ import annotations

from typing import Any

from tests.analyser.detectors.scenarios.build import Row, at, tcp_flow
from tests.analyser.detectors.scenarios.build_mongo import command, failed
from tests.analyser.detectors.scenarios.build_mqtt import connection
from tests.analyser.detectors.scenarios.kafka_connections import login
from tests.analyser.detectors.scenarios.scenario import Scenario, fires, silent


def alive(**more: Any) -> Row:
    """A connection on which both sides are heard to the end."""
    row = {
        "client_ttl": 64, "server_ttl": 64, "ts_last_from_client": at(60), "ts_last_from_server": at(60),
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
    row = {"reset_by": "server", "closed_by": "server", "ts_closed": at(seconds), "reset_ttl": ttl}
    return alive(flow_id="reset", ts_last_from_server=at(10), **(row | more))


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


NET_FIRES: list[Scenario] = [
    fires("NET103", "warning", "a device that may not connect", mqtt_connections=refused_connects(40, 0.2)),
    fires("NET103", "warning", "a wrong password of MongoDB", mongo_commands=wrong_passwords(25, 0.3)),
    fires("NET101", "warning", "sent eight times after twenty seconds", flows=[alive(), dead()]),
    fires("NET101", "warning", "a reset from nearer than the server", flows=[alive(), reset(60, 310)]),
    fires(
        "NET103", "warning", "logins ten times a second",
        kafka_authentications=[login(n, n / 10, cluster_id=None) for n in range(30)],
    ),
]  # fmt: skip

NET_NEAR_MISSES: list[Scenario] = [
    silent("NET103", "devices behind one address, each with pauses", mqtt_connections=[
        row for n in range(20) for row in refused_connects(4, 10, f"sensor-{n}", n * 0.1)]),
    silent("NET103", "an application that waits longer each time", mongo_commands=wrong_passwords(25, 0.05, 1.2)),
    silent("NET101", "a pause of ten seconds", flows=[alive(), dead(10.0)]),
    silent("NET101", "sent three times", flows=[alive(), dead(sends=3)]),
    silent("NET101", "the server is heard nowhere else either", flows=[alive(ts_last_from_server=at(12)), dead()]),
    silent("NET101", "confirmed in the end", flows=[alive(), dead(unheard_sends_to_server=None)]),
    silent("NET101", "the server itself resets an idle connection", flows=[alive(), reset(64, 310)]),
    silent("NET101", "a reset amid traffic", flows=[alive(), reset(60, 10.5)]),
    silent("NET103", "a client that waits a second", ("TCP104", "warning"), flows=refusals(30, 0.98)),
    silent("NET103", "nineteen attempts", ("TCP104", "warning"), flows=refusals(19, 0.1)),
    silent("NET103", "pauses that grow", ("TCP104", "warning"), flows=refusals(25, 0.05, 1.15)),
]  # fmt: skip
