"""What pcapng says beside packets. In: bodies of blocks. Out: names, secrets, comments and counters in the statistics.

Source: draft-ietf-opsawg-pcapng. Everything is kept up to a limit; what is cut or makes no sense is passed over.
"""

import struct
from ipaddress import IPv4Address, IPv6Address

from wirewitness.analyser.capture.limits import CaptureLimits
from wirewitness.analyser.capture.model import CaptureStats, Comment, Interface, Secret
from wirewitness.analyser.capture.pcapng_options import read_options, text_option

COMMENT = 1
SHB_HARDWARE, SHB_OS, SHB_APPLICATION, ISB_IFDROP, ISB_OSDROP = 2, 3, 4, 5, 7
NAME_IPV4, NAME_IPV6 = 1, 2
ADDRESS_BYTES = {NAME_IPV4: 4, NAME_IPV6: 16}
# No interface dropped so many; sums over all interfaces and files stay within 64 bits.
MAX_DROPS = 1 << 48
MAX_COMMENT_CHARACTERS, MAX_NAME_CHARACTERS = 4096, 255
SECRET_KINDS = {
    0x544C534B: "TLS key log",
    0x5353484B: "SSH key log",
    0x57474B4C: "WireGuard key log",
    0x5A4E574B: "ZigBee network key",
    0x5A415053: "ZigBee APS key",
}


def read_section(body: bytes, order: str, stats: CaptureStats, limits: CaptureLimits) -> None:
    """The options of a section header body: who captured, and comments."""
    for code, value in read_options(body[16:], order):
        text = text_option(value)
        stats.hardware = text if code == SHB_HARDWARE else stats.hardware
        stats.os = text if code == SHB_OS else stats.os
        stats.application = text if code == SHB_APPLICATION else stats.application
        if code == COMMENT:
            add_comment(stats, limits, None, value)


def read_comments(options: bytes, order: str, stats: CaptureStats, limits: CaptureLimits) -> None:
    """The comments among the options of a block that is no packet."""
    for code, value in read_options(options, order):
        if code == COMMENT:
            add_comment(stats, limits, None, value)


def add_comment(stats: CaptureStats, limits: CaptureLimits, packet: int | None, value: bytes) -> None:
    """Keep a comment, or only count it when there are too many."""
    if len(stats.comments) < limits.max_comments:
        stats.comments.append(Comment(packet, text_option(value)[:MAX_COMMENT_CHARACTERS]))
    else:
        stats.comments_dropped += 1


def read_statistics(options: bytes, order: str, interface: Interface) -> None:
    """The drop counters of an interface."""
    for code, value in read_options(options, order):
        if code in (ISB_IFDROP, ISB_OSDROP) and len(value) == 8:
            (count,) = struct.unpack(order + "Q", value)
            setattr(interface, "if_drop" if code == ISB_IFDROP else "os_drop", min(count, MAX_DROPS))


def read_names(body: bytes, order: str, stats: CaptureStats, limits: CaptureLimits) -> None:
    """A name resolution block: the first name of each address is kept, the first block that names it counts."""
    position = 0
    for kind, value in read_options(body, order):  # the records are built as options are
        position += 4 + len(value) + (-len(value) % 4)
        size = ADDRESS_BYTES.get(kind, 0)
        name = value[size:].split(b"\0", 1)[0].decode("utf-8", "replace")
        if not size or len(value) <= size or not name:
            continue
        packed = value[:size]
        address = str(IPv4Address(packed) if kind == NAME_IPV4 else IPv6Address(packed))
        if len(stats.names) >= limits.max_names and address not in stats.names:
            stats.beyond_limits["too_many_names"] += 1
            continue
        stats.names.setdefault(address, name[:MAX_NAME_CHARACTERS])
    read_comments(body[position + 4 :], order, stats, limits)


def read_secrets(body: bytes, order: str, stats: CaptureStats, limits: CaptureLimits) -> None:
    """A decryption secrets block of at least 8 bytes."""
    kind, length = struct.unpack_from(order + "II", body)
    data = body[8 : 8 + length]
    held = sum(len(secret.data) for secret in stats.secrets)
    if data and len(stats.secrets) < limits.max_secrets and held + len(data) <= limits.max_secrets_bytes:
        stats.secrets.append(Secret(SECRET_KINDS.get(kind, f"kind 0x{kind:08x}"), data))
    elif data:
        stats.beyond_limits["too_many_secrets"] += 1
    read_comments(body[8 + length + (-length % 4) :], order, stats, limits)
