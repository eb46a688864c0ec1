"""Real sockets in namespaces: what Linux makes of careless writes and slow reads, and which findings come of it."""

from __future__ import annotations

import contextlib
import random
import sys
from pathlib import Path

import pytest

import wirewitness
from tests.lab.capture import capturing
from tests.lab.net import network
from tests.lab.processes import Process
from tests.lab.shared_runs import require_lab
from tests.support.record_batches import Sent, batch

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300)]

PEERS = str(Path(__file__).parent / "clients" / "python" / "tcp_peers.py")


@pytest.mark.parametrize(
    ("reading", "writing", "expected"),
    [
        pytest.param("quick", "pieces", {"TCP105"}, id="requests in two writes"),
        pytest.param("quick", "whole", set(), id="requests in one write"),
        pytest.param("quick", "pieces_at_once", set(), id="two writes without Nagle's rule"),
        pytest.param("quick", "bulk", set(), id="a transfer"),
        pytest.param("slow", "bulk", {"TCP102", "TCP106"}, id="a transfer to a slow reader"),
    ],
)
def test_peers(reading: str, writing: str, expected: set[str], tmp_path: Path) -> None:
    require_lab()
    capture = tmp_path / "peers.pcapng"
    records = tmp_path / "batch"
    dice = random.Random(1)
    records.write_bytes(batch([Sent(1, b"k", dice.randbytes(500_000)) for _ in range(2)]))
    with network(["broker"], ["client"]) as hosts, capturing(hosts["client"], capture, tmp_path):
        broker, client, address = hosts["broker"], hosts["client"], hosts["broker"].address
        with contextlib.ExitStack() as running:
            server = Process("server", broker.command(sys.executable, PEERS, "serve", address, reading), tmp_path)
            running.callback(server.stop)
            server.wait_for_event("listening")
            asking = client.command(sys.executable, PEERS, "ask", address, writing, str(records))
            asker = Process("asker", asking, tmp_path)
            running.callback(asker.stop)
            asker.finish()
            server.finish()
    with wirewitness.read(capture) as analysis:
        found = analysis.findings()
        assert {code for code in found["code"] if code.startswith("TCP")} == expected
        assert set(analysis.table("flows")["protocol"].dropna()) == {"kafka"}
