"""Processes that captures name come out at the right end of their connections; wrong ones name nobody."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.analyser.capture.reading import read_bytes
from tests.conftest import require_program
from tests.support import owned
from tests.support.owned import INBOUND, OUTBOUND
from tests.support.packets import Captured, enhanced, ethernet, interface, ipv4, pcap, section, tcp
from wirewitness.analyser.capture import CaptureStats
from wirewitness.analyser.capture.workloads.workload import Identity

HERE, THERE = "10.0.0.1", "10.0.0.2"


def there(payload: bytes = b"x", seq: int = 1) -> bytes:
    """A packet from port 1000 here to port 2000 there."""
    return ethernet(ipv4(tcp(payload, seq=seq, source_port=1000, destination_port=2000), HERE, THERE))


def back(payload: bytes = b"y", seq: int = 1) -> bytes:
    """Its answer."""
    return ethernet(ipv4(tcp(payload, seq=seq, source_port=2000, destination_port=1000), THERE, HERE))


def ends(stats: CaptureStats) -> dict[str, Identity]:
    """Identities by address; one for each."""
    found = [(seen.end.address, seen.identity) for seen in stats.identities]
    assert len(dict(found)) == len(found)
    return dict(found)


def file(packets: Sequence[tuple[bytes, bytes]], *blocks: bytes, order: str = "<") -> bytes:
    """A pcapng file of packets with their options; blocks stand before the packets."""
    parts = [enhanced(data, 1_000_000 + i, order, options=options) for i, (data, options) in enumerate(packets)]
    return b"".join([section(order), interface(order), *blocks, *parts])


@pytest.mark.parametrize("order", ["<", ">"])
def test_process_of_a_packet_is_its_senders(order: str) -> None:
    capture = file(
        [(there(), owned.process_thread(4711, 4712, order)), (back(), owned.process_thread(0, 0, order))], order=order
    )
    _, stats = read_bytes(capture)
    assert ends(stats) == {HERE: Identity(4711, source="capture")}
    assert not stats.remarks


def test_process_of_a_packet_that_came_in_is_nobody() -> None:
    _, stats = read_bytes(file([(back(), owned.flags(INBOUND) + owned.process_thread(4711))]))
    assert ends(stats) == {}


def test_ptcpdump_names_the_local_end_in_both_directions() -> None:
    says = {
        "user": 1000,
        "container": ("payments", "8f14e45fceea167a5a36dedd4bea2543"),
        "pod": ("payments-7d4f", "shop"),
        "thread": (4730, "producer"),
        "parent": (1, "/sbin/init", "init"),
    }
    out, in_ = (
        owned.ptcpdump(4711, "/usr/bin/java", "java -Dpassword=secret", direction=way, **says)  # type: ignore[arg-type]
        for way in (OUTBOUND, INBOUND)
    )
    _, stats = read_bytes(file([(there(), out), (back(), in_), (there(seq=2), out)]))
    java = Identity(4711, "java", "1000", "payments", "payments-7d4f", "shop", source="comment")
    assert ends(stats) == {HERE: java}
    assert [(seen.first_ns, seen.last_ns) for seen in stats.identities] == [(1_000_000_000, 1_000_002_000)]
    assert stats.comments == []
    assert not stats.remarks


def test_both_ends_of_loopback_have_their_own() -> None:
    consumer, broker = owned.ptcpdump(7, "/usr/bin/python3"), owned.ptcpdump(9, "java")
    heard = owned.ptcpdump(9, "java", direction=INBOUND)
    _, stats = read_bytes(file([(there(), consumer), (there(), heard), (back(), broker)]))
    assert {address: one.pid for address, one in ends(stats).items()} == {HERE: 7, THERE: 9}


def test_comments_of_people_stay_comments() -> None:
    capture = file([(there(), owned.comment("PID: look at this")), (back(), owned.comment("Note: PID: 12"))])
    _, stats = read_bytes(capture)
    assert [c.text for c in stats.comments] == ["Note: PID: 12"]
    assert ends(stats) == {}


def test_what_a_process_writes_itself_is_not_believed() -> None:
    forged = owned.ptcpdump(5, "/bin/x", "a\nPodName: other\nPID: 1")
    named = owned.comment("PID: 6\nCmd: /tmp/a\nPodName: other\nArgs: ") + owned.flags(OUTBOUND)
    _, stats = read_bytes(file([(there(), forged)]))
    assert ends(stats) == {HERE: Identity(5, "x", source="comment")}
    _, stats = read_bytes(file([(there(), named)]))
    assert ends(stats) == {HERE: Identity(6, "a", source="comment")}


def test_comment_without_direction_names_nobody_and_says_so() -> None:
    _, stats = read_bytes(file([(there(), owned.comment("PID: 6\nCmd: x\nArgs: "))]))
    assert ends(stats) == {}
    assert [remark.text for remark in stats.remarks] == [
        "1 packets name a process but not whether it sent or receives them; nobody is named by these"
    ]


@pytest.mark.parametrize("order", ["<", ">"])
def test_process_blocks_of_apple(order: str) -> None:
    blocks = owned.darwin_block(501, "mosquitto_sub", order), owned.darwin_block(502, "Terminal", order)
    packets = [
        (there(), owned.darwin(0, OUTBOUND, 1, order)),
        (back(), owned.darwin(0, INBOUND, None, order)),
    ]
    _, stats = read_bytes(file(packets, *blocks, order=order))
    assert ends(stats) == {HERE: Identity(501, "mosquitto_sub", source="capture")}
    assert not stats.remarks


def test_process_that_only_acts_for_another_is_told_by_the_other() -> None:
    _, stats = read_bytes(file([(there(), owned.darwin(None, OUTBOUND, 0))], owned.darwin_block(501, "sub")))
    assert ends(stats) == {HERE: Identity(501, "sub", source="capture")}


def test_process_block_that_is_not_there_is_said() -> None:
    _, stats = read_bytes(
        file([(there(), owned.darwin(3)), (back(), owned.darwin(0))], owned.darwin_block(1, "launchd"))
    )
    assert ends(stats) == {THERE: Identity(1, "launchd", source="capture")}
    assert [remark.text for remark in stats.remarks] == [
        "1 packets name a process that the file does not describe; nobody is named by these"
    ]


def test_processes_are_numbered_by_section() -> None:
    first = file([(there(), owned.darwin(0))], owned.darwin_block(1, "one"))
    second = file([(back(), owned.darwin(0))], owned.darwin_block(2, "two"))
    _, stats = read_bytes(first + second)
    assert {address: one.command for address, one in ends(stats).items()} == {HERE: "one", THERE: "two"}


PKTAP = {"first": owned.pktap, "second": owned.pktap_2}


@pytest.mark.parametrize("link_type", [258, 149])
@pytest.mark.parametrize("write", PKTAP.values(), ids=PKTAP)
def test_pktap(write: type, link_type: int) -> None:
    packets = [write(there(), 501, "mosquitto_sub"), write(back(), 501, "mosquitto_sub", INBOUND)]
    segments, stats = read_bytes(pcap([Captured(n, data) for n, data in enumerate(packets)], link_type=link_type))
    assert [segment.payload for segment in segments] == [b"x", b"y"]
    assert ends(stats) == {HERE: Identity(501, "mosquitto_sub", source="pktap")}
    assert not stats.remarks


@pytest.mark.parametrize("write", PKTAP.values(), ids=PKTAP)
def test_pktap_of_other_links_and_without_a_process(write: type) -> None:
    raw = there()[14:]
    packets = [write(raw, 0, "", link=12), write(back(), -1, "", effective=(7, "Safari"))]
    segments, stats = read_bytes(pcap([Captured(n, data) for n, data in enumerate(packets)], link_type=258))
    assert [segment.payload for segment in segments] == [b"x", b"y"]
    assert ends(stats) == {THERE: Identity(7, "Safari", source="pktap")}


@pytest.mark.parametrize("cut", [0, 20, 39, 60, 107, 120, 155])
def test_pktap_that_is_cut_is_counted(cut: int) -> None:
    _, stats = read_bytes(pcap([Captured(1, owned.pktap(there(), 1, "x")[:cut] or b"\0")], link_type=258))
    assert stats.tcp_segments == 0
    assert stats.packets == 1


def test_pktap_with_a_wrong_length_is_no_packet() -> None:
    wrong = b"\xff\xff\xff\x7f" + owned.pktap(there(), 1, "x")[4:]
    _, stats = read_bytes(pcap([Captured(1, wrong)], link_type=258))
    assert stats.undecoded_packets == {"unknown_link_type": 1}


def test_packets_without_processes_have_none() -> None:
    _, stats = read_bytes(file([(there(), b""), (back(), owned.flags(INBOUND))]))
    assert len(stats.identities) == 0


def test_tshark_sees_the_same_pktap_headers(tmp_path: Path) -> None:
    require_program("tshark")
    path = tmp_path / "mac.pcap"
    path.write_bytes(pcap([Captured(1, owned.pktap(there(), 501, "sub", INBOUND, (7, "Safari")))], link_type=258))
    wanted = [
        part for name in ("pid", "cmdname", "epid", "ecmdname", "dlt", "flags") for part in ("-e", f"pktap.{name}")
    ]
    told = subprocess.run(["tshark", "-r", path, "-T", "fields", *wanted], check=True, capture_output=True, text=True)
    assert told.stdout.split() == ["501", "sub", "7", "Safari", "1", "0x00000001"]


def test_tshark_sees_the_same_process_blocks(tmp_path: Path) -> None:
    require_program("tshark")
    path = tmp_path / "mac.pcapng"
    path.write_bytes(
        file([(there(), owned.darwin(1, OUTBOUND, 0))], owned.darwin_block(5, "one"), owned.darwin_block(6, "two"))
    )
    names = ("darwin.process_id", "darwin.process_name", "options.option.data.packet.darwin.dpeb_id",
             "options.option.data.packet.darwin.edpeb_id")  # fmt: skip
    wanted = [part for name in names for part in ("-e", f"pcapng.{name}")]
    told = subprocess.run(
        ["tshark", "-r", path, "-X", "read_format:MIME Files Format", "-T", "fields", *wanted],
        check=True,
        capture_output=True,
        text=True,
    )
    assert told.stdout.split() == ["5,6", "one,two", "1", "0"]


def test_sizes_of_blocks_change_nothing() -> None:
    parts = [file([(there(), owned.darwin(0)), (back(), owned.darwin(1, INBOUND))], owned.darwin_block(n, f"p{n}"),
                  owned.darwin_block(n + 50, f"q{n}")) for n in range(1, 40)]  # fmt: skip
    capture = b"".join(parts)
    found = [sorted(read_bytes(capture, block_bytes=size)[1].identities) for size in (1 << 20, 500, 100)]
    assert len(found[0]) == 2 * 39
    assert found[0] == found[1] == found[2]


# Captures that name processes in every way.
NAMING = [
    file([(there(), owned.process_thread(4711)), (back(), owned.ptcpdump(7, "java", direction=INBOUND, user=3))]),
    file([(there(), owned.darwin(0, OUTBOUND, 1)), (back(), owned.darwin(9))], owned.darwin_block(5, "a"), order="<"),
    file([(there(), owned.ptcpdump(1, "x", container=("c", "8f14"), pod=("p", "shop")))]),
    *(
        pcap([Captured(1, write(there(), 501, "sub")), Captured(2, write(back(), 0, "", INBOUND))], link_type=258)
        for write in PKTAP.values()
    ),
]
