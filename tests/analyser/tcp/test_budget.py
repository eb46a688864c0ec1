"""One budget of memory for all connections: what it counts is what objects take, and it is kept."""

from __future__ import annotations

import gc
import io
import struct
import tracemalloc
from typing import Any

import pytest

from tests.support import mqtt_encode as mqtt
from tests.support.attacks import MQTT_SERVER, Wire, answer, kafka, waiting_requests
from tests.support.mutated_captures import tables
from tests.support.packets import Captured, pcap
from tests.support.websocket import WebSocketTalk
from tests.support.wire import Talk, decode
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.capture import CaptureLimits, CaptureStats, Source, read_batches
from wirewitness.analyser.decoding.run.pipeline import Pipeline
from wirewitness.analyser.inputs import analysis_of
from wirewitness.analyser.tables.tables import TABLES
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.registry import PROTOCOLS, dissectors

BLOCK_BYTES = 1 << 16


def fed(capture: bytes, limits: Limits, most: list[int]) -> Pipeline:
    """Everything but the end. most: the budget's bytes after each block."""
    pipeline = Pipeline(dissectors(()), [], ReadOptions(), limits)
    pipeline.next_file(0, 0)
    source = Source("-", stream=io.BytesIO(capture))
    for batch in read_batches(source, pipeline.endpoints, CaptureStats("-"), CaptureLimits(block_bytes=BLOCK_BYTES)):
        pipeline.feed(batch)
        most.append(pipeline.budget.held_bytes)
    return pipeline


def client(number: int) -> tuple[str, int]:
    return f"10.1.{number >> 8}.{number & 255}", 40_000


def idle_kafka(number: int) -> list[Captured]:
    wire = Wire(Talk(client=client(number), client_isn=number))
    return wire.say(True, kafka(18, 0, 0, b"")).say(False, answer(0, b"\0\0\0\0\0\0")).talk.packets


def idle_mqtt(number: int) -> list[Captured]:
    wire = Wire(Talk(client=client(number), server=MQTT_SERVER, client_isn=number))
    return wire.say(True, mqtt.connect(4, f"c{number}")).say(False, mqtt.connack()).talk.packets


def idle_websocket(number: int) -> list[Captured]:
    talk = Talk(client=client(number), server=("10.0.0.2", 9001), client_isn=number)
    opened = WebSocketTalk(talk=talk).open()
    return opened.binary(True, mqtt.connect(4, f"c{number}")).binary(False, mqtt.connack()).packets


IDLE = {"kafka": idle_kafka, "mqtt": idle_mqtt, "websocket": idle_websocket}


def idle(kind: str, count: int) -> bytes:
    return pcap([packet for number in range(count) for packet in IDLE[kind](number)], nanoseconds=True)


@pytest.mark.parametrize("kind", [*IDLE, "waiting"])
def test_what_is_counted_is_what_objects_take(kind: str) -> None:
    small, large = (
        (waiting_requests(1)[:100_000], waiting_requests(1))
        if kind == "waiting"
        else (idle(kind, 100), idle(kind, 400))
    )
    fed(small, Limits(), [])  # what is made once is made
    taken, counted = [], []
    for capture in (small, large):
        gc.collect()
        tracemalloc.start()
        pipeline = fed(capture, Limits(), counted_now := [])
        gc.collect()
        taken.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
        counted.append(counted_now[-1])
        del pipeline
    assert 0.7 <= (counted[1] - counted[0]) / (taken[1] - taken[0]) <= 2.5


@pytest.mark.parametrize("kind", IDLE)
def test_idle_connections_end_when_the_budget_is_used_up(kind: str) -> None:
    limits = Limits(max_held_bytes=600_000)
    most: list[int] = []
    pipeline = fed(idle(kind, 150), limits, most)
    assert max(most) <= limits.max_held_bytes
    assert 20 < pipeline.open_flows < 100
    found = tables([packet for number in range(150) for packet in IDLE[kind](number)], BLOCK_BYTES, limits)
    told = [row for row in found["expert_infos"].to_pylist() if row["code"] == "held_bytes"]
    assert 50 < len(told) < 150
    assert all("idle long" in row["text"] for row in told)
    assert found["flows"].num_rows == 150
    assert set(found["flows"]["protocol"].to_pylist()) == {"kafka" if kind == "kafka" else "mqtt"}


def test_requests_that_wait_are_given_up_and_nothing_of_them_is_lost() -> None:
    """The connections that wait with most: each of their requests keeps its row, and what follows is read on."""
    wires = []
    for number in range(6):
        wire = Wire(Talk(client=client(number), client_isn=number, ts_ns=1_700_000_000_000_000_000 + number))
        wire.say(True, kafka(18, 0, 0, b"")).say(False, answer(0, b"\0\0\0\0\0\0"))
        wire.say(True, b"".join(kafka(12, 0, n, b"\0\1g\0\0\0\1\0\1m") for n in range(1, 500)))
        wires.append(wire)
    packets = [packet for wire in wires for packet in wire.talk.packets]
    for wire in wires:
        before = len(wire.talk.packets)
        wire.say(True, kafka(12, 0, 600, b"\0\1g\0\0\0\1\0\1m")).say(False, answer(600, b"\0\0"))
        packets += wire.talk.packets[before:]
    limits = Limits(max_held_bytes=500_000)
    most: list[int] = []
    fed(pcap(packets, nanoseconds=True), limits, most)
    assert max(most) <= limits.max_held_bytes
    found = tables(packets, BLOCK_BYTES, limits)
    exchanges = found["exchanges"].to_pylist()
    assert len(exchanges) == 6 * 501
    assert sum(row["status"] == "ok" for row in exchanges) == 6 * 2
    # Their answers may come: nothing says that the server owes them.
    assert {row["status"] for row in exchanges} <= {"ok", "unanswered", None}
    assert sum(row["status"] is None for row in exchanges) >= 499
    told = [row["text"] for row in found["expert_infos"].to_pylist() if row["code"] == "held_bytes"]
    assert told
    assert all("let go of" in text for text in told)


NS = 1_000_000_000


def mongo(number: int, to: int, document: bytes) -> bytes:
    return struct.pack("<iiiiI", 21 + len(document), number, to, 2013, 0) + b"\0" + document


PING = struct.pack("<i", 15) + b"\x10ping\0" + struct.pack("<i", 1) + b"\0"
OK = struct.pack("<i", 17) + b"\x01ok\0" + struct.pack("<d", 1.0) + b"\0"
# The server's port, the first exchange of a connection, what waits then.
WAITS = {
    "kafka": (9092, kafka(18, 0, 0, b""), answer(0, b"\0\0\0\0\0\0"), kafka(12, 0, 1, b"\0\1g\0\0\0\1\0\1m")),
    "mongo": (27017, mongo(1, 0, PING), mongo(2, 1, OK), mongo(3, 0, PING)),
    "mqtt": (1883, mqtt.connect(4, "c"), mqtt.connack(), mqtt.publish("a", b"x", 1, 7) + mqtt.subscribe(8, ("b", 0))),
}


def waiting_and_idle(kind: str) -> list[Captured]:
    """One connection whose request waits, then many others, and packets for two minutes."""
    port, asked, said, waits = WAITS[kind]
    packets: list[Captured] = []
    for number in range(150):
        talk = Talk(
            client=client(number), server=("10.0.0.2", port), client_isn=number, ts_ns=1_700_000_000 * NS + number
        )
        wire = Wire(talk).say(True, asked).say(False, said).say(True, waits)
        packets += wire.talk.packets
    last = Wire(Talk(client=client(999), server=("10.0.0.2", port), ts_ns=1_700_000_120 * NS))
    return [*packets, *last.say(True, asked).say(False, said).talk.packets]


def analysed(kind: str, limits: Limits, *names: str) -> dict[str, list[dict[str, Any]]]:
    """Rows of these tables."""
    decoded = decode(waiting_and_idle(kind), list(TABLES), block_bytes=BLOCK_BYTES, limits=limits)
    with analysis_of(decoded, list(TABLES), ReadOptions(), PROTOCOLS.values()) as analysis:
        return {name: analysis.arrow(name).to_pylist() for name in names}


@pytest.mark.parametrize("limits", [Limits(max_held_bytes=600_000), Limits(max_open_flows=50)])
@pytest.mark.parametrize("kind", WAITS)
def test_of_connections_that_a_limit_ends_nobody_knows_what_was_answered(kind: str, limits: Limits) -> None:
    """They go on: their requests have no status, and their end is not that of the capture."""
    found = analysed(kind, limits, "expert_infos", "exchanges", "flows")
    told = [row for row in found["expert_infos"] if row["code"] in ("held_bytes", "open_flows")]
    let_go = {row["flow_id"] for row in told}
    ended = {row["flow_id"] for row in told if "idle long" in row["text"]}
    assert len(ended) > 20
    of_waiting = [row for row in found["exchanges"] if row["response_message_id"] is None]
    assert {row["status"] for row in of_waiting if row["flow_id"] in let_go} == {None}
    assert {row["status"] for row in of_waiting if row["flow_id"] not in let_go} <= {"unanswered"}
    for row in found["flows"]:
        assert row["flow_id"] not in ended or row["observed_until"] == row["ts_last"]


RULES = {"kafka": "KAF303", "mongo": "MON103", "mqtt": "MQT105"}


@pytest.mark.parametrize("kind", WAITS)
def test_no_rule_accuses_a_server_of_what_was_given_up(kind: str) -> None:
    accused = [
        [row["sentence"] for row in analysed(kind, limits, "findings")["findings"] if row["code"] == RULES[kind]]
        for limits in (Limits(), Limits(max_open_flows=1))
    ]
    assert accused[0]
    assert not accused[1]
