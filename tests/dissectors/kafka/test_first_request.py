"""The first request of a connection that is joined in the middle: what is no proof itself is proven by its answer."""

from __future__ import annotations

import struct
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.kafka_encode import message
from tests.support.packets import ACK, Captured
from tests.support.shares import examples
from tests.support.wire import Talk, decode
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.inputs import analysis_of
from wirewitness.analyser.tables.tables import TABLES
from wirewitness.dissectors.registry import dissectors

# no error; no brokers, controller 1, no topics
VERSIONS = b"\0\0" + message(18, 0, "response", Random(1))[0][2:]
METADATA = struct.pack(">iii", 0, 1, 0)


def response(correlation_id: int, body: bytes) -> bytes:
    """A response with header version 0."""
    return struct.pack(">ii", 4 + len(body), correlation_id) + body


def raw(key: int, version: int, correlation_id: int, client_id: bytes | None, body: bytes = b"") -> bytes:
    """A request whatever its parts are."""
    named = struct.pack(">h", -1) if client_id is None else struct.pack(">h", len(client_id)) + client_id
    head = struct.pack(">hhi", key, version, correlation_id) + named + body
    return struct.pack(">i", len(head)) + head


NEXT = raw(3, 1, 77, b"consumer", message(3, 1, "request", Random(3))[0])
# ApiVersions v0 of 21 to 25 bytes, and others
ODD = {
    "more than its body": raw(18, 0, 5, b"cid", b"\0" * 4),
    "a client id that is no text": raw(18, 0, 5, b"cli\n\0\1\2"),
    "a client id that ends with zeros": raw(18, 0, 5, b"client\0\0\0"),
    "a negative correlation id": raw(18, 0, -5, b"consumer-1"),
    "a version to come": raw(18, 9, 5, None, b"\0"),
}
PROVEN = {"proven by itself": raw(18, 0, 5, b"rdkafka"), "no client id": raw(18, 0, 5, None)}


def answer(first: bytes) -> bytes:
    """What a broker says; it does not know version 9 and says so in the form of version 0 (KIP-511)."""
    error = b"\0\x23" if first[7] == 9 else b"\0\0"
    return response(struct.unpack_from(">i", first, 8)[0], error + VERSIONS[2:])


def talk(first: bytes, answered: bytes, *, goes_on: bool = True, wait_s: float = 0) -> list[Captured]:
    """The first segments of a connection whose handshake was not captured, and of another that tells the protocol."""
    made = Talk(server=("10.0.0.2", 9092))
    made.send(True, 0, first, ack=0).wait(wait_s).send(False, 0, answered, ack=len(first))
    if goes_on:
        made.send(True, len(first), NEXT, ack=len(answered))
        made.send(False, len(answered), response(77, METADATA), ack=len(first) + len(NEXT))
    return made.send(True, len(first) + len(NEXT) * goes_on, flags=ACK, ack=len(answered)).packets


def read(packets: list[Captured], block_bytes: int = 1 << 20) -> dict[str, list[dict[str, Any]]]:
    decoded = decode(packets, TABLES, block_bytes=block_bytes, options=ReadOptions(decode_as={9092: "kafka"}))
    with analysis_of(decoded, TABLES, ReadOptions(), dissectors().values()) as analysis:
        return {name: analysis.arrow(name).to_pylist() for name in ("messages", "exchanges", "expert_infos")}


def shapes(found: dict[str, list[dict[str, Any]]]) -> list[tuple[str, str, str]]:
    return [(row["operation"], row["status"], row["version"]) for row in found["exchanges"]]


@pytest.mark.parametrize("goes_on", [True, False], ids=["goes on", "ends"])
@pytest.mark.parametrize("name", [*ODD, *PROVEN])
def test_believed_when_the_answer_confirms_it(name: str, goes_on: bool) -> None:
    first = {**ODD, **PROVEN}[name]
    packets = talk(first, answer(first), goes_on=goes_on)
    found = read(packets)
    version = str(first[7])
    expected = [("ApiVersions", "ok", version), ("Metadata", "ok", "1")][: 1 + goes_on]
    assert shapes(found) == expected
    assert "skipped_bytes" not in [row["code"] for row in found["expert_infos"]]
    for block_bytes in (90, 150, 333):
        assert read(packets, block_bytes) == found


def test_an_answer_may_take_its_time() -> None:
    first = ODD["more than its body"]
    assert shapes(read(talk(first, answer(first), wait_s=20)))[0] == ("ApiVersions", "ok", "0")


FIRST = ODD["more than its body"]
WRONG = {
    "none": b"",
    "another correlation id": response(6, VERSIONS),
    "another API": response(5, METADATA),
    "longer than its body": response(5, VERSIONS + b"\0" * 4),
}


@pytest.mark.parametrize("name", WRONG)
def test_not_believed_otherwise(name: str) -> None:
    found = read(talk(FIRST, WRONG[name]))
    assert ("ApiVersions", "ok", "0") not in shapes(found)
    assert [row["operation"] for row in found["messages"] if row["role"] == "request"] == ["Metadata"]
    skipped = [row["text"] for row in found["expert_infos"] if row["code"] == "skipped_bytes"]
    assert f"{len(FIRST)} bytes skipped: no frame boundary" in skipped


def test_not_believed_inside_a_segment() -> None:
    found = read(talk(b"\xff" * 30 + FIRST, answer(FIRST)))
    assert [row["operation"] for row in found["messages"] if row["role"] == "request"] == ["Metadata"]


@given(st.binary(min_size=1, max_size=200), st.integers(64, 2000))
@examples(40)
def test_any_bytes_make_no_request(first: bytes, block_bytes: int) -> None:
    found = read(talk(first, answer(FIRST)), block_bytes)
    assert [row["operation"] for row in found["messages"] if row["role"] == "request"] == ["Metadata"]
