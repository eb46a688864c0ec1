"""Programs with paho-mqtt and a mistake of their own: an outbox, a thermostat, a worker that falls over its job.

In: HOST PORT VERSION WORK CLIENT_ID TOPIC, and for some works more words. Out: JSON lines. They end when their work is
done, or with SIGTERM. Works:

outbox keeps|clears     connects now and then, sends what it has gathered, and leaves; it forgets what was sent, or not
controls BAND           switches a heater by the temperature; BAND K have to lie between on and off
worker GROUP            takes jobs of a shared subscription; a job with "broken" in it ends it, and it is started again
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from paho.mqtt import client as mqtt

ROUNDS, GATHERED, ASLEEP_S = 9, 7, 4.5
WANTED = 21.0
FALLEN = 3  # the exit status of a worker
STARTS_AGAIN_S = 2.5


def tell(event: str, **fields: object) -> None:
    """Print one event."""
    print(json.dumps({"event": event, "at": time.time(), **fields}), flush=True)


class Program:
    """One client, and where it works."""

    def __init__(self, host: str, port: str, version: str, client_id: str, topic: str, *words: str) -> None:
        self.place, self.client_id, self.topic, self.words = (host, int(port)), client_id, topic, words
        self.filters: list[tuple[str, int]] = []
        self.client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id=client_id,
                                  protocol=mqtt.MQTTProtocolVersion(int(version)))  # fmt: skip
        self.client.on_connect = lambda *_: self.client.subscribe(self.filters) if self.filters else None
        self.client.on_subscribe = lambda *_: tell("subscribed")

    def begin(self) -> None:
        """Connect, and serve the network in a thread."""
        self.client.connect(*self.place, keepalive=30)
        self.client.loop_start()

    def end(self) -> None:
        """Leave in order."""
        self.client.disconnect()
        self.client.loop_stop()


def outbox(program: Program) -> None:
    """Readings are gathered while the modem sleeps."""
    kept: list[str] = []
    number = 0
    for _ in range(ROUNDS):
        for _ in range(GATHERED):
            number += 1
            kept.append(json.dumps({"device": program.client_id, "seq": number, "litres": 1200 + number * 37 % 91}))
        program.begin()
        time.sleep(0.3)
        for one in [program.client.publish(program.topic, text, 1) for text in kept]:
            one.wait_for_publish(10)
        tell("sent", number=len(kept))
        program.end()
        if program.words[0] == "clears":
            kept.clear()
        time.sleep(ASLEEP_S)


def controls(program: Program) -> None:
    """On where it is too cold, off where it is too warm."""
    band = float(program.words[0])
    state: list[str] = []

    def on_message(_client: Any, _data: Any, one: mqtt.MQTTMessage) -> None:
        celsius = json.loads(one.payload)["celsius"]
        wanted = "ON" if celsius < WANTED - band / 2 else "OFF" if celsius > WANTED + band / 2 else ""
        if wanted and state[-1:] != [wanted]:
            state.append(wanted)
            tell("switched", to=wanted)
            program.client.publish(f"{program.topic}/heater", wanted, 1, retain=True)

    program.filters = [(f"{program.topic}/temperature", 1)]
    program.client.on_message = on_message
    program.begin()
    time.sleep(600)


def worker(program: Program) -> None:
    """Is started again whenever it has fallen."""
    while subprocess.run([sys.executable, *sys.argv, "fall"], check=False).returncode == FALLEN:
        tell("fallen")
        time.sleep(STARTS_AGAIN_S)


def falling_worker(program: Program) -> None:
    """Does its jobs until one is broken: its acknowledgement would be sent after the job."""

    def on_message(_client: Any, _data: Any, one: mqtt.MQTTMessage) -> None:
        if b"broken" in one.payload:
            os._exit(FALLEN)
        time.sleep(0.03)
        program.client.publish(f"{program.topic}/done/{one.topic.rpartition('/')[2]}", "done", 1)

    program.filters = [(f"$share/{program.words[0]}/{program.topic}/job/#", 1)]
    program.client.on_message = on_message
    program.begin()
    time.sleep(600)


WORKS: dict[str, Callable[[Program], None]] = {one.__name__: one for one in (outbox, controls, worker)}


def main() -> None:
    """Do one work."""
    host, port, version, work, *words = sys.argv[1:]
    falls = words[-1] == "fall"
    (falling_worker if falls else WORKS[work])(Program(host, port, version, *words))
    tell("done")


if __name__ == "__main__":
    main()
