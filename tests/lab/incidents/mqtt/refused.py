"""Q4, who was refused, and can it heal."""

from __future__ import annotations

from tests.lab.clients import mqtt
from tests.lab.incidents.mqtt.brokers import MOSQUITTO, Wanted
from tests.lab.incidents.mqtt.catalogue import fault
from tests.lab.incidents.mqtt.incident import Incident
from tests.lab.incidents.told import called, saying
from tests.lab.mosquitto import User

CLOSED = "plant/closed"
REFUSED = ["refus", "den(y|ied)", "not allowed", "not auth", "0x80", "0x87", "135", "128", "reject"]


@fault(Wanted(kinds=MOSQUITTO, users=(User("gate", "right", forbidden=(CLOSED,)),)))
def subscribe_refused(it: Incident) -> None:
    """A subscriber is refused one of its filters and waits for messages that cannot come."""
    reader, writer = it.names.client(), it.names.client()
    steps = (mqtt.subscribe((CLOSED, 1)), mqtt.subscribe(("plant/open", 1)), mqtt.STAY, mqtt.DISCONNECT)
    it.follow("one", reader, *steps, library="paho").wait_for_event("subscribed", 2)
    values = [mqtt.publish("plant/open", 1, payload=f"n{n}", pause_s=0.5) for n in range(30)]
    it.follow("two", writer, *values, mqtt.DISCONNECT).finish()
    it.ask(
        "Q4",
        "a subscription that is refused for good",
        it.who("one", reader),
        [saying(called(reader), called(CLOSED), REFUSED)],
    )


@fault(Wanted(kinds=MOSQUITTO, users=(User("gate", "right", forbidden=(CLOSED,)),)))
def publish_refused(it: Incident) -> None:
    """A publisher of 5.0 is told at each message that it may not, and goes on."""
    writer = it.names.client()
    it.subscriber("one", it.names.client(), ("plant/#", 1))
    values = [mqtt.publish(CLOSED, 1, payload=f"n{n}", pause_s=0.7) for n in range(22)]
    it.follow("two", writer, *values, mqtt.DISCONNECT, version=5, library="paho").finish()
    it.ask(
        "Q4",
        "messages that are refused for good",
        it.who("two", writer),
        [saying(called(writer), called(CLOSED), REFUSED)],
    )


@fault(Wanted(kinds=MOSQUITTO))
def tls_on_plain(it: Incident) -> None:
    """A client is set to TLS and tries the port for plain text again and again."""
    it.subscriber("two", it.names.client(), ("plant/#", 1))
    program = (
        "import socket, ssl, sys, time\n"
        "context = ssl.create_default_context()\n"
        "for _ in range(14):\n"
        "    try:\n"
        "        raw = socket.create_connection((sys.argv[1], int(sys.argv[2])))\n"
        "        context.wrap_socket(raw, server_hostname='broker.example')\n"
        "    except OSError:\n"
        "        time.sleep(1.5)\n"
    )
    it.start("one", "python3", "-c", program, *it.broker.endpoint.split(":")).finish(60)
    address = it.hosts["one"].address
    it.ask("Q4", "TLS on the port for plain text", {"address": address}, [saying(called(address), ["TLS", "SSL"])])
