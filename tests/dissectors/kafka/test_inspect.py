"""The tree of a message covers its bytes, for every message of the samples and for any bytes; secrets stay inside."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import SAMPLES
from tests.support.shares import share, smallest
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.capture import open_captures
from wirewitness.analyser.decoding.run.pipeline import Pipeline
from wirewitness.dissectors.core.inspect import Asked, Inspected, Node
from wirewitness.dissectors.core.model import Frame
from wirewitness.dissectors.core.options import DecodeOptions
from wirewitness.dissectors.core.protocol import Sink
from wirewitness.dissectors.kafka.dissector import KAFKA
from wirewitness.dissectors.kafka.inspect import inspect, may_hide

SHOWN, ALL = DecodeOptions(), DecodeOptions(payload=True)
PASSWORD = b"correct horse battery staple"


def check(tree: Inspected, size: int) -> None:
    """The top level covers the frame; inside, spans rise and do not overlap; hidden spans rise and are apart."""
    tiles(tree.nodes, 0, size, whole=True)
    at = 0
    for start, end, _ in tree.hidden:
        assert at <= start < end <= size
        at = end


def tiles(nodes: Sequence[Node], start: int, end: int, *, whole: bool) -> None:
    at = start
    for node in nodes:
        assert at <= node.start <= node.end <= end
        assert not whole or node.start == at
        tiles(node.children, node.start, node.end, whole=False)
        at = node.end
    assert not whole or at == end


class Checked:
    """A decoder that looks into every frame whose message row it made."""

    def __init__(self, inner: Any, seen: list[str]) -> None:
        self._inner = inner
        self._frames: dict[tuple[int, int], bytes] = {}
        self._seen = seen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def feed(self, frames: Sequence[Frame], out: Sink) -> None:
        for frame in frames:
            self._frames[frame.direction, frame.stream_offset] = bytes(frame.data[frame.start : frame.end])
        rows = out.rows("messages")
        assert rows is not None
        before = len(rows)
        out.later = None  # the rows come at once
        self._inner.feed(frames, out)
        for row in rows[before:]:
            data = self._frames.pop((row[0], row[1]))
            tree = inspect(data, Asked(row[6], row[7], row[8]), SHOWN)
            check(tree, len(data))
            assert row[12] is not None or tree.error is None
            self._seen.append(row[7])


CAPTURES = sorted(SAMPLES.glob("kafka_*.pcapng"))


@pytest.mark.parametrize("path", share(CAPTURES, smallest(CAPTURES)), ids=lambda path: path.name)
def test_every_message_of_a_sample(path: Path) -> None:
    seen: list[str] = []
    # Connections that are there as a whole are read without a decoder otherwise.
    watched = replace(KAFKA, decoder=lambda limits, options: Checked(KAFKA.decoder(limits, options), seen), whole=None)
    decoded = Pipeline({"kafka": watched}, ["messages"], ReadOptions()).run(open_captures([path]))
    assert len(seen) == sum(batch.num_rows for batch in decoded.store.tables["messages"].batches()) > 100
    decoded.store.close()


ASKED = st.builds(
    Asked,
    st.sampled_from(["request", "response", None]),
    st.sampled_from(["Produce", "Fetch", "SaslAuthenticate", "SaslToken", "Key 97", "DescribeConfigs", None, "Key x"]),
    st.sampled_from(["0", "2", "4", "12", "32767", "-1", None, "x"]),
)


@given(st.binary(max_size=200), ASKED, st.booleans())
def test_any_bytes(data: bytes, asked: Asked, payload: bool) -> None:
    check(inspect(data, asked, DecodeOptions(payload=payload)), len(data))


def request(api_key: int, version: int, body: bytes, flexible: bool = False) -> bytes:
    inner = struct.pack(">hhih", api_key, version, 7, 3) + b"app" + b"\0" * flexible + body
    return struct.pack(">i", len(inner)) + inner


def string(text: bytes) -> bytes:
    return struct.pack(">h", len(text)) + text


SASL = request(36, 0, struct.pack(">i", len(PASSWORD)) + PASSWORD)
SASL_FLEXIBLE = request(36, 2, bytes([len(PASSWORD) + 1]) + PASSWORD + b"\0", flexible=True)
ALTER = request(
    33, 0,
    struct.pack(">ib", 1, 2) + string(b"app") + struct.pack(">i", 2)
    + string(b"listener.name.x.ssl.keystore.password") + string(PASSWORD)
    + string(b"cleanup.policy") + string(b"seen") + b"\0",
)  # fmt: skip
ENVELOPE = request(58, 0, b"\x1d" + PASSWORD + b"\0\0\0", flexible=True)
SECRETS = [
    pytest.param(SASL, "request", "SaslAuthenticate", "0", id="SaslAuthenticate"),
    pytest.param(SASL_FLEXIBLE, "request", "SaslAuthenticate", "2", id="flexible"),
    pytest.param(request(36, 30, b"\0\0\0\x1c" + PASSWORD), "request", "SaslAuthenticate", "30", id="unknown version"),
    pytest.param(b"\0\0\0\x1c" + PASSWORD, "request", "SaslToken", None, id="bare token"),
    pytest.param(b"\0\0\0\x1c" + PASSWORD, "response", "SaslToken", None, id="bare answer"),
    pytest.param(ALTER, "request", "AlterConfigs", "0", id="setting"),
    pytest.param(
        b"\0\0\0\x24\0\0\0\7\0\0\0\0" + PASSWORD, "response", "CreateDelegationToken", "9", id="unknown answer"
    ),
    pytest.param(
        request(58, 0, b"\x1d" + PASSWORD + b"\0\0\0", flexible=True), "request", "Envelope", "0", id="envelope"
    ),
]


@pytest.mark.parametrize(("data", "role", "operation", "version"), SECRETS)
def test_credentials_are_hidden_however_much_is_there(data: bytes, role: str, operation: str, version: str) -> None:
    at = data.index(PASSWORD)
    for size in range(at + 1, len(data) + 1):
        part = data[:size]
        tree = inspect(part, Asked(role, operation, version), ALL)
        check(tree, size)
        covered = {place for start, end, kind in tree.hidden for place in range(start, end) if kind == "secret"}
        assert covered >= set(range(at, min(size, at + len(PASSWORD))))
        assert not values_with(tree.nodes, PASSWORD[:4])


def values_with(nodes: Sequence[Node], secret: bytes) -> list[Node]:
    found = [node for node in nodes if not node.children and secret in repr(node.value).encode()]
    return found + [deeper for node in nodes for deeper in values_with(node.children, secret)]


def test_a_setting_that_is_no_secret_is_shown() -> None:
    tree = inspect(ALTER, Asked("request", "AlterConfigs", "0"), SHOWN)
    assert values_with(tree.nodes, b"seen")
    assert tree.error is None


def test_the_length_of_a_secret_stays_so_that_it_can_be_overwritten() -> None:
    tree = inspect(SASL, Asked("request", "SaslAuthenticate", "0"), SHOWN)
    assert [(start, end) for start, end, _ in tree.hidden] == [(len(SASL) - len(PASSWORD), len(SASL))]


VALUE = b"what the application sent"
BATCH = struct.pack(">qiibIhiqqqhii", 5, 49 + len(VALUE), 0, 2, 1, 0, 0, 1, 1, -1, -1, -1, 1) + VALUE
PRODUCE = request(
    0, 3, struct.pack(">hhii", -1, 1, 1000, 1) + string(b"t") + struct.pack(">iii", 1, 0, len(BATCH)) + BATCH
)


def test_record_data_is_hidden_until_it_is_asked_for() -> None:
    asked = Asked("request", "Produce", "3")
    tree = inspect(PRODUCE, asked, SHOWN)
    at = PRODUCE.index(VALUE)
    assert tree.hidden == [(at, at + len(VALUE), "payload")]
    assert tree.error is None
    assert inspect(PRODUCE, asked, ALL).hidden == []


@pytest.mark.parametrize(
    ("data", "asked"),
    [
        pytest.param(PRODUCE[:-1], Asked("request", "Produce", "3"), id="cut"),
        pytest.param(request(0, 77, BATCH), Asked("request", "Produce", "77"), id="unknown version"),
        pytest.param(b"\0\0\0\x60\0\0\0\1" + BATCH, Asked("response", None, None), id="orphan"),
        pytest.param(b"\0\0\0\x60\0\0\0\1" + BATCH, Asked("response", "Fetch", "99"), id="unknown answer"),
    ],
)
def test_record_data_is_hidden_where_the_message_cannot_be_read(data: bytes, asked: Asked) -> None:
    tree = inspect(data, asked, SHOWN)
    check(tree, len(data))
    at = data.index(VALUE[:-1])
    covered = {place for start, end, _ in tree.hidden for place in range(start, end)}
    assert covered >= set(range(at, min(at + len(VALUE), len(data))))


def test_an_unknown_key_is_header_and_bytes() -> None:
    data = request(97, 0, b"\1\2\3")
    tree = inspect(data, Asked("request", "Key 97", "0"), SHOWN)
    assert [node.name for node in tree.nodes] == [
        "size", "api_key", "api_version", "correlation_id", "client_id", "undecoded",
    ]  # fmt: skip
    assert (tree.hidden, tree.error) == ([(len(data) - 3, len(data), "payload")], "no schema for API key 97 version 0")
    assert inspect(data, Asked("request", "Key 97", "0"), ALL).hidden == []


@pytest.mark.parametrize(
    ("operation", "version", "wanted"),
    [("Metadata", "12", False), ("Metadata", "99", True), ("Metadata", None, True), ("Key 97", "0", True)],
)
def test_messages_that_cannot_be_decoded_are_looked_into(operation: str, version: str | None, wanted: bool) -> None:
    assert may_hide(Asked("request", operation, version)) is wanted


def test_a_hostile_array_is_cut() -> None:
    body = struct.pack(">i", 2_000_000) + b"\0\0" * 2_000_000
    data = request(3, 1, body)
    tree = inspect(data, Asked("request", "Metadata", "1"), SHOWN)
    check(tree, len(data))
    assert tree.error == "the message has more fields than are shown"
