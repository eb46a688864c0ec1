"""Q9, whose content or habit differs: one device whose program, clock, cache or modem is not as its peers'."""

from __future__ import annotations

import json

from tests.lab.clients import mqtt
from tests.lab.incidents.mqtt.brokers import MOSQUITTO, Wanted
from tests.lab.incidents.mqtt.catalogue import fault
from tests.lab.incidents.mqtt.habits import fleet_of_four, value
from tests.lab.incidents.mqtt.incident import Incident
from tests.lab.incidents.mqtt.logins import habit
from tests.lab.incidents.mqtt.sessions import EXPIRY
from tests.lab.incidents.mqtt.told_words import REPEATED, SILENT
from tests.lab.incidents.told import accusing, called, saying

HOSTS = ("one", "two", "three", "four")
STARTED_MS = 1_795_990_000_000
DIFFERS = ["differ", "unlike", "instead", "change", "peers", "other"]


def reading(device: str, number: int, at_ms: int) -> str:
    """Return what a device measures, and when by its own clock."""
    return json.dumps({"dev": device, "ts": at_ms, "v": round(20 + (number * 7 % 31) / 10 + len(device) / 50, 2)})


@fault()
def empty_level(it: Incident) -> None:
    """New firmware of one device leaves its own name away: it publishes to a topic with an empty level."""
    topic = it.names.topic()
    names = fleet_of_four(it, topic, lambda own, device, n: value(own.replace(device, ""), device, n))
    wordings = ["empty", "//", "level", "new topic", "no longer", "stopp", *DIFFERS]
    it.ask("Q9", "an empty level in a topic", it.who("one", names[0]),
           [saying(called(names[0], f"{topic}//temp"), wordings)], [accusing(*names[1:])])  # fmt: skip


@fault()
def reading_from_cache(it: Incident) -> None:
    """A gateway's cache is not filled any more: it sends the same reading, with the same time, for good."""
    topic, names = it.names.topic(), [it.names.client() for _ in range(4)]
    it.subscriber("five", it.names.client(), (f"{topic}/#", 1))
    version = it.version()
    for host, device in zip(HOSTS, names, strict=True):
        fresh = [min(n, 18) if device == names[0] else n for n in range(80)]
        values = [
            mqtt.publish(f"{topic}/{device}", 1, payload=reading(device, n, STARTED_MS + 500 * n), pause_s=0.5)
            for n in fresh
        ]
        it.follow(host, device, *values, mqtt.DISCONNECT, version=version)
    it.seconds(43, 45)
    wordings = [*REPEATED, "stuck", "frozen", "stale", "does not change", "no new", "constant", *DIFFERS]
    it.ask("Q9", "one reading again and again", it.who("one", names[0]),
           [saying(called(names[0], f"{topic}/{names[0]}"), wordings)], [accusing(*names[1:])])  # fmt: skip


@fault()
def goes_quiet(it: Incident) -> None:
    """The task of one device that measures ends; its network task goes on, so that it pings and says nothing more."""
    topic, names = it.names.topic(), [it.names.client() for _ in range(4)]
    it.subscriber("five", it.names.client(), (f"{topic}/#", 1))
    version = it.version()
    for host, device in zip(HOSTS, names, strict=True):
        number = 24 if device == names[0] else 110
        values = [
            mqtt.publish(f"{topic}/{device}", 1, payload=reading(device, n, STARTED_MS + 500 * n), pause_s=0.5)
            for n in range(number)
        ]
        it.follow(host, device, *values, mqtt.STAY, mqtt.DISCONNECT, version=version, keep_alive=6)
    it.seconds(52, 56)
    it.ask("Q1", "a device publishes nothing more", it.who("one", names[0]),
           [saying(called(names[0], f"{topic}/{names[0]}"), [*SILENT, "since", *DIFFERS])],
           [accusing(*names[1:])], sides=("client",))  # fmt: skip


@fault()
def clock_of_1970(it: Incident) -> None:
    """A device is restarted and has no time yet: its readings are of 1970, those of its peers of today."""
    topic, names = it.names.topic(), [it.names.client() for _ in range(4)]
    it.subscriber("five", it.names.client(), (f"{topic}/#", 1))
    version = it.version()

    def values(device: str, since_ms: int, number: int) -> list[mqtt.Step]:
        return [
            mqtt.publish(f"{topic}/{device}", 1, payload=reading(device, n, since_ms + 500 * n), pause_s=0.5)
            for n in range(number)
        ]

    for host, device in zip(HOSTS[1:], names[1:], strict=True):
        it.follow(host, device, *values(device, STARTED_MS, 80), mqtt.DISCONNECT, version=version)
    settings = {"version": version, "library": "paho"}
    it.follow("one", names[0], *values(names[0], STARTED_MS, 24), mqtt.DISCONNECT, **settings).finish()
    it.seconds(2, 3)
    it.follow("one", names[0], *values(names[0], 4_000, 40), mqtt.DISCONNECT, **settings).finish()
    wordings = ["clock", "time", "1970", "\\bts\\b", "back", "jump", "smaller", "digits", *DIFFERS]
    it.ask("Q9", "a clock without time", it.who("one", names[0]),
           [saying(called(names[0], f"{topic}/{names[0]}"), wordings)], [accusing(*names[1:])])  # fmt: skip


@fault()
def byte_by_byte(it: Incident) -> None:
    """Firmware hands its modem one byte after the other: each message is ninety packets, those of its peer are one."""
    topic, device, good = it.names.topic(), it.names.client(), it.names.client()
    it.subscriber("two", it.names.client(), (f"{topic}/#", 1))
    values = [mqtt.publish(f"{topic}/gas", 1, size=60, pause_s=0.6) for _ in range(50)]
    it.follow("three", good, *values, mqtt.DISCONNECT)
    habit(it, "one", "bytes", device, f"{topic}/water").finish(120)
    wordings = ["segment", "bytes? (each|per|at a time|a packet)", "tiny", "small", "packets", "byte by byte",
                "1 byte", "single byte", "pieces"]  # fmt: skip
    it.ask("Q8", "a segment for each byte", it.who("one", device),
           [saying(called(device, it.hosts["one"].address), wordings)], [accusing(good)])  # fmt: skip


@fault(Wanted(kinds=MOSQUITTO))
def old_filter_in_session(it: Incident) -> None:
    """A new release subscribes to another filter; its session keeps the old one, so that each message comes twice."""
    topic, reader, good, writer = it.names.topic(), it.names.client(), it.names.client(), it.names.client()
    version = it.version()
    settings = {"clean": False, "version": version, **({"properties": EXPIRY} if version == 5 else {})}
    first, second = f"{topic}/raw/#", f"{topic}/clean/#"
    for host, client_id in (("one", reader), ("three", good)):
        it.follow(host, client_id, mqtt.subscribe((first, 1)), mqtt.idle(2), mqtt.DISCONNECT, **settings).finish()
    pairs = [(kind, n) for n in range(90) for kind in ("raw", "clean")]
    values = [mqtt.publish(f"{topic}/{kind}/{n % 5}", 1, payload=f'{{"n": {n}}}', pause_s=0.2) for kind, n in pairs]
    it.follow("two", writer, *values, mqtt.DISCONNECT)
    it.seconds(1, 2)
    new = (mqtt.subscribe((second, 1)), mqtt.idle(30), mqtt.DISCONNECT)
    it.follow("three", good, mqtt.unsubscribe(first), *new, **settings)
    it.follow("one", reader, *new, **settings).finish()
    wordings = ["subscri", "filter", "session", "not ask", "did not", "old", *REPEATED]
    it.ask("Q5", "a filter that the session has kept", it.who("one", reader),
           [saying(called(reader), wordings)], [accusing(good), accusing(writer)])  # fmt: skip
