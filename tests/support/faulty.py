"""A protocol and a carrier with faults: they are the example protocol and plain bytes, and raise where a mark stands.

In: marks in payloads. Out: a KeyError, with the payload in its text, at the place that the mark names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from wirewitness.dissectors.core.carrier import Carried, Carrier, Interrupted, Item, Opening, Told
from wirewitness.dissectors.core.framer import LengthFramer
from wirewitness.dissectors.core.inspect import Asked, Inspected
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import Frame
from wirewitness.dissectors.core.options import DecodeOptions
from wirewitness.dissectors.core.protocol import Sink
from wirewitness.dissectors.example.decoder import ExampleDecoder
from wirewitness.dissectors.example.dissector import EXAMPLE
from wirewitness.dissectors.example.framing import framer

HEADER_BYTES, MARK_BYTES = 8, 10
TUBE = b"TUBE"


def _raise_at(mark: bytes, data: bytes, position: int = 0) -> None:
    """If the frame at this position begins with this mark."""
    at = position + HEADER_BYTES
    if data[at : at + MARK_BYTES].startswith(mark):
        raise KeyError(data)


class _Measure:
    def __init__(self, direction: int, limits: Limits) -> None:
        self._right = framer(direction, True, limits)._measure

    def __call__(self, data: bytes, position: int, end: int) -> int:
        _raise_at(b"!framer", data, position)
        return self._right(data, position, end)


def _framer(direction: int, synchronised: bool, limits: Limits) -> LengthFramer:
    right = framer(direction, synchronised, limits)
    return LengthFramer(_Measure(direction, limits), right._candidates, synchronised)


class FaultyDecoder:
    """The example's, with faults."""

    def __init__(self, limits: Limits) -> None:
        self._right = ExampleDecoder(limits)
        self._lost = self._finish = b""

    def feed(self, frames: Sequence[Frame], out: Sink) -> None:
        """!feed; !lost and !finish are remembered; !rows does not fit into the columns of messages."""
        for frame in frames:
            data = frame.data[frame.start : frame.end]
            _raise_at(b"!feed", data)
            self._lost = data if b"!lost" in data else self._lost
            self._finish = data if b"!finish" in data else self._finish
            self._right.feed([frame], out)
            if b"!rows" in data and (rows := out.rows("messages")):
                rows[-1] = (1 << 80, *rows[-1][1:])

    def boundary(self, direction: int, data: bytes, position: int, hinted: bool) -> bool | None:
        """!boundary"""
        _raise_at(b"!boundary", data, position)
        return self._right.boundary(direction, data, position, hinted)

    def lost(self, direction: int, out: Sink) -> None:
        """!lost"""
        if self._lost:
            raise KeyError(self._lost)
        self._right.lost(direction, out)

    def finish(self, out: Sink) -> None:
        """!finish"""
        self._right.finish(out)
        if self._finish:
            raise KeyError(self._finish)


def _decoder(limits: Limits, _options: DecodeOptions) -> FaultyDecoder:
    return FaultyDecoder(limits)


def _probe(client: bytes, server: bytes, whole: bool) -> int:
    _raise_at(b"!probe", client)
    return EXAMPLE.probe(client, server, whole)


def _inspect(data: bytes, asked: Asked, options: DecodeOptions) -> Inspected:
    _raise_at(b"!inspect", data)
    return EXAMPLE.inspect(data, asked, options)


FAULTY = replace(
    EXAMPLE,
    name="faulty",
    title="Faulty",
    probe=_probe,
    framer=_framer,
    decoder=_decoder,
    inspect=_inspect,
)


class _Tube:
    """Bytes as they are."""

    held_bytes = 0
    searched_from = None

    def feed(self, data: bytes, offset: int) -> list[Item]:
        """!carrier"""
        if b"!carrier" in data:
            raise KeyError(data)
        return [Carried(data, offset, offset + len(data))]

    def feed_many(self, data: bytes, offset: int) -> None:
        """One segment after the other."""

    def gap(self, size: int, _offset: int) -> list[Item]:
        """As it is."""
        return [Interrupted(size)]


def _opening(client: bytes, _server: bytes) -> Opening | None:
    if len(client) < len(TUBE) + HEADER_BYTES + MARK_BYTES:
        return None
    _raise_at(b"!opening", client, len(TUBE))
    told = Told("chat", "tube", "opened", "opened", 0, len(TUBE))
    return Opening((len(TUBE), 0), "faulty", "", (), told)


def _looks_like(start: bytes) -> int | None:
    if start == b"!!":
        raise KeyError(start)
    return None


def _unwrapper(direction: int, opening: Opening | None, limits: Limits) -> _Tube:
    return _Tube()


CARRIER = Carrier("tube", lambda client: client.startswith(TUBE), _opening, _looks_like, _unwrapper)
