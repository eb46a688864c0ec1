"""Every page of the dashboard, a line for each. In: protocols of a capture; out: those that have something to show."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from app.dashboard.state import View
from app.dashboard.views import findings, overview


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
)


def pages_for(protocols: Collection[str]) -> list[PageEntry]:
    """The pages for a capture with these protocols."""
    return [page for page in PAGES if page.needs is None or page.needs in protocols]
