"""Feeds the MQTT part with bytes that libFuzzer makes up: `python -m tests.fuzz.fuzz_mqtt [SECONDS]`.

In: seconds for all targets together (60 without); `--target NAME` runs one. Targets: those of `tests/fuzz/frame.py`.
"""

from __future__ import annotations

import sys

from tests.fuzz.frame import Spoken, main, targets
from tests.support.mqtt_encode import varint

SAMPLES = ("mqtt_healthy", "mqtt_v5_features", "mqtt_faults", "mqtt_qos2_stuck")


def framed(body: bytes) -> bytes:
    return body[:1] + varint(max(len(body) - 1, 0)) + body[1:]


def bare(payload: bytes) -> bytes | None:
    for length_bytes in range(1, 5):
        body = payload[:1] + payload[1 + length_bytes :]
        if payload == framed(body):
            return body
    return None


MQTT = Spoken("mqtt", 1883, SAMPLES, framed, bare)
TARGETS = targets(MQTT)

if __name__ == "__main__":
    sys.exit(main("tests.fuzz.fuzz_mqtt", TARGETS, sys.argv[1:]))
