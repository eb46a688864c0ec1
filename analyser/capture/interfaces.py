"""Interfaces and timestamps of pcapng. In: interface blocks and raw timestamps. Out: link types and nanoseconds."""

import struct
from dataclasses import dataclass, field

import numpy as np

from analyser.capture.link import NO_INTERFACE
from analyser.capture.model import Ids, Interface, Ints, Words
from analyser.capture.options import read_options, text_option

IF_NAME, IF_DESCRIPTION, IF_TSRESOL, IF_TSOFFSET = 2, 3, 9, 14
DEFAULT_TSRESOL = 6
NANOSECONDS = 9


def decode_interface(body: bytes, order: str) -> tuple[Interface, int]:
    """The interface of an IDB body of at least 8 bytes, and its if_tsoffset in seconds."""
    link_type, _, snaplen = struct.unpack_from(order + "HHI", body)
    interface = Interface("", link_type, snaplen, DEFAULT_TSRESOL)
    offset_s = 0
    for code, value in read_options(body[8:], order):
        if code == IF_NAME:
            interface.name = text_option(value)
        elif code == IF_DESCRIPTION:
            interface.description = text_option(value)
        elif code == IF_TSRESOL and len(value) == 1:
            interface.tsresol = value[0]
        elif code == IF_TSOFFSET and len(value) == 8:
            (offset_s,) = struct.unpack(order + "q", value)
    return interface, offset_s


def to_nanoseconds(units: Words, tsresol: int, offset_s: int) -> Ints:
    """Timestamps in units of `tsresol` as ns since 1970. What exceeds 64 bits wraps, it is no time of any capture."""
    power = tsresol & 0x7F
    if tsresol & 0x80:
        ns = _from_binary(units, power)
    elif power <= NANOSECONDS:
        ns = units * np.uint64(10 ** (NANOSECONDS - power))
    else:
        ns = units // np.uint64(10 ** min(power - NANOSECONDS, 19))
    shift = (offset_s * 1_000_000_000) & 0xFFFF_FFFF_FFFF_FFFF
    return (ns + np.uint64(shift)).astype(np.int64)


def _from_binary(units: Words, power: int) -> Words:
    """Units of 2**-power seconds; the fraction keeps 32 bits so that its product with 10**9 fits."""
    if power > 63:
        return np.zeros_like(units)
    seconds = units >> np.uint64(power)
    fraction = units & np.uint64((1 << power) - 1)
    kept = min(power, 32)
    fraction >>= np.uint64(power - kept)
    return seconds * np.uint64(1_000_000_000) + ((fraction * np.uint64(1_000_000_000)) >> np.uint64(kept))


@dataclass(slots=True)
class InterfaceTable:
    """Interfaces of all sections so far, by their place in the file."""

    link_type: list[int] = field(default_factory=list)
    clock: list[tuple[int, int]] = field(default_factory=list)
    snaplen: list[int] = field(default_factory=list)

    def add(self, interface: Interface, offset_s: int) -> None:
        """Append one interface."""
        self.link_type.append(interface.link_type)
        self.clock.append((interface.tsresol, offset_s))
        self.snaplen.append(interface.snaplen)

    def resolve(self, index: Ints, units: Words) -> tuple[Ids, Ints]:
        """Link type and ts_ns for packets of the interfaces `index`; NO_INTERFACE rows are taken as microseconds."""
        link_type = np.full(len(index), NO_INTERFACE, np.int32)
        ts_ns: Ints = np.zeros(len(index), np.int64)
        used = np.unique(index).tolist()
        for number in used:
            rows = slice(None) if len(used) == 1 else np.flatnonzero(index == number)
            clock = (DEFAULT_TSRESOL, 0) if number == NO_INTERFACE else self.clock[number]
            ts_ns[rows] = to_nanoseconds(units[rows], *clock)
            link_type[rows] = NO_INTERFACE if number == NO_INTERFACE else self.link_type[number]
        return link_type, ts_ns
