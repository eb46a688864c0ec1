"""The secrets of chosen connections, and of no other. In: flows and keys. Out: lines of a key log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from wirewitness.analyser.analysis.evidence.index import Index
from wirewitness.analyser.analysis.evidence.inner_messages import follow
from wirewitness.analyser.analysis.evidence.rows import FlowRow
from wirewitness.analyser.decoding.outer_map import Span
from wirewitness.dissectors.carriers.tls.hello import Hellos
from wirewitness.dissectors.carriers.tls.keylog import lines_of
from wirewitness.dissectors.core.carrier import Carried, Opening
from wirewitness.dissectors.core.model import Frame


class _Hellos:
    """Keeps the hellos of one flow."""

    def __init__(self) -> None:
        self.found: Hellos | None = None

    def opened(self, opening: Opening) -> None:
        if isinstance(opening.agreed, Hellos):
            self.found = opening.agreed

    def own(self, direction: int, start: int, end: int) -> None: ...

    def piece(self, direction: int, piece: Carried, packet: int, order: int) -> None: ...

    def lost(self, direction: int, size: int) -> None: ...

    def frame(self, frame: Frame, spans: Sequence[Span]) -> None: ...


def secret_lines(index: Index, flows: Iterable[FlowRow]) -> tuple[bytes, int]:
    """A key log of these flows, and of how many of them there is a secret. Raises CaptureError."""
    lines: dict[bytes, None] = {}
    known = 0
    for flow in flows:
        hellos = _Hellos()
        ring = follow(flow, index.sources, index.places, index.end_of(flow), hellos, index.keylogs)
        own = [] if hellos.found is None or ring is None else lines_of(ring, hellos.found)
        lines.update(dict.fromkeys(own))
        known += bool(own)
    return b"".join(lines), known
