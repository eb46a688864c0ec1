"""Link layers. In: the records of one block. Out: a Layer with the first header behind the link layer's own.

Source: tcpdump.org/linktypes.html for the numbers and the cooked, null and loop headers; RFC 1661, 1662 for PPP.
"""

from collections.abc import Callable

import numpy as np

from wirewitness.analyser.capture.gather import gather
from wirewitness.analyser.capture.layer import IPV4, IPV6, NOTHING, Layer, Verdict
from wirewitness.analyser.capture.model import Ints, Records

NO_INTERFACE, NO_PACKET = -1, -2  # instead of a link type: unknown interface, a numbered block without a packet
MAX_OFFLOAD_BYTES = 1 << 20  # BIG TCP hands 512 KiB to the network card at most
PPPOE, MPLS = 0x8864, 0x8847
PPP_PROTOCOLS = {0x0021: IPV4, 0x0057: IPV6, 0x0281: MPLS}

SHORT = np.dtype([("value", ">u2")])
LONG = np.dtype([("value", ">u4")])


def read_shorts(data: bytearray, offsets: Ints) -> Ints:
    """The big-endian 16-bit numbers at the offsets."""
    return gather(data, offsets, SHORT)["value"].astype(np.int64)


def _ethernet(data: bytearray, start: Ints) -> tuple[Ints, Ints]:
    return read_shorts(data, start + 12), start + 14


def _cooked(data: bytearray, start: Ints) -> tuple[Ints, Ints]:
    return read_shorts(data, start + 14), start + 16


def _cooked2(data: bytearray, start: Ints) -> tuple[Ints, Ints]:
    return read_shorts(data, start), start + 20


def _loopback(data: bytearray, start: Ints) -> tuple[Ints, Ints]:
    """Address family in the byte order of the machine that captured; families are small, so the order shows."""
    family = gather(data, start, LONG)["value"].astype(np.int64)
    family = np.where(family > 0xFFFF, family.astype(np.uint32).byteswap().astype(np.int64), family)
    ethertype = np.where(family == 2, IPV4, 0)
    ethertype[np.isin(family, (10, 24, 28, 30))] = IPV6  # Linux, the BSDs, FreeBSD, Darwin
    return ethertype, start + 4


def _raw(data: bytearray, start: Ints) -> tuple[Ints, Ints]:
    version = read_shorts(data, start) >> 12
    return np.where(version == 4, IPV4, np.where(version == 6, IPV6, 0)), start.copy()


def read_ppp(data: bytearray, start: Ints) -> tuple[Ints, Ints]:
    """A PPP protocol number of one or two bytes, behind the address and control bytes where these are there."""
    first = read_shorts(data, start)
    start = np.where(first == 0xFF03, start + 2, start)
    protocol = read_shorts(data, start)
    short = (protocol & 0x100) != 0  # the last byte of a protocol number is odd, the one before it even
    protocol = np.where(short, protocol >> 8, protocol)
    ethertype = np.zeros(len(start), np.int64)
    for number, kind in PPP_PROTOCOLS.items():
        ethertype[protocol == number] = kind
    return ethertype, start + np.where(short, 1, 2)


def _hdlc(data: bytearray, start: Ints) -> tuple[Ints, Ints]:
    """Cisco HDLC: address, control, ethertype."""
    return read_shorts(data, start + 2), start + 4


def _pppoe(data: bytearray, start: Ints) -> tuple[Ints, Ints]:
    return np.full(len(start), PPPOE, np.int64), start.copy()


LINK_LAYERS: dict[int, Callable[[bytearray, Ints], tuple[Ints, Ints]]] = {
    1: _ethernet,
    113: _cooked,
    276: _cooked2,
    0: _loopback,
    108: _loopback,
    9: read_ppp,
    50: read_ppp,
    51: _pppoe,
    104: _hdlc,
    **dict.fromkeys((12, 14, 101, 228, 229), _raw),
}


def decode_links(data: bytearray, records: Records) -> Layer:
    """The first header of every record; rows that have none carry the verdict that says why."""
    count = len(records.start)
    end = records.start + records.captured
    # only used where the IP header has no length; a false wire length must not make a huge segment
    wire_end = records.start + np.clip(records.wire, records.captured, records.captured + MAX_OFFLOAD_BYTES)
    layer = Layer(
        np.arange(count),
        records.start,
        end,
        wire_end,
        np.full(count, NOTHING, np.int64),
        np.zeros(count, np.int32),
        np.full(count, Verdict.OTHER, np.uint8),
    )
    if isinstance(records.link_type, int):
        _decode_rows(data, records.link_type, slice(None), layer)
    else:
        layer.start = records.start.copy()
        for link_type in np.unique(records.link_type).tolist():
            _decode_rows(data, link_type, np.flatnonzero(records.link_type == link_type), layer)
    layer.refuse(np.flatnonzero((layer.start >= end) & (layer.kind != NOTHING)), Verdict.LINK_HEADER_CUT)
    return layer


def _decode_rows(data: bytearray, link_type: int, rows: "slice | Ints", layer: Layer) -> None:
    decode = LINK_LAYERS.get(link_type)
    if decode is None:
        reasons = {NO_INTERFACE: Verdict.UNKNOWN_INTERFACE, NO_PACKET: Verdict.OTHER}
        layer.verdict[rows] = reasons.get(link_type, Verdict.UNKNOWN_LINK_TYPE)
    elif isinstance(rows, slice):
        layer.kind, layer.start = decode(data, layer.start)
    else:
        layer.kind[rows], layer.start[rows] = decode(data, layer.start[rows])
