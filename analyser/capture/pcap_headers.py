"""Record headers of pcap files. In: the magic, and the first records. Out: how long the header of a record is.

All variants begin with the same 16 bytes (seconds, fraction, captured and wire length, 4 bytes each). Patched libpcaps
write more behind them, two of them under the ordinary magic, and two that differ share a magic of their own:

    a1b2c3d4  16  the ordinary header
    a1b2c3d4  24  + interface index 4, Ethernet type 2, packet type 1, padding 1      Red Hat 6.1 (patch of 1999-04-17)
    a1b2c3d4  20  + 4 bytes of unknown meaning                                        Nokia IPSO
    a1b2cd34  24  + interface index 4, Ethernet type 2, packet type 1, padding 1      patch of 1999-10-29
    a1b2cd34  28  + the same 7 bytes, two processors 1 each, padding 3                S.u.S.E. 6.3 (patch of 1999-09-15)

Which one it is, only the records tell: the first variant wins in which the first three make sense; a file that ends
before them is rather one that ends with a whole record. Where none makes sense (damage), it is the first variant. The
first record is enough, so that a live source need not wait for three, where it fits no other variant, or where the type
of an Ethernet packet stands in its place in the first variant and in no other.

Sources: draft-ietf-opsawg-pcap; libpcap's sf-pcap.c; Wireshark's wiretap/libpcap.c and libpcap.h, which count what is
odd in the first three records and take the variant with the least. That a packet is longer than the snaplen says
nothing here: many writers state a snaplen that they exceed.
"""

import struct
from collections.abc import Callable, Sequence
from enum import Enum
from typing import NamedTuple

ORDINARY_BYTES = 16
_RECORDS_TRIED = 3
_MOST_INTERFACES = 10_000
_LAST_PACKET_TYPE = 4  # PACKET_HOST to PACKET_OUTGOING of linux/if_packet.h
_FIRST_ETHERNET_TYPE = 0x0600
# IPv4, ARP, VLAN tags, IPv6, MPLS, PPPoE
_COMMON_TYPES = frozenset((0x0800, 0x0806, 0x8100, 0x88A8, 0x86DD, 0x8847, 0x8863, 0x8864))
_ETHERNET, _ETHERNET_BYTES, _TYPE_AT = 1, 14, 12
# ETH_P_* of linux/if_ether.h that are no Ethernet type
_OTHER_TYPES = frozenset((*range(0x18), 0x0060, 0x0200, 0x0400))


class Verdict(Enum):
    """What the first records say about a variant. OPEN: more bytes are needed. CUT: the file ends within a record."""

    OPEN = 0
    WRONG = 1
    CUT = 2
    SOUND = 3


class Variant(NamedTuple):
    """A length of record headers, and whether what stands behind the common 16 bytes (byte order, those bytes) fits."""

    header_bytes: int
    fits: Callable[[str, bytes], bool]


class Common(NamedTuple):
    """What all variants share: the byte order, the link type, and what no length of a packet exceeds."""

    order: str
    link_type: int
    max_captured: int
    max_wire: int


def _anything(_order: str, _more: bytes) -> bool:
    return True


def _fits_linux(order: str, more: bytes) -> bool:
    interface, ethernet_type, packet_type = struct.unpack_from(order + "IHB", more)
    known = ethernet_type >= _FIRST_ETHERNET_TYPE or ethernet_type in _OTHER_TYPES
    return known and interface <= _MOST_INTERFACES and packet_type <= _LAST_PACKET_TYPE


def _fits_nokia(_order: str, more: bytes) -> bool:
    """Seen are only 9 or b, fbf, b or d, 6 or 9, 0, 1 or 2, read as little-endian; Wireshark itself writes zeros."""
    (word,) = struct.unpack("<I", more)
    if not word:
        return True
    digits = f"{word:08x}"
    return (
        digits[0] in "9b"
        and digits[1:4] == "fbf"
        and digits[4] in "bd"
        and digits[5] in "69"
        and digits[6] == "0"
        and digits[7] in "12"
    )


_ORDINARY = Variant(ORDINARY_BYTES, _anything)
_LINUX = Variant(24, _fits_linux)
_LINUX_SMP = Variant(28, _fits_linux)
_NOKIA = Variant(20, _fits_nokia)
ORDINARY: Sequence[Variant] = (_ORDINARY,)
OLD_MAGIC: Sequence[Variant] = (_ORDINARY, _LINUX, _NOKIA)
PATCHED_MAGIC: Sequence[Variant] = (_LINUX, _LINUX_SMP)


def header_bytes(
    variants: Sequence[Variant], common: Common, data: bytearray, start: int, end: int, eof: bool
) -> int | None:
    """Bytes of a record header, by the records in data[start:end]; None while they do not tell. At `eof` they do.

    More bytes never change the answer.
    """
    first = variants[0]
    if len(variants) == 1 or _first_packet_tells(variants, common, data, start, end):
        return first.header_bytes
    verdicts = [_verdict(variant, common, data, start, end, eof) for variant in variants]
    if all(verdict == Verdict.WRONG for verdict in verdicts[1:]):
        return first.header_bytes
    for variant, verdict in zip(variants, verdicts, strict=True):
        if verdict == Verdict.SOUND:
            return variant.header_bytes
        if verdict == Verdict.OPEN:
            return None
    cut = (variant for variant, verdict in zip(variants, verdicts, strict=True) if verdict == Verdict.CUT)
    return next(cut, first).header_bytes


def _first_packet_tells(variants: Sequence[Variant], common: Common, data: bytearray, start: int, end: int) -> bool:
    """Does an Ethernet packet lie in its place behind a header of the first variant, and of no other?"""
    longest = max(variant.header_bytes for variant in variants)
    if common.link_type != _ETHERNET or start + longest + _ETHERNET_BYTES > end:
        return False
    first, *others = (
        int.from_bytes(data[at : at + 2], "big") in _COMMON_TYPES
        for at in (start + variant.header_bytes + _TYPE_AT for variant in variants)
    )
    # The first record alone: those behind it may be there or not yet, and must not change the answer.
    verdict = _verdict(variants[0], common, data, start, end, False, records=1)
    return first and not any(others) and verdict != Verdict.WRONG


def _verdict(
    variant: Variant, common: Common, data: bytearray, start: int, end: int, eof: bool, records: int = _RECORDS_TRIED
) -> Verdict:
    at, unfinished = start, Verdict.CUT if eof else Verdict.OPEN
    for number in range(records):
        if at == end and eof and number:
            return Verdict.SOUND
        if at + ORDINARY_BYTES > end:
            return unfinished
        _, fraction, captured, wire = struct.unpack_from(common.order + "4I", data, at)
        if fraction >= 1_000_000 or captured > min(wire, common.max_captured) or wire > common.max_wire:
            return Verdict.WRONG
        if at + variant.header_bytes > end:
            return unfinished
        if not variant.fits(common.order, bytes(data[at + ORDINARY_BYTES : at + variant.header_bytes])):
            return Verdict.WRONG
        at += variant.header_bytes + captured
        if at > end:
            return unfinished
    return Verdict.SOUND
