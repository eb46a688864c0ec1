"""Lab messages in other segments: several in a packet, one over several, packets late or twice. tshark agrees.

Lab clients mostly wait for each answer, so a sample has one message to a packet; busy ones do not.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.conftest import SAMPLES
from tests.oracle.test_tshark import PORT, our_rows
from tests.support.lab_exchanges import Exchange, lab_connections
from tests.support.packets import Captured, pcap
from tests.support.tshark import kafka_packets
from tests.support.wire import Talk, duplicated, reordered

CONNECTIONS = 8


def busy_connection(exchanges: list[Exchange], random: Random, client_port: int, ts_ns: int) -> list[Captured]:
    """A few requests at a time, then their answers; both as byte streams that segments cut anywhere."""
    talk = Talk(client=("10.0.0.1", client_port), server=("10.0.0.2", PORT), ts_ns=ts_ns).handshake()
    sent = [0, 0]
    left = list(exchanges)
    while left:
        some, left = left[: (depth := random.randint(1, 6))], left[depth:]
        for side, data in ((0, b"".join(one.request for one in some)), (1, b"".join(one.response for one in some))):
            while data:
                size = random.choice((random.randint(1, 40), random.randint(100, 1460)))
                talk.send(side == 0, sent[side], data[:size], ack=sent[1 - side])
                sent[side] += len(data[:size])
                data = data[size:]
    return talk.packets


def busy_packets(seed: int) -> list[Captured]:
    """Connections of the stale sample one after another."""
    random = Random(seed)
    connections = [one for one in lab_connections(SAMPLES / "kafka_stale_commit.pcapng") if len(one) > 20]
    packets: list[Captured] = []
    for place, exchanges in enumerate(connections[:CONNECTIONS]):
        ts_ns = packets[-1].ts_ns + 1_000_000 if packets else 1_700_000_000_000_000_000
        packets += busy_connection(exchanges[:200], random, 40_000 + place, ts_ns)
    return packets


def capture(path: Path, packets: list[Captured]) -> Path:
    path.write_bytes(pcap(packets, nanoseconds=True))
    return path


@pytest.mark.parametrize("share", [0, 0.2], ids=["once", "some twice"])
def test_messages_of_busy_connections(share: float, tshark: str, tmp_path: Path) -> None:
    """In every packet the same messages end."""
    path = capture(tmp_path / "busy.pcap", duplicated(busy_packets(seed=1), seed=3, share=share))
    ours, theirs = our_rows(path), {packet.number: packet for packet in kafka_packets(tshark, path, PORT)}
    assert ours.cut == 0
    assert set(ours.messages) == set(theirs)
    for number, packet in theirs.items():
        mine = sorted(ours.messages[number], key=lambda message: int(message["stream_offset"]))
        assert packet.correlation_ids == tuple(message["correlation_id"] for message in mine)
        assert packet.sizes == tuple(message["length_bytes"] - 4 for message in mine)
    assert max(len(packet.sizes) for packet in theirs.values()) > 3


def test_messages_of_late_packets(tshark: str, tmp_path: Path) -> None:
    """The same messages in the same order on every stream. tshark names the packet that closed the hole before a
    message; we name the one that holds its last bytes, which may have come earlier.
    """
    path = capture(tmp_path / "late.pcap", reordered(busy_packets(seed=2), seed=4, distance=2))
    ours, theirs = our_rows(path), kafka_packets(tshark, path, PORT)
    assert ours.cut == 0
    mine: dict[tuple[str, bool], list[dict[str, Any]]] = defaultdict(list)
    for message in chain.from_iterable(ours.messages.values()):
        mine[message["flow_id"], message["dst_port"] == PORT].append(message)
    flows = {message["src_port"]: flow for (flow, asks), held in mine.items() if asks for message in held}
    shown: dict[tuple[str, bool], list[tuple[int, int, int]]] = defaultdict(list)
    for packet in theirs:
        flow = flows[packet.client_port(PORT)]
        for size, correlation_id in zip(packet.sizes, packet.correlation_ids, strict=True):
            shown[flow, packet.to_port == PORT].append((correlation_id, size, packet.number))
    assert shown.keys() == mine.keys()
    earlier = 0
    for stream, held in mine.items():
        held.sort(key=lambda message: int(message["stream_offset"]))
        assert [one[:2] for one in shown[stream]] == [(m["correlation_id"], m["length_bytes"] - 4) for m in held]
        pairs = list(zip((m["packet_last"] for m in held), (one[2] for one in shown[stream]), strict=True))
        assert all(own <= other for own, other in pairs)
        earlier += sum(own < other for own, other in pairs)
    assert earlier > 0
