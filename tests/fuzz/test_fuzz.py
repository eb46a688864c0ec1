"""The fuzz targets reach what they are there for: their seeds are read whole, and each option changes what is seen."""

from __future__ import annotations

from itertools import islice

import pytest

from dissectors.kafka.schema.walk import walk
from tests.fuzz.frame import (
    CARRIED,
    FORCED,
    FRAMED,
    FROM_CLIENT,
    LOST,
    MID_STREAM,
    TWICE,
    Spoken,
    Target,
    conversation_seeds,
    message_seeds,
    packets,
)
from tests.fuzz.fuzz_kafka import KAFKA, TARGETS, decoder_seeds
from tests.fuzz.fuzz_mongo import MONGO
from tests.fuzz.fuzz_mongo import TARGETS as MONGO_TARGETS
from tests.fuzz.fuzz_mqtt import MQTT
from tests.fuzz.fuzz_mqtt import TARGETS as MQTT_TARGETS
from tests.support.kafka_encode import MESSAGES
from tests.support.wire import decode

HEARTBEAT = bytes.fromhex("000c 0000 00000001 0001 63 0001 67 00000007 0001 6d")  # client "c", group "g", member "m"
ANSWER = bytes.fromhex("00000001 0000")


each_protocol = pytest.mark.parametrize("spoken", [KAFKA, MONGO, MQTT], ids=lambda spoken: spoken.protocol)


def piece(what: int, payload: bytes) -> bytes:
    return bytes([what]) + len(payload).to_bytes(2, "big") + payload


def statuses(data: bytes, spoken: Spoken = KAFKA) -> list[str]:
    """Status of every exchange that comes out of fuzz bytes."""
    decoded = decode(packets(spoken, data), ["exchanges"])
    try:
        batches = list(decoded.store.tables["exchanges"].batches())
    finally:
        decoded.store.close()
    return [status for batch in batches for status in batch["status"].to_pylist()]


@each_protocol
def test_seeds_of_conversations_are_exchanges(spoken: Spoken) -> None:
    found = [statuses(seed, spoken) for seed in islice(conversation_seeds(spoken), 0, None, 9)]
    assert sum("ok" in one for one in found) > len(found) // 2


@each_protocol
def test_seeds_of_messages_are_frames(spoken: Spoken) -> None:
    seeds = [seed[1:] for seed in islice(message_seeds(spoken), 0, None, 9)]
    assert len(seeds) > 5
    for seed in seeds:
        body = spoken.bare(seed)
        assert body is not None
        assert spoken.framed(body) == seed


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


EVERY_TARGET = [
    pytest.param(target, id=f"{protocol}: {name}")
    for protocol, targets in (("kafka", TARGETS), ("mongo", MONGO_TARGETS), ("mqtt", MQTT_TARGETS))
    for name, target in targets.items()
]


@pytest.mark.parametrize("target", EVERY_TARGET)
def test_any_bytes_pass(target: Target) -> None:
    for data in (b"", b"\x00", b"\x01\x00", b"\xff" * 40, bytes(300), next(target.seeds())):
        target.check(data)
