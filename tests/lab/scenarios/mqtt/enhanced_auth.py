"""Enhanced authentication of MQTT 5: the broker challenges by AUTH, and one CONNACK answers CONNECT and AUTH.

Mochi MQTT with a hook of the lab's, since Mosquitto has no method of its own; MQTT.js answers challenges. One client
names a method, one logs in without.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.lab import mqtt_facts
from tests.lab.clients import mqtt
from tests.lab.mochi import Mochi
from tests.lab.mosquitto_log import LogEntry
from tests.lab.processes import LabError
from tests.lab.runs import Run

SERVER = Mochi(challenge=True)
SHOWS = "MQTT 5 enhanced authentication: a challenge and its answer by AUTH before CONNACK"
HOSTS = ("office",)
CLIENTS = (mqtt.MQTT_JS,)
EXPECTED = ()
METHOD, CONTINUE = "LAB-REVERSE", 0x18


def prepare() -> None:
    """Fetch the library."""
    mqtt.prepare("node")


def drive(run: Run) -> None:
    """Let both in and each publish once."""
    named = {"properties": {"authenticationMethod": METHOD}}
    for client_id, more in (("safe", named), ("plain", {})):
        wanted = mqtt.plan(client_id, 5, mqtt.publish("door/state", 1, payload="shut"), mqtt.DISCONNECT, **more)
        run.call(client_id, "office", *mqtt.command("node", run.endpoint, wanted))


def facts(records: list[LogEntry], directory: Path) -> dict[str, Any]:
    """Return who was challenged; LabError where nobody was."""
    codes = [(one.direction, one.client_id, one.fields["code"]) for one in records if one.kind == "AUTH"]
    challenged = [one for one in mqtt_facts.events_of(directory, "safe") if one["event"] == "challenged"]
    if codes != [("sent", "safe", CONTINUE), ("received", "safe", CONTINUE)] or len(challenged) != 1:
        raise LabError(f"AUTH: {codes}, challenged {challenged}")
    return {**mqtt_facts.common(records), "challenged": ["safe"], "authentication_method": METHOD}
