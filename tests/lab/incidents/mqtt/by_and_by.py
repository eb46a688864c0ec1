"""Q7 to Q9: what takes longer than it should, what grows, whose content is no longer as its peers'."""

from __future__ import annotations

import json

from tests.lab.clients import mqtt, python_command
from tests.lab.incidents.mqtt.brokers import MOSQUITTO, Wanted
from tests.lab.incidents.mqtt.catalogue import fault
from tests.lab.incidents.mqtt.device_habits import DIFFERS, STARTED_MS, reading
from tests.lab.incidents.mqtt.habits import fleet_of_four, value
from tests.lab.incidents.mqtt.incident import Incident
from tests.lab.incidents.mqtt.misfits import odd
from tests.lab.incidents.mqtt.told_words import LOST
from tests.lab.incidents.told import accusing, called, saying

SLOW = ["slow", "takes", "took", "longer", "late", "behind", "waits?", "grow", "more and more", "than", "acknowledg",
        "in flight", "delay", "round trip"]  # fmt: skip
CONTENT = ["value", "payload", "field", "key", "jump", "range", "larger", "higher", "unit", "temp", "shape",
           "content", "JSON", *DIFFERS]  # fmt: skip
LINES = 36


@fault()
def subscribes_one_by_one(it: Incident) -> None:
    """A program far away subscribes to 36 filters one after the other: for 20 s it misses what its peer gets."""
    topic, bad, good = it.names.topic(), it.names.client(), it.names.client()
    filters = [(f"{topic}/line{n}/count", 1) for n in range(LINES)]
    it.far("one", 270)
    version = it.version()
    values = [mqtt.publish(filters[n * 7 % LINES][0], 1, payload=f"n{n}", pause_s=0.15) for n in range(260)]
    it.follow("three", it.names.client(), *values, mqtt.DISCONNECT)
    stays = (mqtt.STAY, mqtt.DISCONNECT)
    for _ in range(2):
        other = it.follow("one", good, mqtt.subscribe(*filters), *stays, version=version)
        alone = [mqtt.subscribe(one) for one in filters]
        process = it.follow("one", bad, *alone, *stays, version=version, library=("paho", "go"))
        process.wait_for_event("subscribed", LINES, 60)
        it.seconds(1, 2)
        process.ask_to_end()
        other.ask_to_end()
        it.seconds(0.5, 1)
    wordings = ["SUBSCRIBE", "subscri", "one (by one|after|at a time)", "each", "round trip", *LOST]
    it.ask("Q8", "filters one after the other on a long line", it.who("one", bad),
           [saying(called(bad), wordings)], [accusing(good)])  # fmt: skip


@fault(Wanted(kinds=MOSQUITTO))
def two_writes(it: Incident) -> None:
    """Firmware writes head and payload apart: each message waits 40 ms for the ACK of its first half, in a long row."""
    topic, device, good = it.names.topic(), it.names.client(), it.names.client()
    it.subscriber("two", it.names.client(), (f"{topic}/#", 1))
    odd(it, "three", "one_write", good, f"{topic}/b")
    odd(it, "one", "two_writes", device, f"{topic}/a").finish(90)
    wordings = ["Nagle", "delayed", "ACK", "40 ms", "0\\.04", "pieces", "two (writes|segments|packets)", "segment",
                "small", "head", "halves", *SLOW]  # fmt: skip
    it.ask("Q7", "two writes for each message", it.who("one", device),
           [saying(called(device, it.hosts["one"].address), wordings)], [accusing(good)],
           sides=("client", "network"))  # fmt: skip


@fault(Wanted(kinds=MOSQUITTO, in_flight=4))
def work_grows(it: Incident) -> None:
    """A worker looks through all it has seen for each job: it takes longer and longer, its peer does not."""
    topic, writer = it.names.topic(), it.names.client()
    slow, good = it.names.client(), it.names.client()
    it.subscriber("four", it.names.client(), (f"{topic}/done/#", 1))
    for host, client_id, grows_s in (("one", slow, "0.035"), ("two", good, "0")):
        it.clients.append(it.who(host, client_id))
        words = (*it.broker.endpoint.split(":"), client_id, topic, grows_s)
        it.start(host, *python_command("slower_worker", *words)).wait_for_event("subscribed")
    jobs = [mqtt.publish(f"{topic}/job/{n}", 1, payload=f"job {n}", pause_s=0.5) for n in range(90)]
    it.follow("three", writer, *jobs, mqtt.idle(6), mqtt.DISCONNECT).finish(90)
    it.ask("Q8", "work that grows with each job", it.who("one", slow), [saying(called(slow), SLOW)],
           [accusing(good, writer)], sides=("client",))  # fmt: skip


@fault()
def fahrenheit(it: Incident) -> None:
    """New firmware of one device sends its temperature in Fahrenheit; its peers go on in Celsius."""
    topic = it.names.topic()

    def warm(own: str, device: str, n: int) -> mqtt.Step:
        degrees = round((20 + n % 7) * 1.8 + 32, 1)
        return value(own, device, n, payload=json.dumps({"device": device, "seq": n, "temp": degrees}))

    names = fleet_of_four(it, topic, warm)
    it.ask("Q9", "another unit", it.who("one", names[0]),
           [saying(called(names[0], f"{topic}/{names[0]}/temp"), CONTENT)], [accusing(*names[1:])])  # fmt: skip


@fault()
def field_renamed(it: Incident) -> None:
    """New firmware of one device calls its value temperature, not temp: its readers find none."""
    topic = it.names.topic()

    def renamed(own: str, device: str, n: int) -> mqtt.Step:
        return value(own, device, n, payload=json.dumps({"device": device, "seq": n, "temperature": 20 + n % 7}))

    names = fleet_of_four(it, topic, renamed)
    it.ask("Q9", "a field with another name", it.who("one", names[0]),
           [saying(called(names[0], f"{topic}/{names[0]}/temp"), CONTENT)], [accusing(*names[1:])])  # fmt: skip


@fault()
def newest_first(it: Incident) -> None:
    """A gateway sends what it gathered without network from its newest to its oldest: values go back in time."""
    topic, bad, good = it.names.topic(), it.names.client(), it.names.client()
    it.subscriber("five", it.names.client(), (f"{topic}/#", 1))
    version = it.version()

    def steps(name: str, numbers: list[int], pause_s: float) -> list[mqtt.Step]:
        payloads = [reading(name, n, STARTED_MS + 500 * n) for n in numbers]
        return [mqtt.publish(f"{topic}/{name}", 1, payload=one, pause_s=pause_s) for one in payloads]

    number = 0
    for _ in range(3):
        running = []
        gathered = list(range(number, number + 20 * bool(number)))
        number += len(gathered)
        live = list(range(number, number + 14))
        number += 14
        for host, name in (("one", bad), ("two", good)):
            kept = gathered[::-1] if name == bad else gathered
            plan = (*steps(name, kept, 0.05), *steps(name, live, 0.5), mqtt.DISCONNECT)
            running.append(it.follow(host, name, *plan, version=version, library="paho"))
        for one in running:
            one.finish(60)
        it.seconds(7, 8)
    wordings = ["order", "back", "older", "newest", "revers", "decreas", "descend", "time", "\\bts\\b", *CONTENT]
    it.ask("Q9", "the newest first", it.who("one", bad), [saying(called(bad, f"{topic}/{bad}"), wordings)],
           [accusing(good)])  # fmt: skip
