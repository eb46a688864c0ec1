"""Lab messages in other segments: several in a packet, one over several, packets late or twice. tshark agrees.

Lab clients mostly wait for each answer, so a sample has one message to a packet; busy ones do not.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

import wirewitness
from tests.conftest import SAMPLES
from tests.support.installed import installed
from tests.support.lab_exchanges import Exchange, lab_connections
from tests.support.packets import Captured, pcap
from tests.support.wire import Talk, duplicated, reordered
from wirewitness.reports.report.tshark import TABLES, CrossCheck, cross_check

PORT = 9092
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


def check(path: Path) -> tuple[CrossCheck, list[dict[str, int]]]:
    """The comparison, and how many messages end in each packet with any."""
    with wirewitness.read(path, tables=TABLES) as analysis:
        found = cross_check(analysis, installed())
        query = "select packet_last, count(*) as n, bool_and(complete) as whole from messages group by 1"
        return found, analysis.sql(query).to_pylist()


@pytest.mark.parametrize("share", [0, 0.2], ids=["once", "some twice"])
def test_messages_of_busy_connections(share: float, tshark: str, tmp_path: Path) -> None:
    """In every packet the same messages end."""
    path = capture(tmp_path / "busy.pcap", duplicated(busy_packets(seed=1), seed=3, share=share))
    found, packets = check(path)
    assert found.disagreements == []
    assert set(found.explained) <= {"api_version", "request_forgotten", "blobs"}
    assert all(row["whole"] for row in packets)
    assert max(row["n"] for row in packets) > 3
    assert sum(row["n"] for row in packets) == found.compared["kafka", "number"] > 1000


def test_messages_of_late_packets(tshark: str, tmp_path: Path) -> None:
    """The same messages on every stream. tshark names the packet that closed the gap before a message; we name the one
    that holds its last bytes, which may have come earlier.
    """
    path = capture(tmp_path / "late.pcap", reordered(busy_packets(seed=2), seed=4, distance=2))
    found, packets = check(path)
    assert found.disagreements == []
    assert all(row["whole"] for row in packets)
    assert sum(row["n"] for row in packets) == found.compared["kafka", "number"] > 1000
    assert found.explained["late_packet"].count > 0
