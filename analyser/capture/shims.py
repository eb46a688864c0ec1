"""Headers between the link layer and IP. In: rows of a Layer. Out: the same rows, one header further.

Sources: IEEE 802.1Q; RFC 3032, 4385, 4448 (MPLS and Ethernet over it); RFC 2516 (PPPoE).
"""

import numpy as np

from wirewitness.analyser.capture.gather import gather
from wirewitness.analyser.capture.layer import ETHERNET, IPV4, IPV6, NOTHING, Encapsulations, Layer, Verdict
from wirewitness.analyser.capture.link import LONG, MPLS, PPPOE, read_ppp, read_shorts
from wirewitness.analyser.capture.model import Ints

VLAN_TAGS = (0x8100, 0x88A8, 0x9100, 0x9200)
MPLS_LABELS = (MPLS, 0x8848)
MPLS_BOTTOM = 0x100
PPPOE_SESSION = 0x1100  # version 1, type 1, code 0
TAG = np.dtype([("vlan", ">u2"), ("ethertype", ">u2")])
PPPOE_HEADER = np.dtype([("version_code", ">u2"), ("session", ">u2"), ("length", ">u2")])
FRAME_BYTES, TAG_BYTES, LABEL_BYTES, PPPOE_BYTES = 14, 4, 4, 6
# what makes an Ethernet header credible where nothing says that one follows
CREDIBLE = (IPV4, IPV6, 0x0806, PPPOE, *MPLS_LABELS, *VLAN_TAGS)


def enter_ethernet(data: bytearray, layer: Layer, rows: Ints, _: Encapsulations) -> None:
    """An Ethernet frame in something else."""
    rows = layer.whole(rows, FRAME_BYTES)
    layer.kind[rows] = read_shorts(data, layer.start[rows] + 12)
    layer.start[rows] += FRAME_BYTES


def enter_vlan(data: bytearray, layer: Layer, rows: Ints, texts: Encapsulations) -> None:
    """A VLAN tag; number 0 is a priority mark and not a VLAN, so it leaves no trace."""
    rows = layer.whole(rows, TAG_BYTES)
    tags = gather(data, layer.start[rows], TAG)
    number = (tags["vlan"] & 0xFFF).astype(np.int64)
    layer.kind[rows] = tags["ethertype"]
    layer.start[rows] += TAG_BYTES
    named = number > 0
    if not named.all():
        rows, number = rows[named], number[named]
    layer.encapsulation[rows] = texts.nest(layer.encapsulation[rows], "vlan", number)


def enter_mpls(data: bytearray, layer: Layer, rows: Ints, texts: Encapsulations) -> None:
    """A label; below the last one the first bits tell IPv4 from IPv6 from a pseudowire."""
    rows = layer.whole(rows, LABEL_BYTES)
    bottom = (gather(data, layer.start[rows], LONG)["value"] & MPLS_BOTTOM) != 0
    layer.start[rows] += LABEL_BYTES
    rows = layer.whole(rows if bottom.all() else rows[bottom], 1)
    layer.encapsulation[rows] = texts.nest(layer.encapsulation[rows], "mpls")
    version = read_shorts(data, layer.start[rows]) >> 12
    layer.kind[rows] = np.where(version == 4, IPV4, np.where(version == 6, IPV6, NOTHING))
    _enter_pseudowire(data, layer, rows[(version != 4) & (version != 6)])


def _enter_pseudowire(data: bytearray, layer: Layer, rows: Ints) -> None:
    """Ethernet behind labels, with or without a control word of four bytes; nothing in the packet says which."""
    layer.verdict[rows] = Verdict.MPLS
    for control_bytes in (4, 0):
        place = layer.start[rows] + control_bytes
        fits = place + FRAME_BYTES <= layer.end[rows]
        rows, place = rows[fits], place[fits]
        credible = np.isin(read_shorts(data, place + 12), CREDIBLE)
        layer.start[rows[credible]] = place[credible]
        layer.kind[rows[credible]] = ETHERNET
        layer.verdict[rows[credible]] = Verdict.OTHER
        rows = rows[~credible]


def enter_pppoe(data: bytearray, layer: Layer, rows: Ints, texts: Encapsulations) -> None:
    """A PPPoE session header and the PPP protocol behind it; what PPP says to itself holds no TCP."""
    rows = layer.whole(rows, PPPOE_BYTES + 2)
    header = gather(data, layer.start[rows], PPPOE_HEADER)
    session = header["session"].astype(np.int64)
    in_session = header["version_code"] == PPPOE_SESSION
    layer.kind[rows], layer.start[rows] = read_ppp(data, layer.start[rows] + PPPOE_BYTES)
    layer.kind[rows[~in_session]] = NOTHING
    layer.encapsulation[rows] = texts.nest(layer.encapsulation[rows], "pppoe", session)
