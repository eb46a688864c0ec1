"""A capture as if taken at two points of a network whose clocks differ.

In: packets of one point. Out: the same with those of a second point behind a tagging switch, by time.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.support.packets import Captured

HOP_NS, OFFSET_NS = 300_000, 5_000_000
SERVER_PORT = (9092).to_bytes(2)
_VLAN = bytes.fromhex("8100 0007")


def tagged(packet: Captured) -> Captured:
    """The packet as seen behind a tagging switch: later towards the server, earlier from it, by another clock."""
    to_server = packet.data[36:38] == SERVER_PORT
    data = packet.data[:12] + _VLAN + packet.data[12:]
    return Captured(packet.ts_ns + OFFSET_NS + (HOP_NS if to_server else -HOP_NS), data, packet.wire + len(_VLAN))


def at_two_points(first: Sequence[Captured], second: Sequence[Captured]) -> list[Captured]:
    """The packets of the first point, and these as the second saw them."""
    return sorted([*first, *map(tagged, second)], key=lambda packet: packet.ts_ns)
