"""Packets on their way down through the headers. In: nothing. Out: the values that links, tunnels and IP hand on.

A `Layer` has one row for each packet still to be decoded: where its next header begins and what kind of header that is.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from wirewitness.analyser.capture.model import Bytes, Flags, Ids, Ints


class Verdict(IntEnum):
    """What became of a packet. From UNKNOWN_LINK_TYPE on it could not be decoded: the lower-case name is the reason."""

    TCP = 0
    OTHER = 1
    UNKNOWN_LINK_TYPE = 2
    UNKNOWN_INTERFACE = 3
    LINK_HEADER_CUT = 4
    TOO_MANY_HEADERS = 5
    MPLS = 6
    TUNNEL_HEADER_CUT = 7
    BAD_IP_HEADER = 8
    IP_HEADER_CUT = 9
    IP_FRAGMENT = 10
    IP_TUNNEL = 11
    BAD_TCP_HEADER = 12
    TCP_HEADER_CUT = 13
    TOO_MANY_PAIRS = 14


# Kinds of headers: an ethertype, or a protocol in IP, or a port in UDP. NOTHING: the row's verdict stands.
IPV4, IPV6, ETHERNET = 0x0800, 0x86DD, 0x6558
IN_IP, IN_UDP, NOTHING = 0x1_0000, 0x2_0000, -1


class Encapsulations:
    """What packets are wrapped in, as texts with numbers that hold for one block of a capture; 0 is no wrapping.

    A text names the wrappings from the outermost in: "vlan 100/200, vxlan 42". A number stands in it only where both
    directions of a connection carry the same one. The labels of MPLS and the keys of GRE are each direction's own: with
    them in the flow key no answer would be found to a request.
    """

    def __init__(self) -> None:
        self.texts = [""]
        self._numbers = {"": 0}

    def nest(self, outer: Ids, name: str, values: Ints | None = None) -> Ids:
        """Each of `outer` with one more wrapping inside: `name`, and its value below 2**32 where it has one."""
        codes = outer.astype(np.int64) << 32
        if values is not None:
            codes |= values
        if len(codes) == 0 or bool((codes == codes[0]).all()):  # a mirror wraps all packets in the same
            number = self._wrap(int(codes[0]), name, values is not None) if len(codes) else 0
            return np.full(len(codes), number, np.int32)
        distinct, place = np.unique(codes, return_inverse=True)
        numbers = [self._wrap(code, name, values is not None) for code in distinct.tolist()]
        return np.array(numbers, np.int32)[place]

    def _wrap(self, code: int, name: str, has_value: bool) -> int:
        outer, value = self.texts[code >> 32], code & 0xFFFF_FFFF
        part = f"{name} {value}" if has_value else name
        if name == "vlan" and outer.rpartition(", ")[2].startswith("vlan "):
            text = f"{outer}/{value}"
        else:
            text = f"{outer}, {part}" if outer else part
        number = self._numbers.setdefault(text, len(self.texts))
        if number == len(self.texts):
            self.texts.append(text)
        return number


@dataclass(slots=True)
class Layer:
    """row: which record of the block. start: where the next header begins in the block; end: where the captured bytes
    of the packet stop; wire_end: where they would stop had all of it been captured."""

    row: Ints
    start: Ints
    end: Ints
    wire_end: Ints
    kind: Ints
    encapsulation: Ids
    verdict: Bytes

    def choose(self, keep: Flags) -> "Layer":
        """The rows where `keep` is True; the same value when that is all of them."""
        if keep.all():
            return self
        return Layer(*(getattr(self, name)[keep] for name in Layer.__slots__))

    def whole(self, rows: Ints, width: "int | Ints") -> Ints:
        """Those of the rows whose next `width` bytes (one for all or one each) were captured; the others are done."""
        fits = self.start[rows] + width <= self.end[rows]
        if fits.all():
            return rows
        cut = rows[~fits]
        in_ip = self.kind[cut] >= IN_IP
        self.refuse(cut, np.where(in_ip, Verdict.TUNNEL_HEADER_CUT, Verdict.LINK_HEADER_CUT).astype(np.uint8))
        return rows[fits]

    def refuse(self, rows: Ints, verdict: "Verdict | Bytes") -> None:
        """The rows are done with this verdict."""
        self.verdict[rows] = verdict
        self.kind[rows] = NOTHING
