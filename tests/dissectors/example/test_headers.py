"""Header bytes, field by field, and what the probe and the tree make of them."""

from __future__ import annotations

import pytest

from tests.support.example_encode import frame, request, response
from wirewitness.dissectors.core.errors import DecodeError
from wirewitness.dissectors.core.inspect import Asked
from wirewitness.dissectors.core.options import DecodeOptions
from wirewitness.dissectors.example.framing import probe
from wirewitness.dissectors.example.headers import Header, header
from wirewitness.dissectors.example.inspect import inspect

ASKED = Asked("request", "Call", "1")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param("cafe 01 01 00000004 70696e67", Header(1, 1, 4), id="request"),
        pytest.param("cafe 01 02 00000000", Header(1, 2, 0), id="empty response"),
        pytest.param("cafe ff 07 01000000", Header(255, 7, 16 << 20), id="unknown version and type, largest payload"),
    ],
)
def test_headers(data: str, expected: Header) -> None:
    content = bytes.fromhex(data)
    assert header(content, 0, len(content)) == expected


@pytest.mark.parametrize(
    ("data", "says"),
    [
        pytest.param("", "ends inside", id="nothing"),
        pytest.param("cafe 01 01 000000", "ends inside", id="seven bytes"),
        pytest.param("cafd 01 01 00000000", "0xCAFE", id="another magic"),
    ],
)
def test_what_is_no_header(data: str, says: str) -> None:
    with pytest.raises(DecodeError, match=says):
        header(bytes.fromhex(data), 0, len(bytes.fromhex(data)))


@pytest.mark.parametrize(
    ("client", "server", "whole", "certainty"),
    [
        pytest.param(request() + request(), response() + response(), True, 100, id="frames follow each other"),
        pytest.param(request(), b"", True, 60, id="one request"),
        pytest.param(request(version=9), b"", True, 30, id="another version"),
        pytest.param(b"rest" + request() + request(), b"", False, 100, id="mid-stream"),
        pytest.param(b"rest" + request() + request(), b"", True, 0, id="something else first"),
        pytest.param(request() + request(), b"HTTP/1.1 200 OK", True, 0, id="the server says otherwise"),
        pytest.param(response(), request(), True, 0, id="the wrong way round"),
        pytest.param(frame(1, b"", length=(16 << 20) + 1), b"", True, 0, id="payload above 16 MiB"),
        pytest.param(bytes.fromhex("cafebabe0000003d"), b"", True, 0, id="a Java class"),
        pytest.param(b"", b"", True, 0, id="nothing"),
    ],
)
def test_the_probe(client: bytes, server: bytes, whole: bool, certainty: int) -> None:
    assert probe(client, server, whole) == certainty


def test_the_tree_of_a_request() -> None:
    found = inspect(request(b"ping"), ASKED, DecodeOptions(payload=True))
    assert [(node.name, node.start, node.end, node.value) for node in found.nodes] == [
        ("magic", 0, 2, b"\xca\xfe"),
        ("version", 2, 3, 1),
        ("frame_type", 3, 4, 1),
        ("payload_length", 4, 8, 4),
        ("payload", 8, 12, b"ping"),
    ]
    assert (found.hidden, found.error) == ([], None)


def test_the_payload_is_shown_on_request_only() -> None:
    found = inspect(request(b"ping"), ASKED, DecodeOptions())
    assert [tuple(hidden) for hidden in found.hidden] == [(8, 12, "payload")]
    assert found.nodes[-1].value is None


def test_the_tree_of_a_cut_request() -> None:
    found = inspect(request(b"ping")[:10], ASKED, DecodeOptions())
    assert (found.nodes[-1].end, found.error, found.error_at) == (10, "2 bytes of the payload are missing", 10)
