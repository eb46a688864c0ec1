"""TCP as captures really show it, case by case: streams, counters and remarks; tshark's streams where it can tell."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.analyser.tcp.test_flow_table import Collected
from tests.support.packets import Captured, pcap
from tests.support.shares import share
from tests.support.wire import ACK, FIN, PSH, RST, SYN, Talk

MS = 1_000_000


def copied(packets: list[Captured], delay_ns: int = 20_000) -> list[Captured]:
    """Every packet twice, as two interfaces see it."""
    return [Captured(p.ts_ns + n * delay_ns, p.data, p.wire_bytes) for p in packets for n in (0, 1)]


def small_talk() -> Talk:
    talk = Talk().handshake().send(True, 0, b"hello ", ack=0).send(False, 0, b"world", ack=6)
    return talk.send(True, 6, b"again", ack=5).send(False, 5, flags=ACK, ack=11)


def ended(talk: Talk, *steps: tuple[bool, int, int]) -> Talk:
    """The talk with closing segments (from_client, offset, flags)."""
    for from_client, offset, flags in steps:
        talk.send(from_client, offset, flags=flags, ack=5 if from_client else 11)
    return talk


def retransmitted() -> Talk:
    talk = Talk().handshake().send(True, 0, b"hello ", ack=0).send(True, 6, b"again", ack=0)
    return talk.wait(0.2).send(True, 6, b"again", ack=0).send(False, 0, b"world", ack=11)


def merged() -> Talk:
    """The sender puts two segments into one when it sends again."""
    talk = Talk().handshake().send(True, 0, b"hello ", ack=0).send(True, 6, b"again", ack=0)
    return talk.wait(0.2).send(True, 0, b"hello again", ack=0).send(False, 0, b"world", ack=11)


def kept_alive() -> Talk:
    talk = small_talk().wait(60).send(True, 10, b"\0", flags=ACK, ack=5).send(False, 5, flags=ACK, ack=11)
    return talk.wait(60).send(True, 10, flags=ACK, ack=5).send(False, 5, flags=ACK, ack=11)


def closed_window() -> Talk:
    talk = small_talk().send(True, 11, flags=ACK, ack=5, window=0).wait(0.5)
    talk.send(False, 4, flags=ACK, ack=11).send(True, 11, flags=ACK, ack=5, window=0)
    return talk.wait(0.25).send(True, 11, flags=ACK, ack=5, window=400).send(False, 5, b"!", ack=11)


def wrapped() -> Talk:
    talk = Talk(client_isn=0xFFFFFFF0, server_isn=0xFFFFFFFE).handshake()
    for at in range(0, 40, 10):
        talk.send(True, at, b"0123456789", ack=at).send(False, at, b"abcdefghij", ack=at + 10)
    return talk.wait(0.2).send(True, 0, b"0123456789", ack=40)


WHOLE: dict[str, Callable[[], Talk]] = {
    "in order": small_talk,
    "retransmission": retransmitted,
    "segments merged when sent again": merged,
    "keep-alive probes": kept_alive,
    "closed window": closed_window,
    "sequence numbers wrap": wrapped,
    "disorder": lambda: (
        Talk().handshake().send(True, 3, b"lo ", ack=0).send(True, 0, b"hel", ack=0).send(True, 6, b"again", ack=0)
    ),
    "client ends first": lambda: ended(small_talk(), (True, 11, FIN | ACK), (False, 5, FIN | ACK), (True, 12, ACK)),
    "server ends first": lambda: ended(small_talk(), (False, 5, FIN | ACK), (True, 11, FIN | ACK)),
    "FIN with data": lambda: small_talk().send(True, 11, b" and bye", flags=FIN | PSH | ACK, ack=5),
    "FIN before the last data": lambda: (
        small_talk().send(True, 14, flags=FIN | ACK, ack=5).send(True, 11, b"end", ack=5)
    ),
    "reset behind the last data": lambda: ended(small_talk(), (False, 5, RST | ACK)),
    "data on its way when the peer resets": lambda: ended(small_talk(), (False, 5, RST)).send(True, 11, b"late", ack=5),
    "FIN, then RST": lambda: ended(small_talk(), (True, 11, FIN | ACK), (True, 12, RST)),
}


def tshark_streams(path: Path) -> dict[str, str]:
    """Address -> stream as hex, of the first TCP connection."""
    command = ["tshark", "-n", "-q", "-r", str(path), "-o", "tcp.reassemble_out_of_order:TRUE"]
    done = subprocess.run([*command, "-z", "follow,tcp,raw,0"], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    nodes = [line.partition(": ")[2] for line in lines if line.startswith("Node ")]
    streams = dict.fromkeys(nodes, "")
    after = next(n for n, line in enumerate(lines) if line.startswith("Node 1")) + 1
    for line in lines[after:]:
        if not line.startswith("="):
            streams[nodes[line.startswith("\t")]] += line.strip()
    return streams


@pytest.mark.usefixtures("tshark")
@pytest.mark.parametrize("twice", share([False, True], [True]), ids=["once", "captured twice"])
@pytest.mark.parametrize("make", WHOLE.values(), ids=WHOLE)
def test_streams_are_those_of_tshark(make: Callable[[], Talk], twice: bool, tmp_path: Path) -> None:
    packets = copied(make().packets) if twice else make().packets
    path = tmp_path / "case.pcap"
    path.write_bytes(pcap(packets, nanoseconds=True))
    got = Collected(packets)
    assert len(got.flows) == 1
    ours = {
        "10.0.0.1:40000": b"".join(part for part in got.client() if isinstance(part, bytes)).hex(),
        "10.0.0.2:9092": b"".join(part for part in got.server() if isinstance(part, bytes)).hex(),
    }
    assert all(isinstance(part, bytes) for part in (*got.client(), *got.server()))
    assert ours == tshark_streams(path)


@pytest.mark.parametrize("make", WHOLE.values(), ids=WHOLE)
def test_copies_change_nothing_but_their_count(make: Callable[[], Talk]) -> None:
    packets = make().packets
    once, twice = Collected(packets), Collected(copied(packets))
    assert (twice.client(), twice.server()) == (once.client(), once.server())
    first, second = once.flows[0], twice.flows[0]
    assert second.duplicates == len(packets)
    assert (second.packets, second.data_segments) == (2 * len(packets), first.data_segments)
    for side in (0, 1):
        assert second.halves[side].retransmitted == first.halves[side].retransmitted
        assert second.halves[side].out_of_order == first.halves[side].out_of_order


def codes(got: Collected) -> list[str]:
    return [note.code for _, note in got.notes]


def test_a_retransmission_is_counted_and_remarked() -> None:
    got = Collected(retransmitted().packets)
    half = got.flows[0].halves[1]
    assert (half.retransmitted, half.retransmitted_bytes, got.flows[0].duplicates) == (1, 5, 0)
    assert [(from_low, n.code, n.span, n.packet) for from_low, n in got.notes] == [(True, "retransmission", (6, 10), 6)]


def test_equal_bytes_with_another_ip_id_soon_after_are_no_copy() -> None:
    talk = Talk().handshake().send(True, 0, b"hello", ack=0).send(True, 0, b"hello", ack=0)
    assert (Collected(talk.packets).flows[0].duplicates, codes(Collected(talk.packets))) == (0, ["retransmission"])


@pytest.mark.parametrize(
    ("wait_ns", "ip_id", "copies"),
    [(MS, 0, 1), (10 * MS, 0, 0), (500 * MS, 7, 1), (2000 * MS, 7, 1), (4000 * MS, 7, 0)],
    ids=["no id, at once", "no id, later", "same id, later", "same id, from another clock", "same id, much later"],
)
def test_what_is_a_copy(wait_ns: int, ip_id: int, copies: int) -> None:
    talk = Talk().handshake()
    talk.send(True, 0, b"hello", ack=0, ip_id=ip_id)
    talk.ts_ns += wait_ns - MS
    talk.send(True, 0, b"hello", ack=0, ip_id=ip_id)
    flow = Collected(talk.packets).flows[0]
    assert (flow.duplicates, flow.halves[1].retransmitted) == (copies, 1 - copies)


@pytest.mark.parametrize(("ip_id", "copies"), [(0, 0), (7, 1)])
def test_equal_resets_are_meant_unless_their_ip_id_says_otherwise(ip_id: int, copies: int) -> None:
    """A closed port answers each of two segments by one, within microseconds; they are of one connection."""
    talk = Talk().handshake().send(True, 0, b"hello", ack=0).send(True, 5, b"again", ack=0)
    for _ in range(2):
        talk.send(False, 0, flags=RST, ip_id=ip_id)
    got = Collected(talk.packets)
    flow = got.flows[0]
    assert (len(got.flows), flow.duplicates, flow.packets, flow.reset_by_low) == (1, copies, 7, False)


def test_equal_acknowledgements_without_ip_id_are_all_meant() -> None:
    talk = Talk().handshake()
    for _ in range(3):
        talk.send(True, 0, flags=ACK, ack=0, ip_id=0)
    assert Collected(talk.packets).flows[0].duplicates == 0


OVERLAPS = {
    "sent again with other bytes": ([(0, b"hello "), (0, b"HELLO "), (6, b"x")], b"hello x", (0, 5)),
    "tail overlaps": ([(0, b"hello "), (4, b"##again")], b"hello again", (4, 5)),
    "held segment came first": ([(4, b"o again"), (0, b"hell#")], b"hello again", (4, 4)),
    "two held segments": ([(6, b"again"), (4, b"o #g"), (0, b"hell")], b"hello again", (6, 7)),
    "swallows a held one": ([(2, b"ll"), (0, b"he##o")], b"hello", (2, 3)),
}


@pytest.mark.parametrize(("segments", "stream", "span"), OVERLAPS.values(), ids=OVERLAPS)
def test_the_first_copy_wins_and_the_difference_is_noted(
    segments: list[tuple[int, bytes]], stream: bytes, span: tuple[int, int]
) -> None:
    talk = Talk().handshake()
    for offset, payload in segments:
        talk.send(True, offset, payload, ack=0)
    got = Collected(talk.packets)
    assert got.client() == [stream]
    assert [n.span for _, n in got.notes if n.code == "overlap_differs"] == [span]


def test_keep_alive_probes_are_no_retransmissions() -> None:
    got = Collected(kept_alive().packets)
    assert (got.flows[0].halves[1].keep_alives, got.flows[0].halves[1].retransmitted, codes(got)) == (1, 0, [])


def test_a_closed_window_is_measured() -> None:
    got = Collected(closed_window().packets)
    client, server = got.flows[0].halves[1], got.flows[0].halves[0]
    assert (client.zero_window_ns, server.zero_window_ns) == (753 * MS, 0)
    assert [(from_low, note.code, note.packet) for from_low, note in got.notes] == [(True, "zero_window", 8)]


def test_the_gap_that_was_filled_late_counts_as_sent_again() -> None:
    talk = Talk().handshake().send(True, 2, b"llo", ack=0).wait(0.25).send(True, 0, b"he", ack=0)
    got = Collected(talk.packets)
    assert (got.client(), got.flows[0].halves[1].retransmitted) == ([b"hello"], 1)
    assert "253 ms" not in str(got.notes)
    assert "251 ms" in got.notes[0][1].text


HANDSHAKES: dict[str, tuple[Callable[[], Talk], str | None, int | None]] = {
    "complete": (lambda: Talk().handshake(), "complete", MS),
    "SYN repeated": (lambda: Talk().send(True, -1, flags=SYN).wait(1).handshake(), "complete", 1002 * MS),
    "refused": (lambda: Talk().send(True, -1, flags=SYN).send(False, -1, flags=RST | ACK, ack=0), "refused", None),
    "unanswered": (lambda: Talk().send(True, -1, flags=SYN).wait(1).send(True, -1, flags=SYN), "unanswered", None),
    "SYN-ACK alone": (lambda: Talk().send(False, -1, flags=SYN | ACK, ack=0), "unexplained", None),
    "mid-stream": (lambda: Talk().send(True, 0, b"x", ack=0), None, None),
}


@pytest.mark.parametrize("block_bytes", [200, 1 << 20], ids=["packet by packet", "at once"])
@pytest.mark.parametrize(("make", "word", "took_ns"), HANDSHAKES.values(), ids=HANDSHAKES)
def test_handshakes(make: Callable[[], Talk], word: str | None, took_ns: int | None, block_bytes: int) -> None:
    (flow,) = Collected(make().packets, block_bytes).flows.values()
    assert flow.handshake == word
    if took_ns is not None and flow.syn_ns is not None and flow.syn_ack_ns is not None:
        assert flow.syn_ack_ns - flow.syn_ns == took_ns
    assert flow.packets == len(make().packets)


def test_who_reset() -> None:
    flow = Collected(ended(small_talk(), (False, 5, RST)).packets).flows[0]
    assert (flow.reset_by_low, flow.closed_by_low) == (False, False)


def test_late_packets_of_an_ended_connection_are_no_new_one() -> None:
    talk = ended(small_talk(), (True, 11, FIN | ACK), (False, 5, FIN | ACK)).wait(100)
    talk.send(True, 6, b"again", ack=5).send(True, 11, flags=ACK, ack=6)
    got = Collected(talk.packets)
    assert (len(got.flows), got.table.stray_packets) == (1, 2)
    assert got.client() == [b"hello again"]


def test_new_data_on_the_ports_of_an_ended_connection_is_a_new_flow() -> None:
    first = ended(small_talk(), (True, 11, FIN | ACK), (False, 5, FIN | ACK)).wait(100)
    second = Talk(client_isn=800_000, ts_ns=first.ts_ns).send(True, 0, b"other", ack=0)
    got = Collected(first.packets + second.packets)
    assert (got.client(0), got.client(1)) == ([b"hello again"], [b"other"])


def test_a_whole_payload_in_a_packet_that_was_longer_is_not_cut() -> None:
    packets = [p._replace(wire_bytes=len(p.data) + 4) for p in small_talk().packets]
    got = Collected(packets)
    assert (got.client(), got.flows[0].halves[1].truncated) == ([b"hello again"], 0)
