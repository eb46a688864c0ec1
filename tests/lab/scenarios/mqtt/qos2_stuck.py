"""QoS 2 handshakes that hang, at each of the places where a client can leave them, beside ones that go well.

press-4 (paho-mqtt) publishes, then its application hangs in the thread that serves the network: PUBREC comes, PUBREL
never goes. archive (paho-mqtt, manual acknowledgement, its application busy for ever) answers no PUBREL. audit (Paho
Go, manual acknowledgement) answers no PUBLISH at all, nor does audit-5 with MQTT 5. gauge
publishes with QoS 1 and 2 all the time, ledger and ledger-5 take all of it in order.
"""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.lab import mqtt_facts
from tests.lab.clients import mqtt
from tests.lab.mosquitto import Mosquitto
from tests.lab.mosquitto_log import LogEntry
from tests.lab.processes import LabError, Process, terminate_all
from tests.lab.runs import Run

SERVER = Mosquitto()
SHOWS = "QoS 2 handshakes that hang before PUBREC, before PUBREL and before PUBCOMP, beside healthy ones"
HOSTS = ("machines", "office", "stuck")
CLIENTS = (mqtt.PAHO_PYTHON, mqtt.PAHO_GO, mqtt.PAHO_GO_5)
EXPECTED = ("MQT105",)
HANGING_S = 13.0  # longer than the time after which a handshake is late
TOPIC, HELD = "press/4", "held/4"
PUBLISHED = 6
# How many handshakes hang: client id, who is silent, the packet that never comes, for messages of this QoS.
STUCK = (
    ("press-4", "PUBREL", 2, 1),
    ("archive", "PUBCOMP", 2, 2),
    ("archive", "PUBACK", 1, 1),
    ("audit", "PUBREC", 2, 2),
    ("audit", "PUBACK", 1, 1),
    ("audit-5", "PUBREC", 2, 2),
    ("audit-5", "PUBACK", 1, 1),
)


def prepare() -> None:
    """Build the clients."""
    mqtt.prepare("paho", "go")


def drive(run: Run) -> None:
    """Subscribe all, let some messages hang and others pass, and wait until the hanging ones are late."""

    def start(library: str, host: str, wanted: dict[str, Any], event: str) -> Process:
        process = run.start(wanted["client_id"], host, *mqtt.command(library, run.endpoint, wanted))
        process.wait_for_event(event)
        return process

    both, held = mqtt.subscribe(("press/#", 2), ("held/#", 2)), mqtt.subscribe((HELD, 2))
    takers = [
        start("paho", "office", mqtt.plan("ledger", 4, both, mqtt.STAY, mqtt.DISCONNECT), "subscribed"),
        start("go", "office", mqtt.plan("ledger-5", 5, both_of_go(both), mqtt.STAY, mqtt.DISCONNECT), "subscribed"),
    ]
    silent = [
        start("paho", "stuck", mqtt.plan("archive", 4, held, mqtt.STAY, manual_ack=True), "subscribed"),
        start("go", "stuck", mqtt.plan("audit", 4, held, mqtt.STAY, manual_ack=True), "subscribed"),
        start("go", "stuck", mqtt.plan("audit-5", 5, held, mqtt.STAY, manual_ack=True), "subscribed"),
    ]
    feed = (mqtt.publish(HELD, 2, payload="two", count=2), mqtt.publish(HELD, 1, payload="one"),
            mqtt.publish(TOPIC, 1, payload="beat", count=PUBLISHED, pause_s=1.0),
            mqtt.publish(TOPIC, 2, payload="part", count=PUBLISHED, pause_s=1.0))  # fmt: skip
    gauge = start("paho", "machines", mqtt.plan("gauge", 4, *feed, mqtt.DISCONNECT), "published")
    press = mqtt.plan("press-4", 4, mqtt.publish(TOPIC, 2, payload="whole"),
                      mqtt.publish(TOPIC, 2, payload="half", wait=False), mqtt.HANG)  # fmt: skip
    silent.append(start("paho", "stuck", press, "published"))
    time.sleep(HANGING_S)
    gauge.finish()
    terminate_all(*silent)
    terminate_all(*takers)


def both_of_go(wanted: mqtt.Step) -> mqtt.Step:
    """The same with a subscription identifier, in the names of Paho Go."""
    return {**wanted, "properties": {"SubscriptionIdentifier": 7}}


def acknowledgements(records: list[LogEntry], client_id: str) -> Counter[str]:
    """Count what the broker got from a client of each kind."""
    return Counter(one.kind for one in records if one.direction == "received" and one.client_id == client_id)


def facts(records: list[LogEntry], directory: Path) -> dict[str, Any]:
    """Return who hangs where; LabError where a handshake that should hang does not."""
    stuck = []
    for client_id, missing, qos, count in STUCK:
        opened = sum(
            one.kind == "PUBLISH" and one.client_id == client_id and one.fields["qos"] == qos for one in records
        )
        open_still = opened - acknowledgements(records, client_id)[missing]
        if open_still != count:
            raise LabError(f"{client_id}: {open_still} handshakes wait for {missing}, {count} expected")
        stuck.append({"client_id": client_id, "missing": missing, "qos": qos, "handshakes": count})
    mqtt_facts.check_deliveries(records, directory, {"ledger": "ledger", "ledger-5": "ledger-5"})
    return {**mqtt_facts.common(records), "stuck": stuck, "healthy": ["gauge", "ledger", "ledger-5"]}
