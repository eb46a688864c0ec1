"""Kafka decoders for the properties that every protocol has: heartbeats and commits, with their answers."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from hypothesis import strategies as st

from tests.dissectors.kafka.test_decoder import COMMIT_OK, COMMIT_V2, HEARTBEAT_OK, HEARTBEAT_V0
from tests.dissectors.properties import Case, Turn
from wirewitness.dissectors.core.inspect import Asked
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, SERVER_TO_CLIENT
from wirewitness.dissectors.kafka.dissector import KAFKA

_KINDS = ((12, 0, HEARTBEAT_V0, HEARTBEAT_OK), (8, 2, COMMIT_V2, COMMIT_OK))


def _request(kind: int, correlation_id: int) -> bytes:
    key, version, body, _ = _KINDS[kind]
    content = struct.pack(">hhih", key, version, correlation_id, 1) + b"c" + body
    return struct.pack(">i", len(content)) + content


def _response(kind: int, correlation_id: int) -> bytes:
    content = struct.pack(">i", correlation_id) + _KINDS[kind][3]
    return struct.pack(">i", len(content)) + content


def _turns(kinds: list[int]) -> Iterator[Turn]:
    for number, kind in enumerate(kinds):
        yield Turn(CLIENT_TO_SERVER, _request(kind, number))
        yield Turn(SERVER_TO_CLIENT, _response(kind, number))


KAFKA_CASE = Case(
    KAFKA,
    st.lists(st.integers(0, 1), min_size=1, max_size=6).map(lambda kinds: list(_turns(kinds))),
    list(_turns([number % 2 for number in range(300)])),
    (Asked("request", "OffsetCommit", "2"), Asked("response", "Heartbeat", "0"), Asked(None, None, None)),
)
