"""Streams inside tunnels, and with losses at any cut into batches: in lock-step as one by one."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from tests.support.lock_step import NEVER, lock_step
from tests.support.mutated_captures import Tables, difference, tables
from tests.support.packets import Captured, ethernet, gre, ipv4, pcap, udp, vxlan
from tests.support.replay import replay
from tests.support.replay_mqtt import write_publishes
from tests.support.shares import pairs, turns
from tests.support.wire import packets_of

ONE_BLOCK = 16 << 20
WRITE: dict[str, Callable[[Path], object]] = {
    "kafka": lambda path: replay(path, "small", 3_000, 0, 8),
    "mqtt": lambda path: write_publishes(path, 1_500, flows=8),
    "mongo": lambda path: replay(path, "mongo", 3_000, 0, 8),
}
TUNNELS: dict[str, Callable[[bytes], bytes]] = {
    "vlan": lambda frame: frame[:12] + b"\x81\0\0\x64" + frame[12:],
    "vxlan": lambda frame: ethernet(ipv4(udp(vxlan(frame, 42), 4789), "192.0.2.1", "192.0.2.2", protocol=17)),
    "gre": lambda frame: ethernet(ipv4(gre(frame[14:]), "192.0.2.1", "192.0.2.2", protocol=47)),
}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[Captured]]:
    """The packets of a protocol, without a tunnel."""
    made: dict[str, list[Captured]] = {}

    def packets(protocol: str) -> list[Captured]:
        if protocol not in made:
            path = tmp_path_factory.mktemp(protocol) / "plain.pcap"
            WRITE[protocol](path)
            made[protocol] = packets_of(path)
        return made[protocol]

    return packets


def both(path: Path, block_bytes: int = ONE_BLOCK) -> tuple[Tables, Tables, int]:
    """The tables in lock-step and one by one, and how many messages were read together."""
    with lock_step(1) as read:
        together = tables(path, block_bytes)
    with lock_step(NEVER) as none:
        alone = tables(path, ONE_BLOCK)
    assert not sum(none.values())
    return together, alone, sum(read.values())


@pytest.mark.parametrize(("protocol", "tunnel"), pairs(product(WRITE, TUNNELS), turns(WRITE, TUNNELS)))
def test_streams_in_tunnels(protocol: str, tunnel: str, plain: Callable[[str], list[Captured]], tmp_path: Path) -> None:
    path = tmp_path / "tunnel.pcap"
    packets = [packet._replace(data=TUNNELS[tunnel](packet.data)) for packet in plain(protocol)]
    path.write_bytes(pcap(packets, nanoseconds=True))
    together, alone, read = both(path, 40_000)
    assert difference(together, alone) is None
    assert {text.split(" ")[0] for text in alone["flows"]["encapsulation"].to_pylist()} == {tunnel}
    assert read > 0.8 * alone["messages"].num_rows > 1_000


# Bytes of a block of packets: some tens of packets, some hundreds, all.
@pytest.mark.parametrize(
    ("profile", "block_bytes"),
    pairs(
        product(("mongo_lossy", "lossy"), (5_000, 17_000, 60_000, ONE_BLOCK)),
        [("mongo_lossy", 60_000), ("lossy", 17_000), ("lossy", ONE_BLOCK)],
    ),
)
def test_with_losses(profile: str, block_bytes: int, tmp_path: Path) -> None:
    path = tmp_path / "lossy.pcap"
    told = replay(path, profile, 4_000, 0, 12)
    together, alone, read = both(path, block_bytes)
    assert difference(together, alone) is None
    assert told.requests + told.responses < 2 * told.exchanges
    assert read > 0.2 * alone["messages"].num_rows > 500
