"""What the unwrappers of a connection give, for tests. In: bytes of both sides. Out: their data, and what was told."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tests.support.tls_twin import Pair
from wirewitness.dissectors.carriers.tls.carrier import tls
from wirewitness.dissectors.carriers.tls.keylog import KeyLogReader, KeyRing
from wirewitness.dissectors.core.carrier import Carried, Interrupted, Item, Told
from wirewitness.dissectors.core.encryption import Encryption
from wirewitness.dissectors.core.limits import Limits


@dataclass
class Read:
    """items: of client and server."""

    items: tuple[list[Item], list[Item]]
    facts: Encryption

    def data(self, from_client: bool) -> bytes:
        return b"".join(item.data for item in self.items[not from_client] if isinstance(item, Carried))

    def parts(self, from_client: bool) -> list[bytes]:
        """Data between losses."""
        found = [b""]
        for item in self.items[not from_client]:
            if isinstance(item, Carried):
                found[-1] += item.data
            elif isinstance(item, Interrupted):
                found.append(b"")
        return found

    def codes(self) -> list[str]:
        return [item.code for items in self.items for item in items if isinstance(item, Told)]


def ring_of(keylog: bytes) -> KeyRing:
    ring = KeyRing()
    reader = KeyLogReader(ring)
    reader.feed(keylog)
    reader.end()
    return ring


# Bytes of one side, or how many are missing.
Piece = bytes | int


def pieces(stream: bytes, size: int) -> list[Piece]:
    return [stream[at : at + size] for at in range(0, len(stream), size)]


def read(
    pair: Pair,
    keylog: bytes,
    client: Iterable[Piece] | None = None,
    server: Iterable[Piece] | None = None,
    limits: Limits | None = None,
) -> Read:
    """Read both streams, or these pieces in place of one."""
    limits = Limits() if limits is None else limits
    carrier = tls(ring_of(keylog))
    streams = pair.stream(True), pair.stream(False)
    opening = carrier.opening(streams[0][: 1 << 16], streams[1][: 1 << 16])
    assert opening is not None
    assert opening.encryption is not None
    found: list[list[Item]] = []
    for direction, given in enumerate((client, server)):
        unwrapper, offset = carrier.unwrapper(direction, opening, limits), 0
        items: list[Item] = []
        for piece in [streams[direction]] if given is None else given:
            if isinstance(piece, int):
                items += unwrapper.gap(piece, offset)
                offset += piece
            else:
                items += unwrapper.feed(piece, offset)
                offset += len(piece)
        found.append(items)
    return Read((found[0], found[1]), opening.encryption)
