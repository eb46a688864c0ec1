"""Hop limits (TTL) of each side: first, lowest and last packet, and that of a reset, whatever way packets are taken."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

import wirewitness
from tests.analyser.tcp.test_flow_table import Collected
from tests.support.packets import Captured, pcap
from tests.support.wire import ACK, RST, Talk
from wirewitness.analyser.decoding.run.capture_rows import flow_row

NAMES = ("ttl", "ttl_lowest", "ttl_last", "reset_ttl")
# Of a frame of `Talk`: Ethernet has 14 bytes, the TTL is the ninth of the IP header.
TTL_AT = 14 + 8


def long_talk(segments: int = 40) -> Talk:
    """Handshake (3 packets), then segments of the client, each acknowledged."""
    talk = Talk().handshake()
    for number in range(segments):
        talk.send(True, number, b"x", ack=0).send(False, 0, flags=ACK, ack=number + 1)
    return talk


def with_ttl(packets: list[Captured], changed: Mapping[int, int]) -> list[Captured]:
    """The packets, some of which (by place) have taken another way."""
    found = []
    for place, packet in enumerate(packets):
        data = bytearray(packet.data)
        data[TTL_AT] = changed.get(place, data[TTL_AT])
        found.append(Captured(packet.ts_ns, bytes(data), packet.wire_bytes))
    return found


def told(packets: list[Captured], block_bytes: int) -> tuple[dict[str, object], dict[str, object]]:
    """By name, of the client and of the server."""
    collected = Collected(packets, block_bytes)
    row = flow_row(collected.flows[0], collected.endpoints)
    return tuple({name: row[f"{side}_{name}"] for name in NAMES} for side in ("client", "server"))  # type: ignore[return-value]


@pytest.mark.parametrize("block_bytes", [1 << 20, 700, 150], ids=["one batch", "batches", "packet by packet"])
def test_first_lowest_and_last(block_bytes: int) -> None:
    packets = with_ttl(long_talk().packets, {0: 64, 13: 61, 14: 250, 21: 63, len(long_talk().packets) - 2: 62})
    client, server = told(packets, block_bytes)
    assert client == {"ttl": 64, "ttl_lowest": 61, "ttl_last": 62, "reset_ttl": None}
    assert server == {"ttl": 64, "ttl_lowest": 64, "ttl_last": 64, "reset_ttl": None}


def test_resets_are_told_apart_by_side_and_count_for_nothing_else() -> None:
    talk = long_talk(4)
    count = len(talk.packets)
    talk.send(False, 0, flags=RST | ACK, ack=4).send(True, 4, flags=RST | ACK, ack=0)
    client, server = told(with_ttl(talk.packets, {count: 55, count + 1: 57}), 1 << 20)
    assert client == {"ttl": 64, "ttl_lowest": 64, "ttl_last": 64, "reset_ttl": 57}
    assert server == {"ttl": 64, "ttl_lowest": 64, "ttl_last": 64, "reset_ttl": 55}


def test_a_side_that_only_resets_has_no_hop_limit_of_its_own(tmp_path) -> None:
    talk = Talk().send(True, -1, flags=2).send(False, -1, flags=RST | ACK, ack=0)
    path = tmp_path / "refused.pcap"
    path.write_bytes(pcap(with_ttl(talk.packets, {1: 60}), nanoseconds=True))
    with wirewitness.read(path) as analysis:
        (row,) = analysis.arrow("flows").to_pylist()
    assert [row[f"client_{name}"] for name in NAMES] == [64, 64, 64, None]
    assert [row[f"server_{name}"] for name in NAMES] == [None, None, None, 60]
    assert row["reset_ttl"] == 60


def with_ids(packets: list[Captured], ids: Mapping[int, int], first: int = 1000) -> list[Captured]:
    """IP ids that run on in each direction together, but for these places."""
    found = []
    for place, packet in enumerate(packets):
        data = bytearray(packet.data)
        data[18:20] = ids.get(place, first + place).to_bytes(2, "big")
        found.append(Captured(packet.ts_ns, bytes(data), packet.wire_bytes))
    return found


@pytest.mark.parametrize("block_bytes", [1 << 20, 700, 150], ids=["one batch", "batches", "packet by packet"])
@pytest.mark.parametrize(
    ("ids", "step"), [({}, 2), ({83: 60_000}, 60_000 - 1081), ({83: 0}, None)], ids=["its own", "another's", "none"]
)
def test_packets_of_each_side_and_the_ip_id_of_a_reset(block_bytes: int, ids: Mapping[int, int], step: int) -> None:
    talk = long_talk()
    assert len(talk.packets) == 83
    talk.send(True, 40, flags=RST | ACK, ack=0)
    collected = Collected(with_ids(talk.packets, ids), block_bytes)
    row = flow_row(collected.flows[0], collected.endpoints)
    assert (row["client_packets"], row["server_packets"]) == (42, 41)
    assert (row["client_reset_step"], row["server_reset_step"]) == (step, None)
