"""Tunnels inside IP. In: rows of a Layer at a transport header. Out: the same rows at the header inside the tunnel.

Sources: RFC 2003, 2473, 4213 (IP in IP); RFC 2784, 2890 (GRE); RFC 7348 (VXLAN); RFC 8926 (GENEVE);
draft-foschiano-erspan (ERSPAN I, II and III).
"""

import numpy as np

from wirewitness.analyser.capture.gather import gather
from wirewitness.analyser.capture.layer import (
    ETHERNET,
    IN_IP,
    IN_UDP,
    IPV4,
    IPV6,
    NOTHING,
    Encapsulations,
    Layer,
    Verdict,
)
from wirewitness.analyser.capture.link import LONG, MPLS, PPPOE, read_ppp, read_shorts
from wirewitness.analyser.capture.model import Ints, Rows

# Headers between the link layer and IP. In: rows of a Layer. Out: the same rows, one header further.
#
# Sources: IEEE 802.1Q; RFC 3032, 4385, 4448 (MPLS and Ethernet over it); RFC 2516 (PPPoE).

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


IPV4_IN_IP, UDP, IPV6_IN_IP, GRE = 4, 17, 41, 47
TUNNEL_PROTOCOLS = (IPV4_IN_IP, UDP, IPV6_IN_IP, GRE)
VXLAN_PORTS, GENEVE_PORTS = (4789, 8472), (6081,)
ERSPAN_2, ERSPAN_3 = 0x88BE, 0x22EB  # ethertypes in GRE; without a sequence number the first means ERSPAN I
GRE_CHECKSUM, GRE_ROUTING, GRE_KEY, GRE_SEQUENCE, GRE_VERSION = 0x8000, 0x4000, 0x2000, 0x1000, 7
UDP_BYTES, VXLAN_BYTES, GENEVE_BYTES, GRE_BYTES, ERSPAN_2_BYTES, ERSPAN_3_BYTES = 8, 8, 8, 4, 8, 12
VXLAN_HAS_NUMBER = 0x08
FRAME_IS_ETHERNET, FRAME_IS_IP = 0, 2

VXLAN_HEADER = np.dtype([("flags", "u1"), ("reserved", "V3"), ("vni", ">u4")])
GENEVE_HEADER = np.dtype([("version_length", "u1"), ("flags", "u1"), ("protocol", ">u2"), ("vni", ">u4")])
GRE_HEADER = np.dtype([("flags", ">u2"), ("protocol", ">u2")])
ERSPAN_HEADER = np.dtype([("version_vlan", ">u2"), ("session", ">u2"), ("rest", "V6"), ("frame", ">u2")])


def enter_ip(_: bytearray, layer: Layer, rows: Ints, texts: Encapsulations) -> None:
    """An IP header right behind another one."""
    layer.kind[rows] = np.where(layer.kind[rows] == IN_IP + IPV4_IN_IP, IPV4, IPV6)
    layer.encapsulation[rows] = texts.nest(layer.encapsulation[rows], "ip-in-ip")


def enter_udp(data: bytearray, layer: Layer, rows: Ints, _: Encapsulations) -> None:
    """A UDP header: the destination port tells the tunnel."""
    fits = layer.start[rows] + UDP_BYTES <= layer.end[rows]
    layer.kind[rows[~fits]] = NOTHING  # most UDP is no tunnel, so a cut header says nothing about TCP
    rows = rows[fits]
    port = read_shorts(data, layer.start[rows] + 2)
    layer.kind[rows] = np.where(np.isin(port, VXLAN_PORTS + GENEVE_PORTS), IN_UDP + port, NOTHING)
    layer.start[rows] += UDP_BYTES


def enter_vxlan(data: bytearray, layer: Layer, rows: Ints, texts: Encapsulations) -> None:
    """A VXLAN header; without a network number it is something else on the port."""
    rows = layer.whole(rows, VXLAN_BYTES)
    header = gather(data, layer.start[rows], VXLAN_HEADER)
    real = (header["flags"] & VXLAN_HAS_NUMBER) != 0
    layer.kind[rows] = np.where(real, ETHERNET, NOTHING)
    layer.start[rows] += VXLAN_BYTES
    number = (header["vni"] >> 8).astype(np.int64)
    layer.encapsulation[rows] = texts.nest(layer.encapsulation[rows], "vxlan", number)


def enter_geneve(data: bytearray, layer: Layer, rows: Ints, texts: Encapsulations) -> None:
    """A GENEVE header of version 0 with its options."""
    rows = layer.whole(rows, GENEVE_BYTES)
    rows = layer.whole(rows, _geneve_bytes(gather(data, layer.start[rows], GENEVE_HEADER)))
    header = gather(data, layer.start[rows], GENEVE_HEADER)
    layer.kind[rows] = np.where(header["version_length"] >> 6 == 0, header["protocol"].astype(np.int64), NOTHING)
    layer.start[rows] += _geneve_bytes(header)
    number = (header["vni"] >> 8).astype(np.int64)
    layer.encapsulation[rows] = texts.nest(layer.encapsulation[rows], "geneve", number)


def _geneve_bytes(header: Rows) -> Ints:
    length: Ints = GENEVE_BYTES + (header["version_length"] & 0x3F).astype(np.int64) * 4
    return length


def enter_gre(data: bytearray, layer: Layer, rows: Ints, texts: Encapsulations) -> None:
    """A GRE header of version 0; version 1 (PPTP) and source routes are not looked into."""
    rows = layer.whole(rows, GRE_BYTES)
    header = gather(data, layer.start[rows], GRE_HEADER)
    strange = (header["flags"] & (GRE_ROUTING | GRE_VERSION)) != 0
    if strange.any():
        layer.refuse(rows[strange], Verdict.IP_TUNNEL)
        rows, header = rows[~strange], header[~strange]
    flags, protocol = header["flags"], header["protocol"].astype(np.int64)
    fields = sum(((flags & flag) != 0).astype(np.int64) for flag in (GRE_CHECKSUM, GRE_KEY, GRE_SEQUENCE))
    layer.start[rows] += GRE_BYTES + 4 * fields
    first_erspan = (protocol == ERSPAN_2) & ((flags & GRE_SEQUENCE) == 0)
    layer.kind[rows] = np.where(first_erspan, ETHERNET, protocol)
    for chosen, name in ((rows[first_erspan], "erspan"), (rows[~np.isin(protocol, (ERSPAN_2, ERSPAN_3))], "gre")):
        layer.encapsulation[chosen] = texts.nest(layer.encapsulation[chosen], name)


def enter_erspan(data: bytearray, layer: Layer, rows: Ints, texts: Encapsulations) -> None:
    """An ERSPAN header of type II, or type III with its optional platform part."""
    third = layer.kind[rows] == ERSPAN_3
    rows = layer.whole(rows, np.where(third, ERSPAN_3_BYTES, ERSPAN_2_BYTES))
    header = gather(data, layer.start[rows], ERSPAN_HEADER)
    third = layer.kind[rows] == ERSPAN_3
    frame = header["frame"].astype(np.int64)
    inside = np.where(third, (frame >> 10) & 0x1F, FRAME_IS_ETHERNET)
    layer.start[rows] += np.where(third, ERSPAN_3_BYTES + 8 * (frame & 1), ERSPAN_2_BYTES)
    layer.kind[rows] = np.where(inside == FRAME_IS_ETHERNET, ETHERNET, NOTHING)
    session = (header["session"] & 0x3FF).astype(np.int64)
    layer.encapsulation[rows] = texts.nest(layer.encapsulation[rows], "erspan", session)
    bare = layer.whole(rows[inside == FRAME_IS_IP], 1)
    version = read_shorts(data, layer.start[bare]) >> 12
    layer.kind[bare] = np.where(version == 4, IPV4, np.where(version == 6, IPV6, NOTHING))
