"""The protocols that are compared with tshark, a line for each."""

from __future__ import annotations

from analyser.crosscheck.compared import Compared
from analyser.crosscheck.kafka import KAFKA
from analyser.crosscheck.mongo import MONGO
from analyser.crosscheck.mqtt import MQTT

COMPARED: dict[str, Compared] = {compared.name: compared for compared in (KAFKA, MQTT, MONGO)}
