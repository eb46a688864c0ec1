"""tshark and our tables agree: messages and the packets that complete them, correlation ids, APIs, pairing.

tshark 4.0 knows Kafka up to 2.8 or so. Newer versions it calls malformed although they are not, and then forgets the
request, so that the response "has no request". Headers it reads in every version. What it cannot decode is classified
here, so that a new kind of difference fails.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import analyser
from dissectors.kafka.api_keys import API_KEYS
from tests.conftest import SAMPLES
from tests.support.tshark import KafkaPacket, kafka_packets

PORT = 9092
# Its Kafka is on another port and is little; bare tokens tshark takes for requests.
AUTHENTICATION = "kafka_sasl.pcapng"
CAPTURES = sorted(path for path in SAMPLES.glob("kafka_*.pcapng") if path.name != AUTHENTICATION)
TOO_NEW = re.compile(r"Unsupported \w+ version\. Supports v[\d-]+\.|Unknown \d+ API key")
# Versions that it does know, and still reads wrongly: it takes the 4-byte length of a blob for a 2-byte one, finds it
# empty and calls the blob's bytes left over. Only before the flexible versions, and only where there is a blob.
WRONG_INSIDE = {("JoinGroup", str(version)) for version in range(6)} | {("SyncGroup", str(v)) for v in range(4)}
# A null array, which stands for "all", it cannot read.
NULL_ARRAY = {("ElectLeaders", "2"), ("ListPartitionReassignments", "0")}
# It loses its way in message sets, compressed ones above all, and in first versions that hardly anybody sent.
WRONG_INSIDE |= {(f"{name}DelegationToken", "0") for name in ("Create", "Renew", "Expire")}
WRONG_INSIDE |= {("WriteTxnMarkers", "0"), ("DeleteAcls", "0")}
MESSAGE_SETS = {("Produce", str(version)) for version in range(3)} | {("Fetch", str(v)) for v in range(4)}


class Ours(NamedTuple):
    """Our rows of one capture: whole messages by the packet that completes them, request packets by response packet."""

    messages: dict[int, list[dict[str, Any]]]
    cut: int
    request_of: dict[int, list[int]]


@cache
def our_rows(path: Path) -> Ours:
    with analyser.read(path, tables=["messages", "exchanges"]) as analysis:
        messages = analysis.arrow("messages", where=f"{PORT} IN (src_port, dst_port)").to_pylist()
        exchanges = analysis.arrow("exchanges", where=f"server_port = {PORT}").to_pylist()
    by_packet: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for message in messages:
        if message["complete"]:
            by_packet[message["packet_last"]].append(message)
    request_of: dict[int, list[int]] = defaultdict(list)
    for exchange in exchanges:
        asked, answered = exchange["request_packet"], exchange["response_packet"]
        if asked is not None and answered is not None:
            request_of[answered].append(asked)
    return Ours(by_packet, sum(not message["complete"] for message in messages), request_of)


@cache
def their_packets(tshark: str, path: Path) -> list[KafkaPacket]:
    return kafka_packets(tshark, path, PORT)


@pytest.fixture(params=CAPTURES, ids=lambda path: path.stem)
def both(request: pytest.FixtureRequest, tshark: str) -> tuple[Ours, list[KafkaPacket]]:
    return our_rows(request.param), their_packets(tshark, request.param)


Both = tuple[Ours, list[KafkaPacket]]


def test_there_are_captures() -> None:
    assert len(CAPTURES) >= 3


def test_messages_and_their_packets(both: Both) -> None:
    """The same packets complete messages, and in each the same ones: size, correlation id, direction."""
    ours, theirs = both
    assert len(theirs) > 250
    assert {packet.number for packet in theirs} == set(ours.messages)
    for packet in theirs:
        mine = sorted(ours.messages[packet.number], key=lambda message: message["stream_offset"])
        assert packet.sizes == tuple(message["length_bytes"] - 4 for message in mine)
        assert packet.correlation_ids == tuple(message["correlation_id"] for message in mine)
        assert {message["dst_port"] for message in mine} == {packet.to_port}
        assert {message["direction"] == "client_to_server" for message in mine} == {packet.to_port == PORT}
    # What is left is a message that the end of its stream cuts; tshark shows none of those.
    assert ours.cut <= len(theirs) // 500


def test_flows_are_streams(both: Both) -> None:
    ours, theirs = both
    pairs = {(packet.stream, message["flow_id"]) for packet in theirs for message in ours.messages[packet.number]}
    assert len(pairs) == len({stream for stream, _ in pairs}) == len({flow for _, flow in pairs}) > 5


def test_apis_and_versions(both: Both) -> None:
    """Of every request, and of the responses whose request tshark knows."""
    ours, theirs = both
    seen: Counter[tuple[str, str, str]] = Counter()
    for packet in theirs:
        mine = sorted(ours.messages[packet.number], key=lambda message: message["stream_offset"])
        keys = zip(packet.api_keys, packet.versions, strict=True)
        named = [(API_KEYS[key].name, str(version), str(mine[0]["role"])) for key, version in keys]
        if packet.requests_missing == 0:
            assert named == [(message["operation"], message["version"], message["role"]) for message in mine]
        seen.update(named)
    assert len({operation for operation, _, role in seen if role == "request"}) >= 10
    assert len({operation for operation, _, role in seen if role == "response"}) >= 5


def test_pairing(both: Both) -> None:
    """Where tshark knows the request of a response, it is ours; where it does not, it gave up on that request."""
    ours, theirs = both
    malformed = {packet.number for packet in theirs if packet.malformed}
    agreed = forgotten = 0
    for packet in theirs:
        if packet.to_port == PORT:
            continue
        mine = Counter(ours.request_of[packet.number])
        assert not Counter(packet.request_packets) - mine
        assert packet.requests_missing + len(packet.request_packets) == len(packet.sizes) == mine.total()
        assert packet.requests_missing == 0 or set(mine) & malformed
        agreed += len(packet.request_packets)
        forgotten += packet.requests_missing
    print(f"paired alike: {agreed} exchanges; tshark forgot the request of {forgotten} responses")
    assert agreed > len(theirs) // 20


def test_limits_of_tshark_are_known(both: Both) -> None:
    """It calls nothing malformed but what is too new for it, and the blobs of old group messages."""
    ours, theirs = both
    kinds: Counter[str] = Counter()
    for packet in theirs:
        if not packet.malformed:
            continue
        message = ours.messages[packet.number][0]
        too_new = any(TOO_NEW.fullmatch(remark) for remark in packet.remarks)
        kind = "too new" if too_new else "wrong inside"
        kinds[f"{message['operation']} v{message['version']} {message['role']}: {kind}"] += 1
        left_over = "Dissected message does not end at the pdu length offset" in packet.remarks
        asked = (message["operation"], message["version"])
        assert too_new or (left_over and asked in WRONG_INSIDE) or asked in NULL_ARRAY | MESSAGE_SETS
        assert message["error"] is None or "not decoded" in message["error"]
    print(*sorted(kinds.items()), sep="\n")
