"""Faults of our own in a dissector or carrier: one connection suffers, nothing else.

In: the exception, and where it came up. Out: a remark on the connection, without a byte of what it carries. What the
rest of the connection is worth after a fault nobody knows, so its decoding ends there: what was decoded before stays,
what was still open is not told. A dissector or carrier that fails while it is asked whether it knows the bytes is not
asked again about this connection; the others are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from wirewitness.analyser.base.faults import CODE, PLEASE, caught, sentence
from wirewitness.dissectors.core.inspect import Asked, Hidden, Inspect, Inspected, Node
from wirewitness.dissectors.core.masked_trees import without_secrets
from wirewitness.dissectors.core.options import DecodeOptions
from wirewitness.dissectors.core.protocol import Sink
from wirewitness.dissectors.core.rows import expert_row


class Place(NamedTuple):
    """Where something is told: direction (None: of both), packet, its time."""

    direction: int | None
    packet: int
    ts_ns: int


class Fault(NamedTuple):
    """A stream cannot be read from here on.

    order: the packet at which that became known. kind: of exception. place: None where nobody knows it.
    """

    order: int
    kind: str
    place: Place | None = None


# (who failed, with which kind of exception): a dissector or carrier while it was asked whether it knows the bytes.
Failed = Callable[[str, str], None]


def tell(name: str, kind: str, place: Place, out: Sink, *, goes_on: bool) -> None:
    """Remark on the connection that `name`, a protocol or carrier, failed."""
    rest = f"the connection is read without {name}" if goes_on else "the rest of the connection is not decoded"
    text = sentence(kind, f"what reads {name}", rest)
    remark = ("error", "undecoded", CODE, text)
    out.fault(text, expert_row(direction=place.direction, packet=place.packet, ts=place.ts_ns, remark=remark))


def tell_of_no_flow(text: str, ts_ns: int, out: Sink, group: str = "undecoded") -> None:
    """Remark on the capture as a whole that something failed."""
    out.fault(text, expert_row(direction=None, packet=None, ts=ts_ns, remark=("error", group, CODE, text)))


def inspecting(look: Inspect) -> Inspect:
    """The same, but a fault is told in place of the fields; all bytes are kept back: nobody knows what they are."""

    def guarded(data: bytes, asked: Asked, options: DecodeOptions) -> Inspected:
        try:
            return without_secrets(data, look(data, asked, options))
        except Exception as error:  # whatever is wrong in there, other messages can be shown
            text = f"a fault of wirewitness itself, {caught(error)}; {PLEASE}"
            return Inspected(
                [Node("undecoded", 0, len(data))], [Hidden(0, len(data), "secret")], text, 0, own_fault=True
            )

    return guarded
