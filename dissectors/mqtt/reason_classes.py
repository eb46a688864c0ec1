"""What becomes of a request that a server refused, by its code: does it heal, and who has to act.

In: a return or reason code, and what was refused. Out: a `ReasonClass`. One table for each kind of code: CONNACK of 3.1
and 3.1.1 (section 3.2.2.3), SUBACK of 3.1.1 (3.9.3), reason codes of 5.0 (2.4).
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Heals = Literal["heals", "retry", "never"]
"""heals: by itself, once the server is well again. retry: a later try may do. never: not without a change."""


class ReasonClass(NamedTuple):
    """heals: see `Heals`. who: whose settings or acts it is about."""

    heals: Heals
    who: Literal["client", "server", "access rules"]


_CONNACK_3 = {
    1: ReasonClass("never", "client"),
    2: ReasonClass("never", "client"),
    3: ReasonClass("heals", "server"),
    4: ReasonClass("never", "access rules"),
    5: ReasonClass("never", "access rules"),
}
# 3.1.1 has one code for all that a subscription may be refused for.
_SUBACK_3 = {0x80: ReasonClass("never", "access rules")}
_REASONS_5 = {
    0x80: ReasonClass("retry", "server"),
    0x81: ReasonClass("never", "client"),
    0x82: ReasonClass("never", "client"),
    0x83: ReasonClass("retry", "server"),
    0x84: ReasonClass("never", "client"),
    0x85: ReasonClass("never", "client"),
    0x86: ReasonClass("never", "access rules"),
    0x87: ReasonClass("never", "access rules"),
    0x88: ReasonClass("heals", "server"),
    0x89: ReasonClass("heals", "server"),
    0x8A: ReasonClass("never", "access rules"),
    0x8B: ReasonClass("heals", "server"),
    0x8C: ReasonClass("never", "client"),
    0x8D: ReasonClass("retry", "client"),
    0x8E: ReasonClass("retry", "client"),
    0x8F: ReasonClass("never", "client"),
    0x90: ReasonClass("never", "client"),
    0x91: ReasonClass("retry", "client"),
    0x92: ReasonClass("heals", "client"),
    0x93: ReasonClass("retry", "client"),
    0x94: ReasonClass("never", "client"),
    0x95: ReasonClass("never", "client"),
    0x96: ReasonClass("retry", "client"),
    0x97: ReasonClass("retry", "server"),
    0x98: ReasonClass("retry", "server"),
    0x99: ReasonClass("never", "client"),
    0x9A: ReasonClass("never", "server"),
    0x9B: ReasonClass("never", "server"),
    0x9C: ReasonClass("never", "client"),
    0x9D: ReasonClass("never", "client"),
    0x9E: ReasonClass("never", "server"),
    0x9F: ReasonClass("retry", "client"),
    0xA0: ReasonClass("retry", "client"),
    0xA1: ReasonClass("never", "server"),
    0xA2: ReasonClass("never", "server"),
}
_UNKNOWN = ReasonClass("retry", "server")


def reason_class(code: int, version: str | None, *, connack: bool = False) -> ReasonClass:
    """The class of a code. version: of the connection; connack: it stood in CONNACK."""
    if version != "5.0":
        found = (_CONNACK_3 if connack else _SUBACK_3).get(code)
        if found is not None:
            return found
    return _REASONS_5.get(code, _UNKNOWN)
