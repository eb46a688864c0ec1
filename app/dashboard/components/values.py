"""Values of a message to press. In: names and values; out: the one that was just pressed."""

from __future__ import annotations

from collections.abc import Sequence

from wirewitness.app.dashboard.components.mounting import component
from wirewitness.reports.base.formats.printable import visible


def show_values(title: str, values: Sequence[tuple[str, str]], key: str) -> int | None:
    """Mount the buttons; the place of the value that was just pressed. values: what each is, and the value."""
    told = [[place, label, visible(value)] for place, (label, value) in enumerate(values)]
    result = component("values")(data={"title": title, "values": told}, key=key, on_chosen_change=lambda: None)
    chosen = result.chosen
    return chosen if isinstance(chosen, int) and 0 <= chosen < len(values) else None
