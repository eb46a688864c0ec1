"""pcap files as patched libpcaps wrote them. In: packets. Out: the file, by the name that editcap has for its kind."""

import struct
from collections.abc import Sequence

from tests.support.packets import Captured, pcap

OLD, PATCHED = 0xA1B2C3D4, 0xA1B2CD34
KINDS = ("rh6_1pcap", "modpcap", "suse6_3pcap", "nokiapcap")


def patched(kind: str, packets: Sequence[Captured], order: str = "<") -> bytes:
    """All packets came in on interface 2 as IPv4 to this host."""
    linux = struct.pack(order + "IHB", 2, 0x0800, 0)
    magic, more = {
        "rh6_1pcap": (OLD, linux + b"\0"),
        "modpcap": (PATCHED, linux + b"\0"),
        "suse6_3pcap": (PATCHED, linux + b"\1\1\0\0\0"),
        "nokiapcap": (OLD, struct.pack("<I", 0x9FBFD602)),
    }[kind]
    return pcap(packets, order=order, magic=magic, more=more)
