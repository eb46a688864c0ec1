"""What WebSocket carries in the sample, byte for byte as tshark unmasks it, and every message of it looked up again."""

from __future__ import annotations

import subprocess
from collections import defaultdict
from pathlib import Path

from tests.conftest import SAMPLES
from wirewitness.analyser.analysis.evidence.index import Index, open_index
from wirewitness.analyser.analysis.evidence.inner_messages import CarriedMessage, watch
from wirewitness.analyser.analysis.evidence.rows import FlowRow
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.capture import open_captures
from wirewitness.dissectors.core.model import packet_of

SAMPLE = SAMPLES / "mqtt_websocket.pcapng"
PORT = 9001
# (port of the client, sent by the client) -> bytes
Streams = dict[tuple[int, bool], bytes]


def streams_of_tshark(tshark: str, capture: Path) -> Streams:
    """The data of all frames, unmasked, in the order in which it came."""
    fields = ("tcp.srcport", "tcp.dstport", "data.data")
    command = [tshark, "-r", str(capture), "-Y", "websocket && data", "-T", "fields"]
    output = subprocess.run(
        [*command, *(word for name in fields for word in ("-e", name))], capture_output=True, text=True, check=True
    ).stdout
    found: dict[tuple[int, bool], bytes] = defaultdict(bytes)
    for line in output.splitlines():
        source, target, data = line.split("\t")
        from_client = int(target) == PORT
        found[int(source if from_client else target), from_client] += bytes.fromhex(data.replace(",", ""))
    return dict(found)


def carried_flows(index: Index) -> list[FlowRow]:
    rows = index.flows()
    return [flow for flow in rows if flow.carrier == "websocket"]


def test_the_carried_bytes_are_those_that_tshark_unmasks(tshark: str) -> None:
    expected = streams_of_tshark(tshark, SAMPLE)
    found: dict[tuple[int, bool], bytes] = defaultdict(bytes)
    with open_index(open_captures([SAMPLE]), ReadOptions(), use_cache=False) as index:
        for flow in carried_flows(index):

            def see(message: CarriedMessage, port: int = flow.client[1]) -> None:
                found[port, message.direction == 0] += message.data

            watch(flow, index.sources, index.places, packet_of(len(index.sources), 0), see)
    assert dict(found) == expected
    assert len(expected) >= 20
