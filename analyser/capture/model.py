"""Values of the capture layer: batches of packets as arrays, and what is known about a capture.

In: nothing. Out: types without behaviour beyond counting. All arrays of one batch have the same length.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from wirewitness.analyser.capture.workloads.seen import IdentitiesSeen
from wirewitness.analyser.capture.workloads.workload import Identity

Ints = npt.NDArray[np.int64]
Ids = npt.NDArray[np.int32]
Words = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]
Rows = npt.NDArray[Any]  # structured rows copied out of a block
Severity = Literal["note", "warn", "error"]


@dataclass(frozen=True, slots=True)
class Remark:
    """Something about the capture itself; byte_offset counts in the (decompressed) capture from 0."""

    severity: Severity
    code: str
    text: str
    packet: int | None
    byte_offset: int


@dataclass(slots=True)
class Interface:
    """One capture interface. The drop counters are None until the capture states them (pcapng ISB)."""

    name: str
    link_type: int
    snaplen: int
    tsresol: int  # as if_tsresol: 6 is microseconds, the high bit means a power of two
    description: str = ""
    if_drop: int | None = None
    os_drop: int | None = None


@dataclass(frozen=True, slots=True)
class Comment:
    """What somebody wrote into a pcapng file, of one packet or (packet is None) of the file or a part of it."""

    packet: int | None
    text: str


@dataclass(frozen=True, slots=True)
class Secret:
    """Keys for decryption that a pcapng file brings along. The bytes are credentials: they stay out of every output."""

    kind: str
    data: bytes

    def __repr__(self) -> str:
        return f"Secret(kind={self.kind!r}, {len(self.data)} bytes)"


@dataclass(slots=True)
class TimeBackwards:
    """How many packets lie before the packet in front of them in time, and by how much at most."""

    count: int = 0
    largest_ns: int = 0


@dataclass(slots=True)
class CaptureStats:
    """What is known about one capture; grows while it is read and is final when reading ends.

    truncated_packets: packets cut by the snaplen, but for TCP segments whose payload is all there.
    packets == tcp_segments + other_packets + sum(undecoded_packets.values()). ts_* are None without packets. Fragments
    that were put together are other packets, but for the last one, whose verdict is that of the whole.
    captured_bytes and wire_bytes count packets without record headers; of a request log, which has lines in their
    place, captured_bytes are those of the file. lines: those that tell of a request; None of other files.
    batches: of a log segment, which has neither packets nor lines; None of other files.
    names: name of each address, from pcapng. identities: processes at the ends of connections, where the file has them.
    beyond_limits: what was not kept or given up because a limit was reached, by the code of its remark.
    """

    file: str
    format: str = ""
    compression: str = ""
    link_types: list[int] = field(default_factory=list)
    packets: int = 0
    captured_bytes: int = 0
    wire_bytes: int = 0
    lines: int | None = None
    batches: int | None = None
    ts_first_ns: int | None = None
    ts_last_ns: int | None = None
    tcp_segments: int = 0
    other_packets: int = 0
    undecoded_packets: Counter[str] = field(default_factory=Counter)
    truncated_packets: int = 0
    snaplen: int = 0
    interfaces: list[Interface] = field(default_factory=list)
    hardware: str = ""
    os: str = ""
    application: str = ""
    time_backwards: TimeBackwards = field(default_factory=TimeBackwards)
    names: dict[str, str] = field(default_factory=dict)
    secrets: list[Secret] = field(default_factory=list)
    identities: IdentitiesSeen = field(default_factory=IdentitiesSeen)
    comments: list[Comment] = field(default_factory=list)
    comments_dropped: int = 0
    remarks: list[Remark] = field(default_factory=list)
    remarks_dropped: int = 0
    beyond_limits: Counter[str] = field(default_factory=Counter)


NOBODY = -1


@dataclass(slots=True)
class PacketIdentities:
    """Of each record who sent it and who receives it: numbers in `owners`, NOBODY where it is not known."""

    sender: Ids
    receiver: Ids
    identities: Sequence[Identity]


@dataclass(slots=True)
class Records:
    """Link-layer records found in one block: where each packet lies in the block, before any of it is decoded.

    start is an index into the block; captured and wire are bytes; link_type is one number for all, or one for each.
    identities: who sent and who receives them; None where the file tells of none.
    """

    first_packet: int
    start: Ints
    captured: Ints
    wire: Ints
    ts_ns: Ints
    link_type: int | Ids
    identities: PacketIdentities | None = None


@dataclass(slots=True)
class PacketBatch:
    """TCP segments of one block in capture order.

    data is the block itself or, where IP fragments were put together, a copy with their bytes behind it. It is
    overwritten when the next batch is asked for, so whoever keeps payload bytes copies them (`bytes(data[a:b])`). The
    arrays are the batch's own and stay valid.

    packet: number in this file from 1, counting all packets as Wireshark does.
    pair, from_low: id from the EndpointTable; True where the sender is the pair's low endpoint.
    seq, ack: raw 32-bit numbers; ack has a meaning only where the ACK flag is set.
    flags: low byte as on the wire (FIN 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32, ECE 64, CWR 128).
    window: as on the wire, not scaled.
    payload_start: index into data; payload_bytes of it are there, wire_payload_bytes (never fewer) were sent.
    ip_id, ttl: of the IP header that carries the segment; ip_id is -1 in IPv6. Two copies of one packet have the same
        ip_id (where the sender counts it), a retransmission has not; a copy taken behind a router has a lower ttl.
    window_scale, segment_size: options of a SYN; -1 and 0 where it has none, -2 and 0 on other segments and where the
        options were not captured.
    dsack_seq, dsack_bytes: bytes of the other side's stream that the sender says it received twice (D-SACK, RFC 2883),
        from this raw sequence number on; 0 and 0 where it says no such thing.

    A segment in IP fragments has the number, time, ip_id and ttl of the packet that completes it.
    """

    data: memoryview
    packet: Ints
    ts_ns: Ints
    pair: Ids
    from_low: Flags
    seq: Ints
    ack: Ints
    flags: Bytes
    window: Ids
    payload_start: Ints
    payload_bytes: Ids
    wire_payload_bytes: Ids
    ip_id: Ids
    ttl: Bytes
    window_scale: npt.NDArray[np.int8]
    segment_size: Ids
    dsack_seq: Ints
    dsack_bytes: Ids

    def __len__(self) -> int:
        return len(self.packet)

    def chosen(self, rows: "npt.NDArray[Any]") -> "PacketBatch":
        """These rows (numbers or flags); `data` stays the same."""
        return PacketBatch(self.data, *(getattr(self, name)[rows] for name in PacketBatch.__slots__[1:]))

    def moved(self, data: memoryview, by: int) -> "PacketBatch":
        """The same segments, whose payloads lie `by` bytes further behind in other data."""
        return replace(self, data=data, payload_start=self.payload_start + by)


def joined(data: memoryview, batches: Sequence[PacketBatch]) -> PacketBatch:
    """The segments of batches whose payloads all lie in `data`."""
    if len(batches) == 1:
        return replace(batches[0], data=data)
    columns = [np.concatenate([getattr(batch, name) for batch in batches]) for name in PacketBatch.__slots__[1:]]
    return PacketBatch(data, *columns)


def add_remark(stats: CaptureStats, most: int, remark: Remark) -> None:
    """Append a remark, or only count it once `most` remarks are there."""
    if len(stats.remarks) < most:
        stats.remarks.append(remark)
    else:
        stats.remarks_dropped += 1
