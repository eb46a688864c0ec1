"""The protocols that are compared with tshark, a line for each."""

from __future__ import annotations

from wirewitness.analyser.crosscheck.compared import Compared
from wirewitness.analyser.crosscheck.kafka import KAFKA
from wirewitness.analyser.crosscheck.mongo import MONGO
from wirewitness.analyser.crosscheck.mqtt import MQTT

COMPARED: dict[str, Compared] = {compared.name: compared for compared in (KAFKA, MQTT, MONGO)}
