"""Q8, what grows or is wasted: retained topics, subscriptions, payloads."""

from __future__ import annotations

from tests.lab.clients import mqtt
from tests.lab.incidents.mqtt.catalogue import fault
from tests.lab.incidents.mqtt.incident import Incident
from tests.lab.incidents.told import accusing, called, saying

GROWS = [
    "grow",
    "more and more",
    "new topic",
    "each message",
    "(for|n)ever\\b",
    "increas",
    "never (read|clear|unsubscrib)",
    "accumul",
    "pile",
    "rises",
    "once each",
]


@fault()
def topic_per_message(it: Incident) -> None:
    """A program retains each result under a topic of its own: the server keeps more and more of them."""
    topic, client_id = it.names.topic(), it.names.client()
    it.subscriber("two", it.names.client(), (f"{topic}/#", 0))
    values = [
        mqtt.publish(
            f"{topic}/result/{it.rng.randrange(16**10):010x}", 1, payload=f"done {n}", retain=True, pause_s=0.06
        )
        for n in range(260)
    ]
    it.follow("one", client_id, *values, mqtt.DISCONNECT).finish(90)
    it.ask(
        "Q8",
        "a retained topic for each message",
        it.who("one", client_id),
        [saying(called(client_id), ["retain", "topics"], [*GROWS, "\\d{3} (retained|topic|message)"])],
    )


@fault()
def filter_per_request(it: Incident) -> None:
    """A program subscribes to a reply topic of its own for each request and never unsubscribes."""
    topic, client_id, server = it.names.topic(), it.names.client(), it.names.client()
    it.subscriber("two", server, (f"{topic}/ask", 1))
    steps = []
    for number in range(80):
        steps += [
            mqtt.subscribe((f"{topic}/reply/{it.rng.randrange(16**8):08x}", 1)),
            mqtt.publish(f"{topic}/ask", 1, payload=f"q{number}", pause_s=0.2),
        ]
    it.follow("one", client_id, *steps, mqtt.DISCONNECT).finish(90)
    it.ask(
        "Q8",
        "subscriptions grow",
        it.who("one", client_id),
        [saying(called(client_id), ["subscri", "filter"], [*GROWS, "\\d\\d (filter|subscri|times|topic)"])],
        [accusing(server)],
    )


@fault()
def payload_grows(it: Incident) -> None:
    """A device sends its whole history with each value: its messages grow, those of its peers do not."""
    topic = it.names.topic()
    it.subscriber("five", it.names.client(), (f"{topic}/#", 0))
    names = [it.names.client() for _ in range(3)]
    for host, client_id in zip(("one", "two", "three"), names, strict=True):
        values = [
            mqtt.publish(f"{topic}/{client_id}", 1, size=60 + (n * 90 if client_id == names[0] else n % 5), pause_s=0.3)
            for n in range(75)
        ]
        it.follow(host, client_id, *values, mqtt.DISCONNECT)
    it.seconds(25, 27)
    it.ask(
        "Q8",
        "payloads grow",
        it.who("one", names[0]),
        [saying(called(names[0], f"{topic}/{names[0]}"), ["grow", "larger", "increas", "bigger", "size"])],
        [accusing(*names[1:])],
    )
