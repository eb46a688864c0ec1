"""A broker that comes back, and the many clients that come back to it: all at once, or one after the other."""

from __future__ import annotations

import time
from collections.abc import Sequence

from tests.lab.clients import mqtt
from tests.lab.incidents.mqtt.brokers import MOSQUITTO, Wanted
from tests.lab.incidents.mqtt.catalogue import fault
from tests.lab.incidents.mqtt.incident import HOSTS, Incident
from tests.lab.mosquitto import User
from tests.lab.processes import LabError, Process

MANY = (40, 51)  # clients: so many, and fewer than that
# A login costs Mosquitto's only thread some tenths of a second, as a careful administrator wants it to.
# OWASP, Password Storage Cheat Sheet, asks for at least 210,000 of PBKDF2-HMAC-SHA512.
COSTLY = User("gate", "right", iterations=210_000)
FAILED_LEAST = 10  # connections in vain; of fewer nobody would speak
Pauses = tuple[float, float]  # the shortest and the longest before a client connects again, in s


def fleet(it: Incident, pauses_s: Sequence[Pauses], keep_alive: int) -> list[Process]:
    """Start a client for each of PAUSES_S, spread over all hosts, and wait until they are connected."""
    topic, version, library = it.names.topic(), it.version(), it.rng.choice(mqtt.FLEETS)
    running = []
    for number, host in enumerate(HOSTS):
        clients = {it.names.client(): pauses for pauses in pauses_s[number :: len(HOSTS)]}
        it.clients += [it.who(host, client_id) for client_id in clients]
        wanted = {"version": version, "keep_alive": keep_alive, "topic": topic, "clients": clients, "apart_s": 2,
                  "publish_s": it.rng.uniform(2, 4), **it.broker.login}  # fmt: skip
        running.append((it.start(host, *mqtt.fleet_command(library, it.broker.endpoint, wanted)), len(clients)))
    it.libraries.append(library)
    for process, number in running:
        process.wait_for_event("connected", number, timeout_s=120)
    return [process for process, _ in running]


def restart(it: Incident, away_s: Pauses) -> float:
    """Let the broker be away for a while; return when it was there again."""
    it.broker.stop()
    it.seconds(*away_s)
    it.broker.start()
    return time.time()


def in_vain(running: Sequence[Process], since: float) -> int:
    """Return how many connections were not let in from SINCE on, by what the clients say."""
    return sum(one["at"] >= since for process in running for one in process.named_events("in_vain"))


@fault(Wanted(kinds=MOSQUITTO, users=(COSTLY,)))
def reconnect_herd(it: Incident) -> None:
    """A broker whose logins are slow comes back, and dozens of clients come at once and again and again."""
    pause_s = it.rng.uniform(0.1, 0.6)
    running = fleet(it, [(pause_s, pause_s)] * it.rng.randrange(*MANY), keep_alive=it.rng.randrange(3, 5))
    it.seconds(2, 4)
    back = restart(it, (4, 8))
    it.seconds(20, 24)
    if (failed := in_vain(running, back)) < FAILED_LEAST:
        raise LabError(f"no herd: {failed} connections in vain")
    it.blame_server(
        "a herd of clients that come back at once", "NET104",
        allowed=("NET103", "TCP103", "TCP104", "MQT103", "MQT104", "MQT114"),
    )  # fmt: skip


@fault(Wanted(kinds=MOSQUITTO))
def spread_return(it: Incident) -> None:
    """A broker comes back, and dozens of clients come one after the other, as their growing pauses let them."""
    shortest = [it.rng.uniform(1, 8) for _ in range(it.rng.randrange(*MANY))]
    running = fleet(it, [(one, 60.0) for one in shortest], keep_alive=it.rng.randrange(20, 40))
    it.seconds(2, 4)
    back = restart(it, (4, 8))
    it.seconds(20, 24)
    if failed := in_vain(running, back):
        raise LabError(f"not all were let in: {failed} connections in vain")
    it.healthy("clients that come back one after the other")
