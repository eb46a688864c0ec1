"""Incidents of MQTT with a real broker and real clients: `python -m tests.lab.incidents.mqtt --output DIR [NAME...]`.

In: names (none: all). Out: DIR/mqtt_NAME-N/ with capture.pcapng and truth.json, as `judge` reads them. Beside each runs
healthy traffic: a gauge that publishes with QoS 1, a board that gets it, a screen that shows it with QoS 0.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.lab import capture, net
from tests.lab.clients import mqtt
from tests.lab.incidents.incident import iso
from tests.lab.incidents.names import Names
from tests.lab.incidents.run import free_name
from tests.lab.mosquitto import Broker, Mosquitto
from tests.lab.processes import LabError, Process, ending_on_signals

HOSTS = ("gauge", "board", "screen", "one", "two", "three")
HANGING_S = 16.0  # longer than the time after which a delivery is missing
SETTINGS = ("max_inflight_messages 5",)


class Incident:
    """What a fault works with: clients by role, and who is to blame."""

    def __init__(self, hosts: dict[str, net.Host], broker: Broker, directory: Path, rng: random.Random) -> None:
        self.hosts, self.broker, self.directory, self.rng = hosts, broker, directory, rng
        self.names = Names(rng)
        self.stack = ExitStack()
        self.truth: dict[str, Any] = {"healthy": True, "culprit": {}, "expected": [], "allowed": []}
        self.clients: list[dict[str, str]] = []
        self.number = 0

    def start(self, host: str, *command: str) -> Process:
        """Start a program; it ends with the incident at the latest."""
        self.number += 1
        process = Process(f"{host}-{self.number}", self.hosts[host].command(*command), self.directory)
        self.stack.callback(process.stop)
        return process

    def follow(
        self, host: str, client_id: str, *steps: mqtt.Step, version: int = 4, library: str = "paho", **more: Any
    ) -> Process:
        """Start a client that follows a plan."""
        self.clients.append(self.who(host, client_id))
        wanted = mqtt.plan(client_id, version, *steps, **more)
        return self.start(host, *mqtt.command(library, self.broker.endpoint, wanted))

    def who(self, host: str, client_id: str) -> dict[str, str]:
        """How a finding may name a client."""
        return {"client_id": client_id, "address": self.hosts[host].address}

    def blame(self, fault: str, culprit: dict[str, Any], *expected: str, allowed: Sequence[str] = ()) -> None:
        """Say what is wrong, who did it, and which codes may say so first."""
        self.truth |= {"fault": fault, "healthy": False, "culprit": culprit, "expected": expected, "allowed": allowed}


def topic_case(it: Incident) -> None:
    """A subscriber waits for a topic that is published in another case."""
    place, reader, writer = it.names.topic(), it.names.client(), it.names.client()
    it.follow("one", reader, mqtt.subscribe((f"{place.title()}/+/temp", 1)), mqtt.STAY).wait_for_event("subscribed")
    it.follow("two", writer, mqtt.publish(f"{place}/7/temp", 1, count=12, pause_s=1.0), mqtt.DISCONNECT).finish()
    blamed = {"clients": [it.who("one", reader), it.who("two", writer)]}
    it.blame("topics differ by case", blamed, "MQT118")


def lost_session(it: Incident) -> None:
    """A subscriber with a clean session is killed and comes back after its messages."""
    _away(it, clean=True)


def kept_session(it: Incident) -> None:
    """A subscriber with a kept session is killed and gets its messages when it comes back; nothing is wrong."""
    _away(it, clean=False)
    it.truth["fault"] = "a session that keeps its messages"


def _away(it: Incident, clean: bool) -> None:
    topic, reader, writer = it.names.topic(), it.names.client(), it.names.client()
    wanted = mqtt.subscribe((f"{topic}/#", 1))
    first = it.follow("one", reader, wanted, mqtt.STAY, clean=clean)
    first.wait_for_event("subscribed")
    time.sleep(1)
    first.kill()
    it.follow("two", writer, mqtt.publish(f"{topic}/new", 1, count=9, pause_s=0.4), mqtt.DISCONNECT).finish()
    again = it.follow("one", reader, wanted, mqtt.idle(2), mqtt.DISCONNECT, clean=clean)
    again.finish()
    if clean:
        it.blame("messages lost with a clean session", it.who("one", reader), "MQT119")


def loop(it: Incident) -> None:
    """A client publishes back what it gets."""
    topic, reader, writer = it.names.topic(), it.names.client(), it.names.client()
    echo = it.follow("one", reader, mqtt.subscribe((f"{topic}/#", 0)), mqtt.STAY, echo=True)
    echo.wait_for_event("subscribed")
    it.follow("two", writer, mqtt.publish(f"{topic}/on", 0, payload="once"), mqtt.DISCONNECT).finish()
    time.sleep(12)
    it.blame("a message goes round", it.who("one", reader), "MQT120", allowed=("MQT123",))


def retained_command(it: Incident) -> None:
    """A device gets the same retained command at each connect."""
    topic, device, admin = f"{it.names.topic()}/cmd", it.names.client(), it.names.client()
    it.follow("two", admin, mqtt.publish(topic, 1, payload="reboot", retain=True), mqtt.DISCONNECT).finish()
    for _ in range(4):
        it.follow("one", device, mqtt.subscribe((topic, 1)), mqtt.receive(1), mqtt.DISCONNECT).finish()
        time.sleep(1)
    blamed = {"clients": [it.who("two", admin), it.who("one", device)]}
    it.blame("a retained command at each connect", blamed, "MQT121")


def stale_state(it: Incident) -> None:
    """A retained state that later messages without RETAIN do not replace."""
    topic, setter, reader = it.names.topic(), it.names.client(), it.names.client()
    live = [mqtt.publish(topic, 1, payload=f"value-{n}", pause_s=1.0) for n in range(14)]
    first = mqtt.publish(topic, 1, payload="first", retain=True)
    it.follow("two", setter, first, *live, mqtt.DISCONNECT).finish()
    it.follow("one", reader, mqtt.subscribe((topic, 1)), mqtt.receive(1), mqtt.DISCONNECT).finish()
    it.blame("a stale retained message", it.who("two", setter), "MQT121")


def connection_per_message(it: Incident) -> None:
    """A script that connects for each message."""
    topic, client_id = it.names.topic(), it.names.client()
    it.clients.append(it.who("one", client_id))
    for number in range(30):
        words = ("-t", topic, "-m", f"v{number}", "-q", "1")
        it.start("one", *mqtt.mosquitto_command("pub", it.broker.endpoint, client_id, "mqttv311", *words)).finish()
        time.sleep(0.3)
    it.blame("a connection for each message", it.who("one", client_id), "MQT122")


def unchanged(it: Incident) -> None:
    """A sensor that repeats an unchanged value a hundred times a second."""
    topic, client_id = it.names.topic(), it.names.client()
    many = mqtt.publish(topic, 0, payload="21.5", count=1400, pause_s=0.005)
    it.follow("one", client_id, many, mqtt.DISCONNECT).finish(60)
    it.blame("an unchanged payload at a high rate", it.who("one", client_id), "MQT123")


def frozen_subscriber(it: Incident) -> None:
    """A subscriber is stopped while large messages come for it."""
    topic, reader, writer = it.names.topic(), it.names.client(), it.names.client()
    held = it.follow("one", reader, mqtt.subscribe((f"{topic}/#", 1)), mqtt.STAY, keep_alive=60)
    held.wait_for_event("subscribed")
    held.freeze()
    big = mqtt.publish(f"{topic}/image", 1, size=200_000, count=40, pause_s=0.1)
    it.follow("two", writer, big, mqtt.idle(HANGING_S), mqtt.DISCONNECT).finish(60)
    it.blame("a frozen subscriber", it.who("one", reader), "TCP102", "MQT103", "MQT105", "MQT115",
             allowed=("TCP106", "TCP101"))  # fmt: skip


def never_acknowledges(it: Incident) -> None:
    """A subscriber that acknowledges nothing: the window of messages in flight is full."""
    topic, reader, writer = it.names.topic(), it.names.client(), it.names.client()
    mute = it.follow("one", reader, mqtt.subscribe((f"{topic}/#", 1)), mqtt.STAY, manual_ack=True)
    mute.wait_for_event("subscribed")
    few = mqtt.publish(f"{topic}/order", 1, payload="o", count=15, pause_s=0.1)
    it.follow("two", writer, few, mqtt.idle(HANGING_S), mqtt.DISCONNECT).finish(60)
    it.blame("a subscriber that never acknowledges", it.who("one", reader), "MQT105", allowed=("MQT115",))


def too_large(it: Incident) -> None:
    """Messages that are larger than their subscriber takes."""
    topic, reader, writer = it.names.topic(), it.names.client(), it.names.client()
    small = {"MaximumPacketSize": 100}
    it.follow("one", reader, mqtt.subscribe((f"{topic}/#", 1)), mqtt.STAY, version=5, properties=small).wait_for_event(
        "subscribed"
    )
    some = mqtt.publish(f"{topic}/page", 1, size=500, count=3, pause_s=0.2)
    it.follow("two", writer, some, mqtt.idle(HANGING_S), mqtt.DISCONNECT, version=5).finish(60)
    it.blame("larger than the subscriber takes", it.who("one", reader), "MQT115")


def shared_frozen(it: Incident) -> None:
    """A member of a shared subscription acknowledges nothing, the other works."""
    topic, mute, good, writer = it.names.topic(), it.names.client(), it.names.client(), it.names.client()
    wanted = mqtt.subscribe((f"$share/work/{topic}/#", 1))
    it.follow("one", mute, wanted, mqtt.STAY, version=5, manual_ack=True).wait_for_event("subscribed")
    it.follow("three", good, wanted, mqtt.STAY, version=5).wait_for_event("subscribed")
    jobs = [mqtt.publish(f"{topic}/job", 1, payload=f"job-{n}", pause_s=0.1) for n in range(30)]
    it.follow("two", writer, *jobs, mqtt.idle(HANGING_S), mqtt.DISCONNECT, version=5).finish(60)
    it.blame("a member of a group never acknowledges", it.who("one", mute), "MQT105", "MQT115")


def quiet(it: Incident) -> None:
    """A device that repeats a value and gets it too, retained states at each connect; nothing is wrong."""
    topic, device, screen = it.names.topic(), it.names.client(), it.names.client()
    same = mqtt.publish(f"{topic}/state", 1, payload="on", count=30, pause_s=0.3, retain=True)
    steady = it.follow("two", device, mqtt.subscribe((f"{topic}/#", 1)), same, mqtt.DISCONNECT, keep_alive=30)
    for _ in range(4):
        it.follow("one", screen, mqtt.subscribe((f"{topic}/#", 0)), mqtt.receive(1), mqtt.DISCONNECT).finish()
        time.sleep(1)
    steady.finish(60)
    it.truth["fault"] = "a device that repeats a value, a screen that comes and goes"


FAULTS: tuple[Callable[[Incident], None], ...] = (
    topic_case, lost_session, kept_session, loop, retained_command, stale_state, connection_per_message, unchanged,
    frozen_subscriber, never_acknowledges, too_large, shared_frozen, quiet,
)  # fmt: skip


def healthy_traffic(it: Incident) -> list[Process]:
    """A gauge, a board that gets what it sends, a screen with QoS 0."""
    topic = it.names.topic()
    board = it.follow("board", it.names.client(), mqtt.subscribe((f"{topic}/#", 1)), mqtt.STAY, mqtt.DISCONNECT)
    board.wait_for_event("subscribed")
    values = [mqtt.publish(f"{topic}/level", 1, payload=f"{n % 7}.{n % 10}", pause_s=0.3) for n in range(300)]
    gauge = it.follow("gauge", it.names.client(), *values, mqtt.DISCONNECT)
    screen = it.names.client()
    words = ("-t", f"{topic}/#", "-q", "0")
    it.clients.append(it.who("screen", screen))
    shown = it.start("screen", *mqtt.mosquitto_command("sub", it.broker.endpoint, screen, "mqttv5", *words))
    return [board, gauge, shown]


def make(fault: Callable[[Incident], None], output: Path, rng: random.Random) -> bool:
    """Make one incident; False where it did not happen."""
    name = free_name(output, f"mqtt_{fault.__name__}")
    with tempfile.TemporaryDirectory(prefix="wirewitness-mqtt-") as place:
        directory = Path(place)
        try:
            with net.network(("broker",), HOSTS) as hosts:
                server = Mosquitto(settings=SETTINGS)
                with server.running([hosts["broker"]], directory) as broker:
                    it = Incident(hosts, broker, directory, rng)
                    with it.stack:
                        began = time.time()
                        with capture.capturing(hosts["broker"], directory / "capture.pcapng", directory):
                            healthy_traffic(it)
                            beside = len(it.clients)
                            since = time.time()
                            fault(it)
                            until = time.time()
                    it.truth |= {"name": name, "when": [iso(since), iso(until)], "member_ids": {},
                                 "affected": {"clients": it.clients[beside:], "groups": [], "topics": []},
                                 "capture": [iso(began), iso(until)],
                                 "facts": {"broker": {"clients": [f"{one['client_id']}@{one['address']}"
                                                                  for one in it.clients], "groups": {}}}}  # fmt: skip
        except LabError as error:
            print(f"{name}: {error}", file=sys.stderr, flush=True)
            return False
        (output / name).mkdir(parents=True)
        shutil.copy(directory / "capture.pcapng", output / name)
        (output / name / "truth.json").write_text(json.dumps(it.truth, indent=1, default=list) + "\n")
    print(f"{name}: {it.truth['fault']} | expected {','.join(it.truth['expected']) or 'nothing'}", flush=True)
    return True


def main(words: Sequence[str]) -> int:
    """Run the command line; exit status 3 when an incident could not be made."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.incidents.mqtt", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR")
    parser.add_argument("--seed", type=int)
    options = parser.parse_args(words)
    known = {fault.__name__: fault for fault in FAULTS}
    if unknown := set(options.names) - set(known):
        raise SystemExit(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    mqtt.prepare("paho")
    rng = random.Random(options.seed)
    options.output.mkdir(parents=True, exist_ok=True)
    with ending_on_signals():
        done = [make(known[name], options.output, rng) for name in options.names or known]
    return 0 if all(done) else 3


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
