"""Is it Kafka? Requests prove it wherever they start; other protocols' zero bytes do not."""

from __future__ import annotations

import struct
from random import Random

import pytest

from tests.support.timing import follows_size, seconds, takes_less_than
from wirewitness.dissectors.core.boundary_checks import Judged
from wirewitness.dissectors.kafka.framing import plausible_request, probe


def request(api_key: int, version: int, client_id: bytes | None, body: bytes, correlation: int = 7) -> bytes:
    size = -1 if client_id is None else len(client_id)
    content = struct.pack(">hhih", api_key, version, correlation, size) + (client_id or b"") + body
    return struct.pack(">i", len(content)) + content


HEARTBEAT = bytes.fromhex("0001 67 00000007 0001 6d")  # group "g", generation 7, member "m"
NAMED = request(12, 0, b"c", HEARTBEAT)
NAMELESS = request(12, 0, b"", HEARTBEAT)
UNDECODED = request(12, 14, b"c", bytes(8))  # a version that no schema covers
# A Produce without topics, all zeros but for its size, is also what numbers in other orders of bytes look like.
ZEROS = bytes.fromhex("00000014") + bytes(20)
# Mongo: OP_QUERY on "test.books", then its reply's first numbers; all numbers little endian.
MONGO = bytes.fromhex(
    "37000000 01000000 00000000 d4070000 00000000 746573742e626f6f6b7300 00000000 01000000"
    "10000000 10 6e616d65 00 01000000 00 24000000 02000000 01000000 01000000 08000000 0000000000000000"
)

HTTP2_SETTINGS = bytes.fromhex("000012 04 00 00000000 0003 00000064 0004 00100000 0005 00004000")
ZOOKEEPER = bytes.fromhex("0000002d 00000000 0000000000000000 00007530 0000000000000000 00000010") + bytes(17)

CASES = {
    "request": (NAMED, True, 100),
    "request, cut": (NAMED[:-3], True, 60),
    "request without client id": (NAMELESS, True, 60),
    "request without client id, cut": (NAMELESS[:-3], True, 30),
    "two requests without client id": (NAMELESS * 2, True, 100),
    "unknown version": (UNDECODED, True, 60),
    "two of an unknown version": (UNDECODED * 2, True, 100),
    "unknown version, then something else": (UNDECODED + b"\xff" * 20, True, 30),
    "mid-stream, at a request": (NAMED, False, 100),
    "mid-stream, inside one": (NAMED[5:] + NAMED, False, 100),
    "mid-stream, inside one, no client ids": (NAMELESS[5:] + NAMELESS * 2, False, 100),
    "mid-stream, inside one, only a header left": (NAMED[5:] + NAMED[:-3], False, 30),
    "zeros of a request's size": (ZEROS, False, 60),
    "zeros of a request's size among zeros": (bytes(9) + ZEROS + bytes(40), False, 30),
    "Mongo, mid-stream": (MONGO, False, 30),
    "HTTP/2 server, mid-stream": (HTTP2_SETTINGS, False, 30),
    "ZooKeeper": (ZOOKEEPER, True, 0),
    "TLS": (bytes.fromhex("16030100c8010000c40303") + bytes(200), False, 30),
}


@pytest.mark.parametrize(("data", "whole", "most"), CASES.values(), ids=CASES.keys())
def test_probe(data: bytes, whole: bool, most: int) -> None:
    """The score is exactly 100 or 60 where that is expected; hints below may be anything up to 30."""
    score = probe(data, b"", whole)
    assert score == most if most > 30 else score <= most


@pytest.mark.parametrize("split", range(1, len(NAMED)))
def test_mid_stream_start_at_any_byte(split: int) -> None:
    assert probe((NAMED * 3)[split:], b"", False) == 100


def test_a_request_is_not_found_in_zeros() -> None:
    data = bytes(9) + ZEROS + bytes(40)
    assert not any(plausible_request(data, position, bool(data), Judged()) for position in range(len(data) - 14))


def test_zero_dense_data_is_probed_quickly() -> None:
    random = Random(5)
    data = bytes(random.choice((0, 0, 0, 0, 0, 1, 2, 3, 8, 20, 65)) for _ in range(1 << 16))
    assert probe(data, b"", False) <= 30
    assert takes_less_than(1, lambda: probe(data, b"", False))


def test_a_client_id_of_tens_of_kilobytes_is_not_read() -> None:
    """At chance places headers claim such lengths; reading them all costs a multiple of the capture."""

    def cost(id_bytes: int) -> float:
        data = struct.pack(">ihhih", 60_000, 3, 0, 1, id_bytes) + b"a" * 70_000
        return seconds(lambda: [plausible_request(data, 0, False, Judged()) for _ in range(3000)])

    assert not follows_size(cost, 5, 30_000, 0.6, 0)


@pytest.mark.parametrize(("characters", "expected"), [(1000, True), (1001, False), (4001, False)])
@pytest.mark.parametrize("character", ["a", "é", "漢", "😀"])
def test_the_longest_client_id(character: str, characters: int, expected: bool) -> None:
    data = request(12, 0, character.encode() * characters, HEARTBEAT)
    assert plausible_request(data, 0, False, Judged()) is expected
