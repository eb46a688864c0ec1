"""Interfaces and timestamps of pcapng. In: interface blocks and raw timestamps. Out: link types and nanoseconds."""

import struct
from dataclasses import dataclass, field

import numpy as np

from wirewitness.analyser.capture.link import NO_INTERFACE
from wirewitness.analyser.capture.model import Flags, Ids, Interface, Ints, Words
from wirewitness.analyser.capture.pcapng_options import read_options, text_option

IF_NAME, IF_DESCRIPTION, IF_TSRESOL, IF_TSOFFSET = 2, 3, 9, 14
DEFAULT_TSRESOL = 6
NANOSECONDS = 9
# An hour below the largest 64-bit number: a time and a wait can be added.
LAST_NS = 2**63 - 1 - 3600 * 10**9


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


def to_nanoseconds(units: Words, tsresol: int, offset_s: int) -> tuple[Ints, Flags | None]:
    """Timestamps in units of `tsresol` as ns since 1970, from 0 to LAST_NS (in the year 2262); and
    where the nearest of these stands for a time outside, None when that is nowhere."""
    power = tsresol & 0x7F
    if tsresol & 0x80:
        ns, absurd = _from_binary(units, power)
    elif power <= NANOSECONDS:
        factor = 10 ** (NANOSECONDS - power)
        ns, absurd = units * np.uint64(factor), units > np.uint64(LAST_NS // factor)
    else:
        ns = units // np.uint64(10 ** min(power - NANOSECONDS, 19))
        absurd = ns > np.uint64(LAST_NS)
    if not offset_s and not absurd.any():
        return ns.astype(np.int64), None
    shift_ns = max(min(offset_s * 1_000_000_000, LAST_NS), -LAST_NS)
    most = LAST_NS - max(shift_ns, 0)
    result = np.where(absurd, LAST_NS, ns.astype(np.int64))
    absurd = absurd | (result > most) | (result < -shift_ns)
    result = np.maximum(np.minimum(result, most) + shift_ns, 0)
    return result, absurd if absurd.any() else None


def _from_binary(units: Words, power: int) -> tuple[Words, Flags]:
    """Units of 2**-power seconds; the fraction keeps 32 bits so that its product with 10**9 fits."""
    if power > 63:
        return np.zeros_like(units), np.zeros(len(units), np.bool_)
    seconds = units >> np.uint64(power)
    fraction = units & np.uint64((1 << power) - 1)
    kept = min(power, 32)
    fraction >>= np.uint64(power - kept)
    ns = seconds * np.uint64(1_000_000_000) + ((fraction * np.uint64(1_000_000_000)) >> np.uint64(kept))
    return ns, seconds >= np.uint64(LAST_NS // 1_000_000_000)


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

    def resolve(self, index: Ints, units: Words) -> tuple[Ids, Ints, Flags | None]:
        """Link type, ts_ns and where that is absurd (see to_nanoseconds) for packets of the interfaces `index`;
        NO_INTERFACE rows are taken as microseconds."""
        absurd: Flags | None = None
        link_type = np.full(len(index), NO_INTERFACE, np.int32)
        ts_ns: Ints = np.zeros(len(index), np.int64)
        used = np.unique(index).tolist()
        for number in used:
            rows = slice(None) if len(used) == 1 else np.flatnonzero(index == number)
            clock = (DEFAULT_TSRESOL, 0) if number == NO_INTERFACE else self.clock[number]
            ts_ns[rows], odd = to_nanoseconds(units[rows], *clock)
            if odd is not None:
                absurd = np.zeros(len(index), np.bool_) if absurd is None else absurd
                absurd[rows] = odd
            link_type[rows] = NO_INTERFACE if number == NO_INTERFACE else self.link_type[number]
        return link_type, ts_ns, absurd
