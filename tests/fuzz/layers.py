"""Packets of any stack of link layers, tunnels and IP, made up header by header; and capture files broken record by
record.

In: dice. Out: packets with their link type, capture files. The innermost packet is a TCP segment of a small
decoder, so that what is read under all the headers goes on to be decoded.
"""

from __future__ import annotations

import gzip
import struct
from random import Random

import lz4.frame
import zstandard

from tests.fuzz.mutate import EDGES, broken
from tests.support import packets as made
from tests.support.packets import Captured

_SAYINGS = [
    b"",
    b"x",
    b"\x10\x0d\0\4MQTT\4\2\0\x3c\0\1c",
    b"\0\0\0\x0f\0\x12\0\0\0\0\0\1\0\5abcde",
    bytes(40),
    b"\x16\3\1\0\5" + bytes(5),
]
_ETHER, _IPV4, _IPV6 = "ether", "ipv4", "ipv6"
_LINK_TYPES = [0, 1, 9, 12, 14, 50, 101, 104, 108, 113, 228, 229, 276, 105, 147, 65535]
_ETHERTYPES = {_IPV4: 0x0800, _IPV6: 0x86DD}
MAX_LAYERS = 6


def segment(dice: Random) -> bytes:
    """A TCP segment with any flags and options."""
    options = dice.choice(
        [
            b"",
            b"",
            b"\2\4\5\xb4",
            b"\1\3\3\7",
            b"\1\1\x08\x0a" + bytes(8),
            b"\5\x0a" + bytes(8) + b"\1\1",
            b"\2\0\0\0",
            b"\xfe\xff\0\0",
        ]
    )
    ports = dice.choice([(40000, 9092), (9092, 40000), (40001, 1883), (27017, 40002), (0, 0)])
    numbers = [dice.choice([0, 1, 100, 2**31, 2**32 - 1]) for _ in range(2)]
    return made.tcp(
        dice.choice(_SAYINGS),
        source_port=ports[0],
        destination_port=ports[1],
        seq=numbers[0],
        ack=numbers[1],
        flags=dice.choice([2, 18, 16, 24, 17, 4, 20, 0, 0xFF]),
        window=dice.choice([0, 1, 512, 65535]),
        options=options,
    )


def _over_ip(body: bytes, protocol: int, dice: Random) -> tuple[str, bytes]:
    """The body in IPv4 or IPv6, sometimes with wrong lengths, options, extension headers or as a fragment."""
    if dice.random() < 0.6:
        fragment = dice.choice([0, 0, 0, 0, 0x2000, 0x2001, 1, 0x1FFF, 0x4000])
        total = None if dice.random() < 0.9 else dice.choice([0, 19, 20, 21, 65535])
        options = dice.choice([b"", b"", b"", b"\1\1\1\0", b"\x07\x04\x04\0" * 10])
        return _IPV4, made.ipv4(
            body, protocol=protocol, options=options, total_length=total, fragment=fragment, ip_id=dice.choice([1, 2])
        )
    following = protocol
    for _ in range(dice.choice([0, 0, 0, 1, 2, 40])):
        kind = dice.choice([0, 43, 44, 51, 60])
        more = (
            bytes([following, 0 if kind == 44 else dice.choice([0, 0, 1, 255])])
            + bytes([0, dice.choice([0, 1, 8, 9])])
            + bytes(4)
        )
        body, following = more + body, kind
    length = None if dice.random() < 0.9 else dice.choice([0, 1, 7, 65535])
    return _IPV6, made.ipv6(body, next_header=following, payload_length=length)


def _wrapped(kind: str, body: bytes, dice: Random) -> tuple[str, bytes]:
    """One layer around a packet of that kind."""
    if kind == _ETHER:
        match dice.randrange(5):
            case 0:
                return _over_ip(
                    made.udp(made.vxlan(body, 42, flags=dice.choice([8, 8, 0, 0xFF])), dice.choice([4789, 8472])),
                    17,
                    dice,
                )
            case 1:
                options = bytes(4 * dice.choice([0, 0, 1, 63]))
                return _over_ip(
                    made.udp(made.geneve(body, 7, options=options, version=dice.choice([0, 0, 3])), 6081), 17, dice
                )
            case 2:
                return _over_ip(
                    made.gre(made.erspan2(body, 5), 0x88BE, flags=dice.choice([0x1000, 0x1000, 0, 0xFFFF])), 47, dice
                )
            case 3:
                platform = dice.choice([b"", bytes(8)])
                return _over_ip(
                    made.gre(
                        made.erspan3(body, 5, frame_type=dice.choice([0, 2]), platform=platform), 0x22EB, flags=0x1000
                    ),
                    47,
                    dice,
                )
            case _:
                return _over_ip(made.gre(body, 0x6558), 47, dice)
    ethertype = _ETHERTYPES[kind]
    match dice.randrange(6):
        case 0:
            labels = [dice.choice([0, 16, 1000, 0xFFFFF]) for _ in range(dice.choice([1, 2, 20]))]
            return _ETHER, made.ethernet(made.mpls(body, *labels), dice.choice([0x8847, 0x8848]))
        case 1:
            protocol = b"\0\x21" if kind == _IPV4 else b"\0\x57"
            return _ETHER, made.ethernet(
                made.pppoe(body, 5, protocol=dice.choice([protocol, protocol[1:], b""])), 0x8864
            )
        case 2:
            return _over_ip(body, 4 if kind == _IPV4 else 41, dice)
        case 3:
            return _over_ip(made.gre(body, ethertype), 47, dice)
        case _:
            tags = [
                (dice.choice([0x8100, 0x88A8, 0x9100]), dice.randrange(4096))
                for _ in range(dice.choice([0, 0, 1, 2, 17]))
            ]
            return _ETHER, made.ethernet(body, ethertype, tags=tags)


def packet(dice: Random) -> tuple[int, bytes]:
    """Link type and bytes of a packet; the type is another than the bytes' now and then."""
    kind, body = _over_ip(segment(dice), 6, dice)
    for _ in range(dice.randrange(MAX_LAYERS)):
        kind, body = _wrapped(kind, body, dice)
    if kind == _ETHER:
        link, data = 1, body
    else:
        family = 2 if kind == _IPV4 else dice.choice([24, 28, 30, 10])
        link, data = dice.choice(
            [
                (1, made.ethernet(body, _ETHERTYPES[kind])),
                (113, made.cooked(body, _ETHERTYPES[kind])),
                (276, made.cooked2(body, _ETHERTYPES[kind])),
                (101, body),
                (0, struct.pack("<I", family) + body),
                (108, struct.pack(">I", family) + body),
                (9, b"\xff\3\0\x21" + body),
                (104, b"\x0f\0\x08\0" + body),
            ]
        )
    if dice.random() < 0.2:
        data = broken(data, dice)
    return (dice.choice(_LINK_TYPES) if dice.random() < 0.05 else link), data


def _units(dice: Random) -> int:
    return dice.choice([0, 1, 10**9, 1_700_000_000_000_000_000, 2**63 - 1, 2**63, 2**64 - 1])


def _options(dice: Random, order: str) -> bytes:
    """Options of a block: names, resolutions, offsets, comments, whole and broken."""
    found = b""
    for _ in range(dice.choice([0, 0, 1, 3])):
        code = dice.choice([1, 2, 3, 4, 9, 14, 12, 5, 2988, 0, 65535])
        value = dice.choice(
            [
                b"",
                b"\6",
                b"\x09",
                b"\x80",
                b"\xff",
                struct.pack(order + "q", dice.choice([0, -(2**63), 2**63 - 1])),
                b"a name",
                bytes(16),
            ]
        )
        found += made.option(code, value, order)
    return found


def capture_file(dice: Random) -> bytes:
    """A capture of made-up packets, in any format, sometimes compressed; blocks and records broken here and there."""
    if dice.random() < 0.4:
        link, _ = packet(dice)
        records = [
            Captured(dice.choice([0, 1, 10**9, 4 * 10**18]), packet(dice)[1]) for _ in range(dice.choice([0, 1, 3, 9]))
        ]
        data = made.pcap(
            records,
            order=dice.choice("<>"),
            nanoseconds=dice.random() < 0.5,
            link_type=link,
            snaplen=dice.choice([0, 64, 262144, 2**32 - 1]),
        )
    else:
        data = b"".join(_section(dice) for _ in range(dice.choice([1, 1, 2])))
    return packed(broken(data, dice) if dice.random() < 0.4 else data, dice)


def _section(dice: Random) -> bytes:
    order = dice.choice("<<>")
    blocks = [made.section(order, _options(dice, order))]
    for _ in range(dice.choice([1, 1, 2])):
        link, _ = packet(dice)
        blocks.append(
            made.interface(order, link_type=link, snaplen=dice.choice([0, 0, 60]), options=_options(dice, order))
        )
    blocks += [_block(dice, order) for _ in range(dice.choice([0, 1, 4, 9]))]
    if dice.random() < 0.2:
        dice.shuffle(blocks)
    return b"".join(broken(one, dice) if dice.random() < 0.05 else one for one in blocks)


def _block(dice: Random, order: str) -> bytes:
    data, number = packet(dice)[1], dice.choice([0, 0, 0, 1, 2, 65535])
    wire = dice.choice([None, None, None, 0, 65536, 2**32 - 1])
    match dice.randrange(10):
        case 0:
            return made.simple(data, order, wire=wire)
        case 1:
            return made.old_packet(data, _units(dice), order, number=number, wire=wire, options=_options(dice, order))
        case 2:
            records = b"".join(
                made.option(dice.choice([1, 2, 3]), b"\x0a\0\0\1" + dice.choice([b"a\0", b"", b"a", b"\0" * 20]), order)
                for _ in range(dice.choice([0, 1, 9]))
            )
            return made.block(4, records + made.option(0, b"", order) + _options(dice, order), order)
        case 3:
            statistics = struct.pack(order + "III", number, dice.choice(EDGES[:6]) % 2**32, 0)
            counts = b"".join(
                made.option(code, struct.pack(order + "Q", _units(dice)), order) for code in (2, 3, 4, 5, 7)
            )
            return made.block(5, statistics + counts, order)
        case 4:
            return made.block(10, struct.pack(order + "II", 0x544C534B, dice.choice([0, 4, 2**31])) + b"#abc", order)
        case 5:
            return made.block(
                dice.choice([0, 7, 8, 9, 11, 0xBAD, 0x80000001, 2**32 - 1]), data[: dice.randrange(40)], order
            )
        case _:
            return made.enhanced(data, _units(dice), order, number=number, wire=wire, options=_options(dice, order))


def packed(data: bytes, dice: Random) -> bytes:
    """The bytes, or compressed; the compressed ones broken now and then, or followed by others."""
    match dice.randrange(12):
        case 0:
            found = gzip.compress(data, 1, mtime=0)
        case 1:
            found = zstandard.ZstdCompressor().compress(data)
        case 2:
            found = lz4.frame.compress(data)
        case _:
            return data
    if dice.random() < 0.2:
        found += found[: dice.randrange(len(found) + 1)]
    return broken(found, dice) if dice.random() < 0.3 else found


def change(data: bytes, dice: Random) -> bytes:
    """A capture file changed: made anew, broken as bytes, or with a packet's record doubled somewhere."""
    if dice.random() < 0.5:
        return capture_file(dice)
    return broken(data, dice)
