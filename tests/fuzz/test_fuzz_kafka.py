"""The fuzz targets reach what they are there for: their seeds are read whole, and each option changes what is seen."""

from __future__ import annotations

from itertools import islice

import pytest

from dissectors.kafka.walk import walk
from tests.fuzz.fuzz_kafka import (
    CARRIED,
    FORCED,
    FRAMED,
    FROM_CLIENT,
    LOST,
    MID_STREAM,
    TWICE,
    check_conversation,
    check_decoders,
    conversation_seeds,
    decoder_seeds,
    packets,
)
from tests.support.kafka_encode import MESSAGES
from tests.support.wire import decode

HEARTBEAT = bytes.fromhex("000c 0000 00000001 0001 63 0001 67 00000007 0001 6d")  # client "c", group "g", member "m"
ANSWER = bytes.fromhex("00000001 0000")


def piece(what: int, payload: bytes) -> bytes:
    return bytes([what]) + len(payload).to_bytes(2, "big") + payload


def statuses(data: bytes) -> list[str]:
    """Status of every exchange that comes out of fuzz bytes."""
    decoded = decode(packets(data), ["exchanges"])
    try:
        batches = list(decoded.store.tables["exchanges"].batches())
    finally:
        decoded.store.close()
    return [status for batch in batches for status in batch["status"].to_pylist()]


def test_seeds_of_conversations_are_exchanges() -> None:
    found = [statuses(seed) for seed in islice(conversation_seeds(), 0, None, 9)]
    assert sum("ok" in one for one in found) > len(found) // 2


def test_seeds_of_decoders_are_valid_messages() -> None:
    for seed in islice(decoder_seeds(), 0, None, 7):
        message = MESSAGES[int.from_bytes(seed[:2], "big")]
        assert walk(*message, seed, 2, len(seed)).error is None


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        pytest.param(piece(FROM_CLIENT | FRAMED, HEARTBEAT) + piece(FRAMED, ANSWER), ["ok"], id="answered"),
        pytest.param(piece(FROM_CLIENT | FRAMED, HEARTBEAT) + piece(FRAMED | LOST, ANSWER), ["unanswered"], id="lost"),
        pytest.param(
            piece(FROM_CLIENT | FRAMED | TWICE, HEARTBEAT) + piece(FRAMED | TWICE, ANSWER), ["ok"], id="sent twice"
        ),
        pytest.param(
            piece(FROM_CLIENT, len(HEARTBEAT).to_bytes(4, "big") + HEARTBEAT) + piece(FRAMED, ANSWER),
            ["ok"],
            id="own length",
        ),
        pytest.param(b"", [], id="nothing"),
    ],
)
@pytest.mark.parametrize("flags", [FORCED, FORCED | MID_STREAM])
def test_pieces(flags: int, pieces: bytes, expected: list[str]) -> None:
    assert statuses(bytes([flags]) + pieces) == expected


def test_pieces_inside_websocket() -> None:
    framed = piece(FROM_CLIENT | FRAMED, HEARTBEAT) + piece(FRAMED, ANSWER)
    assert statuses(bytes([FORCED | CARRIED]) + framed) == ["ok"]
    assert statuses(bytes([CARRIED]) + framed + piece(0, b"no frame") + framed) == ["ok", "ok"]


@pytest.mark.parametrize("check", [check_conversation, check_decoders])
@pytest.mark.parametrize("data", [b"", b"\x00", b"\x01\x00", b"\xff" * 40, bytes(300)])
def test_any_bytes_pass(check: object, data: bytes) -> None:
    assert callable(check)
    check(data)
