"""Every limit by name: what reaches it, and the expert info that says so.

A field of `Limits` or `CaptureLimits` stands in REACHED or, with the reason, in SILENT; a new one fails here until it
does.
"""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import NamedTuple

import pytest

from tests.analyser.tcp.test_waits import in_pieces
from tests.support.mongo_messages import compressed, op_msg
from tests.support.mqtt_encode import PING, connack, connect, publish, subscribe, user_property
from tests.support.packets import (
    Captured,
    block,
    enhanced,
    ethernet,
    interface,
    ipv4,
    ipv4_fragments,
    option,
    pcap,
    section,
    tcp,
)
from tests.support.record_batches import Sent, batch
from tests.support.request_log import heartbeat, line
from tests.support.segments import numbered, segment
from tests.support.websocket import WebSocketTalk
from tests.support.wire import ACK, SYN, Talk, decode
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.inputs import analysis_of
from wirewitness.dissectors.core.limits import CaptureLimits, Limits
from wirewitness.dissectors.registry import PROTOCOLS

SECOND_NS = 1_000_000_000
START_NS = 1_700_000_000 * SECOND_NS
FRAME = ethernet(ipv4(tcp(b"hello")))
HEARTBEAT = bytes.fromhex("0001 67 00000007 0001 6d")  # v0: group g, generation 7, member m
HEARTBEAT_OK = bytes(2)
TABLES = (
    "flows", "messages", "exchanges", "expert_infos", "kafka_brokers", "kafka_partitions", "kafka_fetch_partitions",
    "kafka_produce_batches", "kafka_records", "tcp_waits",
)  # fmt: skip
Packets = Sequence[Captured] | bytes


class Reached(NamedTuple):
    """limits: values of fields (the one that is tested first), for both classes. group, code: of the expert info."""

    limits: dict[str, int]
    make: Callable[[], Packets]
    code: str
    group: str = "limit"


def sized(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def packed() -> bytes:
    """A compressed capture of one packet again and again."""
    return gzip.compress(pcap(packets_at(*range(500))))


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def asks(correlation_id: int, body: bytes = HEARTBEAT, key: int = 12, version: int = 0) -> tuple[bool, bytes]:
    """A request's frame, from the client."""
    return True, sized(struct.pack(">hhi", key, version, correlation_id) + text("app") + body)


def answers(correlation_id: int, body: bytes = HEARTBEAT_OK) -> tuple[bool, bytes]:
    """A response's frame."""
    return False, sized(struct.pack(">i", correlation_id) + body)


def talk(*frames: tuple[bool, bytes], port: int = 40_000) -> list[Captured]:
    """A connection with these frames, one packet each."""
    found = Talk(client=("10.0.0.1", port), ts_ns=START_NS).handshake()
    sent = {True: 0, False: 0}
    for from_client, data in frames:
        found.send(from_client, sent[from_client], data, ack=sent[not from_client])
        sent[from_client] += len(data)
    return found.packets


def requests(count: int) -> list[tuple[bool, bytes]]:
    return [asks(number) for number in range(1, count + 1)]


def packets_at(*seconds: float) -> list[Captured]:
    return [Captured(START_NS + int(at * SECOND_NS), FRAME) for at in seconds]


def damaged_pcap() -> bytes:
    """A pcap file with five places that cannot be a record."""
    bad = struct.pack("<IIII", 0, 0, 1 << 31, 1 << 31)
    records = pcap(packets_at(*range(3)))[24:]
    return pcap([]) + b"".join(records + bad for _ in range(5)) + records


def long_line() -> bytes:
    """A request log with a line of about 600 bytes and one of 1,600."""
    return (line(heartbeat()) + line(heartbeat(principal="p" * 1000))).encode()


def packed_log() -> bytes:
    """A compressed request log of one line again and again."""
    return gzip.compress(line(heartbeat()).encode() * 1000)


def large_batch() -> bytes:
    """A log segment with a batch of more than 500 bytes between two small ones."""
    return segment((0, numbered(1)), (1, numbered(30)), (31, numbered(1)))


def false_batches() -> bytes:
    """A log segment in which many places behind the first batch state a batch, with a wrong checksum."""
    header = bytearray(segment((1, numbered(3)))[:61])
    header[8:12] = (100_000).to_bytes(4, "big")
    return segment((0, numbered(1))) + bytes(header) * 3000


def unfinished_fragments() -> list[Captured]:
    """The first fragment of each of ten IP packets."""
    firsts = [ipv4_fragments(tcp(bytes(900)), 400, ip_id=number)[0] for number in range(10)]
    return [Captured(START_NS + number, ethernet(first)) for number, first in enumerate(firsts)]


def late_fragments() -> list[Captured]:
    """The two fragments of an IP packet, ten seconds apart."""
    parts = ipv4_fragments(tcp(bytes(900)), 800)
    return [Captured(START_NS + number * 10 * SECOND_NS, ethernet(part)) for number, part in enumerate(parts)]


def described(*blocks: bytes) -> bytes:
    """A pcapng file with one packet and these blocks in front of it."""
    return section() + interface() + b"".join(blocks) + enhanced(FRAME, 1_700_000_000_000_000)


def names() -> bytes:
    records = [option(1, bytes((10, 0, 0, number)) + b"host\0") for number in range(3)]
    return described(block(4, b"".join(records) + bytes(4)))


def secrets() -> bytes:
    return described(*[block(10, struct.pack("<II", 0x544C534B, 40) + b"#" * 40)] * 3)


def held_frames() -> list[Captured]:
    """Frames of which only a part comes."""
    frame = asks(7, bytes(40_000))[1][:20_000]
    return [packet for port in range(4) for packet in talk((True, frame), port=40_000 + port)]


def half_open() -> list[Captured]:
    packets = [ipv4(tcp(seq=n, flags=SYN), f"10.1.0.{n}", "192.0.2.1") for n in range(1, 10)]
    return [Captured(START_NS + number, ethernet(packet)) for number, packet in enumerate(packets)]


def behind_a_gap() -> list[Captured]:
    """Segments behind one that was lost, confirmed by the receiver."""
    _, first = asks(1)
    found = Talk(ts_ns=START_NS).handshake().send(True, 0, first, ack=0)
    at = len(first) + 100
    for number in range(20):
        found.send(True, at, bytes(100), ack=0)
        at += 100
        found.send(False, 0, flags=ACK, ack=at, ip_id=1000 + number)
    return found.packets


def sent_again() -> list[Captured]:
    found = Talk(ts_ns=START_NS).handshake()
    for _ in range(9):
        found.send(True, 0, b"again", ack=0)
    return found.packets


def fetches(sessions: int, partitions: int) -> list[Captured]:
    """Full Fetch requests, version 7, each of which opens a session and names so many partitions."""
    wanted = b"".join(struct.pack(">iqqi", number, 5, -1, 1000) for number in range(partitions))
    topics = struct.pack(">i", 1) + text("t") + struct.pack(">i", partitions) + wanted
    found = []
    for number in range(1, sessions + 1):
        head = struct.pack(">iiiibii", -1, 500, 1, 1 << 20, 0, 0, 0)
        found.append(asks(number, head + topics + struct.pack(">i", 0), 1, 7))
        found.append(answers(number, struct.pack(">ihii", 0, 0, number, 0)))
    return talk(*found)


def metadata() -> list[Captured]:
    """A Metadata answer, version 0: no broker, one topic of three partitions."""
    partitions = b"".join(struct.pack(">hiiii", 0, number, 1, 0, 0) for number in range(3))
    topic = struct.pack(">h", 0) + text("t") + struct.pack(">i", 3) + partitions
    return talk(asks(1, bytes(4), 3), answers(1, struct.pack(">ii", 0, 1) + topic))


def produced(codec: str) -> list[Captured]:
    """A Produce, version 3, of thirty records, and its answer."""
    records = batch([Sent(1_700_000_000_000, None, b"value" * 100) for _ in range(30)], codec)
    head = struct.pack(">hhi", -1, 1, 30_000)
    body = struct.pack(">i", 1) + text("t") + struct.pack(">iii", 1, 0, len(records)) + records
    answer = struct.pack(">i", 1) + text("t") + struct.pack(">iihqqi", 1, 0, 0, 77, -1, 0)
    return talk(asks(1, head + body, 0, 3), answers(1, answer))


def api_versions() -> list[Captured]:
    """An ApiVersions answer, version 0, that lists three APIs."""
    listed = b"".join(struct.pack(">hhh", key, 0, 5) for key in (3, 12, 18))
    return talk(asks(1, b"", 18), answers(1, struct.pack(">hi", 0, 3) + listed))


def bare_tokens() -> list[Captured]:
    """SaslHandshake, version 0, its answer, and tokens that nobody answers."""
    agreed = struct.pack(">hi", 0, 1) + text("GSSAPI")
    return talk(asks(1, text("GSSAPI"), 17), answers(1, agreed), *[(True, sized(b"token" * 9))] * 5)


def at_two_points() -> list[Captured]:
    """A connection, and every packet of it once more with a VLAN tag."""
    packets = talk(*ONE_HEARD, *requests(3))
    return [
        Captured(packet.ts_ns + moved, packet.data if moved == 0 else vlan(packet.data))
        for packet in packets
        for moved in (0, 1000)
    ]


def pings(count: int) -> list[tuple[bool, bytes]]:
    """Commands of MongoDB."""
    return [(True, op_msg({"ping": 1, "$db": "admin"}, number)) for number in range(1, count + 1)]


def pongs(count: int) -> list[tuple[bool, bytes]]:
    """Their replies."""
    return [(False, op_msg({"ok": 1.0}, 1000 + number, number)) for number in range(1, count + 1)]


def vlan(frame: bytes) -> bytes:
    return frame[:12] + bytes.fromhex("8100 0007") + frame[12:]


def mqtt(packet: bytes, level: int = 4) -> list[Captured]:
    """An MQTT connection with this packet of the client."""
    maximum = [b"\x22\0\x09"] if level == 5 else None
    return talk((True, connect(level)), (False, connack(properties=maximum)), (True, packet))


def publishes_in_websocket() -> list[Captured]:
    """Compressed, so that thousands take a few bytes."""
    ws = WebSocketTalk(compressed=True).open().binary(True, connect(4)).binary(False, connack(properties=None))
    return ws.binary(True, publish("t", b"") * 3000).packets


ONE_HEARD = [asks(0), answers(0)]
# A word behind the name tells cases of one limit apart.
REACHED: dict[str, Reached] = {
    # What is larger is damage: that is said, and reading goes on behind it.
    "capture.max_packet_bytes": Reached(
        {"max_packet_bytes": 500},
        lambda: pcap([*packets_at(0), Captured(START_NS, bytes(900)), *packets_at(1, 2)]),
        "damaged_record",
        "capture",
    ),
    "capture.max_resyncs": Reached({"max_resyncs": 2}, damaged_pcap, "too_many_damages"),
    "capture.max_pairs": Reached(
        {"max_pairs": 2}, lambda: [packet for port in range(4) for packet in talk(port=5000 + port)], "too_many_pairs"
    ),
    "capture.fragment_timeout_s": Reached({"fragment_timeout_s": 1}, late_fragments, "ip_fragment", "capture"),
    "capture.max_fragment_bytes": Reached({"max_fragment_bytes": 2000}, unfinished_fragments, "fragments_given_up"),
    "capture.max_datagrams": Reached({"max_datagrams": 3}, unfinished_fragments, "fragments_given_up"),
    "capture.usual_packing_ratio": Reached(
        {"usual_packing_ratio": 1, "packing_slack_of_all_bytes": 100}, packed, "unpacked_too_much"
    ),
    "capture.packing_slack_of_all_bytes": Reached(
        {"packing_slack_of_all_bytes": 100, "usual_packing_ratio": 1}, packed, "unpacked_too_much"
    ),
    "capture.usual_rows_per_packed_byte": Reached(
        {"usual_rows_per_packed_byte": 0, "packing_slack_of_all_rows": 100}, packed_log, "unpacked_too_much"
    ),
    "capture.packing_slack_of_all_rows": Reached(
        {"packing_slack_of_all_rows": 100, "usual_rows_per_packed_byte": 0}, packed, "unpacked_too_much"
    ),
    "capture.max_line_bytes": Reached({"max_line_bytes": 900}, long_line, "log_long"),
    "capture.max_stored_batch_bytes": Reached(
        {"max_stored_batch_bytes": 500}, large_batch, "segment_damaged", "capture"
    ),
    "capture.segment_slack_bytes": Reached({"segment_slack_bytes": 100_000}, false_batches, "segment_given_up"),
    "capture.max_remarks": Reached({"max_remarks": 2}, damaged_pcap, "too_many_remarks"),
    "capture.max_interfaces": Reached(
        {"max_interfaces": 2}, lambda: described(interface(), interface()), "too_many_interfaces"
    ),
    "capture.max_comments": Reached(
        {"max_comments": 1},
        lambda: described(interface(options=option(1, b"one") + option(1, b"two"))),
        "too_many_comments",
    ),
    "capture.max_names": Reached({"max_names": 2}, names, "too_many_names"),
    "capture.max_secrets": Reached({"max_secrets": 2}, secrets, "too_many_secrets"),
    "capture.max_secrets_bytes": Reached({"max_secrets_bytes": 100}, secrets, "too_many_secrets"),
    "capture.clock_back_s": Reached({"clock_back_s": 3}, lambda: packets_at(9, 5), "time_backwards", "capture"),
    "capture.clock_forward_s": Reached({"clock_forward_s": 100}, lambda: packets_at(0, 101), "time_jump", "capture"),
    "capture.max_clock_remarks": Reached(
        {"max_clock_remarks": 2}, lambda: packets_at(90, 80, 70, 60), "too_many_clock_steps"
    ),
    # A frame that claims more is damage, too.
    "max_frame_bytes": Reached(
        {"max_frame_bytes": 1000}, lambda: talk(asks(1), asks(2, bytes(2000))), "skipped_bytes", "framing"
    ),
    "max_pending_bytes": Reached(
        {"max_pending_bytes": 500, "max_pending_packets": 1000}, behind_a_gap, "pending_bytes"
    ),
    # The gap becomes a gap, as it would at the end of the flow.
    "max_pending_packets": Reached({"max_pending_packets": 5}, behind_a_gap, "gap", "tcp"),
    "max_held_bytes": Reached({"max_held_bytes": 50_000}, held_frames, "held_bytes"),
    "max_open_flows": Reached(
        {"max_open_flows": 2},
        lambda: [packet for port in range(5) for packet in talk(*ONE_HEARD, port=4000 + port)],
        "open_flows",
    ),
    "max_half_open": Reached({"max_half_open": 3}, half_open, "half_open_flows"),
    "max_probe_bytes": Reached({"max_probe_bytes": 500}, lambda: talk((True, b"\xff" * 600)), "unknown_protocol"),
    "max_one_sided_bytes": Reached(
        {"max_probe_bytes": 500, "max_one_sided_bytes": 1000},
        lambda: Talk(ts_ns=START_NS).send(False, 0, b"\xff" * 1200, ack=0).packets,
        "unknown_protocol",
    ),
    "max_outstanding": Reached({"max_outstanding": 3}, lambda: talk(*ONE_HEARD, *requests(9)), "outstanding_requests"),
    "max_unheard": Reached({"max_unheard": 3}, lambda: talk(*requests(9)), "unheard_requests"),
    "max_outstanding_tokens": Reached({"max_outstanding_tokens": 2}, bare_tokens, "outstanding_tokens"),
    "max_outstanding mongo": Reached(
        {"max_outstanding": 3}, lambda: talk(*pings(1), *pongs(1), *pings(9)), "outstanding_requests"
    ),
    "max_unheard mongo": Reached({"max_unheard": 3}, lambda: talk(*pings(9)), "unheard_requests"),
    "max_early mongo": Reached({"max_early": 2}, lambda: talk(*pings(1), *pongs(9)), "early_responses"),
    "max_expert_infos mongo": Reached(
        {"max_expert_infos": 2},
        lambda: talk(*[(True, compressed(op_msg({"hello": 1, "$db": "admin"}, n), "zlib")) for n in range(1, 9)]),
        "expert_infos",
    ),
    "max_compared_pairs": Reached({"max_compared_pairs": 1}, at_two_points, "compared_pairs"),
    "max_api_versions": Reached({"max_api_versions": 2}, api_versions, "api_versions"),
    "max_early": Reached(
        {"max_early": 2}, lambda: talk(*ONE_HEARD, *(answers(number) for number in range(1, 9))), "early_responses"
    ),
    "max_early_bytes": Reached(
        {"max_early_bytes": 100}, lambda: talk(*ONE_HEARD, answers(1, bytes(200))), "early_responses"
    ),
    "max_fetch_sessions": Reached({"max_fetch_sessions": 2}, lambda: fetches(4, 1), "fetch_sessions"),
    "max_fetch_session_partitions": Reached(
        {"max_fetch_session_partitions": 2}, lambda: fetches(1, 5), "fetch_sessions"
    ),
    "max_known_partitions": Reached({"max_known_partitions": 2}, metadata, "known_partitions"),
    "max_decompressed_bytes": Reached(
        {"max_decompressed_bytes": 3000}, lambda: produced("gzip"), "decompression_limit"
    ),
    "usual_compression_ratio": Reached(
        {"usual_compression_ratio": 2, "decompression_slack_bytes": 0}, lambda: produced("gzip"), "decompression_limit"
    ),
    "decompression_slack_bytes": Reached(
        {"decompression_slack_bytes": 1000, "usual_compression_ratio": 1},
        lambda: produced("gzip"),
        "decompression_limit",
    ),
    "decompression_slack_of_all_bytes": Reached(
        {"decompression_slack_of_all_bytes": 1000, "usual_compression_ratio": 1},
        lambda: produced("gzip"),
        "decompression_limit",
    ),
    "carried_slack_bytes": Reached(
        {"carried_slack_bytes": 1000, "usual_compression_ratio": 1}, publishes_in_websocket, "compressed_message"
    ),
    "usual_rows_per_compressed_byte": Reached(
        {"usual_rows_per_compressed_byte": 1, "decompression_slack_of_all_rows": 0},
        publishes_in_websocket,
        "compressed_rows",
    ),
    "decompression_slack_of_all_rows": Reached(
        {"decompression_slack_of_all_rows": 1000}, publishes_in_websocket, "compressed_rows"
    ),
    "usual_records_per_compressed_byte": Reached(
        {"usual_records_per_compressed_byte": 0, "compressed_records_of_all": 9},
        lambda: produced("gzip"),
        "decompression_limit",
    ),
    "compressed_records_of_all": Reached(
        {"compressed_records_of_all": 9, "usual_records_per_compressed_byte": 0},
        lambda: produced("gzip"),
        "decompression_limit",
    ),
    "max_records_per_batch": Reached({"max_records_per_batch": 9}, lambda: produced("none"), "decompression_limit"),
    "max_held_records_bytes": Reached({"max_held_records_bytes": 1000}, lambda: produced("none"), "held_records"),
    "max_name_characters": Reached({"max_name_characters": 100}, lambda: mqtt(publish("t" * 200)), "long_names"),
    "max_properties": Reached(
        {"max_properties": 3},
        lambda: mqtt(publish("t", properties=[user_property("a", "b")] * 9), 5),
        "too_many_properties",
    ),
    "max_filters": Reached({"max_filters": 3}, lambda: mqtt(subscribe(1, *[("a", 0)] * 9)), "too_many_filters"),
    "max_topic_bytes": Reached(
        {"max_topic_bytes": 100}, lambda: mqtt(publish("t" * 200, properties=[b"\x23\0\1"]), 5), "topic_aliases"
    ),
    "max_undecided_frames": Reached({"max_undecided_frames": 3}, lambda: talk(*[(True, PING)] * 9), "unknown_level"),
    # That a limit was reached is said even where no other remark has room.
    "max_undecided_frames alone": Reached(
        {"max_undecided_frames": 3, "max_expert_infos": 0}, lambda: talk(*[(True, PING)] * 9), "unknown_level"
    ),
    "max_undecided_bytes": Reached({"max_undecided_bytes": 9}, lambda: talk(*[(True, PING)] * 9), "unknown_level"),
    "max_expert_infos": Reached(
        {"max_expert_infos": 2},
        lambda: talk(*ONE_HEARD, *(asks(number, HEARTBEAT + b"behind") for number in range(9))),
        "expert_infos",
    ),
    "max_tcp_waits": Reached({"max_tcp_waits": 3}, lambda: in_pieces(Talk(), 5).packets, "tcp_waits"),
    "max_tcp_remarks": Reached({"max_tcp_remarks": 3}, sent_again, "tcp_remarks"),
}
SILENT = {
    "capture": "the limits of the capture layer, each of which stands here",
    "capture.block_bytes": "how much is read at a time; a larger record makes the block grow, nothing is lost",
    "capture.handover_ms": "when a block of a live source is handed on; nothing is lost",
    "max_held_stored_offsets": "such rows say themselves that the end of their transaction is not known",
    "max_logged_connections": "a connection of a request log that goes on later counts as another; nothing is lost",
    "max_history_bytes": "how far back bytes that come again are compared; every busy flow is always beyond it",
    "max_tls_tries_of_all_bytes": "records that no key opened stay unread, which `tls_decryption` says",
    "max_payload_bytes": "what is shown of a value; its size stands beside it in the row",
}


def expert_infos(packets: Packets, limits: Limits) -> set[tuple[str, str]]:
    """(group, code) of all remarks."""
    decoded = decode(packets, TABLES, limits=limits)
    with analysis_of(decoded, TABLES, ReadOptions(), PROTOCOLS.values()) as analysis:
        found = analysis.arrow("expert_infos", columns=["group", "code"]).to_pylist()
    return {(row["group"], row["code"]) for row in found}


def limited(values: dict[str, int]) -> Limits:
    """The usual limits with these values, whichever of the two classes the fields belong to."""
    of_capture = {field.name for field in fields(CaptureLimits)}
    capture = replace(CaptureLimits(), **{name: value for name, value in values.items() if name in of_capture})
    others = {name: value for name, value in values.items() if name not in of_capture}
    return replace(Limits(), capture=capture, **others)  # type: ignore[arg-type]


def test_every_limit_is_here() -> None:
    named = {field.name for field in fields(Limits) if field.init} | {
        f"capture.{field.name}" for field in fields(CaptureLimits)
    }
    reached = {name.partition(" ")[0] for name in REACHED}
    assert named == reached | SILENT.keys(), "a new limit needs an entry in REACHED, or a reason in SILENT"
    assert not reached & SILENT.keys()


@pytest.mark.parametrize("name", REACHED)
def test_a_limit_that_is_reached_is_said(name: str) -> None:
    reached = REACHED[name]
    assert name.partition(" ")[0].removeprefix("capture.") in reached.limits
    packets = reached.make()
    assert (reached.group, reached.code) in expert_infos(packets, limited(reached.limits))
    # The same packets reach none of the usual limits, so it is this one that was reached.
    if reached.group == "limit":
        assert not [code for group, code in expert_infos(packets, Limits()) if group == "limit"]
