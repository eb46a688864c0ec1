"""One capture beside another: the second one's hosts and cluster get other numbers, its packets the first one's time.

In: two captures of the lab. Out: one capture with both, in the order of time.
"""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.lab import kafka, net
from tests.lab.processes import run

# Of equal length, so that nothing in a packet moves.
OTHER_SUBNET = net.SUBNET.replace("77", "78")
OTHER_CLUSTER = kafka.CLUSTER_ID[:-1] + "g"
HEADER, RECORD = struct.Struct("<IHHiIII"), struct.Struct("<IIII")
NANOSECOND_MAGIC = 0xA1B23C4D
SECOND_NS = 10**9
IPV4_ADDRESSES = slice(26, 34)


def moved(content: bytes) -> bytes:
    """Return text or payload with the other network's and cluster's names."""
    return content.replace(f"{net.SUBNET}.".encode(), f"{OTHER_SUBNET}.".encode()).replace(
        kafka.CLUSTER_ID.encode(), OTHER_CLUSTER.encode()
    )


def moved_packet(packet: bytes) -> bytes:
    """Return a packet of the other network. Checksums are left: captures hold unfinished ones, too."""
    old, new = (bytes(map(int, subnet.split("."))) for subnet in (net.SUBNET, OTHER_SUBNET))
    addresses = packet[IPV4_ADDRESSES].replace(old, new)
    return packet[: IPV4_ADDRESSES.start] + addresses + moved(packet[IPV4_ADDRESSES.stop :])


def read(path: Path) -> Iterator[tuple[int, int, bytes]]:
    """Yield time (ns), original length and bytes of each packet of a nanosecond pcap."""
    content = path.read_bytes()
    if HEADER.unpack_from(content)[0] != NANOSECOND_MAGIC:
        raise ValueError(f"{path}: not a pcap with nanoseconds")
    place = HEADER.size
    while place < len(content):
        seconds, nanoseconds, kept, length = RECORD.unpack_from(content, place)
        place += RECORD.size
        yield seconds * SECOND_NS + nanoseconds, length, content[place : place + kept]
        place += kept


def as_pcap(capture: Path, folder: Path) -> Path:
    """Return the capture in the simplest format."""
    target = folder / f"{len(list(folder.iterdir()))}.pcap"
    run(["editcap", "-F", "nsecpcap", str(capture), str(target)])
    return target


def merge(first: Path, second: Path, target: Path) -> None:
    """Write both captures into TARGET (pcapng); the second begins when the first does."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        one, other = (list(read(as_pcap(capture, folder))) for capture in (first, second))
        shift = one[0][0] - other[0][0]
        both = one + [(at + shift, length, moved_packet(packet)) for at, length, packet in other]
        merged = folder / "merged.pcap"
        with merged.open("wb") as out:
            out.write(HEADER.pack(NANOSECOND_MAGIC, 2, 4, 0, 0, 262144, 1))
            for at, length, packet in sorted(both, key=lambda one: one[0]):
                out.write(RECORD.pack(at // SECOND_NS, at % SECOND_NS, len(packet), length) + packet)
        run(["editcap", "-F", "pcapng", str(merged), str(target)])
