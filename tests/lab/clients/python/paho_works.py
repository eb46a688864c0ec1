"""Programs of a service with paho-mqtt, as teams write them: tokens, properties, questions, births, updates.

In: HOST PORT VERSION WORK CLIENT_ID TOPIC, and for some works more words. Out: JSON lines. They go on until SIGTERM or
their work is done. Works:

token SECONDS old|new   comes with a token that is good for so long, for each connection a new one or always the first
baggage reused|new      of 5.0: a user property for each message, in properties that are used again or made anew
latin                   of 5.0: says that its payload is UTF-8, which it is not
quick                   sends what a second brings, and now and then more than its server takes in a second
asks                    of 5.0: asks a question, waits for the answer that belongs to it, and asks again without one
answers keeps|leaves    of 5.0: answers, with the question's correlation data or without
"""

from __future__ import annotations

import base64
import json
import sys
import time
import uuid
from collections.abc import Callable
from typing import Any

from paho.mqtt import client as mqtt
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties


def tell(event: str, **fields: object) -> None:
    """Print one event."""
    print(json.dumps({"event": event, "at": time.time(), **fields}), flush=True)


class Program:
    """One client that comes back by itself."""

    def __init__(self, host: str, port: str, version: str, client_id: str, topic: str, *words: str) -> None:
        self.place, self.client_id, self.topic, self.words = (host, int(port)), client_id, topic, words
        self.client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id=client_id,
                                  protocol=mqtt.MQTTProtocolVersion(int(version)))  # fmt: skip
        self.client.reconnect_delay_set(2, 2)
        self.client.on_connect = lambda client, data, flags, code, more: self.on_connect(code.value)
        self.client.on_disconnect = lambda *_: tell("closed")
        self.filters: list[tuple[str, int]] = []

    def on_connect(self, code: int) -> None:
        """Note the answer, and subscribe anew."""
        tell("connected", code=code)
        if self.filters and not code:
            self.client.subscribe(self.filters)

    def begin(self) -> None:
        """Connect, and serve the network in a thread."""
        self.client.connect(*self.place, keepalive=30)
        self.client.loop_start()
        time.sleep(0.5)

    def send(self, payload: Any, topic: str | None = None, properties: Properties | None = None) -> None:
        """Publish with QoS 1, and do not wait."""
        self.client.publish(topic or self.topic, payload, 1, properties=properties)

    def end(self, seconds: float = 1) -> None:
        """Leave in order."""
        time.sleep(seconds)
        self.client.disconnect()
        self.client.loop_stop()


def token(program: Program) -> None:
    """What an identity service gives for so many seconds."""
    seconds, habit = program.words

    def renew(*_: Any) -> None:
        told = {"sub": program.client_id, "exp": int(time.time() + float(seconds))}
        program.client.username_pw_set(program.client_id, base64.b64encode(json.dumps(told).encode()).decode())

    renew()
    if habit == "new":
        program.client.on_pre_connect = renew
    program.begin()
    for number in range(100):
        if program.client.is_connected():
            program.send(f"n{number}")
        time.sleep(0.5)
    program.end()


def baggage(program: Program) -> None:
    """A trace's number with each message."""
    program.begin()
    properties = Properties(PacketTypes.PUBLISH)
    for number in range(130):
        if program.words[0] == "new":
            properties = Properties(PacketTypes.PUBLISH)
        # paho adds to what the list has already.
        properties.UserProperty = ("traceparent", f"00-{uuid.uuid4().hex}-01")
        program.send(f'{{"seq": {number}, "v": {20 + number % 7}}}', properties=properties)
        time.sleep(0.25)
    program.end()


def latin(program: Program) -> None:
    """Names with umlauts, from a file in Latin-1."""
    program.begin()
    properties = Properties(PacketTypes.PUBLISH)
    properties.PayloadFormatIndicator = 1
    for number in range(40):
        if program.client.is_connected():
            room = "Keller" if number % 4 else "K\u00fcche"
            program.send(f"{room} {18 + number % 5}.{number % 10}".encode("latin-1"), properties=properties)
        time.sleep(0.8)
    program.end()


def quick(program: Program) -> None:
    """A value five times a second; after some seconds what an inspection has found."""
    program.begin()
    for number in range(40):
        if program.client.is_connected():
            for value in range(45 if number % 3 == 2 else 4):
                program.send(f'{{"run": {number}, "value": {value}}}')
        time.sleep(1)
    program.end()


def asks(program: Program) -> None:
    """One question after the other, each until its answer is there."""
    answered: set[bytes] = set()
    own = f"{program.topic}/answer/{program.client_id}"
    program.filters = [(own, 1)]
    program.client.on_message = lambda client, data, one: answered.add(getattr(one.properties, "CorrelationData", b""))
    program.begin()
    for number in range(16):
        for again in range(4):
            properties = Properties(PacketTypes.PUBLISH)
            properties.ResponseTopic, properties.CorrelationData = own, uuid.uuid4().bytes
            program.send(f'{{"price of": "item {number}"}}', f"{program.topic}/ask", properties)
            until = time.monotonic() + 2
            while properties.CorrelationData not in answered and time.monotonic() < until:
                time.sleep(0.02)
            tell("asked", number=number, again=again)
            if properties.CorrelationData in answered:
                break
        time.sleep(0.4)
    program.end()


def answers(program: Program) -> None:
    """Serve questions, together with others."""

    def on_message(_client: Any, _data: Any, one: mqtt.MQTTMessage) -> None:
        properties = Properties(PacketTypes.PUBLISH)
        if program.words[0] == "keeps":
            properties.CorrelationData = one.properties.CorrelationData
        program.send(b'{"cents": 1250, "for": %s}' % one.payload, one.properties.ResponseTopic, properties)

    program.filters = [(f"$share/prices/{program.topic}/ask", 1)]
    program.client.on_message = on_message
    program.begin()
    tell("ready")
    program.end(600)


WORKS: dict[str, Callable[[Program], None]] = {
    one.__name__: one for one in (token, baggage, latin, quick, asks, answers)
}


def main() -> None:
    """Do one work."""
    host, port, version, work, *words = sys.argv[1:]
    WORKS[work](Program(host, port, version, *words))
    tell("done")


if __name__ == "__main__":
    main()
