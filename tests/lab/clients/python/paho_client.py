"""paho-mqtt client of the lab: one connection, driven step by step.

In: a plan (JSON, made by clients/mqtt.py) as the only word. Out: JSON lines on standard output. All work is done in one
thread: between the steps and in a `hang` nothing is read from the network. SIGTERM ends a `stay` or `keep_coming`.
With `echo` in the plan it publishes back whatever it gets; with `copies`, which says for the beginning of a topic what
takes its place, it publishes there what comes; with `work_s` it works so long for each message.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from paho.mqtt import client as mqtt
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode
from paho.mqtt.subscribeoptions import SubscribeOptions

LIMIT_S = 30
Step = dict[str, Any]


def emit(event: str, **fields: Any) -> None:
    """Print one fact of this client."""
    print(json.dumps({"event": event, "at": time.time(), **fields}), flush=True)


def properties(kind: int, step: Step) -> Properties | None:
    """Return the properties of a step in paho's names; text for bytes where the property has bytes."""
    wanted = step.get("properties")
    if not wanted:
        return None
    made = Properties(kind)
    for name, value in wanted.items():
        if name in ("CorrelationData", "AuthenticationData"):
            value = value.encode()
        setattr(made, name, [tuple(pair) for pair in value] if name == "UserProperty" else value)
    return made


def content(step: Step) -> bytes:
    """Return the payload of a publish or will: its text, or so many bytes."""
    return bytes(step["size"]) if "size" in step else step.get("payload", "").encode()


def split(filters: list[Step]) -> list[tuple[str, Step]]:
    """Return filters as (name, all else)."""
    return [(one["name"], {key: value for key, value in one.items() if key != "name"}) for one in filters]


class Actor:
    """One client and what it has seen."""

    def __init__(self, plan: Step) -> None:
        self.plan = plan
        self.five = plan["version"] == 5
        self.answers: dict[int, list[int]] = {}  # by message id of what was asked
        self.connected: list[int] = []
        self.received = 0
        self.stopped = False
        self.client = self.make_client()

    def make_client(self) -> mqtt.Client:
        """Return the client with its settings and callbacks; nothing is sent yet."""
        plan = self.plan
        client = mqtt.Client(
            mqtt.CallbackAPIVersion.VERSION2,
            client_id=plan["client_id"],
            clean_session=None if self.five else plan.get("clean", True),
            protocol=mqtt.MQTTProtocolVersion(plan["version"]),
            transport=plan.get("transport", "tcp"),
            manual_ack=plan.get("manual_ack", False),
        )
        if "user" in plan:
            client.username_pw_set(plan["user"], plan["password"])
        if "will" in plan:
            will = plan["will"]
            client.will_set(will["topic"], content(will), will.get("qos", 0), will.get("retain", False),
                            properties(PacketTypes.WILLMESSAGE, will))  # fmt: skip
        client.reconnect_delay_set(plan.get("reconnect_s", 1), plan.get("reconnect_s", 1))
        client.on_connect, client.on_disconnect = self.on_connect, self.on_disconnect
        client.on_message = self.on_message
        client.on_publish = client.on_subscribe = client.on_unsubscribe = self.on_answer
        return client

    def on_connect(self, _client: Any, _data: Any, flags: Any, code: ReasonCode, _properties: Any) -> None:
        """Note the server's answer."""
        self.connected.append(code.value)
        emit("connected", code=code.value, session_present=flags.session_present)

    def on_disconnect(self, _client: Any, _data: Any, flags: Any, code: ReasonCode, _properties: Any) -> None:
        """Note the end of the connection."""
        by_server = bool(flags.is_disconnect_packet_from_server)
        emit("disconnected", by_server=by_server, **({"code": code.value} if by_server else {}))

    def on_message(self, _client: Any, _data: Any, message: mqtt.MQTTMessage) -> None:
        """Note a delivery."""
        self.received += 1
        emit("received", topic=message.topic, qos=message.qos, retain=message.retain, mid=message.mid,
             size=len(message.payload))  # fmt: skip
        time.sleep(self.plan.get("work_s", 0))
        if self.plan.get("echo"):
            self.client.publish(message.topic, message.payload, message.qos)
        for begins, other in self.plan.get("copies", {}).items():
            if message.topic.startswith(begins):
                self.client.publish(other + message.topic.removeprefix(begins), message.payload, message.qos)

    def on_answer(self, _client: Any, _data: Any, mid: int, codes: Any, _properties: Any) -> None:
        """Note what the server said to a publish, subscribe or unsubscribe."""
        listed = codes if isinstance(codes, list) else [codes]
        self.answers[mid] = [code if isinstance(code, int) else code.value for code in listed]

    def pump(self, done: Callable[[], bool], limit_s: float = LIMIT_S) -> bool:
        """Work for the network until something is done; False when it is not in time or the connection ended."""
        until = time.monotonic() + limit_s
        while not done():
            left = until - time.monotonic()
            if left <= 0 or self.client.loop(min(0.02, left)) != mqtt.MQTT_ERR_SUCCESS:
                return done()
        return True

    def answer(self, mid: int) -> list[int]:
        """Wait for the answer to a message id and return its codes."""
        if not self.pump(lambda: mid in self.answers):
            sys.exit(f"no answer to {mid}")
        return self.answers.pop(mid)

    def do_connect(self, step: Step) -> None:
        """Connect and wait for the answer; a refusal is no failure."""
        settings: dict[str, Any] = {}
        if self.five:
            settings = {"clean_start": self.plan.get("clean", True)}
            settings["properties"] = properties(PacketTypes.CONNECT, self.plan)
        self.client.connect(self.plan["host"], self.plan["port"], self.plan["keep_alive"], **settings)
        known = len(self.connected)
        if not self.pump(lambda: len(self.connected) > known):
            sys.exit("no answer to CONNECT")

    def do_subscribe(self, step: Step) -> None:
        """Subscribe to filters of name, QoS and, in MQTT 5, paho's names of options."""
        if self.five:
            wanted: Any = [(name, SubscribeOptions(**options)) for name, options in split(step["filters"])]
        else:
            wanted = [(one["name"], one["qos"]) for one in step["filters"]]
        _, mid = self.client.subscribe(wanted, properties=properties(PacketTypes.SUBSCRIBE, step))
        assert mid is not None
        emit("subscribed", filters=[one["name"] for one in step["filters"]], codes=self.answer(mid))

    def do_unsubscribe(self, step: Step) -> None:
        """Unsubscribe from filters."""
        _, mid = self.client.unsubscribe(step["names"], properties(PacketTypes.UNSUBSCRIBE, step))
        assert mid is not None
        codes = self.answer(mid)
        emit("unsubscribed", filters=step["names"], **({"codes": codes} if self.five else {}))

    def do_publish(self, step: Step) -> None:
        """Publish `count` times; waits for each handshake unless `wait` is false."""
        for _ in range(step.get("count", 1)):
            info = self.client.publish(step["topic"], content(step), step.get("qos", 0), step.get("retain", False),
                                       properties(PacketTypes.PUBLISH, step))  # fmt: skip
            qos = step.get("qos", 0)
            codes = self.answer(info.mid) if step.get("wait", True) else None
            more = {"code": codes[0]} if codes and self.five and qos else {}
            emit("published", topic=step["topic"], qos=qos, retain=step.get("retain", False), mid=info.mid,
                 size=len(content(step)), whole=codes is not None, **more)  # fmt: skip
            self.pump(lambda: False, step.get("pause_s", 0))

    def do_receive(self, step: Step) -> None:
        """Wait until so many deliveries were seen in all."""
        if not self.pump(lambda: self.received >= step["count"]):
            sys.exit(f"{self.received} of {step['count']} deliveries")

    def do_idle(self, step: Step) -> None:
        """Do nothing but answer the network for some seconds."""
        self.pump(lambda: False, step["s"])

    def do_stay(self, step: Step) -> None:
        """Serve the network until SIGTERM or the end of the connection."""
        while not self.stopped and self.client.loop(0.05) == mqtt.MQTT_ERR_SUCCESS:
            pass

    def do_keep_coming(self, step: Step) -> None:
        """Serve the network and connect again whenever the connection ends, until SIGTERM."""
        self.client.loop_forever()

    def do_hang(self, step: Step) -> None:
        """Stop serving the network until SIGTERM."""
        while not self.stopped:
            time.sleep(0.05)

    def do_disconnect(self, step: Step) -> None:
        """Leave in order."""
        reason = ReasonCode(PacketTypes.DISCONNECT, identifier=step["code"]) if "code" in step else None
        self.client.disconnect(reason, properties(PacketTypes.DISCONNECT, step))
        self.pump(lambda: not self.client.is_connected(), 2)

    def stop(self, *_: Any) -> None:
        """End what lasts."""
        self.stopped = True
        if self.plan["steps"][-1]["do"] == "keep_coming":
            self.client.disconnect()

    def run(self) -> None:
        """Take one step after the other."""
        for step in [{"do": "connect"}, *self.plan["steps"]]:
            getattr(self, f"do_{step['do']}")(step)
            emit("did", step=step["do"])


def main() -> None:
    """Follow the plan of the first word."""
    actor = Actor(json.loads(sys.argv[1]))
    signal.signal(signal.SIGTERM, actor.stop)
    actor.run()
    sys.stdout.flush()
    os._exit(0)  # a connection that no step has ended ends with the process


if __name__ == "__main__":
    main()
