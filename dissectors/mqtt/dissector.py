"""The line by which MQTT enters the table of contents."""

from __future__ import annotations

from dissectors.core.inspect import Asked, Inspected
from dissectors.core.limits import Limits
from dissectors.core.options import DecodeOptions
from dissectors.core.protocol import Conversation, Dissector
from dissectors.mqtt.framing import framer
from dissectors.mqtt.probe import probe
from dissectors.mqtt.reason_codes import REASON_NAMES
from dissectors.mqtt.rows import MQTT_ROWS


def _conversation(limits: Limits, options: DecodeOptions) -> Conversation:
    from dissectors.mqtt.conversation import MqttConversation

    return MqttConversation(limits, options)


def _inspect(data: bytes, asked: Asked, options: DecodeOptions) -> Inspected:
    from dissectors.mqtt.inspect import inspect

    return inspect(data, asked, options)


def _may_hide(asked: Asked) -> bool:
    from dissectors.mqtt.inspect import may_hide

    return may_hide(asked)


MQTT = Dissector(
    name="mqtt",
    title="MQTT",
    colour="#8e6bbf",
    letters="MQT",
    ports=(1883, 8883, 1884, 11883, 21883, 31883),
    probe=probe,
    framer=framer,
    conversation=_conversation,
    rows=MQTT_ROWS,
    error_names=REASON_NAMES,
    inspect=_inspect,
    may_hide=_may_hide,
    subprotocols=("mqtt", "mqttv3.1"),
)
