"""Q5, what is repeated without effect."""

from __future__ import annotations

from tests.lab.clients import mqtt
from tests.lab.incidents.mqtt.catalogue import fault
from tests.lab.incidents.mqtt.incident import Incident
from tests.lab.incidents.told import accusing, called, saying


@fault()
def subscribes_per_message(it: Incident) -> None:
    """A program subscribes to the same filter before each message that it sends."""
    topic, client_id, good = it.names.topic(), it.names.client(), it.names.client()
    steps = []
    for number in range(60):
        steps += [
            mqtt.subscribe((f"{topic}/reply", 1)),
            mqtt.publish(f"{topic}/ask", 1, payload=f"q{number}", pause_s=0.3),
        ]
    it.subscriber("two", good, (f"{topic}/ask", 1))
    it.follow("one", client_id, *steps, mqtt.DISCONNECT).finish(90)
    it.ask(
        "Q5",
        "a SUBSCRIBE for each message",
        it.who("one", client_id),
        [saying(called(client_id), ["SUBSCRIBE", "subscribe[sd]? (again|\\d+ times)", "repeat"])],
        [accusing(good)],
    )


@fault()
def retained_flood(it: Incident) -> None:
    """A screen connects anew for each look and gets all retained values each time."""
    topic, screen, writer = it.names.topic(), it.names.client(), it.names.client()
    values = [
        mqtt.publish(f"{topic}/{n}/config", 1, payload=f'{{"n": {n}, "unit": "bar"}}', retain=True) for n in range(150)
    ]
    it.follow("two", writer, *values, mqtt.DISCONNECT).finish(90)
    for _ in range(14):
        steps = (mqtt.subscribe((f"{topic}/#", 0)), mqtt.receive(150), mqtt.DISCONNECT)
        it.follow("one", screen, *steps).finish()
        it.seconds(0.2, 0.8)
    it.ask(
        "Q5",
        "all retained values at each connect",
        it.who("one", screen),
        [saying(called(screen), ["retain"])],
        [accusing(writer)],
    )


@fault()
def one_filter_many(it: Incident) -> None:
    """One machine opens a connection per worker, each with the same filter: each message is sent to it 20 times."""
    topic, writer, base = it.names.topic(), it.names.client(), it.names.client()
    for number in range(20):
        it.tool("sub", "one", f"{base}-{number}", "-t", f"{topic}/#", "-q", "1")
    it.subscriber("three", it.names.client(), (f"{topic}/#", 1))
    it.seconds(1, 2)
    values = [mqtt.publish(f"{topic}/price", 1, payload=f"price {n}", pause_s=0.2) for n in range(90)]
    it.follow("two", writer, *values, mqtt.DISCONNECT).finish()
    address = it.hosts["one"].address
    it.ask(
        "Q5",
        "many connections of one host with one filter",
        {"address": address},
        [
            saying(
                [*called(address), *called(base), f"{base}-\\d"],
                ["filter", "copies", "each message", "same subscription"],
            )
        ],
    )


@fault()
def copiers(it: Incident) -> None:
    """Two clients copy between two topics, each what the other has copied: a message goes round for good."""
    topic, here, there = it.names.topic(), it.names.client(), it.names.client()
    for host, client_id, source, target in (("one", here, "raw", "clean"), ("two", there, "clean", "raw")):
        copies = {f"{topic}/{source}/": f"{topic}/{target}/"}
        steps = (mqtt.subscribe((f"{topic}/{source}/#", 0)), mqtt.STAY, mqtt.DISCONNECT)
        it.follow(host, client_id, *steps, library="paho", copies=copies, work_s=0.05).wait_for_event("subscribed")
    it.subscriber("four", it.names.client(), (f"{topic}/clean/#", 0))
    it.follow("three", it.names.client(), mqtt.publish(f"{topic}/raw/7", 0, payload="4711"), mqtt.DISCONNECT).finish()
    it.seconds(16, 18)
    it.ask(
        "Q9",
        "a message goes round between two copiers",
        {"clients": [it.who("one", here), it.who("two", there)]},
        [
            saying(
                [*called(here), *called(there), *called(f"{topic}/raw/7"), *called(f"{topic}/clean/7")],
                ["loop", "round", "circle", "comes back", "same (message|payload)"],
            )
        ],
    )


@fault()
def published_twice(it: Incident) -> None:
    """A gateway sends each reading twice, as two messages; its peers send each once."""
    topic = it.names.topic()
    it.subscriber("five", it.names.client(), (f"{topic}/#", 1))
    names = [it.names.client() for _ in range(4)]
    for host, client_id in zip(("one", "two", "three", "four"), names, strict=True):
        twice = 2 if client_id == names[0] else 1
        values = [
            mqtt.publish(f"{topic}/{client_id}", 1, payload=f"seq {n} value {n % 7}.5", pause_s=0.35 / twice)
            for n in range(50)
            for _ in range(twice)
        ]
        it.follow(host, client_id, *values, mqtt.DISCONNECT)
    it.seconds(22, 24)
    it.ask(
        "Q9",
        "each message twice",
        it.who("one", names[0]),
        [
            saying(
                called(names[0], f"{topic}/{names[0]}"),
                ["twice", "two times", "again", "duplicat", "identical", "same (payload|message|value)", "repeat"],
            )
        ],
        [accusing(*names[1:])],
    )
