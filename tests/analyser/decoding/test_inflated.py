"""Kilobytes of compressed WebSocket that hold millions of the smallest messages: the cost is bounded, and told."""

from __future__ import annotations

import random
import tracemalloc
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.app.program import run
from tests.support import mqtt_encode as mqtt
from tests.support.packets import ACK, FIN, Captured, pcap
from tests.support.websocket import PORT, WebSocketTalk
from tests.support.wire import Talk, decode
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.inputs import analysis_of
from wirewitness.analyser.tables.tables import TABLES as ALL_TABLES
from wirewitness.app.shared.failure import Status
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.registry import PROTOCOLS

Rows = list[dict[str, Any]]
SLACK = 3_000
LIMITS = Limits(decompression_slack_of_all_rows=SLACK)
SMALL = 1 << 10
TABLES = ("messages", "exchanges", "expert_infos", "mqtt_publishes", "mqtt_subscriptions", "mqtt_connections")


@pytest.fixture
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wirewitness.analyser.decoding.stream_portions.SLICE_BYTES", SMALL)


def compressed(*messages: bytes, number: int = 0) -> list[Captured]:
    """A connection on which a client says this behind its CONNECT, each in a frame of its own."""
    ws = WebSocketTalk(compressed=True, talk=Talk(client=("10.0.0.1", 40_000 + number), server=("10.0.0.2", PORT)))
    ws.open().binary(True, mqtt.connect(4, f"c{number}")).binary(False, mqtt.connack(properties=None))
    for data in messages:
        ws.binary(True, data)
    return ws.packets


def rows(packets: Sequence[Captured], tables: Sequence[str], limits: Limits = LIMITS) -> dict[str, Rows]:
    decoded = decode(packets, tables, limits=limits)
    try:
        found = decoded.store.tables
        return {name: [row for batch in found[name].batches() for row in batch.to_pylist()] for name in tables}
    finally:
        decoded.store.close()


MANY = {
    "pings": mqtt.PING * 50_000,
    "publishes": mqtt.publish("t", b"") * 20_000,
    "filters": mqtt.subscribe(1, *[("a", 0)] * 1000) * 20,
    "filters that wait": b"".join(mqtt.subscribe(n + 1, *[("a", 0)] * 1000) for n in range(20)),
    "nothing that there is": bytes(60_000),
}


@pytest.mark.usefixtures("small_slices")
@pytest.mark.parametrize("name", MANY)
def test_small_messages_are_decoded_up_to_the_limit(name: str) -> None:
    packets = compressed(MANY[name], mqtt.publish("behind", b"x"))
    size = sum(len(packet.data) for packet in packets)
    found = rows(packets, TABLES)
    refused = [row for row in found["expert_infos"] if row["code"] == "compressed_rows"]
    assert [(row["group"], row["severity"]) for row in refused] == [("limit", "warn")]
    # One slice or message of them may go beyond it.
    assert sum(map(len, found.values())) < SLACK + LIMITS.usual_rows_per_compressed_byte * size + 2 * SMALL + 1000
    assert not [row for row in found["mqtt_publishes"] if row["topic"] == "behind"]


@pytest.mark.usefixtures("small_slices")
def test_what_is_asked_for_changes_no_limit() -> None:
    packets = compressed(MANY["filters"])
    all_of_them = rows(packets, TABLES)
    for table in TABLES:
        assert rows(packets, [table])[table] == all_of_them[table]


@pytest.mark.usefixtures("small_slices")
def test_connections_share_what_is_beyond_their_size() -> None:
    packets = [one for number in range(10) for one in compressed(mqtt.PING * 2000, number=number)]
    found = rows(packets, ["messages", "expert_infos"])
    codes = Counter(row["code"] for row in found["expert_infos"])
    assert codes["compressed_rows"] >= 8
    assert len(found["messages"]) < SLACK + 10 * (SMALL + 1000)


@pytest.mark.usefixtures("small_slices")
def test_requests_of_a_connection_that_is_given_up_are_nobody_s_fault() -> None:
    found = rows(compressed(mqtt.subscribe(7, ("a", 0)), mqtt.PING * 50_000), ["exchanges"])["exchanges"]
    assert [row["status"] for row in found if row["operation"] == "SUBSCRIBE"] == [None]


def test_an_ordinary_connection_needs_no_slack() -> None:
    """Each message in a frame of its own, as clients send them, the same again and again."""
    limits = Limits(decompression_slack_of_all_rows=0)
    said = [mqtt.publish("plant/hall/4/temperature", b'{"celsius": 21.5, "unit": "C"}', 1, n + 1) for n in range(500)]
    found = rows(compressed(*said), ["messages", "expert_infos"], limits)
    assert len(found["messages"]) == 502
    assert "compressed_rows" not in {row["code"] for row in found["expert_infos"]}


def test_slices_change_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    dice = random.Random(5)
    said = [
        b"".join(mqtt.publish(f"t/{n % 9}", dice.randbytes(dice.randint(0, 300)), 1, n % 99 + 1) for n in range(100))
        for _ in range(8)
    ]
    packets = compressed(*said)
    whole = rows(packets, TABLES, Limits())
    monkeypatch.setattr("wirewitness.analyser.decoding.stream_portions.SLICE_BYTES", 50)
    assert rows(packets, TABLES, Limits()) == whole
    assert len(whole["mqtt_publishes"]) == 800


@pytest.mark.usefixtures("small_slices")
def test_messages_of_one_frame_take_no_memory_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within the limit, too: without slices a publish takes 300 bytes until its rows are packed."""
    monkeypatch.setattr("wirewitness.dissectors.core.protocol.MAX_HELD_ROWS", 300)
    limits = Limits(decompression_slack_of_all_rows=10_000_000)

    def peak(count: int) -> int:
        packets = compressed(mqtt.publish("t", b"") * count)
        tracemalloc.start()
        decoded = decode(packets, ["mqtt_publishes"], limits=limits)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        table = decoded.store.tables["mqtt_publishes"]
        table.pack()
        assert table.total_rows == count
        decoded.store.close()
        return found

    few, many = 5_000, 20_000
    peak(few)  # what is made once
    assert (peak(many) - peak(few)) / (many - few) < 60


def test_the_report_says_that_it_is_not_complete(tmp_path: Path) -> None:
    path = tmp_path / "pings.pcap"
    path.write_bytes(pcap([*compressed(mqtt.PING * 300_000), *compressed(mqtt.PING, number=1)], nanoseconds=True))
    done = run("analyse", path)
    shown = " ".join(done.stdout.decode().split())
    assert done.returncode == Status.SOME_INPUT_UNREAD
    assert "limit 1 connection: what is compressed holds far more messages than its size tells" in shown
    assert "Something is missing here because a limit is reached" in shown
    assert "every message decoded" not in shown
    assert "fault" not in shown


def kept_alive() -> list[Captured]:
    """A gateway sends 100 readings a second in a frame and pings each 30 s, for 10 minutes; then the server closes."""
    ws = WebSocketTalk(compressed=True, talk=Talk(server=("10.0.0.2", PORT)))
    ws.open().binary(True, mqtt.connect(4, "gateway", keep_alive=60)).binary(False, mqtt.connack(properties=None))
    for second in range(600):
        ws.talk.wait(1)
        ws.binary(True, mqtt.publish("t", b"21.5") * 100)
        if second % 30 == 29:
            ws.binary(True, mqtt.PING).binary(False, mqtt.PONG)
    ws.talk.send(False, ws.sent[False], flags=FIN | ACK, ack=ws.sent[True])
    return ws.packets


def test_observation_ends_where_decoding_does() -> None:
    """Nobody is silent behind it, whoever closes the connection later."""

    def found(slack: int) -> tuple[dict[str, Any], int, set[str]]:
        decoded = decode(kept_alive(), list(ALL_TABLES), limits=Limits(decompression_slack_of_all_rows=slack))
        with analysis_of(decoded, list(ALL_TABLES), ReadOptions(), PROTOCOLS.values()) as analysis:
            [flow] = analysis.arrow("flows").to_pylist()
            last = max(row["ts"] for row in analysis.arrow("messages").select(["ts"]).to_pylist())
            return flow, last, {row["code"] for row in analysis.arrow("findings").to_pylist()}

    flow, last, codes = found(30_000)
    assert (flow["observed_until"], flow["ts_closed"], flow["closed_by"]) == (last, None, None)
    assert (flow["ts_last"] - last).total_seconds() > 120
    assert "MQT103" not in codes
    flow, last, whole = found(1_000_000)
    assert codes <= whole
    assert (flow["observed_until"], flow["closed_by"]) == (flow["ts_closed"], "server")
    assert (flow["ts_closed"] - last).total_seconds() < 1


def test_an_honest_gateway_needs_no_slack_for_its_readings() -> None:
    """50 of QoS 0 in a frame, a fifth of which change."""
    dice, readings, frames = random.Random(4), [20.0] * 50, 200
    said = []
    for _ in range(frames):
        readings = [round(one + dice.choice((-0.1, 0.1)), 1) if dice.random() < 0.2 else one for one in readings]
        said.append(
            b"".join(
                mqtt.publish(f"plant/line1/sensor{number}/temperature", b"%.1f" % one)
                for number, one in enumerate(readings)
            )
        )
    found = rows(compressed(*said), ["mqtt_publishes", "expert_infos"], Limits(decompression_slack_of_all_rows=0))
    assert "compressed_rows" not in {row["code"] for row in found["expert_infos"]}
    assert len(found["mqtt_publishes"]) == 50 * frames
