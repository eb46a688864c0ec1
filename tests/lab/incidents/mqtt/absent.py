"""Q1 and Q4, who is not there: absent members of a share, a session that a tool wipes out, a site not let through."""

from __future__ import annotations

from typing import Any

from tests.lab import firewall
from tests.lab.clients import mqtt
from tests.lab.incidents.mqtt.brokers import MOSQUITTO, Wanted
from tests.lab.incidents.mqtt.catalogue import fault
from tests.lab.incidents.mqtt.front_doors import TLS, TLS_PORT, secured
from tests.lab.incidents.mqtt.incident import Incident
from tests.lab.incidents.mqtt.misfits import values
from tests.lab.incidents.mqtt.told_words import LOST, SILENT
from tests.lab.incidents.told import accusing, called, saying
from tests.lab.processes import Process
from tests.support.tls_certificates import Authority


@fault(Wanted(kinds=MOSQUITTO))
def share_of_the_absent(it: Incident) -> None:
    """A worker of a shared subscription with a session ends for good: a third of the jobs waits in its session."""
    topic, writer, names = it.names.topic(), it.names.client(), [it.names.client() for _ in range(3)]
    steps = (mqtt.subscribe((f"$share/packing/{topic}/job/#", 1)), mqtt.STAY, mqtt.DISCONNECT)
    running = []
    for host, name in zip(("one", "two", "three"), names, strict=True):
        running.append(it.follow(host, name, *steps, clean=False, version=4, library=("paho", "go")))
        running[-1].wait_for_event("subscribed")
    jobs = [mqtt.publish(f"{topic}/job/{n}", 1, payload=f"job {n}", pause_s=0.4) for n in range(110)]
    sends = it.follow("four", writer, *jobs, mqtt.DISCONNECT)
    it.seconds(8, 10)
    running[0].kill()
    sends.finish(90)
    it.ask("Q1", "the share of a worker that is gone", it.who("one", names[0]),
           [saying([*called(names[0]), r"\$share/packing"], [*LOST, *SILENT, "session", "gone", "share", "absent",
           "offline", "wait"])], [accusing(*names[1:], writer)])  # fmt: skip


@fault()
def tool_wipes_session(it: Incident) -> None:
    """An engineer looks with a consumer's client id while that is away: its session and what waits there are gone."""
    topic, consumer, good = it.names.topic(), it.names.client(), it.names.client()
    orders = [mqtt.publish(f"{topic}/order", 1, payload=f"order {n}", pause_s=0.4) for n in range(100)]
    it.follow("three", it.names.client(), *orders, mqtt.DISCONNECT, version=4)
    steps = (mqtt.subscribe((f"{topic}/order", 1)), mqtt.STAY, mqtt.DISCONNECT)
    settings: dict[str, Any] = {"clean": False, "version": 4, "library": ("paho", "go")}

    def come() -> list[Process]:
        return [it.follow(host, name, *steps, **settings) for host, name in (("one", consumer), ("two", good))]

    first = come()
    it.seconds(7, 8)
    for one in first:
        one.ask_to_end()
    it.seconds(6, 7)
    it.tool("sub", "five", consumer, "-t", f"{topic}/test", "-q", "1", "-W", "4")
    it.seconds(8, 9)
    second = come()
    it.seconds(12, 13)
    for one in second:
        one.ask_to_end()
    it.seconds(1, 2)
    address = it.hosts["five"].address
    wordings = [*LOST, "session", "clean", "two (addresses|hosts|machines)", "another (address|host|machine)"]
    it.ask("Q1", "a session that a tool wipes out", {"any": [it.who("five", consumer), it.who("one", consumer)]},
           [saying(called(consumer, address), wordings)], [accusing(good)])  # fmt: skip


@fault(Wanted(kinds=MOSQUITTO))
def device_certificate_expired(it: Incident) -> None:
    """A server asks its devices for certificates; that of one has expired, and it is sent away at each handshake."""
    topic, device, good = it.names.topic(), it.names.client(), it.names.client()
    issuer = Authority("Plant CA", it.directory / "keys")
    old, new = issuer.issue("pump-7", expires_days=-1.5), issuer.issue("fan-2", expires_days=90)
    authority = secured(it, 200, "require_certificate true\ntls_version tlsv1.2", issuer)
    it.subscriber("five", it.names.client(), (f"{topic}/#", 1))
    plain = values(it, "four", f"{topic}/old", 80, 0.4)
    for number in range(14):
        for host, name, paths in (("one", device, old), ("two", good, new)):
            words = ("-t", f"{topic}/{name}", "-m", f"n{number}", "-q", "1", "--cafile", authority, "-p", str(TLS_PORT),
                     "--cert", paths.certificate, "--key", paths.key, "--tls-version", "tlsv1.2")  # fmt: skip
            it.tool("pub", host, name, *words)
        it.seconds(2, 2.5)
    address = it.hosts["one"].address
    it.ask("Q4", "a device's certificate that has expired", {"address": address, "client_id": device},
           [saying(called(address), TLS)], [accusing(plain, good, it.hosts["two"].address)])  # fmt: skip


@fault()
def site_not_let_through(it: Incident) -> None:
    """A new site is not in the firewall's list: nothing answers its attempts to connect, others are served."""
    topic, names = it.names.topic(), [it.names.client() for _ in range(3)]
    it.subscriber("two", it.names.client(), (f"{topic}/#", 1))
    good = values(it, "three", f"{topic}/old", 90, 0.4)
    with firewall.dropping(it.hosts["broker"], it.hosts["one"].address, share=1.0):
        for number in range(5):
            for name in names:
                it.tool("pub", "one", name, "-t", f"{topic}/{name}", "-m", f"n{number}", "-q", "1")
                it.seconds(0.3, 0.6)
            it.seconds(5, 6)
    address = it.hosts["one"].address
    wordings = ["SYN", "unanswered", "no answer", "without (an )?answer", "never (open|connect|establish|answered)",
                "refus", "not (open|connect|answer|establish)", "attempt", "in vain", "retransmi", "unreachable",
                "firewall", "again", "handshake", "fail"]  # fmt: skip
    it.ask("Q4", "a site that the firewall does not let through", {"address": address},
           [saying(called(address), wordings)], [accusing(good)], sides=("client", "network", "server"))  # fmt: skip
