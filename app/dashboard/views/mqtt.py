"""The pages of MQTT."""

from __future__ import annotations

from wirewitness.app.dashboard.page_entry import protocol_page
from wirewitness.app.dashboard.views import mqtt_clients, mqtt_deliveries, mqtt_topics
from wirewitness.dissectors.mqtt.dissector import MQTT

PAGES = (
    protocol_page(MQTT, "clients", "Clients", ":material/devices:", mqtt_clients.show),
    protocol_page(MQTT, "topics", "Topics", ":material/account_tree:", mqtt_topics.show),
    protocol_page(MQTT, "deliveries", "Deliveries", ":material/local_shipping:", mqtt_deliveries.show),
)
