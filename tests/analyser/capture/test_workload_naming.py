"""Blocks of packets on their way past the program that looks identities up: order, bounds, and who is told where."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Iterator
from typing import NoReturn

import pytest

from tests.analyser.live.test_capture_program import ring_block
from wirewitness.analyser.base.faults import FAULTS
from wirewitness.analyser.capture import workload_naming
from wirewitness.analyser.capture.ring import LinkPackets, _packets
from wirewitness.analyser.capture.syn_watch import Begun, _read
from wirewitness.analyser.capture.workload_naming import Naming
from wirewitness.analyser.capture.workload_options import comments
from wirewitness.analyser.capture.workloads.kernel.lookup import Answer, LocalIdentity
from wirewitness.analyser.capture.workloads.kernel.sock_diag import End

FIN, SYN, ACK = 1, 2, 16
CLIENT, SERVER = (b"\x0a\x00\x00\x01", 40000), (b"\x0a\x00\x00\x02", 9092)


def packet(source: tuple[bytes, int], destination: tuple[bytes, int], flags: int, seq: int) -> bytes:
    tcp = struct.pack(">HHIIBBHHH", source[1], destination[1], seq, 0, 0x50, flags, 1000, 0, 0)
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(tcp), 1, 0, 64, 6, 0) + source[0] + destination[0]
    return bytes(12) + b"\x08\x00" + ip + tcp


def block(*packets: bytes) -> LinkPackets:
    return _packets(*ring_block([(one, 10**18 + number) for number, one in enumerate(packets)]))


@pytest.fixture
def naming() -> Iterator[Naming]:
    made = Naming()
    yield made
    made.close()


def released(naming: Naming, seconds: float = 30.0) -> bytes:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        naming.hear()
        held = naming.ready()
        if held:
            return b"".join(map(naming.pcapng, held))
        time.sleep(0.005)
    raise AssertionError("held back for ever")


def test_packets_of_nobody_here_pass_as_they_are(naming: Naming) -> None:
    naming.take(block(packet(CLIENT, SERVER, SYN, 1), packet(SERVER, CLIENT, SYN | ACK, 7)), 0, 1)
    assert b"PID" not in released(naming)
    naming.take(block(packet(CLIENT, SERVER, ACK, 2)), 0, 1)
    assert naming.ready(), "nothing begins here, so nothing waits"


def test_each_end_is_told_once_on_what_it_sends(naming: Naming) -> None:
    low, high = End(*CLIENT), End(*SERVER)
    naming.begun([Begun(low, high, 1), Begun(low, high, 1)])
    asked = naming._early[low, high]
    naming._answered(Answer(asked.number, False, LocalIdentity(11, "client")), time.monotonic())
    naming._answered(Answer(asked.number, True, LocalIdentity(22, "server")), time.monotonic())
    naming.take(block(packet(SERVER, CLIENT, SYN | ACK, 7), packet(CLIENT, SERVER, SYN, 1)), 0, 1)
    first = released(naming)
    assert first.index(b"PID: 22\nCmd: server") < first.index(b"PID: 11\nCmd: client")
    naming.take(block(packet(CLIENT, SERVER, ACK, 2)), 0, 1)
    assert b"PID" not in released(naming)
    naming.tell_again()
    naming.take(block(packet(CLIENT, SERVER, ACK, 2)), 0, 1)
    assert b"PID: 11" in released(naming)


def test_the_next_connection_between_the_same_ports_is_another_one(naming: Naming) -> None:
    naming.take(block(packet(CLIENT, SERVER, SYN, 1)), 0, 1)
    number = naming._last[0].number
    released(naming)
    naming.take(block(packet(CLIENT, SERVER, SYN, 1)), 0, 1)  # sent again
    assert naming._last[0].number == number
    naming.take(block(packet(CLIENT, SERVER, SYN, 500)), 0, 1)
    naming._answered(Answer(number, False, LocalIdentity(11, "before")), time.monotonic())
    assert b"before" not in released(naming)


def test_a_flood_of_connections_is_bounded(naming: Naming, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wirewitness.analyser.capture.workload_naming.MOST_PER_S", 100)
    many = [packet((b"\x0b\x00" + struct.pack(">H", number), 1), SERVER, SYN, number) for number in range(4000)]
    blocks = [block(*many[start : start + 1000]) for start in range(0, 4000, 1000)]
    began = time.monotonic() - 1
    for one in blocks:
        naming.take(one, 0, 1)
    assert len(naming._asked) <= 100 * (time.monotonic() - began)
    assert [remark for remark in naming.remarks if "connections begin in a second" in remark]
    assert len(naming.ready(all_there_is=True)) == 4


def test_connections_that_are_over_are_forgotten(naming: Naming, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wirewitness.analyser.capture.workload_naming.PAIRS_TO_KEEP", 50)
    stands = (b"\x0a\x00\x00\x07", 7), SERVER
    naming.take(block(packet(*stands, SYN, 1)), 0, 1)
    naming.ready(all_there_is=True)
    most = 0
    for number in range(1000):
        client = b"\x0b\x00" + struct.pack(">H", number), 1
        naming.take(block(packet(client, SERVER, SYN, number), packet(client, SERVER, FIN | ACK, number + 1)), 0, 1)
        naming.ready(all_there_is=True)
        most = max(most, len(naming._endpoints), len(naming._last), len(naming._asked))
    assert most <= 52
    naming.take(block(packet(*stands, ACK, 2)), 0, 1)
    assert naming._asked[max(naming._asked)].pair == len(naming._endpoints) - 1, (
        "the one that stands is asked for again"
    )


def test_connections_that_stand_are_kept(naming: Naming, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wirewitness.analyser.capture.workload_naming.PAIRS_TO_KEEP", 50)
    for number in range(200):
        client = b"\x0b\x00" + struct.pack(">H", number), 1
        flags = (SYN, FIN | ACK) if number % 2 else (SYN, ACK)
        naming.take(block(*(packet(client, SERVER, one, number) for one in flags)), 0, 1)
        naming.ready(all_there_is=True)
    assert len(naming._last) == 200


def test_without_the_other_process_packets_go_on(naming: Naming) -> None:
    assert naming.program is not None
    os.kill(naming.program._pid, 9)
    until = time.monotonic() + 30
    while naming.program is not None and time.monotonic() < until:
        naming.take(block(packet(CLIENT, SERVER, SYN, int(time.monotonic() * 1000) & 0xFFFF)), 0, 1)
        naming.hear()
        time.sleep(0.01)
    assert naming.program is None
    assert any("has ended" in remark for remark in naming.remarks)
    naming.ready(all_there_is=True)
    naming.take(block(packet(CLIENT, SERVER, SYN, 99999)), 0, 1)
    assert len(naming.ready()) == 1


def test_a_fault_of_our_own_costs_the_identities_alone(naming: Naming, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> NoReturn:
        raise LookupError("never")

    monkeypatch.setenv(FAULTS, "")
    monkeypatch.setattr(workload_naming, "decode_records", fails)
    naming.take(block(packet(CLIENT, SERVER, SYN, 1)), 0, 1)
    assert (naming.failed, len(naming.ready())) == (True, 1)
    assert any("LookupError in looking for connections" in remark for remark in naming.remarks)


def test_a_process_cannot_write_lines_of_its_own() -> None:
    (one,) = comments(LocalIdentity(5, "x\nPodName: other"))
    assert one == "PID: 5\nCmd: x\\nPodName: other"


@pytest.mark.parametrize("data", [b"", b"\x45", b"\x4f" + bytes(30), b"\x60" + bytes(43), b"\x45" + bytes(8) + b"\x11"])
def test_what_is_no_whole_head_of_tcp_begins_nothing(data: bytes) -> None:
    assert _read(data) is None


def test_ends_of_a_syn() -> None:
    assert _read(packet(SERVER, CLIENT, SYN, 77)[14:]) == Begun(End(*CLIENT), End(*SERVER), 77)
