"""Q4, who was refused, and can it heal: passwords, names and features that a server does not take."""

from __future__ import annotations

import json

from tests.lab.clients import mqtt, python_command
from tests.lab.incidents.mqtt.brokers import MOSQUITTO, Wanted
from tests.lab.incidents.mqtt.catalogue import fault
from tests.lab.incidents.mqtt.incident import Incident
from tests.lab.incidents.mqtt.told_words import LOST, REFUSED
from tests.lab.incidents.told import accusing, called, saying
from tests.lab.mosquitto import WEBSOCKET_PORT, User
from tests.lab.processes import LabError, Process

CONTROL = "$CONTROL/dynamic-security/v1"
OPERATOR, SENSOR = User("ops", "right", operates=True), User("sensor", "early")
CLOSED = "plant/closed"


def operator(it: Incident, host: str, client_id: str, *commands: dict[str, object]) -> None:
    """Change who may do what, as an operator does it: by a message to the server."""
    words = ("-t", CONTROL, "-m", json.dumps({"commands": commands}), "-q", "1", "-u", OPERATOR.name)
    it.tool("pub", host, client_id, *words, "-P", OPERATOR.password).finish()


def habit(it: Incident, host: str, work: str, client_id: str, topic: str, endpoint: str | None = None) -> Process:
    """Start the client with habits of its own."""
    it.clients.append(it.who(host, client_id))
    address, port = (endpoint or it.broker.endpoint).split(":")
    return it.start(host, *python_command("mqtt_habit_client", address, port, work, client_id, topic))


@fault(Wanted(kinds=MOSQUITTO, users=(OPERATOR, SENSOR)))
def password_rotated(it: Incident) -> None:
    """An operator changes a password; a device that was let in before keeps to the old one, every two seconds."""
    topic, device, reader = it.names.topic(), it.names.client(), it.names.client()
    it.subscriber("two", reader, (f"{topic}/#", 1))
    steps = (mqtt.publish(f"{topic}/on", 1, payload="on"), mqtt.KEEP_COMING)
    login = {"user": SENSOR.name, "password": SENSOR.password}
    held = it.follow("one", device, *steps, library="paho", reconnect_s=2, keep_alive=10, **login)
    held.wait_for_event("published")
    it.seconds(8, 10)
    operator(it, "four", it.names.client(),
             {"command": "setClientPassword", "username": SENSOR.name, "password": "late"})  # fmt: skip
    it.seconds(28, 32)
    if len(held.named_events("connected")) < 6:
        raise LabError("the device has not tried again")
    it.ask(
        "Q4",
        "an old password after a change",
        it.who("one", device),
        [saying(called(device), REFUSED)],
        [accusing(reader)],
    )


@fault(Wanted(kinds=MOSQUITTO))
def no_name_but_session(it: Incident) -> None:
    """Firmware asks for a session that lasts and gives no client id: it is refused for good."""
    topic, address = it.names.topic(), it.hosts["one"].address
    it.subscriber("two", it.names.client(), (f"{topic}/#", 1))
    habit(it, "one", "no_id", "", topic).finish(90)
    it.ask("Q4", "no client id with a lasting session", {"address": address}, [saying(called(address), REFUSED)])


@fault(Wanted(kinds=MOSQUITTO, users=(User("gate", "right", forbidden=(CLOSED,)),)))
def refused_and_back(it: Incident) -> None:
    """A program ends as its only subscription is refused, and its supervisor starts it again at once."""
    reader, writer = it.names.client(), it.names.client()
    values = [mqtt.publish("plant/open", 1, payload=f"n{n}", pause_s=0.5) for n in range(50)]
    it.follow("two", writer, *values, mqtt.DISCONNECT)
    for _ in range(22):
        it.tool("sub", "one", reader, "-t", CLOSED, "-q", "1")
        it.seconds(0.9, 1.2)
    it.ask(
        "Q4",
        "started again after each refusal",
        it.who("one", reader),
        [saying(called(reader), [*REFUSED, "again", "connections", "connects"])],
        [accusing(writer)],
    )


@fault(Wanted(kinds=MOSQUITTO, settings=("retain_available false",)))
def retain_not_there(it: Incident) -> None:
    """A server was set up without retained messages; a device sends one and is thrown out, again and again."""
    topic, device, good = it.names.topic(), it.names.client(), it.names.client()
    it.subscriber("two", it.names.client(), (f"{topic}/#", 1))
    values = [mqtt.publish(f"{topic}/level", 1, payload=f"n{n}", pause_s=0.7) for n in range(40)]
    it.follow("three", good, *values, mqtt.DISCONNECT)
    birth = mqtt.publish(f"{topic}/state", 1, payload="on", retain=True, wait=False)
    settings = {"library": "paho", "reconnect_s": 2, "clean": False, "version": it.version()}
    it.follow("one", device, birth, mqtt.KEEP_COMING, **settings)
    it.seconds(26, 30)
    it.ask(
        "Q4",
        "RETAIN where the server has none",
        it.who("one", device),
        [saying(called(device), [*REFUSED, "retain", "again"])],
        [accusing(good)],
    )


@fault(Wanted(kinds=MOSQUITTO))
def plain_on_websocket(it: Incident) -> None:
    """A device speaks plain MQTT to the port for WebSocket, again and again."""
    topic, device = it.names.topic(), it.names.client()
    it.subscriber("two", it.names.client(), (f"{topic}/#", 1))
    habit(it, "one", "connects", device, topic, f"{it.hosts['broker'].address}:{WEBSOCKET_PORT}").finish(120)
    it.ask(
        "Q4",
        "plain MQTT on the port for WebSocket",
        it.who("one", device),
        [saying(called(device, it.hosts["one"].address), [*REFUSED, "WebSocket", "HTTP", "9001", "no answer"])],
    )


@fault()
def template_topic(it: Incident) -> None:
    """A device publishes to a topic with + in it, as its template was not filled in; the server closes each time."""
    topic, device = it.names.topic(), it.names.client()
    it.subscriber("two", it.names.client(), (f"{topic}/#", 1))
    habit(it, "one", "wildcard", device, topic).finish(120)
    it.ask(
        "Q4",
        "a wildcard in a topic's name",
        it.who("one", device),
        [saying(called(device), [*REFUSED, "wildcard", "\\+", "topic", "again"])],
    )


@fault()
def alias_forgotten(it: Incident) -> None:
    """Firmware of 5.0 uses its topic alias after a reconnect, where the server does not know it any more."""
    topic, device = it.names.topic(), it.names.client()
    it.subscriber("two", it.names.client(), (f"{topic}/#", 1))
    habit(it, "one", "alias", device, f"{topic}/flow").finish(120)
    it.ask("Q4", "a topic alias of an earlier connection", it.who("one", device),
           [saying(called(device), [*REFUSED, *LOST, "alias"])])  # fmt: skip
