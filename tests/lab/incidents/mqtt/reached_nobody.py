"""Q1, what does not move although it should: messages that were taken and reach nobody, or not all."""

from __future__ import annotations

from tests.lab.clients import mqtt
from tests.lab.incidents.mqtt.brokers import MOSQUITTO, Wanted
from tests.lab.incidents.mqtt.catalogue import fault
from tests.lab.incidents.mqtt.incident import Incident
from tests.lab.incidents.mqtt.sessions import EXPIRY
from tests.lab.incidents.told import accusing, called, saying
from tests.lab.mosquitto import User

SECRET = "plant/secret"  # what the user of `denied_quietly` may not publish
SMALL_PORT = 1884


@fault()
def filter_lost(it: Incident) -> None:
    """A subscriber comes back with one of its two filters; messages for the other go on."""
    topic, reader, writer = it.names.topic(), it.names.client(), it.names.client()
    both = mqtt.subscribe((f"{topic}/order/#", 1), (f"{topic}/cancel/#", 1))
    values = [
        mqtt.publish(f"{topic}/{('order', 'cancel')[n % 2]}/{n % 5}", 1, payload=f"n{n}", pause_s=0.2)
        for n in range(120)
    ]
    it.follow("two", writer, *values, mqtt.DISCONNECT)
    it.follow("one", reader, both, mqtt.idle(it.rng.uniform(7, 9)), mqtt.DISCONNECT).finish()
    it.seconds(0.5, 1)
    it.follow("one", reader, mqtt.subscribe((f"{topic}/order/#", 1)), mqtt.idle(14), mqtt.DISCONNECT).finish()
    it.ask(
        "Q1",
        "a filter is missing after a reconnect",
        it.who("one", reader),
        [saying(called(reader), called(f"{topic}/cancel"), ["filter", "subscri"])],
    )


@fault()
def comes_back_deaf(it: Incident) -> None:
    """The server is restarted; a subscriber connects again by itself and forgets to subscribe again."""
    topic, deaf, good, writer = it.names.topic(), it.names.client(), it.names.client(), it.names.client()
    steps = (mqtt.subscribe((f"{topic}/#", 1)), mqtt.KEEP_COMING)
    it.follow("one", deaf, *steps, library="paho", reconnect_s=1, keep_alive=20).wait_for_event("subscribed")
    it.subscriber("three", good, (f"{topic}/#", 1))
    values = [mqtt.publish(f"{topic}/order", 1, payload=f"order {n}", pause_s=0.3) for n in range(50)]
    it.follow("two", writer, *values[:15], mqtt.DISCONNECT).finish()
    it.broker.stop()
    it.seconds(1, 2)
    it.broker.start()
    it.seconds(2, 3)
    it.subscriber("three", good, (f"{topic}/#", 1))
    it.follow("two", writer, *values, mqtt.DISCONNECT).finish()
    it.ask(
        "Q1",
        "no subscription after a reconnect",
        it.who("one", deaf),
        [saying(called(deaf), ["subscri", "filter"])],
        [accusing(good)],
    )
    it.truth["cluster_wide"] = True


@fault(Wanted(kinds=MOSQUITTO))
def qos0_lasting(it: Incident) -> None:
    """A subscriber keeps its session, but its subscription has QoS 0: what comes while it is away is lost."""
    topic, reader, good, writer = it.names.topic(), it.names.client(), it.names.client(), it.names.client()
    version = it.version()
    settings = {"clean": False, "version": version, **({"properties": EXPIRY} if version == 5 else {})}
    values = [mqtt.publish(f"{topic}/alarm", 1, payload=f"alarm {n}", pause_s=0.25) for n in range(90)]
    it.follow("two", writer, *values, mqtt.DISCONNECT)
    for _ in range(3):
        for host, client_id, qos in (("one", reader, 0), ("three", good, 1)):
            steps = (mqtt.subscribe((f"{topic}/#", qos)), mqtt.idle(1.5), mqtt.DISCONNECT)
            it.follow(host, client_id, *steps, **settings).finish()
        it.seconds(1, 2)
    it.ask(
        "Q1",
        "QoS 0 in a session that lasts",
        it.who("one", reader),
        [saying(called(reader), ["QoS 0", "lost", "missed", "never got", "away"])],
        [accusing(good)],
    )


@fault(Wanted(kinds=MOSQUITTO, users=(User("gate", "right", forbidden=(SECRET,)),)))
def denied_quietly(it: Incident) -> None:
    """A server acknowledges messages of 3.1.1 on a topic that its access rules forbid, and sends them to nobody."""
    reader, writer, good = it.names.client(), it.names.client(), it.names.client()
    it.subscriber("one", reader, ("plant/#", 1))
    values = [mqtt.publish(SECRET, 1, payload=f"n{n}", pause_s=0.5) for n in range(24)]
    fine = [mqtt.publish("plant/open", 1, payload=f"n{n}", pause_s=0.5) for n in range(24)]
    it.follow("three", good, *fine, mqtt.DISCONNECT)
    it.follow("two", writer, *values, mqtt.DISCONNECT, version=4).finish()
    it.seconds(12, 13)
    wordings = [
        "never (reach|arriv|deliver|sent|came|got)",
        "not (delivered|forwarded|sent)",
        "no delivery",
        "nobody",
        "access",
        "without (being )?deliver",
        "did not (reach|get)",
    ]
    it.ask(
        "Q1",
        "denied by access rules, and acknowledged",
        {"topic": SECRET, **it.who("two", writer)},
        [saying(called(SECRET, writer), wordings)],
        [saying(called("plant/open"), wordings)],
        sides=("server",),
    )


@fault(Wanted(kinds=MOSQUITTO, settings=(f"listener {SMALL_PORT}", "max_qos 0")))
def granted_less(it: Incident) -> None:
    """A listener grants QoS 0 where 1 was asked for: a subscriber with a session loses what comes while it is away."""
    topic, reader, writer = it.names.topic(), it.names.client(), it.names.client()
    values = [mqtt.publish(f"{topic}/order", 1, payload=f"order {n}", pause_s=0.25) for n in range(80)]
    it.follow("two", writer, *values, mqtt.DISCONNECT)
    for _ in range(4):
        steps = (mqtt.subscribe((f"{topic}/#", 1)), mqtt.idle(1.5), mqtt.DISCONNECT)
        endpoint = f"{it.hosts['broker'].address}:{SMALL_PORT}"
        it.follow("one", reader, *steps, clean=False, version=4, endpoint=endpoint).finish()
        it.seconds(2, 3)
    it.ask(
        "Q1",
        "the server grants less than asked for",
        it.who("one", reader),
        [saying(called(reader), ["grant", "QoS 0", "lower", "downgrad", "lost", "missed"])],
    )


@fault(Wanted(kinds=MOSQUITTO))
def crashes_on_message(it: Incident) -> None:
    """A subscriber ends at the first message of its session, again and again; those behind it wait."""
    topic, reader, writer = it.names.topic(), it.names.client(), it.names.client()
    wanted = mqtt.subscribe((f"{topic}/#", 1))
    settings = {"clean": False, "version": 4, "library": "paho"}
    it.follow("one", reader, wanted, mqtt.DISCONNECT, **settings).finish()
    values = [mqtt.publish(f"{topic}/doc", 1, payload=f"document {n}", pause_s=0.1) for n in range(8)]
    it.follow("two", writer, *values, mqtt.DISCONNECT).finish()
    for _ in range(6):
        it.follow("one", reader, mqtt.receive(1), manual_ack=True, **settings).finish()
        it.seconds(1.5, 3)
    wordings = ["again", "redeliver", "each (connection|time)", "times", "never acknowledg", "not acknowledg", "DUP"]
    it.ask(
        "Q1",
        "a message at which its reader ends",
        it.who("one", reader),
        [saying(called(reader), wordings)],
        [accusing(writer)],
        sides=("client",),
    )
