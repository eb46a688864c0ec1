"""Every page of the dashboard, a line for each. In: protocols of a capture; out: those that have something to show."""

from __future__ import annotations

from collections.abc import Collection

from wirewitness.app.dashboard.page_entry import PageEntry
from wirewitness.app.dashboard.views import (
    clients,
    compare,
    connections,
    exchanges,
    findings,
    kafka,
    mongo,
    mqtt,
    overview,
)

PAGES = (
    PageEntry("overview", "Capture", "Overview", ":material/monitoring:", overview.show),
    PageEntry("findings", "Capture", "Findings", ":material/flag:", findings.show),
    PageEntry("compare", "Capture", "Compare", ":material/compare_arrows:", compare.show),
    *(page for protocol in (kafka, mqtt, mongo) for page in protocol.PAGES),
    PageEntry("exchanges", "Traffic", "Exchanges", ":material/list:", exchanges.show),
    PageEntry("clients", "Traffic", "Clients", ":material/devices:", clients.show, one="who"),
    PageEntry("connections", "Traffic", "Connections", ":material/swap_vert:", connections.show),
)


def pages_for(protocols: Collection[str]) -> list[PageEntry]:
    """The pages for a capture with these protocols."""
    return [page for page in PAGES if page.needs is None or page.needs in protocols]
