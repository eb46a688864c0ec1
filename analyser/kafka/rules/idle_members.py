"""What to say of a member that was silent: cut off from the network, stood still, or not known which.

In: a row of `kafka_members` with `idle_side`. Out: words for a sentence and for what to do next.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class _Side(NamedTuple):
    """text: what TCP tells; look: what to look for."""

    text: str
    look: str


_SIDES: Mapping[str | None, _Side] = {
    "network": _Side(
        "what was sent between the two meanwhile was sent again and again and never ACKed: it was cut off from the "
        "network, or its host was gone",
        "what cut it off from the network at that time (link, switch, firewall, VPN, its host or its interface)",
    ),
    "process": _Side(
        "its TCP ACKed the last response, nothing had to be sent again and no request followed: its process stood "
        "still, not the network",
        "what stopped its process at that time (long garbage collection, a stopped or starved container, a suspended "
        "host)",
    ),
    None: _Side(
        "TCP does not show whether its process stood still or the network was cut",
        "what stopped it at that time: a long garbage collection, a stopped or starved container, a suspended host, or "
        "a network that was cut",
    ),
}


def side_text(member: Mapping[str, Any]) -> str:
    """What TCP tells of its silence, as part of a sentence."""
    return _SIDES.get(member["idle_side"], _SIDES[None]).text


def side_step(member: Mapping[str, Any]) -> str:
    """What to look for, after "look"."""
    return _SIDES.get(member["idle_side"], _SIDES[None]).look
