"""Q6, who ended it, and with what pending."""

from __future__ import annotations

from tests.lab import firewall
from tests.lab.clients import mqtt
from tests.lab.incidents.mqtt.catalogue import fault
from tests.lab.incidents.mqtt.incident import Incident
from tests.lab.incidents.told import accusing, called, saying
from tests.lab.mosquitto import PORT
from tests.lab.processes import LabError


@fault()
def gives_up(it: Incident) -> None:
    """A client on a long line gives up before CONNACK can be there, each time after the same wait."""
    topic, client_id = it.names.topic(), it.names.client()
    it.subscriber("two", it.names.client(), (f"{topic}/#", 1))
    it.far("one", 1100)
    # The handshake and the login take a round trip each: 4.4 s.
    options = {"connectTimeout": 3500, "reconnectPeriod": 1000}
    steps = (mqtt.publish(f"{topic}/v", 1, payload="on"), mqtt.STAY)
    it.follow("one", client_id, *steps, library="node", options=options)
    it.seconds(28, 29)
    address = it.hosts["one"].address
    wordings = [
        "gave up",
        "gives up",
        "timeout",
        "timed out",
        "closed .*before",
        "before .*(CONNACK|answer)",
        "too short",
    ]
    it.ask(
        "Q6",
        "a client that gives up before the answer",
        it.who("one", client_id),
        [saying(called(client_id, address), wordings)],
        sides=("client", "network"),
    )


@fault()
def ping_behind_data(it: Incident) -> None:
    """A subscriber on a slow line gives up, as PINGRESP waits behind the pictures that are sent to it."""
    topic, reader, writer = it.names.topic(), it.names.client(), it.names.client()
    words = ("tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "250kbit", "burst", "4kb", "limit", "3000000")
    filters = (mqtt.subscribe((f"{topic}/#", 0)), mqtt.KEEP_COMING)
    it.start("switch", *words_on_port(it, "one", words)).finish()
    settings = {"keep_alive": 3, "reconnect_s": 1, "clean": False, "version": 4}
    process = it.follow("one", reader, *filters, library="paho", **settings)
    process.wait_for_event("subscribed")
    pictures = mqtt.publish(f"{topic}/picture", 0, size=60_000, count=16, pause_s=1.0)
    it.follow("two", writer, pictures, mqtt.idle(6), mqtt.DISCONNECT).finish(90)
    if not process.named_events("disconnected"):
        raise LabError("the subscriber has not given up")
    wordings = ["keep.?alive", "PINGRESP", "gave up", "gives up", "slow (link|line|path|network)", "waits? behind"]
    it.ask(
        "Q6",
        "a keep alive that is too short for a slow line",
        it.who("one", reader),
        [saying(called(reader), wordings)],
        sides=("client", "network"),
    )


def words_on_port(it: Incident, host: str, words: tuple[str, ...]) -> tuple[str, ...]:
    """Return tc's words for the switch's port that a host is plugged into."""
    others = [one for one in it.hosts if one != "switch"]
    return tuple(f"port{others.index(host)}" if word == "eth0" else word for word in words)


@fault()
def half_dead(it: Incident) -> None:
    """A firewall forgets one of its connections; its client publishes into nothing, its keep alive is an hour."""
    topic, device, reader = it.names.topic(), it.names.client(), it.names.client()
    it.subscriber("two", reader, (f"{topic}/#", 1))
    fine = it.names.client()
    for host, client_id in (("one", device), ("three", fine)):
        values = [mqtt.publish(f"{topic}/{client_id}", 0, payload=f"n{n}", pause_s=0.5) for n in range(80)]
        it.follow(host, client_id, *values, mqtt.DISCONNECT, keep_alive=3600)
    it.seconds(5, 7)
    ports = firewall.local_ports(it.hosts["one"], PORT)
    with firewall.dropping(it.hosts["broker"], it.hosts["one"].address, ports=ports, directions=("ingress",)):
        it.seconds(24, 26)
    wordings = [
        "retransm",
        "path",
        "never confirm",
        "not confirm",
        "unacknowledged",
        "no ACK",
        "dead",
        "does not arrive",
        "sent again",
    ]
    # What the server's TCP never had is not lost on its way to the subscriber.
    not_delivered = f"(?i)^(?!.*(?:{'|'.join(wordings)})).*did not reach client (?:{'|'.join(called(reader))})"
    it.ask(
        "Q6",
        "a dead path in one direction",
        it.who("one", device),
        [saying(called(device, it.hosts["one"].address), wordings)],
        [accusing(fine), not_delivered],
        sides=("network",),
    )
