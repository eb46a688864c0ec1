"""SYNs forged between the packets of healthy captures, which their receivers ignore: no finding comes of them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

import wirewitness
from tests.support.packets import SYN, Captured, pcap
from tests.support.shares import SAMPLES
from tests.support.wire import packets_of

_TOLD = ["code", "severity", "confidence", "sentence"]


def with_forged_syns(packets: Sequence[Captured], seed: int, share: float = 0.05) -> list[Captured]:
    """Behind a share of the TCP packets over IPv4 a SYN of the same sender, with a sequence number far from its own."""
    dice = random.Random(seed)
    found = list[Captured]()
    for packet in packets:
        found.append(packet)
        data = packet.data
        if data[12:14] != b"\x08\x00" or data[23] != 6 or dice.random() >= share:
            continue
        at = 14 + (data[14] & 15) * 4
        head = bytearray(data[: at + 20])
        head[16:18] = (len(head) - 14).to_bytes(2)
        seq = (int.from_bytes(head[at + 4 : at + 8]) + dice.randrange(1 << 20, 1 << 28)) & 0xFFFFFFFF
        head[at + 4 : at + 8] = seq.to_bytes(4)
        head[at + 12 : at + 14] = bytes((0x50, SYN))
        found.append(Captured(packet.ts_ns + 1000, bytes(head)))
    return found


@pytest.mark.parametrize("name", ["mqtt_healthy", "mongo_healthy", "kafka_healthy"])
def test_forged_syns_bring_no_findings(name: str, tmp_path: Path) -> None:
    packets = packets_of(SAMPLES / f"{name}.pcapng")
    forged = with_forged_syns(packets, seed=1)
    assert len(forged) > len(packets)
    told = []
    for number, captured in enumerate((packets, forged)):
        path = tmp_path / f"{number}.pcap"
        path.write_bytes(pcap(captured, nanoseconds=True))
        with wirewitness.read(path) as analysis:
            findings = analysis.findings()
            told.append((sorted(map(tuple, findings[_TOLD].to_numpy())), len(analysis.table("exchanges"))))
    assert told[0] == told[1]
