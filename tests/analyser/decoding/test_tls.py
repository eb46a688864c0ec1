"""TLS is recognised by content, with the server name of the client; nothing else is taken for it."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.wire import Talk, decode
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.decoding.tls_handshake import encryption
from wirewitness.analyser.inputs import analysis_of
from wirewitness.dissectors.registry import PROTOCOLS

TABLES = ("flows", "expert_infos", "messages", "exchanges", "kafka_brokers", "kafka_partitions")


def sized(data: bytes, length_bytes: int) -> bytes:
    return len(data).to_bytes(length_bytes) + data


def record(kind: int, body: bytes) -> bytes:
    return bytes([kind, 3, 1]) + sized(body, 2)


def hello(name: str | None = "kafka.example") -> bytes:
    """The body of a ClientHello with a few extensions."""
    extensions = (43).to_bytes(2) + sized(bytes.fromhex("02 0304"), 2)
    if name is not None:
        entry = b"\0" + sized(name.encode(), 2)
        extensions += (0).to_bytes(2) + sized(sized(entry, 2), 2)
    extensions += (16).to_bytes(2) + sized(bytes(5), 2)
    ciphers, compression = sized(bytes.fromhex("1301 1302"), 2), sized(b"\0", 1)
    return b"\3\3" + bytes(32) + sized(bytes(32), 1) + ciphers + compression + sized(extensions, 2)


def client_hello(name: str | None = "kafka.example", per_record: int = 1 << 14) -> bytes:
    message = b"\1" + sized(hello(name), 3)
    return b"".join(record(22, message[at : at + per_record]) for at in range(0, len(message), per_record))


SERVER_HELLO = record(22, b"\2" + sized(bytes(70), 3))
DATA = record(23, bytes(40))


@pytest.mark.parametrize(
    ("name", "per_record", "expected"),
    [("kafka.example", 1 << 14, "kafka.example"), (None, 1 << 14, None), ("kafka.example", 30, "kafka.example")],
    ids=["named", "no name", "in several records"],
)
def test_the_server_name(name: str | None, per_record: int, expected: str | None) -> None:
    for heads, from_first in (
        ((client_hello(name, per_record), b""), True),
        ((b"", client_hello(name, per_record)), False),
    ):
        found = encryption(*heads)
        assert found is not None
        assert found.hello is not None
        assert (found.hello.sni, found.complete, found.from_first) == (expected, True, from_first)


def test_a_hello_that_is_not_whole_says_so() -> None:
    found = encryption(client_hello()[:60], b"")
    assert found == (None, False, True, False)


@pytest.mark.parametrize(
    ("first", "second", "is_tls"),
    [
        (DATA, DATA, True),
        (DATA, b"", True),
        (client_hello(), SERVER_HELLO, True),
        (b"\x00\x00\x00\x17\x00\x12\x00\x03", b"", False),
        (client_hello(), b"HTTP/1.1 400 Bad Request", False),
        (bytes.fromhex("16 03 01 00 00"), b"", False),
        (bytes.fromhex("16 03 01 ff ff 01"), b"", False),
        (bytes.fromhex("17 03 03 00 02 aa bb") + b"junk", b"", False),
        (b"", b"", False),
    ],
    ids=[
        "mid-stream",
        "one side",
        "handshake",
        "kafka",
        "an answer in clear",
        "empty",
        "too long",
        "no 2nd",
        "nothing",
    ],
)
def test_what_is_tls(first: bytes, second: bytes, is_tls: bool) -> None:
    assert (encryption(first, second) is not None) is is_tls


@given(st.binary(max_size=300), st.integers(0, 200), st.binary(max_size=4))
def test_never_raises(noise: bytes, at: int, patch: bytes) -> None:
    damaged = client_hello()[:at] + patch + client_hello()[at + len(patch) :]
    encryption(damaged, noise)
    encryption(record(22, b"\1" + sized(noise, 3)), b"")
    encryption(noise, damaged)


def tables(talk: Talk, block_bytes: int) -> dict[str, pd.DataFrame]:
    with analysis_of(
        decode(talk.packets, TABLES, block_bytes=block_bytes), TABLES, ReadOptions(), PROTOCOLS.values()
    ) as analysis:
        return {name: analysis.table(name) for name in TABLES}


@pytest.mark.parametrize("block_bytes", [300, 1 << 20])
def test_an_encrypted_flow(block_bytes: int) -> None:
    sent = client_hello(per_record=50)
    talk = Talk().handshake().send(True, 0, sent[:100], ack=0).send(True, 100, sent[100:], ack=0)
    talk.send(False, 0, SERVER_HELLO + DATA, ack=len(sent)).send(True, len(sent), DATA * 1000, ack=0)
    got = tables(talk, block_bytes)
    (flow,) = got["flows"].to_dict("records")
    assert (flow["encrypted"], flow["sni"]) == (True, "kafka.example")
    assert pd.isna(flow["protocol"])
    (info,) = got["expert_infos"].to_dict("records")
    assert (info["code"], info["severity"], info["packet"]) == ("encrypted", "chat", 4)
    assert not len(got["messages"])
