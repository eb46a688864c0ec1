"""Bridges: one that is not let in, two whose prefixes grow at each round."""

from __future__ import annotations

import time

from tests.lab.clients import mqtt
from tests.lab.incidents.mqtt.brokers import MOSQUITTO, Place, Wanted
from tests.lab.incidents.mqtt.catalogue import fault
from tests.lab.incidents.mqtt.incident import Incident
from tests.lab.incidents.mqtt.told_words import LOST, REFUSED, REPEATED
from tests.lab.incidents.told import called, saying
from tests.lab.mosquitto import User

GATE = User("gate", "right")


def hub(it: Incident, *bridges: tuple[str, list[str]]) -> str:
    """Start a second broker with bridges of these names and lines to the first; return where its clients find it."""
    lines: list[str] = []
    for name, more in bridges:
        lines += [f"connection {name}", f"address {it.broker.endpoint}", f"remote_clientid {name}",
                  f"local_clientid local-{name}", "bridge_protocol_version mqttv311", "try_private false",
                  "notifications false", "restart_timeout 2", *more]  # fmt: skip
        it.clients.append(it.who("hub", name))
    place = Place(it.hosts["hub"], it.directory, Wanted(kinds=MOSQUITTO, settings=tuple(lines)), it.rng)
    place.start()
    it.stack.callback(place.stop)
    time.sleep(3)
    return place.endpoint


@fault(Wanted(kinds=MOSQUITTO, users=(GATE,)))
def bridge_not_let_in(it: Incident) -> None:
    """A plant's broker has a wrong password for its bridge: it comes again and again, and its messages pile up."""
    topic, bridge, writer = it.names.topic(), it.names.client(), it.names.client()
    there = hub(it, (bridge, [f"topic {topic}/# out 1", f"remote_username {GATE.name}", "remote_password old"]))
    it.subscriber("one", it.names.client(), (f"{topic}/#", 1))
    values = [mqtt.publish(f"{topic}/line", 1, payload=f"n{n}", pause_s=0.5) for n in range(140)]
    it.follow("two", writer, *values, mqtt.DISCONNECT, endpoint=there).finish(90)
    it.ask("Q4", "a bridge that is not let in", it.who("hub", bridge),
           [saying(called(bridge, it.hosts["hub"].address), [*REFUSED, *LOST])])  # fmt: skip


@fault(Wanted(kinds=MOSQUITTO))
def prefix_grows(it: Incident) -> None:
    """Two bridges add a prefix on the way out and none on the way in: each round makes a topic longer by a level."""
    topic, ahead, back = it.names.topic(), it.names.client(), it.names.client()
    there = hub(it, (ahead, [f'topic # out 0 "" {topic}/']), (back, [f"topic {topic}/# in 0"]))
    it.subscriber("one", it.names.client(), (f"{topic}/#", 0))
    for number in range(5):
        value = mqtt.publish(f"cell/{number}", 0, payload=f"n{number}")
        it.follow("two", it.names.client(), value, mqtt.DISCONNECT, endpoint=there).finish()
        it.seconds(3, 4)
    it.ask("Q9", "topics grow by bridges", {"any": [it.who("hub", ahead), it.who("hub", back)], **it.who("hub", ahead)},
           [saying([*called(ahead, back, it.hosts["hub"].address), f"{topic}/{topic}/"],
                   ["loop", "round", "circle", "comes back", "grow", "longer", "level", "prefix", "again", "bridge",
                    "same (message|payload)"])])  # fmt: skip


@fault(Wanted(kinds=MOSQUITTO))
def bridged_twice(it: Incident) -> None:
    """A plant's broker has an old and a new bridge for the same topics: each message arrives here twice."""
    topic, old, new = it.names.topic(), it.names.client(), it.names.client()
    there = hub(it, (old, [f"topic {topic}/# out 1"]), (new, [f"topic {topic}/+/press out 1"]))
    it.subscriber("one", it.names.client(), (f"{topic}/#", 1))
    values = [mqtt.publish(f"{topic}/{n % 3}/press", 1, payload=f"stroke {n}", pause_s=0.5) for n in range(60)]
    it.follow("two", it.names.client(), *values, mqtt.DISCONNECT, endpoint=there).finish(90)
    either = [*called(old, new, it.hosts["hub"].address), rf"{topic}/\d/press"]
    it.ask("Q5", "two bridges for the same topics", {"any": [it.who("hub", old), it.who("hub", new)]},
           [saying(either, [*REPEATED, "both", "two"])])  # fmt: skip
