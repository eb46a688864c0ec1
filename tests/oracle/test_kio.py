"""What kio encodes, our decoder has to give back field by field, for every message that kio has."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tests.support import kio_messages
from tests.support.kafka_encode import is_edge
from tests.support.shares import share
from wirewitness.dissectors.kafka.schema import definitions as schema
from wirewitness.dissectors.kafka.schema.compile import decoder

BEFORE, BEHIND = b"\x7f" * 13, b"\xff" * 200
ROUNDS = 25

MESSAGES = [
    pytest.param(key, version, direction, id=f"{api.name}-v{version}-{direction}")
    for key in schema.api_keys()
    if (api := schema.api(key)) is not None
    for version in range(api.versions.first, (api.versions.last or 0) + 1)
    if kio_messages.is_known(key, version)
    for direction in ("request", "response")
]
EDGES = [message for message in MESSAGES if is_edge(*message.values[:2])]


def with_records(value: Any, buf: bytes, name: str = "") -> Any:
    """The value with each (start, length) of a records field replaced by the bytes it names."""
    if isinstance(value, dict):
        return {key: with_records(one, buf, key) for key, one in value.items()}
    if isinstance(value, list):
        return [with_records(one, buf, name) for one in value]
    if isinstance(value, tuple):
        start, length = value
        return buf[start : start + length]
    return value


@pytest.mark.parametrize(("key", "version", "direction"), share(MESSAGES, EDGES))
def test_decodes_what_kio_encodes(key: int, version: int, direction: schema.Direction) -> None:
    kind = kio_messages.entity_type(key, version, direction)
    decode = decoder(key, version, direction)
    assert kind is not None
    assert decode is not None
    for seed in range(ROUNDS):
        entity = kio_messages.generate(kind, Random(seed))
        body = kio_messages.encode(entity)
        buf = BEFORE + body + BEHIND
        value, behind = decode(buf, len(BEFORE), len(BEFORE) + len(body))
        assert with_records(value, buf) == kio_messages.expected(entity), f"seed {seed}"
        assert behind == len(BEFORE) + len(body), f"seed {seed}"
