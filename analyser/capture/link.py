"""Link layers. In: the records of one block. Out: where the network header lies, its ethertype, and the VLAN tags.

Sources: IEEE 802.1Q; tcpdump.org/linktypes.html for the numbers and the cooked, null and loop headers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from analyser.capture.gather import gather
from analyser.capture.model import Bytes, Ints, Records, Words


class Verdict(IntEnum):
    """What became of a packet. From UNKNOWN_LINK_TYPE on it could not be decoded: the lower-case name is the reason."""

    TCP = 0
    OTHER = 1
    UNKNOWN_LINK_TYPE = 2
    UNKNOWN_INTERFACE = 3
    LINK_HEADER_CUT = 4
    VLAN_TOO_DEEP = 5
    MPLS = 6
    PPPOE = 7
    BAD_IP_HEADER = 8
    IP_HEADER_CUT = 9
    IP_FRAGMENT = 10
    IP_TUNNEL = 11
    BAD_TCP_HEADER = 12
    TCP_HEADER_CUT = 13
    TOO_MANY_PAIRS = 14


IPV4, IPV6 = 0x0800, 0x86DD
VLAN_TAGS = (0x8100, 0x88A8, 0x9100, 0x9200)
UNDECODED_ETHERTYPES = {0x8847: Verdict.MPLS, 0x8848: Verdict.MPLS, 0x8864: Verdict.PPPOE}
MAX_VLAN_TAGS = 4  # 13 bits each in one word
NO_INTERFACE, NO_PACKET = -1, -2  # instead of a link type: unknown interface, a numbered block without a packet

SHORT = np.dtype([("value", ">u2")])
LONG = np.dtype([("value", ">u4")])
TAG = np.dtype([("vlan", ">u2"), ("ethertype", ">u2")])


@dataclass(slots=True)
class Links:
    """network: offset of the network header in the block; vlans: the tags outermost first, 13 bits each (vlan_text)."""

    verdict: Bytes
    network: Ints
    ethertype: Ints
    vlans: Words


def vlan_text(vlans: int) -> str:
    """`vlan 100/200` for a packed word of VLAN tags, "" for none."""
    numbers = []
    while vlans:
        numbers.append(str(vlans & 0xFFF))
        vlans >>= 13
    return "vlan " + "/".join(reversed(numbers)) if numbers else ""


def _short(data: bytearray, offsets: Ints) -> Ints:
    return gather(data, offsets, SHORT)["value"].astype(np.int64)


def _ethernet(data: bytearray, start: Ints) -> tuple[Ints, Ints]:
    return _short(data, start + 12), start + 14


def _cooked(data: bytearray, start: Ints) -> tuple[Ints, Ints]:
    return _short(data, start + 14), start + 16


def _cooked2(data: bytearray, start: Ints) -> tuple[Ints, Ints]:
    return _short(data, start), start + 20


def _loopback(data: bytearray, start: Ints) -> tuple[Ints, Ints]:
    """Address family in the byte order of the machine that captured; families are small, so the order shows."""
    family = gather(data, start, LONG)["value"].astype(np.int64)
    family = np.where(family > 0xFFFF, family.astype(np.uint32).byteswap().astype(np.int64), family)
    ethertype = np.where(family == 2, IPV4, 0)
    ethertype[np.isin(family, (10, 24, 28, 30))] = IPV6  # Linux, the BSDs, FreeBSD, Darwin
    return ethertype, start + 4


def _raw(data: bytearray, start: Ints) -> tuple[Ints, Ints]:
    version = _short(data, start) >> 12
    return np.where(version == 4, IPV4, np.where(version == 6, IPV6, 0)), start


LINK_LAYERS: dict[int, Callable[[bytearray, Ints], tuple[Ints, Ints]]] = {
    1: _ethernet,
    113: _cooked,
    276: _cooked2,
    0: _loopback,
    108: _loopback,
    **dict.fromkeys((12, 14, 101, 228, 229), _raw),
}


def decode_links(data: bytearray, records: Records) -> Links:
    """Find the network header of every record; rows that have none carry the verdict that says why."""
    count = len(records.start)
    links = Links(
        np.zeros(count, np.uint8), records.start.copy(), np.zeros(count, np.int64), np.zeros(count, np.uint64)
    )
    if isinstance(records.link_type, int):
        _decode_rows(data, records.link_type, slice(None), links)
    else:
        for link_type in np.unique(records.link_type).tolist():
            _decode_rows(data, link_type, np.flatnonzero(records.link_type == link_type), links)
    end = records.start + records.captured
    _strip_vlans(data, end, links)
    cut = (links.network >= end) & (links.verdict == Verdict.TCP)
    links.verdict[cut] = Verdict.LINK_HEADER_CUT
    return links


def _decode_rows(data: bytearray, link_type: int, rows: "slice | Ints", links: Links) -> None:
    layer = LINK_LAYERS.get(link_type)
    if layer is None:
        reasons = {NO_INTERFACE: Verdict.UNKNOWN_INTERFACE, NO_PACKET: Verdict.OTHER}
        links.verdict[rows] = reasons.get(link_type, Verdict.UNKNOWN_LINK_TYPE)
        return
    links.ethertype[rows], links.network[rows] = layer(data, links.network[rows])


def _strip_vlans(data: bytearray, end: Ints, links: Links) -> None:
    """Step over VLAN tags; number 0 is a priority mark and not a VLAN, so it leaves no trace."""
    rows = np.flatnonzero(np.isin(links.ethertype, VLAN_TAGS))
    for _ in range(MAX_VLAN_TAGS):
        whole = links.network[rows] + 4 <= end[rows]
        links.verdict[rows[~whole]] = Verdict.LINK_HEADER_CUT
        rows = rows[whole]
        if not len(rows):
            break
        tags = gather(data, links.network[rows], TAG)
        vlan = (tags["vlan"] & 0xFFF).astype(np.uint64)
        before = links.vlans[rows]
        links.vlans[rows] = np.where(vlan > 0, (before << np.uint64(13)) | np.uint64(0x1000) | vlan, before)
        links.ethertype[rows] = tags["ethertype"]
        links.network[rows] += 4
        rows = rows[np.isin(links.ethertype[rows], VLAN_TAGS)]
    links.verdict[rows] = Verdict.VLAN_TOO_DEEP
