"""From records down to TCP: link layers, tags, tunnels and fragments. In: the records of one block. Out: the IP packets
that hold TCP, and what became of every record.

All packets of a block go down together, one header at a time, so that a mirror that wraps every packet costs a few
array operations more. The ways down are HEADERS: kind of header -> function.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from wirewitness.analyser.capture import tunnels
from wirewitness.analyser.capture.blocks import SLACK
from wirewitness.analyser.capture.fragments import Fragment, Fragments, Whole
from wirewitness.analyser.capture.layer import ETHERNET, IN_IP, IN_UDP, IPV4, IPV6, Encapsulations, Layer, Verdict
from wirewitness.analyser.capture.link import PPPOE, decode_links
from wirewitness.analyser.capture.model import Bytes, Ints, Records
from wirewitness.analyser.capture.network import (
    EXTENSIONS,
    TCP,
    Packets,
    decode_networks,
    merge_packets,
    skip_extensions,
)

MAX_HEADERS = 16  # tags, labels and tunnel headers in front of one IP header
MAX_IP_HEADERS = 8

Step = Callable[[bytearray, Layer, Ints, Encapsulations], None]
HEADERS: dict[int, Step] = {
    **dict.fromkeys(tunnels.VLAN_TAGS, tunnels.enter_vlan),
    **dict.fromkeys(tunnels.MPLS_LABELS, tunnels.enter_mpls),
    PPPOE: tunnels.enter_pppoe,
    ETHERNET: tunnels.enter_ethernet,
    IN_IP + tunnels.IPV4_IN_IP: tunnels.enter_ip,
    IN_IP + tunnels.IPV6_IN_IP: tunnels.enter_ip,
    IN_IP + tunnels.GRE: tunnels.enter_gre,
    IN_IP + tunnels.UDP: tunnels.enter_udp,
    **{IN_UDP + port: tunnels.enter_vxlan for port in tunnels.VXLAN_PORTS},
    **{IN_UDP + port: tunnels.enter_geneve for port in tunnels.GENEVE_PORTS},
    tunnels.ERSPAN_2: tunnels.enter_erspan,
    tunnels.ERSPAN_3: tunnels.enter_erspan,
}


class Descent(NamedTuple):
    """data: the block, or a copy of it with the payloads of joined fragments behind; offsets count in it.
    packets: those that hold TCP. verdict: one for each record."""

    data: bytearray
    packets: Packets
    verdict: Bytes
    encapsulations: list[str]


def descend(data: bytearray, records: Records, fragments: Fragments) -> Descent:
    """Take all records of a block down to TCP."""
    texts = Encapsulations()
    verdict = np.zeros(len(records.start), np.uint8)
    layer = decode_links(data, records)
    found: list[Packets] = []
    for _ in range(MAX_IP_HEADERS):
        enter_headers(data, layer, texts)
        verdict[layer.row] = layer.verdict
        packets = decode_networks(data, layer)
        data = join_fragments(data, packets, records, fragments, texts)
        verdict[packets.row] = packets.verdict
        found.append(packets.choose(packets.verdict == Verdict.TCP))
        layer = inside(packets)
        if not len(layer.row):
            break
    verdict[layer.row] = Verdict.TOO_MANY_HEADERS
    return Descent(data, merge_packets(found), verdict, texts.texts)


def enter_headers(data: bytearray, layer: Layer, texts: Encapsulations) -> None:
    """Take every row to its IP header; rows that have none end with their verdict."""
    rows = np.flatnonzero((layer.kind != IPV4) & (layer.kind != IPV6))
    for _ in range(MAX_HEADERS):
        kinds = layer.kind[rows]
        present = [kind for kind in np.unique(kinds).tolist() if kind in HEADERS]
        if not present:
            return
        groups: dict[Step, list[int]] = {}
        for kind in present:
            groups.setdefault(HEADERS[kind], []).append(kind)
        for step, members in groups.items():
            step(data, layer, rows[np.isin(kinds, members)], texts)
        rows = rows[np.isin(kinds, present)]
    layer.refuse(rows[np.isin(layer.kind[rows], list(HEADERS))], Verdict.TOO_MANY_HEADERS)


def inside(packets: Packets) -> Layer:
    """What may be a tunnel in the packets."""
    if not len(packets.row) or int(packets.verdict.max()) == Verdict.TCP:
        packets = packets.choose(np.zeros(len(packets.row), np.bool_))
    else:
        packets = packets.choose(
            (packets.verdict == Verdict.OTHER) & np.isin(packets.protocol, tunnels.TUNNEL_PROTOCOLS)
        )
    return Layer(
        packets.row,
        packets.transport,
        np.minimum(packets.end, packets.stop),
        packets.stop,
        packets.protocol.astype(np.int64) + IN_IP,
        packets.encapsulation,
        packets.verdict,
    )


def join_fragments(
    data: bytearray, packets: Packets, records: Records, fragments: Fragments, texts: Encapsulations
) -> bytearray:
    """Put fragments together. The packet that completes a payload becomes a packet with that payload, which lies behind
    the block in a copy of it; so every offset stays true, and blocks without such packets cost nothing."""
    rows = np.flatnonzero(packets.verdict == Verdict.IP_FRAGMENT)
    if not len(rows):
        return data
    parts = [data]
    position = len(data)
    # plain lists: an element of an array costs ten times as much
    columns = (packets.start, packets.transport, packets.stop, packets.end, packets.is_ipv6, packets.encapsulation)
    places = zip(*(column[rows].tolist() for column in columns), strict=True)
    numbers = packets.row[rows]
    times = records.ts_ns[numbers].tolist()
    for i, row, ts_ns, place in zip(rows.tolist(), numbers.tolist(), times, places, strict=True):
        key, piece = _read_fragment(data, place, texts)
        result = fragments.add(key, piece, ts_ns, records.first_packet + row)
        if isinstance(result, Whole):
            parts.append(bytearray(result.data))
            _place_whole(packets, i, position, result)
            position += len(result.data)
        elif result:
            packets.verdict[i] = Verdict.OTHER
    if len(parts) == 1:
        return data
    data = bytearray().join([*parts, bytes(SLACK)])
    _skip_joined_extensions(data, packets, len(parts[0]))
    return data


def _place_whole(packets: Packets, i: int, position: int, whole: Whole) -> None:
    packets.transport[i], packets.protocol[i] = position, whole.protocol
    packets.end[i], packets.stop[i] = position + len(whole.data), position + whole.sent
    packets.verdict[i] = Verdict.TCP if whole.protocol == TCP else Verdict.OTHER


def _skip_joined_extensions(data: bytearray, packets: Packets, first: int) -> None:
    """Joined IPv6 payloads may begin with further extension headers; another fragment header among them is a lie."""
    candidates = packets.is_ipv6 & (packets.transport >= first) & np.isin(packets.protocol, EXTENSIONS)
    for i in np.flatnonzero(candidates).tolist():
        verdict, protocol, position = skip_extensions(
            data, int(packets.protocol[i]), int(packets.transport[i]), int(packets.end[i])
        )
        packets.protocol[i], packets.transport[i] = protocol, position
        if verdict == Verdict.TCP and protocol != TCP:
            verdict = Verdict.OTHER
        packets.verdict[i] = Verdict.BAD_IP_HEADER if verdict == Verdict.IP_FRAGMENT else verdict


def _read_fragment(
    data: bytearray, place: tuple[int, int, int, int, bool, int], texts: Encapsulations
) -> tuple[bytes, Fragment]:
    """A fragment, and what is equal in all fragments of one IP packet only. place: a row of the columns of Packets."""
    start, transport, stop, end, is_ipv6, encapsulation = place
    where = texts.texts[encapsulation].encode()
    if is_ipv6:
        bits = int.from_bytes(data[transport + 2 : transport + 4], "big")
        offset, more, protocol = bits & 0xFFF8, bool(bits & 1), data[transport]
        key = data[start + 8 : start + 40] + data[transport + 4 : transport + 8] + where
        transport += 8
    else:
        bits = int.from_bytes(data[start + 6 : start + 8], "big")
        offset, more, protocol = (bits & 0x1FFF) * 8, bool(bits & 0x2000), data[start + 9]
        key = data[start + 12 : start + 20] + data[start + 4 : start + 6] + data[start + 9 : start + 10] + where
    captured = bytes(data[transport : max(min(stop, end), transport)])
    return bytes(key), Fragment(offset, max(stop - transport, 0), captured, more, protocol)
