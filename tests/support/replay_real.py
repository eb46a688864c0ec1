"""Traffic that nobody made for a benchmark: lab captures laid over each other, again and again.

In: captures of one protocol, with and without an incident. Out: one capture. All of them begin at the same moment; when
the longest has ended, all come again, later and from other addresses. Messages stay as they are.
"""

from __future__ import annotations

import heapq
import struct
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import count, islice
from operator import itemgetter
from pathlib import Path

import zstandard

from tests.support.replay_wire import PcapWriter
from tests.support.wire import packets_of

# Name of the profile -> captures below the folder of samples.
REAL = {
    "real_kafka": ("incidents/*/capture.pcapng.zst", "kafka_*.pcapng"),
    "real_mongo": ("mongo_*.pcapng",),
    "real_mqtt": ("mqtt_*.pcapng",),
}
# Of an Ethernet frame that has IPv4 inside.
_ETHERTYPE_AT, _IPV4, _SOURCE_AT, _DESTINATION_AT = 12, 0x0800, 26, 30
_PAUSE_NS = 1_000_000_000
# Between the addresses of one copy and those of the next.
_ADDRESSES = 1 << 16

Packet = tuple[int, bytes]


def write_real(writer: PcapWriter, profile: str, samples: Path, start_ns: int, packets: int) -> PcapWriter:
    """Write so many packets, the first at start_ns. Returns the writer."""
    captures = [packets_in(path) for pattern in REAL[profile] for path in sorted(samples.glob(pattern))]
    for ts_ns, data in islice(repeated(captures, start_ns), packets):
        writer.add(ts_ns, data)
    return writer


def packets_in(path: Path) -> list[Packet]:
    """The packets of a capture, which may be compressed with zstandard, by the time since its first one."""
    if path.suffix != ".zst":
        found = packets_of(path)
    else:
        with tempfile.NamedTemporaryFile(suffix=path.stem) as file, path.open("rb") as packed:
            zstandard.ZstdDecompressor().copy_stream(packed, file)
            file.flush()
            found = packets_of(Path(file.name))
    first_ns = min(one.ts_ns for one in found)
    return sorted(((one.ts_ns - first_ns, one.data) for one in found), key=itemgetter(0))


def repeated(captures: Sequence[Sequence[Packet]], start_ns: int) -> Iterator[Packet]:
    """The packets of all captures in the order of time, without end."""
    longest_ns = max(ts_ns for capture in captures for ts_ns, _ in capture) + _PAUSE_NS
    for number in count():
        begin_ns = start_ns + number * longest_ns
        # Each capture has its own addresses, too: many of them were taken on the same private network.
        shifted = (
            _shifted(capture, begin_ns, number * len(captures) + place) for place, capture in enumerate(captures)
        )
        yield from heapq.merge(*shifted, key=itemgetter(0))


def _shifted(packets: Iterable[Packet], begin_ns: int, number: int) -> Iterator[Packet]:
    return ((begin_ns + ts_ns, _moved(data, number)) for ts_ns, data in packets)


def _moved(frame: bytes, number: int) -> bytes:
    """The frame from and to other IPv4 addresses, with the checksums of before, which neither program looks at."""
    if struct.unpack_from(">H", frame, _ETHERTYPE_AT) != (_IPV4,):
        return frame
    changed = bytearray(frame)
    for at in (_SOURCE_AT, _DESTINATION_AT):
        address = (int.from_bytes(frame[at : at + 4], "big") + number * _ADDRESSES) % (1 << 32)
        changed[at : at + 4] = address.to_bytes(4, "big")
    return bytes(changed)
