"""Captures that tests change: read packets of a real one, build TCP decoders, apply damage, write them again."""

from __future__ import annotations

import io
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from scapy.utils import RawPcapNgReader, RawPcapReader

from tests.support.packets import ACK, FIN, PSH, RST, SYN, Captured, ethernet, ipv4, pcap, tcp
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.capture import Source
from wirewitness.analyser.decoding.run.decoded import Decoded
from wirewitness.analyser.decoding.run.pipeline import Pipeline
from wirewitness.analyser.decoding.run.shard import Shard, ShardFilter
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.registry import dissectors

__all__ = [
    "ACK",
    "FIN",
    "PSH",
    "RST",
    "SYN",
    "Talk",
    "decode",
    "duplicated",
    "lossy",
    "packets_of",
    "reordered",
    "resegmented",
    "thinned",
]

CLIENT, SERVER = ("10.0.0.1", 40000), ("10.0.0.2", 9092)
_STEP_NS = 1_000_000


@dataclass
class Talk:
    """Packets between one client and one server; offsets count from 0 behind each side's initial sequence number."""

    client_isn: int = 1000
    server_isn: int = 5000
    client: tuple[str, int] = CLIENT
    server: tuple[str, int] = SERVER
    packets: list[Captured] = field(default_factory=list)
    ts_ns: int = 1_700_000_000_000_000_000

    def send(
        self,
        from_client: bool,
        offset: int = 0,
        payload: bytes = b"",
        *,
        flags: int = PSH | ACK,
        ack: int | None = None,
        cut: int = 0,
        window: int = 512,
        ip_id: int | None = None,
        options: bytes = b"",
    ) -> Talk:
        """One packet; offset -1 is the SYN, `ack` an offset of the other side, `cut` bytes are not captured.

        ip_id: None for one that no other packet has.
        """
        mine, other = (self.client_isn, self.server_isn) if from_client else (self.server_isn, self.client_isn)
        (source, source_port), (target, target_port) = (
            (self.client, self.server) if from_client else (self.server, self.client)
        )
        segment = tcp(
            payload,
            source_port=source_port,
            destination_port=target_port,
            seq=(mine + 1 + offset) & 0xFFFFFFFF,
            ack=0 if ack is None else (other + 1 + ack) & 0xFFFFFFFF,
            flags=flags,
            window=window,
            options=options,
        )
        data = ethernet(ipv4(segment, source, target, ip_id=len(self.packets) + 1 if ip_id is None else ip_id))
        self.packets.append(Captured(self.ts_ns, data[: len(data) - cut], len(data)))
        self.ts_ns += _STEP_NS
        return self

    def handshake(self, client_options: bytes = b"", server_options: bytes = b"") -> Talk:
        """SYN, SYN-ACK, ACK."""
        self.send(True, -1, flags=SYN, options=client_options)
        self.send(False, -1, flags=SYN | ACK, ack=0, options=server_options)
        return self.send(True, 0, flags=ACK, ack=0)

    def wait(self, seconds: float) -> Talk:
        """Let time pass."""
        self.ts_ns += int(seconds * 1e9)
        return self


def packets_of(path: Path) -> list[Captured]:
    """All packets of a pcap or Ethernet pcapng file."""
    with path.open("rb") as file:
        modern = file.read(4) == b"\n\r\r\n"
    found = []
    if modern:
        with RawPcapNgReader(str(path)) as reader:
            for data, meta in reader:
                ticks = (meta.tshigh << 32) | meta.tslow
                found.append(Captured(ticks * (1_000_000_000 // meta.tsresol), data, meta.wirelen))
        return found
    with RawPcapReader(str(path)) as reader:
        unit_ns = 1 if reader.nano else 1000
        for data, meta in reader:
            found.append(Captured(meta.sec * 1_000_000_000 + meta.usec * unit_ns, data, meta.wirelen))
    return found


def decode(
    packets: Sequence[Captured] | bytes | Path,
    tables: Sequence[str],
    *,
    limits: Limits | None = None,
    block_bytes: int = 16 << 20,
    options: ReadOptions | None = None,
    shard: Shard | None = None,
) -> Decoded:
    """Run packets (or the bytes of a capture, or a file) through the real pipeline. shard: these flows only."""
    if isinstance(packets, Path):
        source = Source(packets.name, packets)
    else:
        data = packets if isinstance(packets, bytes) else pcap(packets, nanoseconds=True)
        source = Source("test.pcap", stream=io.BytesIO(data))
    limits = limits or Limits()
    limits = replace(limits, capture=replace(limits.capture, block_bytes=block_bytes))
    options = options or ReadOptions()
    pipeline = Pipeline(dissectors(options.enable), tables, options, limits, partial(ShardFilter, shard or Shard()))
    return pipeline.run([source])


def reordered(packets: Sequence[Captured], seed: int, distance: int = 3) -> list[Captured]:
    """Packets displaced by a few places, as parallel receive queues do."""
    dice = random.Random(seed)
    keyed = [(place + dice.uniform(0, distance), place) for place in range(len(packets))]
    return [packets[place] for _, place in sorted(keyed)]


def duplicated(packets: Sequence[Captured], seed: int, share: float = 0.05) -> list[Captured]:
    """Some packets twice in a row."""
    dice = random.Random(seed)
    found = []
    for packet in packets:
        found.append(packet)
        if dice.random() < share:
            found.append(packet)
    return found


def thinned(packets: Sequence[Captured], seed: int, share: float = 0.01, keep_first: int = 200) -> list[Captured]:
    """Some packets lost, SYN packets and the first ones never."""
    dice = random.Random(seed)
    return [
        packet
        for place, packet in enumerate(packets)
        if place < keep_first or packet.data[47] & SYN or dice.random() >= share
    ]


def lossy(packets: Sequence[Captured], seed: int, share: float) -> list[Captured]:
    """Some packets lost, whichever they are."""
    dice = random.Random(seed)
    return [packet for packet in packets if dice.random() >= share]


def resegmented(packets: Sequence[Captured], size: int) -> list[Captured]:
    """The TCP segments over IPv4 cut into smaller ones, as a path with a small MTU would have them."""
    found = []
    for packet in packets:
        data = packet.data
        transport = 14 + (data[14] & 15) * 4
        payload_at = transport + (data[transport + 12] >> 4) * 4
        payload = data[payload_at : 14 + int.from_bytes(data[16:18])]
        if len(payload) <= size or len(data) < packet.wire:
            found.append(packet)
            continue
        seq = int.from_bytes(data[transport + 4 : transport + 8])
        for at in range(0, len(payload), size):
            part = payload[at : at + size]
            head = bytearray(data[:payload_at])
            head[16:18] = (payload_at - 14 + len(part)).to_bytes(2)
            head[18:20] = ((int.from_bytes(data[18:20]) * 31 + at) & 0xFFFF).to_bytes(2)
            head[transport + 4 : transport + 8] = ((seq + at) & 0xFFFFFFFF).to_bytes(4)
            if at + size < len(payload):
                head[transport + 13] &= ~(FIN | PSH | RST)
            found.append(Captured(packet.ts_ns + at, bytes(head) + part))
    return found
