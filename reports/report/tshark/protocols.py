"""The protocols that are compared with tshark, a line for each."""

from __future__ import annotations

from wirewitness.reports.report.tshark.compared import Compared
from wirewitness.reports.report.tshark.kafka import KAFKA
from wirewitness.reports.report.tshark.mongo import MONGO
from wirewitness.reports.report.tshark.mqtt import MQTT

COMPARED: dict[str, Compared] = {compared.name: compared for compared in (KAFKA, MQTT, MONGO)}
