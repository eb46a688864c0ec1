"""How clients can be made to log their TLS keys. In: names by which libraries call themselves. Out: words."""

from __future__ import annotations

from collections.abc import Iterable

from wirewitness.dissectors.carriers.tls.key_logging import WAYS, Way


def ways_of(libraries: Iterable[str]) -> str:
    """One sentence about those that are known; empty where none is."""
    found: dict[Way, list[str]] = {}
    for name in sorted(set(libraries)):
        way = next((way for way in WAYS if way.libraries and name.lower().startswith(way.libraries)), None)
        if way is not None:
            found.setdefault(way, []).append(name)
    parts = [f"{', '.join(names)}: {_said(way)}" for way, names in found.items()]
    return f" To log keys here: {'; '.join(parts)}." if parts else ""


def _said(way: Way) -> str:
    told = ", ".join(part for part in (way.note, "" if way.tried else "not tried") if part)
    return f"{way.command}{f' ({told})' if told else ''}"
