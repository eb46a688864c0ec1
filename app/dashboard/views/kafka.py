"""The pages of Kafka."""

from __future__ import annotations

from wirewitness.app.dashboard.page_entry import protocol_page
from wirewitness.app.dashboard.state import View
from wirewitness.app.dashboard.text import heading
from wirewitness.app.dashboard.views import kafka_brokers, kafka_clients, kafka_groups, kafka_topics
from wirewitness.app.dashboard.views.latency import show_operations
from wirewitness.dissectors.kafka.dissector import KAFKA


def _show_apis(view: View) -> None:
    heading("Kafka APIs by latency and errors")
    show_operations(view, "kafka")


PAGES = (
    protocol_page(KAFKA, "groups", "Groups", ":material/groups:", kafka_groups.show, "group"),
    protocol_page(KAFKA, "topics", "Topics", ":material/topic:", kafka_topics.show, "topic"),
    protocol_page(KAFKA, "apis", "APIs", ":material/speed:", _show_apis),
    protocol_page(KAFKA, "clients", "Clients", ":material/devices:", kafka_clients.show),
    protocol_page(KAFKA, "brokers", "Brokers", ":material/dns:", kafka_brokers.show),
)
