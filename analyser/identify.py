"""Which protocol does a flow speak, and who is the server? Decided by the bytes; ports are only hints.

In: what a flow's two directions delivered so far. Out: an `Identity`, or None while the bytes do not tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from analyser.flow import Flow
from analyser.streams import Gap, Run
from dissectors.core.limits import Limits
from dissectors.core.protocol import Dissector

DECIDES = 50
_PORT_BONUS = 25
_USER_BONUS = 1000


class Identity(NamedTuple):
    """The protocol of a flow. by: content, port or user."""

    dissector: Dissector
    client_is_low: bool
    by: str


def identify(
    flow: Flow,
    items: list[tuple[bool, Run | Gap]],
    dissectors: Mapping[str, Dissector],
    forced: tuple[str, int] | None,
    ports: tuple[int, int],
    limits: Limits,
) -> Identity | None:
    """The best match over all dissectors and, where no handshake tells the client, over both orientations.

    `ports` are those of the high and the low endpoint, `forced` the (protocol, port) the user gave.
    """
    heads = tuple(head(items, side, limits.max_probe_bytes) for side in (False, True))
    orientations = (True, False) if flow.client_is_low is None else (flow.client_is_low,)
    whole = all(half.isn is not None for half in flow.halves)
    best: tuple[int, int, Identity] | None = None
    for dissector in dissectors.values():
        if forced is not None and dissector.name != forced[0]:
            continue
        for client_is_low in orientations:
            content = dissector.probe(heads[client_is_low], heads[not client_is_low], whole)
            server_port = ports[not client_is_low]
            hinted = server_port in dissector.ports
            score = content + (_PORT_BONUS if hinted and content else 0)
            if forced is not None:
                identity = Identity(dissector, client_is_low, "user")
                score += _USER_BONUS + (_USER_BONUS if server_port == forced[1] else 0)
            elif content >= DECIDES:
                identity = Identity(dissector, client_is_low, "content")
            elif score >= DECIDES:
                identity = Identity(dissector, client_is_low, "port")
            else:
                continue
            if best is None or (score, hinted) > best[:2]:
                best = (score, int(hinted), identity)
    return None if best is None else best[2]


def head(items: list[tuple[bool, Run | Gap]], side: bool, limit: int) -> bytes:
    """The first contiguous bytes of one direction, at most `limit`."""
    parts: list[bytes] = []
    size = 0
    for from_low, item in items:
        if from_low != side:
            continue
        if isinstance(item, Gap):
            if size:
                break
            continue
        parts.append(bytes(item.pieces[0][: limit - size]))
        size += item.size
        if size >= limit:
            break
    return b"".join(parts)
