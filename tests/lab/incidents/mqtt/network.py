"""The path and the broker's machine: dead, idle, busy, refused again and again."""

from __future__ import annotations

from tests.lab import firewall, net
from tests.lab.clients import mqtt
from tests.lab.incidents.mqtt.brokers import MOSQUITTO, Wanted
from tests.lab.incidents.mqtt.catalogue import fault
from tests.lab.incidents.mqtt.incident import Incident
from tests.lab.mosquitto import PORT, User

DEAD = ("TCP101", "TCP102", "TCP103", "NET101", "MQT103", "MQT105", "MQT115", "MQT114")


@fault()
def dead_path(it: Incident) -> None:
    """What a client sends arrives nowhere any more: its pings are never acknowledged."""
    topic, device = it.names.topic(), it.names.client()
    it.subscriber("one", device, (f"{topic}/#", 1), keep_alive=it.rng.randrange(5, 9))
    it.seconds(4, 6)
    ports = firewall.local_ports(it.hosts["one"], PORT)
    with firewall.dropping(it.hosts["broker"], it.hosts["one"].address, ports=ports):
        it.seconds(20, 25)
    codes = ("MQT104", "NET101", "TCP101", "MQT103")
    it.blame("a dead path", it.who("one", device), *codes, allowed=DEAD, sides=("network",))


@fault()
def idle_dropped(it: Incident) -> None:
    """A firewall forgets a connection that is idle for less than its keep alive."""
    topic, device = it.names.topic(), it.names.client()
    # Longer than what NET101 calls idle; then TCP sends again five times or more before it is over.
    later = (mqtt.idle(it.rng.uniform(16.5, 19)), mqtt.publish(f"{topic}/v", 1, payload="late", pause_s=1), mqtt.STAY)
    process = it.follow("one", device, mqtt.publish(f"{topic}/v", 1, payload="early"), *later, keep_alive=120)
    process.wait_for_event("published")
    it.seconds(1, 2)
    ports = firewall.local_ports(it.hosts["one"], PORT)
    with firewall.dropping(it.hosts["broker"], it.hosts["one"].address, ports=ports):
        it.seconds(36, 40)
    codes = ("NET101", "TCP101", "MQT105")
    it.blame(
        "an idle connection is dropped in between", it.who("one", device), *codes, allowed=DEAD, sides=("network",)
    )


@fault()
def broker_busy(it: Incident) -> None:
    """The broker's process stands still for longer than clients wait for PINGRESP."""
    topic = it.names.topic()
    it.subscriber("one", it.names.client(), (f"{topic}/#", 1), keep_alive=it.rng.randrange(5, 8))
    it.seconds(2, 4)
    it.broker.freeze()
    it.seconds(16, 20)
    it.broker.thaw()
    it.seconds(2, 3)
    it.blame_server(
        "the broker stood still", "MQT104", allowed=("MQT103", "MQT105", "MQT114", "MQT115", "TCP102", "TCP103")
    )


@fault()
def client_gone(it: Incident) -> None:
    """A client's machine loses its power: nobody says goodbye."""
    topic, device, writer = it.names.topic(), it.names.client(), it.names.client()
    process = it.subscriber("one", device, (f"{topic}/#", 1), keep_alive=it.rng.randrange(4, 7))
    it.seconds(1, 2)
    net.unplug(it.hosts["one"])
    process.kill()
    values = [mqtt.publish(f"{topic}/v", 1, payload=f"{n}", pause_s=0.5) for n in range(30)]
    it.follow("two", writer, *values, mqtt.DISCONNECT).finish()
    it.seconds(2, 3)
    net.plug_back(it.hosts["one"])
    codes = ("MQT103", "MQT105", "TCP101")
    it.blame("a client's machine is gone", it.who("one", device), *codes, allowed=DEAD, sides=("client", "network"))


@fault(Wanted(kinds=MOSQUITTO, users=(User("gate", "right"),)))
def no_back_off(it: Incident) -> None:
    """A client with a wrong password that tries again at once."""
    client_id, topic = it.names.client(), it.names.topic()
    it.subscriber("two", it.names.client(), (f"{topic}/#", 1))
    for _ in range(it.rng.randrange(28, 40)):
        words = ("-t", topic, "-m", "v", "-u", "gate", "-P", "wrong")
        it.tool("pub", "one", client_id, *words)
        it.seconds(0.1, 0.35)
    it.blame("retries without back-off", it.who("one", client_id), "NET103", "MQT111", allowed=("MQT122",))


@fault()
def herd(it: Incident) -> None:
    """Clients that try to reconnect without a pause while the broker is away."""
    names, pause_s = [it.names.client() for _ in range(12)], it.rng.choice((0.05, 0.2))
    for number, name in enumerate(names):
        host = ("one", "two", "three")[number % 3]
        it.follow(host, name, mqtt.KEEP_COMING, library="paho", reconnect_s=pause_s, version=4)
    it.seconds(2, 3)
    it.broker.stop()
    it.seconds(5, 8)
    it.broker.start()
    it.seconds(3, 4)
    blamed = {"any": it.clients[-12:], **it.clients[-1]}
    it.blame("reconnects without back-off", blamed, "NET103", "TCP104", allowed=("TCP103", "MQT114", "MQT103"))
    it.truth["cluster_wide"] = True  # the broker was away for all
