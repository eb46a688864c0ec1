"""Looking into one message: what `show` and redaction ask of a protocol.

In: the bytes of one frame and what is known of it. Out: a tree of fields with their byte spans, and the spans of what
must not be shown. Inspecting is slow and complete; it never raises, on any bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from wirewitness.dissectors.core.options import DecodeOptions

# secret: proves who somebody is, never shown. payload: what applications sent, shown when asked for.
HiddenKind = Literal["secret", "payload"]
# Fields of one message that get a node; a hostile array could ask for millions.
MAX_NODES = 200_000


@dataclass(slots=True)
class Node:
    """A field, array element or tagged field: its value and the bytes from `start` to before `end`, length included.

    The value of a field is what the decoder gives; in a broken message the last node is unfinished and ends where
    reading stopped. The nodes of one level do not overlap and rise; those of the top level cover the frame.
    """

    name: str
    start: int
    end: int
    value: Any = None
    children: list[Node] = field(default_factory=list)


class Hidden(NamedTuple):
    """Bytes `start` to before `end` that are kept back. Lengths and counts in front of a value are not."""

    start: int
    end: int
    kind: HiddenKind


class Asked(NamedTuple):
    """What the `messages` table says of the frame: role, and operation and version (a response's are its request's)."""

    role: str | None
    operation: str | None
    version: str | None


@dataclass(frozen=True, slots=True)
class Inspected:
    """The tree of one message. error: None, or what is wrong at byte `error_at`. own_fault: with whoever made it, and
    not with the message.

    hidden: rising and apart. Values of nodes inside them are masked (secret) or None (payload) already.
    """

    nodes: list[Node]
    hidden: list[Hidden]
    error: str | None = None
    error_at: int | None = None
    own_fault: bool = False


# May messages like this hold credentials? Redaction looks into those only.
MayHide = Callable[[Asked], bool]
# (bytes of the frame, what is known of it, options) -> its tree.
Inspect = Callable[[bytes, Asked, DecodeOptions], Inspected]


def anything(_asked: Asked) -> bool:
    """A message of any kind may hold credentials."""
    return True


def undecoded(data: bytes, _asked: Asked, options: DecodeOptions) -> Inspected:
    """The tree of a protocol that has none: one node. Nobody knows what is inside, so it counts as payload."""
    hidden = [] if options.payload or not data else [Hidden(0, len(data), "payload")]
    return Inspected([Node("undecoded", 0, len(data))], hidden)
