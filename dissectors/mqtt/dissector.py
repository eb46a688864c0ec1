"""The line by which MQTT enters the table of contents."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from wirewitness.dissectors.core.inspect import Asked, Inspected
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.options import DecodeOptions
from wirewitness.dissectors.core.protocol import Decoder, Dissector, Sink
from wirewitness.dissectors.mqtt.framing import framer
from wirewitness.dissectors.mqtt.probe import opens, probe
from wirewitness.dissectors.mqtt.reason_codes import REASON_NAMES
from wirewitness.dissectors.mqtt.rows import MQTT_ROWS

if TYPE_CHECKING:
    from wirewitness.dissectors.core.lockstep.streams import Streams, WholeRead


def _decoder(limits: Limits, options: DecodeOptions) -> Decoder:
    from wirewitness.dissectors.mqtt.decoder import MqttDecoder

    return MqttDecoder(limits, options)


def _whole(streams: Streams, limits: Limits, options: DecodeOptions, out: Sink) -> WholeRead:
    from wirewitness.dissectors.mqtt.decoder import MqttDecoder
    from wirewitness.dissectors.mqtt.lockstep.complete_connections import read_whole

    return read_whole(streams, limits, partial(MqttDecoder, limits, options), out, not options.payload)


def _inspect(data: bytes, asked: Asked, options: DecodeOptions) -> Inspected:
    from wirewitness.dissectors.mqtt.inspect import inspect

    return inspect(data, asked, options)


def _may_hide(asked: Asked) -> bool:
    from wirewitness.dissectors.mqtt.inspect import may_hide

    return may_hide(asked)


MQTT = Dissector(
    name="mqtt",
    title="MQTT",
    colour="#8e6bbf",
    letters="MQT",
    ports=(1883, 8883, 1884, 11883, 21883, 31883),
    probe=probe,
    framer=framer,
    decoder=_decoder,
    rows=MQTT_ROWS,
    error_names=REASON_NAMES,
    inspect=_inspect,
    opens=opens,
    whole=_whole,
    may_hide=_may_hide,
    subprotocols=("mqtt", "mqttv3.1"),
    server_names=("hivemq", ".iot.", "azure-devices.net"),
    left_open=frozenset({"PINGREQ"}),
    at_once=frozenset({"PINGREQ"}),
    resumed=frozenset({"PUBLISH"}),
)
