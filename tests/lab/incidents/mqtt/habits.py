"""Q9, whose content differs: one client that changes its habit while its peers keep theirs."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.lab.clients import mqtt
from tests.lab.incidents.mqtt.catalogue import fault
from tests.lab.incidents.mqtt.incident import Incident
from tests.lab.incidents.told import accusing, called, saying

Change = Callable[[str, str, int], mqtt.Step]
VALUES, CHANGED_AT = 50, 20


def value(topic: str, device: str, number: int, **more: object) -> mqtt.Step:
    """Return what a device of the fleet sends."""
    payload = json.dumps({"device": device, "seq": number, "temp": 20 + number % 7})
    return mqtt.publish(topic, 1, **{"payload": payload, "pause_s": 0.4, **more})


def fleet_of_four(it: Incident, topic: str, change: Change) -> list[str]:
    """Let four devices send values; the first connects again with new firmware, which CHANGEs what it sends."""
    it.subscriber("five", it.names.client(), (f"{topic}/#", 1))
    names = [it.names.client() for _ in range(4)]
    for host, device in zip(("one", "two", "three", "four"), names, strict=True):
        own = f"{topic}/{device}/temp"
        plain = [value(own, device, n) for n in range(VALUES)]
        if device == names[0]:
            continue
        it.follow(host, device, *plain, mqtt.DISCONNECT)
    own = f"{topic}/{names[0]}/temp"
    it.follow("one", names[0], *(value(own, names[0], n) for n in range(CHANGED_AT)), mqtt.DISCONNECT).finish()
    it.seconds(0.5, 1)
    changed = [change(own, names[0], n) for n in range(CHANGED_AT, VALUES)]
    it.follow("one", names[0], *changed, mqtt.DISCONNECT).finish(90)
    return names


@fault()
def leading_slash(it: Incident) -> None:
    """New firmware of one device publishes with a slash before the topic: its fleet's subscriber gets nothing more."""
    topic = it.names.topic()
    names = fleet_of_four(it, topic, lambda own, device, n: value(f"/{own}", device, n))
    it.ask(
        "Q9",
        "a topic with a leading slash",
        it.who("one", names[0]),
        [
            saying(
                called(names[0]),
                [f"/{topic}", "slash", "new topic", "other topic", "nobody"],
                ["slash", "nobody", "no subscri", "differ", "instead", "change", "not subscribed", "other"],
            )
        ],
        [accusing(*names[1:])],
    )


@fault()
def broken_json(it: Incident) -> None:
    """New firmware of one device sends payloads that end too early: they are no JSON any more."""
    topic = it.names.topic()

    def cut(own: str, device: str, number: int) -> mqtt.Step:
        return value(own, device, number, payload=json.dumps({"device": device, "seq": number, "temp": 21})[:-6])

    names = fleet_of_four(it, topic, cut)
    it.ask(
        "Q9",
        "payloads that are no JSON",
        it.who("one", names[0]),
        [saying(called(names[0], f"{topic}/{names[0]}/temp"), ["JSON"])],
        [accusing(*names[1:])],
    )


@fault()
def retains_now(it: Incident) -> None:
    """New firmware of one device sets RETAIN on each value."""
    topic = it.names.topic()
    names = fleet_of_four(it, topic, lambda own, device, n: value(own, device, n, retain=True))
    it.ask(
        "Q9",
        "RETAIN since an update",
        it.who("one", names[0]),
        [saying(called(names[0], f"{topic}/{names[0]}/temp"), ["retain"])],
        [accusing(*names[1:])],
    )


@fault()
def quicker_now(it: Incident) -> None:
    """New firmware of one device sends ten times as often as before and as its peers."""
    topic = it.names.topic()
    names = fleet_of_four(it, topic, lambda own, device, n: value(own, device, n, count=10, pause_s=0.04))
    it.ask(
        "Q9",
        "a rate that rose at an update",
        it.who("one", names[0]),
        [
            saying(
                called(names[0], f"{topic}/{names[0]}/temp"),
                [
                    "rate",
                    "per second",
                    "/s",
                    "as often",
                    "times (as|more)",
                    "more often",
                    "identical|same payload|repeat",
                ],
            )
        ],
        [accusing(*names[1:])],
    )
