"""The protocols whose exchanges have attributes of their own, a line for each."""

from __future__ import annotations

from wirewitness.analyser.otel.kafka import KAFKA
from wirewitness.analyser.otel.mongo import MONGO
from wirewitness.analyser.otel.mqtt import MQTT
from wirewitness.analyser.otel.told import Told

TOLD: dict[str, Told] = {told.name: told for told in (KAFKA, MQTT, MONGO)}
