"""Data that a client sends before the server answered (RFC 8446, 2.3). In: pieces. Out: the same, once the server took
them, which the client says with EndOfEarlyData; what was refused is sent again as ordinary data."""

from __future__ import annotations

from wirewitness.dissectors.core.carrier import Carried

# Servers take 16 KiB, some more.
MOST_EARLY_BYTES = 1 << 16


class EarlyData:
    """Pieces that wait."""

    def __init__(self) -> None:
        self._pieces: list[Carried] = []
        self._bytes = 0

    @property
    def start(self) -> int | None:
        """Outer offset of the first byte that waits."""
        return self._pieces[0].start if self._pieces else None

    def add(self, piece: Carried) -> None:
        """One more; beyond what is usual all are let go."""
        self._pieces.append(piece)
        self._bytes += len(piece.data)
        if self._bytes > MOST_EARLY_BYTES:
            self.refused()

    def taken(self) -> list[Carried]:
        """All of them."""
        found, self._pieces, self._bytes = self._pieces, [], 0
        return found

    def refused(self) -> None:
        """None of them."""
        self._pieces, self._bytes = [], 0
