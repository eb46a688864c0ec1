"""Which servers a driver talks to: the oldest wire version that each release still takes.

In: a driver's name and version as its hello says them. Out: that wire version. Sources: release notes and constants of
the drivers (PYTHON-2833, PYTHON-4729 and pymongo/common.py; wire_protocol/constants of Node's; fsm.go of Go's; the
specification of mongodb-handshake for names). Releases between are taken for as tolerant as the one before.
"""

from __future__ import annotations

import re

# Wire version -> the first release of the server that has it.
SERVER_RELEASES = {
    0: "2.4", 2: "2.6", 3: "3.0", 4: "3.2", 5: "3.4", 6: "3.6", 7: "4.0", 8: "4.2", 9: "4.4", 13: "5.0", 17: "6.0",
    21: "7.0", 25: "8.0",
}  # fmt: skip
_LEAST = {
    "pymongo": (((3, 0), 2), ((4, 0), 6), ((4, 11), 7), ((4, 20), 9)),
    "nodejs": (((4, 2), 6), ((7, 0), 8)),
    "mongo-go-driver": (((1, 12), 6), ((2, 4), 8)),
}
_VERSION = re.compile(r"\D*(\d+)\.(\d+)")


def oldest_wire_version(driver: str | None, version: str | None) -> int | None:
    """The oldest that it takes at least; None for drivers and releases that are not in the table."""
    name = (driver or "").lower().partition("|")[0]
    known = next((steps for start, steps in _LEAST.items() if name.startswith(start)), ())
    found = _VERSION.match(version or "")
    if found is None:
        return None
    release = (int(found[1]), int(found[2]))
    return max((wire for since, wire in known if since <= release), default=None)


def server_release(wire: int) -> str:
    """`4.2`, the first release with this wire version or the newest before it."""
    return SERVER_RELEASES[max((one for one in SERVER_RELEASES if one <= wire), default=0)]
