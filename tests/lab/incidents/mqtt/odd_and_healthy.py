"""Work at which nothing is wrong, and which looks odd."""

from __future__ import annotations

from tests.lab.clients import mqtt
from tests.lab.incidents.mqtt.brokers import MOSQUITTO, Wanted
from tests.lab.incidents.mqtt.catalogue import fault
from tests.lab.incidents.mqtt.incident import Incident
from tests.lab.incidents.mqtt.logins import habit
from tests.lab.incidents.mqtt.unreached import lasting

HOSTS = ("one", "two", "three", "four")


@fault()
def sleepy_sensors(it: Incident) -> None:
    """Sensors on batteries wake every few seconds, connect, send a value and leave in order; nothing is wrong."""
    topic, names = it.names.topic(), [it.names.client() for _ in range(4)]
    it.subscriber("five", it.names.client(), (f"{topic}/#", 1))
    for number in range(9):
        for host, name in zip(HOSTS, names, strict=True):
            words = ("-t", f"{topic}/{name}", "-m", f"{number * 7 % 10}.{number}", "-q", "1")
            it.tool("pub", host, name, *words).finish()
            it.seconds(0.4, 0.9)
        it.seconds(2, 3)
    it.healthy("sensors that sleep between their values")


@fault(Wanted(kinds=MOSQUITTO))
def roams(it: Incident) -> None:
    """A phone with a kept session changes its network twice and comes back from another address; nothing is wrong."""
    topic, phone, writer, settings = it.names.topic(), it.names.client(), it.names.client(), lasting(it)
    values = [mqtt.publish(f"{topic}/chat", 1, payload=f"hello {n}", pause_s=0.4) for n in range(80)]
    it.follow("three", writer, *values, mqtt.DISCONNECT)
    for host in ("one", "two", "one"):
        steps = (mqtt.subscribe((f"{topic}/#", 1)), mqtt.idle(it.rng.uniform(8, 10)), mqtt.DISCONNECT)
        it.follow(host, phone, *steps, **settings).finish()
        it.seconds(0.3, 0.8)
    it.seconds(4, 5)
    it.healthy("a phone that changes its network")


@fault(Wanted(in_flight=20))
def firmware_update(it: Incident) -> None:
    """A device gets its new firmware in 150 pieces, which are nearly all that passes; nothing is wrong."""
    topic, device, server = it.names.topic(), it.names.client(), it.names.client()
    version = it.version()
    steps = (mqtt.subscribe((f"{topic}/update/#", 1)), mqtt.STAY, mqtt.DISCONNECT)
    it.follow("one", device, *steps, version=version, library=("paho", "go")).wait_for_event("subscribed")
    it.subscriber("three", it.names.client(), (f"{topic}/state/#", 1))
    values = [mqtt.publish(f"{topic}/state/{device}", 1, payload=f"at {n} %", pause_s=0.5) for n in range(60)]
    it.follow("two", it.names.client(), *values, mqtt.DISCONNECT)
    pieces = [mqtt.publish(f"{topic}/update/{n}", 1, size=15_000 + n, pause_s=0.15) for n in range(150)]
    it.follow("four", server, *pieces, mqtt.DISCONNECT).finish(90)
    it.healthy("a firmware update")


@fault()
def no_alarms(it: Incident) -> None:
    """Control rooms wait for alarms, and there are none for more than a minute but one test; nothing is wrong."""
    topic = it.names.topic()
    for host in ("one", "two", "three"):
        it.subscriber(host, it.names.client(), (f"{topic}/alarm/#", 1), keep_alive=15)
    panel = it.names.client()
    steps = (mqtt.idle(32), mqtt.publish(f"{topic}/alarm/test", 1, payload="test"), mqtt.idle(32), mqtt.DISCONNECT)
    it.follow("four", panel, *steps, keep_alive=15).finish(90)
    it.healthy("nothing to tell")


@fault()
def health_checks(it: Incident) -> None:
    """A balancer connects to the server every second and closes at once, to see if it is there; nothing is wrong."""
    topic = it.names.topic()
    it.subscriber("one", it.names.client(), (f"{topic}/#", 1))
    values = [mqtt.publish(f"{topic}/belt", 1, payload=f"{n}", pause_s=0.4) for n in range(80)]
    it.follow("two", it.names.client(), *values, mqtt.DISCONNECT)
    program = (
        "import socket, sys, time\n"
        "for _ in range(34):\n"
        "    socket.create_connection((sys.argv[1], int(sys.argv[2]))).close()\n"
        "    time.sleep(1)\n"
    )
    it.start("hub", "python3", "-c", program, *it.broker.endpoint.split(":")).finish(60)
    it.healthy("a balancer that looks whether the server is there")


@fault()
def sends_what_it_gathered(it: Incident) -> None:
    """A ship without network gathers its readings and sends them all at once when it is back; nothing is wrong."""
    topic, ship = it.names.topic(), it.names.client()
    it.subscriber("two", it.names.client(), (f"{topic}/#", 1))
    others = [mqtt.publish(f"{topic}/harbour", 1, payload=f"level {n % 40}.{n}", pause_s=0.5) for n in range(90)]
    it.follow("three", it.names.client(), *others, mqtt.DISCONNECT)
    number = 0
    for gathered in (0, 150):
        steps = [mqtt.publish(f"{topic}/ship", 1, payload=f'{{"seq": {number + n}}}') for n in range(gathered)]
        steps += [
            mqtt.publish(f"{topic}/ship", 1, payload=f'{{"seq": {number + gathered + n}}}', pause_s=0.5)
            for n in range(22)
        ]
        number += len(steps)
        it.follow("one", ship, *steps, mqtt.DISCONNECT, library="paho").finish(90)
        it.seconds(8, 9)
    it.healthy("what was gathered without network")


@fault()
def taken_out_of_service(it: Incident) -> None:
    """Devices are taken out of service: each clears what it has retained and leaves in order; nothing is wrong."""
    topic, names = it.names.topic(), [it.names.client() for _ in range(3)]
    it.subscriber("five", it.names.client(), (f"{topic}/#", 1))
    for number, (host, name) in enumerate(zip(HOSTS, names, strict=False)):
        states = [f"{topic}/{name}/{what}" for what in ("state", "version", "place")]
        births = [mqtt.publish(one, 1, payload=f"{one[-2:]}{number}", retain=True) for one in states]
        values = [mqtt.publish(f"{topic}/{name}/v", 1, payload=f"n{n}", pause_s=0.5) for n in range(20 + 8 * number)]
        ends = [mqtt.publish(one, 1, payload="", retain=True) for one in states]
        it.follow(host, name, *births, *values, *ends, mqtt.DISCONNECT)
    it.seconds(22, 24)
    it.healthy("devices that are taken out of service")


@fault()
def eager_client(it: Incident) -> None:
    """A client does not wait for CONNACK before it subscribes and publishes, as it may; nothing is wrong."""
    topic, client_id = it.names.topic(), it.names.client()
    it.subscriber("two", it.names.client(), (f"{topic}/#", 1))
    habit(it, "one", "eager", client_id, topic).finish(90)
    it.healthy("a client that does not wait")


@fault()
def far_away_and_well(it: Incident) -> None:
    """Clients on the other side of the world, whose time-outs and windows fit their long line; nothing is wrong."""
    topic, here = it.names.topic(), it.names.client()
    it.far("one", 280)
    it.subscriber("one", it.names.client(), (f"{topic}/#", 1), keep_alive=30)
    values = [mqtt.publish(f"{topic}/ocean", 1, payload=f"n{n}", pause_s=1.4) for n in range(22)]
    it.follow("one", it.names.client(), *values, mqtt.DISCONNECT, keep_alive=30)
    near = [mqtt.publish(f"{topic}/coast", 1, payload=f"n{n}", pause_s=0.4) for n in range(90)]
    it.follow("two", here, *near, mqtt.DISCONNECT).finish(90)
    it.healthy("a long line that suffices")
