"""The protocols whose exchanges have attributes of their own, a line for each."""

from __future__ import annotations

from analyser.otel.kafka import KAFKA
from analyser.otel.mongo import MONGO
from analyser.otel.mqtt import MQTT
from analyser.otel.told import Told

TOLD: dict[str, Told] = {told.name: told for told in (KAFKA, MQTT, MONGO)}
