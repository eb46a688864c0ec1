"""Q2, Q5, Q8 and Q9, programs that say too much, or what is not so any more: outboxes, thermostats, answers for all."""

from __future__ import annotations

import json

from tests.lab import slow_link
from tests.lab.clients import mqtt
from tests.lab.incidents.mqtt.brokers import Wanted
from tests.lab.incidents.mqtt.catalogue import fault
from tests.lab.incidents.mqtt.incident import Incident
from tests.lab.incidents.mqtt.keep_alives import often
from tests.lab.incidents.mqtt.never_comes import NEVER
from tests.lab.incidents.mqtt.programs import MUCH
from tests.lab.incidents.mqtt.shut_out import SITES, half, trade
from tests.lab.incidents.mqtt.told_words import LOST, REPEATED
from tests.lab.incidents.told import accusing, called, saying


@fault(Wanted(kinds=("mosquitto", "aedes", "moquette")))
def replays_its_outbox(it: Incident) -> None:
    """A gateway forgets to clear its outbox: whenever its modem wakes, it sends all it has ever gathered once more."""
    topic, bad, good = it.names.topic(), it.names.client(), [it.names.client() for _ in range(2)]
    it.subscriber("five", it.names.client(), (f"{topic}/#", 1))
    first = trade(it, "one", "outbox", bad, f"{topic}/{bad}", "keeps")
    for host, name in zip(("two", "three"), good, strict=True):
        it.seconds(1, 2)
        trade(it, host, "outbox", name, f"{topic}/{name}", "clears")
    first.finish(120)
    it.seconds(2, 3)
    it.ask("Q5", "an outbox that is never cleared", it.who("one", bad),
           [saying(called(bad, f"{topic}/{bad}"), [*REPEATED, *MUCH, "backlog", "old", "history", "peers", "unlike"])],
           [accusing(*good)])  # fmt: skip


@fault(Wanted(kinds=("mosquitto", "mochi", "aedes")))
def answers_to_all(it: Incident) -> None:
    """Fourteen screens ask, and subscribe to the answers of all: each is sent fourteen times, two others do it well."""
    topic, version, asking = it.names.topic(), it.version(), []
    servant = it.names.client()
    served = (mqtt.subscribe((f"{topic}/ask/+", 1)), mqtt.STAY, mqtt.DISCONNECT)
    copies = {f"{topic}/ask/": f"{topic}/answer/"}
    it.follow("five", servant, *served, library="paho", copies=copies, version=version).wait_for_event("subscribed")
    names = [it.names.client() for _ in range(16)]
    good, bad = names[8:10], names[:8] + names[10:]
    for number, name in enumerate(names):
        host = SITES[number % 4]
        asks = [mqtt.publish(f"{topic}/ask/{name}", 1, payload=f"price {n}?", pause_s=2.2) for n in range(14)]
        heard = f"{topic}/answer/{name}" if name in good else f"{topic}/answer/#"
        steps = (mqtt.subscribe((heard, 1)), *asks, mqtt.DISCONNECT)
        asking += [] if name in good else [it.who(host, name)]
        it.follow(host, name, *steps, version=version)
        it.seconds(0.1, 0.3)
    it.seconds(30, 32)
    wordings = [*MUCH, *REPEATED, "fan", "all", "each", "every", "wildcard", "broad", "subscribers", "filter", "copies"]
    blamed = {"any": [*asking, it.who("five", servant)], "topic": f"{topic}/answer"}
    it.ask("Q8", "answers that are sent to all", blamed,
           [saying([*called(*bad, servant), rf"{topic}/answer"], wordings)], [accusing(*good)],
           sides=("client",))  # fmt: skip


@fault()
def switches_to_and_fro(it: Incident) -> None:
    """A thermostat has no band between on and off: its heater is switched at nearly each value, its peer not."""
    topic, bad, good, version = it.names.topic(), it.names.client(), it.names.client(), it.version()
    control = {}
    for host, name, room, band in (("one", bad, "hall", "0"), ("two", good, "loft", "1.6")):
        heater = it.names.client()
        it.subscriber("four", heater, (f"{topic}/{room}/heater", 1), version=version)
        control[name] = trade(it, host, "controls", name, f"{topic}/{room}", band, version=version)
        control[name].wait_for_event("subscribed")
        measured = [round(21 + 0.9 * (-1 if n // 28 % 2 else 1) + it.rng.uniform(-0.2, 0.2), 2) for n in range(120)]
        if name == bad:
            measured = [round(21 + it.rng.choice((-1, 1)) * it.rng.uniform(0.02, 0.3), 2) for _ in range(120)]
        values = [
            mqtt.publish(f"{topic}/{room}/temperature", 1, payload=json.dumps({"celsius": one}), pause_s=0.4)
            for one in measured
        ]
        it.follow("three", it.names.client(), *values, mqtt.DISCONNECT, version=version)
    it.seconds(46, 48)
    often(control[bad].named_events("switched"), 30)
    wordings = ["alternat", "to and fro", "back and forth", "flap", "toggl", "oscillat", "in turn", "switch", "chang",
                "\\bON\\b", "\\bOFF\\b", "unstable", *MUCH, *REPEATED]  # fmt: skip
    it.ask("Q2", "a heater that is switched to and fro", {**it.who("one", bad), "topic": f"{topic}/hall/heater"},
           [saying(called(bad, f"{topic}/hall/heater"), wordings)], [accusing(good)])  # fmt: skip


@fault(Wanted(kinds=("mosquitto", "hivemq")))
def retained_expires(it: Incident) -> None:
    """A retained setting has an expiry of 12 s by mistake: devices that start later wait for it, and get the others."""
    topic, writer, good = it.names.topic(), it.names.client(), it.names.client()
    limits, zones = f"{topic}/settings/limits", f"{topic}/settings/zones"
    short = {"properties": {"MessageExpiryInterval": 12}}
    for host, name, where, more in (("one", writer, limits, short), ("two", good, zones, {})):
        setting = mqtt.publish(where, 1, payload=f'{{"of": "{where}", "value": 7}}', retain=True, **more)
        it.follow(host, name, setting, mqtt.idle(1), mqtt.DISCONNECT, version=5, library=("paho", "node"))
    it.subscriber("two", it.names.client(), (f"{topic}/state/#", 1))
    devices = []
    for number in range(8):
        name, host = it.names.client(), ("three", "four", "five")[number % 3]
        state = "ready" if number < 3 else "waits for limits"
        beats = [mqtt.publish(f"{topic}/state/{name}", 1, payload=f"{state} {n}", pause_s=1.5) for n in range(28)]
        steps = (mqtt.subscribe((limits, 1), (zones, 1)), *beats, mqtt.STAY, mqtt.DISCONNECT)
        it.follow(host, name, *steps, version=5)
        devices.append(name)
        least = (1, 1, 9)[number] if number < 3 else 3  # those before the fourth come in time
        it.seconds(least, least + 1)
    it.seconds(8, 10)
    wordings = [*NEVER, "expir", "without", "gone", "stale"]
    late = [it.who(("three", "four", "five")[number % 3], name) for number, name in enumerate(devices)][3:]
    it.ask("Q1", "a retained message that expires", {"topic": limits, "any": [it.who("one", writer), *late]},
           [saying(called(limits, writer), wordings)], [accusing(good), accusing(zones)])  # fmt: skip


@fault()
def camera_fills_the_line(it: Incident) -> None:
    """A camera's pictures fill the line of its site: the sensors beside it are late by seconds, another site is not."""
    topic, camera, good = it.names.topic(), it.names.client(), it.names.client()
    it.subscriber("five", it.names.client(), (f"{topic}/#", 1))
    sensors = [it.names.client() for _ in range(3)]
    version = it.version()
    steady = [mqtt.publish(f"{topic}/other/flow", 1, payload=f"n{n}", pause_s=0.4) for n in range(130)]
    it.follow("two", good, *steady, mqtt.DISCONNECT, version=version)
    with slow_link.sends_slowly(it.hosts, "one", 600):
        for name in sensors:
            flow = [mqtt.publish(f"{topic}/site/{name}", 1, payload=f"n{n}", pause_s=0.4) for n in range(110)]
            it.follow("one", name, *flow, mqtt.DISCONNECT, version=version)
        it.seconds(9, 10)
        pictures = mqtt.publish(f"{topic}/picture", 0, size=60_000, count=28, pause_s=0.5)
        it.follow("one", camera, pictures, mqtt.idle(3), mqtt.DISCONNECT, version=version, library="paho")
        it.seconds(40, 42)
    address = it.hosts["one"].address
    wordings = ["slow", "late", "delay", "latency", "window", "full", "fill", "bandwidth", "bytes", "large", "behind",
                "round.trip", "RTT", "waits?", "queue", "retransmi", "upload", "congest", *MUCH]  # fmt: skip
    it.ask("Q6", "a camera that fills the line of its site", {**it.who("one", camera), "address": address},
           [saying(called(camera, f"{topic}/picture", address), wordings)], [accusing(good)],
           sides=("client", "network"))  # fmt: skip


@fault()
def pings_without_pause(it: Incident) -> None:
    """Firmware takes its keep alive for ms: it sends a PINGREQ 25 times a second, more than all else together."""
    topic, device, good = it.names.topic(), it.names.client(), it.names.client()
    it.subscriber("two", good, (f"{topic}/set", 1), keep_alive=20)
    process = half(it, "one", "pings", device, f"{topic}/set", 40)
    orders = [mqtt.publish(f"{topic}/set", 1, payload=f"n{n}", pause_s=1.1) for n in range(34)]
    it.follow("three", it.names.client(), *orders, mqtt.DISCONNECT)
    process.finish(90)
    it.ask("Q5", "pings without a pause", it.who("one", device),
           [saying(called(device), ["ping", "PINGREQ", "keep.?alive", *MUCH, *LOST])], [accusing(good)])  # fmt: skip


@fault(Wanted(kinds=("aedes", "moquette", "mochi")))
def synthetic_monitor(it: Incident) -> None:
    """A monitor comes every three seconds, sends itself a message, gets it and leaves in order; nothing is wrong."""
    topic, monitor = it.names.topic(), it.names.client()
    it.subscriber("two", it.names.client(), (f"{topic}/#", 1))
    doors = [mqtt.publish(f"{topic}/door", 1, payload=f"{n % 2}.{n}", pause_s=1.9) for n in range(24)]
    it.follow("three", it.names.client(), *doors, mqtt.DISCONNECT)
    own, version = f"probe/{monitor}", it.version()
    for number in range(11):
        probe = (mqtt.subscribe((own, 1)), mqtt.publish(own, 1, payload=f"probe {number}"), mqtt.receive(1),
                 mqtt.unsubscribe(own), mqtt.DISCONNECT)  # fmt: skip
        it.follow("one", monitor, *probe, version=version, library=("go", "node")).finish(30)
        it.seconds(2.5, 3)
    it.healthy("a monitor that sends itself a message")


@fault(Wanted(in_flight=20))
def nightly_batch(it: Incident) -> None:
    """For long nothing passes but pings; then a batch brings 260 jobs at once, which are done; nothing is wrong."""
    topic, version, running = it.names.topic(), it.version(), []
    for host in SITES[:3]:
        steps = (mqtt.subscribe((f"{topic}/bill/{host}", 1)), mqtt.STAY, mqtt.DISCONNECT)
        settings = {"library": "paho", "work_s": 0.03, "keep_alive": 12, "version": version}
        copies = {f"{topic}/bill/": f"{topic}/printed/"}
        running.append(it.follow(host, it.names.client(), *steps, copies=copies, **settings))
        running[-1].wait_for_event("subscribed")
    it.subscriber("five", it.names.client(), (f"{topic}/printed/#", 1), keep_alive=15)
    it.seconds(46, 48)
    bills = [mqtt.publish(f"{topic}/bill/{SITES[n % 3]}", 1, payload=f"bill {n} of {n * 7919 % 1000}.50")
             for n in range(260)]  # fmt: skip
    batch = it.follow("four", it.names.client(), *bills, mqtt.DISCONNECT, version=version, library=("go", "paho"))
    batch.finish(60)
    it.seconds(7, 8)
    for one in running:
        often(one.named_events("received"), 86)
    it.healthy("a batch after a long rest")
