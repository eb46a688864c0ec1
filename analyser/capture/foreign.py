"""Files that are no capture for us. In: their first bytes. Out: what they seem to be, and what to do about it.

Sources: what editcap of Wireshark 4.0 writes in each format; Wireshark's wiretap folder (iptrace.c, k12.c,
peektagged.c, eyesdn.c, netxray.c, erf.c) for those that it only reads; Endace's "Extensible Record Format" for the head
of a record.
"""

import struct

HEAD_BYTES = 4096  # what is looked at
CONVERT = "Wireshark's editcap makes a capture of it: editcap -F pcapng IN OUT"

# first bytes of what people hand over by mistake
FILE_KINDS = {
    b"PK\x03\x04": "a zip archive",
    b"\x7fELF": "a program",
    b"BZh": "bzip2-compressed data",
    b"\xfd7zXZ\0": "xz-compressed data",
    b"PAR1": "a Parquet file",
    b"%PDF": "a PDF document",
}
# first bytes of captures that Wireshark reads
CAPTURE_KINDS = {
    b"snoop\0\0\0": "a Solaris snoop capture",
    b"RTSS": "a Network Monitor capture",
    b"GMBU": "a Network Monitor capture",
    b"TRSNIFF data    \x1a": "a Sniffer (DOS) capture",
    b"XCP\0": "a NetXRay or Sniffer (Windows) capture",
    b"VL\0\0": "a NetXRay capture",
    b"btsnoop\0": "a btsnoop (Bluetooth) capture",
    b"ObserverPktBufferVersion=": "an Observer capture",
    b"\x05VNF": "a Visual Networks capture",
    b"iptrace 1.0": "an AIX iptrace capture",
    b"iptrace 2.0": "an AIX iptrace capture",
    b"TR\0d\0": "an HP-UX nettl trace",
    b"\x7fver": "an EtherPeek or OmniPeek capture",
    b"\xaa\xaa\xaa\xaa\x20\0\0\0": "an InfoVista 5View capture",
    b"\x01\x10\x4c\0": "a LANalyzer capture",
    b"\x07\x10\x4c\0": "a LANalyzer capture",
    b"EyeSDN": "an EyeSDN trace",
    b"\0\0\x02\0\x12\x05\0\x10": "a Tektronix K12xx capture",
    b"+---------+---------------+----------+": "a K12 text capture",
}

_ERF_HEAD = struct.Struct("<IIBBHHH").size
_ERF_TYPES = range(1, 49)
_ERF_TRIED = 3
_SECONDS_1990, _SECONDS_2100 = 631_152_000, 4_102_444_800


def describe_bytes(head: bytes) -> str:
    """What a file that is no capture seems to be, by its first bytes (up to HEAD_BYTES)."""
    for magic, kind in CAPTURE_KINDS.items():
        if head.startswith(magic):
            return f"it looks like {kind}, which is not supported; {CONVERT}"
    for magic, kind in FILE_KINDS.items():
        if head.startswith(magic):
            return f"it looks like {kind}"
    if is_erf(head):
        return f"it looks like an Endace ERF capture, which is not supported; {CONVERT}"
    shown = head[:16]
    if shown and all(byte in b"\t\n\r" or 32 <= byte < 127 for byte in shown):
        return f"it starts with the text {shown.decode('ascii')!r}"
    return f"it starts with the bytes {shown[:8].hex(' ')}"


def is_erf(head: bytes) -> bool:
    """Whether these are records of an ERF file, which has no magic: at least two of them whose heads make sense."""
    at = found = 0
    while found < _ERF_TRIED and at + _ERF_HEAD <= len(head):
        _, seconds = struct.unpack_from("<II", head, at)
        kind, _, record_bytes = struct.unpack_from(">BBH", head, at + 8)
        timed = seconds == 0 or _SECONDS_1990 <= seconds < _SECONDS_2100  # records about the capture have no time
        if not timed or kind & 0x7F not in _ERF_TYPES or record_bytes < _ERF_HEAD:
            return False
        at, found = at + record_bytes, found + 1
    return found > 1
