"""Feeds the Kafka part with bytes that libFuzzer makes up: `python -m tests.fuzz.fuzz_kafka [SECONDS]`.

In: seconds for all targets together (60 without); `--target NAME` runs one. Targets: those of `tests/fuzz/frame.py` and

    decoders      any bytes into the fast decoder and the slow reader of every message, which must agree: equal values,
                  or both refuse
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from random import Random

from tests.fuzz.frame import MAX_INPUT_BYTES, Spoken, Target, main, targets


def check_decoders(data: bytes) -> None:
    """Two bytes choose the message, the rest is its body."""
    from tests.dissectors.kafka.schema.test_walk import check_equal
    from tests.support.kafka_encode import MESSAGES

    message = MESSAGES[int.from_bytes(data[:2], "big") % len(MESSAGES)]
    check_equal(message, data, min(2, len(data)), len(data))


def decoder_seeds() -> Iterator[bytes]:
    """Valid bodies of every message, as far as they are short enough."""
    from tests.support.kafka_encode import MESSAGES, message

    for number, one in enumerate(MESSAGES):
        bodies = (message(*one, Random(turn))[0] for turn in range(2))
        yield from (number.to_bytes(2, "big") + body for body in bodies if len(body) <= MAX_INPUT_BYTES - 2)


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


def bare(payload: bytes) -> bytes | None:
    return payload[4:] if payload == framed(payload[4:]) else None


KAFKA = Spoken("kafka", 9092, ("kafka_healthy", "kafka_stale_commit", "kafka_admin"), framed, bare)
TARGETS = {**targets(KAFKA), "decoders": Target(check_decoders, decoder_seeds, ["dissectors.kafka"])}

if __name__ == "__main__":
    sys.exit(main("tests.fuzz.fuzz_kafka", TARGETS, sys.argv[1:]))
