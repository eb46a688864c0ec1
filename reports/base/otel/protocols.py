"""The protocols whose exchanges have attributes of their own, a line for each."""

from __future__ import annotations

from wirewitness.reports.base.otel.kafka import KAFKA
from wirewitness.reports.base.otel.mongo import MONGO
from wirewitness.reports.base.otel.mqtt import MQTT
from wirewitness.reports.base.otel.span_attributes import Told

TOLD: dict[str, Told] = {told.name: told for told in (KAFKA, MQTT, MONGO)}
