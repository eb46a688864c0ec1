"""Whole captures, damaged ones too: tables do not depend on blocks, and rows belong to the flow of their packets."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.dissectors.carriers.test_upgrade import END, REQUEST, RESPONSE
from tests.support.attacks import Wire
from tests.support.mutated_captures import PACKETS, capture, difference, ends, strays, tables
from tests.support.packets import ACK, FIN, SYN, Captured
from tests.support.shares import RUNS_THE_REST, SAMPLES, proves_more, share, smallest
from tests.support.wire import Talk, packets_of

TRIES = 600 if RUNS_THE_REST else 40
PATHS = sorted(SAMPLES.glob("*.pcapng"))


# What made the tables of these differ: a FIN behind both ends of its connection; data without an ACK.
KNOWN = (115, 121)


def alike_in_blocks(number: int) -> None:
    dice = random.Random(77_000_003 + number)
    packets = capture(dice)
    whole = tables(packets, 1 << 20)
    assert strays(packets, whole) == [], number
    assert difference(whole, tables(packets, dice.choice((300, 1000, 3000)))) is None, number


@pytest.mark.parametrize("number", KNOWN)
def test_captures_whose_tables_depended_on_blocks(number: int) -> None:
    alike_in_blocks(number)


@proves_more
def test_changed_captures_give_the_same_tables_and_rows_of_their_own_packets() -> None:
    for number in range(TRIES):
        alike_in_blocks(number)


@pytest.mark.parametrize("path", share(PATHS, smallest(PATHS)), ids=lambda path: path.stem)
def test_rows_of_samples_name_packets_of_their_flow(path: Path) -> None:
    packets, found = packets_of(path), tables(path, 1 << 16)
    assert strays(packets, found) == []
    told = {name for name, rows in found.items() if rows.num_rows and PACKETS.get(name)}
    assert {"messages", "exchanges"} <= told


def test_every_table_with_packets_is_looked_at() -> None:
    assert {"messages", "exchanges", "expert_infos", "tcp_waits"} <= {name for name, found in PACKETS.items() if found}


def in_one_and_in_many_blocks(packets: list[Captured]) -> None:
    whole = tables(packets, 1 << 20)
    assert strays(packets, whole) == []
    for block_bytes in (100, 300, 1000):
        assert difference(whole, tables(packets, block_bytes)) is None


def test_what_a_carrier_tells_at_the_end_of_its_connection_is_not_given_to_the_next() -> None:
    """Opened and over in one block, with nothing in it that tells a protocol."""
    packets: list[Captured] = []
    for number in range(3):
        wire = Wire(Talk(client=("10.0.0.1", 40_000 + number), server=("10.0.0.2", 9001), client_isn=number * 999))
        wire.say(True, REQUEST + END).say(False, RESPONSE + END).say(True, b"\x8f\x00nothing")
        wire.talk.send(True, wire.sent[1], flags=FIN | ACK, ack=wire.sent[0])
        wire.talk.send(False, wire.sent[0], flags=FIN | ACK, ack=wire.sent[1] + 1)
        packets += wire.talk.packets
    in_one_and_in_many_blocks(packets)
    rows = tables(packets, 1 << 20)["expert_infos"].to_pylist()
    assert [row["_flow"] for row in rows if row["code"] == "websocket"] == [1, 9, 17]
    assert len({ends(packet) for packet in packets}) == 3


def test_bytes_behind_both_ends_of_a_connection_belong_to_none() -> None:
    talk = Talk().handshake().send(True, 0, b"hello", ack=0).send(True, 5, flags=FIN | ACK, ack=0)
    talk.send(False, 0, flags=FIN | ACK, ack=6).send(True, 3, b"loworld", ack=1)
    in_one_and_in_many_blocks(talk.packets)
    (flow,) = tables(talk.packets, 1 << 20)["flows"].to_pylist()
    assert flow["bytes_to_server"] == 5


def test_two_attempts_on_the_same_endpoints() -> None:
    talk, other = Talk(), Talk(client_isn=70_000, ts_ns=Talk().ts_ns + 500_000)
    talk.send(True, -1, flags=SYN)
    other.send(True, -1, flags=SYN)
    in_one_and_in_many_blocks([*talk.packets, *other.packets])
    flows = tables([*talk.packets, *other.packets], 100)["flows"].to_pylist()
    assert [flow["client_ttl"] for flow in flows] == [64, 64]
    assert None not in [flow["ts_last_from_client"] for flow in flows]
