"""Packets of messages that links name by their id only. In: chains; out: the same, with file and packet (or line)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from wirewitness.analyser.tables.queries import literal
from wirewitness.reports.base.why.asking import Asking
from wirewitness.reports.base.why.model import Chain, Place, Step

_PLACES = "select message_id, file, packet_last, line from messages where message_id in ({ids})"


def placed(ask: Asking, chains: Sequence[Chain]) -> list[Chain]:
    """All places looked up at once."""
    ids = sorted({
        place.message_id for chain in chains for step in chain.steps for place in _places(step)
        if place.message_id and place.packet is None and place.line is None
    })  # fmt: skip
    if not ids:
        return list(chains)
    query = _PLACES.format(ids=", ".join(map(literal, ids)))
    found = {row["message_id"]: row for row in ask.rows(query)}
    return [replace(chain, steps=tuple(_step(step, found) for step in chain.steps)) for chain in chains]


def _places(step: Step) -> Iterator[Place]:
    yield from step.link.places
    for cause in step.causes:
        yield from _places(cause)


def _step(step: Step, found: Mapping[str, Mapping[str, object]]) -> Step:
    places = tuple(_place(place, found.get(place.message_id or "")) for place in step.link.places)
    return replace(
        step, link=replace(step.link, places=places), causes=tuple(_step(cause, found) for cause in step.causes)
    )


def _place(place: Place, row: Mapping[str, object] | None) -> Place:
    if row is None or place.packet is not None or place.line is not None:
        return place
    file, packet, line = row["file"], row["packet_last"], row["line"]
    return Place(
        file if isinstance(file, str) else None, packet if isinstance(packet, int) else None, place.message_id,
        line if isinstance(line, int) else None,
    )  # fmt: skip
