"""Every page of the dashboard, a line for each. In: protocols of a capture; out: those that have something to show."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from app.dashboard.state import View
from app.dashboard.views import connections, exchanges, findings, mongo, mqtt, overview


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
    PageEntry("exchanges", "Traffic", "Exchanges", ":material/list:", exchanges.show),
    PageEntry("connections", "Traffic", "Connections", ":material/swap_vert:", connections.show),
    PageEntry("mqtt-clients", "MQTT", "Clients", ":material/devices:", mqtt.show_clients, "mqtt"),
    PageEntry("mqtt-topics", "MQTT", "Topics", ":material/account_tree:", mqtt.show_topics, "mqtt"),
    PageEntry("mqtt-deliveries", "MQTT", "Deliveries", ":material/local_shipping:", mqtt.show_deliveries, "mqtt"),
    PageEntry("mongo-shapes", "MongoDB", "Query shapes", ":material/data_object:", mongo.show_shapes, "mongo"),
    PageEntry("mongo-commands", "MongoDB", "Commands", ":material/bar_chart:", mongo.show_commands, "mongo"),
    PageEntry(
        "mongo-cursors", "MongoDB", "Cursors, transactions", ":material/receipt_long:", mongo.show_cursors, "mongo"
    ),
    PageEntry("mongo-drivers", "MongoDB", "Drivers", ":material/memory:", mongo.show_drivers, "mongo"),
)


def pages_for(protocols: Collection[str]) -> list[PageEntry]:
    """The pages for a capture with these protocols."""
    return [page for page in PAGES if page.needs is None or page.needs in protocols]
