"""Every page of the dashboard, a line for each. In: protocols of a capture; out: those that have something to show."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from app.dashboard.state import View
from app.dashboard.views import (
    connections,
    exchanges,
    findings,
    kafka_brokers,
    kafka_clients,
    kafka_groups,
    kafka_topics,
    latency,
    mongo,
    mqtt,
    overview,
)


class PageEntry(NamedTuple):
    """A page: part of the URL, where it stands in the navigation, its function, the protocol that it needs."""

    name: str
    section: str
    title: str
    icon: str
    show: Callable[[View], None]
    needs: str | None = None


PAGES = (
    PageEntry("overview", "Capture", "Overview", ":material/monitoring:", overview.show),
    PageEntry("findings", "Capture", "Findings", ":material/flag:", findings.show),
    PageEntry("kafka-groups", "Kafka", "Groups", ":material/groups:", kafka_groups.show, "kafka"),
    PageEntry("kafka-topics", "Kafka", "Topics", ":material/topic:", kafka_topics.show, "kafka"),
    PageEntry("kafka-apis", "Kafka", "APIs", ":material/speed:", latency.show_kafka, "kafka"),
    PageEntry("kafka-clients", "Kafka", "Clients", ":material/devices:", kafka_clients.show, "kafka"),
    PageEntry("kafka-brokers", "Kafka", "Brokers", ":material/dns:", kafka_brokers.show, "kafka"),
    PageEntry("mqtt-clients", "MQTT", "Clients", ":material/devices:", mqtt.show_clients, "mqtt"),
    PageEntry("mqtt-topics", "MQTT", "Topics", ":material/account_tree:", mqtt.show_topics, "mqtt"),
    PageEntry("mqtt-deliveries", "MQTT", "Deliveries", ":material/local_shipping:", mqtt.show_deliveries, "mqtt"),
    PageEntry("mongo-shapes", "MongoDB", "Query shapes", ":material/data_object:", mongo.show_shapes, "mongo"),
    PageEntry("mongo-commands", "MongoDB", "Commands", ":material/bar_chart:", mongo.show_commands, "mongo"),
    PageEntry(
        "mongo-cursors", "MongoDB", "Cursors, transactions", ":material/receipt_long:", mongo.show_cursors, "mongo"
    ),
    PageEntry("mongo-drivers", "MongoDB", "Drivers", ":material/memory:", mongo.show_drivers, "mongo"),
    PageEntry("exchanges", "Traffic", "Exchanges", ":material/list:", exchanges.show),
    PageEntry("connections", "Traffic", "Connections", ":material/swap_vert:", connections.show),
)


def pages_for(protocols: Collection[str]) -> list[PageEntry]:
    """The pages for a capture with these protocols."""
    return [page for page in PAGES if page.needs is None or page.needs in protocols]
