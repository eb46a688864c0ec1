"""Packets to a capture file. In: packets with time, lengths and link type. Out: pcapng (or pcap) that other tools open.

Times keep nanoseconds, cut packets their original length. Source: draft-ietf-opsawg-pcapng, draft-ietf-opsawg-pcap.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import BinaryIO, NamedTuple

_PCAP_NS, _BYTE_ORDER, _UNKNOWN_LENGTH = 0xA1B23C4D, 0x1A2B3C4D, 0xFFFFFFFFFFFFFFFF
_SECTION, _INTERFACE, _PACKET, _SECRETS = 0x0A0D0D0A, 1, 6, 10
_TLS_KEY_LOG = 0x544C534B
COMMENT, _APPLICATION, _TSRESOL = 1, 4, 9
# An option's length has 16 bits.
_MAX_COMMENT_BYTES = 60_000


class OutPacket(NamedTuple):
    """One packet to write; wire_bytes is its length before it was cut. options: of its block, beside the comment, as
    (code, little-endian value)."""

    ts_ns: int
    link_type: int
    wire_bytes: int
    data: bytes
    comment: str
    options: Sequence[tuple[int, bytes]] = ()


class PcapngWriter:
    """Writes one section; an interface for each link type."""

    def __init__(self, file: BinaryIO, comment: str) -> None:
        self._file = file
        self._interfaces: dict[int, int] = {}
        body = struct.pack("<IHHQ", _BYTE_ORDER, 1, 0, _UNKNOWN_LENGTH)
        self._block(_SECTION, body + _options([(COMMENT, comment.encode()), (_APPLICATION, b"wirewitness")]))

    def secrets(self, lines: bytes) -> None:
        """A key log of TLS, before the packets that it opens."""
        self._block(_SECRETS, struct.pack("<II", _TLS_KEY_LOG, len(lines)) + _padded(lines))

    def write(self, packet: OutPacket) -> None:
        """One packet, with its comment."""
        number = self._interfaces.get(packet.link_type)
        if number is None:
            number = self._interfaces[packet.link_type] = len(self._interfaces)
            body = struct.pack("<HHI", packet.link_type, 0, 0)
            self._block(_INTERFACE, body + _options([(_TSRESOL, b"\x09")]))
        head = struct.pack(
            "<IIIII", number, packet.ts_ns >> 32, packet.ts_ns & 0xFFFFFFFF, len(packet.data), packet.wire_bytes
        )
        options = [(COMMENT, packet.comment.encode())] if packet.comment else []
        options += packet.options
        self._block(_PACKET, head + _padded(packet.data) + (_options(options) if options else b""))

    def _block(self, kind: int, body: bytes) -> None:
        length = struct.pack("<I", len(body) + 12)
        self._file.write(struct.pack("<I", kind) + length + body + length)


class PcapWriter:
    """Writes pcap with nanoseconds. There is one link type and no room for comments."""

    def __init__(self, file: BinaryIO, link_type: int) -> None:
        self._file = file
        file.write(struct.pack("<IHHiIII", _PCAP_NS, 2, 4, 0, 0, 262_144, link_type))

    def write(self, packet: OutPacket) -> None:
        """One packet."""
        seconds, fraction = divmod(packet.ts_ns, 1_000_000_000)
        self._file.write(struct.pack("<IIII", seconds & 0xFFFFFFFF, fraction, len(packet.data), packet.wire_bytes))
        self._file.write(packet.data)


def _options(options: Sequence[tuple[int, bytes]]) -> bytes:
    parts = [
        struct.pack("<HH", code, len(value)) + _padded(value)
        for code, whole in options
        if (value := whole[:_MAX_COMMENT_BYTES])
    ]
    return b"".join(parts) + b"\0\0\0\0"


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)
