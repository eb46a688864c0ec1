"""Scenarios of the rules about the capture and about TCP."""

from __future__ import annotations

from tests.analyser.engine.rules.scenarios.build import (
    at,
    capture,
    exchange,
    full_window,
    remark,
    stall,
    stalled,
    tcp_flow,
)
from tests.analyser.engine.rules.scenarios.scenario import Scenario, fires, silent

SERVER = {"handshake_seen": False, "bytes_to_server": 0, "bytes_to_client": 0, "protocol": None}


def cut_off(attempts: int) -> list[dict[str, object]]:
    """So many connections of one address without an answer, one that is made later, and one of another address all the
    time."""
    silent_ones = [
        tcp_flow(f"s{n}", handshake="unanswered", handshake_ms=None, packets=3, data_segments=0, ts_first=at(10 + n),
                 **SERVER)
        for n in range(attempts)
    ]  # fmt: skip
    later = tcp_flow("l", ts_first=at(30), **SERVER)
    other = tcp_flow("o", ts_first=at(1), ts_last=at(40), **SERVER) | {"client_address": "10.1.0.77"}
    return [*silent_ones, later, other]


def reset_in_its_name(
    count: int = 4, ports: int = 1, by: str | None = "client", last: int = 0
) -> list[dict[str, object]]:
    """SYNs that are accepted and reset by the client's address, a second apart, in turn from so many ports.

    by: who resets them. last: data segments of the last one."""
    nothing = {"data_segments": 0, "packets": 3, "client_packets": 1, "server_packets": 1, **SERVER}
    rows = [
        tcp_flow(f"r{n}", ts_first=at(10 + n), ts_last=at(10 + n), reset_by=by, closed_by=by,
                 client_port=41_000 + n % ports, **nothing)
        for n in range(count)
    ]  # fmt: skip
    return [*rows[:-1], rows[-1] | {"data_segments": last}]


def stuck(
    count: int = 4, apart: float = 5, sends: int = 6, acked: int = 900, unacked: int = 9000, heard: float = 4
) -> list[dict[str, object]]:
    """So many connections, begun so many seconds apart, whose large response is sent again from two seconds on."""
    return [
        tcp_flow(f"m{n}", ts_first=at(10 + apart * n), ts_last=at(60), client_port=41_000 + n, first_packet=n + 1,
                 unheard_sends_to_client=sends, ts_unheard_to_client=at(12 + apart * n),
                 ts_last_from_client=at(12 + heard + apart * n), acked_by_client=acked,
                 bytes_to_client=acked + unacked)
        for n in range(count)
    ]  # fmt: skip


def again(count: int, flow_id: str = "a") -> list[dict[str, object]]:
    """So many remarks on retransmissions, half a second apart."""
    return [remark(flow_id, n / 2, "tcp", "retransmission") for n in range(count)]


TCP_FIRES: list[Scenario] = [
    fires(
        "CAP103", "warning", "segments cut at 96 bytes",
        flows=[tcp_flow(truncated_packets=40), tcp_flow("b")],
        expert_infos=[remark("a", 1, "tcp", "cut_segment")],
    ),
    fires(
        "CAP104", "info", "the any interface sees all twice",
        flows=[tcp_flow(duplicate_packets=2000), tcp_flow("b")],
        expert_infos=[remark("a", 1, "tcp", "copy")],
    ),
    fires(
        "CAP105", "warning", "one of two files counts drops",
        captures=[capture(dropped_packets=120), capture(file="other.pcapng", dropped_packets=0)],
    ),
    fires(
        "CAP106", "info", "one flow of two speaks TLS",
        flows=[
            tcp_flow(encrypted=True, sni="kafka.example", protocol=None, tls_decryption="no key"), tcp_flow("b"),
        ],
        expert_infos=[remark("a", 1, "tcp", "encrypted")],
    ),
    fires(
        "CAP106", "info", "keys open one of two connections",
        flows=[
            tcp_flow(encrypted=True, tls_decryption="decrypted"),
            tcp_flow("b", encrypted=True, tls_decryption="no key", protocol=None),
        ],
        expert_infos=[remark("a", 1, "tcp", "encrypted"), remark("b", 2, "tcp", "encrypted")],
    ),
    fires(
        "CAP108", "warning", "the clock was set back",
        captures=[capture()],
        expert_infos=[remark(None, 1, "capture", "time_backwards", ts=None)],
    ),
    fires(
        "CAP108", "info", "with and without a VLAN tag",
        flows=[
            tcp_flow("a"),
            tcp_flow("b", encapsulation="vlan 7", duplicate_of="a", hop_latency_ms=0.2, clock_offset_ms=0.0),
        ],
    ),
    fires(
        "TCP101", "warning", "a lossy way",
        flows=[tcp_flow(retransmitted_segments=60, retransmitted_bytes=60_000), tcp_flow("b")],
        expert_infos=again(30),
        exchanges=[exchange("a", 0.9, lasts=0.3), exchange("a", 1.3, lasts=0.01), exchange("b", 0.9, lasts=0.3)],
    ),
    fires(
        "TCP101", "warning", "six of 107 had arrived",
        flows=[tcp_flow(retransmitted_segments=107, spurious_retransmissions=6, retransmitted_bytes=90_000)],
        expert_infos=again(40),
    ),
    fires(
        "TCP101", "warning", "0.7 % is enough where D-SACK says which had arrived",
        flows=[tcp_flow(retransmitted_segments=40, spurious_retransmissions=12, data_segments=4000)],
        expert_infos=again(30),
    ),
    fires(
        "TCP102", "warning", "a consumer that does not read",
        flows=[tcp_flow(client_zero_window_ms=850.0), tcp_flow("b")],
        expert_infos=[remark("a", 1, "tcp", "zero_window", direction="client_to_server")],
    ),
    fires(
        "TCP103", "warning", "the server resets while a commit waits",
        flows=[tcp_flow(reset_by="server", closed_by="server")],
        expert_infos=[remark("a", 2, "tcp", "reset")],
        exchanges=[exchange("a", 1.9, "OffsetCommit", lasts=None), exchange("a", 1.0)],
    ),
    fires(
        "TCP103", "info", "the client gives up on a produce",
        flows=[tcp_flow(reset_by="client", closed_by="client")],
        expert_infos=[remark("a", 2, "tcp", "reset")],
        exchanges=[exchange("a", 1.0, lasts=None), exchange("a", 1.5, "Fetch", lasts=None)],
    ),
    fires(
        "TCP104", "warning", "nobody listens",
        flows=[tcp_flow(str(n), handshake="refused", handshake_ms=None, packets=2, **SERVER) for n in range(3)],
    ),
    fires(
        "TCP104", "info", "a server that is started again",
        flows=[
            tcp_flow("a", handshake="refused", handshake_ms=None, packets=2, **SERVER), tcp_flow("b", ts_first=at(5)),
        ],
    ),
    fires(
        "TCP104", "warning", "no answer to four SYNs",
        flows=[tcp_flow(handshake="unanswered", handshake_ms=None, packets=4, data_segments=0, **SERVER)],
    ),
    fires("TCP104", "info", "an answer after the SYN was repeated", flows=[tcp_flow(handshake_ms=1031.0)]),
    fires(
        "TCP104", "warning", "again each five seconds",
        flows=[tcp_flow(f"f{n}", ts_first=at(5 * n), handshake_ms=1024.0) for n in range(3)],
    ),
    fires(
        "TCP104", "info", "two moments at which many come",
        flows=[tcp_flow(f"f{n}", ts_first=at(7 * (n % 2) + n / 20), handshake_ms=1024.0) for n in range(12)],
    ),
    fires("TCP104", "warning", "an answer to the third SYN", flows=[tcp_flow(handshake_ms=3040.0)]),
    fires("TCP104", "warning", "one address is cut off for a while", flows=cut_off(3)),
    fires("TCP108", "warning", "four large responses, one connection after the other", flows=stuck()),
    fires("TCP107", "warning", "a SYN that is reset and comes again", flows=reset_in_its_name()),
    fires("TCP105", "warning", "requests in two writes", flows=[tcp_flow(), tcp_flow("b")], **stalled("a", 5)),
    fires(
        "TCP105", "warning", "no handshake in the capture, an acknowledgement after 200 ms",
        flows=[tcp_flow()], **stalled("a", 8, segment_limit_bytes=None, wait_ms=200.0),
    ),
    fires(
        "TCP105", "info", "an encrypted connection: nobody knows where messages end",
        flows=[tcp_flow(protocol=None, encrypted=True), *(tcp_flow(str(n)) for n in range(9))],
        tcp_waits=[stall("a", n) for n in range(5)],
    ),
    fires(
        "TCP106", "warning", "a far away consumer with a small buffer",
        flows=[tcp_flow(), tcp_flow("b")], tcp_waits=[full_window("a", 1, 4)],
        exchanges=[exchange("a", 0.9, "Fetch", lasts=1.4), exchange("a", 7, "Fetch"), exchange("b", 2, "Fetch")],
    ),
    fires(
        "TCP106", "warning", "a broker that reads slowly",
        flows=[tcp_flow()],
        tcp_waits=[full_window("a", 1, 2, direction="client_to_server", window_least_bytes=2896)],
    ),
]  # fmt: skip

TCP_NEAR_MISSES: list[Scenario] = [
    silent(
        "CAP106", "keys open all connections, though one lost some records",
        flows=[
            tcp_flow(encrypted=True, tls_decryption="decrypted"),
            tcp_flow("b", encrypted=True, tls_decryption="records lost"),
        ],
        expert_infos=[remark("a", 1, "tcp", "encrypted"), remark("b", 2, "tcp", "encrypted")],
    ),
    silent("CAP103", "a gap without a cut", flows=[tcp_flow()], expert_infos=[remark("a", 1, "tcp", "retransmission")]),
    silent(
        "CAP104", "a few copies among many packets",
        flows=[tcp_flow(duplicate_packets=9)], expert_infos=[remark("a", 1, "tcp", "copy")],
    ),
    silent(
        "CAP104", "retransmissions are no copies",
        flows=[tcp_flow(retransmitted_segments=15)], expert_infos=again(15),
    ),
    silent("CAP105", "no drops, and a file that cannot say", captures=[capture(dropped_packets=0), capture(file="b")]),
    silent(
        "CAP106", "a handshake that came to nothing hides nothing",
        flows=[tcp_flow(encrypted=True), tcp_flow("b")], expert_infos=[remark("a", 1, "tcp", "encrypted")],
    ),
    silent("CAP106", "an unknown protocol is not TLS", flows=[tcp_flow(protocol=None), tcp_flow("b")]),
    silent(
        "CAP108", "the capture stood still for a day",
        captures=[capture()], expert_infos=[remark(None, 1, "capture", "time_jump", ts=None)],
    ),
    silent(
        "TCP101", "twenty of two thousand",
        flows=[tcp_flow(retransmitted_segments=20)], expert_infos=again(20),
        exchanges=[exchange("a", 0.9, lasts=0.3)],
    ),
    silent(
        "TCP101", "copies of a loop, where only requests are captured",
        flows=[tcp_flow(retransmitted_segments=200, ts_last_from_server=None, bytes_to_client=0)],
        expert_infos=again(40),
    ),
    silent(
        "TCP101", "the same of answers alone",
        flows=[tcp_flow(retransmitted_segments=200, ts_last_from_client=None, bytes_to_server=0)],
        expert_infos=again(40),
    ),
    silent(
        "TCP101", "all of them had arrived, as D-SACK says",
        flows=[tcp_flow(retransmitted_segments=204, spurious_retransmissions=204)], expert_infos=again(40),
    ),
    silent(
        "TCP101", "all but twenty had arrived",
        flows=[tcp_flow(retransmitted_segments=204, spurious_retransmissions=184)], expert_infos=again(40),
    ),
    silent(
        "TCP101", "many, but less than one in a hundred",
        flows=[tcp_flow(retransmitted_segments=60, data_segments=50_000)], expert_infos=again(30),
    ),
    silent(
        "TCP101", "0.7 %, and nobody said that any had arrived",
        flows=[tcp_flow(retransmitted_segments=28, data_segments=4000)], expert_infos=again(28),
    ),
    silent(
        "TCP101", "0.2 % beside what had arrived",
        flows=[tcp_flow(retransmitted_segments=40, spurious_retransmissions=12, data_segments=14_000)],
        expert_infos=again(30),
    ),
    silent(
        "TCP102", "a window that is closed for a moment",
        flows=[tcp_flow(client_zero_window_ms=80.0, server_zero_window_ms=99.0)],
        expert_infos=[remark("a", 1, "tcp", "zero_window", direction="client_to_server")],
    ),
    silent(
        "TCP103", "a client that shuts down while a fetch waits",
        flows=[tcp_flow(reset_by="client", closed_by="client")],
        expert_infos=[remark("a", 2, "tcp", "reset")],
        exchanges=[exchange("a", 1.5, "Fetch", lasts=None, answer_due=False)],
    ),
    silent(
        "TCP103", "a client that shuts down while it asks for metadata",
        flows=[tcp_flow(reset_by="client", closed_by="client")],
        expert_infos=[remark("a", 2, "tcp", "reset")],
        exchanges=[
            exchange("a", 1.5, "Metadata", lasts=None, answer_due=False),
            exchange("a", 1.4, "Fetch", lasts=None, answer_due=False),
        ],
    ),
    silent(
        "TCP103", "only requests are captured",
        flows=[tcp_flow(reset_by="client", closed_by="client", ts_last_from_server=None, bytes_to_client=0)],
        expert_infos=[remark("a", 2, "tcp", "reset")], exchanges=[exchange("a", 1.0, lasts=None)],
    ),
    silent(
        "TCP103", "of the server only the reset is captured",
        flows=[tcp_flow(reset_by="server", closed_by="server", ts_last_from_server=None, bytes_to_client=0)],
        expert_infos=[remark("a", 2, "tcp", "reset")], exchanges=[exchange("a", 1.0, lasts=None)],
    ),
    silent(
        "TCP103", "the client confirmed an answer that was not captured",
        flows=[tcp_flow(reset_by="server", closed_by="server", acked_by_client=1400)],
        expert_infos=[remark("a", 2, "tcp", "reset")], exchanges=[exchange("a", 1.0, lasts=None)],
    ),
    silent(
        "TCP103", "the server resets a connection without requests",
        flows=[tcp_flow(reset_by="server")],
        expert_infos=[remark("a", 2, "tcp", "reset")], exchanges=[exchange("a", 1.5)],
    ),
    silent(
        "TCP103", "a server that is restarted while a reader asks where its epoch ends", ("TCP103", "info"),
        flows=[tcp_flow(reset_by="server", closed_by="server")],
        expert_infos=[remark("a", 2, "tcp", "reset")],
        exchanges=[exchange("a", 1.9, "OffsetForLeaderEpoch", lasts=None)],
    ),
    silent(
        "TCP104",
        "a client that closes what only its side of was captured",
        flows=[tcp_flow(handshake="unanswered", packets=4, data_segments=0, closed_by="client")],
    ),
    silent("TCP104", "one lost SYN-ACK of a one-sided capture", flows=[tcp_flow(handshake="unanswered", packets=1)]),
    silent(
        "TCP104", "the answers were not captured: data follows",
        flows=[tcp_flow(handshake="unanswered", handshake_ms=None, packets=40, data_segments=20, **SERVER)],
    ),
    silent(
        "TCP104", "a server that is restarted at the end of the capture", ("TCP104", "info"),
        flows=[tcp_flow("a", handshake=None)]
        + [tcp_flow(f"r{n}", handshake="refused", data_segments=0, ts_first=at(50 + n)) for n in range(4)],
    ),
    silent(
        "TCP103", "a server that is restarted while a question waits", ("TCP103", "info"),
        flows=[tcp_flow(reset_by="server", closed_by="server")],
        expert_infos=[remark("a", 2, "tcp", "reset")], exchanges=[exchange("a", 1.9, "Metadata", lasts=None)],
    ),
    silent("TCP104", "two attempts in vain, then it works", ("TCP104", "info"), flows=cut_off(2)),
    silent("TCP104", "nobody was served then", ("TCP104", "info"), flows=cut_off(3)[:-1]),
    silent("TCP107", "a health check that resets, each from a port of its own", flows=reset_in_its_name(20, 20)),
    silent("TCP107", "ports that are used again after long", flows=reset_in_its_name(60, 20)),
    silent("TCP107", "the server resets", flows=reset_in_its_name(by="server")),
    silent("TCP108", "all at one time: the link is down", flows=stuck(apart=0.1)),
    silent("TCP108", "two connections", flows=stuck(2)),
    silent("TCP108", "the client is not heard of again", flows=stuck(heard=-1)),
    silent("TCP108", "sent twice", flows=stuck(sends=2)),
    silent("TCP108", "small ones are lost, too", flows=stuck(acked=0)),
    silent("TCP108", "a small one is on its way", flows=stuck(unacked=300)),
    silent("TCP107", "two resets", flows=reset_in_its_name(3)),
    silent("TCP107", "the connection is made at last", flows=reset_in_its_name(last=5)),
    silent("TCP104", "a far away server", flows=[tcp_flow(handshake_ms=280.0, ts_first=at(1))]),
    silent("TCP105", "four times", flows=[tcp_flow()], **stalled("a", 4)),
    silent(
        "TCP105", "whole messages, sent as often as they are confirmed",
        flows=[tcp_flow()], **stalled("a", 9) | {"tcp_waits": [stall("a", n, stream_offset=n * 100) for n in range(9)]},
    ),
    silent("TCP105", "whole segments of a transfer", flows=[tcp_flow()], **stalled("a", 9, sent_bytes=1448)),
    silent(
        "TCP105", "small messages of an unknown protocol, held back one by one",
        flows=[tcp_flow(protocol=None)], tcp_waits=[stall("a", n) for n in range(9)],
    ),
    silent(
        "TCP105", "the window was full", ("TCP106", "warning"),
        flows=[tcp_flow()],
        **(held := stalled("a", 9))
        | {"tcp_waits": [*held["tcp_waits"], full_window("a", 0, 99, direction="client_to_server")]},
    ),
    silent("TCP105", "a quick receiver", flows=[tcp_flow()], **stalled("a", 9, wait_ms=39.0)),
    silent("TCP105", "a far away receiver", flows=[tcp_flow()], **stalled("a", 9, wait_ms=240.0)),
    silent("TCP105", "the second half takes its time", flows=[tcp_flow()], **stalled("a", 9, answer_ms=30.0)),
    silent(
        "TCP105", "four in each direction of two connections",
        flows=[tcp_flow(flow_id, protocol=None, encrypted=True) for flow_id in "ab"],
        tcp_waits=[
            stall(flow_id, n, direction=direction)
            for flow_id in "ab" for direction in ("client_to_server", "server_to_client") for n in range(4)
        ],
    ),
    silent("TCP106", "a second or less", flows=[tcp_flow()], tcp_waits=[full_window("a", n, 1.1) for n in (1, 3)]),
    silent("TCP106", "mostly not full", flows=[tcp_flow()], tcp_waits=[full_window("a", 1, 4, wait_ms=1500.0)]),
    silent(
        "TCP106", "one window, then a peer that hangs",
        flows=[tcp_flow()], tcp_waits=[full_window("a", 1, 4, sent_bytes=70_000)],
    ),
]  # fmt: skip
