"""What another broker does with MQTT 5: take-overs told by DISCONNECT 0x8E, its own topic aliases, a full window.

Mochi MQTT instead of Mosquitto. Two of paho-mqtt with one client id fight for it. Watchers of MQTT.js and paho-mqtt
allow the broker aliases, one of Paho Go does not. A client of our own sends more QoS 1 than it may (0x93) and uses
aliases that it must not, since no library does.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from tests.lab import clients, mqtt_facts
from tests.lab.clients import mqtt
from tests.lab.mochi import Mochi
from tests.lab.mosquitto_log import LogEntry
from tests.lab.processes import LabError, terminate_all
from tests.lab.runs import Run

SERVER = Mochi()
SHOWS = "another broker with MQTT 5: take-overs with DISCONNECT 0x8E, topic aliases from the server, 0x93"
HOSTS = ("valve-a", "valve-b", "office", "rules")
CLIENTS = (mqtt.PAHO_PYTHON, mqtt.PAHO_GO_5, mqtt.MQTT_JS,
           "a hand-written client that breaks rules (tests/lab/clients/python)")  # fmt: skip
EXPECTED = ("MQT102", "MQT108", "MQT110")
LOOP_S = 8.0
ENOUGH, TAKEN_OVER = 5, 0x8E
COUNT, ALIASES = 4, 3
BREACHES = ("in-flight", "alias-0", "alias-above-maximum", "alias-unknown")
WATCHERS = ("page", "script", "service")


def prepare() -> None:
    """Build the clients."""
    mqtt.prepare("paho", "go", "node")


def drive(run: Run) -> None:
    """Let the pair fight while a publisher feeds the watchers; then break rules."""

    def command(library: str, wanted: dict[str, Any]) -> list[str]:
        return mqtt.command(library, run.endpoint, wanted)

    watched = (mqtt.subscribe(("plant/#", 2)), mqtt.STAY, mqtt.DISCONNECT)
    plans = {
        "page": ("node", mqtt.plan("page", 5, *watched, properties={"topicAliasMaximum": ALIASES})),
        "script": ("paho", mqtt.plan("script", 5, *watched, properties={"TopicAliasMaximum": ALIASES})),
        "service": ("go", mqtt.plan("service", 5, *watched)),
    }
    watchers = [run.start(name, "office", *command(*wanted)) for name, wanted in plans.items()]
    for watcher in watchers:
        watcher.wait_for_event("subscribed")
    valves = []
    for host in ("valve-a", "valve-b"):
        valve = mqtt.plan("valve-3", 5, mqtt.publish("plant/valve", payload=host), mqtt.KEEP_COMING)
        valves.append(run.start(host, host, *command("paho", valve)))
        valves[-1].wait_for_event("published")
    topics = ("plant/oven", "plant/hall", "plant/yard", "plant/gate")  # one more than there are aliases
    feed = mqtt.plan("feed", 5, *(mqtt.publish(topic, qos % 3, payload="1", count=COUNT)
                                  for qos, topic in enumerate(topics)), mqtt.DISCONNECT)  # fmt: skip
    run.call("feed", "office", *command("node", feed))
    time.sleep(LOOP_S)
    terminate_all(*valves)
    host, port = run.endpoint.split(":")
    run.call("rules", "rules", *clients.python_command("mqtt_raw_client", host, port, "user", "password", *BREACHES))
    terminate_all(*watchers)


def facts(records: list[LogEntry], directory: Path) -> dict[str, Any]:
    """Return take-overs, aliases and ends; LabError where something did not happen."""
    taken = [one for one in records if one.kind == "DISCONNECT" and one.direction == "sent"
             and one.fields["code"] == TAKEN_OVER]  # fmt: skip
    told = [event for name in ("valve-a", "valve-b") for event in mqtt_facts.events_of(directory, name)
            if event["event"] == "disconnected" and event.get("code") == TAKEN_OVER]  # fmt: skip
    deliveries = [one for one in records if one.kind == "PUBLISH" and one.direction == "sent"]
    aliased = {
        name: sum(one.client_id == name and one.fields["alias"] is not None for one in deliveries) for name in WATCHERS
    }
    ends = {one.client_id: one.fields["code"] for one in records
            if one.kind == "DISCONNECT" and one.direction == "sent" and one.client_id in BREACHES}  # fmt: skip
    if not ENOUGH <= len(taken) == len(told) or ends.get("in-flight") != 0x93 or not aliased["page"]:
        raise LabError(f"{len(taken)} take-overs, {len(told)} told, aliases {aliased}, ends {ends}")
    return {
        "packets_logged": mqtt_facts.packet_counts(records),
        "published": mqtt_facts.messages(records, "received", "messages"),
        "take_over": [{"client_id": "valve-3", "version": "5", "take_overs": len(taken),
                       "told_by_disconnect": len(told), "taken_over_s": [one.logged_s for one in taken]}],
        "delivered_with_alias": aliased,
        "ended": [{"client_id": name, "code": code} for name, code in ends.items()],
    }  # fmt: skip
