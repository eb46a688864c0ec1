"""What a page of the dashboard is."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from wirewitness.app.dashboard.state import View
from wirewitness.dissectors.core.protocol import Dissector


class PageEntry(NamedTuple):
    """A page: part of the URL, where it stands in the navigation, its function, the protocol that it needs.

    one: name of the URL value that says which one of many it shows, for the title of the browser's window.
    """

    name: str
    section: str
    title: str
    icon: str
    show: Callable[[View], None]
    needs: str | None = None
    one: str = ""


def protocol_page(
    protocol: Dissector, name: str, title: str, icon: str, show: Callable[[View], None], one: str = ""
) -> PageEntry:
    """A page of a protocol, shown where a capture holds it."""
    return PageEntry(f"{protocol.name}-{name}", protocol.title, title, icon, show, protocol.name, one)
