"""The line by which MQTT enters the table of contents."""

from __future__ import annotations

from dissectors.core.protocol import Dissector
from dissectors.mqtt.conversation import conversation
from dissectors.mqtt.framing import framer
from dissectors.mqtt.inspect import inspect, may_hide
from dissectors.mqtt.probe import probe
from dissectors.mqtt.reason_codes import REASON_NAMES
from dissectors.mqtt.rows import MQTT_ROWS

MQTT = Dissector(
    name="mqtt",
    title="MQTT",
    colour="#8e6bbf",
    letters="MQT",
    ports=(1883, 8883, 1884, 11883, 21883, 31883),
    probe=probe,
    framer=framer,
    conversation=conversation,
    rows=MQTT_ROWS,
    error_names=REASON_NAMES,
    inspect=inspect,
    may_hide=may_hide,
    subprotocols=("mqtt", "mqttv3.1"),
)
