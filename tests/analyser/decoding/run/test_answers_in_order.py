"""Answers of Kafka in another order than their requests, from packets to remarks."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import pytest

from tests.conftest import SAMPLES
from tests.dissectors.kafka.test_decoder import HEARTBEAT_OK, HEARTBEAT_V0
from tests.support.packets import Captured
from tests.support.wire import Talk, decode, lossy, packets_of
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.inputs import analysis_of
from wirewitness.dissectors.registry import PROTOCOLS

PIPELINED = 5
TABLES = ["flows", "messages", "exchanges", "expert_infos"]


def heartbeats(rounds: int, swapped: int) -> Talk:
    """Rounds of so many heartbeats that are sent at once; in one round two answers change places."""
    talk, sent, answered = Talk().handshake(), 0, 0
    for number in range(rounds):
        ids = [number * PIPELINED + place for place in range(PIPELINED)]
        for correlation in ids:
            body = struct.pack(">hhih", 12, 0, correlation, 1) + b"c" + HEARTBEAT_V0
            frame = struct.pack(">i", len(body)) + body
            talk.send(True, sent, frame, ack=answered)
            sent += len(frame)
        if number == swapped:
            ids[1], ids[3] = ids[3], ids[1]
        for correlation in ids:
            frame = struct.pack(">ii", 6, correlation) + HEARTBEAT_OK
            talk.send(False, answered, frame, ack=sent)
            answered += len(frame)
    return talk


def seen(packets: Sequence[Captured]) -> tuple[list[dict[str, Any]], list[str]]:
    """The remarks on order, and the status of every exchange."""
    decoded = decode(packets, TABLES)
    with analysis_of(decoded, TABLES, ReadOptions(), PROTOCOLS.values()) as analysis:
        marks = analysis.arrow("expert_infos").to_pylist()
        statuses = analysis.arrow("exchanges", columns=["status"]).to_pylist()
    return [row for row in marks if row["code"] == "answer_out_of_order"], [row["status"] for row in statuses]


def test_an_answer_that_comes_late_is_remarked_on_with_its_packet_and_no_exchange_is_lost() -> None:
    talk = heartbeats(6, swapped=4)
    marks, statuses = seen(talk.packets)
    assert statuses == ["ok"] * 6 * PIPELINED
    # The answers to the second and the third come after that to the fourth.
    assert [row["text"].partition(" is")[0] for row in marks] == [
        f"Heartbeat (correlation id {4 * PIPELINED + place})" for place in (2, 1)
    ]
    assert [row["packet"] for row in marks] == [3 + 4 * 2 * PIPELINED + PIPELINED + place for place in (3, 4)]
    assert all(row["flow_id"] and row["message_id"] for row in marks)


def test_answers_in_order_give_no_remark() -> None:
    marks, statuses = seen(heartbeats(6, swapped=-1).packets)
    assert (marks, statuses) == ([], ["ok"] * 6 * PIPELINED)


def test_after_a_loss_nothing_is_said() -> None:
    talk = heartbeats(6, swapped=4)
    gone = 3 + 2 * PIPELINED + PIPELINED + 1  # an answer of the second round
    marks, statuses = seen([*talk.packets[:gone], *talk.packets[gone + 1 :]])
    assert marks == []
    assert statuses.count("ok") < 6 * PIPELINED


def test_one_direction_has_no_order() -> None:
    packets = heartbeats(6, swapped=4).packets[3:]
    requests = [packet for number, packet in enumerate(packets) if number // PIPELINED % 2 == 0]
    answers = [packet for number, packet in enumerate(packets) if number // PIPELINED % 2]
    assert (seen(requests)[0], seen(answers)[0]) == ([], [])


@pytest.mark.parametrize("seed", range(3))
def test_a_real_capture_that_lost_packets_is_in_order(seed: int) -> None:
    packets = packets_of(SAMPLES / "kafka_stale_commit.pcapng")
    assert seen(lossy(packets, seed, 0.02))[0] == []
    assert seen(packets[len(packets) // 3 :])[0] == []
